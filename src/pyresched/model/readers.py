"""What a stage may ask of the job db: the part of a snapshot that decisions read.

A protocol, so that a stage takes a snapshot, a transaction or a dry run alike.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from pyresched._core import Job
from pyresched.ids import Instant

__all__ = ["JobReader"]


class JobReader(Protocol):
    """Jobs at one version of the job db."""

    def get(self, id: str, /) -> Job | None:
        """The job, or None."""

    def get_many(self, ids: Iterable[str], /) -> Sequence[Job | None]:
        """The job or None for each id, in their order."""

    def gang(self, queue: str, gang_id: str, /) -> Sequence[Job]:
        """The members of a gang, in submit order and then by id."""

    def leased(self) -> Iterable[Job]:
        """Jobs that hold room on a node."""

    def unvalidated(self) -> Iterable[Job]:
        """Jobs that nobody has checked against the nodes yet."""

    def backing_off(self, before: Instant | None = None) -> Iterable[Job]:
        """Jobs that wait and are eligible at *before* or earlier, due first; None: all."""

    def __contains__(self, id: object, /) -> bool: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Job]: ...
