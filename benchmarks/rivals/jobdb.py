"""The job db in Python: `immutables.Map` by id, run and gang, one `SortedKeyList` for each lane.

A map is shared by versions for nothing; a sorted list is not: it is changed in place with an
undo log while nobody else reads it, and copied before its first change after a snapshot.
"""

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Self

import immutables
from sortedcontainers import SortedKeyList

from pyresched.config import SchedulingConfig
from pyresched.errors import (
    DuplicateId,
    IllegalTransition,
    InputError,
    RunBelongsToOtherJob,
    TxnClosed,
)
from pyresched.model import NEXT, Job, JobState

__all__ = ["PythonJobDb"]

_Entry = tuple[tuple[int, int, int, str], Job]
_first = itemgetter(0)


def _submit_order(job: Job) -> tuple[int, str]:
    return (job.submitted_at, job.id)


class _Roots:
    """One version: maps and lanes by name. A lane knows in which epoch it was made."""

    __slots__ = ("backing_off", "gangs", "jobs", "lanes", "leased", "runs", "unvalidated")

    def __init__(self) -> None:
        self.jobs: immutables.Map[str, Job] = immutables.Map()
        self.runs: immutables.Map[str, str] = immutables.Map()
        self.gangs: immutables.Map[tuple[str, str], frozenset[str]] = immutables.Map()
        self.leased: immutables.Map[str, None] = immutables.Map()
        self.unvalidated: immutables.Map[str, None] = immutables.Map()
        self.backing_off: immutables.Map[str, None] = immutables.Map()
        self.lanes: immutables.Map[tuple[str, str | None], tuple[int, SortedKeyList]] = (
            immutables.Map()
        )

    def copy(self) -> "_Roots":
        """The same roots, to be changed apart."""
        twin = _Roots.__new__(_Roots)
        for name in _Roots.__slots__:
            setattr(twin, name, getattr(self, name))
        return twin


class PythonReader:
    """One version of the jobs, with the questions of `pyresched.jobdb.Reader`."""

    def __init__(self, roots: _Roots) -> None:
        self._roots = roots

    def get(self, id: str) -> Job | None:
        """The job *id*."""
        return self._roots.jobs.get(id)

    def get_many(self, ids: Iterable[str]) -> list[Job | None]:
        """The jobs of *ids*."""
        get = self._roots.jobs.get
        return [get(id) for id in ids]

    def __contains__(self, id: str) -> bool:
        return id in self._roots.jobs

    def __len__(self) -> int:
        return len(self._roots.jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(sorted(self._roots.jobs.values(), key=_submit_order))

    def by_run(self, run_id: str) -> Job | None:
        """The job that has the run."""
        id = self._roots.runs.get(run_id)
        return None if id is None else self._roots.jobs[id]

    def gang(self, queue: str, gang_id: str) -> list[Job]:
        """The members of a gang."""
        return self._in_order(self._roots.gangs.get((queue, gang_id), ()))

    def leased(self) -> Iterator[Job]:
        """Jobs that hold room on a node."""
        return iter(self._in_order(self._roots.leased))

    def unvalidated(self) -> Iterator[Job]:
        """Jobs that wait for validation."""
        return iter(self._in_order(self._roots.unvalidated))

    def backing_off(self, before: int | None = None) -> Iterator[Job]:
        """Jobs that are due."""
        due = [
            job
            for job in self._in_order(self._roots.backing_off)
            if before is None or (job.eligible_at or 0) <= before
        ]
        return iter(sorted(due, key=lambda job: job.eligible_at or 0))

    def queued(self, queue: str, pool: str | None = None) -> Iterator[Job]:
        """A queue in scheduling order."""
        if pool is not None:
            lane = self._roots.lanes.get((queue, pool))
            return iter(()) if lane is None else (job for _, job in lane[1])
        entries = {
            key: job
            for (name, _), (_, lane) in self._roots.lanes.items()
            if name == queue
            for key, job in lane
        }
        return iter([entries[key] for key in sorted(entries)])

    def queue_length(self, queue: str, pool: str | None = None) -> int:
        """How many are queued."""
        lane = self._roots.lanes.get((queue, pool))
        if pool is None:
            return sum(1 for _ in self.queued(queue))
        return 0 if lane is None else len(lane[1])

    def queues(self) -> list[str]:
        """Queues with queued jobs."""
        return sorted({queue for (queue, _), (_, lane) in self._roots.lanes.items() if lane})

    def _in_order(self, ids: Iterable[str]) -> list[Job]:
        jobs = self._roots.jobs
        return sorted((jobs[id] for id in ids), key=_submit_order)


class PythonTxn(PythonReader):
    """Staged changes. Maps are changed through mutations and finished when the call ends."""

    def __init__(self, db: "PythonJobDb") -> None:
        super().__init__(db.roots.copy())
        db.writing = True
        self._db = db
        self._open = True
        self._undo: list[Callable[[], object]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._open:
            if kind is None:
                self.commit()
            else:
                self.abort()

    def commit(self) -> None:
        """Publish."""
        self._end()
        self._db.roots = self._roots

    def abort(self) -> None:
        """Undo what was done in place."""
        self._end()
        for undo in reversed(self._undo):
            undo()

    def upsert(self, job: Job) -> None:
        """One job."""
        self.upsert_many([job])

    def upsert_many(self, jobs: Iterable[Job]) -> None:
        """All or none."""
        self._must_be_open()
        batch: dict[str, Job] = {}
        for job in jobs:
            if batch.setdefault(job.id, job) != job:
                raise DuplicateId(job.id)
        self._vet(batch.values())
        self._apply([(self._roots.jobs.get(job.id), job) for job in batch.values()])

    def delete_many(self, ids: Iterable[str]) -> int:
        """Those that are there."""
        self._must_be_open()
        found = {id: self._roots.jobs[id] for id in ids if id in self._roots.jobs}
        self._apply([(job, None) for job in found.values()])
        return len(found)

    def _end(self) -> None:
        self._must_be_open()
        self._open = self._db.writing = False

    def _must_be_open(self) -> None:
        if not self._open:
            raise TxnClosed("the transaction has ended")

    def _vet(self, jobs: Iterable[Job]) -> None:
        stored, owners, new = self._roots.jobs, self._roots.runs, dict[str, str]()
        for job in jobs:
            if job.requirements.priority_class not in self._db.ranks:
                raise InputError(job.requirements.priority_class)
            state = job.state
            if state is JobState.BACKING_OFF and job.eligible_at is None:
                raise InputError(job.id)
            old = stored.get(job.id)
            if (
                old is not None
                and old.state is not state
                and state not in NEXT[old.state]
                and (old.state.terminal or job.version <= old.version + 1)
            ):
                raise IllegalTransition(job.id)
            if job.runs and (old is None or old.runs is not job.runs):
                if len({run.id for run in job.runs}) < len(job.runs):
                    raise DuplicateId(job.id)
                for run in job.runs:
                    owner = owners.get(run.id) or new.setdefault(run.id, job.id)
                    if owner != job.id:
                        raise RunBelongsToOtherJob(run.id)

    def _apply(self, changes: list[tuple[Job | None, Job | None]]) -> None:
        roots = self._roots
        with (
            roots.jobs.mutate() as jobs,
            roots.runs.mutate() as runs,
            roots.leased.mutate() as leased,
            roots.unvalidated.mutate() as unvalidated,
            roots.backing_off.mutate() as backing_off,
        ):
            flags = ((leased, _is_leased), (unvalidated, _is_unvalidated), (backing_off, _waits))
            for old, new in changes:
                for index, belongs in flags:
                    was, is_ = old is not None and belongs(old), new is not None and belongs(new)
                    if was and not is_:
                        del index[old.id]  # type: ignore[union-attr]
                    elif is_ and not was:
                        index[new.id] = None  # type: ignore[union-attr]
                self._move_runs(runs, old, new)
                self._move_gang(old, new)
                self._move_lanes(old, new)
                if new is not None:
                    jobs[new.id] = new
                elif old is not None:
                    del jobs[old.id]
            roots.jobs, roots.runs = jobs.finish(), runs.finish()
            roots.leased, roots.unvalidated = leased.finish(), unvalidated.finish()
            roots.backing_off = backing_off.finish()

    @staticmethod
    def _move_runs(
        runs: "immutables.MapMutation[str, str]", old: Job | None, new: Job | None
    ) -> None:
        was, now = old.runs if old else (), new.runs if new else ()
        if was is now:
            return
        for run in was:
            del runs[run.id]
        for run in now:
            runs[run.id] = new.id  # type: ignore[union-attr]

    def _move_gang(self, old: Job | None, new: Job | None) -> None:
        was = (old.queue, old.gang.id) if old and old.gang else None
        now = (new.queue, new.gang.id) if new and new.gang else None
        if was == now:
            return
        gangs = self._roots.gangs
        if was:
            left = gangs[was] - {old.id}  # type: ignore[union-attr]
            gangs = gangs.set(was, left) if left else gangs.delete(was)
        if now:
            gangs = gangs.set(now, gangs.get(now, frozenset()) | {new.id})  # type: ignore[union-attr]
        self._roots.gangs = gangs

    def _move_lanes(self, old: Job | None, new: Job | None) -> None:
        was = old is not None and old.state is JobState.QUEUED
        now = new is not None and new.state is JobState.QUEUED
        if was:
            entry = (self._db.order_key(old), old)  # type: ignore[arg-type]
            for pool in dict.fromkeys(old.pools) or (None,):  # type: ignore[union-attr]
                lane = self._lane(old.queue, pool)  # type: ignore[union-attr]
                lane.remove(entry)
                self._undo.append(lambda lane=lane, entry=entry: lane.add(entry))
        if now:
            entry = (self._db.order_key(new), new)  # type: ignore[arg-type]
            for pool in dict.fromkeys(new.pools) or (None,):  # type: ignore[union-attr]
                lane = self._lane(new.queue, pool)  # type: ignore[union-attr]
                lane.add(entry)
                self._undo.append(lambda lane=lane, entry=entry: lane.remove(entry))

    def _lane(self, queue: str, pool: str | None) -> SortedKeyList:
        """The lane, made or copied if a snapshot has been taken since it was."""
        epoch, lane = self._roots.lanes.get((queue, pool), (-1, None))
        if lane is None or epoch < self._db.epoch:
            lane = SortedKeyList(lane or (), key=_first)
            self._roots.lanes = self._roots.lanes.set((queue, pool), (self._db.epoch, lane))
        return lane


class PythonJobDb:
    """One writer at a time, by trust; snapshots between transactions only.

    (While one is open its lanes are changed in place. Ours has no such limit.)
    """

    def __init__(self, config: SchedulingConfig | None = None) -> None:
        classes = (config or SchedulingConfig()).priority_classes
        self.ranks = {each.name: -each.priority for each in classes}
        self.roots = _Roots()
        self.writing = False
        self.epoch = 0  # counts snapshots: a lane of an older epoch may be read by one

    def order_key(self, job: Job) -> tuple[int, int, int, str]:
        """Where a queued job stands."""
        rank = self.ranks[job.requirements.priority_class]
        return (rank, job.priority, job.submitted_at, job.id)

    def write(self) -> PythonTxn:
        """A transaction."""
        return PythonTxn(self)

    def snapshot(self) -> PythonReader:
        """The current version."""
        if self.writing:
            raise RuntimeError("a transaction is open")
        self.epoch += 1
        return PythonReader(self.roots)


def _is_leased(job: Job) -> bool:
    return job.state.active and job.active_run is not None


def _is_unvalidated(job: Job) -> bool:
    return not job.validated and not job.state.terminal


def _waits(job: Job) -> bool:
    return job.state is JobState.BACKING_OFF
