"""Jobs placed one after the other by best fit: ours beside rivals, and beside itself elsewhere.

Slow rivals place a sample of the same jobs: at ten points of the whole they start from what is
left there, so that their time for one job is of empty and of full nodes alike.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from measures.cluster import POOL, Amounts, Cluster, Mismatch, balanced, lopsided, opposed
from measures.timing import Contender, Reading, Task, Work, timed
from rivals.nodes import NumpyColumns, NumpyNodes, SortedNodes
from rivals.ordered_walk import OrderedWalk

__all__ = ["Placing", "PlacingElsewhere", "placing"]

POINTS = 10
# Jobs at each point: what takes a rival some hundredths of a second.
SAMPLES = {"ordered walk": 1_000, "SortedList": 20, "numpy": 20, "numpy, in columns": 100}
MAKERS: dict[str, Callable[[Amounts], Any]] = {
    "ordered walk": OrderedWalk,
    "SortedList": lambda left: SortedNodes(left.tolist()),
    "numpy": NumpyNodes,
    "numpy, in columns": NumpyColumns,
}


def placing(made: Callable[[], Cluster]) -> Contender:
    """Ours: all jobs of the cluster on a new fork, each turn the same answer."""

    @contextmanager
    def contender(turn: int) -> Iterator[Work]:
        del turn  # a new fork each time
        cluster = made()
        expected, jobs = cluster.placed, cluster.arrivals
        found: list[Any] = []

        with cluster.db.fork(POOL).attempt() as attempt:

            def work() -> object:
                found[:] = attempt.place(jobs)
                return None

            yield work
        if found and found != expected:
            raise Mismatch("ours placed the same jobs differently the second time")

    return contender


def place_with(who: str, rival: Any, cluster: Cluster, jobs: slice) -> Any:
    """The node numbers that *rival* gives *jobs*."""
    wanted = cluster.wanted[jobs]
    if who == "ordered walk":
        return rival.place(cluster.shapes, wanted)
    requests = cluster.shapes[wanted]
    if who == "SortedList":
        return rival.place([tuple(each) for each in requests.tolist()])
    return rival.place(requests)


def sample(who: str, jobs: int) -> list[slice]:
    """The jobs that *who* places of so many."""
    size = min(SAMPLES[who], jobs // POINTS)
    starts = [jobs * point // POINTS for point in range(POINTS)]
    return [slice(start, start + size) for start in starts]


def sampled(who: str, made: Callable[[], Cluster]) -> Contender:
    """A rival on its sample of the jobs of the cluster."""

    @contextmanager
    def contender(turn: int) -> Iterator[Work]:
        del turn
        cluster = made()
        samples = sample(who, cluster.jobs)
        rivals = [MAKERS[who](cluster.left_at(jobs.start)) for jobs in samples]
        found: list[Any] = []

        def work() -> object:
            found.extend(
                place_with(who, rival, cluster, jobs)
                for rival, jobs in zip(rivals, samples, strict=True)
            )
            return None

        yield work
        for nodes, jobs in zip(found, samples, strict=True):
            cluster.compare(who, nodes, jobs)

    return contender


class Placing:
    """*jobs* of 50 shapes on *nodes*, ours beside the rivals."""

    def __init__(self, nodes: int, jobs: int) -> None:
        self.nodes = nodes
        self.jobs = jobs

    def tasks(self) -> list[Task]:
        """One task a rival: the quick ones first."""
        return [self._beside(who) for who in SAMPLES]

    @cached_property
    def cluster(self) -> Cluster:
        """The nodes and the jobs."""
        return balanced(self.nodes, self.jobs)

    def _beside(self, who: str) -> Task:
        few = sum(each.stop - each.start for each in sample(who, self.jobs))
        return timed(
            "placement of 50 shapes",
            self.nodes,
            {
                "ours": placing(lambda: self.cluster),
                who: sampled(who, lambda: self.cluster),
            },
            per={"ours": self.jobs, who: few},
            warm=False,
        )


class PlacingElsewhere:
    """The same on more nodes, at more levels, with other mixes of jobs: ours beside ours.

    *jobs* on *nodes*, and on *many* nodes.
    """

    def __init__(self, nodes: int, jobs: int, *, many: int) -> None:
        self.nodes = nodes
        self.jobs = jobs
        self.many = many

    def tasks(self) -> list[Task]:
        """One for each circumstance."""
        nodes, jobs = self.nodes, self.jobs
        plain = partial(balanced, nodes, jobs)
        others: tuple[tuple[str, int, str, Callable[[], Cluster]], ...] = (
            (" on many nodes", self.many, "on fewer", partial(balanced, self.many, jobs)),
            (", 8 levels in use", nodes, "1 level", partial(plain, levels=8)),
            (", 50 levels in use", nodes, "1 level", partial(plain, levels=50)),
            (", 49 levels not in use", nodes, "1 level", partial(plain, spare_levels=49)),
            (", cores against memory", nodes, "balanced", partial(lopsided, nodes, jobs)),
            (", each short of another", nodes, "balanced", partial(opposed, nodes, jobs)),
        )
        return [
            self._task(f"placement{where}", size, {"ours": other, rival: plain})
            for where, size, rival, other in others
        ]

    def _task(self, kind: str, size: int, makers: Mapping[str, Any]) -> Task:
        made: dict[str, Cluster] = {}

        def cluster(who: str) -> Cluster:
            if who not in made:
                made[who] = makers[who]()
            return made[who]

        contenders = {who: placing(partial(cluster, who)) for who in makers}
        task = timed(kind, size, contenders, per=self.jobs, warm=False)

        def measure(repetitions: int) -> Sequence[Reading]:
            try:
                return task.measure(repetitions)
            finally:
                made.clear()

        return replace(task, measure=measure)
