"""The nodes that one round searches, as rows and as the native table that mirrors them.

Owns how rows get into a table: those of one pool, or those of several for a round whose jobs may
be guests. Relies on `NodeTable` for what is bound. Keeps INV-B4, INV-B7, INV-B12.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from pyresched._core import NodeTable
from pyresched.config import SchedulingConfig
from pyresched.model import Intake, JobId, Node, NodeId, PoolName, Requirements
from pyresched.nodedb.fork import NodeFork
from pyresched.nodedb.intake import room_of
from pyresched.nodedb.matching import Matching

__all__ = ["Pool"]


class Pool:
    """Nodes, sorted by id, and the table that mirrors them.

    With *guests_first*, preemptible runs of other pools count below every class.
    """

    def __init__(
        self, name: PoolName, levels: tuple[int, ...], width: int, *, guests_first: bool = True
    ) -> None:
        self.table = NodeTable(levels, width)
        self.table.pool = name
        self.table.guests_first = guests_first
        self.nodes: tuple[Node, ...] = ()
        self._bare: NodeFork | None = None
        self._match_by(Matching(()))

    @classmethod
    def joint(cls, home: "Pool", away: Iterable["Pool"], config: SchedulingConfig) -> "Pool":
        """The nodes of *home*, and those of *away*, lent: its jobs may be guests there.

        What runs of others hold of a lent node is nothing that the round of *home* could free.
        """
        table, away = home.table, tuple(away)
        one = cls(PoolName(table.pool), table.levels, table.width, guests_first=table.guests_first)
        rows = (node for pool in (home, *away) for node in pool.nodes)
        nodes = tuple(sorted(rows, key=lambda node: node.id))
        lent = bytes(node.pool != table.pool for node in nodes)
        _fill(one.table, nodes, config, lent)
        one.nodes = nodes
        one._match_by(Matching(nodes, home=PoolName(table.pool)))
        for pool in (home, *away):
            one.table.hold_all(pool.table)
        return one

    def set_rows(
        self, nodes: Sequence[Node], config: SchedulingConfig
    ) -> list[tuple[JobId, NodeId, Requirements, int, bool, PoolName]]:
        """*nodes*, sorted, are the rows from now on; what is bound to nodes that are gone."""
        homeless = _fill(self.table, nodes, config)
        self.nodes = tuple(nodes)
        self._bare = None
        self._match_by(Matching(nodes))
        return homeless

    def can_update(self, rows: Iterable[Node]) -> bool:
        """Whether *rows* are of nodes that are here, and ask nothing of the table that it lacks."""
        counted = self.table.columns > self.table.width
        known = self.table.node_by_id
        return all(node.id in known and (node.max_jobs is None or counted) for node in rows)

    def update(self, rows: Iterable[Node], config: SchedulingConfig) -> None:
        """Known nodes are as *rows* say from now on. `can_update` must have said so."""
        known = self.table.node_by_id
        nodes = list(self.nodes)
        changed: dict[int, Node] = {}
        differs = False
        for node in rows:
            i = known[node.id]
            old = nodes[i]
            nodes[i] = changed[i] = node
            differs |= old.labels != node.labels or old.taints != node.taints
            if (old.allocatable, old.takes_new_runs, old.max_jobs) != (
                node.allocatable,
                node.takes_new_runs,
                node.max_jobs,
            ):
                room = room_of(node, config)
                self.table.set_node(i, room, takes_new=node.takes_new_runs, most_jobs=node.max_jobs)
        self.nodes = tuple(nodes)
        self._bare = None
        if differs:
            self._match_by(self.matching.updated(changed))

    def bare(self, config: SchedulingConfig) -> NodeFork:
        """The nodes as if all were there, open and empty; kept until a row changes."""
        if self._bare is None:
            nodes = tuple(
                replace(n, intake=Intake.OPEN, lost_at=None, disconnected_at=None)
                for n in self.nodes
            )
            table = NodeTable(self.table.levels, self.table.width)
            _fill(table, nodes, config)
            table.matcher = self.table.matcher
            self._bare = NodeFork(table, nodes, config)
        return self._bare.fork()

    def _match_by(self, matching: Matching) -> None:
        """Nodes, labels or taints changed, and *matching* knows."""
        self.matching = matching
        self.table.matcher = matching
        self.table.set_kinds(matching.types)


def _fill(
    table: NodeTable, nodes: Sequence[Node], config: SchedulingConfig, lent: bytes | None = None
) -> list[tuple[JobId, NodeId, Requirements, int, bool, PoolName]]:
    """Make *nodes*, sorted, those of *table*; what is bound to nodes that are gone."""
    return table.set_nodes(
        tuple(node.id for node in nodes),
        [room_of(node, config) for node in nodes],
        bytes(node.takes_new_runs for node in nodes),
        [node.max_jobs for node in nodes],
        lent,
    )
