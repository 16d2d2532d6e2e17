from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NoReturn, Self, TypeAlias, TypedDict, TypeVar, final, overload, type_check_only

from typing_extensions import Buffer, disjoint_base

from pyresched._core.views import Job
from pyresched.ids import Instant, JobId, QueueName

_T = TypeVar("_T")
_Entries: TypeAlias = list[tuple[tuple[int, ...], int]]

class Order(Enum):
    """In which order a queue is walked.

    FAIR_SHARE: higher class priority, lower job priority, earlier submit, lower id.
    MARKET: the same without the job priority. Bids come with market pools in a later change.
    """

    FAIR_SHARE = "fair_share"
    MARKET = "market"

@final
class Diff:
    """What became of the jobs from one version to another. Ids in submit order, then by id."""

    @property
    def changed(self) -> tuple[JobId, ...]: ...
    @property
    def added(self) -> tuple[JobId, ...]: ...
    @property
    def removed(self) -> tuple[JobId, ...]: ...
    def pairs(self) -> tuple[tuple[Job | None, Job | None], ...]:
        """Each difference as (old, new), in submit order of the job that there is; None: absent."""
    def __init__(self, *args: object, **kwargs: object) -> None:
        """Raises TypeError: `diff` makes them."""
    def __len__(self) -> int: ...

@type_check_only
class Contents(TypedDict):
    """Every row and every entry of every index, as stored; keys as in docs/invariants.md."""

    rows: list[tuple[int, Job]]
    ids: list[tuple[str, int]]
    runs: list[tuple[str, int]]
    submitted: list[int]
    leased: _Entries
    unvalidated: _Entries
    backing_off: _Entries
    gangs: _Entries
    lanes: dict[tuple[str, str | None], _Entries]
    counts: dict[str, int]
    lane_counts: dict[tuple[str, str | None], int]
    shape: list[str]

@final
class Walk:
    """Jobs in order, of the moment that the walk began: later writes do not reach it.

    A walk of a snapshot holds its version. Each job comes once, in however many pools it is.
    """

    def __iter__(self) -> Self: ...
    def __next__(self) -> Job: ...

@disjoint_base
class Reader:
    """One version of the jobs. What it gives never depends on a hash."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Raises TypeError: a db makes them."""
    @property
    def version(self) -> int:
        """How many commits it has seen; a transaction or dry run: those before it began."""
    @overload
    def get(self, id: str, default: None = None) -> Job | None:
        """The job *id*, or *default*."""
    @overload
    def get(self, id: str, default: _T) -> Job | _T: ...
    def get_many(self, ids: Iterable[str]) -> list[Job | None]:
        """The jobs of *ids* in their order, None where there is none."""
    def __getitem__(self, id: str, /) -> Job:
        """The job *id*. Raises KeyError when there is none."""
    def __contains__(self, id: object, /) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Walk:
        """Every job in submit order, then by id."""
    def by_run(self, run_id: str) -> Job | None:
        """The job that has the run *run_id*, ended runs included."""
    def gang(self, queue: str, gang_id: str) -> list[Job]:
        """The members of a gang whatever their state, in submit order, then by id."""
    def leased(self) -> Walk:
        """The jobs that hold room on a node, in submit order, then by id."""
    def unvalidated(self) -> Walk:
        """The jobs that wait for validation and have not ended, in submit order, then by id."""
    def backing_off(self, before: Instant | None = None) -> Walk:
        """The waiting jobs that are eligible at *before* or earlier, due first; None: all."""
    def queued(self, queue: str, pool: str | None = None, order: Order = ...) -> Walk:
        """The queued jobs of *queue* that may run in *pool* (None: in any or none), in order."""
    def queue_length(self, queue: str, pool: str | None = None) -> int:
        """How many jobs `queued` would give."""
    def same_queue(self, other: Reader, queue: str, pool: str | None = None) -> bool:
        """Whether it is known at once that `queued` gives the same ids in the same order in both.

        False says nothing: the queue may have changed and changed back.
        """
    def queues(self) -> list[QueueName]:
        """The queues that have queued jobs, by name."""
    def diff(self, older: Reader) -> Diff:
        """What changed from *older* to this one. Raises ValueError for one of another db."""
    def columns(
        self, *names: str, ids: Sequence[str] | Buffer | None = None
    ) -> dict[str, memoryview]:
        """A column of int64 by name for each of *names*, filled without the GIL.

        Of all jobs by submit time, then id, or of *ids* (a list, a buffer of bytes of fixed width
        such as NumPy's 'S26', an Arrow string column) in their order. Names: state, priority,
        submitted_at, version, validated, runs, reschedules, failed_at, eligible_at, ended_at,
        and of the newest run leased_at, started_at. -2**63 stands for None and for no such job.
        Raises InputError for another name.
        """
    def contents(self) -> Contents:
        """Everything as stored, for checkers."""

@final
class Snapshot(Reader):
    """The jobs as one commit left them: immutable, and alive as long as it is held."""

    def upsert(self, job: Job) -> NoReturn:
        """Raises ReadOnly."""
    def upsert_many(self, jobs: Iterable[Job]) -> NoReturn:
        """Raises ReadOnly."""
    def upsert_columns(self, **columns: object) -> NoReturn:
        """Raises ReadOnly."""
    def delete_many(self, ids: Iterable[str]) -> NoReturn:
        """Raises ReadOnly."""
