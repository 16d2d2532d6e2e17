"""What the job db answers, and who sees what when. Facts by number: the Go reference's own."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from kit.jobs import backing_off, ended, gang, job, jobs, leased, requeued, run
from pyresched.config import SchedulingConfig
from pyresched.errors import (
    DuplicateId,
    IllegalTransition,
    InputError,
    ReadOnly,
    RunBelongsToOtherJob,
    TooManyJobs,
    TxnClosed,
)
from pyresched.jobdb import JobDb, Order
from pyresched.model import NEXT, Gang, Job, JobState, Outcome, PriorityClass


def put(db: JobDb, *jobs: Job) -> int:
    """One commit of *jobs*."""
    with db.write() as txn:
        txn.upsert_many(jobs)
    return db.version


def ids(jobs: Iterable[Job]) -> list[str]:
    """Their ids."""
    return [job.id for job in jobs]


def failing() -> Iterable[Job]:
    """A generator that fails after its first job."""
    yield job("new")
    raise ZeroDivisionError


NO_TEXT: dict[str, Callable[[Any], object]] = {
    "get": lambda reader: reader.get(7),
    "get none": lambda reader: reader.get(None),
    "get_many": lambda reader: reader.get_many(["a", b"a"]),
    "by_run": lambda reader: reader.by_run(7),
    "gang": lambda reader: reader.gang("queue-a", 7),
    "gang's queue": lambda reader: reader.gang(None, "g"),
    "queued": lambda reader: reader.queued(7),
    "queued in pool": lambda reader: reader.queued("queue-a", 7),
    "item": lambda reader: reader[1.5],
    "in": lambda reader: 7 in reader,
}

BAD_BATCHES: dict[str, tuple[type[Exception], Callable[[], Any]]] = {
    "text": (TypeError, lambda: [job("new"), "job"]),
    "none": (TypeError, lambda: [job("new"), None]),
    "no batch": (TypeError, lambda: 7),
    "failing": (ZeroDivisionError, failing),
    "long id": (ValueError, lambda: [job("new"), job("x" * 256)]),
    "surrogate": (UnicodeEncodeError, lambda: [job("new"), job("\ud800")]),
    "long run id": (ValueError, lambda: [job("new"), job("b", runs=(run("r" * 256),))]),
    "surrogate run": (UnicodeEncodeError, lambda: [job("new"), job("b", runs=(run("\ud800"),))]),
    "surrogate gang": (
        UnicodeEncodeError,
        lambda: [job("new"), job("b", gang=Gang("\ud800", 2))],
    ),
    "empty run id": (ValueError, lambda: [job("new"), job("b", runs=(run(""),))]),
    "no run": (TypeError, lambda: [job("new"), job("b", runs=("run",))]),
    "no pool": (TypeError, lambda: [job("new"), job("b", pools=(7,))]),
    "unknown class": (InputError, lambda: [job("new"), job("b", priority_class="no")]),
    "taken run": (RunBelongsToOtherJob, lambda: [job("new"), leased(job("b"), run_id="a/run-1")]),
    "ended": (IllegalTransition, lambda: [job("new"), job("done")]),
    "twice": (DuplicateId, lambda: [job("new"), job("new", priority=3)]),
}


class TestReads:
    def test_a_transaction_sees_what_it_wrote_before_the_commit(self, db: JobDb) -> None:
        """Fact 1."""
        with db.write() as txn:
            txn.upsert_many([job("a"), job("b")])
            assert txn.get("a") == job("a")
            assert txn.get("b") == job("b")
            assert db.snapshot().get("a") is None

    def test_a_new_version_takes_the_place_of_the_old(self, db: JobDb) -> None:
        """Fact 2."""
        put(db, job("a"))
        newer = job("a").replace(priority=3)
        put(db, newer)
        assert db.snapshot().get("a") == newer
        assert len(db.snapshot()) == 1

    def test_an_unknown_id_is_none_or_the_default(self, db: JobDb) -> None:
        """Fact 4; only `[]` must find."""
        put(db, job("a"))
        snap = db.snapshot()
        nothing = object()
        assert snap.get("b") is None
        assert snap.get("b", nothing) is nothing
        assert snap.get_many(["b", "a", "b"]) == [None, job("a"), None]
        assert snap["a"] == job("a")
        assert "a" in snap
        assert "b" not in snap
        with pytest.raises(KeyError, match="b"):
            snap["b"]

    def test_leased_is_what_holds_a_node(self, db: JobDb) -> None:
        """Facts 5, 42: an active state and an active run."""
        holding = leased(job("a", submitted_at=2))
        put(
            db,
            holding,
            job("b"),
            ended(leased(job("c"))),
            leased(job("d", submitted_at=1)),
            job("e", state=JobState.RUNNING),
            job("f", runs=(run("r", ended_at=1, outcome=Outcome.LOST),), state=JobState.LEASED),
            backing_off(leased(job("g"))),
        )
        assert ids(db.snapshot().leased()) == ["d", "a"]

    def test_leased_follows_a_job_through_its_life(self, db: JobDb) -> None:
        """Fact 6."""
        seen = []
        one = job("a")
        for step in (
            one,
            one := leased(one),
            one := requeued(one),
            one := leased(one),
            one := one.replace(state=JobState.RUNNING),
            one := ended(one),
        ):
            put(db, step)
            seen.append(ids(db.snapshot().leased()))
        assert seen == [[], ["a"], [], ["a"], ["a"], []]

    def test_a_deleted_job_is_in_no_index(self, db: JobDb) -> None:
        """Fact 7, for every index."""
        put(
            db,
            leased(job("a")),
            job("b", validated=False, gang=Gang("g", 2)),
            backing_off(leased(job("c"))),
        )
        with db.write() as txn:
            assert txn.delete_many(["a", "b", "c", "never"]) == 3
        snap = db.snapshot()
        assert [*snap, *snap.leased(), *snap.unvalidated(), *snap.backing_off()] == []
        assert (snap.gang("queue-a", "g"), snap.queues(), len(snap)) == ([], [], 0)
        assert snap.by_run("a/run-1") is None

    def test_unvalidated_is_what_waits_for_validation(self, db: JobDb) -> None:
        """Fact 8; a job that ended waits for nothing."""
        put(
            db,
            job("a", validated=False, submitted_at=3),
            job("b"),
            job("c", validated=False),
            ended(job("d", validated=False), JobState.CANCELLED),
        )
        assert ids(db.snapshot().unvalidated()) == ["c", "a"]

    def test_a_gang_has_the_members_that_are_there(self, db: JobDb) -> None:
        """Fact 9: whatever their state, and nothing when the last has gone."""
        first, second = gang("g", submitted_at=5)
        seen = []
        for step in (second, first, leased(second), second.id, first.id):
            with db.write() as txn:
                if isinstance(step, str):
                    txn.delete_many([step])
                else:
                    txn.upsert(step)
            seen.append(ids(db.snapshot().gang("queue-a", "g")))
        assert seen == [["g.1"], ["g.0", "g.1"], ["g.0", "g.1"], ["g.0"], []]

    def test_a_gang_is_named_by_its_queue_and_id(self, db: JobDb) -> None:
        """Fact 10: the same id in another queue is another gang; a single job is in none."""
        put(db, *gang("g"), job("x", queue="b", gang=Gang("g", 2)), job("y"))
        snap = db.snapshot()
        assert ids(snap.gang("queue-a", "g")) == ["g.0", "g.1"]
        assert ids(snap.gang("b", "g")) == ["x"]
        assert snap.gang("queue-a", "") == snap.gang("c", "g") == []

    def test_a_job_that_changes_its_gang_leaves_the_old_one(self, db: JobDb) -> None:
        """The reference cleans its gang and run indices only when a job is deleted."""
        one = job("a", gang=Gang("g", 2))
        put(db, one)
        put(db, one := one.replace(gang=Gang("h", 2)))
        assert db.snapshot().gang("queue-a", "g") == []
        assert db.snapshot().gang("queue-a", "h") == [one]
        put(db, one.replace(gang=None))
        assert db.snapshot().gang("queue-a", "h") == []

    def test_a_run_leads_to_its_job(self, db: JobDb) -> None:
        """Fact 11, also for runs that ended, and no longer when the job lost the run."""
        one = leased(requeued(leased(job("a"))))
        put(db, one, leased(job("b")))
        snap = db.snapshot()
        assert snap.by_run("a/run-1") == snap.by_run("a/run-2") == one
        assert snap.by_run("b/run-1") == snap.get("b")
        assert snap.by_run("c/run-1") is None
        put(db, one.replace(runs=one.runs[1:]))
        assert db.snapshot().by_run("a/run-1") is None
        assert db.snapshot().by_run("a/run-2") == db.snapshot().get("a")
        assert snap.by_run("a/run-1") == one

    def test_a_queue_is_walked_by_pool(self, db: JobDb) -> None:
        """Fact 12; `None` is every pool, each job once."""
        put(
            db,
            job("a", pools=("p1", "p2", "p3"), submitted_at=2),
            job("b", pools=("p1", "p2"), submitted_at=1),
            job("c", pools=("p1",), submitted_at=0),
            job("d", pools=(), submitted_at=3),
        )
        snap = db.snapshot()
        found = {pool: ids(snap.queued("queue-a", pool)) for pool in ("p1", "p2", "p3", "p4", None)}
        assert found == {
            "p1": ["c", "b", "a"],
            "p2": ["b", "a"],
            "p3": ["a"],
            "p4": [],
            None: ["c", "b", "a", "d"],
        }
        assert [snap.queue_length("queue-a", pool) for pool in found] == [3, 2, 1, 0, 4]

    def test_only_queued_jobs_are_in_a_queue(self, db: JobDb) -> None:
        """Fact 13."""
        put(db, leased(job("a")), ended(leased(job("b"))), backing_off(leased(job("c"))))
        snap = db.snapshot()
        assert (snap.queue_length("queue-a"), snap.queue_length("b"), snap.queues()) == (0, 0, [])
        put(db, requeued(snap["a"]))
        snap = db.snapshot()
        assert (snap.queue_length("queue-a"), snap.queue_length("b")) == (1, 0)
        assert snap.queues() == ["queue-a"]

    def test_a_queue_keeps_its_order_through_changes(self, db: JobDb) -> None:
        """Fact 14."""
        named = {n: job(f"j{n}", priority=1000, submitted_at=n) for n in range(10)}

        def order() -> list[str]:
            return [id.removeprefix("j") for id in ids(db.snapshot().queued("queue-a"))]

        put(db, *named.values())
        assert order() == list("0123456789")
        with db.write() as txn:
            txn.delete_many(["j1", "j3", "j5"])
        assert order() == list("0246789")
        put(db, leased(named[7]), leased(named[4]))
        assert order() == list("02689")
        put(db, named[8].replace(priority=0))
        assert order() == list("80269")
        put(db, job("jnew", priority=90))
        assert order() == ["8", "new", *"0269"]
        with db.write() as txn:
            txn.delete_many(ids(txn))
        assert order() == []

    def test_every_job_is_given_in_submit_order(self, db: JobDb) -> None:
        """Fact 15, in an order that no hash decides."""
        assert list(db.snapshot()) == []
        put(db, *(job(id, submitted_at=at) for id, at in [("b", 1), ("a", 1), ("c", 0)]))
        assert ids(db.snapshot()) == ["c", "a", "b"]

    def test_waiting_jobs_come_due_first(self, db: JobDb) -> None:
        """`before` includes its instant, so that a wake-up at `eligible_at` finds its job."""
        put(
            db,
            *(
                backing_off(leased(job(id)), eligible_at=at)
                for id, at in [("a", 30), ("b", 10), ("c", 20), ("d", 10), ("e", -5)]
            ),
        )
        snap = db.snapshot()
        assert ids(snap.backing_off()) == ["e", "b", "d", "c", "a"]
        assert ids(snap.backing_off(before=10)) == ["e", "b", "d"]
        assert ids(snap.backing_off(before=9)) == ["e"]
        assert ids(snap.backing_off(before=-6)) == []

    def test_queues_are_named_in_order_while_they_have_queued_jobs(self, db: JobDb) -> None:
        """A queue is not remembered once it is empty."""
        put(db, *(job(f"j{q}", queue=q, pools=(q, "x")) for q in ("z", "b", "é", "a")))
        assert db.snapshot().queues() == ["a", "b", "z", "é"]
        with db.write() as txn:
            txn.delete_many(["jb"])
            assert txn.queues() == ["a", "z", "é"]

    @pytest.mark.parametrize("read", NO_TEXT.values(), ids=NO_TEXT)
    def test_an_id_that_is_no_text_is_a_type_error(
        self, db: JobDb, read: Callable[[Any], object]
    ) -> None:
        """A mistake of the caller, never a quiet None."""
        put(db, job("a"))
        with pytest.raises(TypeError):
            read(db.snapshot())

    def test_ids_of_any_text_up_to_255_bytes_work(self, db: JobDb) -> None:
        """ULID, UUID, short, long, accented, with a zero byte, and those that look alike."""
        names = [
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "01arz3ndektsv4rrffq69g5fav",
            "123e4567-e89b-12d3-a456-426614174000",
            "123E4567-E89B-12D3-A456-426614174000",
            "a",
            "a\0",
            "é" * 127,
            "x" * 255,
            "x" * 254,
            "\U0001f600",
        ]
        put(db, *map(job, names))
        snap = db.snapshot()
        assert ids(snap.get_many(names)) == names  # type: ignore[arg-type]
        assert ids(snap) == sorted(names)
        assert ids(snap.queued("queue-a")) == sorted(names)
        assert all(snap.get(name[1:] + "!") is None for name in names)

    def test_an_id_whose_methods_raise_is_read_as_text(self, db: JobDb) -> None:
        """The store looks at the characters of a subclass of str, never calls its methods."""

        class Hostile(str):
            __slots__ = ()

            def __eq__(self, other: object) -> bool:
                raise RuntimeError("eq")

            def __hash__(self) -> int:
                raise RuntimeError("hash")

        put(db, leased(job("a")))
        snap = db.snapshot()
        assert snap.get(Hostile("a")) == snap.by_run(Hostile("a/run-1"))
        assert snap.get(Hostile("b")) is None
        with db.write() as txn:
            assert txn.delete_many([Hostile("a")]) == 1


class TestOrder:
    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ({"priority_class": "high", "priority": 9, "submitted_at": 9}, {}),
            ({"priority": 1, "submitted_at": 9}, {"priority": 2}),
            ({"submitted_at": 1, "id": "z"}, {"submitted_at": 2, "id": "a"}),
            ({"id": "a"}, {"id": "b"}),
            ({"id": "a" * 20 + "a"}, {"id": "a" * 20 + "b"}),
            ({"id": "a" * 8}, {"id": "a" * 8 + "\0"}),
            ({"priority": 2**32 - 1, "priority_class": "high"}, {"priority": 0}),
            ({"submitted_at": -(2**63)}, {"submitted_at": 2**63 - 1, "id": "0"}),
            ({"id": "\ud7ff"}, {"id": "\U0001f600"}),
        ],
    )
    def test_the_first_difference_decides(
        self, first: dict[str, Any], second: dict[str, Any]
    ) -> None:
        """Facts 29 to 33: class, job priority, submit time, id."""
        config = SchedulingConfig(
            priority_classes=(
                PriorityClass(name="low", priority=0),
                PriorityClass(name="default", priority=1),
                PriorityClass(name="high", priority=2**31 - 1),
            )
        )
        a, b = job(**{"id": "m", **first}), job(**{"id": "n", **second})
        for pair in ([a, b], [b, a]):
            db = JobDb(config)
            put(db, *pair)
            assert list(db.snapshot().queued("queue-a")) == [a, b]
            assert db.check(db.snapshot()) == []

    def test_classes_of_equal_priority_are_equal(self) -> None:
        """The name of a class never decides."""
        config = SchedulingConfig(
            priority_classes=(PriorityClass(name="default"), PriorityClass(name="a"))
        )
        db = JobDb(config)
        put(db, job("b", priority_class="a"), job("a"), job("c"))
        assert ids(db.snapshot().queued("queue-a")) == ["a", "b", "c"]

    def test_runs_that_ended_do_not_change_the_place(self, db: JobDb) -> None:
        """Fact 32: a job that was preempted stands where it stood."""
        put(db, requeued(leased(job("b", submitted_at=1))), job("a", submitted_at=2))
        assert ids(db.snapshot().queued("queue-a")) == ["b", "a"]

    def test_market_order_leaves_out_the_job_priority(self, db: JobDb) -> None:
        """Fact 36, as far as there are no bids."""
        put(
            db,
            job("a", priority=9, submitted_at=1),
            job("b", priority=1, submitted_at=2),
            job("c", priority_class="best-effort", priority=0),
        )
        snap = db.snapshot()
        assert ids(snap.queued("queue-a")) == ["b", "a", "c"]
        assert ids(snap.queued("queue-a", order=Order.MARKET)) == ["a", "b", "c"]
        assert ids(snap.queued("queue-a", "default", Order.MARKET)) == ["a", "b", "c"]
        with pytest.raises(TypeError):
            snap.queued("queue-a", order="market")  # type: ignore[arg-type]


class TestRegressions:
    """What the reference gets wrong."""

    def test_a_db_that_was_emptied_in_a_transaction_takes_jobs_again(self, db: JobDb) -> None:
        """R1."""
        put(db, *jobs(3))
        with db.write() as txn:
            txn.delete_many(ids(txn))
            txn.upsert(job("new"))
            assert ids(txn.queued("queue-a", "default")) == ["new"]
        snap = db.snapshot()
        for order in Order:
            assert ids(snap.queued("queue-a", "default", order)) == ["new"]
        assert ids(snap) == ["new"]

    def test_a_job_leaves_the_pool_that_it_no_longer_names(self, db: JobDb) -> None:
        """R2, also when the job is then deleted."""
        put(db, job("a", pools=("p1", "p2")))
        put(db, db.snapshot()["a"].replace(pools=("p1",)))
        assert ids(db.snapshot().queued("queue-a", "p2")) == []
        assert ids(db.snapshot().queued("queue-a", "p1")) == ["a"]
        with db.write() as txn:
            txn.delete_many(["a"])
        assert db.snapshot().queue_length("queue-a", "p2") == 0

    def test_a_job_leaves_the_queue_that_it_no_longer_names(self, db: JobDb) -> None:
        """R3."""
        put(db, job("a"))
        put(db, db.snapshot()["a"].replace(queue="queue-b"))
        snap = db.snapshot()
        for order in Order:
            assert ids(snap.queued("queue-a", "default", order)) == []
            assert ids(snap.queued("queue-b", "default", order)) == ["a"]

    def test_one_id_twice_in_a_batch_is_one_job_or_an_error(self, db: JobDb) -> None:
        """R4: equal content is one; different content is refused and nothing is written."""
        with db.write() as txn:
            txn.upsert_many([leased(job("a", validated=False)), leased(job("a", validated=False))])
            assert (len(txn), len(list(txn.leased())), len(list(txn.unvalidated()))) == (1, 1, 1)
            with pytest.raises(DuplicateId, match="'b'"):
                txn.upsert_many([job("x"), job("b"), job("b", priority=1)])
            assert "x" not in txn

    def test_a_pool_named_twice_counts_once(self, db: JobDb) -> None:
        """In the lane and when it leaves."""
        put(db, job("a", pools=("p", "p")))
        assert ids(db.snapshot().queued("queue-a", "p")) == ["a"]
        put(db, leased(db.snapshot()["a"]))
        assert db.snapshot().queue_length("queue-a", "p") == 0

    def test_a_run_may_belong_to_one_job_only(self, db: JobDb) -> None:
        """Stored, within one batch, and within one job."""
        put(db, leased(job("a"), run_id="r"))
        with db.write() as txn:
            with pytest.raises(RunBelongsToOtherJob, match=r"'r'.*'a'"):
                txn.upsert(leased(job("b"), run_id="r"))
            with pytest.raises(RunBelongsToOtherJob, match="'s'"):
                txn.upsert_many([leased(job("c"), run_id="s"), leased(job("d"), run_id="s")])
            with pytest.raises(DuplicateId, match="'t'"):
                txn.upsert(job("e", runs=(run("t"), run("t"))))
            assert ids(txn) == ["a"]


class TestRefusals:
    @pytest.mark.parametrize("old", list(JobState))
    @pytest.mark.parametrize("new", list(JobState))
    def test_a_job_moves_as_the_table_says(self, db: JobDb, old: JobState, new: JobState) -> None:
        """One table of moves; to stay is always legal."""
        fields: dict[str, Any] = {"eligible_at": 1}
        before = job("a", state=old, **fields)
        put(db, before)
        after = before.replace(state=new)
        if new is old or new in NEXT[old]:
            put(db, after)
            assert db.snapshot()["a"] == after
        else:
            with pytest.raises(IllegalTransition, match=f"'a'.*{old.name.lower()}"):
                put(db, after)
            assert db.snapshot()["a"] == before

    def test_a_row_that_skips_versions_may_have_been_anywhere_in_between(self, db: JobDb) -> None:
        """A reader of the journal gets the newest version only. What ended stays ended."""
        put(db, job("a"))
        put(db, job("a", state=JobState.SUCCEEDED, version=4))
        with pytest.raises(IllegalTransition):
            put(db, job("a", state=JobState.QUEUED, version=9))
        put(db, job("a", state=JobState.SUCCEEDED, reason="twice", version=5))

    def test_an_unknown_class_is_refused_with_those_that_there_are(self, db: JobDb) -> None:
        """It would have no place in its queue."""
        with pytest.raises(InputError, match=r"'a'.*'defualt'.*best-effort, default"):
            put(db, job("a", priority_class="defualt"))

    def test_a_job_that_waits_for_nothing_is_refused(self, db: JobDb) -> None:
        """Backing off needs an instant, or the job would never come back."""
        with pytest.raises(InputError, match=r"'a'.*eligible_at"):
            put(db, job("a", state=JobState.BACKING_OFF))

    def test_a_full_store_refuses_and_takes_again_what_was_freed(self) -> None:
        """TooManyJobs; replacing rows needs no slot."""
        db = JobDb(most_jobs=3)
        put(db, *jobs(3))
        with pytest.raises(TooManyJobs, match="3"):
            put(db, job("new"))
        put(db, *(each.replace(priority=1) for each in db.snapshot()))
        with db.write() as txn:
            txn.delete_many(["job-000000"])
        put(db, job("new"))
        assert len(db.snapshot()) == 3

    @pytest.mark.parametrize(("error", "bad"), BAD_BATCHES.values(), ids=BAD_BATCHES)
    def test_a_batch_that_is_refused_leaves_the_transaction_as_it_was(
        self, db: JobDb, error: type[Exception], bad: Callable[[], Any]
    ) -> None:
        """Nothing half applied, and the transaction goes on."""
        put(db, leased(job("a")), ended(leased(job("done"))))
        with db.write() as txn:
            txn.upsert(job("mine"))
            before = txn.contents()
            with pytest.raises(error):
                txn.upsert_many(bad())
            assert txn.contents() == before
            txn.upsert(job("later"))
        assert sorted(ids(db.snapshot())) == ["a", "done", "later", "mine"]

    def test_a_deletion_that_is_refused_deletes_nothing(self, db: JobDb) -> None:
        """All or none there too."""
        put(db, job("a"), job("b"))
        with db.write() as txn:
            with pytest.raises(TypeError):
                txn.delete_many(["a", 7])  # type: ignore[list-item]
            assert len(txn) == 2
            assert txn.delete_many(["a", "a", "c"]) == 1


class TestVersions:
    def test_a_snapshot_keeps_what_it_saw(self, db: JobDb) -> None:
        """Facts 16, 21."""
        empty = db.snapshot()
        put(db, job("a"))
        one = db.snapshot()
        with db.write() as txn:
            txn.upsert(leased(job("a")))
            txn.upsert(job("b"))
            assert list(one) == [job("a")]
        with db.write() as txn:
            txn.delete_many(["a"])
        assert list(empty) == []
        assert list(one) == list(one.queued("queue-a")) == [job("a")]
        assert ids(db.snapshot()) == ["b"]

    def test_versions_count_commits(self, db: JobDb) -> None:
        """Also those that write nothing; an abort counts for nothing."""
        assert (db.version, db.snapshot().version) == (0, 0)
        txn = db.write()
        assert txn.version == 0
        assert txn.commit() == 1
        db.write().abort()
        assert put(db, job("a")) == db.snapshot().version == 2

    def test_an_exception_drops_what_was_staged(self, db: JobDb) -> None:
        """And comes through."""

        def stage_and_fail() -> None:
            with db.write() as txn:
                txn.upsert(job("a"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            stage_and_fail()
        assert len(db.snapshot()) == 0
        put(db, job("b"))

    def test_a_transaction_that_ended_in_its_block_is_left_alone(self, db: JobDb) -> None:
        """By hand inside `with`: neither commits twice nor raises."""
        with db.write() as txn:
            txn.upsert(job("a"))
            txn.commit()
        with db.write() as txn:
            txn.upsert(job("b"))
            txn.abort()
        assert ids(db.snapshot()) == ["a"]

    @pytest.mark.parametrize("end", ["commit", "abort"])
    @pytest.mark.parametrize("begin", ["write", "dry_run"])
    def test_every_use_after_the_end_raises(self, db: JobDb, begin: str, end: str) -> None:
        """Facts 16, 18, 19; reads too: nothing is a quiet nothing."""
        txn = getattr(db, begin)()
        txn.upsert(job("a"))
        walks = [iter(txn), txn.queued("queue-a"), txn.queued("queue-a", "default")]
        getattr(txn, end)()
        assert txn.closed
        for use in (
            txn.commit,
            txn.abort,
            lambda: txn.upsert(job("b")),
            lambda: txn.upsert_many([]),
            lambda: txn.delete_many([]),
            lambda: txn.get("a"),
            lambda: txn["a"],
            lambda: txn.get_many([]),
            lambda: "a" in txn,
            lambda: len(txn),
            lambda: iter(txn),
            lambda: txn.by_run("r"),
            lambda: txn.gang("queue-a", "g"),
            txn.leased,
            txn.unvalidated,
            txn.backing_off,
            lambda: txn.queued("queue-a"),
            lambda: txn.queue_length("queue-a"),
            txn.queues,
            lambda: txn.diff(db.snapshot()),
            lambda: db.snapshot().diff(txn),
            txn.contents,
            txn.__enter__,
            *(lambda walk=walk: next(walk) for walk in walks),
        ):
            with pytest.raises(TxnClosed):
                use()

    def test_a_snapshot_cannot_be_written(self, db: JobDb) -> None:
        """Facts 3, 20."""
        put(db, job("a"))
        snap = db.snapshot()
        for write in (
            lambda: snap.upsert(job("b")),
            lambda: snap.upsert_many([]),
            lambda: snap.delete_many(["a"]),
        ):
            with pytest.raises(ReadOnly):
                write()

    def test_readers_are_made_by_a_db_only(self) -> None:
        """No reader without a store."""
        for kind in (type(JobDb().snapshot()), type(JobDb().dry_run())):
            with pytest.raises(TypeError):
                kind()

    def test_a_snapshot_keeps_the_db_alive(self) -> None:
        """A reader that outlives every name of its db."""
        db = JobDb()
        put(db, *jobs(100))
        snap = db.snapshot()
        walk = db.snapshot().queued("queue-a")
        del db
        assert len(list(walk)) == len(list(snap)) == 100


class TestDryRuns:
    def test_a_dry_run_sees_the_db_and_its_own_changes(self, db: JobDb) -> None:
        """Fact 17."""
        put(db, job("a"), job("b"))
        with db.dry_run() as txn:
            assert txn.dry
            txn.upsert(job("c"))
            txn.upsert(leased(job("b")))
            txn.delete_many(["a"])
            assert ids(txn) == ["b", "c"]
            assert ids(txn.queued("queue-a")) == ["c"]
            assert ids(txn.leased()) == ["b"]

    @pytest.mark.parametrize("end", ["commit", "abort"])
    def test_the_end_of_a_dry_run_publishes_nothing(self, db: JobDb, end: str) -> None:
        """Facts 18, 19: nor does it keep a writer waiting."""
        put(db, job("a"))
        txn = db.dry_run()
        txn.upsert(job("b"))
        txn.delete_many(["a"])
        assert getattr(txn, end)() in (None, 1)
        assert (ids(db.snapshot()), db.version) == (["a"], 1)
        with db.write(timeout=0) as writer:
            writer.upsert(job("c"))

    def test_dry_runs_live_beside_a_writer_and_each_other(self, db: JobDb) -> None:
        """Each over the version on which it began."""
        put(db, *jobs(200))
        first = db.dry_run()
        first.upsert(job("first"))
        with db.write() as txn:
            second = db.dry_run()
            second.delete_many(["job-000000"])
            txn.upsert(job("third"))
            txn.upsert(leased(job("job-000001")))
        first.upsert(job("more"))
        second.upsert(leased(job("job-000002")))
        assert ("first" in first, "first" in second, "first" in db.snapshot()) == (1, 0, 0)
        assert (len(first), len(second), len(db.snapshot())) == (202, 199, 201)
        for reader in (first, second, db.snapshot()):
            assert db.check(reader) == []
        first.abort()
        second.abort()
        assert len(db.snapshot()) == 201

    def test_dropping_a_dry_run_is_no_mistake(self, db: JobDb) -> None:
        """Its end means nothing, so there is nothing to warn of."""
        db.dry_run().upsert(job("a"))
        assert len(db.snapshot()) == 0


class TestWalks:
    def test_a_walk_is_of_the_moment_it_began(self, db: JobDb) -> None:
        """Later writes of the same transaction do not reach it."""
        put(db, *jobs(300))
        with db.write() as txn:
            walks = {
                "queue": txn.queued("queue-a"),
                "pool": txn.queued("queue-a", "default"),
                "all": iter(txn),
                "market": txn.queued("queue-a", order=Order.MARKET),
            }
            begun = {name: [next(walk)] for name, walk in walks.items()}
            for each in jobs(300):
                txn.upsert(leased(each))
            txn.upsert(job("new", submitted_at=-1))
            for name, walk in walks.items():
                assert [*begun[name], *walk] == jobs(300), name
            assert ids(txn.queued("queue-a")) == ["new"]

    def test_a_queue_can_be_leased_while_it_is_walked(self, db: JobDb) -> None:
        """The loop that everyone writes first."""
        put(db, *jobs(150))
        with db.write() as txn:
            for each in txn.queued("queue-a", "default"):
                txn.upsert(leased(each))
        assert db.snapshot().queue_length("queue-a") == 0
        assert len(list(db.snapshot().leased())) == 150

    def test_a_walk_of_a_snapshot_outlives_every_other_name(self, db: JobDb) -> None:
        """It holds the version that it walks."""
        put(db, *jobs(200))
        walk = db.snapshot().queued("queue-a")
        next(walk)
        with db.write() as txn:
            txn.delete_many(ids(txn))
        assert len(list(walk)) == 199


class TestDiff:
    def test_a_diff_names_what_changed_in_submit_order(self, db: JobDb) -> None:
        """Changed, added and removed, and the rows themselves."""
        put(db, *jobs(500))
        old = db.snapshot()
        with db.write() as txn:
            txn.upsert(leased(old["job-000400"]))
            txn.upsert(leased(old["job-000003"]))
            txn.delete_many(["job-000100", "job-000099"])
            txn.upsert_many([job("b", submitted_at=-1), job("a", submitted_at=10)])
        new = db.snapshot()
        diff = new.diff(old)
        assert diff.changed == ("job-000003", "job-000400")
        assert diff.added == ("b", "a")
        assert diff.removed == ("job-000099", "job-000100")
        assert [(o and o.id, n and n.id) for o, n in diff.pairs()] == [
            (None, "b"),
            ("job-000003", "job-000003"),
            (None, "a"),
            ("job-000099", None),
            ("job-000100", None),
            ("job-000400", "job-000400"),
        ]
        assert all(o is None or o == old[o.id] for o, _ in diff.pairs())
        assert all(n is None or n == new[n.id] for _, n in diff.pairs())
        assert len(diff) == 6
        back = old.diff(new)
        assert (back.changed, back.added, back.removed) == (
            diff.changed,
            diff.removed,
            diff.added,
        )

    def test_nothing_changed_is_an_empty_diff(self, db: JobDb) -> None:
        """False, and without pairs; an equal row put again is no change."""
        put(db, job("a"))
        old = db.snapshot()
        assert not old.diff(old)
        put(db, job("a"))
        assert not db.snapshot().diff(old)
        assert list(db.snapshot().diff(old).pairs()) == []

    def test_a_job_that_went_and_came_back_is_changed(self, db: JobDb) -> None:
        """One id, one line."""
        put(db, job("a"))
        old = db.snapshot()
        with db.write() as txn:
            txn.delete_many(["a"])
        put(db, job("a", priority=1))
        diff = db.snapshot().diff(old)
        assert (diff.changed, diff.added, diff.removed) == (("a",), (), ())

    def test_a_transaction_has_a_diff_as_well(self, db: JobDb) -> None:
        """What a dry run did, against what it began with."""
        put(db, job("a"), job("b"))
        with db.dry_run() as txn:
            txn.upsert(leased(job("a")))
            txn.delete_many(["b"])
            diff = txn.diff(db.snapshot())
            assert (diff.changed, diff.removed) == (("a",), ("b",))

    def test_another_db_is_refused(self, db: JobDb) -> None:
        """Slots mean nothing elsewhere."""
        with pytest.raises(ValueError, match="another"):
            db.snapshot().diff(JobDb().snapshot())


@pytest.mark.parametrize("hash_bits", [0, 1, 4, 32])
def test_ids_that_collide_are_told_apart(hash_bits: int) -> None:
    """Ids, runs and gangs whose hashes agree in full."""
    db = JobDb(hash_bits=hash_bits, seed=bytes(16))
    members = [m for n in range(60) for m in gang(f"g{n}", submitted_at=n)]
    put(db, *map(leased, members))
    snap = db.snapshot()
    assert db.check(snap) == []
    assert all(snap.get(m.id) == leased(m) for m in members)
    assert all(snap.by_run(f"{m.id}/run-1") == leased(m) for m in members)
    assert all(ids(snap.gang("queue-a", f"g{n}")) == [f"g{n}.0", f"g{n}.1"] for n in range(60))
    assert snap.get("g60.0") is None
    with db.write() as txn:
        txn.delete_many(ids(members[::2]))
        assert db.check(txn) == []
    assert ids(db.snapshot()) == ids(members[1::2])


def test_no_order_depends_on_the_hash_of_the_process() -> None:
    """The same answers under three hash seeds of Python and as many of the store."""
    script = """
import sys
sys.path[:0] = {paths!r}
from kit.jobs import *
from pyresched.jobdb import JobDb, Order
db = JobDb()
with db.write() as txn:
    for n in range(400):
        one = job(f"j{{n * 7919 % 400}}", queue=f"q{{n % 7}}", submitted_at=n % 5, pools=("a", "b"),
                  validated=n % 3 > 0, gang=Gang(f"g{{n % 40}}", 9) if n % 2 else None)
        txn.upsert(backing_off(leased(one)) if n % 9 == 0 else leased(one) if n % 4 == 0 else one)
old = db.snapshot()
with db.write() as txn:
    txn.delete_many([f"j{{n}}" for n in range(0, 400, 3)])
    txn.upsert_many([j.replace(priority=1) for j in list(txn)[::5]])
snap = db.snapshot()
ids = lambda jobs: [job.id for job in jobs]
print(ids(snap), snap.queues(), ids(snap.leased()), ids(snap.unvalidated()), ids(snap.backing_off()),
      [ids(snap.queued(q, p, o)) for q in snap.queues() for p in (None, "a") for o in Order],
      [ids(snap.gang("q1", f"g{{n}}")) for n in range(40)],
      snap.diff(old).changed, snap.diff(old).removed)
""".format(paths=[path for path in sys.path if path.endswith("tests")])
    script = script.replace(
        "from kit.jobs import *", "from kit.jobs import *\nfrom pyresched.model import Gang"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(answers) == 1
    assert len(answers.pop()) > 1000
