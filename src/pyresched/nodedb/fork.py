"""A copy of one pool's nodes to decide on: search, attempts that are undone, victims.

Relies on the native `NodeTable`, which it alone holds. Keeps INV-B5, INV-B8 to INV-B10.
"""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, NoReturn, cast

from pyresched._core import EVICTED, NodeTable
from pyresched.config import SchedulingConfig
from pyresched.errors import InputError, UnknownNode
from pyresched.model import Job, JobId, Node, NodeId, Requirements, ResourceVector
from pyresched.nodedb.answers import Candidate, NotFound, Victims
from pyresched.nodedb.attempt import Attempt, id_of, level_of
from pyresched.nodedb.check import breaches
from pyresched.nodedb.intake import room_of
from pyresched.nodedb.refusals import excluded

if TYPE_CHECKING:
    from pyresched.nodedb.matching import Matching

__all__ = ["Binding", "NodeFork"]

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

    def __init__(self, table: NodeTable, nodes: tuple[Node, ...], config: SchedulingConfig) -> None:
        self.table = table
        self.nodes = nodes
        self._config = config
        self._open: list[Attempt] = []
        self._refused: dict[tuple[Requirements, int], tuple[int, NotFound]] = {}

    def __repr__(self) -> str:
        return f"<NodeFork of pool {self.table.pool!r}, {len(self)} nodes, {self.table.held} jobs>"

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
        priority: int | None = None,
        *,
        avoid: Iterable[tuple[str, int]] = (),
        only: Iterable[str] | None = None,
    ) -> Candidate | NotFound:
        """The best node at the lowest level up to *priority* that has one; binds nothing.

        *priority* is that of the class that *requirements* name unless one is given; then the
        class is not looked up.
        *avoid* are pairs of node id and rank. Order at a level: nodes not in it, then those by
        rank (1: used, 2: failed on); those of the pool before those of its away pools; nodes
        without an untolerated `PreferNoSchedule` taint first; preferences; what spreads want; best
        fit (least left of the first resource, then of the next); node id. With *only*, even an
        empty one, no other node counts. Unknown ids in *avoid* mean nothing, in *only* they raise
        UnknownNode. Raises InputError for a request that is negative or of another width, and
        ConfigError for a class that is not there.
        """
        at = self._priority(requirements, priority)
        avoided = self._avoided(avoid) if avoid else None
        among = self._among(only)
        found = self.table.find_for(requirements, at, avoided, among)
        if found is None:
            return self._not_found(requirements, at, among)
        return Candidate._make(found)

    def not_found(
        self, requirements: Requirements, priority: int, *, only: Iterable[str] | None = None
    ) -> NotFound:
        """Why `find` finds nothing, for a caller that searched natively; cheap to ask again."""
        return self._not_found(requirements, priority, self._among(only))

    def has_room(self, requirements: Requirements, node_id: str, *, priority: int) -> bool:
        """Whether *node_id* has room at *priority*; asks nothing else of it. Raises UnknownNode."""
        available = self.allocatable(node_id, priority)
        return requirements.resources.fits_in(available)

    def place_many(
        self,
        requirements: Requirements,
        count: int,
        priority: int | None = None,
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
        at = self._priority(requirements, priority)
        return self.table.spread_over(requirements, count, at, avoided)

    def victims(
        self, requirements: Requirements, priority: int, candidates: Iterable[Job | str]
    ) -> Victims | NotFound:
        """The jobs to take off a node to make room, evicted or not; takes nobody off.

        *candidates*, jobs or their ids, stand in the order in which they would be kept, the
        dearest first; those that are not preemptible or above *priority* are passed over. Of
        the nodes on which candidates make room, the one whose dearest victim stands latest; on
        it the fewest that suffice, the latest among equally few. None at all if a node has free
        room. Raises IllegalBinding for a candidate that holds no node.
        """
        ids = [JobId(id_of(each)) for each in candidates]
        at = self._priority(requirements, priority)
        found = self.table.victims_for(requirements, at, ids)
        if found is None:
            return self._not_found(requirements, EVICTED, None)
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
        return self.table.amounts(self._index(node_id), level_of(priority, EVICTED))

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
        return Attempt(self.table, self._config, self._open)

    def fork(self) -> "NodeFork":
        """A copy of this as it is now; an open attempt here is not one there."""
        return NodeFork(self.table.fork(), self.nodes, self._config)

    def __copy__(self) -> "NodeFork":
        return self.fork()

    def __deepcopy__(self, _: object) -> "NodeFork":
        return self.fork()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a NodeFork is not pickled; pickle the nodes and jobs that it is made of")

    def check(self) -> list[str]:
        """Each breach of INV-B1 to INV-B4, INV-B7 and INV-B11, as a sentence."""
        room = [room_of(node, self._config) for node in self.nodes]
        return list(breaches(self.table, self.nodes, room))

    # --- inside -----------------------------------------------------------------------------

    def _index(self, node_id: str) -> int:
        found = self.table.node_by_id.get(NodeId(node_id))
        if found is None:
            raise UnknownNode(node_id)
        return found

    def _priority(self, requirements: Requirements, priority: int | None) -> int:
        if not isinstance(requirements, Requirements):
            raise TypeError(f"{requirements!r} is no Requirements; give those of the job")
        if priority is None:
            return self._config.priority_class(requirements.priority_class).priority
        return level_of(priority, EVICTED)

    def _among(self, only: Iterable[str] | None) -> list[int] | None:
        if isinstance(only, str):
            raise InputError(f"only={only!r}: give a list of node ids")
        return None if only is None else [self._index(node_id) for node_id in only]

    def _avoided(self, avoid: Iterable[tuple[str, int]]) -> list[tuple[int, int]]:
        ranks: dict[int, int] = {}
        for node_id, rank in avoid:
            if not 0 <= rank <= _MOST_RANK:
                raise InputError(f"rank {rank} of node {node_id!r}; write 0 to {_MOST_RANK}")
            index = self.table.node_by_id.get(NodeId(node_id))
            if index is not None and rank > ranks.get(index, 0):
                ranks[index] = rank
        return list(ranks.items())

    def _not_found(
        self, requirements: Requirements, priority: int, only: list[int] | None
    ) -> NotFound:
        if only is not None:
            return self._fresh(requirements, priority, only)
        known = self._refused.get((requirements, priority))
        if known is not None and self.table.is_current(known[0]):
            return known[1]
        fresh = self._fresh(requirements, priority, None)
        self._refused[requirements, priority] = (self.table.stamp(), fresh)
        return fresh

    def _fresh(self, requirements: Requirements, priority: int, only: list[int] | None) -> NotFound:
        evidence = self.table.shortfall(requirements, priority, only)
        matching = cast("Matching", self.table.matcher)
        refused = partial(excluded, matching, requirements, self.nodes, only)
        return NotFound(self._config.spec.names, requirements, evidence, refused)
