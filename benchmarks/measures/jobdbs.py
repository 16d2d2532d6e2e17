"""The job db beside the same job db in Python, at one number of jobs, through what users call."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

from measures.jobs import CONFIG, KINDS, POOL, JobColumns, leased, queue_count
from measures.timing import Contender, Task, Work, timed
from pyresched.jobdb import JobDb
from pyresched.model import JobState
from rivals.jobdb import PythonJobDb, QueueLanes

__all__ = ["MAKERS", "GangDbs", "JobDbs", "JobLoads", "loaded"]

MAKERS: dict[str, Callable[[], Any]] = {
    "ours": lambda: JobDb(CONFIG),
    "python": lambda: PythonJobDb(CONFIG),
}
BATCH = 256
TXN = 1_000
FEW_JOBS = 1_000
CALLS = 2_000
# Jobs put in at once where a db is made for something else: small enough to leave no trace.
LOAD = 10_000


def loaded(who: str, columns: JobColumns) -> Any:
    """A db of *who* with every job of *columns*."""
    db = MAKERS[who]()
    for n in range(0, columns.count, LOAD):
        with db.write() as txn:
            txn.upsert_many(columns.of(who, range(n, min(n + LOAD, columns.count))))
    return db


class JobLoads:
    """*count* jobs, new ones each time, and the ways to put them all in an empty db."""

    def __init__(self, count: int) -> None:
        self.count = count

    def tasks(self) -> list[Task]:
        """With jobs made before, and from columns."""
        count = self.count
        return [
            timed("upsert_many of Job values", count, _both(self._load), warm=False),
            timed("upsert from columns", count, _both(self._load_columns), warm=False),
        ]

    @cached_property
    def columns(self) -> JobColumns:
        """The jobs."""
        return JobColumns(self.count)

    def _load(self, who: str) -> Contender:
        @contextmanager
        def contender(turn: int) -> Iterator[Work]:
            del turn  # all jobs each time
            jobs = self.columns.of(who, range(self.count))

            def work() -> object:
                db = MAKERS[who]()
                with db.write() as txn:
                    txn.upsert_many(jobs)
                return db

            yield work

        return contender

    def _load_columns(self, who: str) -> Contender:
        @contextmanager
        def contender(turn: int) -> Iterator[Work]:
            del turn
            buffers = self.columns.buffers()

            def work() -> object:
                db = MAKERS[who]()
                with db.write() as txn:
                    if who == "ours":
                        txn.upsert_columns(**buffers)
                    else:
                        txn.upsert_many(self.columns.python_from_buffers(buffers))
                return db

            yield work

        return contender


class JobDbs:
    """Both dbs with *count* jobs, made when first asked for, and what is asked of them."""

    def __init__(self, count: int, *, lookups: int, singles: int) -> None:
        self.count = count
        self.lookups = min(lookups, count) // BATCH * BATCH
        self.singles = min(singles, count)

    def tasks(self) -> list[Task]:
        """The tasks on full dbs: first those that write, since a snapshot costs the rival later."""
        count = self.count
        walked = count * self._queues_walked // queue_count(count) * 7 // 8
        return [
            timed("one-job transaction", count, _both(self._one_job), per=self.singles),
            timed("1,000 state changes a commit", count, _both(self._changes), per=TXN),
            timed("1,000 jobs read, changed, put back", count, _both(self._replaced), per=TXN),
            timed("get of a job", count, _both(self._gets), per=self.lookups),
            timed("get_many(256) of jobs", count, _both(self._batches), per=self.lookups),
            timed("walk of a queue in a pool", count, self._walks(_walk), per=walked),
            timed("walk that reads a field of each", count, self._walks(_reading), per=walked),
            timed("snapshot()", count, self._calls(snapshots), per=CALLS),
            timed("write() and empty commit", count, self._calls(commits), per=CALLS),
        ]

    @cached_property
    def columns(self) -> JobColumns:
        """The jobs."""
        return JobColumns(self.count)

    @cached_property
    def full(self) -> dict[str, Any]:
        """Both dbs by name."""
        return {who: loaded(who, self.columns) for who in KINDS}

    @cached_property
    def snapshots(self) -> dict[str, Any]:
        """One of each; after this nothing is written any more."""
        return {who: db.snapshot() for who, db in self.full.items()}

    @cached_property
    def queue_lanes(self) -> QueueLanes:
        """The jobs of the rival in lanes of another kind."""
        lanes: QueueLanes = self.snapshots["python"].queue_lanes()
        return lanes

    @cached_property
    def few(self) -> Any:
        """Ours with 1,000 jobs."""
        return loaded("ours", JobColumns(FEW_JOBS))

    @property
    def _queues_walked(self) -> int:
        return max(1, queue_count(self.count) // 20)

    def _picked(self, turn: int, size: int) -> list[str]:
        keys = self.columns.keys
        return keys.fresh(keys.pick(turn, size, below=self.count))

    def _originals(self, who: str, turn: int, size: int) -> list[Any]:
        """New values equal to stored jobs, others each turn."""
        return self.columns.of(who, self.columns.keys.pick(turn, size, below=self.count))

    def _one_job(self, who: str) -> Contender:
        @contextmanager
        def contender(turn: int) -> Iterator[Work]:
            db, was = self.full[who], self._originals(who, turn, self.singles)
            jobs = [leased(job, n) for n, job in enumerate(was)]

            def work() -> None:
                for job in jobs:
                    with db.write() as txn:
                        txn.upsert(job)

            yield work
            _put_back(db, was)

        return contender

    def _changes(self, who: str) -> Contender:
        @contextmanager
        def contender(turn: int) -> Iterator[Work]:
            db, was = self.full[who], self._originals(who, turn, TXN)
            jobs = [leased(job, n) for n, job in enumerate(was)]

            def work() -> None:
                with db.write() as txn:
                    txn.upsert_many(jobs)

            yield work
            _put_back(db, was)

        return contender

    def _replaced(self, who: str) -> Contender:
        @contextmanager
        def contender(turn: int) -> Iterator[Work]:
            db, was = self.full[who], self._originals(who, turn, TXN)
            ids = self._picked(turn, TXN)
            runs = [leased(job, n).runs for n, job in enumerate(was)]

            def work() -> None:
                with db.write() as txn:
                    txn.upsert_many(
                        [
                            job.replace(state=JobState.LEASED, runs=run)
                            for job, run in zip(txn.get_many(ids), runs, strict=True)
                        ]
                    )

            yield work
            _put_back(db, was)

        return contender

    def _gets(self, who: str) -> Contender:
        @contextmanager
        def contender(turn: int) -> Iterator[Work]:
            get, ids = self.snapshots[who].get, self._picked(turn, self.lookups)

            def work() -> None:
                for id in ids:
                    get(id)

            yield work

        return contender

    def _batches(self, who: str) -> Contender:
        @contextmanager
        def contender(turn: int) -> Iterator[Work]:
            get_many, ids = self.snapshots[who].get_many, self._picked(turn, self.lookups)
            batches = [ids[n : n + BATCH] for n in range(0, len(ids), BATCH)]

            def work() -> None:
                for batch in batches:
                    get_many(batch)

            yield work

        return contender

    def _walks(self, walk: Callable[[Any, list[str]], None]) -> dict[str, Contender]:
        """Ours, the rival, and the rival as it is with one lane a queue."""
        readers: dict[str, Callable[[], Any]] = {
            "ours": lambda: self.snapshots["ours"],
            "python": lambda: self.snapshots["python"],
            "python, one lane a queue": lambda: self.queue_lanes,
        }
        return {who: self._walk_of(reader, walk) for who, reader in readers.items()}

    def _walk_of(
        self, reader: Callable[[], Any], walk: Callable[[Any, list[str]], None]
    ) -> Contender:
        @contextmanager
        def contender(turn: int) -> Iterator[Work]:
            all_ = self.columns.queues
            first = turn * self._queues_walked % len(all_)
            names = (all_ + all_)[first : first + self._queues_walked]
            yield partial(walk, reader(), names)

        return contender

    def _calls(self, of: Callable[[Any], Contender]) -> dict[str, Contender]:
        """The same call on a db with all jobs and on one with 1,000."""
        return {"ours": of(lambda: self.full["ours"]), "1,000 jobs": of(lambda: self.few)}


class GangDbs:
    """Ours with every job in a gang of two, beside one with 1,000 jobs."""

    def __init__(self, count: int) -> None:
        self.count = count

    def tasks(self) -> list[Task]:
        """What must not depend on the number of gangs."""
        calls = {"ours": commits(lambda: self.full), "1,000 jobs": commits(lambda: self.few)}
        kind = "empty commit, all in gangs of 2"
        return [timed(kind, self.count, calls, per=CALLS)]

    @cached_property
    def full(self) -> Any:
        """Half as many gangs as jobs."""
        return loaded("ours", JobColumns(self.count, gang_size=2))

    @cached_property
    def few(self) -> Any:
        """Ours with 1,000 jobs."""
        return loaded("ours", JobColumns(FEW_JOBS))


def snapshots(db_of: Callable[[], Any]) -> Contender:
    """Snapshots, each dropped before the next."""

    @contextmanager
    def contender(turn: int) -> Iterator[Work]:
        del turn
        snapshot = db_of().snapshot

        def work() -> None:
            for _ in range(CALLS):
                snapshot()

        yield work

    return contender


def commits(db_of: Callable[[], Any]) -> Contender:
    """Transactions in which nothing happens."""

    @contextmanager
    def contender(turn: int) -> Iterator[Work]:
        del turn
        write = db_of().write

        def work() -> None:
            for _ in range(CALLS):
                write().commit()

        yield work

    return contender


def _walk(reader: Any, queues: list[str]) -> None:
    for name in queues:
        for _ in reader.queued(name, POOL):
            pass


def _reading(reader: Any, queues: list[str]) -> None:
    for name in queues:
        for job in reader.queued(name, POOL):
            job.priority  # noqa: B018


def _both(of: Callable[[str], Contender]) -> dict[str, Contender]:
    return {who: of(who) for who in KINDS}


def _put_back(db: Any, jobs: list[Any]) -> None:
    with db.write() as txn:
        txn.upsert_many(jobs)
