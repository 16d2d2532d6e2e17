"""What a round decides, as values: stages above the round read these and know no round.

Deterministic by construction: no clock, no order but that of the decisions. Keeps INV-R7.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, partial
from typing import Protocol, runtime_checkable

from msgspec import Struct, structs

from pyresched.ids import JobId, NodeId, PoolName, QueueName, RunId
from pyresched.model.placements import Placement
from pyresched.model.reasons import UnschedulableReason

__all__ = [
    "Explained",
    "Move",
    "Preemption",
    "PreemptionCause",
    "QueueCounts",
    "QueueShare",
    "RoundResult",
    "Termination",
]


class PreemptionCause(StrEnum):
    """Why a run gives way."""

    FAIR_SHARE = "fair_share"  # its queue is above its share and its room was needed
    URGENCY = "urgency"  # a job of a higher priority needed its room
    GANG = "gang"  # another member of its gang gave way
    GUEST = "guest"  # it ran on a node of another pool, which needs its room


class Termination(StrEnum):
    """Why a round ended."""

    NOTHING_QUEUED = "nothing_queued"
    NO_NODES = "no_nodes"
    NO_REMAINING_CANDIDATES = "no_remaining_candidates"
    ROUND_LIMIT = "round_limit"  # as much as one round may place is placed
    RATE_LIMIT = "rate_limit"  # no token is left for a new job of any queue
    ROUND_BUDGET = "round_budget"  # as many as one round may try were tried
    NO_REST = "no_rest"  # passes went on changing things: decided anew, and nobody gave way


class Preemption(Struct, frozen=True, gc=False):
    """A run gives way to the job `for_job_id`, which this round places."""

    job_id: JobId
    run_id: RunId
    node_id: NodeId
    for_job_id: JobId
    reason: PreemptionCause = PreemptionCause.FAIR_SHARE


class Move(Struct, frozen=True, gc=False):
    """A run gives way to the job `for_job_id`, and its job gets a new run on another node.

    To its executor that is a preemption on `from_node_id` and a lease at `priority` on
    `node_id`; its job never waits in between, and the rest of its gang stays as it is.
    """

    job_id: JobId
    run_id: RunId
    from_node_id: NodeId
    node_id: NodeId
    priority: int
    for_job_id: JobId
    reason: PreemptionCause = PreemptionCause.FAIR_SHARE


class QueueCounts(Struct, frozen=True, kw_only=True, gc=False):
    """How far a round came with a queue; `scheduled_*`, `preempted` are net of all passes.

    Of `queued` jobs the first `looked_at` stood within the look-back (`cut_off`: it left out
    others), and `tried` lone jobs and gangs of them had their turn. `waiting` runs had to stand
    in line again. The turns of a pass are counted over all queues from 0: `first_position` was
    the first of this queue, in `last_position` it last got something; None where there is none.
    """

    queue: QueueName
    queued: int = 0
    looked_at: int = 0
    cut_off: bool = False
    tried: int = 0
    scheduled_jobs: int = 0
    scheduled_gangs: int = 0
    waiting: int = 0
    preempted: int = 0
    first_position: int | None = None
    last_position: int | None = None


class QueueShare(Struct, frozen=True, kw_only=True, gc=False):
    """Where a queue stood in a round. All figures but the weights are shares of the pool.

    `raw_weight` is its weight before the pool's override. `actual_share` is the dominant share
    of what its runs held when the round began, `resulting_share` that after the round;
    `demand_share` that of all it runs and asks for, `constrained_demand_share` the same with each
    class cut to its limit, `penalty_share` that of runs which ended too soon and still count for
    its turn. `fair_share` is its weight over that of all queues of the round, `adjusted_share`
    what it gets when unused share is passed on, `uncapped_share` the same if it asked for
    everything. While it holds `protected_share` or less, it loses no run but to jobs of a more
    urgent class. None is ever NaN.
    """

    queue: QueueName
    weight: float
    raw_weight: float
    fair_share: float
    adjusted_share: float
    uncapped_share: float
    demand_share: float
    constrained_demand_share: float
    penalty_share: float
    actual_share: float
    protected_share: float
    resulting_share: float


@runtime_checkable
class _Counted(Protocol):
    """Refusals that can be counted without looking at each."""

    def by_code(self) -> dict[str, int]: ...


class Explained(Protocol):
    """Why a job is where it is; `pyresched.scheduling.Explanation` has all of it."""

    def sentence(self) -> str:
        """For people."""

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundResult:
    """The decisions of a round over one pool.

    `scheduled`, `moved`, `preempted` and `refused` are disjoint: what the round found, against
    what `passes` over it came to. `scheduled` (a tuple or `Placements`), `moved` and `preempted`
    stand in the order in which they were decided, `refused` (each queued job that got no node,
    with its reason) by queue and then in the order of the queue, `queues` by name.
    """

    pool: PoolName
    scheduled: Sequence[Placement] = ()
    moved: tuple[Move, ...] = ()
    preempted: tuple[Preemption, ...] = ()
    refused: Mapping[str, UnschedulableReason] = field(default_factory=dict)
    termination: Termination = Termination.NOTHING_QUEUED
    passes: int = 1
    queues: tuple[QueueCounts, ...] = ()
    count_shares: Callable[[], tuple[QueueShare, ...]] = field(default=tuple, repr=False)
    explain_job: "Callable[[str, RoundResult], Explained] | None" = field(default=None, repr=False)

    @cached_property
    def shares(self) -> tuple[QueueShare, ...]:
        """The queues that took part, by name. Worked out when first asked for."""
        return self.count_shares()

    @property
    def fairness_error(self) -> float:
        """How much of the pool queues miss of their adjusted shares after the round."""
        missing = (each.adjusted_share - each.resulting_share for each in self.shares)
        return sum((each for each in missing if each > 0), 0.0)

    def explain(self, job_id: str) -> Explained:
        """Why a job is where it is after the round, and what would start it; runs rounds.

        Reads what the round read: the snapshot must still be readable, so not that of a dry run
        that has ended. Raises InputError for an unknown job, LookupError for a result that has
        been pickled or made by hand.
        """
        if self.explain_job is None:
            raise LookupError("this result has not kept what its round read; use `explain`")
        return self.explain_job(job_id, self)

    def __bool__(self) -> bool:
        """Whether anything changes."""
        return bool(self.scheduled or self.moved or self.preempted)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RoundResult):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Callable[[], "RoundResult"], tuple[()]]:
        restore = partial(
            RoundResult,
            pool=self.pool,
            scheduled=self.scheduled,
            moved=self.moved,
            preempted=self.preempted,
            refused=dict(self.refused),
            termination=self.termination,
            passes=self.passes,
            queues=self.queues,
            count_shares=partial(tuple, self.shares),
        )
        return restore, ()

    def refused_by_code(self) -> dict[str, int]:
        """How many jobs were refused for each kind of reason, by code."""
        if isinstance(self.refused, _Counted):
            return self.refused.by_code()
        counts = Counter(reason.code.value for reason in self.refused.values())
        return dict(sorted(counts.items()))

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values in a fixed order; no timings, so equal rounds are equal."""
        return {
            "pool": self.pool,
            "termination": self.termination.value,
            "passes": self.passes,
            "scheduled": [_plain(each) for each in self.scheduled],
            "moved": [_plain(each) for each in self.moved],
            "preempted": [_plain(each) for each in self.preempted],
            "refused_by_code": self.refused_by_code(),
            "refused": {job_id: reason.to_dict() for job_id, reason in self.refused.items()},
            "queues": [_plain(each) for each in self.queues],
            "shares": [_plain(each) for each in self.shares],
            "fairness_error": self.fairness_error,
        }


def _plain(value: Placement | Move | Preemption | QueueCounts | QueueShare) -> dict[str, object]:
    fields = structs.asdict(value).items()
    return {name: each.value if isinstance(each, StrEnum) else each for name, each in fields}
