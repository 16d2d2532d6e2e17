"""Many threads on one job db: eight read, one writes, and some end where they should not.

`PYRESCHED_THREADS_S` says for how many seconds they go on (2; the nox session `threads` takes
20). What the threads ask is drawn from fixed seeds; which of them comes first is not.
"""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any

import numpy as np
import pytest

from kit.job_model import JobModel
from kit.jobs import backing_off, ended, gang, job, jobs, leased, requeued
from pyresched.errors import TxnClosed, WriterBusy
from pyresched.indices import IdIndex
from pyresched.jobdb import DryRun, JobDb, Reader, Snapshot, Txn
from pyresched.model import Gang, Job, JobState

SECONDS = float(os.environ.get("PYRESCHED_THREADS_S", "2"))
READERS = 8
QUEUES = ("queue-a", "queue-b")
IDS = [f"job-{n:06}" for n in range(160)]
NOBODY = -(2**63)  # in a column, for an id that no job has

# What is asked of a reader or of the model of its version, which has methods of the same names.
QUESTIONS: dict[str, Callable[[Any], object]] = {
    "leased": lambda reader: list(reader.leased()),
    "unvalidated": lambda reader: list(reader.unvalidated()),
    "backing off": lambda reader: list(reader.backing_off(7)),
    "queues": lambda reader: reader.queues(),
    **{
        f"{queue} in {pool}": lambda reader, queue=queue, pool=pool: list(
            reader.queued(queue, pool)
        )
        for queue in QUEUES
        for pool in (None, "p", "q")
    },
    **{f"gang {n}": lambda reader, n=n: reader.gang("queue-a", f"g{n}") for n in range(4)},
    **{f"run of {id}": lambda reader, id=id: reader.by_run(f"{id}/run-1") for id in IDS[::9]},
}


@pytest.fixture(autouse=True)
def _threads_take_short_turns() -> Iterator[None]:
    """So that they meet in as many places as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(2e-5)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def db(monkeypatch: pytest.MonkeyPatch) -> Iterator[JobDb]:
    """An empty db that checks every commit; sound, and read by nobody, after the test."""
    monkeypatch.setenv("PYRESCHED_CHECK", "all")
    db = JobDb(seed=bytes(range(16)))
    yield db
    assert db.check(db.snapshot()) == []
    gc.collect()
    assert db.memory()["pinned"] == []


class Threads:
    """Threads that run until the time is over or one of them fails; then all have ended."""

    def __init__(self, *, seconds: float) -> None:
        self.ends = time.monotonic() + seconds
        self.failed: list[BaseException] = []
        self.threads: list[threading.Thread] = []

    def goes_on(self) -> bool:
        """Whether there is time left and nobody has failed."""
        return not self.failed and time.monotonic() < self.ends

    def start(self, call: Callable[[], object], name: str) -> None:
        """Run *call* in a thread; what it raises fails the test."""

        def guarded() -> None:
            try:
                call()
            except BaseException as error:  # noqa: BLE001 - told to the test, whatever it is
                self.failed.append(error)

        self.threads.append(threading.Thread(target=guarded, name=name))
        self.threads[-1].start()

    def join(self) -> None:
        """Wait for all. Raises what the first that failed has raised."""
        for thread in self.threads:
            thread.join()
        if self.failed:
            raise self.failed[0]


def change(rng: Random, model: JobModel) -> tuple[list[str], list[Job]]:
    """Ids to delete and rows to write next, all of them legal."""
    put: dict[str, Job] = {}
    for id in rng.sample(IDS, rng.randint(1, 6)):
        old = model.jobs.get(id)
        n = rng.randrange(100)
        if old is None:
            put[id] = job(
                id,
                queue=QUEUES[n % 2],
                priority=n % 3,
                pools=(("p",), ("q",), ("p", "q"), ())[n % 4],
                submitted_at=n,
                gang=Gang(f"g{n % 4}", 9) if n % 3 == 0 else None,
                validated=n % 5 > 0,
                payload=bytearray(n),
            )
        elif old.state is JobState.QUEUED:
            put[id] = leased(old) if n < 70 else old.replace(priority=n % 3, validated=True)
        elif old.state is JobState.BACKING_OFF:
            put[id] = old.replace(state=JobState.QUEUED)
        elif old.state.active:
            put[id] = [ended(old), requeued(old), backing_off(old, eligible_at=n % 20)][n % 3]
    gone = [id for id, old in model.jobs.items() if old.state.terminal and rng.random() < 0.3]
    return gone, [each for id, each in put.items() if id not in gone]


class Writer:
    """Commits, aborts and dry runs, applied or not, in turn, and keeps what every version should answer."""

    def __init__(self, db: JobDb, seed: int) -> None:
        self.db = db
        self.rng = Random(seed)
        self.versions: dict[int, JobModel] = {db.version: JobModel()}
        self.aborted = 0

    def step(self) -> None:
        """One transaction or dry run."""
        kind = self.rng.random()
        newest = self.versions[self.db.version]
        model = newest.copy()
        gone, put = change(self.rng, model)
        model.delete_many(gone)
        model.upsert_many(put)
        tried = kind < 0.1 or kind > 0.8
        txn = self.db.dry_run() if tried else self.db.write(timeout=10)
        txn.delete_many(gone)
        txn.upsert_many(put)
        assert list(txn) == model.all()
        if kind < 0.25:
            txn.abort()
            self.aborted += 1
        else:
            # Before the commit: a reader may have the version the moment there is one.
            self.versions[self.db.version + 1] = model
            if isinstance(txn, DryRun):
                self.db.apply(txn)
            else:
                txn.commit()


class AReader:
    """Asks versions old and new, again and again, and notes what they answered."""

    def __init__(self, db: JobDb, seed: int) -> None:
        self.db = db
        self.rng = Random(seed)
        self.held: list[tuple[Snapshot, dict[str, object]]] = []
        self.walk: tuple[Iterator[Job], list[Job], list[Job]] | None = None
        self.notes: list[tuple[int, str, object]] = []
        self.last = 0
        self.diffs: list[tuple[int, int, list[tuple[Job | None, Job | None]]]] = []

    def step(self) -> None:
        """One question, and sometimes a snapshot more or less."""
        if len(self.held) < 2 or self.rng.random() < 0.2:
            snap = self.db.snapshot()
            assert snap.version >= self.last, "versions go forward"
            self.last = snap.version
            self.held.append((snap, {}))
        if len(self.held) > 5:
            del self.held[self.rng.randrange(len(self.held))]
        snap, before = self.rng.choice(self.held)
        name, answer = self.question(snap)
        if name in before:
            assert before[name] == answer, f"version {snap.version} changed its answer to {name}"
        else:
            before[name] = answer
            self.notes.append((snap.version, name, answer))
        self.go_on_with_a_walk(snap)

    def question(self, snap: Snapshot) -> tuple[str, object]:
        """One of those above, or all jobs, some by id, a check, a diff."""
        kind = self.rng.random()
        if kind < 0.05:
            assert self.db.check(snap) == []
        if kind < 0.2:
            everything = list(snap)
            assert len(snap) == len(everything)
            return "all", everything
        if kind < 0.4:
            first = self.rng.randrange(len(IDS) // 10)
            found = snap.get_many(IDS[first::10])
            assert found == [snap.get(id) for id in IDS[first::10]]
            return f"get {first}", found
        if kind < 0.5:
            first = self.rng.randrange(len(IDS) // 10)
            columns = snap.columns("state", "priority", "runs", ids=IDS[first::10])
            return f"columns {first}", [column.tolist() for column in columns.values()]
        if kind < 0.6:
            older, _ = self.held[0]
            self.diffs.append((snap.version, older.version, list(snap.diff(older).pairs())))
        name = self.rng.choice(list(QUESTIONS))
        return name, QUESTIONS[name](snap)

    def go_on_with_a_walk(self, snap: Snapshot) -> None:
        """A walk lives through many commits, and gives what there was when it began."""
        if self.walk is None:
            self.walk = (iter(snap), [], list(snap))
            return
        walk, given, expected = self.walk
        for _ in range(self.rng.randrange(12)):
            one = next(walk, None)
            if one is None:
                assert given == expected
                self.walk = None
                return
            given.append(one)


def verify(reader: AReader, versions: dict[int, JobModel]) -> None:
    """Hold what *reader* has noted against the models of the versions that it read."""
    for version, name, answer in reader.notes:
        model = versions[version]
        if name == "all":
            expected: object = model.all()
        elif name.startswith("get "):
            expected = [model.jobs.get(id) for id in IDS[int(name[4:]) :: 10]]
        elif name.startswith("columns "):
            found = [model.jobs.get(id) for id in IDS[int(name[8:]) :: 10]]
            expected = [
                [NOBODY if each is None else value(each) for each in found]
                for value in (
                    lambda each: each.state.value,
                    lambda each: each.priority,
                    lambda each: len(each.runs),
                )
            ]
        else:
            expected = QUESTIONS[name](model)
        assert answer == expected, (version, name)
    for new, old, pairs in reader.diffs:
        assert pairs == versions[new].diff(versions[old]), (new, old)


def test_eight_readers_and_a_writer(db: JobDb) -> None:
    """INV-D10, INV-D12: each answer is that of a dict of its version, and stays so; each commit
    and each reader's snapshot passes the checker.
    """
    writer = Writer(db, seed=1)
    readers = [AReader(db, seed=100 + n) for n in range(READERS)]
    threads = Threads(seconds=SECONDS)

    def repeat(step: Callable[[], None]) -> Callable[[], None]:
        def call() -> None:
            while threads.goes_on():
                step()

        return call

    threads.start(repeat(writer.step), "writer")
    for n, reader in enumerate(readers):
        threads.start(repeat(reader.step), f"reader {n}")
    threads.join()
    assert db.version > 10
    assert writer.aborted > 0
    for reader in readers:
        assert len({version for version, _, _ in reader.notes}) > 3
        verify(reader, writer.versions)
        reader.held.clear()
        reader.walk = None


def test_control_a_reader_of_two_versions_is_found_out(db: JobDb) -> None:
    """Answers of a version noted under another, or mixed, do not pass."""
    writer = Writer(db, seed=1)
    while db.version < 10:
        writer.step()
    reader = AReader(db, seed=1)
    reader.notes = [(9, "all", writer.versions[10].all())]
    with pytest.raises(AssertionError, match="9"):
        verify(reader, writer.versions)
    reader.notes, reader.diffs = [], [(10, 9, [])]
    with pytest.raises(AssertionError, match="10"):
        verify(reader, writer.versions)


def test_writers_take_turns_and_lose_nothing(db: JobDb) -> None:
    """Eight count in one row, each in its own and in none when it gives up in time."""
    with db.write() as txn:
        txn.upsert_many([job("sum", priority=0), *jobs(READERS, prefix="of")])
    counted = [0] * READERS
    threads = Threads(seconds=SECONDS / 2)

    def count(n: int) -> Callable[[], None]:
        own = f"of-{n:06}"

        def call() -> None:
            rng = Random(n)
            while threads.goes_on():
                try:
                    txn = db.write(timeout=rng.choice([0, 0.001, 1]))
                except WriterBusy as busy:
                    assert "has been writing for" in str(busy)  # noqa: PT017 - only now and then
                    continue
                txn.upsert(txn["sum"].replace(priority=txn["sum"].priority + 1))
                if rng.random() < 0.2:
                    txn.abort()
                    continue
                txn.upsert(txn[own].replace(priority=txn[own].priority + 1))
                txn.commit()
                counted[n] += 1

        return call

    for n in range(READERS):
        threads.start(count(n), f"counter {n}")
    threads.join()
    snap = db.snapshot()
    assert snap["sum"].priority == sum(counted) == db.version - 1
    assert [snap[f"of-{n:06}"].priority for n in range(READERS)] == counted


def test_writers_that_die_keep_nobody_waiting(db: JobDb) -> None:
    """Of many threads in a row, each third ends with its transaction open, each third drops it:
    neither leaves a trace or a lock, and each is told of.
    """
    left: list[Txn] = []
    threads = Threads(seconds=60)

    def write(n: int) -> None:
        txn = db.write(timeout=30)
        txn.upsert(job(f"job-{n}"))
        if n % 3 == 0:
            txn.commit()
        elif n % 3 == 1:
            left.append(txn)  # the thread ends, the transaction does not
        else:
            del txn

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for n in range(60):
            threads.start(lambda n=n: write(n), f"writer {n}")
        threads.join()
        db.write(timeout=30).abort()
    assert len(list(db.snapshot())) == db.version == 20
    said = [str(each.message) for each in told if each.category is ResourceWarning]
    assert len([text for text in said if "ended with a transaction open" in text]) == 20
    assert len([text for text in said if "dropped without commit or abort" in text]) == 20
    for txn in left:
        with pytest.raises(TxnClosed):
            txn.commit()


def test_a_reader_that_is_dropped_by_another_thread_frees_its_version(db: JobDb) -> None:
    """Snapshots are made in one thread, read in a second and let go in a third."""
    made: list[Reader] = []
    threads = Threads(seconds=60)

    def write() -> None:
        for n in range(300):
            with db.write() as txn:
                txn.upsert(job(f"job-{n % 7}", priority=n))
            made.append(db.snapshot())

    def read_and_drop() -> None:
        dropped = 0
        while dropped < 150:
            if made:
                snap = made.pop(0)
                assert len(list(snap)) == len(snap) > 0
                dropped += 1

    threads.start(write, "writer")
    threads.start(read_and_drop, "reader")
    threads.start(read_and_drop, "another")
    threads.join()
    assert made == []


def test_columns_are_read_without_the_lock_beside_a_writer(db: JobDb) -> None:
    """Large reads, during which others run: of old and new versions, by id and of all, while
    rows go, ids are given to others and the id column grows.
    """
    names = ("priority", "submitted_at", "state", "version")
    kept = jobs(3000, priority=7, prefix="a name of more than sixteen bytes")
    some = np.array([each.id.encode() for each in kept[::3]])
    with db.write() as txn:
        txn.upsert_many(kept)
    first = db.snapshot()
    expected = {
        ids is None: [each.tolist() for each in first.columns(*names, ids=ids).values()]
        for ids in (None, some)
    }
    assert expected[False] == [column[::3] for column in expected[True]]
    threads = Threads(seconds=SECONDS / 2)

    def read() -> None:
        while threads.goes_on():
            for ids in (None, some):
                again = [each.tolist() for each in first.columns(*names, ids=ids).values()]
                assert again == expected[ids is None]
            snap = db.snapshot()
            count, priorities = len(snap), snap.columns("priority")["priority"]
            assert len(priorities) == count
            # Each commit gives every job of its own the same priority.
            assert set(priorities.tolist()) <= {7, snap.version}

    def write() -> None:
        turn = 0
        while threads.goes_on():
            turn += 1
            with db.write() as txn:
                if turn % 3 == 0:
                    txn.delete_many([each.id for each in txn])
                mine = jobs(
                    turn % 2500, prefix=f"{turn % 5} of another name", priority=db.version + 1
                )
                txn.delete_many([each.id for each in txn if each.priority != 7])
                txn.upsert_many(mine)

    threads.start(write, "writer")
    for n in range(3):
        threads.start(read, f"reader {n}")
    threads.join()
    assert list(first) == kept


def test_one_transaction_in_the_hands_of_many_threads(db: JobDb) -> None:
    """Not wise, but safe: each call is of one moment, none of them harms another, and after the
    end, which comes when it comes, all are told.
    """
    with db.write() as txn:
        txn.upsert_many(jobs(2500, pools=("p", "q")))
        txn.upsert_many(each for n in range(20) for each in gang(f"g{n}"))
    first = db.snapshot()
    cells = np.array([each.id for each in first][::2], dtype="S10")
    reads: list[Callable[[Any], object]] = [
        list,
        len,
        lambda txn: txn.get_many(IDS),
        lambda txn: txn.columns("state", "priority"),
        lambda txn: txn.columns("state", "runs", ids=cells),
        lambda txn: list(txn.queued("queue-a", "p")),
        lambda txn: list(txn.leased()),
        lambda txn: txn.gang("queue-a", "g1"),
        lambda txn: txn.diff(first).pairs(),
        lambda txn: txn.queues(),
    ]
    threads = Threads(seconds=SECONDS / 2)
    current: list[Txn] = [db.write()]

    def read(seed: int) -> Callable[[], None]:
        def call() -> None:
            rng = Random(seed)
            while threads.goes_on():
                with suppress(TxnClosed):
                    rng.choice(reads)(current[0])

        return call

    def write() -> None:
        turn = 0
        while threads.goes_on():
            turn += 1
            txn = current[0]
            txn.upsert_many(map(leased, list(txn.queued("queue-a", "p"))[::3]))
            txn.delete_many([each.id for each in list(txn)[turn % 3 :: 7]])
            txn.upsert_many(jobs(600, prefix=f"new-{turn % 3}", pools=("p",)))
            if turn % 4 == 0:
                txn.commit()
            elif turn % 2 == 0:
                txn.abort()
            if txn.closed:
                current[0] = db.write() if turn % 8 else db.dry_run()

    threads.start(write, "writer")
    for n in range(3):
        threads.start(read(n), f"reader {n}")
    threads.join()
    if not current[0].closed:
        current[0].abort()


def test_an_index_is_read_without_the_lock_beside_every_kind_of_change() -> None:
    """Large reads of snapshots, old and new, while single changes work in place on what nobody
    reads, transactions come and go, and the id column grows.
    """
    index = IdIndex()
    keys = [f"a key that is long enough to lie elsewhere: {n}" for n in range(2500)]
    with index.write() as txn:
        txn.set_many(keys, range(2500))
    first = index.snapshot()
    threads = Threads(seconds=SECONDS / 2)

    def read(seed: int) -> Callable[[], None]:
        def call() -> None:
            rng = Random(seed)
            while threads.goes_on():
                assert first.get_many(keys) == list(range(2500))
                snap = index.snapshot()
                there = dict(snap.items())
                assert len(there) == len(snap)
                for _ in range(rng.randrange(1, 3)):
                    assert snap.get_many(keys) == [there.get(key) for key in keys]
                assert snap.check() == []

        return call

    def write() -> None:
        rng = Random(7)
        turn = 0
        while threads.goes_on():
            turn += 1
            for _ in range(40):
                n = rng.randrange(2500)
                if rng.random() < 0.4:
                    index.delete(keys[n])
                else:
                    index.set(keys[n], turn)
            with index.write() as txn:
                txn.set_many([f"{turn % 4} {n}" for n in range(300)], [turn] * 300)
                if turn % 3 == 0:
                    txn.abort()
                elif turn % 5 == 0:
                    txn.delete_many([key for key in txn if not key.startswith("a key")])

    threads.start(write, "writer")
    for n in range(3):
        threads.start(read(n), f"reader {n}")
    threads.join()
    assert first.get_many(keys) == list(range(2500))
    assert index.pinned == [1]


def test_one_transaction_of_an_index_in_the_hands_of_many_threads() -> None:
    """As with the job db: a large read of it is of one moment, though others write and end it."""
    index = IdIndex()
    keys = [f"a key number {n}" for n in range(9000)]
    kept, rest = keys[:4000], keys[4000:]
    with index.write() as txn:
        txn.set_many(keys, range(9000))
    current = [index.write()]
    threads = Threads(seconds=SECONDS / 2)

    def read() -> None:
        while threads.goes_on():
            with suppress(TxnClosed):
                assert current[0].get_many(kept) == list(range(4000))
            with suppress(TxnClosed):
                assert len(list(current[0].items())) in {4000, 9000}

    def write() -> None:
        turn = 0
        while threads.goes_on():
            turn += 1
            current[0].delete_many(rest)
            current[0].set_many(rest, range(5000))
            if turn % 5 == 0:
                (current[0].abort if turn % 2 else current[0].commit)()
                current[0] = index.write()

    threads.start(write, "writer")
    threads.start(read, "reader")
    threads.start(read, "another")
    threads.join()
    current[0].abort()


WAITS_FOR_EVER = """
import sys, threading
from pyresched.jobdb import JobDb
from pyresched.model import Job
db = JobDb()
let_go = threading.Event()
held = threading.Event()

def hold():
    with db.write():
        held.set()
        let_go.wait()

holder = threading.Thread(target=hold)
holder.start()
held.wait()
print("waiting", flush=True)
try:
    db.write()
except KeyboardInterrupt:
    print("interrupted", flush=True)
let_go.set()
holder.join()
with db.write(timeout=0):
    pass
print(db.version, flush=True)
"""


def test_an_interrupt_ends_the_wait_for_the_writer() -> None:
    """Ctrl-C is heard by who waits without a limit; the db is as usable as before."""
    with subprocess.Popen(
        [sys.executable, "-c", WAITS_FOR_EVER], stdout=subprocess.PIPE, text=True
    ) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "waiting\n"
        time.sleep(0.2)
        waiting.send_signal(signal.SIGINT)
        assert waiting.stdout.read() == "interrupted\n2\n"
        assert waiting.wait() == 0


FORKS_UNDER_WAY = """
import os, sys, threading, warnings
sys.path[:0] = {paths!r}
warnings.simplefilter("ignore")  # that a process with threads forks is what this is about
from kit.jobs import job, jobs, leased
from pyresched.jobdb import JobDb

db = JobDb()
with db.write() as txn:
    txn.upsert_many(jobs(200))
snap, dry = db.snapshot(), db.dry_run()
walk = iter(snap)
next(walk)
dry.upsert(job("dry"))
stop = threading.Event()

def read():
    while not stop.is_set():
        assert len(list(db.snapshot())) >= 200

def write():
    turn = 0
    while not stop.is_set():
        turn += 1
        with db.write() as txn:
            txn.upsert(job(f"w{{turn % 5}}", priority=turn))

threads = [threading.Thread(target=each) for each in (read, read, write)]
for each in threads:
    each.start()

def child():
    assert list(snap) == jobs(200) and len(list(walk)) == 199
    assert "dry" in dry and "dry" not in db.snapshot()
    dry.abort()
    now = db.version
    with db.write(timeout=5) as txn:
        txn.upsert(leased(txn["job-000001"]))
        txn.delete_many(["job-000002"])
    assert db.version == now + 1 and "job-000002" not in db.snapshot() and "job-000002" in snap
    assert db.check(db.snapshot()) == db.check(snap) == []

ended = []
for _ in range(12):
    pid = os.fork()
    if pid == 0:
        try:
            child()
            code = 0
        except BaseException as error:
            print(repr(error), flush=True)
            code = 1
        os._exit(code)
    ended.append(os.waitpid(pid, 0)[1])
stop.set()
for each in threads:
    each.join()
assert "job-000002" in db.snapshot() and not list(db.snapshot().leased())
assert db.check(db.snapshot()) == []
print(ended)
"""


@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""),
    reason="the sanitizer's own locks do not come whole through a fork among threads",
)
def test_a_fork_in_the_middle_of_it_all_has_a_copy_of_its_own() -> None:
    """Whatever the other threads were at: the child reads, writes and ends what it inherits,
    and the parent sees none of it.
    """
    script = FORKS_UNDER_WAY.format(paths=[path for path in sys.path if path.endswith("tests")])
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120
    )
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout == f"{[0] * 12}\n"
