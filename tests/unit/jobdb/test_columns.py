"""Columns in and out: the same jobs as by values, errors by column and row, no GIL needed."""

import threading
from array import array

import numpy as np
import pyarrow as pa
import pytest

from kit.jobs import job, leased, requirements
from pyresched.errors import DuplicateId, InputError, ReadOnly, TooManyJobs, TxnClosed
from pyresched.jobdb import JobDb
from pyresched.model import Gang, GroupRules, Job, JobState, ReschedulePolicy

NONE = -(2**63)
ULIDS = [f"01JZ{n:022d}" for n in range(6)]
NEEDS = [requirements(1), requirements(2)]
GANG = Gang("gang-1", 2)


def by_values() -> list[Job]:
    """The jobs that `by_columns` writes."""
    return [
        Job(
            id=ULIDS[n],
            queue="ab"[n % 2],
            requirements=NEEDS[n // 3],
            submitted_at=10 - n,
            priority=n,
            gang=GANG if n < 2 else None,
            job_set="set",
            pools=("default", "gpu")[: 1 + n % 2],
            job_type="service",
            policy=ReschedulePolicy(attempts=n % 2),
            rules=GroupRules(version=n % 2),
            validated=True,
            payload=f"payload-{n}" if n else None,
        )
        for n in range(6)
    ]


def by_columns(db: JobDb, ids: object) -> int:
    """Write them."""
    codes = np.array([n % 2 for n in range(6)], dtype=np.int32)
    with db.write() as txn:
        return txn.upsert_columns(
            ids=ids,  # type: ignore[arg-type]
            submitted_at=np.arange(10, 4, -1, dtype=np.int64),
            queue=(codes, ["a", "b"]),
            requirements=(array("i", [0, 0, 0, 1, 1, 1]), NEEDS),
            priority=[0, 1, 2, 3, 4, 5],
            gang=([0, 0, -1, -1, -1, -1], [GANG]),
            job_set="set",
            pools=(codes, [("default",), ("default", "gpu")]),
            job_type="service",
            policy=(codes, [ReschedulePolicy(attempts=n) for n in range(2)]),
            rules=(codes, [GroupRules(version=n) for n in range(2)]),
            validated=True,
            payload=[None, *(f"payload-{n}" for n in range(1, 6))],
        )


@pytest.mark.parametrize("form", ["list", "cells", "arrow", "sliced arrow"])
def test_columns_give_the_same_jobs_as_values(form: str) -> None:
    """Every field, every index, whatever the form of the ids."""
    ids: object = ULIDS
    if form == "cells":
        ids = np.array(ULIDS, dtype="S26")
    elif form == "arrow":
        ids = pa.array(ULIDS)
    elif form == "sliced arrow":
        ids = pa.array(["x", *ULIDS, "y"])[1:7]
    db, twin = JobDb(), JobDb()
    assert by_columns(db, ids) == 6
    with twin.write() as txn:
        txn.upsert_many(by_values())
    assert list(db.snapshot()) == list(twin.snapshot())
    assert list(db.snapshot().queued("b", "gpu")) == list(twin.snapshot().queued("b", "gpu"))
    assert db.snapshot().gang("a", "gang-1") == twin.snapshot().gang("a", "gang-1")
    assert db.check(db.snapshot()) == []


@pytest.mark.parametrize("width", [3, 16, 17, 40])
def test_ids_of_any_width_come_as_cells(width: int) -> None:
    """Short ones in the column, long ones beside it, padding cut off; not only ASCII."""
    ids = [f"{n}".rjust(width, "x") for n in range(4)]
    ids[0] = "\N{LATIN SMALL LETTER O WITH DIAERESIS}"
    db = JobDb()
    cells = np.array([each.encode() for each in ids])
    with db.write() as txn:
        txn.upsert_columns(ids=cells, submitted_at=1, queue="a", requirements=NEEDS[0])
    assert {each.id for each in db.snapshot()} == set(ids)
    assert db.check(db.snapshot()) == []


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"ids": ["a", ""]}, InputError, r"ids\[1\] must not be empty"),
        ({"ids": np.array([b"a", b""])}, InputError, r"ids\[1\] must not be empty"),
        ({"ids": ["a", 7]}, TypeError, r"ids\[1\] is a str"),
        ({"ids": ["a", "x" * 256]}, ValueError, "at most 255 bytes"),
        ({"ids": 7}, TypeError, "ids are a list of str or a buffer"),
        ({"ids": np.arange(2)}, InputError, "bytes of fixed width"),
        ({"ids": pa.array(["a", None])}, InputError, r"ids\[1\] is null; each row needs a value"),
        ({"ids": pa.array([1, 2])}, InputError, "ids: .* string or large_string .* got int64"),
        ({"submitted_at": pa.array([0, None])}, InputError, r"submitted_at\[1\] is null"),
        ({"priority": pa.array([0, 1], pa.int32())}, InputError, "type int64 is needed, got int32"),
        ({"queue": ["a", 7]}, TypeError, r"queue\[1\] is a str, got 7"),
        ({"queue": ["a"]}, InputError, "queue has 1 rows, ids have 2"),
        ({"queue": np.array([b"a", b"\xff"])}, InputError, r"queue\[1\] is not UTF-8"),
        ({"queue": pa.array(["a", None])}, InputError, r"queue\[1\] is null"),
        ({"queue": pa.array([1, 2])}, InputError, "queue: an Arrow column of values by dictionary"),
        (
            {"queue": (np.zeros(2, np.uint8), ["a"])},
            InputError,
            "queue: codes .* are int8 to int64, got format 'B'",
        ),
        (
            {"queue": np.unique(np.array(["a", "b"]), return_inverse=True)},
            InputError,
            r"queue: codes \(first, then their values\) are int8 to int64",
        ),
        ({"ids": np.array([b"a", b"b", b"c", b"d"])[::2]}, InputError, "ids: a contiguous buffer"),
        ({"submitted_at": None}, InputError, "submitted_at is an int or an int64 buffer"),
        ({"submitted_at": [0, "x"]}, InputError, r"submitted_at\[1\]: 'x' cannot be"),
        ({"priority": [2**70, 0]}, InputError, r"priority\[0\]: 1180591620717411303424 cannot be"),
        ({"queue": ([0, "x"], ["a", "b"])}, InputError, r"queue\[1\]: 'x' cannot be"),
        ({"queue": ([0, 0], None)}, TypeError, "queue: codes go with the list"),
        (
            {"submitted_at": np.zeros(3, np.int64)},
            InputError,
            "submitted_at has 3 rows, ids have 2",
        ),
        ({"submitted_at": np.zeros(2, np.float64)}, InputError, "submitted_at: a contiguous int64"),
        ({"priority": [0, -1]}, InputError, r"priority\[1\] must be from 0 to 4294967295, got -1"),
        ({"queue": ([0, 2], ["a", "b"])}, InputError, r"queue\[1\]: code 2 is not from 0 to 1"),
        ({"queue": ([0, -1], ["a", "b"])}, InputError, r"queue\[1\]: code -1"),
        ({"queue": ([0], ["a"])}, InputError, "queue has 1 rows, ids have 2"),
        ({"queue": ""}, InputError, "a job needs a queue"),
        ({"queue": 3}, TypeError, "queue is a str"),
        ({"requirements": "1 cpu"}, TypeError, "requirements is a Requirements"),
        ({"pools": ["default"]}, TypeError, "pools is a tuple"),
        ({"pools": (1,)}, TypeError, "a pool is a str"),
        ({"gang": "gang-1"}, TypeError, "gang is a Gang or None"),
        ({"validated": ([0, 1], [True, False])}, TypeError, "one bool for all rows, got tuple"),
        ({"payload": [1]}, InputError, "payload has 1 rows, ids have 2"),
        ({"requirements": requirements(priority_class="x")}, InputError, "no priority class 'x'"),
        ({"ids": ["a", "a"], "priority": [1, 2]}, DuplicateId, "'a' is in one batch twice"),
    ],
)
def test_a_column_that_cannot_be_is_refused_whole(
    wrong: dict[str, object], error: type[Exception], message: str
) -> None:
    """By name and row, before anything is written."""
    db = JobDb()
    columns: dict[str, object] = {
        "ids": ["a", "b"],
        "submitted_at": 0,
        "queue": "a",
        "requirements": NEEDS[0],
    }
    with db.write() as txn:
        with pytest.raises(error, match=message):
            txn.upsert_columns(**{**columns, **wrong})  # type: ignore[arg-type]
        assert len(txn) == 0
        assert txn.upsert_columns(**columns) == 2  # type: ignore[arg-type]
    assert db.check(db.snapshot()) == []


def test_an_arrow_column_by_dictionary_may_name_no_gang_and_several_pools() -> None:
    """A null is no gang; a list of pools is taken as the tuple that it means."""
    db = JobDb()
    pools = pa.DictionaryArray.from_arrays([0, 1, 0], pa.array([["p"], ["p", "q"]]))

    class Values:
        """What they stand for."""

        def to_pylist(self) -> list[Gang]:
            return [GANG]

    class Gangs:
        """What pyarrow cannot hold: values of Python by dictionary."""

        type = "dictionary"
        null_count = 1
        offset = 0
        indices = pa.array([0, None, 0], pa.int8())
        dictionary = Values()

        def buffers(self) -> list[object]:
            raise AssertionError

    with db.write() as txn:
        txn.upsert_columns(
            ids=pa.chunked_array([["a"], ["b", "c"]]),
            submitted_at=0,
            queue="x",
            requirements=NEEDS[0],
            pools=pools,
            gang=Gangs(),
        )
    snap = db.snapshot()
    assert [each.pools for each in snap] == [("p",), ("p", "q"), ("p",)]
    assert [each.gang for each in snap] == [GANG, None, GANG]
    with pytest.raises(ReadOnly, match="a snapshot"):
        snap.upsert_columns(ids=["d"])


def test_a_row_twice_with_equal_content_is_one() -> None:
    """As in a batch of values; and a batch may be large enough for a table."""
    db = JobDb()
    ids = [f"job-{n % 700}" for n in range(2_000)]
    with db.write() as txn:
        assert txn.upsert_columns(ids=ids, submitted_at=3, queue="a", requirements=NEEDS[0]) == 700
    assert len(db.snapshot()) == 700
    assert db.check(db.snapshot()) == []


def test_a_full_store_takes_no_columns() -> None:
    """All or none."""
    db = JobDb(most_jobs=3)
    with db.write() as txn:
        with pytest.raises(TooManyJobs, match="4 more jobs do not fit"):
            txn.upsert_columns(ids=list("abcd"), submitted_at=0, queue="a", requirements=NEEDS[0])
        assert len(txn) == 0
    with pytest.raises(TxnClosed):
        txn.upsert_columns(ids=[], submitted_at=0, queue="a", requirements=NEEDS[0])


def test_columns_out_say_what_the_jobs_say() -> None:
    """Of all in submit order, of some in their order, of none that is there."""
    db = JobDb()
    rows = [
        job("queued", submitted_at=5, priority=3),
        leased(job("leased", submitted_at=2, validated=True)),
        job("waits", state=JobState.BACKING_OFF, failed_at=7, eligible_at=9, submitted_at=2),
        job("ended", state=JobState.FAILED, ended_at=11, submitted_at=1),
    ]
    with db.write() as txn:
        txn.upsert_many(rows)
    snap = db.snapshot()
    names = ("state", "priority", "submitted_at", "version", "validated", "runs")
    columns = snap.columns(*names, "failed_at", "eligible_at", "ended_at", "leased_at")
    for name in names:
        expected = [len(each.runs) if name == "runs" else int(getattr(each, name)) for each in snap]
        assert columns[name].tolist() == expected, name
    assert [each.id for each in snap] == ["ended", "leased", "waits", "queued"]
    assert columns["failed_at"].tolist() == [NONE, NONE, 7, NONE]
    assert columns["eligible_at"].tolist() == [NONE, NONE, 9, NONE]
    assert columns["ended_at"].tolist() == [11, NONE, NONE, NONE]
    assert columns["leased_at"].tolist() == [NONE, rows[1].runs[0].leased_at, NONE, NONE]
    for ids in (["queued", "nobody", "leased"], np.array([b"queued", b"nobody", b"leased"])):
        assert snap.columns("priority", ids=ids)["priority"].tolist() == [3, NONE, 0]
    assert snap.columns("state", ids=[])["state"].tolist() == []
    assert np.asarray(columns["state"]).dtype == np.int64
    with pytest.raises(InputError, match="no column 'colour'; there are: state, priority"):
        snap.columns("colour")
    with db.write() as txn:
        txn.delete_many(["queued"])
        assert len(txn.columns("state")["state"]) == 3


def test_columns_of_a_snapshot_do_not_see_a_writer() -> None:
    """The GIL is let go meanwhile, and the writer goes on."""
    db = JobDb()
    ids = np.array([f"01JZ{n:022d}" for n in range(20_000)], dtype="S26")
    with db.write() as txn:
        txn.upsert_columns(ids=ids, submitted_at=0, queue="a", requirements=NEEDS[0])
    snap = db.snapshot()
    expected = [0] * len(ids)
    stop = threading.Event()

    def write() -> None:
        n = 0
        while not stop.is_set():
            with db.write() as txn:
                txn.upsert(txn[ids[n % 500].decode()].replace(priority=1 + n))
            n += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            assert snap.columns("priority")["priority"].tolist() == expected
            assert snap.columns("priority", ids=ids)["priority"].tolist() == expected
    finally:
        stop.set()
        writer.join()
    assert max(db.snapshot().columns("priority")["priority"]) > 0


@pytest.mark.parametrize("leaf", [4, 32])
@pytest.mark.parametrize("hash_bits", [3, 32])
def test_a_store_filled_at_once_is_the_one_filled_job_by_job(leaf: int, hash_bits: int) -> None:
    """Every state, gangs, runs, pools named twice, times out of order: the same in every index."""
    states = list(JobState)
    rows = [
        job(
            f"job-{n * 7919 % 1_200:05}",
            queue=f"queue-{n % 5}",
            submitted_at=n * 31 % 97,
            priority=n % 3,
            pools=(("a",), ("b", "a", "b"), ())[n % 3],
            gang=Gang(f"gang-{n % 40}", 2) if n % 4 == 0 else None,
            state=states[n % len(states)],
            eligible_at=n % 11,
            validated=n % 2 == 0,
        )
        for n in range(1_200)
    ]
    rows = [
        leased(each) if each.state is JobState.LEASED else each
        for each in (row.replace(version=1) for row in rows)
    ]
    rows = [
        each.replace(runs=(each.runs[0].replace(id=f"run-{each.id}"),)) if each.runs else each
        for each in rows
    ]
    once = JobDb(leaf=leaf, fanout=leaf, hash_bits=hash_bits)
    singly = JobDb(leaf=leaf, fanout=leaf, hash_bits=hash_bits)
    with once.write() as txn:
        txn.upsert_many(rows)
    with singly.write() as txn:
        for each in rows:
            txn.upsert(each)
    ours, theirs = once.snapshot(), singly.snapshot()
    assert once.check(ours) == []
    assert list(ours) == list(theirs)
    for read in ("leased", "unvalidated", "backing_off", "queues"):
        assert list(getattr(ours, read)()) == list(getattr(theirs, read)()), read
    for n in range(5):
        assert list(ours.queued(f"queue-{n}")) == list(theirs.queued(f"queue-{n}"))
        assert list(ours.queued(f"queue-{n}", "b")) == list(theirs.queued(f"queue-{n}", "b"))
        assert ours.gang(f"queue-{n}", "gang-8") == theirs.gang(f"queue-{n}", "gang-8")
    with once.write() as txn:
        txn.delete_many([each.id for each in rows])
        txn.upsert_many(rows[:600])
        assert once.check(txn) == []
    txn = once.write()
    txn.delete_many([each.id for each in rows])
    txn.upsert_many(rows)
    txn.abort()
    assert once.check(once.snapshot()) == []
    assert len(once.snapshot()) == 600


@pytest.mark.parametrize("times", ["ascend", "alike", "anyhow", "far apart"])
@pytest.mark.parametrize("priorities", [1, 3, 2**32])
def test_lanes_that_are_filled_at_once_are_in_order(times: str, priorities: int) -> None:
    """By priority, submit time and id, whatever differs: in one byte of a word or in many."""
    draw = np.random.default_rng(7)
    count = 3_000
    submitted = {
        "ascend": np.arange(count) * 1_000,
        "alike": np.full(count, 5),
        "anyhow": draw.integers(0, 100, size=count),
        "far apart": draw.integers(NONE + 1, 2**63 - 1, size=count),
    }[times].astype(np.int64)
    urgency = draw.integers(0, priorities, size=count)
    ids = [f"job-{n:05}" for n in draw.permutation(count)]
    db = JobDb()
    with db.write() as txn:
        txn.upsert_columns(
            ids=ids,
            submitted_at=submitted,
            queue=(draw.integers(0, 3, size=count).astype(np.int32), ["a", "b", "c"]),
            requirements=NEEDS[0],
            priority=urgency,
            gang=(draw.integers(-1, 2, size=count).astype(np.int32), [GANG, Gang("gang-2", 9)]),
        )
    snap = db.snapshot()
    rows = sorted(snap, key=lambda each: (each.priority, each.submitted_at, each.id))
    for queue in "abc":
        assert list(snap.queued(queue)) == [each for each in rows if each.queue == queue]
    assert list(snap) == sorted(rows, key=lambda each: (each.submitted_at, each.id))
    assert db.check(snap) == []
