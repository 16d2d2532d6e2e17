"""What a round decides, as values: stages above the round read these and know no round.

Deterministic by construction: no clock, no order but that of the decisions. Keeps INV-R7.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, partial
from typing import Protocol, runtime_checkable

from msgspec import Struct, structs

from pyresched.model.ids import JobId, NodeId, PoolName, QueueName, RunId
from pyresched.model.reasons import UnschedulableReason

__all__ = [
    "Method",
    "Placement",
    "Preemption",
    "PreemptionCause",
    "QueueShare",
    "RoundResult",
    "Termination",
]


class Method(StrEnum):
    """How room was found for a job."""

    NO_PREEMPTION = "no_preemption"
    FAIR_SHARE = "fair_share"  # runs of queues above their share gave way on its node


class PreemptionCause(StrEnum):
    """Why a run gives way."""

    FAIR_SHARE = "fair_share"  # its queue is above its share and its room was needed
    GANG = "gang"  # another member of its gang gave way


class Termination(StrEnum):
    """Why a round ended."""

    NOTHING_QUEUED = "nothing_queued"
    NO_NODES = "no_nodes"
    NO_REMAINING_CANDIDATES = "no_remaining_candidates"


class Placement(Struct, frozen=True, gc=False):
    """A queued job gets a node; its run is bound there at `priority`."""

    job_id: JobId
    node_id: NodeId
    priority: int
    method: Method = Method.NO_PREEMPTION


class Preemption(Struct, frozen=True, gc=False):
    """A run gives way to the job `for_job_id`, which this round places."""

    job_id: JobId
    run_id: RunId
    node_id: NodeId
    for_job_id: JobId
    reason: PreemptionCause = PreemptionCause.FAIR_SHARE


class QueueShare(Struct, frozen=True, kw_only=True, gc=False):
    """Where a queue stood in a round. All figures are shares of the pool.

    `actual_share` is the dominant share of what its runs held when the round began,
    `resulting_share` that after the round; `demand_share` that of all it runs and asks for.
    `fair_share` is its weight over that of all queues of the round, `adjusted_share` what it
    gets when unused share is passed on, `uncapped_share` the same if it asked for everything.
    It loses no run while it holds `protected_share` or less.
    """

    queue: QueueName
    weight: float
    fair_share: float
    adjusted_share: float
    uncapped_share: float
    demand_share: float
    actual_share: float
    protected_share: float
    resulting_share: float


@runtime_checkable
class _Counted(Protocol):
    """Refusals that can be counted without looking at each."""

    def by_code(self) -> dict[str, int]: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundResult:
    """The decisions of one pass over one pool; `scheduled`, `preempted`, `refused` are disjoint.

    `scheduled` and `preempted` stand in the order in which they were decided, `refused` (each
    queued job that got no node, with its reason) by queue and then in the order of the queue.
    """

    pool: PoolName
    scheduled: tuple[Placement, ...] = ()
    preempted: tuple[Preemption, ...] = ()
    refused: Mapping[str, UnschedulableReason] = field(default_factory=dict)
    termination: Termination = Termination.NOTHING_QUEUED
    count_shares: Callable[[], tuple[QueueShare, ...]] = field(default=tuple, repr=False)

    @cached_property
    def shares(self) -> tuple[QueueShare, ...]:
        """The queues that took part, by name. Worked out when first asked for."""
        return self.count_shares()

    def __bool__(self) -> bool:
        """Whether anything changes."""
        return bool(self.scheduled or self.preempted)

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
            preempted=self.preempted,
            refused=dict(self.refused),
            termination=self.termination,
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
            "scheduled": [_plain(each) for each in self.scheduled],
            "preempted": [_plain(each) for each in self.preempted],
            "refused_by_code": self.refused_by_code(),
            "refused": {job_id: reason.to_dict() for job_id, reason in self.refused.items()},
            "shares": [_plain(each) for each in self.shares],
        }


def _plain(value: Placement | Preemption | QueueShare) -> dict[str, object]:
    fields = structs.asdict(value).items()
    return {name: each.value if isinstance(each, StrEnum) else each for name, each in fields}
