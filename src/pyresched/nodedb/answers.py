"""What a search for a node comes to: a candidate, victims, or why there is none."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Final, Literal, NamedTuple

from pyresched._core import EVICTED
from pyresched.model import (
    Exclusion,
    JobId,
    NodeId,
    ReasonCode,
    Requirements,
    ResourceVector,
    UnschedulableReason,
)

__all__ = ["Candidate", "NotFound", "Victims"]

_PLACES: Final = "jobs"  # what a node with a maximum number of jobs runs out of


class Candidate(NamedTuple):
    """A node with room, and the level at which it has it.

    `level` is `EVICTED` when nobody is touched, else the lowest class priority at which there
    is room: evicted jobs, or preemptible ones below that priority, would have to go.
    """

    node_id: NodeId
    level: int

    def __repr__(self) -> str:
        level = "EVICTED" if self.level == EVICTED else self.level
        return f"Candidate(node_id={self.node_id!r}, level={level})"


class Victims(NamedTuple):
    """The jobs whose loss makes room on a node, in the order given; none when there is room."""

    node_id: NodeId
    job_ids: tuple[JobId, ...]


# Nodes that take part, those of them that match, the best total and the best room; by amount,
# resources and then places for jobs, the nodes that are short of it first and the most that one
# of those has; by property, and at the end by host, the nodes that the scope has taken.
Evidence = tuple[
    int, int, ResourceVector, ResourceVector, tuple[tuple[int, int], ...], tuple[int, ...]
]


class NotFound:
    """No node would do, as things were when it was asked; false in a condition.

    Reasons are worked out when first read. `wanted` is the request; of the nodes that took
    part and matched, `best_total` is the best that they have, `best_room` the best that they
    had left: of each resource the most, or all of one node if that would have done for each.
    For people: `reason.sentence()`, and `each.sentence()` of `excluded`; for programs: `code`.
    *refused* says how many nodes may not be used whatever is bound where.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        requirements: Requirements,
        evidence: Evidence,
        refused: Callable[[], tuple[Exclusion, ...]],
    ) -> None:
        self._names = names
        self._requirements = requirements
        self.wanted = requirements.resources
        self.nodes, self.matching, self.best_total, self.best_room = evidence[:4]
        self._short, self._taken = evidence[4:]
        self._refused = refused

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
        """Why: one reason, or one for each resource that is short, in vector order.

        Where no single one is short on all nodes, what is in the way on most comes first.
        """
        if not self.nodes:
            return (UnschedulableReason(ReasonCode.NO_NODES),)
        if not self.matching:
            return (UnschedulableReason(ReasonCode.NO_MATCHING_NODE),)
        return (
            self._short_of(ReasonCode.EXCEEDS_EVERY_NODE, self.best_total)
            or self._short_of(ReasonCode.INSUFFICIENT_RESOURCES, self.best_room)
            or tuple(each.reason for each in sorted(self._full(), key=lambda full: full.order))
        )

    @cached_property
    def excluded(self) -> tuple[Exclusion, ...]:
        """Why not which nodes: each node of the pool once, under its first reason; most first.

        First comes whether a node may be used at all, then the other jobs of the scope, then
        the amounts that it had left, in vector order.
        """
        return tuple(sorted([*self._refused(), *self._full()], key=lambda each: each.order))

    def _full(self) -> Iterator[Exclusion]:
        """Those that match, by what is in the way."""
        closed = self.matching - sum(self._taken) - sum(nodes for nodes, _ in self._short)
        if closed:
            # Over-allocated when the fork was made; what has left since makes no room there.
            yield Exclusion(UnschedulableReason(ReasonCode.NODES_CLOSED), closed)
        *by_property, by_host = self._taken or (0,)
        distinct = (each for each in self._requirements.constraints if each.distinct and each.label)
        # Spreads come after these, and take no node.
        for each, nodes in zip(distinct, by_property, strict=False):
            if nodes:
                reason = UnschedulableReason(
                    ReasonCode.PROPERTY_TAKEN, subject=each.label, wanted=each.limit
                )
                yield Exclusion(reason, nodes)
        if by_host:
            yield Exclusion(UnschedulableReason(ReasonCode.HOST_TAKEN), by_host)
        wanted = (*zip(self._names, self.wanted, strict=True), (_PLACES, 1))
        for (name, amount), (nodes, had) in zip(wanted, self._short, strict=False):
            if nodes:
                reason = UnschedulableReason(
                    ReasonCode.INSUFFICIENT_RESOURCES, resource=name, wanted=amount, had=had
                )
                yield Exclusion(reason, nodes)

    def _short_of(self, code: ReasonCode, had: ResourceVector) -> tuple[UnschedulableReason, ...]:
        return tuple(
            UnschedulableReason(code, resource=name, wanted=wanted, had=best)
            for name, wanted, best in zip(self._names, self.wanted, had, strict=True)
            if wanted > best
        )
