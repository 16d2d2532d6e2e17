"""A copy of one pool's nodes to decide on: search, attempts that are undone, victims.

Relies on the native `NodeTable`, which it alone holds. Keeps INV-B5, INV-B8 to INV-B10.
"""

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from pyresched._core import EVICTED, NodeTable
from pyresched.errors import InputError, TxnClosed, UnknownNode
from pyresched.model import JobId, Node, NodeId, Requirements, ResourceVector
from pyresched.nodedb.answers import Candidate, NotFound, Victims
from pyresched.nodedb.check import breaches

__all__ = ["Attempt", "Binding", "NodeFork"]

_MOST_RANK = 100


class Binding(NamedTuple):
    """What a job holds. It counts at each level up to `priority`; at all if not preemptible."""

    node_id: NodeId
    requirements: Requirements
    priority: int
    preemptible: bool
    evicted: bool


class NodeFork:
    """The nodes of one pool, sorted by id, with what is bound to them: private to its owner.

    Nothing done here reaches the node db or another fork. `table` is for native code. Priorities
    are class priorities; `EVICTED` asks for room that nobody holds. Not for two threads at once.
    """

    def __init__(self, table: NodeTable, nodes: tuple[Node, ...], names: tuple[str, ...]) -> None:
        self.table = table
        self.nodes = nodes
        self._names = names
        self._levels = (EVICTED, *table.levels)
        self._refused: dict[tuple[Requirements, int], tuple[int, NotFound]] = {}

    def __len__(self) -> int:
        return len(self.nodes)

    def node(self, node_id: str) -> Node:
        """The node. Raises UnknownNode."""
        return self.nodes[self._index(node_id)]

    def label_values(self, label: str) -> tuple[str, ...]:
        """The values of *label* on nodes of this pool, sorted."""
        return tuple(sorted({node.labels[label] for node in self.nodes if label in node.labels}))

    # --- search ---------------------------------------------------------------------------

    def find(
        self,
        requirements: Requirements,
        priority: int,
        *,
        avoid: Iterable[tuple[str, int]] = (),
        only: Iterable[str] = (),
    ) -> Candidate | NotFound:
        """The best node at the lowest level up to *priority* that has one.

        Order at a level: nodes not in *avoid*, then those by rank (1: used, 2: failed on);
        nodes without an untolerated `PreferNoSchedule` taint first; best fit (least left of
        the first resource, then of the next); node id. With *only*, no other node counts.
        Unknown ids in *avoid* mean nothing, in *only* they raise UnknownNode. Raises InputError
        for a request that is negative or of another width.
        """
        table = self.table
        row = table.row_at(priority)
        avoided = self._avoided(avoid) if avoid else None
        among = [self._index(node_id) for node_id in only] if only else None
        found = table.find_for(requirements, row, avoided, among)
        if found is None:
            return self._not_found(requirements, row, among)
        return Candidate(found[0], self._levels[found[1]])

    def not_found(
        self, requirements: Requirements, priority: int, *, only: Iterable[str] = ()
    ) -> NotFound:
        """Why `find` finds nothing, for a caller that searched natively; cheap to ask again."""
        among = [self._index(node_id) for node_id in only] if only else None
        return self._not_found(requirements, self.table.row_at(priority), among)

    def has_room(self, requirements: Requirements, node_id: str, *, priority: int) -> bool:
        """Whether *node_id* has room at *priority*; asks nothing else of it. Raises UnknownNode."""
        available = self.allocatable(node_id, priority)
        return requirements.resources.fits_in(available)

    def place_many(
        self,
        requirements: Requirements,
        count: int,
        priority: int,
        *,
        avoid: Iterable[tuple[str, int]] = (),
    ) -> list[tuple[NodeId, int]]:
        """Where *count* alike jobs would go, as (node id, how many): fewer when no more fit.

        The same as `find` and bind one by one; binds nothing. A node may stand there twice,
        first for room that is free, then for room at a higher level.
        """
        if count < 0:
            raise InputError(f"count {count}; write 0 or more")
        avoided = self._avoided(avoid) if avoid else None
        return self.table.spread_over(requirements, count, self.table.row_at(priority), avoided)

    def victims(
        self, requirements: Requirements, priority: int, candidates: Sequence[JobId]
    ) -> Victims | NotFound:
        """The jobs to take off a node to make room, evicted or not.

        *candidates* stand in the order in which they would be kept, the dearest first; those
        that are not preemptible or above *priority* are passed over. Of the nodes on which
        candidates make room, the one whose dearest victim stands latest; on it the fewest that
        suffice, the latest among equally few. None at all if a node has free room. Raises
        IllegalBinding for a candidate that holds no node.
        """
        found = self.table.victims_for(requirements, priority, list(candidates))
        if found is None:
            return self._not_found(requirements, 0, None)
        return Victims(found[0], tuple(found[1]))

    # --- what is where ----------------------------------------------------------------------

    def bound(self, node_id: str) -> tuple[JobId, ...]:
        """Ids of the jobs that hold *node_id*, evicted ones too, sorted. Raises UnknownNode."""
        return tuple(self.table.bound(self._index(node_id)))

    def node_of(self, job_id: str) -> NodeId | None:
        """The node that a job holds, evicted or not, or None."""
        return self.table.node_of(job_id)

    def binding(self, job_id: str) -> Binding | None:
        """What a job holds, or None."""
        held = self.table.binding(job_id)
        return None if held is None else Binding._make(held)

    def allocatable(self, node_id: str, priority: int) -> ResourceVector:
        """What a job of *priority* could get of a node; negative where it is short."""
        return self.table.amounts(self._index(node_id), self.table.row_at(priority))

    def can_return(self, job_id: str) -> bool:
        """Whether an evicted job may go back: room at its priority, or its node over-allocated."""
        return self.table.fits_back(job_id)

    def over_allocated(self, node_id: str) -> bool:
        """Whether the node held more than it has when this was forked: it takes nothing new."""
        return self.table.is_over(self._index(node_id))

    def takes_new(self, node_id: str) -> bool:
        """Whether the node takes anything new."""
        return self.table.is_open(self._index(node_id))

    def oversubscribed(self) -> list[tuple[NodeId, int]]:
        """(node id, lowest class priority that is short) of nodes not over-allocated from the start."""
        return self.table.oversubscribed()

    # --- change -----------------------------------------------------------------------------

    def attempt(self) -> "Attempt":
        """A block whose changes are taken back unless kept; attempts nest."""
        return Attempt(self.table)

    def fork(self) -> "NodeFork":
        """A copy of this as it is now; an open attempt here is not one there."""
        return NodeFork(self.table.fork(), self.nodes, self._names)

    def check(self) -> list[str]:
        """Each breach of INV-B1 to INV-B4 and INV-B7, as a sentence."""
        return list(breaches(self.table, self.nodes))

    # --- inside -----------------------------------------------------------------------------

    def _index(self, node_id: str) -> int:
        found = self.table.node_by_id.get(NodeId(node_id))
        if found is None:
            raise UnknownNode(node_id)
        return found

    def _avoided(self, avoid: Iterable[tuple[str, int]]) -> list[tuple[int, int]]:
        ranks: dict[int, int] = {}
        for node_id, rank in avoid:
            if not 0 <= rank <= _MOST_RANK:
                raise InputError(f"rank {rank} of node {node_id!r}; write 0 to {_MOST_RANK}")
            index = self.table.node_by_id.get(NodeId(node_id))
            if index is not None and rank > ranks.get(index, 0):
                ranks[index] = rank
        return list(ranks.items())

    def _not_found(self, requirements: Requirements, row: int, only: list[int] | None) -> NotFound:
        if only is not None:
            evidence = self.table.shortfall(requirements, row, only)
            return NotFound(self._names, requirements.resources, evidence)
        known = self._refused.get((requirements, row))
        if known is not None and self.table.is_current(known[0]):
            return known[1]
        evidence = self.table.shortfall(requirements, row)
        fresh = NotFound(self._names, requirements.resources, evidence)
        self._refused[requirements, row] = (self.table.stamp(), fresh)
        return fresh


class Attempt:
    """Binds, evicts and unbinds; all of it is taken back at the end of the block unless kept.

    Used outside its block, after `keep`, or while one inside it is open, it raises TxnClosed.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._mark = -1
        self._depth = 0

    def __enter__(self) -> Self:
        if self._depth:
            raise TxnClosed("an attempt is one block; begin another")
        self._mark = self._table.begin()
        self._depth = self._table.depth
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._mark >= 0:
            self._table.undo(self._mark)
            self._mark = -1

    def bind(
        self,
        job_id: str,
        requirements: Requirements,
        node_id: str,
        priority: int,
        preemptible: bool,  # noqa: FBT001 - a value of the class, not a switch
    ) -> None:
        """Give a job its room on a node, or give it back to one that was evicted from there.

        Asks nothing about room: the levels may go below zero. Raises IllegalBinding when the
        job holds a node already, UnknownNode, InputError.
        """
        self._open().bind(job_id, requirements, node_id, priority, preemptible)

    def evict(self, job_id: str) -> None:
        """Offer a job's room to others; it keeps its node and may return. Raises IllegalBinding."""
        self._open().evict(job_id)

    def unbind(self, job_id: str) -> None:
        """Take a job off its node; one that holds none stays as it is."""
        self._open().unbind(job_id)

    def keep(self) -> None:
        """End the attempt and keep what it did: for good, or as part of the one around it."""
        self._open().keep(self._mark)
        self._mark = -1

    def _open(self) -> NodeTable:
        if self._mark < 0:
            raise TxnClosed("the attempt has ended, or has not begun")
        if self._table.depth != self._depth:
            raise TxnClosed("an attempt inside this one is open; use that, or end it")
        return self._table
