"""The job store: one version for many rows, many versions for one row each, reads of a version."""

import pytest

from pyresched.config import SchedulingConfig
from pyresched.jobdb import JobDb
from pyresched.model import JobState
from workloads import jobs

CONFIG = SchedulingConfig()
COUNT = 10_000
ROWS = jobs(COUNT, in_queues=50, config=CONFIG)
IDS = [job.id for job in ROWS]


def full():
    db = JobDb(CONFIG)
    with db.write() as txn:
        txn.upsert_many(ROWS)
    return db


@pytest.mark.benchmark(group="transaction: 10,000 new rows")
@pytest.mark.parametrize("who", ["ours", "dict"])
def test_upsert_many(benchmark, who):
    """Into every index that a job belongs in; the dict has none of them."""
    build = full if who == "ours" else lambda: {job.id: job for job in ROWS}
    db = benchmark(build)
    assert len(db.snapshot() if who == "ours" else db) == COUNT


@pytest.mark.benchmark(group="transaction: open and abort")
def test_open(benchmark):
    """A few words copied, whatever the number of jobs."""
    db = full()
    benchmark(lambda: db.write().abort())


@pytest.mark.benchmark(group="transaction: 500 versions of one changed row")
def test_versions(benchmark):
    """Each commit is published before the next begins."""
    db = full()

    def run():
        for id in IDS[:500]:
            with db.write() as txn:
                txn.upsert(txn.get(id).replace(priority=7))

    benchmark.pedantic(run, rounds=5)
    assert db.snapshot().get(IDS[0]).state is JobState.QUEUED


@pytest.mark.benchmark(group="transaction: read 10,000 rows")
@pytest.mark.parametrize("who", ["ours", "dict"])
def test_get_many(benchmark, who):
    """By id, from one snapshot."""
    by_id = {job.id: job for job in ROWS}
    snapshot = full().snapshot()
    read = (lambda: snapshot.get_many(IDS)) if who == "ours" else lambda: [by_id[id] for id in IDS]
    assert benchmark(read) == ROWS
