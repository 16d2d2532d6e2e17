"""What a dry run wrote, on a newer version: all of it or none, and never over what it did not see."""

import gc
import threading
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.job_model import JobModel, refusals
from kit.job_strategies import CHANGES, GANGS, IDS, POOLS, QUEUES, ids_of, new_jobs
from kit.jobs import backing_off, ended, gang, job, jobs, leased, requeued
from pyresched.errors import (
    Conflict,
    DuplicateId,
    IllegalTransition,
    InputError,
    RunBelongsToOtherJob,
    TooManyJobs,
    TxnClosed,
    WriterBusy,
)
from pyresched.jobdb import DryRun, JobDb, Txn
from pyresched.model import Gang, Job, JobState

Change = Callable[[Txn], object]


@pytest.fixture
def db(db: JobDb) -> JobDb:
    """Jobs of every kind, one commit."""
    with db.write() as txn:
        txn.upsert_many(
            [
                job("a", submitted_at=1, payload=["a"]),
                job("b", submitted_at=2, pools=("p", "q")),
                job("c", submitted_at=3),
                job("other", queue="queue-b"),
                leased(job("leased", submitted_at=4), run_id="run-1"),
                backing_off(leased(job("waiting", submitted_at=5), run_id="run-2")),
                *gang("gang", submitted_at=6, queue="gangs"),
            ]
        )
    return db


def write(db: JobDb, *written: Job, gone: Iterable[str] = ()) -> None:
    """One commit of somebody else."""
    with db.write() as txn:
        txn.delete_many(gone)
        txn.upsert_many(written)


class TestApply:
    def test_what_a_dry_run_wrote_is_one_commit(self, db: JobDb) -> None:
        """New, changed and deleted jobs; the commit's version comes back."""
        with db.dry_run() as trial:
            trial.upsert(job("new"))
            trial.upsert(trial["a"].replace(priority=7))
            trial.delete_many(["b", "nobody"])
        before = db.snapshot()
        assert db.apply(trial) == before.version + 1 == db.version
        diff = db.snapshot().diff(before)
        assert (diff.added, diff.changed, diff.removed) == (("new",), ("a",), ("b",))
        assert db.snapshot()["a"].priority == 7

    def test_what_others_wrote_meanwhile_stays(self, db: JobDb) -> None:
        """Of jobs that the dry run did not write."""
        with db.dry_run() as trial:
            trial.upsert(trial["a"].replace(priority=7))
        write(db, db.snapshot()["c"].replace(priority=3), job("new"), gone=["b"])
        db.apply(trial)
        now = db.snapshot()
        assert [now["a"].priority, now["c"].priority, "new" in now, "b" in now] == [
            7,
            3,
            True,
            False,
        ]

    def test_an_open_dry_run_is_left_and_applied(self, db: JobDb) -> None:
        """Inside its `with`, which then has nothing to end."""
        with db.dry_run() as trial:
            trial.upsert(job("new"))
            db.apply(trial)
            assert trial.closed
        assert "new" in db.snapshot()

    def test_its_own_slots_are_free_again_before_it_is_replayed(self) -> None:
        """A store with room for it once is enough, whether it is open or left."""
        db = JobDb(most_jobs=4)
        for turn in range(3):
            with db.dry_run() as trial:
                trial.upsert_many(jobs(4, prefix=str(turn)))
                if turn % 2:
                    db.apply(trial)
            if not turn % 2:
                db.apply(trial)
            write(db, gone=[job.id for job in db.snapshot()])

    def test_a_dry_run_that_wrote_nothing_is_an_empty_commit(self, db: JobDb) -> None:
        """As an empty transaction is: the next version comes back."""
        with db.dry_run() as trial:
            assert trial.delete_many(["nobody"]) == 0
        assert db.apply(trial) == 2
        assert len(db.snapshot().diff(db.snapshot())) == 0

    def test_a_value_that_came_back_was_not_written(self, db: JobDb) -> None:
        """The write set is what differs in the end: somebody else's change of that job stays."""
        with db.dry_run() as trial:
            before = trial["a"]
            trial.upsert(before.replace(priority=7))
            trial.upsert(Job(**before.as_dict()))  # type: ignore[arg-type]
        write(db, before.replace(priority=9))
        db.apply(trial)
        assert db.snapshot()["a"].priority == 9

    def test_several_dry_runs_are_applied_in_any_order(self, db: JobDb) -> None:
        """Beside each other and a writer, unless they wrote the same."""
        first, second, third = (db.dry_run() for _ in range(3))
        first.upsert(first["a"].replace(priority=1))
        second.upsert(second["b"].replace(priority=2))
        third.upsert(third["a"].replace(priority=3))
        for trial in (third, second):
            db.apply(trial)
        with pytest.raises(Conflict):
            db.apply(first)
        assert [db.snapshot()[id].priority for id in "ab"] == [3, 2]

    @pytest.mark.parametrize("steps", ["two states", "came back", "swapped runs", "handed on"])
    def test_what_took_several_steps_is_applied(self, db: JobDb, steps: str) -> None:
        """Though no single step leads there: each was checked in the dry run."""
        with db.dry_run() as trial:
            if steps == "two states":
                trial.upsert(leased(trial["a"]).replace(version=1))
                trial.upsert(trial["a"].replace(state=JobState.RUNNING, version=1))
            elif steps == "came back":
                trial.upsert(ended(trial["leased"]))
                trial.delete_many(["leased"])
                trial.upsert(job("leased"))
            else:
                one, other = trial["leased"], trial["waiting"]
                trial.upsert(one.replace(runs=()))
                trial.upsert(other.replace(runs=one.runs))
                if steps == "swapped runs":
                    trial.upsert(one.replace(runs=other.runs))
            expected = list(trial)
        db.apply(trial)
        assert list(db.snapshot()) == expected


class TestConflict:
    @pytest.mark.parametrize(
        "meanwhile",
        [
            lambda txn: txn.upsert(txn["a"].replace(reason="other")),
            lambda txn: txn.delete_many(["a"]),
            lambda txn: (txn.delete_many(["a"]), txn.upsert(job("a", priority=9))),
        ],
        ids=["changed", "deleted", "replaced"],
    )
    def test_a_job_that_it_wrote_must_be_as_it_was(self, db: JobDb, meanwhile: Change) -> None:
        """No update is lost: nothing is published and the error names the job."""
        with db.dry_run() as trial:
            trial.upsert(trial["a"].replace(priority=7))
            trial.upsert(job("new"))
        with db.write() as txn:
            meanwhile(txn)
        before = db.snapshot()
        with pytest.raises(Conflict, match="changed meanwhile: job 'a'; read again") as told:
            db.apply(trial)
        assert told.value.jobs == ("a",)
        assert db.version == before.version
        assert list(db.snapshot()) == list(before)

    def test_a_job_that_it_made_must_be_absent_still(self, db: JobDb) -> None:
        """Two made it; the second is told."""
        with db.dry_run() as trial:
            trial.upsert(job("new"))
        write(db, job("new", priority=1))
        with pytest.raises(Conflict, match="'new'"):
            db.apply(trial)

    def test_a_job_that_it_deleted_may_not_have_changed(self, db: JobDb) -> None:
        """Nor may another have deleted it."""
        for gone in ([], ["a"]):
            with db.dry_run() as trial:
                trial.delete_many(["a"])
            write(db, db.snapshot()["a"].replace(priority=8), gone=gone)
            with pytest.raises(Conflict, match="'a'"):
                db.apply(trial)

    def test_a_job_of_equal_value_is_as_it_was(self, db: JobDb) -> None:
        """Changed and changed back, or written anew: the value counts."""
        before = db.snapshot()["a"]
        with db.dry_run() as trial:
            trial.upsert(before.replace(priority=7))
        write(db, before.replace(priority=9))
        write(db, gone=["a"])
        write(db, Job(**before.as_dict()))  # type: ignore[arg-type]
        db.apply(trial)
        assert db.snapshot()["a"].priority == 7

    def test_the_error_names_a_few_and_counts_the_rest(self, db: JobDb) -> None:
        """In the order of their ids, whatever the hash."""
        write(db, *jobs(9))
        with db.dry_run() as trial:
            trial.delete_many(ids_of(jobs(9)))
        write(db, *[each.replace(priority=1) for each in reversed(jobs(9))])
        with pytest.raises(Conflict, match=r"'job-000000', .*'job-000004' and 4 more") as told:
            db.apply(trial)
        assert told.value.jobs == tuple(ids_of(jobs(9)))

    def test_a_dry_run_that_met_a_conflict_may_be_tried_again(self, db: JobDb) -> None:
        """It is not used up: when the other change is taken back, it fits."""
        before = db.snapshot()["a"]
        with db.dry_run() as trial:
            trial.upsert(before.replace(priority=7))
        write(db, before.replace(priority=9))
        with pytest.raises(Conflict):
            db.apply(trial)
        write(db, before)
        db.apply(trial)


QUEUE_A = {"queue": "queue-a"}
POOL_P = {"queue": ("queue-a", "p")}
GANG = {"gang": ("gangs", "gang")}
MEMBER = "gang.0"
# What is read, what another writes meanwhile, and which jobs the conflict names (none: none).
WATCHED: list[tuple[dict[str, Any], Change, list[str]]] = [
    ({"ids": ["b"]}, lambda txn: txn.upsert(txn["b"].replace(priority=1)), ["b"]),
    ({"ids": ["c", "b"]}, lambda txn: txn.delete_many(["c", "b"]), ["b", "c"]),
    ({"ids": ["new"]}, lambda txn: txn.upsert(job("new")), ["new"]),
    ({"ids": ["b", "new"]}, lambda txn: txn.upsert(txn["c"].replace(priority=1)), []),
    (GANG, lambda txn: txn.upsert(leased(txn[MEMBER])), [MEMBER]),
    (GANG, lambda txn: txn.delete_many([MEMBER]), [MEMBER]),
    (GANG, lambda txn: txn.upsert(txn[MEMBER].replace(gang=None)), [MEMBER]),
    (GANG, lambda txn: txn.upsert(job("x", queue="gangs", gang=Gang("gang", 2))), ["x"]),
    (GANG, lambda txn: txn.upsert(txn["b"].replace(queue="gangs", gang=Gang("gang", 2))), ["b"]),
    (GANG, lambda txn: txn.upsert(job("x", queue="queue-a", gang=Gang("gang", 2))), []),
    ({"gang": ("gangs", "none")}, lambda txn: txn.upsert(job("x", queue="gangs")), []),
    (QUEUE_A, lambda txn: txn.upsert(job("x")), ["x"]),
    (QUEUE_A, lambda txn: txn.upsert(job("x", pools=("new",))), ["x"]),
    (QUEUE_A, lambda txn: txn.delete_many(["b"]), ["b"]),
    (QUEUE_A, lambda txn: txn.upsert(leased(txn["b"])), ["b"]),
    (QUEUE_A, lambda txn: txn.upsert(requeued(txn["leased"])), ["leased"]),
    (QUEUE_A, lambda txn: txn.upsert(txn["b"].replace(submitted_at=9)), ["b"]),
    (QUEUE_A, lambda txn: txn.upsert(txn["b"].replace(pools=("p",))), []),
    (QUEUE_A, lambda txn: txn.upsert(txn["b"].replace(reason="other")), []),
    (QUEUE_A, lambda txn: txn.upsert(txn["a"].replace(submitted_at=0)), []),
    (QUEUE_A, lambda txn: txn.upsert(job("x", queue="queue-b")), []),
    (POOL_P, lambda txn: txn.upsert(job("x", pools=("p",))), ["x"]),
    (POOL_P, lambda txn: txn.upsert(txn["b"].replace(pools=("q",))), ["b"]),
    (POOL_P, lambda txn: txn.upsert(job("x", pools=("q",))), []),
    ({"queue": ("queue-a", "none")}, lambda txn: txn.upsert(job("x", pools=("none",))), ["x"]),
    ({"queue": "none"}, lambda txn: txn.upsert(job("x", queue="none")), ["x"]),
    ({"queue": "none"}, lambda txn: txn.upsert(job("x", queue="some")), []),
]


class TestDependOn:
    @pytest.mark.parametrize("left", [True, False], ids=["left", "open"])
    @pytest.mark.parametrize(("read", "meanwhile", "named"), WATCHED)
    def test_what_it_depends_on_must_be_as_it_was(
        self, db: JobDb, read: dict[str, Any], meanwhile: Change, named: list[str], *, left: bool
    ) -> None:
        """Write skew and phantoms: a conflict exactly when what it named has changed."""
        with db.dry_run() as trial:
            trial.depend_on(**read)
            trial.upsert(trial["other"].replace(priority=7))
            if left:
                trial.commit()
            with db.write() as txn:
                meanwhile(txn)
            if named:
                with pytest.raises(Conflict) as told:
                    db.apply(trial)
                assert told.value.jobs == tuple(named)
            else:
                db.apply(trial)
        assert db.snapshot()["other"].priority == (0 if named else 7)

    def test_its_own_writes_are_no_change(self, db: JobDb) -> None:
        """What it depends on is its version, not its overlay."""
        with db.dry_run() as trial:
            trial.upsert(trial["a"].replace(priority=7))
            trial.delete_many(["b"])
            trial.upsert(job("x", gang=Gang("gang", 2)))
            trial.depend_on(["a", "b", "x"], ("queue-a", "gang"), "queue-a")
        db.apply(trial)

    def test_without_a_word_only_writes_are_watched(self, db: JobDb) -> None:
        """What was read and not named may change: that is write skew, and said to be possible."""
        with db.dry_run() as trial:
            if trial["b"].priority == 0:
                trial.upsert(trial["a"].replace(priority=7))
        write(db, db.snapshot()["b"].replace(priority=9))
        db.apply(trial)

    def test_a_queue_that_changed_and_changed_back_is_as_it_was(self, db: JobDb) -> None:
        """The jobs and their order count, not the tree that holds them."""
        with db.dry_run() as trial:
            trial.depend_on(queue="queue-a")
        write(db, job("x"), gone=["b"])
        write(db, job("b", submitted_at=2, pools=("p", "q")), gone=["x"])
        db.apply(trial)

    def test_only_dry_runs_depend_on_anything(self, db: JobDb) -> None:
        """A writer has the newest version to itself; a dry run must be open."""
        with db.write() as txn, pytest.raises(TypeError, match="only a dry run depends on"):
            txn.depend_on(["a"])
        trial = db.dry_run()
        trial.commit()
        with pytest.raises(TxnClosed, match="before its end"):
            trial.depend_on(["a"])

    @pytest.mark.parametrize(
        ("bad", "error", "told"),
        [
            ({"ids": "ab"}, TypeError, r"write \['ab'\]"),
            ({"ids": [7]}, TypeError, "int"),
            ({"ids": [""]}, ValueError, "id"),
            ({"gang": "gg"}, TypeError, "gang is .queue, gang id., got 'gg'"),
            ({"gang": ("g",)}, TypeError, "gang is"),
            ({"gang": ("g", 1)}, TypeError, "gang is"),
            ({"queue": 7}, TypeError, "queue is .name, pool., got 7"),
            ({"queue": ("a", "b", "c")}, TypeError, "queue is"),
        ],
    )
    def test_what_cannot_be_named_is_refused(
        self, db: JobDb, bad: dict[str, Any], error: type[Exception], told: str
    ) -> None:
        """With what would be right, and nothing is taken of it."""
        trial = db.dry_run()
        with pytest.raises(error, match=told):
            trial.depend_on(**{"ids": ["a"], **bad})
        write(db, db.snapshot()["a"].replace(priority=1))
        db.apply(trial)


class TestRefused:
    def test_an_aborted_dry_run_is_never_applied(self, db: JobDb) -> None:
        """By hand or by an exception."""
        by_hand = db.dry_run()
        by_hand.abort()
        failed = db.dry_run()
        with pytest.raises(DuplicateId), failed:
            failed.upsert_many([job("new"), job("new", priority=1)])
        for trial in (by_hand, failed):
            with pytest.raises(TxnClosed, match="aborted or has been applied"):
                db.apply(trial)
        assert db.version == 1

    def test_a_dry_run_is_applied_once(self, db: JobDb) -> None:
        """By two threads at a time too: the second finds it closed."""
        with db.dry_run() as trial:
            trial.upsert(job("new"))
        told: list[type[Exception] | None] = []

        def apply() -> None:
            try:
                db.apply(trial)
            except TxnClosed as error:
                told.append(type(error))
            else:
                told.append(None)

        threads = [threading.Thread(target=apply) for _ in range(2)]
        with db.write():
            for thread in threads:
                thread.start()
        for thread in threads:
            thread.join()
        assert sorted(map(str, told)) == [str(TxnClosed), "None"]
        assert db.version == 3

    def test_nobody_applies_it_again_once_its_commit_is_seen(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whoever comes between the commit and the return of `apply` finds nothing to apply."""
        told: list[type[Exception]] = []

        def between(*_: object) -> None:
            try:
                db.apply(trial)
            except (TxnClosed, Conflict) as error:
                told.append(type(error))

        monkeypatch.setenv("PYRESCHED_CHECK", "all")
        monkeypatch.setattr("pyresched.jobdb.db._assert_sound", between)
        db = JobDb()
        with db.dry_run() as trial:
            trial.upsert(job("new"))
        assert db.apply(trial) == 1
        assert told == [TxnClosed]

    def test_only_a_dry_run_of_this_db_is_applied(self, db: JobDb) -> None:
        """Each in one line."""
        with db.write() as txn, pytest.raises(TypeError, match=r"got a Txn; .* commit\(\)"):
            db.apply(txn)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="got a Snapshot"):
            db.apply(db.snapshot())  # type: ignore[arg-type]
        with JobDb().dry_run() as trial:
            pass
        with pytest.raises(ValueError, match="of another db"):
            db.apply(trial)

    def test_a_busy_writer_is_waited_for(self, db: JobDb) -> None:
        """As long as `write` would wait; it may be tried again."""
        with db.dry_run() as trial:
            trial.upsert(job("new"))
            with db.write(), pytest.raises(WriterBusy, match="this thread"):
                db.apply(trial, timeout=0)
        db.apply(trial, timeout=0)

    def test_the_checks_of_a_transaction_are_made_anew(self) -> None:
        """A run that another job has by now, no room by now: nothing is published."""
        db = JobDb(most_jobs=3)
        write(db, job("a"), job("b"))
        with db.dry_run() as trial:
            trial.upsert(leased(trial["a"], run_id="run"))
        with db.dry_run() as growing:
            growing.upsert(job("c"))
        write(db, leased(db.snapshot()["b"], run_id="run"), job("d"))
        before = list(db.snapshot())
        with pytest.raises(RunBelongsToOtherJob, match="run 'run' of job 'a' belongs to job 'b'"):
            db.apply(trial)
        with pytest.raises(TooManyJobs, match="1 more jobs do not fit: 3 of 3"):
            db.apply(growing)
        assert list(db.snapshot()) == before
        write(db, gone=["b", "d"])
        db.apply(trial)
        db.apply(growing)


class TestKept:
    def test_a_dry_run_that_was_left_keeps_no_version(self, db: JobDb) -> None:
        """Nor its own slots; only a queue that it depends on needs the version, until applied."""
        free = db.memory()
        with db.dry_run() as trial:
            trial.upsert_many(jobs(100))
            trial.depend_on(["a"], ("gangs", "gang"))
        assert db.memory() == free
        with db.dry_run() as walker:
            walker.depend_on(queue="queue-a")
        assert [version for version, _ in db.memory()["pinned"]] == [1]  # type: ignore[attr-defined]
        db.apply(walker)
        assert db.memory()["pinned"] == []
        db.apply(trial)

    def test_a_dry_run_that_was_applied_or_aborted_lets_its_jobs_go(self, db: JobDb) -> None:
        """Payloads too."""

        class Payload:
            pass

        for end in ("apply", "abort"):
            payload = Payload()
            gone = weakref.ref(payload)
            trial = db.dry_run()
            trial.upsert(job("new", payload=payload))
            trial.depend_on(["new"])
            del payload
            db.apply(trial) if end == "apply" else trial.abort()
            write(db, gone=["new"])
            assert gone() is None

    def test_one_that_nobody_holds_is_collected(self, db: JobDb) -> None:
        """In a cycle with its walks too, without a word: it holds nobody up."""
        trial = db.dry_run()
        trial.upsert(job("new"))
        trial.depend_on(["a"], queue="queue-a")
        cycle: list[object] = [trial, iter(trial), trial.queued("queue-a")]
        cycle.append(cycle)
        del trial, cycle
        gc.collect()
        assert db.memory()["pinned"] == []
        assert db.memory()["id_slots"] == len(db.snapshot())


# The same against a dict. An operation is (kind, job or change or ids). There are few ids, queues
# and gangs, so that one often meets the other.
NAMES = st.sampled_from([IDS[0], IDS[5], IDS[8], IDS[9]])
some_jobs = st.builds(
    lambda job, id, queue: job.replace(id=id, queue=queue, version=job.version),
    new_jobs,
    NAMES,
    st.sampled_from(QUEUES[:2]),
)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("put"), some_jobs),
        st.tuples(
            st.just("change"), st.tuples(st.sampled_from(sorted(CHANGES)), st.integers(0, 99))
        ),
        st.tuples(
            st.just("change"),
            st.tuples(st.sampled_from(["reason", "submit time"]), st.integers(0, 99)),
        ),
        st.tuples(st.just("delete"), st.lists(NAMES, max_size=2)),
    ),
    max_size=5,
)


@dataclass(frozen=True, kw_only=True)
class Story:
    """What is there, what a dry run tries and watches, what somebody else does meanwhile."""

    before: list[Job]
    tried: list[tuple[str, Any]]
    meanwhile: list[tuple[str, Any]]
    ids: list[str]
    gang: tuple[str, str] | None
    queue: str | tuple[str, str] | None


stories = st.builds(
    Story,
    before=st.lists(some_jobs, max_size=8),
    tried=operations,
    meanwhile=operations,
    ids=st.lists(NAMES, max_size=2),
    gang=st.none() | st.tuples(st.sampled_from(QUEUES[:2]), st.sampled_from(GANGS)),
    queue=st.none()
    | st.sampled_from(QUEUES[:2])
    | st.tuples(st.sampled_from(QUEUES[:2]), st.sampled_from(POOLS)),
)


def operate(txn: Txn, ops: list[tuple[str, Any]]) -> None:
    """Do to *txn* what its rules allow of *ops*."""
    for kind, what in ops:
        there = list(txn)
        if kind == "delete":
            txn.delete_many(what)
        elif kind == "put" or there:
            new = what if kind == "put" else CHANGES[what[0]](there[what[1] % len(there)], what[1])
            with suppress(DuplicateId, InputError, IllegalTransition, RunBelongsToOtherJob):
                txn.upsert(new)


def as_model(reader: Iterable[Job]) -> JobModel:
    """All jobs as a dict."""
    return JobModel({job.id: job for job in reader})


def differing(ids: Iterable[str], base: JobModel, now: JobModel) -> set[str]:
    """Those of *ids* that are not the same in both."""
    return {id for id in ids if base.jobs.get(id) != now.jobs.get(id)}


def conflicts(
    story: Story, written: set[str], base: JobModel, now: JobModel
) -> tuple[set[str], set[str]]:
    """Which jobs a conflict must name, and which it may; none: there is no conflict."""
    must = differing({*written, *story.ids}, base, now)
    if story.gang is not None:
        members = {*ids_of(base.gang(*story.gang)), *ids_of(now.gang(*story.gang))}
        must |= differing(members, base, now)
    may = set(must)
    if story.queue is not None:
        lane = (story.queue,) if isinstance(story.queue, str) else story.queue
        was, is_ = ids_of(base.queued(*lane)), ids_of(now.queued(*lane))
        if was != is_:
            must |= {*was} ^ {*is_}
            may |= differing({*was, *is_}, base, now)
    return must, must | may


def conflict_of(db: JobDb, trial: DryRun) -> tuple[str, ...]:
    """The jobs that the conflict names, if there is one. Keeps no traceback: it holds *trial*."""
    try:
        db.apply(trial)
    except Conflict as error:
        return error.jobs
    return ()


@given(story=stories, bits=st.sampled_from([0, 3, 32]), left=st.booleans())
def test_a_conflict_is_told_exactly_when_there_is_one(
    story: Story, bits: int, *, left: bool
) -> None:
    """INV-D16, INV-D17: else what was tried stands beside what was done meanwhile; no breach."""
    db = JobDb(hash_bits=bits)
    with db.write() as txn:
        operate(txn, [("put", each) for each in story.before])
    base = as_model(db.snapshot())
    trial = db.dry_run()
    trial.depend_on(story.ids, story.gang, story.queue)
    operate(trial, story.tried)
    overlay = as_model(trial)
    if left:
        trial.commit()
    with db.write() as txn:
        operate(txn, story.meanwhile)
    now = as_model(db.snapshot())

    written = differing({*base.jobs, *overlay.jobs}, base, overlay)
    must, may = conflicts(story, written, base, now)
    merged = JobModel({id: job for id, job in now.jobs.items() if id not in written})
    merged.jobs.update((id, overlay.jobs[id]) for id in written if id in overlay.jobs)
    if may:
        named = conflict_of(db, trial)
        assert must <= {*named} <= may
        assert list(named) == sorted({*named})
    elif RunBelongsToOtherJob in refusals({}, merged.all()):
        with suppress(RunBelongsToOtherJob):
            pytest.fail(f"version {db.apply(trial)}")
    else:
        assert db.apply(trial) == 3
        now = merged
    assert list(db.snapshot()) == now.all()
    assert db.check(db.snapshot()) == []
    del trial
    assert db.memory()["pinned"] == []
