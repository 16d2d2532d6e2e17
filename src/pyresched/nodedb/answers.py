"""What a search for a node comes to: a candidate, victims, or why there is none."""

from functools import cached_property
from typing import Literal, NamedTuple

from pyresched.model import JobId, NodeId, ReasonCode, ResourceVector, UnschedulableReason

__all__ = ["Candidate", "NotFound", "Victims"]


class Candidate(NamedTuple):
    """A node with room, and the level at which it has it.

    `level` is `EVICTED` when nobody is touched, else the lowest class priority at which there
    is room: evicted jobs, or preemptible ones below that priority, would have to go.
    """

    node_id: NodeId
    level: int


class Victims(NamedTuple):
    """The jobs whose loss makes room on a node, in the order given; none when there is room."""

    node_id: NodeId
    job_ids: tuple[JobId, ...]


class NotFound:
    """No node would do, as things were when it was asked; false in a condition.

    Reasons are worked out when first read. `wanted` is the request; of the nodes that took
    part and matched, `best_total` is the best that they have, `best_room` the best that they
    had left: of each resource the most, or all of one node if that would have done for each.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        wanted: ResourceVector,
        evidence: tuple[int, int, ResourceVector, ResourceVector],
    ) -> None:
        self._names = names
        self.wanted = wanted
        self.nodes, self.matching, self.best_total, self.best_room = evidence

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return f"NotFound({', '.join(reason.sentence() for reason in self.reasons)})"

    @property
    def reason(self) -> UnschedulableReason:
        """The first of the reasons."""
        return self.reasons[0]

    @cached_property
    def reasons(self) -> tuple[UnschedulableReason, ...]:
        """Why: one reason, or one for each resource that is short, in vector order."""
        if not self.nodes:
            return (UnschedulableReason(ReasonCode.NO_NODES),)
        if not self.matching:
            return (UnschedulableReason(ReasonCode.NO_MATCHING_NODE),)
        exceeding = self._short_of(ReasonCode.EXCEEDS_EVERY_NODE, self.best_total)
        return exceeding or self._short_of(ReasonCode.INSUFFICIENT_RESOURCES, self.best_room)

    def _short_of(self, code: ReasonCode, had: ResourceVector) -> tuple[UnschedulableReason, ...]:
        return tuple(
            UnschedulableReason(code, resource=name, wanted=wanted, had=best)
            for name, wanted, best in zip(self._names, self.wanted, had, strict=True)
            if wanted > best
        )
