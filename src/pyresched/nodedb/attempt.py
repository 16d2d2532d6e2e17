"""Changes to a fork that are taken back unless kept.

Relies on the undo log of the native `NodeTable`. Keeps INV-B5.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import index
from types import TracebackType
from typing import Final, NoReturn, Self, TypeVar

from pyresched._core import CROSS_POOL, NodeTable
from pyresched.config import SchedulingConfig
from pyresched.errors import InputError, TxnClosed
from pyresched.model import Job, JobId, NodeId, Requirements

__all__ = ["Attempt", "id_of", "level_of"]

T = TypeVar("T")
_MOST: Final = 2**63 - 1


class Attempt:
    """Binds, evicts and unbinds; all of it is taken back at the end of the block unless kept.

    A job counts at *priority*, or that of its class where none is given. Used outside its block,
    after `keep`, or while one inside it is open, an attempt raises TxnClosed.
    """

    def __init__(self, table: NodeTable, config: SchedulingConfig, around: "list[Attempt]") -> None:
        self._table = table
        self._config = config
        self._around = around  # the attempts of the fork that are open, the innermost last
        self._mark = -1
        self._depth = 0

    def __enter__(self) -> Self:
        if self._depth:
            raise TxnClosed("an attempt is one block; begin another")
        self._mark = self._table.begin()
        self._depth = self._table.depth
        self._around.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self in self._around:
            # Those inside that are still open end here too.
            del self._around[self._around.index(self) :]
            self._table.undo(self._mark)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an Attempt is not copied or pickled; take the fork, and fork it to try something else"
        )

    def __repr__(self) -> str:
        return f"<Attempt {'open' if self in self._around else 'closed'}>"

    # --- one job ----------------------------------------------------------------------------

    def bind(self, job: Job, node_id: str, priority: int | None = None) -> None:
        """Give *job* its room on a node, or give it back to one that was evicted from there.

        Asks nothing about room: the levels may go below zero. Raises IllegalBinding when the
        job holds a node already, UnknownNode, ConfigError for a class that is not there, and
        InputError for a request that is negative or of other resources.
        """
        at, preemptible = self._class_of(_job(job).requirements, priority)
        self._open().bind(job.id, job.requirements, node_id, at, preemptible)

    def bind_as(
        self,
        job_id: str,
        requirements: Requirements,
        node_id: str,
        priority: int,
        preemptible: bool,  # noqa: FBT001 - a value of the class, not a switch
    ) -> None:
        """The same for what is not a job yet, or counts as another would."""
        self._open().bind(job_id, requirements, node_id, level_of(priority), preemptible)

    def evict(self, job: Job | JobId | str) -> None:
        """Offer a job's room to others; it keeps its node and may return. Raises IllegalBinding."""
        self._open().evict(id_of(job))

    def unbind(self, job: Job | JobId | str) -> None:
        """Take a job off its node; one that holds none stays as it is."""
        self._open().unbind(id_of(job))

    # --- many jobs --------------------------------------------------------------------------

    def bind_many(
        self, jobs: Iterable[Job], node_ids: Iterable[str], priority: int | None = None
    ) -> None:
        """`bind` each of *jobs* to the node that stands at its place. All, or none and an error."""
        with _whole(self._open()) as table:
            for job, node_id in zip(jobs, _several(node_ids), strict=True):
                at, preemptible = self._class_of(_job(job).requirements, priority)
                table.bind(job.id, job.requirements, node_id, at, preemptible)

    def evict_many(self, jobs: Iterable[Job | JobId | str]) -> None:
        """`evict` each of *jobs*. All, or none and IllegalBinding."""
        with _whole(self._open()) as table:
            for job in _several(jobs):
                table.evict(id_of(job))

    def unbind_many(self, jobs: Iterable[Job | JobId | str]) -> None:
        """`unbind` each of *jobs*. All, or none and an error."""
        with _whole(self._open()) as table:
            for job in _several(jobs):
                table.unbind(id_of(job))

    def place(self, jobs: Iterable[Job], priority: int | None = None) -> list[NodeId | None]:
        """Find the best node for each job in turn and bind it there; the node of each, or None.

        As `find` and `bind` one by one, without leaving the native code: jobs that are alike
        and stand together cost least. All or none, for a gang, is to `keep` only when the answer
        holds no None. Jobs count for their scope as they are placed. Raises IllegalBinding,
        before anything is bound, when a job holds a node or stands twice.
        """
        table = self._open()
        jobs = list(jobs)
        placed: list[NodeId | None] = []
        try:
            with _whole(table):
                for at, preemptible, some in self._runs_of(jobs, priority):
                    asked = [job.requirements for job in some]
                    placed += table.place_each([job.id for job in some], asked, at, preemptible)
        except Exception:
            _refuse_other_kinds(jobs)
            raise
        return placed

    def keep(self) -> None:
        """End the attempt and keep what it did: for good, or as part of the one around it."""
        self._open().keep(self._mark)
        self._around.pop()

    # --- inside -----------------------------------------------------------------------------

    def _runs_of(
        self, jobs: Sequence[Job], priority: int | None
    ) -> Iterable[tuple[int, bool, Sequence[Job]]]:
        """Stretches of *jobs* that count alike, as (priority, preemptible, jobs)."""
        start = 0
        name: str | None = None
        for i, job in enumerate(jobs):
            if job.requirements.priority_class != name:
                if name is not None:
                    yield *self._class_of(jobs[start].requirements, priority), jobs[start:i]
                start, name = i, job.requirements.priority_class
        if name is not None:
            yield *self._class_of(jobs[start].requirements, priority), jobs[start:]

    def _class_of(self, requirements: Requirements, priority: int | None) -> tuple[int, bool]:
        found = self._config.priority_class(requirements.priority_class)
        return found.priority if priority is None else level_of(priority), found.preemptible

    def _open(self) -> NodeTable:
        if self not in self._around:
            raise TxnClosed("the attempt has ended, or has not begun")
        if self._table.depth != self._depth:
            raise TxnClosed("an attempt inside this one is open; use that, or end it")
        return self._table


@contextmanager
def _whole(table: NodeTable) -> Iterator[NodeTable]:
    """Steps on *table* that all stay, or none if one raises."""
    mark = table.begin()
    try:
        yield table
    except BaseException:
        table.undo(mark)
        raise
    table.keep(mark)


def _refuse_other_kinds(jobs: Sequence[object]) -> None:
    """Say which of *jobs* is none; asked only once something went wrong, so that it costs nothing."""
    for i, job in enumerate(jobs):
        if not isinstance(job, Job):
            raise TypeError(f"jobs[{i}] is a Job, got {job!r}")


def level_of(priority: int, least: int = CROSS_POOL + 1) -> int:
    """*priority* as a number of 64 bits from *least* on; those below mean something else."""
    try:
        level = index(priority)
    except TypeError:
        level = _MOST + 1
    if not least <= level <= _MOST:
        raise InputError(f"priority {priority!r}; write a whole number from {least} to {_MOST}")
    return level


def _job(job: Job) -> Job:
    if not isinstance(job, Job):
        raise InputError(f"{job!r:.80} is not a job; give a Job")
    return job


def _several(names: Iterable[T]) -> Iterable[T]:
    """*names*, unless it is a text, whose letters nobody means."""
    if isinstance(names, str):
        raise InputError(f"{names!r} is one id; give a list of them")
    return names


def id_of(job: Job | JobId | str) -> str:
    """The id of a job, given as itself or by its id."""
    if isinstance(job, Job):
        return job.id
    if isinstance(job, str):
        return job
    raise InputError(f"{job!r} is not a job; give a Job or its id")
