from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Protocol, Self, TypeAlias, TypeVar

from typing_extensions import Buffer, disjoint_base

from pyresched._core.jobids import JobIds
from pyresched._core.jobreader import Reader, Snapshot
from pyresched._core.values import Gang, Requirements
from pyresched._core.views import Job

_T = TypeVar("_T")

class _Arrow(Protocol):
    """An Arrow column, of one array or in chunks."""

    @property
    def type(self) -> object: ...
    @property
    def null_count(self) -> int: ...
    def __len__(self) -> int: ...

# Codes and what they stand for.
_Coded: TypeAlias = tuple[Sequence[int] | Buffer, Sequence[_T]] | _Arrow

@disjoint_base
class Txn(Reader):
    """Staged changes and every read, which see them. Ends once; then all raises TxnClosed.

    As a context manager: left normally it commits, left by an exception it aborts. A dry run
    (`dry`) publishes nothing however it ends; while it is open, `base` is what it is over.
    """

    @property
    def dry(self) -> bool:
        """Whether its end publishes nothing."""
    @property
    def base(self) -> Snapshot | None:
        """What an open dry run is over; else None."""
    @property
    def closed(self) -> bool:
        """Whether it has ended."""
    def upsert(self, job: Job) -> None:
        """Put *job* in place of what is under its id.

        It compares no versions: read *job* in this transaction. Raises as `upsert_many`.
        """
    def upsert_many(self, jobs: Iterable[Job]) -> None:
        """Put each of *jobs* in place of what is under its id, all or none.

        Raises DuplicateId (one id twice with different content), RunBelongsToOtherJob,
        IllegalTransition (a row that skips versions may have gone through states in between),
        InputError (no such priority class, waiting without `eligible_at`), TooManyJobs,
        ValueError for an id over 255 bytes.
        """
    def upsert_columns(
        self,
        *,
        ids: Sequence[str] | Buffer | _Arrow,
        submitted_at: int | Sequence[int] | Buffer | _Arrow,
        queue: str | list[str] | Buffer | _Coded[str],
        requirements: Requirements | _Coded[Requirements],
        priority: int | Sequence[int] | Buffer | _Arrow = 0,
        gang: Gang | _Coded[Gang] | None = None,
        job_set: str | list[str] | Buffer | _Coded[str] = "",
        pools: tuple[str, ...] | _Coded[tuple[str, ...]] | None = None,
        job_type: str | list[str] | Buffer | _Coded[str] = "batch",
        policy: object = None,
        validated: bool = False,
        payload: Sequence[object] | None = None,
        rules: object = None,
    ) -> int:
        """Put a new queued job of version 1 for each row of these columns, all or none.

        A job that is under such an id starts anew, without its runs, unless it has ended
        (IllegalTransition).

        *ids*: a list of str, NumPy text or bytes of fixed width ('S26' is fastest), or an Arrow
        column of type string or large_string, in chunks or not. *submitted_at* (ns) and
        *priority*: an int for all rows, or int64: a list, a buffer, an Arrow column. *validated*:
        one bool for all rows. *payload*: None or a list. Every other: one value for all rows, a
        pair of codes (a list, or a buffer of int8 to int64) and the values that they stand for,
        as `np.unique(..., return_inverse=True)` gives them the other way round, or an Arrow column
        encoded by dictionary; *queue*, *job_set* and *job_type* also a list, NumPy or Arrow column
        of text, one a row. A value of *pools* is a tuple of names; the code -1 is no *gang*. How
        many jobs were put. Raises InputError that names column and row, else as `upsert_many`
        does.
        """
    def lease_many(
        self,
        ids: Sequence[str] | Buffer | _Arrow | JobIds,
        *,
        run_ids: str | Sequence[str] | Buffer | _Arrow,
        nodes: str | _Coded[str],
        pool: str = "default",
        priority: int | Sequence[int] | Buffer | _Arrow = 0,
        leased_at: int,
        lease_expires_at: int | None = None,
    ) -> int:
        """Give each of the queued jobs *ids* a new run on a node, all or none; how many.

        The same as an upsert of each one version on, LEASED, with one run more; made for a
        million at once. *ids*: as in `upsert_columns`, or the `job_ids` that a round over a
        snapshot gives, whose jobs must be as they were there. *run_ids*: one a job, in the same
        forms, or a ULID: the first of so many that follow one another. *nodes*: an id for all, or a
        pair of codes and the ids that they stand for. *priority*: an int for all, or int64 as in
        `upsert_columns`. Raises InputError that names column, row or job, AwaitsReplacement (a
        lease would lose the history that `leasing.grant` keeps), Conflict (not as in the
        snapshot), IllegalTransition (not queued), DuplicateId, RunBelongsToOtherJob.
        """
    def delete_many(self, ids: Iterable[str]) -> int:
        """Remove the jobs of *ids*, all or none; unknown ids count for nothing. How many went."""
    def commit(self) -> int:
        """Publish what was staged as one version and return it; a dry run: its base version."""
    def depend_on(
        self,
        ids: Iterable[str] = (),
        gang: tuple[str, str] | None = None,
        queue: str | tuple[str, str] | None = None,
    ) -> None:
        """Raises TypeError: only a dry run can be overtaken, nothing changes beside a writer."""
    def abort(self) -> None:
        """Drop what was staged."""
    def sabotage(self, name: str, job: Job, *, link: bool) -> None:
        """Enter *job* in one index or take it out, alone: for tests of the checkers only."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
