from collections.abc import Iterable
from types import TracebackType
from typing import Self

from typing_extensions import disjoint_base

from pyresched._core.jobreader import Reader, Snapshot
from pyresched._core.values import Job

@disjoint_base
class Txn(Reader):
    """Staged changes and every read, which see them. Ends once; then all raises TxnClosed.

    As a context manager: left normally it commits, left by an exception it aborts. A dry run
    publishes nothing however it ends.
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

        Raises as `upsert_many`.
        """
    def upsert_many(self, jobs: Iterable[Job]) -> None:
        """Put each of *jobs* in place of what is under its id, all or none.

        Raises DuplicateId (one id twice with different content), RunBelongsToOtherJob,
        IllegalTransition (a row that skips versions may have gone through states in between),
        InputError (no such priority class, waiting without `eligible_at`), TooManyJobs,
        ValueError for an id over 255 bytes.
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
