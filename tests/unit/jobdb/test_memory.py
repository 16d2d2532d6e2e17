"""What versions cost: an old one pins what it can see and nothing else, and the collector has
nothing to do with any of it.
"""

import gc
import weakref
from collections.abc import Callable

import pytest

from kit import leaks
from kit.jobs import backing_off, gang, job, jobs, leased, requeued
from pyresched.jobdb import JobDb, record_memory
from pyresched.model import Job, JobState

COMMITS = 10_000


class Payload:
    """Something of which the number alive can be told."""

    __slots__ = ("__weakref__",)


@pytest.fixture(autouse=True)
def _no_checks_at_each_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand of them."""
    monkeypatch.setenv("PYRESCHED_CHECK", "")


def held(db: JobDb) -> int:
    """Bytes in the structures of *db*."""
    parts = ("ids", "runs", "rows", "lanes", "trees")
    return sum(db.memory()[part] for part in parts)  # type: ignore[misc]


def full(count: int = 500) -> JobDb:
    """A db with something in every index."""
    db = JobDb(seed=bytes(16))
    with db.write() as txn:
        txn.upsert_many(jobs(count, pools=("p", "q")))
        txn.upsert_many(map(leased, jobs(count // 5, prefix="l")))
        txn.upsert_many(each for n in range(count // 20) for each in gang(f"g{n}", validated=False))
    return db


def moved(one: Job, n: int) -> Job:
    """The next version of *one*, in another place of some index; it keeps one run at most."""
    if one.state is JobState.QUEUED:
        if n % 3 == 0:
            return one.replace(priority=n % 7)
        return leased(one.replace(runs=()), run_id=f"{one.id}/{n}")
    if one.state is JobState.BACKING_OFF:
        return one.replace(state=JobState.QUEUED)
    return requeued(one) if n % 2 else backing_off(one)


def one_job_commits(db: JobDb, which: Callable[[int], str], count: int = COMMITS) -> None:
    """So many versions, each with one job changed."""
    for n in range(count):
        with db.write() as txn:
            txn.upsert(moved(txn[which(n)], n))


def test_a_snapshot_pins_what_it_sees_of_one_job() -> None:
    """A job that is changed ten thousand times costs an old snapshot what one change costs."""
    db = full()
    before = held(db)
    snap = db.snapshot()
    rows = list(snap)
    one_job_commits(db, lambda _: "job-000100", count=12)
    after_some = held(db) - before
    assert after_some > 0
    one_job_commits(db, lambda _: "job-000100")
    assert held(db) - before <= 1.5 * after_some
    assert list(snap) == rows
    assert [version for version, _ in db.memory()["pinned"]] == [1]
    del snap
    assert db.memory()["pinned"] == []
    assert held(db) <= before + after_some


def test_a_snapshot_pins_what_it_sees_of_all_jobs() -> None:
    """When every job has changed many times, two whole versions are what there is."""
    db = full()
    names = [each.id for each in db.snapshot()]
    before = held(db)
    snap = db.snapshot()
    rows = list(snap)
    one_job_commits(db, lambda n: names[n * 7 % len(names)])
    two = held(db)
    assert list(snap) == rows
    del snap
    one = held(db)
    assert two <= 1.5 * (before + one)
    # What is left is what a db needs that was never read meanwhile.
    alone = full()
    one_job_commits(alone, lambda n: names[n * 7 % len(names)])
    assert one == held(alone)


def test_only_rows_that_a_version_sees_are_alive() -> None:
    """Each row's payload lives as long as a version that has it: two here, one after that."""
    alive: weakref.WeakSet[Payload] = weakref.WeakSet()

    def payload() -> Payload:
        made = Payload()
        alive.add(made)
        return made

    db = JobDb()
    with db.write() as txn:
        txn.upsert_many(each.replace(payload=payload()) for each in jobs(100))
    snap = db.snapshot()
    for n in range(2000):
        with db.write() as txn:
            txn.upsert(txn[f"job-{n % 100:06}"].replace(payload=payload()))
        if n == 49:
            assert len(alive) == 150
    assert len(alive) == 200
    assert {each.payload for each in snap} <= set(alive)
    del snap
    assert len(alive) == 100


def test_versions_in_the_middle_go_alone() -> None:
    """Of many snapshots any may go first: what is left is what the others see."""
    alive: weakref.WeakSet[Payload] = weakref.WeakSet()
    db = JobDb()
    snaps = []
    for n in range(40):
        made = Payload()
        alive.add(made)
        with db.write() as txn:
            txn.upsert(job("a", payload=made, version=n + 1))
        del made
        snaps.append(db.snapshot())
    assert len(alive) == 40
    order = [n * 7 % 40 for n in range(40)]
    for left, n in enumerate(order, start=1):
        snaps[n] = None
        # The newest row is in the db itself.
        assert len(alive) == 40 - left + (39 in order[:left])
    assert db.memory()["pinned"] == []


@pytest.mark.parametrize("begin", ["write", "dry_run"])
def test_an_end_without_a_commit_gives_back_every_byte(begin: str) -> None:
    """INV-D11, beside readers of several versions, whatever was done to which index."""
    db = full()
    old = db.snapshot()
    one_job_commits(db, lambda n: f"job-{n % 300:06}", count=400)
    new = db.snapshot()
    before = db.memory()
    rows = list(new)
    for _ in range(3):
        txn = getattr(db, begin)()
        walk = txn.queued("queue-a", "p")
        next(walk)
        txn.upsert_many(moved(each, n) for n, each in enumerate(list(txn.leased())))
        txn.delete_many([each.id for each in list(txn)[::3]])
        txn.upsert_many(jobs(200, prefix="an id of more than sixteen bytes", queue="queue-b"))
        assert db.memory() != before
        txn.abort()
        assert db.memory() == before
    assert list(new) == rows
    assert len(old) == len(rows)


def alive() -> dict[str, int]:
    """How many records, cold parts, trackers and interned kinds the process has."""
    gc.collect()
    return {what: many for what, many in record_memory().items() if what != "record_bytes"}  # type: ignore[misc]


def test_a_dropped_db_takes_its_records_along() -> None:
    """And what they share: nothing of a store outlives its last reader."""
    before = alive()
    db = full()
    snap, walk = db.snapshot(), iter(db.snapshot())
    one_job_commits(db, lambda n: f"job-{n % 50:06}", count=100)
    held_by_all = alive()
    assert held_by_all["records"] - before["records"] == len(db.snapshot()) + 50
    assert held_by_all["kinds"] > before["kinds"]
    assert held_by_all["colds"] > before["colds"]
    kept = snap["job-000003"]
    del db, snap, walk
    assert alive()["records"] == before["records"] + 1
    assert kept.id == "job-000003"
    del kept
    assert alive() == before


@pytest.mark.parametrize("name", [each for each in leaks.CYCLES if not each.startswith("control")])
def test_no_use_leaves_a_record_behind(name: str) -> None:
    """Counted one by one, for every way of use (bytes: tests/scenarios/test_leaks.py)."""
    cycle = leaks.CYCLES[name]()
    for _ in range(3):
        cycle()
    before = alive()
    for _ in range(4):
        cycle()
    assert alive() == before


def test_control_a_record_left_behind_is_counted() -> None:
    """Those of twenty jobs that somebody keeps."""
    cycle = leaks.CYCLES["control: jobs"]()
    before = alive()
    cycle()
    assert alive()["records"] - before["records"] == 20


def test_loading_jobs_gives_the_collector_nothing_to_look_at() -> None:
    """No object for each job is tracked, in the store or by itself, so that a collection takes
    as long with many as with none.
    """
    gc.collect()
    gc.freeze()
    try:
        db = JobDb()
        with db.write() as txn:
            txn.upsert_many(jobs(10, pools=("p",)))
        snap = db.snapshot()
        gc.collect()
        tracked = len(gc.get_objects())
        with db.write() as txn:
            txn.upsert_many(jobs(4000, pools=("p",), payload=b"x"))
            txn.upsert_many(map(leased, jobs(4000, prefix="l")))
            txn.upsert_many(each for n in range(1000) for each in gang(f"g{n}", validated=False))
        newer = db.snapshot()
        gc.collect()
        assert len(newer) == 10_000
        assert len(gc.get_objects()) - tracked < 40
        walk = newer.queued("queue-a")
        few = [next(walk) for _ in range(50)]
        assert not any(gc.is_tracked(each) for each in few)
        del snap
    finally:
        gc.unfreeze()
