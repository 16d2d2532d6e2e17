"""Native records: nothing of them is Python's but what they take."""

from typing import TypedDict, final

from pyresched._core.values import Requirements

class _Memory(TypedDict):
    records: int
    kinds: int
    colds: int
    trackers: int
    record_bytes: int

@final
class Kind:
    @property
    def queue(self) -> str: ...
    @property
    def job_set(self) -> str: ...
    @property
    def requirements(self) -> Requirements: ...
    @property
    def pools(self) -> tuple[str, ...]: ...
    @property
    def job_type(self) -> str: ...
    @property
    def policy(self) -> object: ...
    @property
    def rules(self) -> object: ...

def memory() -> _Memory: ...
