"""Dry runs: what they read and wrote, and whether that still holds when they are applied.

Owns the merge of an overlay into a newer version (INV-D16, INV-D17: docs/invariants.md). Relies on
the native store for overlays, diffs and all checks of a transaction.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from pyresched._core import JobStore, Reader, Snapshot, Txn
from pyresched.errors import Conflict, IllegalTransition, RunBelongsToOtherJob, TxnClosed
from pyresched.model import Job

if TYPE_CHECKING:
    from pyresched.jobdb.db import JobDb

__all__ = ["DryRun"]

_Pairs = tuple[tuple[Job | None, Job | None], ...]


class DryRun(Txn):
    """A transaction over one version that publishes nothing by itself; `JobDb.apply` does.

    Once left it holds the jobs that it wrote and those that it depends on. It holds its version
    only if it depends on a queue.
    """

    __slots__ = ("_base", "_gangs", "_queues", "_watched", "_writes")

    _base: Snapshot | None  # once left, if it depends on a queue
    _watched: dict[str, Job | None]  # by id, as they were; None: there was none
    _gangs: list[tuple[str, str]]
    _queues: list[tuple[str, str | None]]
    _writes: _Pairs | None  # None: not left yet, or nothing to apply any more

    @classmethod
    def over(cls, store: JobStore) -> Self:
        """One over the version of now."""
        self = store.overlay(store.snapshot(), cls)
        self._base = None
        self._watched = {}
        self._gangs = []
        self._queues = []
        self._writes = None
        return self

    def depend_on(
        self,
        ids: Iterable[str] = (),
        gang: tuple[str, str] | None = None,
        queue: str | tuple[str, str] | None = None,
    ) -> None:
        """Let `apply` raise Conflict if these are not as they were when the dry run began.

        *ids*: these jobs, there or absent. *gang* (queue, gang id): who is in it, and each member.
        *queue* (its name, or that and a pool): which jobs `queued` gives and in which order, but
        not what else is in them. What was only read, and not named here, may change.
        Raises TypeError or ValueError for what cannot be an id, a gang or a queue.
        """
        base = self.base
        if base is None:
            raise TxnClosed("the dry run has ended; say before its end what it depends on")
        if isinstance(ids, str):
            raise TypeError(f"ids is several ids, got the one str {ids!r}; write [{ids!r}]")
        wanted = list(ids)
        watched = dict(zip(map(str.__str__, wanted), base.get_many(wanted), strict=True))
        if gang is not None:
            pair = _pair(gang, "gang is (queue, gang id)")
            watched.update((job.id, job) for job in base.gang(*pair))
            self._gangs.append(pair)
        if queue is not None:
            name = (
                (queue, None) if isinstance(queue, str) else _pair(queue, "queue is (name, pool)")
            )
            self._queues.append(name)
        self._watched.update(watched)

    def __repr__(self) -> str:
        if self.closed and self._writes is not None:
            count = len(self._writes)
            return f"<DryRun closed, {count} change{'' if count == 1 else 's'} to apply>"
        return super().__repr__()

    def commit(self) -> int:
        """Leave it and keep what it wrote, for `JobDb.apply`. The version that it was over."""
        base = self.base
        writes = None if base is None else self.diff(base).pairs()
        version = super().commit()
        self._writes = writes
        self._base = base if self._queues else None
        return version

    def abort(self) -> None:
        """Leave it for good."""
        super().abort()
        self._forget()

    def replay_on(self, db: "JobDb", timeout: float | None) -> int:
        """What `JobDb.apply` says."""
        if not db.owns(self):
            raise ValueError("the dry run is of another db; apply it there")
        if not self.closed:
            self.commit()  # its slots go back first: what is replayed needs as many
        with db.write(timeout) as txn:
            writes = self._writes
            if writes is None:
                raise TxnClosed("the dry run was aborted or has been applied; begin another one")
            moved = self._moved(txn, writes)
            if moved:
                raise Conflict(tuple(("job", id) for id in sorted(moved)))
            _replay(writes, txn)
            # Before the commit lets another thread, or the end of a payload, apply it again.
            self._writes = None
            try:
                version = txn.commit()
            except MemoryError:
                self._writes = writes
                raise
            self._forget()
        return version

    def _forget(self) -> None:
        self._base = self._writes = None
        self._watched = {}

    def _moved(self, now: Reader, writes: _Pairs) -> set[str]:
        """The ids of all jobs that are not as this dry run found them and should be."""
        found = dict(self._watched)
        for old, new in writes:
            found[_either(old, new).id] = old
        moved = {
            id
            for (id, old), job in zip(found.items(), now.get_many(found), strict=True)
            if job is not old and job != old
        }
        for gang in self._gangs:
            moved.update(job.id for job in now.gang(*gang) if found.get(job.id) is None)
        for queue in self._queues:
            if self._base is not None and not now.same_queue(self._base, *queue):
                moved.update(_reordered(self._base.queued(*queue), now.queued(*queue)))
        return moved


def _pair(value: object, shape: str) -> tuple[str, str]:
    """*value*, which must be two texts."""
    match value:
        case (str(first), str(second)) if isinstance(value, tuple):
            return (first, second)
    raise TypeError(f"{shape}, got {value!r}")


def _either(old: Job | None, new: Job | None) -> Job:
    job = old if new is None else new
    assert job is not None, "a difference has a side"
    return job


def _reordered(was: Iterable[Job], is_: Iterable[Job]) -> set[str]:
    """The jobs of a queue that came, went, or stand elsewhere among those that stayed.

    Empty exactly when both give the same ids in the same order.
    """
    before = {str(job.id): job for job in was}
    after = {str(job.id): job for job in is_}
    moved = set(before.keys() ^ after.keys())
    stayed = [id for id in before if id in after]
    if stayed != [id for id in after if id in before]:
        moved.update(id for id in stayed if _place(before[id]) != _place(after[id]))
    return moved


def _place(job: Job) -> tuple[object, ...]:
    """All that decides where a job stands in its queue, but for its id."""
    return (job.requirements.priority_class, job.priority, job.submitted_at)


def _replay(writes: _Pairs, txn: Txn) -> None:
    """Write what a dry run wrote, over the same rows. Raises as a transaction does."""
    txn.delete_many(old.id for old, new in writes if old is not None and new is None)
    written = [new for _, new in writes if new is not None]
    try:
        txn.upsert_many(written)
    except (IllegalTransition, RunBelongsToOtherJob):
        # The dry run was checked step by step, from the same rows; what took it several steps
        # (a run from one job to another, a job that went and came back) may be none in one.
        txn.delete_many(job.id for job in written)
        txn.upsert_many(written)
