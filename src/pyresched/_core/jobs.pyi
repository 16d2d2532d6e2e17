from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from typing_extensions import disjoint_base

from pyresched._core.jobindex import JobIndex
from pyresched._core.jobreader import Reader, Snapshot
from pyresched._core.jobtxn import Txn
from pyresched._core.values import JobState

_Txn = TypeVar("_Txn", bound=Txn)

@disjoint_base
class JobStore(JobIndex):
    """The jobs behind `JobDb`, whose docstring is the contract. `version` counts commits."""

    def __init__(
        self,
        class_priorities: Mapping[str, int],
        transitions: Mapping[JobState, Iterable[JobState]],
        *,
        seed: bytes | None = None,
        hash_bits: int = 32,
        most_jobs: int | None = None,
        leaf: int = 32,
        fanout: int = 32,
        after_commit: Callable[[Snapshot], object] | None = None,
    ) -> None: ...
    def write(self, timeout: float | None = None) -> Txn:
        """The one writing transaction; waits for another's end, *timeout* seconds at most.

        Raises WriterBusy when the time is up, and at once when this very thread holds it.
        """
    def overlay(self, base: Snapshot, kind: type[_Txn]) -> _Txn:
        """A transaction of *kind* over *base* that never publishes; any number at a time.

        Raises ValueError for a snapshot of another db.
        """
    def owns(self, reader: Reader) -> bool:
        """Whether *reader* is of this very db."""
    def snapshot(self) -> Snapshot:
        """The current version."""
