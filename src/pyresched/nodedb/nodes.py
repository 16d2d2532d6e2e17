"""The nodes of every pool and what the job db says is bound to them; rounds decide on forks.

Relies on diffs of the job db by their shape (`pairs()`), so that it knows no job db. Keeps
INV-B4, INV-B6, INV-B7, INV-B12.
"""

import warnings
from collections.abc import Iterable, Iterator
from threading import RLock
from typing import Final, NoReturn, Protocol

from pyresched._core import follow
from pyresched.config import SchedulingConfig
from pyresched.errors import DuplicateId, InputError, UnknownNode
from pyresched.model import (
    Job,
    JobId,
    Node,
    NodeId,
    PoolName,
    Requirements,
    ResourceVector,
)
from pyresched.nodedb.check import breaches
from pyresched.nodedb.fork import NodeFork
from pyresched.nodedb.intake import refuse_bad, room_of
from pyresched.nodedb.pool import Pool

__all__ = ["Diff", "NodeDb"]

# Every level in use costs at each binding; classes with equal priorities share one.
_MANY_LEVELS: Final = 16


class Diff(Protocol):
    """What changed between two versions of the job db."""

    def pairs(self) -> Iterable[tuple[Job | None, Job | None]]:
        """(before, after) of each job; None where there is none."""


# What a run holds of a node that is not here: (node id, requirements, priority, preemptible, and
# the pool of the run).
_Hold = tuple[NodeId, Requirements, int, bool, PoolName]


class NodeDb:
    """All nodes, by pool, with what active runs hold of them.

    `levels` are the priorities of the classes of *config*. A run of a job counts from its lease
    to its end, at the priority at which it was placed, wherever its node is; one whose node is
    not known counts as soon as it is. A pool with away pools is searched with their nodes, where
    what others hold is not for it to free. Nothing here follows a clock or a hash. Several threads may
    change and fork it: each waits until what another does is done.
    """

    def __init__(self, config: SchedulingConfig, nodes: Iterable[Node] = ()) -> None:
        if not isinstance(config, SchedulingConfig):
            raise TypeError(
                f"NodeDb got a {type(config).__name__}; give a SchedulingConfig, then the nodes"
            )
        self.config = config
        self.levels = config.levels
        self._width = len(config.spec.names)
        if len(self.levels) > _MANY_LEVELS:
            warnings.warn(
                f"{len(self.levels)} priorities of classes: each one in use costs at every "
                f"binding; {_MANY_LEVELS} or fewer are cheap",
                stacklevel=2,
            )
        self._pools: dict[PoolName, Pool] = {}
        self._away = {each.name: each.away_pools for each in config.pools if each.away_pools}
        self._guests_last = {each.name for each in config.pools if not each.preempt_guests_first}
        self._joint: dict[PoolName, Pool] = {}  # made when first asked for; follow the others
        self._pool_of: dict[NodeId, PoolName] = {}
        self._homeless: dict[JobId, _Hold] = {}
        self._lock = RLock()  # a fork is of one moment, whoever changes what beside it
        self.upsert_many(nodes)

    # --- nodes ------------------------------------------------------------------------------

    def __repr__(self) -> str:
        held = sum(pool.table.held for pool in self._pools.values())
        pools = len(self.pools())
        return (
            f"<NodeDb {len(self)} nodes in {pools} pool{'' if pools == 1 else 's'}, "
            f"{held} jobs on them>"
        )

    def __len__(self) -> int:
        return len(self._pool_of)

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._pool_of

    def __iter__(self) -> Iterator[Node]:
        """All nodes, by id."""
        return iter(self.nodes())

    def get(self, node_id: str) -> Node | None:
        """The node, or None."""
        with self._lock:
            pool = self._pool_of.get(NodeId(node_id))
            if pool is None:
                return None
            entry = self._pools[pool]
            return entry.nodes[entry.table.node_by_id[NodeId(node_id)]]

    def ids(self) -> tuple[NodeId, ...]:
        """Ids of all nodes, sorted."""
        return tuple(sorted(self._pool_of))

    def pools(self) -> tuple[PoolName, ...]:
        """The pools that have nodes, sorted."""
        return tuple(sorted(name for name, pool in self._pools.items() if pool.nodes))

    def nodes(self, pool: str | None = None) -> tuple[Node, ...]:
        """The nodes of *pool*, or all, by id."""
        if pool is not None:
            entry = self._pools.get(PoolName(pool))
            return () if entry is None else entry.nodes
        every = (node for entry in self._pools.values() for node in entry.nodes)
        return tuple(sorted(every, key=lambda node: node.id))

    def upsert_many(self, nodes: Iterable[Node]) -> None:
        """Take in *nodes*, new ones and known ones as they are now; what is bound stays.

        One whose capacity is now below what is bound to it is over-allocated: it takes nothing
        new and nothing leaves it. Raises DuplicateId when an id comes with two contents,
        InputError for a field that cannot be; then nothing has changed.
        """
        given: dict[NodeId, Node] = {}
        for node in nodes:
            refuse_bad(node, self.config.resources)
            if given.setdefault(node.id, node) != node:
                raise DuplicateId(f"node {node.id!r} comes twice with different content; keep one")
        by_pool: dict[PoolName, list[Node]] = {}
        for node in given.values():
            by_pool.setdefault(node.pool, []).append(node)
        with self._lock:
            self._remove(
                id for id, node in given.items() if self._pool_of.get(id, node.pool) != node.pool
            )
            for name, rows in by_pool.items():
                self._upsert(name, rows)

    def remove_many(self, node_ids: Iterable[str]) -> None:
        """Forget nodes. What was bound to one counts again if it comes back. Raises UnknownNode."""
        if isinstance(node_ids, str):
            raise InputError(f"remove_many({node_ids!r}): give the ids of nodes, one in a list too")
        gone = [NodeId(node_id) for node_id in node_ids]
        with self._lock:
            for node_id in gone:
                if node_id not in self._pool_of:
                    raise UnknownNode(node_id)
            self._remove(gone)

    def totals(self, pool: str) -> ResourceVector:
        """What jobs may have of the nodes of *pool* that are not lost, together, saturating.

        Of its away pools, what no run of another pool holds counts too.
        """
        spec, away = self.config.spec, self._away.get(PoolName(pool), ())
        own = spec.sum(n.allocatable for n in self.nodes(pool) if n.lost_at is None)
        if not away:
            return own
        with self._lock:
            rows = (node for name in away for node in self.nodes(name))
            lent = spec.sum(node.allocatable for node in rows if node.lost_at is None)
            others = self.fork(pool).table.held_by_others()
        left = [max(has - held, 0) for has, held in zip(lent, others, strict=True)]
        return own + ResourceVector(left)

    def capacity(self, pool: str) -> ResourceVector:
        """What jobs may have of all nodes of *pool*, lost ones too, together, saturating."""
        return self.config.spec.sum(node.allocatable for node in self.nodes(pool))

    # --- jobs -------------------------------------------------------------------------------

    def advance(self, diff: Diff) -> None:
        """Bind and unbind what *diff* says. The same as building anew; applied twice, as once.

        Raises ConfigError for an unknown priority class and InputError for a bad request; then
        nothing has changed.
        """
        changed = list(diff.pairs())
        with self._lock:
            tables = {name: pool.table for name, pool in self._pools.items()}
            joint = [pool.table for pool in self._joint.values()]
            follow(changed, self._pool_of, tables, self._homeless, self._preemptible, joint)
            for table in (*tables.values(), *joint):
                table.tidy()

    # --- deciding ---------------------------------------------------------------------------

    def fork(self, pool: str) -> NodeFork:
        """The nodes of *pool* and its away pools to decide on, sharing nothing that either changes.

        Raises ConfigError for a pool that has had no nodes and is none of the configuration.
        """
        with self._lock:
            entry = self._known(pool)
            if pool not in self._pools:
                self.config.pool(pool)
            if PoolName(pool) in self._away:
                entry = self._joined(PoolName(pool))
            table = entry.table.fork()
            nodes = entry.nodes
        table.close_over_allocated()
        return NodeFork(table, nodes, self.config)

    def bare(self, pool: str) -> NodeFork:
        """The nodes of *pool* as if all were there, open and empty: could a job ever fit?"""
        with self._lock:
            return self._known(pool).bare(self.config)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a NodeDb is not copied or pickled; fork it, or make one of its nodes")

    def check(self) -> list[str]:
        """Each breach of INV-B1 to INV-B4, INV-B6, INV-B7 and INV-B12, as a sentence."""
        found: list[str] = []
        with self._lock:
            for name, pool in sorted(self._pools.items()):
                room = [room_of(node, self.config) for node in pool.nodes]
                wrong = breaches(pool.table, pool.nodes, room)
                found.extend(f"pool {name}: {each}" for each in wrong)
                astray = [n.id for n in pool.nodes if self._pool_of.get(n.id) != name]
                found.extend(f"INV-B4: node {id} is filed under another pool" for id in astray)
            for name, joint in sorted(self._joint.items()):
                found.extend(
                    f"round of pool {name}: {each}" for each in self._joint_breaches(joint)
                )
            for job_id, (node_id, *_) in self._homeless.items():
                if node_id in self._pool_of:
                    found.append(f"INV-B6: job {job_id} waits for node {node_id}, which is there")
        return found

    # --- inside -----------------------------------------------------------------------------

    def _known(self, name: str) -> Pool:
        """The pool *name*, or one without nodes that nobody else will see."""
        if not isinstance(name, str):
            raise InputError(f"pool {name!r}; write the name of a pool")
        return self._pools.get(PoolName(name)) or self._new(PoolName(name))

    def _new(self, name: PoolName) -> Pool:
        first = name not in self._guests_last
        return Pool(name, self.levels, self._width, guests_first=first)

    def _pool(self, name: PoolName) -> Pool:
        entry = self._pools.get(name)
        if entry is None:
            entry = self._pools[name] = self._new(name)
        return entry

    def _joined(self, name: PoolName) -> Pool:
        """What a round over *name*, which has away pools, searches; kept until nodes come or go."""
        entry = self._joint.get(name)
        if entry is None:
            away = (self._known(each) for each in self._away[name])
            entry = self._joint[name] = Pool.joint(self._known(name), away, self.config)
        return entry

    def _joint_breaches(self, joint: Pool) -> Iterator[str]:
        """Where *joint* is not what the pools would make of it now."""
        name = PoolName(joint.table.pool)
        away = (self._known(each) for each in self._away[name])
        fresh = Pool.joint(self._known(name), away, self.config)
        yield from breaches(
            joint.table, joint.nodes, [room_of(n, self.config) for n in joint.nodes]
        )
        if joint.nodes != fresh.nodes:
            yield "INV-B12: its nodes are not those of the pool and its away pools"
        for job_id in sorted({*joint.table.bound_jobs(), *fresh.table.bound_jobs()}):
            held, wanted = joint.table.binding(job_id), fresh.table.binding(job_id)
            if held != wanted:
                yield f"INV-B12: job {job_id} holds {held} there, {wanted} in its pool"

    def _upsert(self, name: PoolName, rows: list[Node]) -> None:
        pool = self._pool(name)
        if not pool.can_update(rows):
            every = {node.id: node for node in pool.nodes}
            every.update((node.id, node) for node in rows)
            self._set_nodes(name, sorted(every.values(), key=lambda node: node.id))
            return
        pool.update(rows, self.config)
        for at, joint in list(self._joint.items()):
            if name != at and name not in self._away[at]:
                continue
            if joint.can_update(rows):
                joint.update(rows, self.config)
            else:
                del self._joint[at]

    def _set_nodes(self, name: PoolName, nodes: list[Node]) -> None:
        """Make *nodes*, sorted, those of the pool; bindings follow their nodes."""
        pool = self._pool(name)
        for at in [at for at, away in self._away.items() if name == at or name in away]:
            self._joint.pop(at, None)
        for node in pool.nodes:
            self._pool_of.pop(node.id, None)
        for node in nodes:
            self._pool_of[node.id] = name
        homeless = pool.set_rows(nodes, self.config)
        self._homeless.update((each[0], each[1:]) for each in homeless)
        for job_id, hold in list(self._homeless.items()):
            node_id, requirements, priority, preemptible, of = hold
            if self._pool_of.get(node_id) == name:
                pool.table.hold(job_id, requirements, node_id, priority, preemptible, of)
                del self._homeless[job_id]

    def _remove(self, node_ids: Iterable[NodeId]) -> None:
        gone = set(node_ids)
        for name, pool in self._pools.items():
            if not gone.isdisjoint(pool.table.node_by_id):
                self._set_nodes(name, [node for node in pool.nodes if node.id not in gone])

    def _preemptible(self, job: Job) -> bool:
        """Whether what *job* holds can be taken from it; raises for one that cannot be held."""
        requirements = job.requirements
        wanted = requirements.resources
        if len(wanted) != self._width or wanted.has_negative:
            raise InputError(
                f"job {job.id!r}: request {wanted.to_tuple()}; write an amount of 0 or more for "
                f"each of {', '.join(self.config.spec.names)}"
            )
        return self.config.priority_class(requirements.priority_class).preemptible
