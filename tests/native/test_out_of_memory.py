"""What is left of a job db when an allocation fails, at whichever step: all of it.

Needs a build with PYRESCHED_SELFTEST, which can make the allocations of the structures fail.
"""

from collections.abc import Callable

import pytest

from kit.jobs import backing_off, gang, job, jobs, leased
from pyresched._core import selftest
from pyresched.errors import TxnClosed
from pyresched.jobdb import JobDb, Txn

GONE = [each.id for each in jobs(150)][::3]
MOVED = [leased(each) for each in jobs(150)[1::3]]
WAITING = [backing_off(leased(each)) for each in jobs(150)[2::3]]
NEW = [*gang("g" * 30, size=5, validated=False), *jobs(80, prefix="n" * 20, queue="queue-b")]

STEPS: dict[str, Callable[[Txn], object]] = {
    "upsert": lambda txn: txn.upsert(MOVED[0]),
    "upsert new": lambda txn: txn.upsert(job("n" * 60, pools=("a", "b"), queue="queue-c")),
    "upsert_many": lambda txn: txn.upsert_many([*MOVED, *WAITING, *NEW]),
    "delete_many": lambda txn: txn.delete_many(GONE),
}


def full() -> JobDb:
    """A db with some jobs, and a version that somebody reads."""
    db = JobDb(seed=bytes(16))
    with db.write() as txn:
        txn.upsert_many(jobs(150))
    return db


def fails_at(db: JobDb, txn: Txn, step: Callable[[Txn], object], after: int) -> bool:
    """Whether the step fails when the allocation after *after* others does; leaves no trace."""
    before = db.snapshot()
    rows = list(before)
    selftest.let_allocations_fail(after)
    try:
        step(txn)
    except MemoryError:
        return True
    else:
        return False
    finally:
        selftest.let_allocations_fail(-1)
        assert list(before) == list(db.snapshot()) == rows
        assert db.check(before) == []


@pytest.mark.parametrize("begin", ["write", "dry_run"])
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_change_that_runs_out_of_memory_is_whole_or_nothing(
    begin: str, step: Callable[[Txn], object]
) -> None:
    """INV-D13: the transaction stands as before, or it has ended; the db is as it was."""
    db = full()
    memory = db.memory()
    after = failures = 0
    while True:
        txn: Txn = getattr(db, begin)()
        failed = fails_at(db, txn, step, after)
        if failed:
            failures += 1
            if not txn.closed:
                assert list(txn) == list(db.snapshot())
                assert db.check(txn) == []
                txn.abort()
            with pytest.raises(TxnClosed):
                txn.get("a")
        else:
            assert db.check(txn) == []
            txn.abort()
        assert db.memory() == memory
        if not failed:
            break
        after += 1 if after < 40 else 7
    assert failures > 0


def test_a_commit_that_runs_out_of_memory_can_be_made_again() -> None:
    """What a reader pins must be noted: without room for that, the transaction stays open."""
    db = full()
    snap = db.snapshot()
    txn = db.write()
    txn.upsert_many([*MOVED, *NEW])
    selftest.let_allocations_fail(0)
    try:
        with pytest.raises(MemoryError):
            txn.commit()
    finally:
        selftest.let_allocations_fail(-1)
    assert (txn.closed, db.version) == (False, 1)
    txn.commit()
    assert db.check(db.snapshot()) == db.check(snap) == []
    assert list(snap) == jobs(150)


def test_a_reader_for_which_there_is_no_memory_pins_nothing() -> None:
    """Neither a snapshot nor a dry run that failed to begin."""
    db = full()
    for begin in (db.snapshot, db.dry_run):
        selftest.let_allocations_fail(0)
        try:
            with pytest.raises(MemoryError):
                begin()
        finally:
            selftest.let_allocations_fail(-1)
        assert db.memory()["pinned"] == []
