"""Placing jobs on nodes: native calls, single calls, a NumPy scan and plain Python.

Each way places the same jobs on the same nodes by best fit and must end on the same nodes.
Forks beside building anew, batches beside one by one, refusals beside plain Python.
"""

import numpy as np
import pytest

from pyresched.config import SchedulingConfig
from pyresched.model import Requirements, ResourceVector
from pyresched.nodedb import EVICTED, NodeDb
from workloads import job_ids, nodes, spread

CONFIG = SchedulingConfig()
PRIORITY = CONFIG.levels[-1]
JOBS = 1_000
IDS = job_ids(JOBS)
# 50 shapes, small enough that nearly every job finds room on 151 nodes.
SHAPES = [(500 + spread(n) % 40 * 100, 1024 + spread(n + 99) % 32 * 512) for n in range(50)]
REQUESTS = [Requirements(ResourceVector(shape)) for shape in SHAPES]
WANTED = [spread(n) % len(SHAPES) for n in range(JOBS)]


def natively(rows):
    """All jobs in one native call, taken back after each run."""
    table = NodeDb(CONFIG, rows).fork("default").table
    requests = [REQUESTS[shape] for shape in WANTED]

    def place():
        mark = table.begin()
        placed = table.place_each(IDS, requests, PRIORITY, preemptible=False)
        table.undo(mark)
        return placed

    return place


def singly(rows):
    """A search and a binding for each job, as a Python scheduler would call them."""
    fork = NodeDb(CONFIG, rows).fork("default")

    def place():
        placed = []
        with fork.attempt() as attempt:
            for job_id, shape in zip(IDS, WANTED, strict=True):
                found = fork.find(REQUESTS[shape], PRIORITY)
                placed.append(found.node_id if found else None)
                if found:
                    attempt.bind_as(
                        job_id, REQUESTS[shape], found.node_id, PRIORITY, preemptible=False
                    )
        return placed

    return place


def in_numpy(rows):
    """A scan of columns for each job."""
    total = np.array([row.total.to_tuple() for row in rows], dtype=np.int64)

    def place():
        cpu, memory = total[:, 0].copy(), total[:, 1].copy()
        placed = []
        for shape in WANTED:
            wanted_cpu, wanted_memory = SHAPES[shape]
            fits = np.flatnonzero((cpu >= wanted_cpu) & (memory >= wanted_memory))
            if not len(fits):
                placed.append(None)
                continue
            best = fits[np.lexsort((memory[fits], cpu[fits]))[0]]
            cpu[best] -= wanted_cpu
            memory[best] -= wanted_memory
            placed.append(rows[best].id)
        return placed

    return place


def in_python(rows):
    """A loop over all nodes for each job."""
    total = [list(row.total) for row in rows]

    def place():
        left = [amounts[:] for amounts in total]
        placed = []
        for shape in WANTED:
            wanted_cpu, wanted_memory = SHAPES[shape]
            best = min(
                (
                    (cpu, memory, i)
                    for i, (cpu, memory) in enumerate(left)
                    if cpu >= wanted_cpu and memory >= wanted_memory
                ),
                default=None,
            )
            if best is None:
                placed.append(None)
                continue
            left[best[2]][0] -= wanted_cpu
            left[best[2]][1] -= wanted_memory
            placed.append(rows[best[2]].id)
        return placed

    return place


WAYS = {"ours": natively, "ours singly": singly, "numpy": in_numpy, "python": in_python}


@pytest.mark.benchmark(group="nodes: place 1,000 jobs of 50 shapes on 151")
@pytest.mark.parametrize("who", WAYS)
def test_placement_on_151_nodes(benchmark, who):
    """The same nodes by each way."""
    rows = nodes(151, config=CONFIG)
    assert benchmark(WAYS[who](rows)) == in_python(rows)()


@pytest.mark.benchmark(group="nodes: place 1,000 jobs of 50 shapes on 10,000")
@pytest.mark.parametrize("who", ["ours", "numpy"])
def test_placement_on_10_000_nodes(benchmark, who):
    """The same nodes by each way."""
    rows = nodes(10_000, config=CONFIG)
    assert benchmark.pedantic(WAYS[who](rows), rounds=5) == in_numpy(rows)()


@pytest.fixture(scope="module")
def loaded():
    """151 nodes that hold 2,000 jobs."""
    fork = NodeDb(CONFIG, nodes(151, config=CONFIG)).fork("default")
    small = Requirements(ResourceVector((1000, 1024)))
    placed = fork.table.place_each(job_ids(2_000), [small] * 2_000, PRIORITY, preemptible=False)
    assert None not in placed
    return fork


def anew(fork):
    """The same nodes and bindings, one by one."""
    held = [(job_id, fork.binding(job_id)) for job_id in fork.table.bound_jobs()]

    def build():
        fresh = NodeDb(CONFIG, fork.nodes).fork("default")
        with fresh.attempt() as attempt:
            for job_id, (node_id, requirements, priority, preemptible, _) in held:
                attempt.bind_as(job_id, requirements, node_id, priority, preemptible)
            attempt.keep()
        return fresh

    return build


@pytest.mark.benchmark(group="nodes: a copy of 151 with 2,000 bindings")
@pytest.mark.parametrize("who", ["ours", "anew"])
def test_fork(benchmark, loaded, who):
    """A flat copy, and what it replaces."""
    copy = benchmark(loaded.fork if who == "ours" else anew(loaded))
    assert copy.table.bound_jobs() == loaded.table.bound_jobs()


@pytest.mark.benchmark(group="nodes: where 1,000 alike jobs would go")
@pytest.mark.parametrize("who", ["ours", "one by one"])
def test_batch(benchmark, who):
    """A node takes all that fit in one step."""
    fork = NodeDb(CONFIG, nodes(151, config=CONFIG)).fork("default")
    asked = REQUESTS[0]

    def one_by_one():
        mark = fork.table.begin()
        placed = fork.table.place_each(IDS, [asked] * JOBS, PRIORITY, preemptible=False)
        fork.table.undo(mark)
        return placed

    def in_a_batch():
        return fork.place_many(asked, JOBS, PRIORITY)

    found = benchmark(in_a_batch if who == "ours" else one_by_one)
    if who == "ours":
        found = [node_id for node_id, copies in found for _ in range(copies)]
    assert found == one_by_one()


@pytest.mark.benchmark(group="nodes: 10,000 refusals of 50 shapes by 151 full nodes")
@pytest.mark.parametrize("who", ["ours", "python"])
def test_refusals(benchmark, loaded, who):
    """What did not fit once is not searched for again until room is given back."""
    full = loaded.fork()
    with full.attempt() as attempt:
        for n, row in enumerate(full.nodes):
            rest = Requirements(full.allocatable(row.id, EVICTED))
            attempt.bind_as(f"rest-{n}", rest, row.id, PRIORITY, preemptible=False)
        attempt.keep()
    left = [full.allocatable(row.id, EVICTED).to_tuple() for row in full.nodes]

    def ours():
        return sum(not full.find(asked, PRIORITY) for asked in REQUESTS * 200)

    def python():
        return sum(
            not any(cpu >= wanted[0] and memory >= wanted[1] for cpu, memory in left)
            for wanted in SHAPES * 200
        )

    assert benchmark(ours if who == "ours" else python) == 10_000
