"""What a round placed: one decision as a value, and a million of them as columns.

A column costs some bytes a decision; a value is made when one is read. Keeps INV-R7.
"""

from array import array
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final, overload

from msgspec import Struct

from pyresched.ids import JobId, NodeId

__all__ = ["METHODS", "Method", "Placement", "Placements"]


class Method(StrEnum):
    """How room was found for a job."""

    NO_PREEMPTION = "no_preemption"
    FAIR_SHARE = "fair_share"  # runs of queues above their share gave way on its node
    URGENCY = "urgency"  # runs at a lower priority gave way on its node
    AWAY = "away"  # a guest: on another kind of node at a lower priority, or of another pool


METHODS: Final = tuple(Method)
"""The methods by code: a column of them holds places in this."""


class Placement(Struct, frozen=True, gc=False):
    """A queued job gets a node; its run is bound there at `priority`."""

    job_id: JobId
    node_id: NodeId
    priority: int
    method: Method = Method.NO_PREEMPTION


class Placements(Sequence[Placement]):
    """Placements in columns, in the order in which they were decided. Immutable.

    `nodes` are places in `node_ids`, `methods` places in `METHODS`; each column may be any
    sequence, and must not change afterwards. Equal to a list or tuple of the same placements.
    Raises ValueError for columns of different lengths.
    """

    __slots__ = ("job_ids", "methods", "node_ids", "nodes", "priorities")

    def __init__(
        self,
        job_ids: Sequence[str],
        nodes: Sequence[int],
        priorities: Sequence[int],
        methods: Sequence[int],
        node_ids: Sequence[str],
    ) -> None:
        lengths = [len(column) for column in (job_ids, nodes, priorities, methods)]
        if min(lengths) != max(lengths):
            raise ValueError(
                "columns of placements are of one length, "
                f"got {lengths[0]} job_ids, {lengths[1]} nodes, "
                f"{lengths[2]} priorities, {lengths[3]} methods"
            )
        self.job_ids = job_ids
        self.nodes = nodes
        self.priorities = priorities
        self.methods = methods
        self.node_ids = node_ids

    def __len__(self) -> int:
        return len(self.nodes)

    @overload
    def __getitem__(self, at: int) -> Placement: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Placement]: ...
    def __getitem__(self, at: int | slice) -> Placement | Sequence[Placement]:
        if isinstance(at, slice):
            return Placements(
                self.job_ids[at],
                self.nodes[at],
                self.priorities[at],
                self.methods[at],
                self.node_ids,
            )
        return Placement(
            JobId(self.job_ids[at]),
            NodeId(self.node_ids[self.nodes[at]]),
            self.priorities[at],
            METHODS[self.methods[at]],
        )

    def __iter__(self) -> Iterator[Placement]:
        node_ids = self.node_ids
        for job_id, node, priority, method in zip(
            self.job_ids, self.nodes, self.priorities, self.methods, strict=True
        ):
            yield Placement(JobId(job_id), NodeId(node_ids[node]), priority, METHODS[method])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Placements | tuple | list):
            return NotImplemented
        return len(self) == len(other) and all(
            mine == theirs for mine, theirs in zip(self, other, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Placements of {len(self)} jobs>"

    def __reduce__(self) -> tuple[type["Placements"], tuple[Sequence[object], ...]]:
        # Columns may lie in memory of a round or a db; a copy stands alone.
        columns = (
            tuple(self.job_ids),
            array("q", self.nodes),
            array("q", self.priorities),
            bytes(self.methods),
            tuple(self.node_ids),
        )
        return Placements, columns
