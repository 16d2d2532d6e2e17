"""Says each breach of the node db's invariants: worked out anew from what is bound, in Python.

Relies on the table's read accessors only. Checks INV-B1 to INV-B4, INV-B7, INV-B11.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from pyresched._core import EVICTED
from pyresched.model import JobId, Node, NodeId, Requirements, ResourceVector

__all__ = ["TableReader", "breaches"]

_INT64_MAX: Final = 2**63 - 1


class TableReader(Protocol):
    """What the check reads of a `NodeTable`."""

    @property
    def levels(self) -> tuple[int, ...]:
        """Class priorities, ascending."""

    @property
    def node_ids(self) -> tuple[NodeId, ...]:
        """Ids, ascending."""

    def bound_jobs(self) -> list[JobId]:
        """All jobs that hold a node."""

    def binding(self, job_id: str) -> tuple[NodeId, Requirements, int, bool, bool] | None:
        """What a job holds."""

    def bound(self, node: int) -> list[JobId]:
        """The jobs in a node's list."""

    def amounts(self, node: int, priority: int) -> ResourceVector:
        """What a node has left for a job of a priority."""

    def total(self, node: int) -> ResourceVector:
        """What a node has."""

    def is_open(self, node: int) -> bool:
        """Whether it takes anything new."""

    def check_orders(self) -> list[str]:
        """What is wrong with the orders to search in, as sentences."""


def breaches(
    table: TableReader, nodes: Sequence[Node], rooms: Sequence[ResourceVector] | None = None
) -> Iterator[str]:
    """Each breach, as a sentence that names the invariant, the node and what was expected.

    *rooms* is what jobs may have of each of *nodes*; None: what it says itself.
    """
    if rooms is None:
        rooms = [node.allocatable for node in nodes]
    if table.node_ids != tuple(sorted(node.id for node in nodes)):
        yield "INV-B4: the table's nodes are not those of the db, sorted"
        return
    held: dict[NodeId, dict[JobId, tuple[Requirements, int, bool, bool]]] = {}
    for job_id in table.bound_jobs():
        binding = table.binding(job_id)
        if binding is None:
            yield f"INV-B4: job {job_id} is listed and holds nothing"
            continue
        held.setdefault(binding[0], {})[job_id] = binding[1:]
    for i, (node, room) in enumerate(zip(nodes, rooms, strict=True)):
        own = held.get(node.id, {})
        if table.bound(i) != sorted(own):
            yield f"INV-B4: node {node.id} lists {table.bound(i)}, held by {sorted(own)}"
        if table.total(i) != room:
            yield f"INV-B1: node {node.id} has {room}, the table {table.total(i)}"
        if table.is_open(i) and not node.takes_new_runs:
            yield f"INV-B7: node {node.id} takes nothing new, the table is open"
        yield from _amount_breaches(table, i, node.id, room, list(own.values()))
    yield from table.check_orders()


def _amount_breaches(
    table: TableReader,
    i: int,
    node_id: NodeId,
    room: ResourceVector,
    own: list[tuple[Requirements, int, bool, bool]],
) -> Iterator[str]:
    below: tuple[int, ...] | None = None
    for level in (EVICTED, *table.levels):
        counted = [
            requirements.resources
            for requirements, priority, preemptible, evicted in own
            if level == EVICTED or (not evicted and (not preemptible or priority >= level))
        ]
        expected = tuple(
            total - min(sum(amounts), _INT64_MAX)
            for total, *amounts in zip(room, *counted, strict=True)
        )
        found = table.amounts(i, level).to_tuple()
        if found != expected:
            number = "INV-B1" if level == EVICTED else "INV-B2"
            at = "the evicted level" if level == EVICTED else f"level {level}"
            yield f"{number}: node {node_id} at {at} has {found} left, expected {expected}"
        if below is not None and any(a > b for a, b in zip(below, found, strict=True)):
            yield f"INV-B3: node {node_id} has less left at level {level} than below it"
        below = found
