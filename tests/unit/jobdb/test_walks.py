"""Jobs that a walk gave out: each is what it was for as long as somebody keeps it.

A walk uses the view of a job that nobody has any more for a later one, and a view that it has
just given out borrows the record. Neither may be seen.
"""

import gc
import random
import threading
import weakref
from collections.abc import Callable, Iterator

import pytest

from kit.jobs import backing_off, job, jobs, leased
from pyresched.jobdb import JobDb, Order, Reader, record_memory
from pyresched.model import Job

COUNT = 150

# Walks of a reader: of one tree, of several, up to a limit, of an array.
WALKS: dict[str, Callable[[Reader], Iterator[Job]]] = {
    "pool": lambda reader: reader.queued("queue-a", "p"),
    "queue": lambda reader: reader.queued("queue-a"),
    "market": lambda reader: reader.queued("queue-a", "q", Order.MARKET),
    "leased": lambda reader: reader.leased(),
    "due": lambda reader: reader.backing_off(before=10 + COUNT // 2),
    "all": iter,
}


def full() -> JobDb:
    """A db in which every walk has many jobs."""
    db = JobDb(seed=bytes(16))
    with db.write() as txn:
        txn.upsert_many(jobs(COUNT, pools=("p", "q")))
        txn.upsert_many(map(leased, jobs(COUNT, prefix="l")))
        waiting = enumerate(map(leased, jobs(COUNT, prefix="b")))
        txn.upsert_many(backing_off(each, eligible_at=10 + n) for n, each in waiting)
    return db


def told(each: Job) -> tuple[object, ...]:
    """What a job says of itself."""
    return each.id, each.submitted_at, each.state, each.version, len(each.runs)


def expected(db: JobDb, kind: str) -> list[tuple[object, ...]]:
    """What the walk should give, by jobs that are all kept."""
    found = list(map(told, list(WALKS[kind](db.snapshot()))))
    assert len(found) > COUNT // 3
    return found


@pytest.mark.parametrize("kind", WALKS)
def test_kept_jobs_never_change(kind: str) -> None:
    """INV-D10: whichever of them are kept, for however long, beside other walks of the same."""
    db, draw = full(), random.Random(kind)
    right = expected(db, kind)
    snap = db.snapshot()
    walks = [enumerate(WALKS[kind](snap)) for _ in range(3)]
    kept: dict[tuple[int, int], Job] = {}
    while walks:
        turn = draw.randrange(len(walks))
        found = next(walks[turn], None)
        if found is None:
            del walks[turn]
            continue
        place, each = found
        assert told(each) == right[place]
        if draw.random() < 0.4:
            kept[draw.randrange(1_000), place] = each
        while len(kept) > 40:
            del kept[draw.choice(list(kept))]
        if draw.random() < 0.01:
            gc.collect()
        for (_, place), each in kept.items():
            assert told(each) == right[place]


@pytest.mark.parametrize("kind", WALKS)
@pytest.mark.parametrize("taken", [1, 2, 3, 50])
def test_kept_jobs_outlive_the_walk_and_the_store(kind: str, taken: int) -> None:
    """The last ones too, of a walk that was left half-way; their records go with them."""
    gc.collect()
    before = record_memory()["records"]
    db = full()
    right = expected(db, kind)[:taken]
    walk = WALKS[kind](db.snapshot())
    kept = [next(walk) for _ in range(taken)]
    with db.write() as txn:
        txn.delete_many([each.id for each in db.snapshot()])
    del walk, db, txn
    gc.collect()
    assert record_memory()["records"] == before + taken
    others = jobs(100, prefix="others")
    assert list(map(told, kept)) == right
    assert [other.id for other in others] == [f"others-{n:06}" for n in range(100)]
    del kept, others
    assert record_memory()["records"] == before


@pytest.mark.parametrize("begin", ["write", "dry_run"])
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_jobs_of_a_transaction_outlive_it(begin: str, end: str) -> None:
    """Those staged in it too, which nothing else has after an abort."""
    db = full()
    txn = getattr(db, begin)()
    txn.upsert(job("staged", queue="queue-a", pools=("p",), submitted_at=0))
    walk = txn.queued("queue-a", "p")
    kept = [each for each, _ in zip(walk, range(5), strict=False)]
    right = list(map(told, kept))
    getattr(txn, end)()
    with db.write() as other:
        other.delete_many([each.id for each in db.snapshot()])
    del walk, txn, other
    jobs(100, prefix="others")
    assert list(map(told, kept)) == right
    assert "staged" in {each.id for each in kept}


def test_a_loop_left_by_an_exception_leaves_its_job_whole() -> None:
    """The job in hand is in the traceback's frame after the walk has gone."""
    db = full()
    right = expected(db, "pool")

    def fails(after: int) -> None:
        for place, each in enumerate(db.snapshot().queued("queue-a", "p")):
            if place == after:
                raise LookupError(each)

    for after in (0, 1, 2, 17, 40):
        with pytest.raises(LookupError) as caught:
            fails(after)
        for each in db.snapshot().queued("queue-a", "p"):
            assert each.version
        assert told(caught.value.args[0]) == right[after]


@pytest.mark.parametrize("kind", WALKS)
def test_containers_of_jobs_hold_each_once(kind: str) -> None:
    """What takes a walk as a whole, or looks one job back, sees no view twice."""
    db = full()
    right = expected(db, kind)
    snap = db.snapshot()
    assert list(map(told, tuple(WALKS[kind](snap)))) == right
    assert len(dict.fromkeys(WALKS[kind](snap))) == len(right)
    walk = WALKS[kind](snap)
    pairs = list(zip(walk, walk, strict=False))
    assert [told(each) for pair in pairs for each in pair] == right[: 2 * len(pairs)]
    before = None
    for place, each in enumerate(WALKS[kind](snap)):
        if before is not None:
            assert (told(before), told(each)) == (right[place - 1], right[place])
        before = each
    assert max(map(told, WALKS[kind](snap))) == max(right)


def test_threads_that_share_a_walk_get_each_job_once() -> None:
    """Between them; what one has in hand is not given to the other."""
    db = full()
    right = expected(db, "all")
    walk, found = iter(db.snapshot()), list[Job]()

    def take() -> None:
        for each in walk:
            was = told(each)
            found.append(each)
            assert told(each) == was

    threads = [threading.Thread(target=take) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(map(told, found)) == sorted(right)


def test_a_walk_whose_jobs_are_dropped_makes_two_views() -> None:
    """So that the tests above are of views that are used again."""
    views = set()
    for each in full().snapshot().queued("queue-a", "p"):
        views.add(id(each))
    assert len(views) == 2


def test_nobody_can_look_at_a_job_without_a_reference() -> None:
    """A weak reference would see a view turn into another job."""
    with pytest.raises(TypeError, match="weak reference"):
        weakref.ref(job())
