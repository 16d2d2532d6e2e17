"""Whole rounds over a store: from an empty cluster, over one that is full, and with victims."""

from functools import cache, partial

import pytest

from measures.rounds import committed, decided
from measures.roundworlds import empty, gangs
from pyresched.config import SchedulingConfig
from pyresched.jobdb import JobDb
from pyresched.model import Job, JobState, PoolName, Requirements, Rounding, Run
from pyresched.nodedb import NodeDb
from pyresched.scheduling import RoundState, run_round
from rivals.round import PythonRound
from workloads import jobs, nodes, queues, spread

CONFIG = SchedulingConfig()
POOL = PoolName("default")


class Cluster:
    """Rows in a job db and a node db, and the same for the rival."""

    def __init__(self, waiting, running, node_count, queue_count):
        self.queues = queues(queue_count)
        rows = nodes(node_count, config=CONFIG)
        db = JobDb(CONFIG)
        empty = db.snapshot()
        with db.write() as txn:
            txn.upsert_many(waiting)
            txn.upsert_many(running)
        self.snapshot = db.snapshot()
        self.nodes = NodeDb(CONFIG, rows)
        self.nodes.advance(self.snapshot.diff(empty))
        self.rival = PythonRound(rows, [(job, job.node_id) for job in running], self.queues, CONFIG)
        self.lanes = {
            name: list(self.snapshot.queued(name, POOL)) for name in self.snapshot.queues()
        }

    def ours(self):
        """A round as a scheduler runs it."""
        result, _ = run_round(
            self.snapshot, self.nodes, self.queues, POOL, CONFIG, RoundState(), now=0
        )
        return result

    def python(self):
        """The same by the rival, which gets its jobs in order."""
        return self.rival(self.lanes)

    def agree(self):
        """Whether both place the same and refuse the same."""
        result, (placed, refused) = self.ours(), self.python()
        return [(each.job_id, each.node_id) for each in result.scheduled] == placed and set(
            result.refused
        ) == {id for alike in refused.values() for id in alike}


def full(node_count, queue_count, class_name="default"):
    """Running jobs of one core that leave no room on *node_count* nodes of 32."""
    core = Requirements(
        CONFIG.spec.vector({"cpu": 1, "memory": "8Gi"}, rounding=Rounding.UP), class_name
    )
    class_ = CONFIG.priority_class(class_name)
    return [
        Job(
            id=f"running-{n:06}",
            queue=f"queue-{spread(n) % queue_count:03}",
            requirements=core,
            submitted_at=0,
            state=JobState.LEASED,
            validated=True,
            runs=(
                Run(
                    id=f"run-{n:06}",
                    node_id=f"node-{n // 32:05}",
                    priority=class_.priority,
                    leased_at=n,
                ),
            ),
        )
        for n in range(32 * node_count)
    ]


def of_shapes(count, shapes, queue_count):
    """Waiting jobs of *shapes* sizes, each with requirements of its own."""
    rows = jobs(count, in_queues=queue_count, config=CONFIG)
    return [
        job.replace(
            version=1,
            requirements=Requirements(
                CONFIG.spec.vector(
                    {"cpu": 1 + spread(n) % shapes, "memory": "4Gi"}, rounding=Rounding.UP
                )
            ),
        )
        for n, job in enumerate(rows)
    ]


@pytest.mark.benchmark(group="round: 1,000 jobs onto 100 empty nodes")
@pytest.mark.parametrize("who", ["ours", "python"])
def test_small(benchmark, who):
    """All are placed, or nearly."""
    cluster = Cluster(jobs(1_000, in_queues=10, config=CONFIG), [], 100, 10)
    assert cluster.agree()
    benchmark(getattr(cluster, who))


@pytest.mark.benchmark(group="round: 10,000 jobs onto 1,000 empty nodes")
@pytest.mark.parametrize("who", ["ours", "python"])
def test_large(benchmark, who):
    """There is room for most."""
    cluster = Cluster(jobs(10_000, in_queues=50, config=CONFIG), [], 1_000, 50)
    assert cluster.agree()
    benchmark.pedantic(getattr(cluster, who), rounds=3)


@pytest.mark.benchmark(group="round: 5,000 queued in 84 queues, none fits")
@pytest.mark.parametrize("who", ["ours", "python"])
def test_none_fits(benchmark, who):
    """30 shapes over 40 full nodes: each is tried once."""
    cluster = Cluster(of_shapes(5_000, 30, 84), full(40, 84), 40, 84)
    assert cluster.agree()
    assert not cluster.ours()
    benchmark(getattr(cluster, who))


@pytest.mark.benchmark(group="round: nothing queued in 84 queues")
def test_nothing_to_do(benchmark):
    """1,280 runs are counted, shares are left for whoever asks."""
    cluster = Cluster([], full(40, 84), 40, 84)
    assert not benchmark(cluster.ours)


@pytest.mark.benchmark(group="round: 5,000 queued, each placement takes victims")
def test_victims(benchmark):
    """40 nodes full of preemptible runs of two queues; 82 others want their share."""
    cluster = Cluster(of_shapes(5_000, 30, 84), full(40, 2, "best-effort"), 40, 84)
    assert cluster.ours().preempted
    benchmark.pedantic(cluster.ours, rounds=3)


@pytest.mark.benchmark(group="round: 30,000 jobs of 50 shapes onto 300 empty nodes")
@pytest.mark.parametrize("who", ["ours", "not committed"])
def test_commit(benchmark, who):
    """Its leases are in the job db, or only decided."""
    made = cache(partial(empty, 300, 30_000, 30))
    measured(benchmark, committed(made) if who == "ours" else decided(made))


@pytest.mark.benchmark(group="round: 100 gangs of 32 in 20 racks of 5 nodes")
@pytest.mark.parametrize("who", ["ours", "lone jobs"])
def test_gangs(benchmark, who):
    """Each in one rack, and the nodes are full after it."""
    made = cache(partial(gangs, 100, 100, size=32, racks=20, together=who == "ours"))
    measured(benchmark, decided(made))


def measured(benchmark, contender):
    """A turn of *contender*, anew each time."""
    ends = []

    def prepare():
        for end in ends:
            end.__exit__(None, None, None)
        ends[:] = [contender(0)]
        return (ends[0].__enter__(),), {}

    benchmark.pedantic(lambda work: work(), setup=prepare, rounds=5)
    ends[0].__exit__(None, None, None)
