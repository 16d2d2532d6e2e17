"""One writer: who waits, who is told what, and what becomes of a writer that nobody ends."""

import gc
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from kit.jobs import backing_off, job, jobs, leased
from pyresched.errors import InputError, TxnClosed, WriterBusy
from pyresched.jobdb import JobDb, Reader, Txn
from pyresched.model import Job


def in_thread(call: Callable[[], object], *, name: str = "") -> None:
    """Run *call* in a thread of its own and wait for its end."""
    thread = threading.Thread(target=call, name=name)
    thread.start()
    thread.join()


@pytest.fixture
def busy(db: JobDb) -> Iterator[Callable[[], None]]:
    """A thread `holder` that holds the writer; called, it lets go."""
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with db.write() as txn:
            txn.upsert(job("held"))
            held.set()
            let_go.wait()

    thread = threading.Thread(target=hold, name="holder")
    thread.start()
    held.wait()

    def release() -> None:
        let_go.set()
        thread.join()

    yield release
    release()


def test_a_second_writer_is_told_who_writes_and_since_when(
    db: JobDb, busy: Callable[[], None]
) -> None:
    """WriterBusy names the thread, for how long it has held, and since which version."""
    del busy
    for timeout in (0, 0.01):
        with pytest.raises(WriterBusy, match=r"holder has been writing for 0\.\d+ s, since ver"):
            db.write(timeout=timeout)


def test_a_second_writer_gets_its_turn(db: JobDb, busy: Callable[[], None]) -> None:
    """It waits for the end of the first and sees what that committed."""
    seen: list[bool] = []

    def write() -> None:
        with db.write() as txn:
            seen.append("held" in txn)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join(0.1)
    assert thread.is_alive()
    busy()
    thread.join()
    assert seen == [True]


THIS_THREAD = r"this thread has a transaction open: MainThread, for 0\.\d+ s, since version 0; com"


def test_a_thread_that_waits_for_itself_is_told_at_once(db: JobDb) -> None:
    """Without a timeout too: nobody could ever end the wait."""
    with db.write(), pytest.raises(WriterBusy, match=THIS_THREAD):
        db.write()
    with db.write() as txn:
        txn.upsert(job("a"))


def test_a_wait_ends_with_a_signal(db: JobDb, busy: Callable[[], None]) -> None:
    """Ctrl-C is heard while a writer waits."""
    del busy

    def heard(_signal: int, _frame: FrameType | None) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, heard)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(InterruptedError):
            db.write()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_writer_that_is_dropped_is_aborted_with_a_warning(db: JobDb) -> None:
    """It leaves no trace and frees the lock."""
    txn = db.write()
    txn.upsert(job("a"))
    with pytest.warns(ResourceWarning, match="dropped without commit or abort"):
        del txn
    with db.write(timeout=0) as txn:
        assert len(txn) == 0


def test_a_writer_in_a_cycle_is_aborted_when_it_is_collected(db: JobDb) -> None:
    """The collector can see through whoever holds it, its own walks among them."""
    with db.write() as txn:
        txn.upsert_many(jobs(50))
    txn = db.write()
    txn.delete_many(["job-000000"])
    cycle: list[object] = [txn, iter(txn), txn.queued("queue-a"), txn.leased()]
    cycle.append(cycle)
    del txn, cycle
    with pytest.warns(ResourceWarning, match="dropped"):
        gc.collect()
    db.write(timeout=0).abort()
    assert len(db.snapshot()) == 50


def test_a_writer_whose_thread_ended_is_aborted_by_the_next(db: JobDb) -> None:
    """With a warning that names the thread; its transaction is closed."""
    left: list[Txn] = []

    def leave() -> None:
        left.append(db.write())
        left[0].upsert(job("a"))

    in_thread(leave, name="forgetful")
    with (
        pytest.warns(ResourceWarning, match="forgetful ended with a transaction open"),
        db.write(timeout=0) as txn,
    ):
        assert len(txn) == 0
    assert left[0].closed
    with pytest.raises(TxnClosed):
        left[0].upsert(job("b"))
    left.clear()


def test_a_writer_whose_thread_ends_while_another_waits_is_aborted(db: JobDb) -> None:
    """The one that waits finds out by itself."""
    held, let_go = threading.Event(), threading.Event()
    left: list[Txn] = []

    def leave() -> None:
        left.append(db.write())
        held.set()
        let_go.wait(10)

    thread = threading.Thread(target=leave)
    thread.start()
    held.wait()
    timer = threading.Timer(0.1, let_go.set)
    timer.start()
    with pytest.warns(ResourceWarning, match="ended with a transaction open"):
        db.write().abort()
    timer.join()
    left.clear()


def test_another_thread_may_end_a_transaction(db: JobDb) -> None:
    """The lock belongs to the transaction, not to the thread."""
    txn = db.write()
    txn.upsert(job("a"))
    in_thread(txn.commit)
    assert "a" in db.snapshot()
    db.write(timeout=0).abort()


# A thread that Python's `threading` did not start.
FOREIGN = "_thread.start_new_thread(hold, ())"
# What a script for a fork begins with; it ends with what the child does, in `child()`.
FORK = """
import _thread, os, sys, threading, time, warnings
sys.path[:0] = {paths!r}
from kit.jobs import job, jobs
from pyresched.errors import WriterBusy
from pyresched.jobdb import JobDb

warnings.simplefilter("error")
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
db = JobDb()
with db.write() as txn:
    txn.upsert_many(jobs(100))
held, let_go, gone = (threading.Event() for _ in range(3))

def hold():
    with db.write() as txn:
        txn.upsert(job("held"))
        txn.delete_many(["job-000001"])
        held.set()
        let_go.wait(10)
    gone.set()

def in_child(call):
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if call() else 1)
        except BaseException as error:
            print(type(error).__name__, error, flush=True)
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0

def writes_its_own():
    snap = db.snapshot()
    with db.write(timeout=5) as txn:
        assert "held" not in txn
        txn.upsert(job("mine"))
        txn.delete_many(["job-000002"])
    with db.dry_run() as trial:
        trial.upsert(job("tried"))
    db.apply(trial, timeout=5)
    assert db.check(db.snapshot()) == []
    return len(snap) == 100 and len(db.snapshot()) == 101
"""


class TestFork:
    @staticmethod
    def run(script: str) -> None:
        """Run *script* after FORK in an interpreter of its own; what it prints is an error."""
        paths = [path for path in sys.path if path.endswith("tests")]
        told = subprocess.run(
            [sys.executable, "-c", FORK.format(paths=paths) + script],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert (told.returncode, told.stdout, told.stderr) == (0, "", "")

    def test_a_child_reads_and_writes_its_own_copy(self) -> None:
        """The parent sees none of it."""
        self.run(
            """
assert in_child(writes_its_own)
assert list(db.snapshot()) == jobs(100)
"""
        )

    @pytest.mark.parametrize("start", ["threading.Thread(target=hold).start()", FOREIGN])
    def test_a_child_is_not_kept_waiting_by_a_thread_of_its_parent(self, start: str) -> None:
        """The thread that wrote is not there; it goes on in the parent, where another waits."""
        self.run(
            f"{start}\n"
            """
held.wait()
waiting = threading.Thread(target=lambda: db.write().abort())
waiting.start()
time.sleep(0.1)
assert in_child(writes_its_own)
assert "held" not in db.snapshot()
let_go.set()
gone.wait()
waiting.join()
assert "held" in db.snapshot()
"""
        )

    def test_a_transaction_of_the_thread_that_forks_goes_on_in_both(self) -> None:
        """Each commits its copy; other threads of the child wait for it as ever."""
        self.run(
            """
txn = db.write()
txn.upsert(job("held"))

def child():
    told = []
    def other():
        try:
            db.write(timeout=0)
        except WriterBusy as error:
            told.append(str(error))
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    txn.upsert(job("mine"))
    return "MainThread has been writing" in told[0] and txn.commit() == 2

assert in_child(child)
assert "mine" not in txn
assert txn.commit() == 2
"""
        )


def first_of(reader: Reader) -> Job:
    """The first job in submit order."""
    return next(iter(reader))


class TestMemory:
    """Nothing is kept that no version sees."""

    @staticmethod
    def busy_work(txn: Txn) -> None:
        """Some of every kind of change."""
        txn.upsert_many(leased(each) for each in list(txn)[::3])
        txn.upsert_many(backing_off(leased(each)) for each in list(txn)[1::3])
        txn.delete_many(job.id for job in list(txn)[2::5])
        txn.upsert_many(jobs(150, prefix="new" * 10, queue="queue-b"))
        txn.delete_many(job.id for job in list(txn)[::7])

    def test_an_abort_gives_back_all_that_it_took(self, db: JobDb) -> None:
        """INV-D11: bytes and slots are as before, also after a dry run."""
        with db.write() as txn:
            txn.upsert_many(jobs(300))
        before = db.memory()
        for begin in (db.write, db.dry_run):
            txn = begin()
            self.busy_work(txn)
            assert db.memory() != before
            txn.abort()
            assert db.memory() == before

    def test_a_snapshot_that_goes_gives_back_what_only_it_saw(self) -> None:
        """What is left is what a db has that never had a snapshot."""
        sizes = []
        for held in (False, True):
            db = JobDb()
            with db.write() as txn:
                txn.upsert_many(jobs(300))
            snap = db.snapshot() if held else None
            with db.write() as txn:
                self.busy_work(txn)
            for turn in range(20):
                with db.write() as txn:
                    txn.upsert_many([each.replace(priority=turn) for each in txn][turn::7])
            del snap
            memory = db.memory()
            assert memory["pinned"] == []
            sizes.append({**memory, "rows": 0})  # pages follow slots, which were not reused
        assert sizes[0] == sizes[1]

    def test_a_deleted_job_is_let_go_when_no_version_sees_it(self, db: JobDb) -> None:
        """Payload and all: not before the last snapshot, not after."""

        class Payload:
            pass

        payload = Payload()
        gone = weakref.ref(payload)
        with db.write() as txn:
            txn.upsert(job("a", payload=payload))
        del payload
        old = db.snapshot()
        with db.write() as txn:
            txn.delete_many(["a"])
        newer = db.snapshot()
        assert gone() is old["a"].payload
        del old
        assert gone() is None
        del newer

    def test_a_queue_that_nobody_uses_is_forgotten(self, db: JobDb) -> None:
        """INV-D18: names that come and go cost what is there at one time, not what there was."""

        def churn(first: int, count: int) -> dict[str, object]:
            for turn in range(first, first + count):
                with db.write() as txn:
                    txn.delete_many([f"job-{turn - 1}"])
                    txn.upsert(job(f"job-{turn}", queue=f"queue-{turn}", pools=("p", f"{turn}")))
            return db.memory()

        before = churn(0, 3)
        assert churn(3, 200) == {**before, "rows": db.memory()["rows"]}
        assert before["lane_slots"] == 2
        assert db.snapshot().queues() == ["queue-202"]

    def test_a_queue_is_known_as_long_as_a_version_sees_jobs_in_it(self, db: JobDb) -> None:
        """INV-D18: its number goes to no other queue before; the same queue may fill again."""
        snaps = []
        for turn in range(6):
            with db.write() as txn:
                txn.delete_many(each.id for each in txn)
                txn.upsert_many(jobs(3, prefix=str(turn), queue=f"queue-{turn % 4}"))
            snaps.append(db.snapshot())
        for order in (2, 0, 0, 1, 1, 0):
            held = [
                (snap.queues(), {each.queue for each in snap.queued(queue)})
                for snap in snaps
                for queue in snap.queues()
            ]
            assert held == [([each.queue], {each.queue}) for each in map(first_of, snaps)]
            assert db.memory()["lane_slots"] == len(
                {each.queue for each in map(first_of, snaps)} | {"queue-1"}
            )
            del snaps[order]
        assert db.memory()["lane_slots"] == 1

    @pytest.mark.parametrize("end", ["abort", "refused", "dry run", "deleted at once"])
    def test_a_queue_that_never_came_to_be_is_not_known(self, db: JobDb, end: str) -> None:
        """INV-D18: nor do its names cost anything."""
        before = db.memory()["lane_slots"]
        txn = db.dry_run() if end == "dry run" else db.write()
        if end == "refused":
            with pytest.raises(InputError):
                txn.upsert_many(
                    [job("a", queue="new"), job("b", queue="other", priority_class="none")]
                )
            txn.commit()
        else:
            txn.upsert(job("a", queue="new", pools=("p", "q")))
            if end == "deleted at once":
                txn.delete_many(["a"])
                txn.upsert(job("a", queue="new"))
                txn.delete_many(["a"])
            txn.abort() if end == "abort" else txn.commit()
        assert db.memory()["lane_slots"] == before == 0

    def test_a_dropped_db_lets_its_jobs_go(self) -> None:
        """In a cycle with its own snapshot, too."""

        class Payload:
            pass

        payload = Payload()
        gone = weakref.ref(payload)
        db = JobDb()
        with db.write() as txn:
            txn.upsert(job("a", payload=payload))
        del payload, txn
        db.mine = db.snapshot()  # type: ignore[attr-defined]
        del db
        gc.collect()
        assert gone() is None

    def test_the_end_of_a_payload_may_use_the_db(self, db: JobDb) -> None:
        """User code that runs inside a commit finds the store whole and can write to it."""

        class Chatty:
            def __del__(self) -> None:
                with db.write() as txn:
                    txn.upsert(job(f"after-{db.version}"))

        with db.write() as txn:
            txn.upsert_many([job("a", payload=Chatty()), job("b", payload=Chatty())])
        with db.write() as txn:
            txn.delete_many(["a"])
        snap = db.snapshot()
        with db.write() as txn:
            txn.delete_many(["b"])
        del snap
        assert [each.id for each in db.snapshot()] == ["after-2", "after-4"]

    @pytest.mark.parametrize("dry", [False, True])
    def test_a_commit_returns_its_own_version(self, db: JobDb, dry: bool) -> None:
        """Also when what it lets go commits another one before it returns."""

        class Chatty:
            def __del__(self) -> None:
                with db.write() as txn:
                    txn.upsert(job("after"))

        with db.write() as txn:
            txn.upsert(job("a", payload=Chatty()))
        if dry:
            trial = db.dry_run()
            trial.delete_many(["a"])
            trial.depend_on(ids=["b"])
            assert db.apply(trial) == 2
            del trial
        else:
            txn = db.write()
            txn.delete_many(["a"])
            assert txn.commit() == 2
        assert db.version == 3


def test_readers_see_whole_commits_while_a_writer_works(db: JobDb) -> None:
    """INV-D12: each commit moves a token from one job to the other; none ever sees two or none."""
    with db.write() as txn:
        txn.upsert_many([job("left", priority=1), job("right"), *jobs(200)])
    stop = threading.Event()
    wrong: list[object] = []

    def read() -> None:
        last = 0
        while not stop.is_set():
            snap = db.snapshot()
            token = snap["left"].priority + snap["right"].priority
            backwards = snap.version < last
            last = snap.version
            whole = len(list(snap)) == len(snap) == 202 == snap.queue_length("queue-a")
            if token != 1 or backwards or not whole:
                wrong.append((token, last, len(snap)))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for turn in range(400):
        with db.write() as txn:
            left = txn["left"]
            txn.upsert(left.replace(priority=1 - left.priority))
            txn.upsert(txn["right"].replace(priority=left.priority))
            txn.delete_many([f"job-{turn % 200:06}"])
            txn.upsert(job(f"job-{turn % 200:06}", priority=turn))
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []


def test_every_commit_is_checked_when_the_environment_asks(tmp_path: object) -> None:
    """`PYRESCHED_CHECK=all`: a breach is an error of the very commit that made it."""
    del tmp_path
    script = """
import sys
sys.path[:0] = {paths!r}
from kit.jobs import job
from pyresched.jobdb import JobDb
db = JobDb()
with db.write() as txn:
    txn.upsert(job("a"))
txn = db.write()
txn.sabotage("lanes", job("a"), link=False)
try:
    txn.commit()
except AssertionError as error:
    print(error)
""".format(paths=[path for path in sys.path if path.endswith("tests")])
    told = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYRESCHED_CHECK": "all"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert told.startswith("version 2: INV-D3: ")
