"""What the job db does when there is no memory: raise MemoryError and stay as it was.

Whichever allocation fails, every index is sound, every record goes back and the next writer
gets in.
"""

import gc
import importlib.util
import os
from collections.abc import Callable, Iterator

import pytest

from kit.jobs import gang, job, jobs, leased, requirements
from pyresched.jobdb import DryRun, JobDb, Txn, record_memory
from pyresched.model import Gang, JobState

if os.environ.get("PYRESCHED_DEV") != "1" and not importlib.util.find_spec(
    "pyresched._core.selftest"
):
    pytest.skip(
        "a release build cannot make allocations fail; PYRESCHED_DEV=1 makes a build that can",
        allow_module_level=True,
    )

from pyresched._core import selftest

NEW = [
    job(
        f"a-long-id-longer-than-sixteen-{n:03}",
        queue=f"queue-{n % 7}",
        gang=Gang("gang-new", 2),
        state=JobState.FAILED if n % 2 else JobState.QUEUED,
    )
    for n in range(20)
]
IDS = [f"column-{n}" for n in range(20)]


def from_columns(txn: Txn) -> None:
    """Queues and gangs by codes, a payload each."""
    txn.upsert_columns(
        ids=IDS,
        submitted_at=list(range(20)),
        queue=([n % 5 for n in range(20)], [f"other-{n}" for n in range(5)]),
        requirements=requirements(),
        gang=([n % 2 - 1 for n in range(20)], [Gang("gang-columns", 2)]),
        payload=IDS,
    )


def reads(txn: Txn) -> None:
    """Each way to walk what was just changed."""
    txn.upsert(NEW[0])
    assert len(list(txn)) == len(txn.columns("state")["state"]) == len(txn)
    assert list(txn.queued("queue-a"))


CHANGES: dict[str, Callable[[Txn], object]] = {
    "jobs": lambda txn: txn.upsert_many(NEW),
    "columns": from_columns,
    "fields": lambda txn: txn.upsert_many(
        [each.replace(priority=1, reason="x", failed_at=1) for each in txn]
    ),
    "lease": lambda txn: txn.upsert_many([leased(each) for each in txn.queued("queue-a", "p")]),
    "delete": lambda txn: txn.delete_many([each.id for each in txn]),
    "read": reads,
}


@pytest.fixture(autouse=True)
def _memory_comes_back(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """And nothing but the change itself asks for some: no checks at each commit."""
    monkeypatch.setenv("PYRESCHED_CHECK", "")
    yield
    selftest.let_allocations_fail(-1)


def full() -> JobDb:
    """A db with something in most indices."""
    db = JobDb()
    with db.write() as txn:
        txn.upsert_many(jobs(40, pools=("p", "q")))
        txn.upsert_many(map(leased, jobs(10, prefix="leased")))
        txn.upsert_many(gang("gang-1"))
    return db


def counted() -> list[int]:
    """What there is of records and what they lead to."""
    memory = record_memory()
    return [memory["records"], memory["kinds"], memory["colds"], memory["trackers"]]


@pytest.mark.parametrize("pinned", [False, True], ids=["alone", "pinned"])
@pytest.mark.parametrize("dry", [False, True], ids=["write", "apply"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_without_memory_is_none(
    change: Callable[[Txn], object], dry: bool, pinned: bool
) -> None:
    """The first allocation fails, then the second, and so on until none does."""
    gc.collect()  # or what other tests left may go meanwhile, and is counted
    db = full()
    rows, before, version = list(db.snapshot()), counted(), db.version
    failures = 0
    while True:
        snap = db.snapshot() if pinned else None
        txn: Txn = db.dry_run() if dry else db.write(timeout=0)
        selftest.let_allocations_fail(failures)
        try:
            change(txn)
            txn.commit()
            if isinstance(txn, DryRun):
                db.apply(txn, timeout=0)
        except MemoryError:
            selftest.let_allocations_fail(-1)
        else:
            selftest.let_allocations_fail(-1)
            break
        if not txn.closed:
            txn.abort()
        del txn, snap
        assert db.version == version
        assert list(db.snapshot()) == rows
        assert counted() == before
        if failures < 20:
            assert db.check(db.snapshot()) == []
        failures += 1
    assert failures > 5
    assert db.version == version + 1
    assert db.check(db.snapshot()) == []


@pytest.mark.parametrize("columns", [False, True], ids=["jobs", "columns"])
def test_a_store_that_cannot_be_filled_at_once_stays_empty(*, columns: bool) -> None:
    """Wherever memory ends while many jobs come into an empty store, each with a gang and a time."""
    rows = [
        job(f"job-{n * 7919 % 300:03}", submitted_at=n % 7, gang=Gang(f"gang-{n % 9}", 2))
        for n in range(300)
    ]
    db = JobDb()
    before = counted()
    failures = 0
    while True:
        txn = db.write(timeout=0)
        selftest.let_allocations_fail(failures)
        try:
            if columns:
                txn.upsert_columns(
                    ids=[each.id for each in rows],
                    submitted_at=[each.submitted_at for each in rows],
                    queue="alpha",
                    requirements=rows[0].requirements,
                    gang=([n % 9 for n in range(300)], [Gang(f"gang-{n}", 2) for n in range(9)]),
                )
            else:
                txn.upsert_many(rows)
            txn.commit()
        except MemoryError:
            selftest.let_allocations_fail(-1)
        else:
            selftest.let_allocations_fail(-1)
            break
        if not txn.closed:
            txn.abort()
        assert len(db.snapshot()) == 0
        assert counted() == before
        failures += 1 + failures // 20
    assert failures > 20
    assert len(db.snapshot()) == 300
    assert db.check(db.snapshot()) == []


def test_a_block_that_cannot_commit_ends_its_transaction() -> None:
    """Whoever left it cannot try again, so the next writer gets in."""
    db = full()
    snap = db.snapshot()  # so that the commit has to keep what it supersedes
    txn = db.write()

    def leave() -> None:
        with txn:
            txn.delete_many([each.id for each in txn])
            selftest.let_allocations_fail(0)

    with pytest.raises(MemoryError):
        leave()
    selftest.let_allocations_fail(-1)
    assert txn.closed
    with db.write(timeout=0) as other:
        other.upsert(job("next"))
    assert len(db.snapshot()) == len(snap) + 1
    assert db.check(db.snapshot()) == []
