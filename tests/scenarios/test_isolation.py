"""What one reader or writer may see of another, by the names of the anomalies that there are not.

docs/mvcc.md has the table: each of its rows names a test here. Everything that is read goes
through `seen`, so that no way to read is left out.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from kit.jobs import backing_off, ended, gang, job, jobs, leased, requeued
from pyresched.errors import Conflict, WriterBusy
from pyresched.jobdb import DryRun, JobDb, Order, Reader
from pyresched.model import Gang, Job

QUEUE = "queue-a"


@pytest.fixture
def db() -> Iterator[JobDb]:
    """A job db with something in every index; sound after the test."""
    db = JobDb()
    put(
        db,
        *jobs(70),
        *gang("g", submitted_at=100),
        leased(job("held", submitted_at=200)),
        backing_off(leased(job("waits", submitted_at=201))),
        job("new", validated=False, submitted_at=202),
    )
    yield db
    assert db.check(db.snapshot()) == []


def put(db: JobDb, *jobs: Job) -> int:
    """One commit of *jobs*."""
    with db.write() as txn:
        txn.upsert_many(jobs)
    return db.version


def ids(jobs: Iterable[Job]) -> list[str]:
    """Their ids."""
    return [job.id for job in jobs]


def seen(reader: Reader) -> dict[str, Any]:
    """What *reader* answers, by every way to ask."""
    everything = list(reader)
    names = ids(everything)
    return {
        "iter": everything,
        "len": len(reader),
        "get": [reader.get(id) for id in [*names, "fresh", "job-000000"]],
        "get_many": reader.get_many([*names, "fresh", "job-000000"]),
        "in": ["fresh" in reader, "job-000000" in reader],
        "queued": {
            (queue, pool, order): list(reader.queued(queue, pool, order))
            for queue in (QUEUE, "queue-b")
            for pool in (None, "default", "p2")
            for order in Order
        },
        "queue_length": [reader.queue_length(queue) for queue in (QUEUE, "queue-b")],
        "queues": reader.queues(),
        "gang": [reader.gang(QUEUE, "g"), reader.gang(QUEUE, "h")],
        "by_run": [reader.by_run(id) for id in ("held/run-1", "waits/run-1", "job-000001/run-1")],
        "leased": list(reader.leased()),
        "unvalidated": list(reader.unvalidated()),
        "backing_off": list(reader.backing_off()),
        "columns": {
            name: column.tolist()
            for ids in (None, [*names, "fresh"])
            for name, column in reader.columns("state", "priority", "runs", ids=ids).items()
        },
    }


def change_everything(txn: Any) -> None:
    """A change that every way to read would show."""
    txn.upsert(job("fresh", submitted_at=-1, queue="queue-b", pools=("p2",)))
    txn.delete_many(["job-000000"])
    txn.upsert(leased(txn["job-000001"]))
    txn.upsert(txn["job-000002"].replace(priority=9, pools=("default", "p2")))
    txn.upsert(txn["job-000003"].replace(gang=Gang("h", 2)))
    txn.upsert(txn["new"].replace(validated=True))
    txn.upsert_many([ended(txn["held"]), requeued(txn["waits"])])
    txn.delete_many(["g.0"])


def differing(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    """The ways to ask whose answers differ."""
    return {way for way in one if one[way] != other[way]}


def in_threads(*calls: Callable[[], object]) -> None:
    """Run the calls at once; what one of them raises fails the test."""
    failed: list[BaseException] = []

    def guarded(call: Callable[[], object]) -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - told to the test, whatever it is
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_control_the_change_is_seen_by_every_way_to_read(db: JobDb) -> None:
    """Else the tests below would compare what cannot differ."""
    before = seen(db.snapshot())
    with db.write() as txn:
        change_everything(txn)
    assert differing(before, seen(db.snapshot())) == set(before)


class TestReads:
    def test_dirty_read(self, db: JobDb) -> None:
        """Nobody sees what a transaction has not committed: neither readers from before nor
        those that begin meanwhile, dry runs among them.
        """
        old = db.snapshot()
        before = seen(old)
        with db.write() as txn:
            change_everything(txn)
            dry = db.dry_run()
            for reader in (old, db.snapshot(), dry):
                assert differing(before, seen(reader)) == set()
            dry.abort()

    def test_aborted_read(self, db: JobDb) -> None:
        """What was aborted was never there, for any reader of any time."""
        before = seen(db.snapshot())
        for begin in (db.write, db.dry_run):
            txn = begin()
            change_everything(txn)
            during = db.snapshot()
            txn.abort()
            for reader in (during, db.snapshot()):
                assert differing(before, seen(reader)) == set()

    def test_intermediate_read(self, db: JobDb) -> None:
        """Of a transaction that writes a job twice, others see the last row only."""
        with db.write() as txn:
            txn.upsert(txn["job-000005"].replace(priority=1))
            between = db.snapshot()
            txn.upsert(txn["job-000005"].replace(priority=2))
        assert between["job-000005"].priority == 0
        assert db.snapshot()["job-000005"].priority == 2

    def test_non_repeatable_read(self, db: JobDb) -> None:
        """A reader gets the same answer for as long as it lives, whatever is committed."""
        readers: list[Reader] = [db.snapshot(), db.dry_run()]
        before = seen(readers[0])
        with db.write() as txn:
            change_everything(txn)
        for turn in range(5):
            put(db, *(each.replace(priority=turn) for each in list(db.snapshot())[turn::5]))
            for reader in readers:
                assert differing(before, seen(reader)) == set()
        readers[1].abort()  # type: ignore[attr-defined]

    def test_read_skew(self, db: JobDb) -> None:
        """Two rows that are read one after the other are of one version, whatever is committed
        between the two reads.
        """
        put(db, job("left", priority=5), job("right", priority=5))
        snap = db.snapshot()
        left = snap["left"].priority
        put(db, snap["left"].replace(priority=9), snap["right"].replace(priority=1))
        assert left + snap["right"].priority == 10
        assert sum(each.priority for each in snap.get_many(["left", "right"]) if each) == 10

    def test_phantom_in_a_queue_walk(self, db: JobDb) -> None:
        """Neither a walk under way nor a second one meets jobs that came later, or misses some
        that went.
        """
        snap = db.snapshot()
        expected = list(snap.queued(QUEUE))
        walk, begun = snap.queued(QUEUE), []
        for n in range(0, 60, 3):
            begun.append(next(walk))
            with db.write() as txn:
                txn.delete_many([f"job-{n:06}", f"job-{n + 2:06}"])
                txn.upsert(job(f"phantom-{n}", submitted_at=n))
                txn.upsert(leased(txn[f"job-{n + 1:06}"]))
        assert [*begun, *walk] == expected == list(snap.queued(QUEUE))
        assert snap.queue_length(QUEUE) == len(expected)

    def test_phantom_gang_member(self, db: JobDb) -> None:
        """A gang has the members that it had, asked again after one came and one went."""
        snap = db.snapshot()
        members = snap.gang(QUEUE, "g")
        with db.write() as txn:
            txn.upsert(job("g.9", gang=Gang("g", 2)))
            txn.delete_many(["g.0"])
        assert ids(members) == ["g.0", "g.1"]
        assert snap.gang(QUEUE, "g") == members
        assert ids(db.snapshot().gang(QUEUE, "g")) == ["g.9", "g.1"]

    def test_a_commit_is_seen_whole_or_not_at_all(self, db: JobDb) -> None:
        """INV-D12, with readers at work: two rows that a commit writes always agree, in every
        index that has them, and a third is there in every other version.
        """
        put(db, job("left", queue="pair"), job("right", queue="pair"))
        turns, count = 300, len(db.snapshot())
        done = threading.Event()
        wrong: list[object] = []

        def write() -> None:
            for turn in range(1, turns + 1):
                with db.write() as txn:
                    txn.upsert(txn["left"].replace(priority=turn))
                    if turn % 2:
                        txn.upsert(job("third", gang=Gang("h", 2)))
                    else:
                        txn.delete_many(["third"])
                    txn.upsert(txn["right"].replace(priority=turn))
            done.set()

        def read() -> None:
            while not done.is_set():
                snap = db.snapshot()
                pair = snap.get_many(["left", "right"])
                walked = list(snap.queued("pair", "default"))
                found = {each.priority for each in (*pair, *walked, snap["left"]) if each}
                third = {
                    found.pop() % 2 == 1,
                    "third" in snap,
                    len(snap.gang(QUEUE, "h")) == 1,
                    len(snap) == count + 1,
                }
                if found or len(walked) != 2 or len(third) != 1:
                    wrong.append((snap.version, found, len(walked), third))

        in_threads(write, read, read)
        assert wrong == []
        assert db.snapshot()["left"].priority == turns


class TestWrites:
    def test_dirty_write(self, db: JobDb) -> None:
        """Nobody writes over what is not committed: who tries waits, then sees it."""
        held, found = threading.Event(), []

        def first() -> None:
            with db.write() as txn:
                txn.upsert(txn["job-000009"].replace(priority=1))
                held.set()
                with pytest.raises(WriterBusy):
                    db.write(timeout=0)

        def second() -> None:
            held.wait()
            with db.write() as txn:
                found.append(txn["job-000009"].priority)
                txn.upsert(txn["job-000009"].replace(priority=2))

        in_threads(first, second)
        assert found == [1]
        assert db.snapshot()["job-000009"].priority == 2

    def test_lost_update(self, db: JobDb) -> None:
        """Writers that read and add one in a transaction count all of them."""
        put(db, job("counter", priority=0))

        def count() -> None:
            for _ in range(50):
                with db.write() as txn:
                    txn.upsert(txn["counter"].replace(priority=txn["counter"].priority + 1))

        in_threads(count, count, count, count)
        assert db.snapshot()["counter"].priority == 200

    def test_write_skew_between_writers(self, db: JobDb) -> None:
        """Writers come one after the other, so what each has read still holds when it writes."""
        put(db, job("left"), job("right"))

        def lease(mine: str, other: str) -> None:
            with db.write() as txn:
                if not txn[other].state.active:
                    txn.upsert(leased(txn[mine]))

        in_threads(lambda: lease("left", "right"), lambda: lease("right", "left"))
        states = [each.state.active for each in db.snapshot().get_many(["left", "right"]) if each]
        assert sorted(states) == [False, True]

    def test_a_batch_is_written_whole_or_not_at_all(self, db: JobDb) -> None:
        """A row that is refused takes its batch with it, and nobody sees a part."""
        before = seen(db.snapshot())
        with db.write() as txn:
            for batch in ([job("x"), "no job"], [job("x"), job("y", priority_class="none")]):
                with pytest.raises((TypeError, ValueError)):
                    txn.upsert_many(batch)  # type: ignore[arg-type]
                assert differing(before, seen(txn)) == set()
        assert differing(before, seen(db.snapshot())) == set()


class TestApply:
    """Dry runs that are applied: what is excluded by itself, and what `depend_on` excludes."""

    def test_lost_update_by_dry_runs(self, db: JobDb) -> None:
        """Of two that add one to what they read, the second is told; tried again, it counts."""
        put(db, job("counter", priority=0))
        first, second = db.dry_run(), db.dry_run()
        for trial in (first, second):
            trial.upsert(trial["counter"].replace(priority=trial["counter"].priority + 1))
        db.apply(first)
        with pytest.raises(Conflict, match="'counter'"):
            db.apply(second)
        with db.dry_run() as again:
            again.upsert(again["counter"].replace(priority=again["counter"].priority + 1))
        db.apply(again)
        assert db.snapshot()["counter"].priority == 2

    def test_dirty_write_by_a_dry_run(self, db: JobDb) -> None:
        """While somebody writes, nothing is applied: it waits, or gives up in time."""
        trial = db.dry_run()
        trial.upsert(trial["job-000009"].replace(priority=2))
        with db.write() as txn:
            txn.upsert(txn["job-000010"].replace(priority=1))
            with pytest.raises(WriterBusy):
                db.apply(trial, timeout=0)
        db.apply(trial)
        assert [db.snapshot()[f"job-0000{n}"].priority for n in ("09", "10")] == [2, 1]

    def test_dirty_read_of_a_dry_run(self, db: JobDb) -> None:
        """Neither before it is applied nor when it is refused does anybody see a part of it."""
        before = seen(db.snapshot())
        trial = db.dry_run()
        change_everything(trial)
        assert differing(before, seen(db.snapshot())) == set()
        put(db, db.snapshot()["job-000002"].replace(reason="first"))
        before = seen(db.snapshot())
        with pytest.raises(Conflict):
            db.apply(trial)
        assert differing(before, seen(db.snapshot())) == set()

    def test_an_applied_dry_run_is_seen_whole_or_not_at_all(self, db: JobDb) -> None:
        """One version has nothing of it, the next has all."""
        trial = db.dry_run()
        change_everything(trial)
        old, expected = db.snapshot(), seen(trial)
        assert db.apply(trial) == old.version + 1
        assert differing(expected, seen(db.snapshot())) == set()

    def test_read_skew_in_a_dry_run(self, db: JobDb) -> None:
        """What it reads is of one version to its end, whatever is committed meanwhile."""
        put(db, job("left", priority=5), job("right", priority=5))
        trial = db.dry_run()
        left = trial["left"].priority
        put(db, trial["left"].replace(priority=9), trial["right"].replace(priority=1))
        assert left + trial["right"].priority == 10

    @staticmethod
    def lease_if_idle(db: JobDb, mine: str, other: str, *, careful: bool) -> DryRun:
        """Lease *mine* unless *other* holds a node: at most one of them should."""
        trial = db.dry_run()
        if careful:
            trial.depend_on(ids=[other])
        if not trial[other].state.active:
            trial.upsert(leased(trial[mine]))
        return trial

    def test_write_skew_between_dry_run_and_apply(self, db: JobDb) -> None:
        """Possible: each wrote what the other only read, and nobody said so."""
        put(db, job("left"), job("right"))
        first = self.lease_if_idle(db, "left", "right", careful=False)
        second = self.lease_if_idle(db, "right", "left", careful=False)
        db.apply(first)
        db.apply(second)
        assert ids(db.snapshot().get_many(["left", "right"])) == ["left", "right"]  # type: ignore[arg-type]
        assert all(each.state.active for each in db.snapshot().get_many(["left", "right"]) if each)

    def test_write_skew_excluded_by_depend_on(self, db: JobDb) -> None:
        """The second is told which job has changed that it depends on."""
        put(db, job("left"), job("right"))
        first = self.lease_if_idle(db, "left", "right", careful=True)
        second = self.lease_if_idle(db, "right", "left", careful=True)
        db.apply(first)
        with pytest.raises(Conflict) as told:
            db.apply(second)
        assert told.value.jobs == ("left",)
        assert not db.snapshot()["right"].state.active

    def test_write_skew_with_a_writer_excluded_by_depend_on(self, db: JobDb) -> None:
        """It is all one whether the other change was applied or committed."""
        put(db, job("left"), job("right"))
        trial = self.lease_if_idle(db, "right", "left", careful=True)
        put(db, leased(db.snapshot()["left"]))
        with pytest.raises(Conflict, match="'left'"):
            db.apply(trial)

    @pytest.mark.parametrize("careful", [False, True])
    def test_phantom_in_a_queue_between_dry_run_and_apply(self, db: JobDb, careful: bool) -> None:
        """A queue that was found empty is not: possible, unless the dry run depends on it."""
        trial = db.dry_run()
        if careful:
            trial.depend_on(queue="queue-b")
        if trial.queue_length("queue-b") == 0:
            trial.upsert(trial["job-000005"].replace(reason="queue-b is empty"))
        put(db, job("phantom", queue="queue-b"))
        if careful:
            with pytest.raises(Conflict, match="'phantom'"):
                db.apply(trial)
        else:
            db.apply(trial)
        assert (db.snapshot()["job-000005"].reason == "") is careful

    @pytest.mark.parametrize("careful", [False, True])
    def test_phantom_in_a_queue_of_one_pool(self, db: JobDb, careful: bool) -> None:
        """The same when a job that was queued comes to the pool, or leaves it."""
        for change in (("default", "p2"), ("default",)):
            trial = db.dry_run()
            if careful:
                trial.depend_on(queue=(QUEUE, "p2"))
            trial.upsert(trial["job-000005"].replace(priority=len(change)))
            put(db, db.snapshot()["job-000007"].replace(pools=change))
            if careful:
                with pytest.raises(Conflict, match="'job-000007'"):
                    db.apply(trial)
            else:
                db.apply(trial)
                assert db.snapshot()["job-000005"].priority == len(change)

    @pytest.mark.parametrize("careful", [False, True])
    def test_phantom_gang_member_between_dry_run_and_apply(self, db: JobDb, careful: bool) -> None:
        """A gang that was leased whole has another member by now: possible, unless the dry run
        depends on the gang.
        """
        trial = db.dry_run()
        if careful:
            trial.depend_on(gang=(QUEUE, "g"))
        trial.upsert_many(map(leased, trial.gang(QUEUE, "g")))
        put(db, job("g.9", gang=Gang("g", 2)))
        if careful:
            with pytest.raises(Conflict, match=r"'g\.9'"):
                db.apply(trial)
        else:
            db.apply(trial)
        assert len({each.state for each in db.snapshot().gang(QUEUE, "g")}) == (1 if careful else 2)

    def test_what_depends_on_all_it_reads_is_as_if_alone(self, db: JobDb) -> None:
        """Threads that lease at most five jobs of a queue between them: each looks how many are
        left, says so, and tries again when it was overtaken.
        """
        put(db, *jobs(30, prefix="few", queue="few"))

        def lease_while_many(mine: int) -> None:
            while True:
                with db.dry_run() as trial:
                    trial.depend_on(queue="few")
                    queued = list(trial.queued("few"))
                    if len(queued) <= 25:
                        return
                    time.sleep(0.001)  # so that others come in between
                    trial.upsert(leased(queued[mine]))
                with suppress(Conflict):
                    db.apply(trial)

        in_threads(*(partial(lease_while_many, mine) for mine in range(4)))
        assert db.snapshot().queue_length("few") == 25
        assert len([each for each in db.snapshot().leased() if each.queue == "few"]) == 5
