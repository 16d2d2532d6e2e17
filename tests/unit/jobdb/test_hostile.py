"""Code of users that runs in the midst of a call: iterables, payloads that compare, finalisers.

Whatever it does to the db, the db stays whole, and who may not interfere is told.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kit.jobs import job, jobs, leased, requirements
from pyresched.errors import TxnClosed, WriterBusy
from pyresched.jobdb import JobDb, Snapshot, Txn
from pyresched.model import Job

# What user code tries in the midst of a change, and what it is told (None: it may).
MEDDLING: dict[str, tuple[Callable[[JobDb, Txn], object], type[Exception] | None]] = {
    "upsert": (lambda _, txn: txn.upsert(job("meddled")), RuntimeError),
    "upsert_many": (lambda _, txn: txn.upsert_many([job("meddled")]), RuntimeError),
    "delete_many": (lambda _, txn: txn.delete_many(["a"]), RuntimeError),
    "commit": (lambda _, txn: txn.commit(), RuntimeError),
    "abort": (lambda _, txn: txn.abort(), RuntimeError),
    "write": (lambda db, _: db.write(timeout=0), WriterBusy),
    "walk": (lambda _, txn: list(txn), None),
    "get": (lambda _, txn: txn.get("a"), None),
    "snapshot": (lambda db, _: list(db.snapshot()), None),
    "dry run": (lambda db, _: db.dry_run().upsert(job("meddled")), None),
}


class Meddler:
    """A payload that does something when it is compared."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, meddle: Callable[[], object]) -> None:
        self.meddle = meddle

    def __eq__(self, other: object) -> bool:
        self.meddle()
        return True


@pytest.mark.parametrize("name", MEDDLING)
def test_a_comparison_in_the_midst_of_a_batch_cannot_change_the_transaction(
    db: JobDb, name: str
) -> None:
    """A payload is compared when one id stands twice in a batch: it may read, and no more."""
    meddle, error = MEDDLING[name]
    told: list[type[BaseException] | None] = []

    def attempt() -> None:
        try:
            meddle(db, txn)
        except Exception as refused:  # noqa: BLE001 - which one it is is what is asked
            told.append(type(refused))
        else:
            told.append(None)

    with db.write() as txn:
        txn.upsert(job("before"))
        txn.upsert_many([job(id, payload=Meddler(attempt)) for id in "aab"])
        assert told == [error]
        assert [each.id for each in txn] == ["a", "b", "before"]
        assert db.check(txn) == []
    assert "meddled" not in db.snapshot()


def test_a_comparison_that_raises_refuses_the_batch(db: JobDb) -> None:
    """And the transaction goes on as before."""

    def fail() -> None:
        raise ZeroDivisionError

    with db.write() as txn:
        txn.upsert(job("before"))
        with pytest.raises(ZeroDivisionError):
            txn.upsert_many([job("x"), *(job("a", payload=Meddler(fail)) for _ in range(2))])
        assert [each.id for each in txn] == ["before"]


ENDING: dict[str, Callable[[Txn, Iterator[Any]], object]] = {
    "upsert_many": lambda txn, batch: txn.upsert_many(batch),
    "delete_many": lambda txn, batch: txn.delete_many(each.id for each in batch),
    "get_many": lambda txn, batch: txn.get_many(each.id for each in batch),
    "upsert_columns": lambda txn, batch: txn.upsert_columns(
        ids=[each.id for each in batch], submitted_at=0, queue="q", requirements=requirements()
    ),
}


@pytest.mark.parametrize("end", ["commit", "abort"])
@pytest.mark.parametrize("use", ENDING.values(), ids=ENDING)
def test_an_iterable_that_ends_its_transaction_is_told_so(
    db: JobDb, use: Callable[[Txn, Iterator[Any]], object], end: str
) -> None:
    """What it gives is not written anywhere."""
    txn = db.write()
    txn.upsert(job("before"))

    def ending() -> Iterator[Job]:
        yield job("new")
        getattr(txn, end)()
        yield job("newer")

    with pytest.raises(TxnClosed):
        use(txn, ending())
    assert [each.id for each in db.snapshot()] == (["before"] if end == "commit" else [])


def test_an_iterable_may_write_what_it_then_gives(db: JobDb) -> None:
    """A batch is read to its end before anything of it is written."""

    def writing() -> Iterator[Job]:
        for n in range(5):
            txn.upsert(job("a", priority=n, version=n + 1))
            yield job(f"b{n}")
        yield txn["a"].replace(priority=9)

    with db.write() as txn:
        txn.upsert_many(writing())
        assert [each.priority for each in txn] == [9, 0, 0, 0, 0, 0]


class Finaliser:
    """A payload that uses the db when it goes."""

    def __init__(self, db: JobDb, told: list[object]) -> None:
        self.db = db
        self.told = told

    def __del__(self) -> None:
        self.told.append(self.db.check(self.db.snapshot()))
        with self.db.dry_run() as trial:
            trial.upsert_many([job("tried"), *map(leased, list(trial.queued("queue-a"))[:1])])
        try:
            with self.db.write(timeout=0) as txn:
                txn.upsert(job("written", version=self.db.version + 1))
        except WriterBusy:
            self.told.append(WriterBusy)


@pytest.mark.parametrize("end", ["commit", "abort"])
@pytest.mark.parametrize("held", [False, True], ids=["read by nobody", "read"])
def test_a_finaliser_finds_the_db_whole(db: JobDb, end: str, *, held: bool) -> None:
    """At the end of a transaction, of a snapshot, and of what one transaction wrote twice."""
    told: list[object] = []
    with db.write() as txn:
        txn.upsert_many(each.replace(payload=Finaliser(db, told)) for each in jobs(5))
    snap = db.snapshot() if held else None
    txn = db.write()
    for each in jobs(5):
        txn.upsert(each.replace(payload=Finaliser(db, told), version=2))
        txn.upsert(each.replace(payload=None, version=3))
    txn.delete_many(["job-000001"])
    gc.collect()
    getattr(txn, end)()
    del txn, snap
    gc.collect()
    assert len(told) == (10 if end == "commit" else 5)
    assert told == [[]] * len(told)
    assert "written" in db.snapshot()
    with db.write() as txn:
        txn.delete_many([each.id for each in txn])
    gc.collect()
    assert len(told) == 10


class Meddling:
    """Garbage whose finaliser does something when a collection comes by."""

    def __init__(self, meddle: Callable[[], object]) -> None:
        self.meddle = meddle
        self.own = self

    def __del__(self) -> None:
        self.meddle()


@contextmanager
def a_collection_soon(meddle: Callable[[], object], after: int) -> Iterator[None]:
    """The object after *after* others brings a collection, and with it *meddle*."""
    before = gc.get_threshold()
    gc.collect()
    Meddling(meddle)
    gc.set_threshold(after, 1, 1)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.collect()


COUNT = 120
READS: dict[str, Callable[[Txn, Snapshot], int]] = {
    "walk": lambda txn, _: len(list(txn)),
    "queue": lambda txn, _: len(list(txn.queued("queue-a", "default"))),
    "queue of all pools": lambda txn, _: len(list(txn.queued("queue-a"))),
    "get_many": lambda txn, _: sum(
        each is not None for each in txn.get_many([f"job-{n:06}" for n in range(COUNT)])
    ),
    "diff": lambda txn, first: len(txn.diff(first).changed),
    "diff of the other": lambda txn, first: len(first.diff(txn).changed),
    "contents": lambda txn, _: len(txn.contents()["rows"]),
    "columns": lambda txn, _: sum(
        each == 1 for each in txn.columns("state", "version", "priority")["priority"]
    ),
    "columns of ids": lambda txn, _: sum(
        each == 1
        for each in txn.columns(
            "state", "version", "priority", ids=[f"job-{n:06}" for n in range(COUNT)]
        )["priority"]
    ),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_read_of_a_transaction_is_of_one_moment_whatever_a_collection_runs(
    db: JobDb, read: Callable[[Txn, Snapshot], int]
) -> None:
    """A finaliser in the midst of it empties the transaction, at one object or another: the read
    gives all jobs or none.
    """
    with db.write() as txn:
        txn.upsert_many(jobs(COUNT))
    first = db.snapshot()

    def empty() -> None:
        if not txn.closed:
            txn.delete_many([each.id for each in txn])
            txn.upsert_many(jobs(COUNT, prefix="x" * 30, queue="z", priority=2))
            txn.delete_many([each.id for each in txn])

    for after in (1, 2, 3, 4, 5, 6, 8, 11, 16, 30, 60):
        txn = db.write()
        txn.upsert_many([each.replace(priority=1) for each in first])
        with a_collection_soon(empty, after):
            assert read(txn, first) in {0, COUNT}, after
        assert db.check(txn) == []
        txn.abort()
