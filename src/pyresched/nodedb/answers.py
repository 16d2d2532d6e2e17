"""What a search for a node comes to: a candidate, victims, or why there is none."""

from collections.abc import Callable
from functools import cached_property
from typing import Literal, NamedTuple

from pyresched.model import (
    Exclusion,
    JobId,
    NodeId,
    ReasonCode,
    ResourceVector,
    UnschedulableReason,
)

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
    *refused* says how many nodes may not be used whatever is bound where, *taken* how many of
    those that match are out because of the other jobs of the scope.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        wanted: ResourceVector,
        evidence: tuple[int, int, ResourceVector, ResourceVector],
        refused: Callable[[], tuple[Exclusion, ...]] | None = None,
        taken: tuple[Exclusion, ...] = (),
    ) -> None:
        self._names = names
        self.wanted = wanted
        self.nodes, self.matching, self.best_total, self.best_room = evidence
        self._refused = refused
        self._taken = taken

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

    @cached_property
    def excluded(self) -> tuple[Exclusion, ...]:
        """Why not which nodes: each node of the pool once, under its first reason; most first.

        Resources come last, so a node under them meets everything else.
        """
        found = [*(() if self._refused is None else self._refused()), *self._taken]
        short = self.matching - sum(each.nodes for each in self._taken)
        if short > 0:
            found.append(Exclusion(self.reasons[0], short))
        return tuple(sorted(found, key=lambda each: each.order))

    def _short_of(self, code: ReasonCode, had: ResourceVector) -> tuple[UnschedulableReason, ...]:
        return tuple(
            UnschedulableReason(code, resource=name, wanted=wanted, had=best)
            for name, wanted, best in zip(self._names, self.wanted, had, strict=True)
            if wanted > best
        )
