"""Odd values where the store meets them: they end in an error, never in a crash.

A value or a reader may never have been made, a policy may run code when it is compared or let go,
a buffer may be written to while it is read.
"""

import threading
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np
import pytest

from kit.jobs import job, jobs, requirements, run
from pyresched.errors import DuplicateId, InputError, WriterBusy
from pyresched.jobdb import JobDb, record_memory
from pyresched.model import (
    Gang,
    Job,
    JobState,
    Requirements,
    RescheduleEvent,
    RescheduleTracker,
    ResourceVector,
    Run,
)

NEEDS = requirements()
READS: dict[str, Callable[[Any], object]] = {
    "get": lambda snap: snap.get("a"),
    "len": len,
    "iter": list,
    "version": lambda snap: snap.version,
    "queues": lambda snap: snap.queues(),
    "diff": lambda snap: snap.diff(snap),
    "columns": lambda snap: snap.columns("state"),
    "gang": lambda snap: snap.gang("a", "b"),
    "upsert": lambda snap: snap.upsert(job()),
}
USES: dict[str, Callable[[JobDb], object]] = {
    "snapshot": lambda db: db.snapshot(),
    "write": lambda db: db.write(),
    "dry_run": lambda db: db.dry_run(),
    "version": lambda db: db.version,
    "memory": lambda db: db.memory(),
}


def counted() -> list[int]:
    """What there is of records and what they lead to."""
    memory = record_memory()
    return [memory["records"], memory["kinds"], memory["colds"], memory["trackers"]]


class TestNeverMade:
    """What `__new__` gives without `__init__`."""

    @pytest.mark.parametrize("use", READS.values(), ids=READS)
    def test_a_reader_without_a_db_says_so(self, use: Callable[[Any], object]) -> None:
        """Every use of it raises."""
        kind = type(JobDb().snapshot())
        with pytest.raises(TypeError, match="readers are made by JobDb"):
            use(kind.__new__(kind))

    def test_a_walk_without_a_reader_says_so(self) -> None:
        """The same for a walk."""
        kind = type(iter(JobDb().snapshot()))
        with pytest.raises(TypeError, match="walks are made by readers"):
            next(kind.__new__(kind))

    @pytest.mark.parametrize("use", USES.values(), ids=USES)
    def test_a_db_that_forgot_to_begin_says_so(self, use: Callable[[JobDb], object]) -> None:
        """A subclass whose `__init__` does not call that of `JobDb`."""

        class Forgetful(JobDb):
            def __init__(self) -> None:
                pass

        with pytest.raises(TypeError, match="Forgetful has no store yet"):
            use(Forgetful())

    def test_a_run_or_an_event_is_in_no_job(self) -> None:
        """It has no id, so no index could hold it."""
        nothing = Run.__new__(Run)
        for use in (lambda: job(runs=(nothing,)), lambda: nothing.replace(ended_at=None)):
            with pytest.raises(TypeError, match="the run was never made"):
                use()
        with pytest.raises(TypeError, match="the event was never made"):
            RescheduleTracker(events=(RescheduleEvent.__new__(RescheduleEvent),))

    def test_a_run_that_was_refused_is_none(self) -> None:
        """Nothing of a failed `__init__` can be used."""
        refused = Run.__new__(Run)
        with pytest.raises(ValueError, match="'run-1': ended_at and outcome go together"):
            refused.__init__(id="run-1", node_id="n", leased_at=0, ended_at=5)
        with pytest.raises(TypeError, match="the run was never made"):
            job(runs=(refused,))


@pytest.mark.parametrize(
    ("made", "fields"),
    [
        (Gang("gang-1", 2), {"id": "gang-2", "cardinality": 3}),
        (requirements(1), {"resources": ResourceVector((2,))}),
        (
            RescheduleEvent(time=1, previous_run="run-1", previous_node="n", delay=2),
            {"time": 3, "previous_run": "run-2", "previous_node": "n", "delay": 2},
        ),
        (run(), {"id": "run-2", "node_id": "n", "leased_at": 0}),
        (job(), {"id": "job-2", "queue": "b", "requirements": NEEDS, "submitted_at": 0}),
        (
            RescheduleTracker(
                events=(RescheduleEvent(time=1, previous_run="r", previous_node="n", delay=2),)
            ),
            {},
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_is_made_once(
    made: Gang | Requirements | RescheduleEvent | Run | Job | RescheduleTracker,
    fields: dict[str, Any],
) -> None:
    """A second `__init__` would change what stores and other jobs share."""
    before = repr(made), hash(made)
    with pytest.raises(TypeError, match="made once"):
        made.__init__(**fields)
    assert (repr(made), hash(made)) == before


def test_jobs_within_jobs_go_however_deep() -> None:
    """The end of a long chain of payloads does not run out of stack."""
    before = counted()
    last = None
    for n in range(500_000):
        last = Job(id=f"{n}", queue="a", requirements=NEEDS, submitted_at=0, payload=last)
    del last
    assert counted() == before


class TestPolicies:
    """Equal policies are one, found by their own `__hash__` and `__eq__`."""

    def test_a_comparison_may_make_and_drop_jobs(self) -> None:
        """The search ends though each comparison changes what is searched."""
        fresh = count()

        class Busy:
            def __init__(self, value: int) -> None:
                self.value = value

            def __hash__(self) -> int:
                return 7

            def __eq__(self, other: object) -> bool:
                job(queue=f"queue-{next(fresh)}")
                return isinstance(other, Busy) and self.value == other.value

        made = [job(policy=Busy(n % 3)) for n in range(9)]
        assert len({id(each.policy) for each in made}) == 3
        assert made[1] == made[4].replace(version=1)

    def test_a_policy_that_can_be_changed_is_refused(self) -> None:
        """Jobs share it: a change of one would be a change of all."""
        with pytest.raises(TypeError, match="unhashable"):
            job(policy={"attempts": 1})
        with pytest.raises(TypeError, match="unhashable"):
            job().replace(policy=[])

    def test_a_job_that_was_never_made_has_no_next_version(self) -> None:
        """It has no queue that a store could put it in."""
        with pytest.raises(TypeError, match="never made"):
            Job.__new__(Job).replace(id="x")

    def test_a_policy_that_dies_while_it_is_compared_makes_no_second_one(self) -> None:
        """What its end makes is found by who was comparing."""
        box: list[Job] = []
        heirs: list[Job] = []

        class Heir:
            def __hash__(self) -> int:
                return 7

            def __eq__(self, other: object) -> bool:
                box.clear()
                return isinstance(other, Heir)

        class Mortal:
            def __hash__(self) -> int:
                return 7

            def __eq__(self, other: object) -> bool:
                box.clear()
                return self is other

            def __del__(self) -> None:
                if not heirs:
                    heirs.append(job(policy=Heir()))

        box.append(job(policy=Mortal()))
        made = job(policy=Heir())
        assert heirs == [made]
        assert heirs[0].policy is made.policy

    def test_a_comparison_that_raises_leaves_no_job(self) -> None:
        """Its exception is the caller's."""

        class Angry:
            def __hash__(self) -> int:
                return 7

            def __eq__(self, other: object) -> bool:
                raise ZeroDivisionError

        first = job(policy=Angry())
        before = counted()
        with pytest.raises(ZeroDivisionError):
            job(policy=Angry())
        assert counted() == before
        assert job(policy=first.policy) == first


class TestColumns:
    """Buffers that are not what they were when they were looked at."""

    @pytest.mark.parametrize(
        "column", [("queue", ["a", "b"]), ("gang", [Gang("gang-1", 2)])], ids=["queue", "gang"]
    )
    def test_codes_may_be_written_to_meanwhile(
        self, db: JobDb, column: tuple[str, Sequence[object]]
    ) -> None:
        """A code that went bad after the first look is refused like any other."""
        name, values = column
        codes = np.zeros(100, np.int32)

        class Meddler:
            def __hash__(self) -> int:
                codes[:] = 10_000_000
                return 1

        with db.write() as txn:
            with pytest.raises(InputError, match=rf"{name}\[\d+\]: code 10000000 is not from"):
                txn.upsert_columns(
                    ids=[f"job-{n}" for n in range(100)],
                    submitted_at=0,
                    requirements=NEEDS,
                    policy=Meddler(),
                    **{"queue": "a", name: (codes, values)},  # type: ignore[arg-type]
                )
            assert len(txn) == 0

    @pytest.mark.parametrize(
        ("first", "offsets", "message"),
        [
            (0, [0, 1_000_000, 2_000_000], r"ids\[0\] must not be empty"),
            (0, [0, -7, 1], r"ids\[0\] must not be empty"),
            (0, [0, 1], "2 rows from 0 on need more offsets"),
            (1_000_000, [0, 1, 2], "2 rows from 1000000 on need more offsets"),
            (-1, [0, 1, 2], "2 rows from -1 on need more offsets"),
        ],
    )
    def test_offsets_that_lead_elsewhere_are_refused(
        self, db: JobDb, first: int, offsets: list[int], message: str
    ) -> None:
        """An Arrow column is what its producer says it is; nobody has checked."""

        class Column:
            type = "string"
            null_count = 0
            offset = first

            def __len__(self) -> int:
                return 2

            def buffers(self) -> list[object]:
                return [None, np.array(offsets, np.int32), b"ab"]

        with db.write() as txn:
            with pytest.raises(InputError, match=message):
                txn.upsert_columns(
                    ids=Column(),  # type: ignore[arg-type]
                    submitted_at=0,
                    queue="a",
                    requirements=NEEDS,
                )
            assert len(txn) == 0
        with pytest.raises(InputError, match="ids"):
            db.snapshot().columns("state", ids=Column())  # type: ignore[arg-type]

    @pytest.mark.parametrize("end", ["abort", "commit"])
    def test_a_name_that_ends_the_transaction_is_refused(self, db: JobDb, end: str) -> None:
        """The names of columns run no code once the rows are being read."""
        txn = db.write()
        txn.upsert_many(jobs(100))

        class Name(str):
            __slots__ = ()

            def __hash__(self) -> int:
                getattr(txn, end)()
                return super().__hash__()

            __eq__ = str.__eq__

        with pytest.raises(InputError, match="no column 'state'"):
            txn.columns(Name("state"))
        txn.abort()


def test_a_batch_that_is_refused_late_keeps_nothing() -> None:
    """A hundred thousand rows, the last unlike the first: every record and payload goes back."""
    db = JobDb()
    ids = [f"job-{n}" for n in range(50_000)]
    columns: dict[str, Any] = {"submitted_at": 0, "queue": "a", "requirements": NEEDS}
    before = counted()
    with db.write() as txn:
        with pytest.raises(DuplicateId, match="'job-0' is in one batch twice"):
            txn.upsert_columns(ids=[*ids, *ids, "job-0"], priority=[*[0] * 100_000, 1], **columns)
        assert len(txn) == 0
    assert counted() == before


def test_one_id_is_not_several(db: JobDb) -> None:
    """A str where ids go would be read as one id a character, and delete nothing."""
    with db.write() as txn:
        txn.upsert(job("a"))
        for call in (txn.get_many, txn.delete_many):
            with pytest.raises(TypeError, match=r"got the one str 'a'; write \['a'\]"):
                call("a")
        assert len(txn) == 1


def test_an_instant_is_a_whole_number(db: JobDb) -> None:
    """Half a nanosecond is a mistake, not the one before."""
    with pytest.raises(TypeError):
        db.snapshot().backing_off(before=1.5)  # type: ignore[arg-type]


def test_the_priority_of_a_run_is_that_of_a_class(db: JobDb) -> None:
    """It fits 32 bits, as the config's do; refused when the run is made and when it is changed."""
    run = Run(id="r", node_id="n", leased_at=0, priority=2**31 - 1)
    assert run.priority == 2**31 - 1
    for wrong in (2**31, -(2**31)):
        with pytest.raises(ValueError, match=f"the priority of a run is from .* got {wrong}"):
            Run(id="r", node_id="n", leased_at=0, priority=wrong)
        with pytest.raises(ValueError, match="the priority of a run"):
            run.replace(priority=wrong)
    one = job(runs=(run,), state=JobState.LEASED)
    with db.write() as txn:
        txn.upsert(one)
    assert db.snapshot()[one.id].runs[0].priority == 2**31 - 1


def test_a_wait_of_no_number_ends_at_once(db: JobDb) -> None:
    """NaN seconds are over as soon as they begin."""
    told: list[str] = []

    def write() -> None:
        try:
            db.write(timeout=float("nan")).abort()
        except WriterBusy as error:
            told.append(str(error))

    with db.write():
        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        thread.join(timeout=5)
        assert not thread.is_alive()
    assert "waited nan s" in told[0]
