"""The job store beside the same job db in Python (`rivals/jobdb.py`), on the same jobs.

`PYRESCHED_BENCH_JOBS` sets how many jobs there are (10,000 unless set). A `dict` of them, which
has no index, no version and no order, shows the floor where there is one.
"""

import os
from itertools import cycle

import pytest

from pyresched.config import SchedulingConfig
from pyresched.jobdb import JobDb
from pyresched.model import JobState, Outcome, Run
from rivals.jobdb import PythonJobDb
from rivals.jobs import python_job
from workloads import jobs

CONFIG = SchedulingConfig()
COUNT = int(os.environ.get("PYRESCHED_BENCH_JOBS", "10_000"))
QUEUES = max(10, COUNT // 1_000)
ROWS = jobs(COUNT, in_queues=QUEUES, config=CONFIG)
IDS = [job.id for job in ROWS]
MAKERS = {"ours": JobDb, "python": PythonJobDb}
BOTH = pytest.mark.parametrize("who", MAKERS)
# The rival stores jobs of its own.
SAME = {"ours": list, "python": lambda rows: [python_job(job) for job in rows]}
ROWS_OF = {who: same(ROWS) for who, same in SAME.items()}
SLOT = Run(id="run", node_id="node-1", leased_at=0)


def group(what):
    return pytest.mark.benchmark(group=f"transaction: {what}")


def full(who):
    """A db with all jobs."""
    db = MAKERS[who](CONFIG)
    with db.write() as txn:
        txn.upsert_many(ROWS_OF[who])
    return db


def leased(job, turn):
    """The job with a new active run."""
    run = SLOT.replace(id=f"{job.id}-{turn}")
    return job.replace(state=JobState.LEASED, runs=(run,))


def queued_again(job):
    """The leased job back at its place."""
    run = job.runs[-1].replace(ended_at=1, outcome=Outcome.PREEMPTED)
    return job.replace(state=JobState.QUEUED, runs=(run,))


def ended(job):
    """The leased job at its end."""
    run = job.runs[-1].replace(ended_at=1, outcome=Outcome.SUCCEEDED)
    return job.replace(state=JobState.SUCCEEDED, runs=(run,))


@group("10,000 new rows")
@pytest.mark.parametrize("who", [*MAKERS, "dict"])
def test_load(benchmark, who):
    """Into every index that a job belongs in; the dict has none of them."""
    build = (lambda: {job.id: job for job in ROWS}) if who == "dict" else lambda: full(who)
    db = benchmark(build)
    assert len(db if who == "dict" else db.snapshot()) == COUNT


@group("every job leased, then ended, 1,000 a commit")
@BOTH
def test_life(benchmark, who):
    """The two changes that every job goes through."""
    gone_by = [leased(job, 1) for job in ROWS]
    batches = [
        SAME[who](batch[n : n + 1_000])
        for batch in (gone_by, [ended(job) for job in gone_by])
        for n in range(0, COUNT, 1_000)
    ]

    def run(db):
        for batch in batches:
            with db.write() as txn:
                txn.upsert_many(batch)
        return db

    db = benchmark.pedantic(run, setup=lambda: ((full(who),), {}), rounds=3)
    assert db.snapshot().queues() == []


def to_and_fro(who, count):
    """A db, and batches of *count* state changes that can be applied for ever."""
    db = full(who)
    there = [leased(job, 1) for job in ROWS[:count]]
    back = [queued_again(job) for job in there]
    return db, cycle([SAME[who](there), SAME[who](back)])


@group("one changed row")
@BOTH
def test_one(benchmark, who):
    """Open, change the state of one job, publish."""
    db, batches = to_and_fro(who, 1_000)
    changes = cycle([job for _ in range(2) for job in next(batches)])

    def run():
        with db.write() as txn:
            txn.upsert(next(changes))

    benchmark(run)


@group("one changed row, a snapshot before each")
@BOTH
def test_one_read(benchmark, who):
    """The same where somebody reads every version."""
    db, batches = to_and_fro(who, 1_000)
    changes = cycle([job for _ in range(2) for job in next(batches)])

    def run():
        snapshot = db.snapshot()
        with db.write() as txn:
            txn.upsert(next(changes))
        return snapshot

    benchmark(run)


@group("1,000 state changes")
@BOTH
def test_thousand(benchmark, who):
    """In one commit: to leased, and back with the next."""
    db, batches = to_and_fro(who, 1_000)

    def run():
        with db.write() as txn:
            txn.upsert_many(next(batches))

    benchmark(run)


@group("open and commit nothing")
@BOTH
def test_open(benchmark, who):
    """A few words copied, whatever the number of jobs."""
    db = full(who)
    benchmark(lambda: db.write().commit())


@group("snapshot")
@BOTH
def test_snapshot(benchmark, who):
    """The same."""
    db = full(who)
    benchmark(db.snapshot)


@group("read 10,000 rows")
@pytest.mark.parametrize("who", [*MAKERS, "dict"])
def test_get_many(benchmark, who):
    """By id, 256 at a time, with text that the store has not seen before."""
    if who == "dict":
        by_id = {job.id: job for job in ROWS}
        get_many = lambda ids: [by_id[id] for id in ids]  # noqa: E731
    else:
        get_many = full(who).snapshot().get_many

    def fresh():
        ids = ["".join(id) for id in IDS]
        return ([ids[n : n + 256] for n in range(0, COUNT, 256)],), {}

    benchmark.pedantic(lambda batches: [get_many(ids) for ids in batches], setup=fresh, rounds=7)
    assert get_many(IDS) == ROWS_OF.get(who, ROWS)


@group("read 10,000 rows, one at a time")
@pytest.mark.parametrize("who", [*MAKERS, "dict"])
def test_get(benchmark, who):
    """The same by one call for each id."""
    get = {job.id: job for job in ROWS}.get if who == "dict" else full(who).snapshot().get

    def fresh():
        return (["".join(id) for id in IDS],), {}

    benchmark.pedantic(lambda ids: [get(id) for id in ids], setup=fresh, rounds=7)


@group("walk of all queues in order")
@BOTH
def test_walk(benchmark, who):
    """Each queue in one pool, job by job."""
    snapshot = full(who).snapshot()
    names = snapshot.queues()

    def run():
        return sum(len(list(snapshot.queued(name, "default"))) for name in names)

    assert benchmark(run) == COUNT


@group("diff of 100 changes")
@BOTH
def test_diff(benchmark, who):
    """What became of the jobs between two versions; the rival has to look at them all."""
    db, batches = to_and_fro(who, 100)
    old = db.snapshot()
    with db.write() as txn:
        txn.upsert_many(next(batches))
    new = db.snapshot()

    def by_hand():
        return [job.id for job in new if old.get(job.id) is not job]

    run = by_hand if who == "python" else lambda: new.diff(old).changed
    assert len(benchmark(run)) == 100
