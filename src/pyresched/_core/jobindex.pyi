from collections.abc import Iterable, Mapping

from typing_extensions import disjoint_base

from pyresched._core.values import JobState

@disjoint_base
class JobIndex:
    """Rows and indices of the newest version, and what all versions share."""

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
    ) -> None: ...
    @property
    def version(self) -> int:
        """How many commits there were."""
    def memory(self) -> dict[str, object]:
        """What the structures hold now in bytes and in nodes, and what old versions
        keep back. For the records of all stores see `record_memory`."""
