"""What the db and its parts say of themselves, and of arguments that cannot be."""

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kit.jobs import job, jobs, requirements, run
from pyresched.config import SchedulingConfig
from pyresched.errors import InputError, ReadOnly
from pyresched.jobdb import JobDb, Order, Snapshot, Txn
from pyresched.model import Gang, Job, Requirements, RescheduleEvent, ResourceVector, Run


def filled() -> JobDb:
    """Four jobs in two queues."""
    db = JobDb()
    with db.write() as txn:
        txn.upsert_many([*jobs(3), job("other", queue="queue-b")])
    return db


def test_a_db_and_its_readers_say_what_they_hold() -> None:
    """Version, jobs, queues: what one looks for at a prompt."""
    db = filled()
    assert repr(db) == "<JobDb version 1, 4 jobs, 2 queues>"
    assert repr(db.snapshot()) == "<Snapshot version 1, 4 jobs, 2 queues>"
    with db.write() as txn:
        txn.delete_many(["other"])
        assert repr(txn) == "<Txn over version 1, 3 jobs staged>"
    assert repr(txn) == "<Txn closed>"
    assert repr(db) == "<JobDb version 2, 3 jobs, 1 queue>"


def test_a_dry_run_says_what_it_would_apply() -> None:
    """Until it has been applied, or aborted."""
    db = filled()
    with db.dry_run() as trial:
        trial.upsert(job("new"))
        assert repr(trial) == "<DryRun over version 1, 5 jobs staged>"
    assert repr(trial) == "<DryRun closed, 1 change to apply>"
    db.apply(trial)
    assert repr(trial) == "<DryRun closed>"
    with db.dry_run() as trial:
        trial.delete_many(["new", "other"])
    assert repr(trial) == "<DryRun closed, 2 changes to apply>"


def test_a_walk_says_what_it_goes_over() -> None:
    """Also when its transaction has ended."""
    db = filled()
    assert repr(db.snapshot().queued("queue-a")) == (
        "<Walk over <Snapshot version 1, 4 jobs, 2 queues>>"
    )
    with db.write() as txn:
        walk = iter(txn)
    assert repr(walk) == "<Walk over <Txn closed>>"


@pytest.mark.parametrize("kind", [JobDb, Snapshot, Txn])
def test_what_was_never_made_has_a_repr_too(kind: type) -> None:
    """A debugger shows whatever there is."""
    shown = repr(kind.__new__(kind))
    assert shown in (f"<{kind.__name__} that was never made>", f"<{kind.__name__} closed>")


def test_a_config_names_its_parts() -> None:
    """The first few of each."""
    assert repr(SchedulingConfig()) == (
        "<SchedulingConfig resources cpu, memory; classes default, best-effort; pools default>"
    )


NEEDS = requirements()


def loaded(**columns: object) -> JobDb:
    """A db with two jobs from columns."""
    db = JobDb()
    given: dict[str, Any] = {
        "ids": ["a", "b"],
        "submitted_at": 0,
        "queue": "q",
        "requirements": NEEDS,
    }
    with db.write() as txn:
        txn.upsert_columns(**{**given, **columns})
    return db


WRONG: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "priority": (
        lambda: job("a").replace(priority="x"),  # type: ignore[arg-type]
        TypeError,
        "priority is a whole number, got 'x'",
    ),
    "a fraction": (
        lambda: job("a").replace(submitted_at=1.5),  # type: ignore[arg-type]
        TypeError,
        "submitted_at is a whole number, got 1.5",
    ),
    "an instant past int64": (
        lambda: job("a", submitted_at=2**70),
        OverflowError,
        f"submitted_at must be from -2**63 to 2**63 - 1, got {2**70}",
    ),
    "a wait past int64": (
        lambda: job("a").replace(eligible_at=-(2**70)),
        OverflowError,
        f"eligible_at must be from -2**63 to 2**63 - 1, got {-(2**70)}",
    ),
    "a priority past its range": (
        lambda: job("a").replace(priority=2**70),
        ValueError,
        f"job 'a': priority must be from 0 to 4294967295, got {2**70}",
    ),
    "a mistyped field": (
        lambda: job("a").replace(priorty=3),  # type: ignore[call-arg]
        TypeError,
        "a job has no field 'priorty'; did you mean 'priority'?",
    ),
    "a mistyped field of a run": (
        lambda: run().replace(nod_id="x"),  # type: ignore[call-arg]
        TypeError,
        "a run has no field 'nod_id'; did you mean 'node_id'?",
    ),
    "a state": (
        lambda: job("a").replace(state=99),  # type: ignore[arg-type]
        ValueError,
        "job 'a': no such state 99; give a JobState",
    ),
    "a run's lease": (
        lambda: Run(id="r", node_id="n", leased_at="x"),  # type: ignore[arg-type]
        TypeError,
        "leased_at is a whole number, got 'x'",
    ),
    "an event's delay": (
        lambda: RescheduleEvent(time=1, previous_run="r", previous_node="n", delay=None),  # type: ignore[arg-type]
        TypeError,
        "delay is a whole number, got None",
    ),
    "a gang's size": (
        lambda: Gang("g", "x"),  # type: ignore[arg-type]
        TypeError,
        "cardinality is a whole number, got 'x'",
    ),
    "an amount": (
        lambda: ResourceVector([1, "x"]),  # type: ignore[list-item]
        TypeError,
        "amount 1 is a whole number, got 'x'",
    ),
    "an amount past int64": (
        lambda: ResourceVector([2**70]),
        OverflowError,
        f"amount 0 must be from -2**63 to 2**63 - 1, got {2**70}",
    ),
    "a config": (
        lambda: JobDb("x.toml"),  # type: ignore[arg-type]
        TypeError,
        "config is a SchedulingConfig, got 'x.toml'; load_config() reads one from a file",
    ),
    "a limit": (
        lambda: JobDb(most_jobs="x"),  # type: ignore[arg-type]
        TypeError,
        "most_jobs is a whole number or None, got 'x'",
    ),
    "a limit below 1": (
        lambda: JobDb(most_jobs=0),
        ValueError,
        "most_jobs must be from 1 to 4294967295, got 0",
    ),
    "a timeout": (
        lambda: JobDb().write("x"),  # type: ignore[arg-type]
        TypeError,
        "timeout is in seconds, or None to wait for ever; got 'x'",
    ),
    "a time": (
        lambda: JobDb().snapshot().backing_off(2**70),
        OverflowError,
        f"before must be from -2**63 to 2**63 - 1, got {2**70}",
    ),
    "an order": (
        lambda: JobDb().snapshot().queued("q", order="market"),  # type: ignore[arg-type]
        TypeError,
        "order is an Order, got 'market'",
    ),
    "a part of a config": (
        lambda: SchedulingConfig(resources=("cpu",)),  # type: ignore[arg-type]
        TypeError,
        "resources[0] is a Resource, got 'cpu'",
    ),
    "a read of a db": (
        lambda: JobDb().get("a"),  # type: ignore[attr-defined]
        AttributeError,
        (
            "a db has no 'get': its snapshot() is read, a transaction of its write() is read and "
            "written"
        ),
    ),
    "what nobody has": (
        lambda: JobDb().nothing,  # type: ignore[attr-defined]
        AttributeError,
        "'JobDb' object has no attribute 'nothing'",
    ),
    "a pair the wrong way round": (
        lambda: loaded(queue=(["q"], array("i", [0, 0]))),
        InputError,
        "queue: a pair is the codes and then what they stand for; these are swapped",
    ),
    "one payload for all": (
        lambda: loaded(payload=3),
        TypeError,
        "payload is None or a list, one for each row; got 3",
    ),
    "a priority for all rows": (
        lambda: loaded(priority=2**70),
        OverflowError,
        f"priority must be from -2**63 to 2**63 - 1, got {2**70}",
    ),
    "a snapshot to load": (
        lambda: JobDb().snapshot().upsert_columns(ids=["a"]),
        ReadOnly,
        "a snapshot (here of version 0) cannot be changed; open a transaction with write()",
    ),
    "a db to check": (
        lambda: JobDb().check(JobDb()),  # type: ignore[arg-type]
        TypeError,
        (
            "a snapshot or transaction is checked, got <JobDb version 0, 0 jobs, 0 queues>; "
            "pass a db's snapshot()"
        ),
    ),
}


@pytest.mark.parametrize(("use", "error", "told"), WRONG.values(), ids=WRONG)
def test_an_argument_that_cannot_be_is_named(
    use: Callable[[], object], error: type[Exception], told: str
) -> None:
    """Field, value, and what would be right; in one line."""
    with pytest.raises(error) as raised:
        use()
    assert type(raised.value) is error
    assert str(raised.value) == told


def test_whole_numbers_of_any_kind_are_taken() -> None:
    """NumPy's, and whatever else has `__index__`."""
    made = Job(
        id="a",
        queue="q",
        requirements=Requirements(ResourceVector(np.array([1, 2]))),
        submitted_at=np.int64(3),
        priority=np.uint8(4),
        gang=Gang("g", np.int32(2)),
        runs=(Run(id="r", node_id="n", leased_at=np.uint32(5), priority=np.int16(6)),),
    ).replace(eligible_at=np.int64(7), retry_delay=np.uint64(8), version=np.int64(9))
    assert (made.submitted_at, made.priority, made.version) == (3, 4, 9)
    assert (made.eligible_at, made.retry_delay) == (7, 8)
    assert (made.runs[0].leased_at, made.runs[0].priority) == (5, 6)
    assert type(made.submitted_at) is type(made.eligible_at) is int
    db = JobDb(most_jobs=np.int64(3))
    with db.write(np.float32(1)) as txn:
        txn.upsert(made)
    assert not list(db.snapshot().backing_off(np.int64(7)))
    assert list(db.snapshot().queued("q", None, Order.MARKET)) == [made]
    snap = loaded(submitted_at=np.int64(5), priority=np.uint8(6)).snapshot()
    assert [(each.submitted_at, each.priority) for each in snap] == [(5, 6), (5, 6)]
