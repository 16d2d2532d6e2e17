"""Whole rounds, with what they decide written into the job db: ours beside less, and beside Python.

A round that is committed starts from a job db of its own each turn. Every round is checked: it
places what there is room for, and the same each time.
"""

import gc
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from statistics import median
from time import perf_counter_ns
from typing import Any

import numpy as np

from measures.cluster import POOL, Mismatch
from measures.roundworlds import CONFIG, FIRST_RUN, World, crowd, empty, gangs, one_share, uneven
from measures.timing import NS, Contender, Reading, Task, Work, timed
from pyresched.config import SchedulingConfig
from pyresched.jobdb import JobDb, Snapshot
from pyresched.leasing import write
from pyresched.model import Job
from pyresched.scheduling import RoundResult, RoundState, run_round
from rivals.round import PythonRound

__all__ = ["BesidePython", "InRacks", "NoneFits", "OntoEmpty", "OverFull"]

NOW = 2
SHAPES = 200
QUEUES = 100
CORES = 32
GANG = 32
GETS = "get while a round runs, 99 of 100"
Made = Callable[[], World]


class OntoEmpty:
    """*jobs* of 50 shapes in so many *queues* onto empty *nodes*; *where*: said of these."""

    def __init__(self, jobs: int, *, queues: int, nodes: int, where: str = "") -> None:
        self.jobs = jobs
        self.where = where
        self.made = cache(partial(empty, nodes, jobs, queues))

    def tasks(self) -> list[Task]:
        """With its commit, with Python between the jobs and the round, and beside a reader."""
        round_ = _task(
            f"round{self.where}, committed",
            self.jobs,
            {"ours": committed(self.made), "not committed": decided(self.made)},
        )
        if self.where:
            return [round_]
        hooks = {"queue": each_queue, "job": each_job}
        return [
            round_,
            *(
                _task(
                    f"round with a hook a {each}",
                    self.jobs,
                    {"ours": decided(self.made, hook=hook), "no hook": decided(self.made)},
                )
                for each, hook in hooks.items()
            ),
            beside_a_round(self.made, self.jobs),
        ]


class OverFull:
    """Nodes full of preemptible jobs, half of the queues above their share; each queue waits."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        queues = max(2, min(QUEUES, nodes // 2))
        self.made = cache(partial(uneven, nodes, queues, queued=max(10, nodes // 10)))

    def tasks(self) -> list[Task]:
        """Beside a round in which all stay where they are."""
        return [
            _task(
                "round of a full cluster",
                CORES * self.nodes,
                {
                    "ours": decided(self.made, preempts=True),
                    "none above its share": decided(self.made, config_of=one_share),
                },
            )
        ]


class NoneFits:
    """*jobs* of 200 shapes, each too large for what every node has left."""

    def __init__(self, jobs: int, *, queues: int, nodes: int) -> None:
        self.jobs = jobs
        self.made = cache(partial(crowd, nodes, jobs, queues, shapes=SHAPES))

    def tasks(self) -> list[Task]:
        """Beside a round without them."""
        return [
            _task(
                "round in which none fits",
                self.jobs,
                {"ours": decided(self.made), "none queued": nothing_queued(self.made)},
            )
        ]


class InRacks:
    """So many gangs of 32, each in one rack, which they fill; or as many lone jobs."""

    def __init__(self, count: int, *, nodes: int) -> None:
        self.jobs = GANG * count
        made = partial(gangs, nodes, count, size=GANG, racks=min(20, nodes))
        self.ganged = cache(made)
        self.lone = cache(partial(made, together=False))

    def tasks(self) -> list[Task]:
        """Beside the lone jobs."""
        return [
            _task(
                "round of gangs in one rack each",
                self.jobs,
                {"ours": decided(self.ganged), "lone jobs": decided(self.lone)},
            )
        ]


class BesidePython:
    """The same round in Python, *jobs* onto a tenth as many nodes; figures of a placed job."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.made = cache(
            partial(empty, max(1, jobs // 10), jobs, max(1, jobs // 1_000), a_node=10)
        )

    def tasks(self) -> list[Task]:
        """A heap of queues and a sorted list of nodes."""
        return [
            _task(
                "round, for a placed job",
                self.jobs,
                {"ours": decided(self.made), "python": self._python},
                per=self.jobs,
            )
        ]

    @contextmanager
    def _python(self, turn: int) -> Iterator[Work]:
        del turn
        world = self.made()
        rival = PythonRound(world.node_rows, [], world.queues, CONFIG)
        snapshot = world.snapshot
        lanes = {name: list(snapshot.queued(name, POOL)) for name in snapshot.queues()}
        found: list[int] = []

        def work() -> object:
            found.append(len(rival(lanes)[0]))
            return None

        yield work
        ours = len(a_round(world, snapshot).scheduled)
        if any(placed != ours for placed in found):
            raise Mismatch(f"python placed {found[0]} jobs, ours {ours}")


Hook = Callable[[Iterable[Job]], Iterable[Job]]


def each_queue(jobs: Iterable[Job]) -> Iterable[Job]:
    """Called once a queue; has nothing against any job."""
    return jobs


def passes(job: Job) -> bool:
    """Called once a job."""
    return job.priority >= 0


each_job: Hook = partial(filter, passes)


class Hooked:
    """A reader of jobs with a user's *hook* on each queue that a round reads."""

    def __init__(self, reader: Snapshot, hook: Hook) -> None:
        self._hook = hook
        self._queued = reader.queued
        self.queues = reader.queues
        self.leased = reader.leased
        self.gang = reader.gang

    def queued(self, queue: str, pool: str) -> Iterable[Job]:
        """What the hook makes of them."""
        return self._hook(self._queued(queue, pool))


_task = partial(timed, warm=False)


def a_round(world: World, snapshot: Snapshot, config: SchedulingConfig = CONFIG) -> RoundResult:
    """One round over *snapshot*, from nothing."""
    result, _ = run_round(snapshot, world.nodes, world.queues, POOL, config, RoundState(), NOW)
    return result


def must_repeat(world: World, what: str, result: RoundResult) -> None:
    """Raise Mismatch unless a round comes to the same each time."""
    counts = (len(result.scheduled), len(result.moved), len(result.preempted))
    seen = world.seen.setdefault(what, counts)
    if seen != counts:
        raise Mismatch(f"{what}: {counts} placed, moved, preempted, and {seen} the first time")


def committed(made: Made) -> Contender:
    """The round and its leases, published."""

    @contextmanager
    def contender(turn: int) -> Iterator[Work]:
        del turn
        world = made()
        db, _ = world.db(), world.nodes
        results: list[RoundResult] = []

        def work() -> object:
            result = a_round(world, db.snapshot())
            results.append(result)
            with db.write() as txn:
                write(result, txn, NOW, str, CONFIG, first_run_id=FIRST_RUN)
            return result

        yield work
        for result in results:
            must_repeat(world, "round", result)
            leased = int(np.sum(np.asarray(db.snapshot().columns("state")["state"]) > 0))
            if leased != len(result.scheduled) or leased == 0:
                raise Mismatch(f"{len(result.scheduled)} placed, {leased} leased")

    return contender


def decided(
    made: Made,
    *,
    config_of: Callable[[World], SchedulingConfig] = lambda _: CONFIG,
    preempts: bool = False,
    hook: Hook | None = None,
) -> Contender:
    """The round alone."""

    @contextmanager
    def contender(turn: int) -> Iterator[Work]:
        del turn
        world = made()
        config, snapshot, _ = config_of(world), world.snapshot, world.nodes
        reader: Any = snapshot if hook is None else Hooked(snapshot, hook)
        results: list[RoundResult] = []

        def work() -> object:
            results.append(a_round(world, reader, config))
            return None

        yield work
        for result in results:
            must_repeat(world, "round" if config is CONFIG else "other", result)
            if preempts and not result.preempted:
                raise Mismatch("no run above its share gave way")

    return contender


def nothing_queued(made: Made) -> Contender:
    """A round over the same nodes, with nobody waiting for them."""

    @contextmanager
    def contender(turn: int) -> Iterator[Work]:
        del turn
        world = made()
        snapshot, _ = JobDb(CONFIG).snapshot(), world.nodes

        def work() -> object:
            return a_round(world, snapshot)

        yield work

    return contender


def beside_a_round(made: Made, jobs: int) -> Task:
    """The 99th percentile of a `get` in another thread, by the clock on the wall."""

    def measure(repetitions: int) -> list[Reading]:
        alone, beside = array("d"), array("d")
        for _ in range(max(1, repetitions // 2)):
            world = made()
            db, _ = world.db(), world.nodes

            def round_and_commit(db: JobDb = db, world: World = world) -> None:
                result = a_round(world, db.snapshot())
                with db.write() as txn:
                    write(result, txn, NOW, str, CONFIG, first_run_id=FIRST_RUN)

            gc.collect()
            beside.append(percentile(gets_during(db, world, round_and_commit)))
            alone.append(percentile(gets_during(db, world, None)))
        return [
            Reading(
                kind=GETS,
                size=jobs,
                rival="alone",
                ours=median(beside) * NS,
                theirs=median(alone) * NS,
            )
        ]

    return Task(kind=GETS, size=jobs, rivals=("alone",), measure=measure)


ENOUGH = 100_000  # gets without a round


def gets_during(db: JobDb, world: World, work: Callable[[], None] | None) -> array:
    """How long each `snapshot().get` took, in ns, while *work* ran in another thread."""
    ids = [id.decode() for id in world.ids[:: max(1, world.jobs // 997)].tolist()]
    taken = array("q")
    done = threading.Event()

    def run() -> None:
        try:
            if work is not None:
                work()
        finally:
            done.set()

    worker = threading.Thread(target=run)
    worker.start()
    while True:
        for id in ids:
            began = perf_counter_ns()
            db.snapshot().get(id)
            taken.append(perf_counter_ns() - began)
        if done.is_set() and (work is not None or len(taken) >= ENOUGH):
            break
    worker.join()
    return taken


def percentile(taken: array) -> float:
    """Below this are 99 of 100."""
    return float(np.percentile(np.frombuffer(taken, dtype=np.int64), 99))
