"""The node db as it will be once decisions are committed that later rounds must see.

Relies on the node db below it, of which it is a view: nothing here changes that one. Keeps INV-B10.
"""

from collections.abc import Iterable
from typing import NoReturn

from pyresched._core import follow
from pyresched.model import Job, Node
from pyresched.nodedb.fork import NodeFork
from pyresched.nodedb.nodes import Diff, NodeDb

__all__ = ["NodesAhead"]


class NodesAhead(NodeDb):
    """*nodes* to fork from as if *decided* were committed; each row is the newest of its job.

    Costs what it adds to each fork, and nothing else. Rows of nodes, and what others change in
    *nodes*, are seen as they are there.
    """

    def __init__(self, nodes: NodeDb, decided: Iterable[Job]) -> None:
        self.__dict__.update(nodes.__dict__)  # not a copy: one lock, one state
        newest = {job.id: job for job in decided}
        self._decided: list[tuple[Job | None, Job | None]] = [(None, j) for j in newest.values()]

    def fork(self, pool: str) -> NodeFork:
        """As that of the node db, with what was decided bound and unbound."""
        fork = super().fork(pool)
        follow(self._decided, {}, {}, {}, self._preemptible, [fork.table])
        fork.table.close_over_allocated()
        return fork

    def advance(self, diff: Diff) -> NoReturn:  # noqa: ARG002
        """Refused: advance the node db itself."""
        raise TypeError("these are nodes as they will be; advance the node db they come from")

    def upsert_many(self, nodes: Iterable[Node]) -> NoReturn:  # noqa: ARG002
        """Refused: change the node db itself."""
        raise TypeError("these are nodes as they will be; change the node db they come from")

    def remove_many(self, node_ids: Iterable[str]) -> NoReturn:  # noqa: ARG002
        """Refused: change the node db itself."""
        raise TypeError("these are nodes as they will be; change the node db they come from")
