"""Nodes with much bound to them: built, forked, filled by a gang that goes again, nearly full."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, partial
from typing import Any

from measures.cluster import (
    POOL,
    Arrivals,
    Cluster,
    Mismatch,
    alike,
    config,
    nearly_full,
    running,
)
from measures.placing import place_with, placing
from measures.timing import Contender, Task, Work, timed
from pyresched.jobdb import JobDb
from pyresched.model import Job, Requirements, ResourceVector
from pyresched.nodedb import NodeDb, NodeFork
from rivals.ordered_walk import OrderedWalk

__all__ = ["Gangs", "Holding"]

LEVELS = 4
CORES = 32
LOAD = 20_000


class Holding:
    """*nodes* of 32 cores, every core but one of a node held by a job, at four levels."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.bound = nodes * CORES

    def tasks(self) -> list[Task]:
        """Made from jobs, from a job db, and copied."""
        return [
            timed(
                "build with jobs bound",
                self.bound,
                {"ours": self._built, "one by one": self._bound_singly},
                warm=False,
            ),
            timed(
                "build from a job db",
                self.bound,
                {"ours": self._from_job_db, "from jobs": self._built},
                warm=False,
            ),
            timed(
                "fork, and one placement",
                self.bound,
                {"ours": self._forked, "anew": self._anew},
                warm=False,
            ),
        ]

    @cached_property
    def cluster(self) -> Cluster:
        """The nodes."""
        return alike(self.nodes, self.bound)

    @cached_property
    def shapes(self) -> list[Requirements]:
        """What a job holds, by level: a core and some memory."""
        amounts = ResourceVector((0, 1_000, 4_096, 0))
        return [Requirements(amounts, f"p{level}") for level in range(LEVELS)]

    @cached_property
    def jobs(self) -> list[Job]:
        """All jobs, each with its run."""
        shapes, nodes = self.shapes, self.nodes
        return [
            running(id, shapes[n % LEVELS], f"node-{n % nodes:06}", priority=n % LEVELS)
            for n, id in enumerate(self.cluster.ids)
        ]

    @cached_property
    def db(self) -> NodeDb:
        """The nodes with all jobs."""
        return self._of_jobs()

    @cached_property
    def versions(self) -> tuple[Any, Any]:
        """A job db with the same jobs, and before it had any."""
        db = JobDb(config(LEVELS))
        empty = db.snapshot()
        for start in range(0, len(self.jobs), LOAD):
            with db.write() as txn:
                txn.upsert_many(self.jobs[start : start + LOAD])
        return db.snapshot(), empty

    def _of_jobs(self) -> NodeDb:
        db = NodeDb(config(LEVELS), self.cluster.nodes())
        db.advance(Arrivals(self.jobs))
        return db

    @contextmanager
    def _built(self, turn: int) -> Iterator[Work]:
        del turn
        nodes, arrivals = self.cluster.nodes(), Arrivals(self.jobs)
        made: list[NodeDb] = []

        def work() -> object:
            db = NodeDb(config(LEVELS), nodes)
            db.advance(arrivals)
            made.append(db)
            return None

        yield work
        for db in made:
            self._compare(db.fork(POOL))

    @contextmanager
    def _from_job_db(self, turn: int) -> Iterator[Work]:
        del turn
        nodes, (rows, empty) = self.cluster.nodes(), self.versions
        made: list[NodeDb] = []

        def work() -> object:
            db = NodeDb(config(LEVELS), nodes)
            db.advance(rows.diff(empty))
            made.append(db)
            return None

        yield work
        for db in made:
            self._compare(db.fork(POOL))

    @contextmanager
    def _bound_singly(self, turn: int) -> Iterator[Work]:
        del turn
        nodes, shapes, count = self.cluster.nodes(), self.shapes, self.nodes
        made: list[NodeFork] = []

        def work() -> object:
            fork = NodeDb(config(LEVELS), nodes).fork(POOL)
            with fork.attempt() as attempt:
                for n, id in enumerate(self.cluster.ids):
                    level = n % LEVELS
                    node_id = f"node-{n % count:06}"
                    attempt.bind_as(id, shapes[level], node_id, level, preemptible=True)
                attempt.keep()
            made.append(fork)
            return None

        yield work
        for fork in made:
            self._compare(fork)

    def _compare(self, fork: NodeFork) -> None:
        node = fork.nodes[-1]
        full = self.cluster.totals[-1] - CORES * self.cluster.shapes[0]
        left = fork.allocatable(node.id, 0).to_tuple()
        if len(fork.bound(node.id)) != CORES or left != tuple(full.tolist()):
            raise Mismatch(f"{node.id}: {len(fork.bound(node.id))} jobs, {left} left")

    @contextmanager
    def _forked(self, turn: int) -> Iterator[Work]:
        del turn
        db = self.db

        def work() -> object:
            return one_more(db.fork(POOL))

        yield work

    @contextmanager
    def _anew(self, turn: int) -> Iterator[Work]:
        del turn
        nodes, arrivals = self.cluster.nodes(), Arrivals(self.jobs)

        def work() -> object:
            db = NodeDb(config(LEVELS), nodes)
            db.advance(arrivals)
            return one_more(db.fork(POOL))

        yield work


def one_more(fork: NodeFork) -> NodeFork:
    """A job that preempts placed: a fork that copies later has to copy now."""
    asked = Requirements(ResourceVector((0, 500, 64, 0)), f"p{LEVELS - 1}")
    with fork.attempt() as attempt:
        (node_id,) = attempt.place(
            [Job(id="one-more", queue="queue", requirements=asked, submitted_at=0)]
        )
        attempt.keep()
    if node_id is None:
        raise Mismatch("no room for one that preempts")
    return fork


class Gangs:
    """Jobs of one core: as a gang that fills *nodes*, in a batch, and on nodes nearly full."""

    def __init__(self, nodes: int, *, full: tuple[int, ...], alike: int) -> None:
        self.nodes = nodes
        self.full = full
        self.alike = alike

    def tasks(self) -> list[Task]:
        """The gang, the batch, and each number of nearly full nodes."""
        return [
            timed(
                "gang of one-core jobs, taken back",
                self.nodes * CORES,
                {"ours": self._gang, "ordered walk": walking(lambda: self.cluster)},
            ),
            timed(
                "alike jobs in a batch",
                self.alike * CORES,
                {"ours": self._batch, "one by one": placing(lambda: self.many)},
                per=self.alike * CORES,
                warm=False,
            ),
            *(self._nearly_full(nodes) for nodes in self.full),
        ]

    @cached_property
    def cluster(self) -> Cluster:
        """The nodes and the gang."""
        return alike(self.nodes, self.nodes * CORES)

    @cached_property
    def many(self) -> Cluster:
        """The nodes and the jobs of the batch."""
        return alike(self.alike, self.alike * CORES)

    @contextmanager
    def _gang(self, turn: int) -> Iterator[Work]:
        del turn
        cluster = self.cluster
        fork, _ = cluster.db.fork(POOL), cluster.arrivals

        def work() -> object:
            with fork.attempt() as attempt:
                return attempt.place(cluster.arrivals)

        yield work
        if any(fork.bound(node.id) for node in fork.nodes):
            raise Mismatch("the gang was not taken back")

    @contextmanager
    def _batch(self, turn: int) -> Iterator[Work]:
        del turn
        cluster = self.many
        fork, asked = cluster.db.fork(POOL), cluster.requirements[0][0]
        found = []

        def work() -> object:
            found[:] = fork.place_many(asked, cluster.jobs, 0)
            return None

        yield work
        if found:
            one_by_one = [node_id for node_id, copies in found for _ in range(copies)]
            if one_by_one != cluster.placed:
                raise Mismatch("a batch went elsewhere than one by one")

    def _nearly_full(self, nodes: int) -> Task:
        cluster = cache(partial(nearly_full, nodes))
        return timed(
            "as many jobs as nearly full nodes",
            nodes,
            {
                "ours": placing(cluster),
                "ordered walk": walking(cluster, left=1),
            },
        )


def walking(made: Callable[[], Cluster], *, left: int = CORES) -> Contender:
    """All jobs of the cluster by the ordered walk, on nodes with *left* cores."""

    @contextmanager
    def contender(turn: int) -> Iterator[Work]:
        del turn
        cluster = made()
        walk = OrderedWalk(cluster.totals - (CORES - left) * cluster.shapes[0])
        found = []

        def work() -> object:
            found.append(place_with("ordered walk", walk, cluster, slice(0, cluster.jobs)))
            return None

        yield work
        for each in found:
            cluster.compare("ordered walk", each, slice(0, cluster.jobs))

    return contender
