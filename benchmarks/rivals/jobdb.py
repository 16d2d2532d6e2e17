"""The job db in Python: `immutables.Map` by id, run and gang, one `SortedKeyList` for each lane.

It stores jobs of its own (`rivals.jobs`), objects with slots. A map is shared by versions for
nothing; a sorted list is not: it is changed in place with an undo log while nobody else reads
it, and copied before its first change after a snapshot.

Its lanes are by queue and pool, as ours are, so that a walk of a queue in a pool filters nothing
and hands out objects that are there: the strictest rival, and the one that gates are held
against. As natural is one lane a queue, and a look at each job's pools on the way, with half the
work at each change: `QueueLanes`, for the walk alone.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, Self

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
from pyresched.model import NEXT, JobState
from rivals.jobs import PythonJob

__all__ = ["PythonJobDb", "QueueLanes"]

# By state. Looking for a few in a tuple is faster than hashing an enum.
_NEXT: Final = tuple(tuple(NEXT[state]) for state in JobState)
_TERMINAL: Final = tuple(state for state in JobState if state.terminal)
_ACTIVE: Final = tuple(state for state in JobState if state.active)
# Up to so many changes, a version each is cheaper than opening and closing a mutation.
_FEW: Final = 2


def _submit_order(job: PythonJob) -> tuple[int, str]:
    return (job.submitted_at, job.id)


def _queue_order(ranks: Mapping[str, int], job: PythonJob) -> tuple[int, int, int, str]:
    return (ranks[job.requirements.priority_class], job.priority, job.submitted_at, job.id)


def _changed(
    index: "immutables.Map[Any, Any]", gone: list[Any], put: list[tuple[Any, Any]]
) -> "immutables.Map[Any, Any]":
    """The index without the keys *gone*, then with *put*."""
    if len(gone) + len(put) <= _FEW:
        for key in gone:
            index = index.delete(key)
        for key, value in put:
            index = index.set(key, value)
        return index
    with index.mutate() as mutation:
        for key in gone:
            del mutation[key]
        for key, value in put:
            mutation[key] = value
        return mutation.finish()


class _Roots:
    """One version: maps and lanes by name. A lane knows in which epoch it was made."""

    __slots__ = ("backing_off", "gangs", "jobs", "lanes", "leased", "runs", "unvalidated")

    def __init__(self) -> None:
        self.jobs: immutables.Map[str, PythonJob] = immutables.Map()
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

    def get(self, id: str) -> PythonJob | None:
        """The job *id*."""
        return self._roots.jobs.get(id)

    def get_many(self, ids: Iterable[str]) -> list[PythonJob | None]:
        """The jobs of *ids*."""
        get = self._roots.jobs.get
        return [get(id) for id in ids]

    def __contains__(self, id: str) -> bool:
        return id in self._roots.jobs

    def __len__(self) -> int:
        return len(self._roots.jobs)

    def __iter__(self) -> Iterator[PythonJob]:
        return iter(sorted(self._roots.jobs.values(), key=_submit_order))

    def by_run(self, run_id: str) -> PythonJob | None:
        """The job that has the run."""
        id = self._roots.runs.get(run_id)
        return None if id is None else self._roots.jobs[id]

    def gang(self, queue: str, gang_id: str) -> list[PythonJob]:
        """The members of a gang."""
        return self._in_order(self._roots.gangs.get((queue, gang_id), ()))

    def leased(self) -> Iterator[PythonJob]:
        """Jobs that hold room on a node."""
        return iter(self._in_order(self._roots.leased))

    def unvalidated(self) -> Iterator[PythonJob]:
        """Jobs that wait for validation."""
        return iter(self._in_order(self._roots.unvalidated))

    def backing_off(self, before: int | None = None) -> Iterator[PythonJob]:
        """Jobs that are due."""
        due = [
            job
            for job in self._in_order(self._roots.backing_off)
            if before is None or (job.eligible_at or 0) <= before
        ]
        return iter(sorted(due, key=lambda job: job.eligible_at or 0))

    def queued(self, queue: str, pool: str | None = None) -> Iterator[PythonJob]:
        """A queue in scheduling order."""
        if pool is not None:
            lane = self._roots.lanes.get((queue, pool))
            return iter(()) if lane is None else iter(lane[1])
        lanes = [lane for (name, _), (_, lane) in self._roots.lanes.items() if name == queue]
        # A job of several pools is in several lanes.
        jobs = {job.id: job for lane in lanes for job in lane}
        return iter(sorted(jobs.values(), key=lanes[0].key) if jobs else ())

    def queue_length(self, queue: str, pool: str | None = None) -> int:
        """How many are queued."""
        lane = self._roots.lanes.get((queue, pool))
        if pool is None:
            return sum(1 for _ in self.queued(queue))
        return 0 if lane is None else len(lane[1])

    def queues(self) -> list[str]:
        """Queues with queued jobs."""
        return sorted({queue for (queue, _), (_, lane) in self._roots.lanes.items() if lane})

    def queue_lanes(self) -> "QueueLanes":
        """The same queues in lanes of the other kind."""
        key = next((lane.key for _, lane in self._roots.lanes.values()), None)
        return QueueLanes(
            {name: SortedKeyList(self.queued(name), key=key) for name in self.queues()}
        )

    def _in_order(self, ids: Iterable[str]) -> list[PythonJob]:
        jobs = self._roots.jobs
        return sorted((jobs[id] for id in ids), key=_submit_order)


class QueueLanes:
    """Queued jobs in one lane a queue, whatever their pools."""

    def __init__(self, lanes: Mapping[str, SortedKeyList]) -> None:
        self._lanes = lanes

    def queued(self, queue: str, pool: str) -> Iterator[PythonJob]:
        """The jobs of *queue* that may run in *pool*, in scheduling order."""
        return (job for job in self._lanes.get(queue, ()) if pool in job.pools)


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

    def upsert(self, job: PythonJob) -> None:
        """One job."""
        self.upsert_many([job])

    def upsert_many(self, jobs: Iterable[PythonJob]) -> None:
        """All or none."""
        self._must_be_open()
        batch: dict[str, PythonJob] = {}
        for job in jobs:
            known = batch.setdefault(job.id, job)
            if known is not job and known != job:
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

    def _vet(self, jobs: Iterable[PythonJob]) -> None:
        stored, owners, new = self._roots.jobs, self._roots.runs, dict[str, str]()
        ranks = self._db.ranks
        for job in jobs:
            if job.requirements.priority_class not in ranks:
                raise InputError(job.requirements.priority_class)
            state = job.state
            if state is JobState.BACKING_OFF and job.eligible_at is None:
                raise InputError(job.id)
            old = stored.get(job.id)
            if (
                old is not None
                and old.state is not state
                and state not in _NEXT[old.state]
                and (old.state in _TERMINAL or job.version <= old.version + 1)
            ):
                raise IllegalTransition(job.id)
            if job.runs and (old is None or old.runs is not job.runs):
                if len({run.id for run in job.runs}) < len(job.runs):
                    raise DuplicateId(job.id)
                for run in job.runs:
                    owner = owners.get(run.id) or new.setdefault(run.id, job.id)
                    if owner != job.id:
                        raise RunBelongsToOtherJob(run.id)

    def _apply(self, changes: list[tuple[PythonJob | None, PythonJob | None]]) -> None:
        roots = self._roots
        roots.jobs = _changed(
            roots.jobs,
            [old.id for old, new in changes if new is None and old is not None],
            [(new.id, new) for _, new in changes if new is not None],
        )
        self._move_runs(changes)
        self._move_gangs(changes)
        roots.leased = _flagged(roots.leased, _is_leased, changes)
        roots.unvalidated = _flagged(roots.unvalidated, _is_unvalidated, changes)
        roots.backing_off = _flagged(roots.backing_off, _waits, changes)
        self._move_lanes(changes)

    def _move_runs(self, changes: list[tuple[PythonJob | None, PythonJob | None]]) -> None:
        gone, put = [], []
        for old, new in changes:
            was, now = old.runs if old else (), new.runs if new else ()
            if was is not now:
                before, after = [run.id for run in was], [run.id for run in now]
                gone += [id for id in before if id not in after]
                put += [(id, new.id) for id in after if id not in before]  # type: ignore[union-attr]
        self._roots.runs = _changed(self._roots.runs, gone, put)

    def _move_gangs(self, changes: list[tuple[PythonJob | None, PythonJob | None]]) -> None:
        touched: dict[tuple[str, str], set[str]] = {}
        known = self._roots.gangs
        for old, new in changes:
            was = (old.queue, old.gang.id) if old and old.gang else None
            now = (new.queue, new.gang.id) if new and new.gang else None
            if was == now:
                continue
            for gang in (was, now):
                if gang is not None and gang not in touched:
                    touched[gang] = set(known.get(gang, ()))
            if was is not None:
                touched[was].discard(old.id)  # type: ignore[union-attr]
            if now is not None:
                touched[now].add(new.id)  # type: ignore[union-attr]
        self._roots.gangs = _changed(
            known,
            [gang for gang, members in touched.items() if not members and gang in known],
            [(gang, frozenset(members)) for gang, members in touched.items() if members],
        )

    def _move_lanes(self, changes: list[tuple[PythonJob | None, PythonJob | None]]) -> None:
        arrivals: defaultdict[tuple[str, str | None], list[PythonJob]] = defaultdict(list)
        for old, new in changes:
            if old is not None and old.state is JobState.QUEUED:
                for pool in dict.fromkeys(old.pools) or (None,):
                    lane = self._lane(old.queue, pool)
                    lane.remove(old)
                    self._undo.append(partial(lane.add, old))
            if new is not None and new.state is JobState.QUEUED:
                for pool in dict.fromkeys(new.pools) or (None,):
                    arrivals[new.queue, pool].append(new)
        for (queue, pool), jobs in arrivals.items():
            lane = self._lane(queue, pool)
            if len(jobs) == 1:
                lane.add(jobs[0])
            else:
                lane.update(jobs)
            self._undo.append(partial(_remove_all, lane, jobs))

    def _lane(self, queue: str, pool: str | None) -> SortedKeyList:
        """The lane, made or copied if a snapshot has been taken since it was."""
        epoch, lane = self._roots.lanes.get((queue, pool), (-1, None))
        if lane is None or epoch < self._db.epoch:
            lane = SortedKeyList(lane or (), key=self._db.queue_order)
            self._roots.lanes = self._roots.lanes.set((queue, pool), (self._db.epoch, lane))
        return lane


class PythonJobDb:
    """One writer at a time, by trust; snapshots between transactions only.

    (While one is open its lanes are changed in place. Ours has no such limit.)
    """

    def __init__(self, config: SchedulingConfig | None = None) -> None:
        classes = (config or SchedulingConfig()).priority_classes
        self.ranks = {each.name: -each.priority for each in classes}
        # Not a method: lanes hold it, and a db in a circle with itself would outlive its use.
        self.queue_order = partial(_queue_order, self.ranks)
        self.roots = _Roots()
        self.writing = False
        self.epoch = 0  # counts snapshots: a lane of an older epoch may be read by one

    def write(self) -> PythonTxn:
        """A transaction."""
        return PythonTxn(self)

    def snapshot(self) -> PythonReader:
        """The current version."""
        if self.writing:
            raise RuntimeError("a transaction is open")
        self.epoch += 1
        return PythonReader(self.roots)


def _remove_all(lane: SortedKeyList, jobs: list[PythonJob]) -> None:
    for job in jobs:
        lane.remove(job)


def _flagged(
    index: "immutables.Map[str, None]",
    belongs: Callable[[PythonJob], bool],
    changes: list[tuple[PythonJob | None, PythonJob | None]],
) -> "immutables.Map[str, None]":
    """The index of the jobs for which *belongs* is true, after *changes*."""
    gone, put = [], []
    for old, new in changes:
        was, is_ = old is not None and belongs(old), new is not None and belongs(new)
        if was and not is_:
            gone.append(old.id)  # type: ignore[union-attr]
        elif is_ and not was:
            put.append((new.id, None))  # type: ignore[union-attr]
    return _changed(index, gone, put)


def _is_leased(job: PythonJob) -> bool:
    return job.state in _ACTIVE and bool(job.runs) and job.runs[-1].ended_at is None


def _is_unvalidated(job: PythonJob) -> bool:
    return not job.validated and job.state not in _TERMINAL


def _waits(job: PythonJob) -> bool:
    return job.state is JobState.BACKING_OFF
