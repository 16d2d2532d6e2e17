"""What a round hands to the next one, over the same pool or over all of them.

Values only: a saved state and the same arguments give the same round again.
"""

from msgspec import Struct, structs

from pyresched.config import SchedulingConfig
from pyresched.model import QueueName
from pyresched.scheduling.buckets import Bucket
from pyresched.scheduling.penalties import ShortRun

__all__ = ["RateState", "RoundState", "handed_on"]


class RateState(Struct, frozen=True, kw_only=True):
    """The buckets of the rates of all queues together and of each: what pools may share.

    A bucket that is full is not there. `queues` is in the order of the names.
    """

    all: Bucket | None = None
    queues: dict[QueueName, Bucket] = {}


class RoundState(Struct, frozen=True, kw_only=True):
    """Carried from round to round, in and out; `RoundState()` starts a pool.

    Whatever must outlive a round (tokens of rates, penalties) is a field here, never an
    attribute of something else. `preemption` is the bucket of the pool's preemptions;
    `penalties` are the short runs in it whose jobs have ended, by deadline and job: the round
    looks at those that still count, and whoever calls it adds those that come.
    """

    rates: RateState = RateState()
    preemption: Bucket | None = None
    penalties: tuple[ShortRun, ...] = ()


def handed_on(state: RoundState, before: RoundState | None, config: SchedulingConfig) -> RoundState:
    """*state* of a pool with what its round shares with the one *before* it, over any pool."""
    if before is None or config.rate_scope == "pool" or state.rates == before.rates:
        return state
    return structs.replace(state, rates=before.rates)
