"""Many leases at once: the same rows and indices as upserts, and nothing on an error."""

import gc
import random

import numpy as np
import pytest

from kit.jobs import backing_off, gang, job, jobs, leased, requeued, run
from pyresched._core import JobIds
from pyresched.errors import (
    AwaitsReplacement,
    Conflict,
    DuplicateId,
    IllegalTransition,
    InputError,
    RunBelongsToOtherJob,
    TxnClosed,
)
from pyresched.jobdb import JobDb, record_memory
from pyresched.model import Job, JobState, Outcome, Run

NODES = [f"node-{n}" for n in range(5)]
FIRST = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def some_jobs(random_: random.Random, count: int) -> list[Job]:
    """Queued jobs of many kinds: in two pools or none, of gangs, with runs that ended."""
    made = []
    for n in range(count):
        one = job(
            f"job-{n:05}" if n % 3 else f"{n:05}-{'x' * 20}",
            queue=random_.choice("abc"),
            submitted_at=random_.randrange(50),
            priority=random_.randrange(3),
            pools=random_.choice([("default",), ("default", "gpu"), ("gpu",), ()]),
            validated=random_.random() < 0.5,
        )
        for _ in range(random_.randrange(3)):
            one = requeued(leased(one))
        made.append(one)
    return made + gang("g", size=4) + [leased(each) for each in jobs(7, prefix="leased")]


def by_upsert(db: JobDb, ids: list[str], run_ids: list[str], nodes: list[int], **fields) -> None:
    """What `lease_many` is the same as."""
    with db.write() as txn:
        for id, run_id, node in zip(ids, run_ids, nodes, strict=True):
            one = txn[id]
            new = Run(id=run_id, node_id=NODES[node], leased_at=9, **fields)
            txn.upsert(one.replace(state=JobState.LEASED, runs=(*one.runs, new)))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("leaf", [4, 32])
def test_leases_are_what_upserts_would_be(seed: int, leaf: int) -> None:
    """Every row and every index, whatever part of the store is leased, given by id or as a round gives them."""
    random_ = random.Random(seed)
    rows = some_jobs(random_, random_.choice([20, 700]))
    db, twin = (JobDb(seed=bytes(16), leaf=leaf, fanout=leaf) for _ in range(2))
    for each in (db, twin):
        with each.write() as txn:
            txn.upsert_many(rows)
    before = db.snapshot()
    was = list(before)
    queued = [each.id for each in rows if each.state is JobState.QUEUED]
    random_.shuffle(queued)
    while queued:
        ids = queued[: random_.choice([1, 5, 12, 60, 300])]
        del queued[: len(ids)]
        run_ids = [f"{'r' * random_.choice([1, 20])}-{id}" for id in ids]
        nodes = [random_.randrange(5) for _ in ids]
        fields = {"pool": "gpu", "priority": -3, "lease_expires_at": 99}
        by_upsert(twin, ids, run_ids, nodes, **fields)
        given = JobIds(db.snapshot(), ids) if random_.random() < 0.5 else ids
        with db.write() as txn:
            count = txn.lease_many(
                given,
                run_ids=run_ids,
                nodes=(np.array(nodes, dtype=np.int32), NODES),
                leased_at=9,
                **fields,
            )
        assert count == len(ids)
        after = db.snapshot()
        assert db.check(after) == []
        assert list(after) == list(twin.snapshot())
        assert list(after.leased()) == list(twin.snapshot().leased())
        for queue in "abc":
            assert list(after.queued(queue)) == list(twin.snapshot().queued(queue))
        assert [after.by_run(run_id).id for run_id in run_ids] == ids
    assert list(before) == was
    assert db.check(before) == []


def test_run_ids_may_be_counted() -> None:
    """From a ULID on, with a carry, in the order of the ids."""
    db = full()
    with db.write() as txn:
        txn.lease_many(
            ["job-000002", "job-000000", "job-000001"],
            run_ids="01ARZ3NDEKZZZZZZZZZZZZZZZZ"[:26],
            nodes="n",
            leased_at=1,
        )
    ids = [db.snapshot()[f"job-00000{n}"].runs[0].id for n in (2, 0, 1)]
    assert ids == [
        "01ARZ3NDEKZZZZZZZZZZZZZZZZ",
        "01ARZ3NDEM0000000000000000",
        "01ARZ3NDEM0000000000000001",
    ]


def full(count: int = 5) -> JobDb:
    """A db of *count* queued jobs."""
    db = JobDb()
    with db.write() as txn:
        txn.upsert_many(jobs(count))
    return db


def refused(db: JobDb, error: type[Exception], match: str, **fields) -> None:
    """A lease of two jobs with *fields* says *match* and changes nothing; the txn goes on."""
    before = list(db.snapshot())
    given = {
        "ids": ["job-000000", "job-000001"],
        "run_ids": ["r0", "r1"],
        "nodes": ([0, 1], NODES),
        "leased_at": 1,
    } | fields
    with db.write() as txn:
        with pytest.raises(error, match=match):
            txn.lease_many(given.pop("ids"), **given)
        assert list(txn) == before
        assert db.check(txn) == []


def test_what_cannot_be_leased_is_named_and_nothing_is() -> None:
    """Columns by name and row, jobs and runs by id."""
    db = full()
    refused(db, InputError, "no job 'nobody'", ids=["job-000000", "nobody"])
    refused(db, DuplicateId, "'job-000001' is to be leased twice", ids=["job-000001"] * 2)
    refused(db, InputError, "run_ids has 1 rows, ids have 2", run_ids=["r0"])
    refused(db, InputError, r"run_ids\[1\] must not be empty", run_ids=["r0", ""])
    refused(db, InputError, "'r' is no ULID", run_ids="r")
    refused(db, InputError, "fewer than 2 ULIDs come after", run_ids="7" + "Z" * 25)
    refused(db, RunBelongsToOtherJob, "'r' is of job '.*' and of job", run_ids=["r", "r"])
    refused(db, InputError, r"nodes\[1\]: code 5 is not from 0 to 4", nodes=([0, 5], NODES))
    refused(db, InputError, r"nodes\[0\]: code -1", nodes=([-1, 0], NODES))
    refused(db, InputError, "nodes has 1 rows", nodes=([0], NODES))
    refused(db, TypeError, "a node is a str, got 7", nodes=7)
    refused(db, TypeError, "pool is a str, got None", pool=None)
    refused(db, InputError, r"priority\[1\]: 2147483648 does not fit", priority=[0, 2**31])
    refused(db, TypeError, "leased_at", leased_at="soon")


def test_only_queued_jobs_are_leased() -> None:
    """Not one that runs, waits or has ended; nor one whose history a lease would lose."""
    db = full()
    waits = backing_off(leased(job("waits")))
    with db.write() as txn:
        txn.upsert_many([leased(job("runs")), waits, job("done", state=JobState.CANCELLED)])
        txn.upsert(job("due").replace(state=JobState.QUEUED, retry_delay=8))
    for id in ("runs", "waits", "done"):
        refused(db, IllegalTransition, f"'{id}' is .* cannot become leased", ids=["job-000000", id])
    refused(db, AwaitsReplacement, "1 rows .* first in row 1", ids=["job-000000", "due"])
    refused(
        db, RunBelongsToOtherJob, "'runs/run-1' belongs to job 'runs'", run_ids=["runs/run-1", "x"]
    )


def test_a_job_that_has_changed_is_not_leased_unseen() -> None:
    """Not if it is another version by now, gone, or its slot is somebody else's."""
    db = full()
    ids = JobIds(db.snapshot(), ["job-000000", "job-000001"])
    with db.write() as txn:
        txn.upsert(txn["job-000001"].replace(priority=5))
    refused(db, Conflict, "job-000001", ids=ids)
    with db.write() as txn:
        txn.delete_many(["job-000001"])
        txn.upsert(job("new"))
    refused(db, Conflict, "job-000001", ids=ids)
    refused(full(), InputError, "another db", ids=ids)


def test_a_dry_run_leases_too_and_can_be_applied() -> None:
    """It sees its leases; the db does when it is applied, unless a job changed."""
    db = full()
    with db.dry_run() as dry:
        dry.lease_many(["job-000003"], run_ids=["r"], nodes="n", leased_at=1)
        assert [each.id for each in dry.leased()] == ["job-000003"]
    assert not list(db.snapshot().leased())
    db.apply(dry)
    assert db.snapshot()["job-000003"].active_run == run("r", node_id="n", leased_at=1)
    with pytest.raises(TxnClosed):
        dry.lease_many([], run_ids=[], nodes="n", leased_at=1)


def test_no_jobs_are_leased_at_once() -> None:
    """Nothing to do is no error."""
    with full().write() as txn:
        assert txn.lease_many([], run_ids=[], nodes="n", leased_at=1) == 0


def test_history_is_kept_behind_a_new_run() -> None:
    """The runs that ended stay as they were, and views of the old version too."""
    db = JobDb()
    old = requeued(leased(job("a", gang=gang()[0].gang)), Outcome.LOST)
    with db.write() as txn:
        txn.upsert(old)
        txn.lease_many(["a"], run_ids=["again"], nodes="n", leased_at=7)
    new = db.snapshot()["a"]
    assert new.runs[:-1] == old.runs
    assert (new.version, new.gang, old.active_run) == (old.version + 1, old.gang, None)


def test_leases_that_are_taken_back_leave_nothing() -> None:
    """Not by an abort, an error or the end of the db; a commit keeps one record a job."""
    gc.collect()
    nothing = record_memory()
    db = full(600)
    ids = [f"job-{n:06}" for n in range(600)]
    fields = {"nodes": "n", "leased_at": 1}
    before = {**db.memory(), **record_memory()}
    for run_ids in ([f"{'r' * 20}{n}" for n in range(600)], FIRST):
        with db.dry_run() as dry:
            dry.lease_many(ids, run_ids=run_ids, **fields)
        with db.dry_run() as dry, pytest.raises(InputError):
            dry.lease_many(ids, run_ids=run_ids, **(fields | {"nodes": ([0] * 599 + [9], NODES)}))
        assert {**db.memory(), **record_memory()} == before
    with db.write() as txn:
        txn.lease_many(ids, run_ids=FIRST, **fields)
    assert record_memory()["records"] == before["records"]
    assert db.memory()["run_slots"] == 600
    assert db.memory()["lane_slots"] == 0
    del db, txn, dry
    gc.collect()
    assert record_memory() == nothing


class TestJobIds:
    """Ids that are made when read are a list."""

    def test_they_are_a_sequence(self) -> None:
        """By place, by slice, in a walk; the snapshot stays."""
        db = full()
        names = ["job-000003", "job-000001", "job-000004"]
        ids = JobIds(db.snapshot(), names)
        with db.write() as txn:
            txn.delete_many(names)
        assert list(ids) == names == [ids[i] for i in range(3)]
        assert [ids[i] for i in range(-3, 0)] == names
        assert list(ids[1:]) == names[1:]
        assert list(ids[::-2]) == names[::-2]
        assert len(ids) == 3
        assert "3 jobs of version 1" in repr(ids)
        with pytest.raises(IndexError, match="there are 3"):
            ids[3]

    def test_ids_of_nobody_are_named(self) -> None:
        """So is a second try to fill one."""
        db = full()
        with pytest.raises(KeyError, match="nobody"):
            JobIds(db.snapshot(), ["nobody"])
        ids = JobIds(db.snapshot(), [])
        with pytest.raises(TypeError, match="taken once"):
            ids.__init__(db.snapshot(), [])  # type: ignore[misc]
