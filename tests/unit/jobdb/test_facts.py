"""Facts that any job db must show and that no other test here names: small, whole stories."""

from collections.abc import Callable, Iterable

import pytest

from kit.jobs import backing_off, ended, job, jobs, leased, requeued, run
from pyresched.jobdb import JobDb, Order, Reader, Snapshot
from pyresched.model import Gang, Job, JobState, Outcome


def put(db: JobDb, *jobs: Job) -> Snapshot:
    """The version that one commit of *jobs* makes."""
    with db.write() as txn:
        txn.upsert_many(jobs)
    return db.snapshot()


def ids(jobs: Iterable[Job]) -> list[str]:
    """Their ids."""
    return [job.id for job in jobs]


def walks(reader: Reader, queue: str = "queue-a") -> list[list[Job]]:
    """A queue in both orders, of one pool and of all."""
    return [
        list(reader.queued(queue, pool, order)) for pool in ("default", None) for order in Order
    ]


def test_a_deletion_takes_the_named_job_alone(db: JobDb) -> None:
    """Fact 20: its neighbours in every index stay, those of its gang and queue among them."""
    members = [job(f"m{n}", gang=Gang("g", 3), validated=False) for n in range(3)]
    waiting = [backing_off(leased(job(f"w{n}"))) for n in range(3)]
    holding = [leased(job(f"l{n}")) for n in range(3)]
    put(db, *members, *waiting, *holding)
    with db.write() as txn:
        assert txn.delete_many(["m1", "w1", "l1"]) == 3
    snap = db.snapshot()
    assert ids(snap) == ["l0", "l2", "m0", "m2", "w0", "w2"]
    assert ids(snap.gang("queue-a", "g")) == ids(snap.unvalidated()) == ["m0", "m2"]
    assert ids(snap.leased()) == ["l0", "l2"]
    assert ids(snap.backing_off()) == ["w0", "w2"]
    assert [ids(walk) for walk in walks(snap)] == [["m0", "m2"]] * 4


def test_a_walk_gives_what_its_transaction_wrote_and_after_an_abort_nobody_sees_it(
    db: JobDb,
) -> None:
    """Fact 21, in both orders, of one pool and of all."""
    before = job("a", priority=7)
    put(db, before)
    txn = db.write()
    after = before.replace(priority=3)
    txn.upsert(after)
    assert walks(txn) == [[after]] * 4
    assert walks(db.snapshot()) == [[before]] * 4
    txn.abort()
    assert walks(db.snapshot()) == [[before]] * 4


def test_one_id_stands_once_in_every_order(db: JobDb) -> None:
    """Fact 28: jobs of one id are one job, whatever else differs."""
    versions = [
        job("a", priority=9, submitted_at=5),
        job("a", priority=1, submitted_at=5, version=2),
        job("a", priority=1, submitted_at=2, priority_class="best-effort", version=3),
        job("a", priority=1, submitted_at=8, pools=("default", "p2"), version=4),
    ]
    for each in versions:
        with db.write() as txn:
            txn.upsert(each)
            assert walks(txn) == [[each]] * 4
        assert walks(db.snapshot()) == [[each]] * 4
        assert list(db.snapshot()) == [each]


@pytest.mark.parametrize("which", ["class", "priority", "submitted"])
def test_a_key_that_changes_moves_the_job(db: JobDb, which: str) -> None:
    """Facts 29 to 31, for a job that is there already: to the front and back again."""
    ahead: dict[str, Callable[[Job], Job]] = {
        "class": lambda one: one.replace(requirements=job().requirements),
        "priority": lambda one: one.replace(priority=0),
        "submitted": lambda one: one.replace(submitted_at=-1),
    }
    fields = {"priority_class": "best-effort", "priority": 5}
    others = [job(f"b{n}", submitted_at=n, **fields) for n in range(80)]  # type: ignore[arg-type]
    last = job("a", submitted_at=99, **fields)  # type: ignore[arg-type]
    assert ids(put(db, *others, last).queued("queue-a"))[-1] == "a"
    first = ahead[which](last)
    assert ids(put(db, first).queued("queue-a"))[0] == "a"
    snap = put(db, Job(**{**last.as_dict(), "version": 3}))  # type: ignore[arg-type]
    assert ids(snap.queued("queue-a"))[-1] == "a"


def test_a_running_job_stands_in_no_queue(db: JobDb) -> None:
    """Facts 34, 35 as ours: what holds a node is walked by `leased`, in submit order, and never
    comes before or after what is queued.
    """
    old = leased(job("z", submitted_at=1), at=50)
    new = leased(job("a", submitted_at=2), at=10)
    snap = put(db, new, old, job("q", submitted_at=0))
    assert ids(snap.queued("queue-a")) == ["q"]
    assert ids(snap.leased()) == ["z", "a"]


def test_the_newest_run_decides_whether_a_node_is_held(db: JobDb) -> None:
    """Facts 42, 43: its index follows the last run, whatever stands before it."""
    stray = run("r0")
    cases = {
        "open, then open": ((stray, run("r1")), True),
        "open, then ended": ((stray, run("r1", ended_at=1, outcome=Outcome.LOST)), False),
        "ended, then open": ((run("r1", ended_at=1, outcome=Outcome.LOST), stray), True),
        "none": ((), False),
    }
    for name, (runs, held) in cases.items():
        snap = put(db, job("a", state=JobState.LEASED, runs=runs))
        assert ids(snap.leased()) == ["a"] * held, name
        assert [snap.by_run(each.id) is not None for each in runs] == [True] * len(runs), name
        with db.write() as txn:
            txn.delete_many(["a"])


def test_a_job_that_is_queued_ended_or_waits_holds_nothing(db: JobDb) -> None:
    """Fact 42, the other half: not even with a run that never ended."""
    runs = (run("r"),)
    for state in JobState:
        snap = put(db, job("a", state=state, runs=runs, eligible_at=1))
        assert ids(snap.leased()) == ["a"] * state.active, state
        with db.write() as txn:
            txn.delete_many(["a"])


def test_text_that_is_equal_is_no_change(db: JobDb) -> None:
    """Fact 48: reasons are compared by what they say, not by which object says it."""
    old = put(db, job("a", reason="user asked"), job("b"))
    again = put(db, job("a", reason=" user asked"[1:]), job("b"))
    assert not again.diff(old)
    other = put(db, job("a", reason="user asked twice"), job("b", reason="new"))
    assert other.diff(again).changed == ("a", "b")
    assert (other["a"].reason, again["b"].reason) == ("user asked twice", "")


def test_a_comparison_of_two_versions_is_symmetric(db: JobDb) -> None:
    """R12: what only one of the two has is seen from either side, as is what differs."""
    first = put(db, *jobs(40))
    with db.write() as txn:
        txn.delete_many(["job-000003"])
        txn.upsert_many([job("only"), leased(first["job-000007"])])
    second = db.snapshot()
    there, back = second.diff(first), first.diff(second)
    assert [(new, old) for old, new in there.pairs()] == list(back.pairs())
    assert (
        (there.added, there.removed) == (back.removed, back.added) == (("only",), ("job-000003",))
    )
    assert there.changed == back.changed == ("job-000007",)


def test_a_job_that_lived_a_whole_life_leaves_nothing_behind(db: JobDb) -> None:
    """Facts 6, 7, 11 in one: after its deletion no index knows its id, its runs or its gang."""
    one = job("a", gang=Gang("g", 2), validated=False)
    for step in (
        one,
        one := one.replace(validated=True),
        one := leased(one),
        one := backing_off(one),
        one := requeued(one),
        one := leased(one),
        ended(one),
    ):
        put(db, step)
    empty = JobDb().snapshot().contents()
    with db.write() as txn:
        txn.delete_many(["a"])
        assert txn.contents() == empty
    assert db.snapshot().contents() == empty
    assert (db.memory()["id_slots"], db.memory()["run_slots"]) == (0, 0)
