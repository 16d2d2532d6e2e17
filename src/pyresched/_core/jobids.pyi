from collections.abc import Iterable, Iterator
from typing import Self, final, overload

from pyresched._core.jobreader import Snapshot

@final
class JobIds:
    """*ids*, each of a job of *reader*, as a sequence of str that makes each when it is read.

    Raises KeyError for an id that no job has.
    """

    def __init__(self, reader: Snapshot, ids: Iterable[str]) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: int, /) -> str: ...
    @overload
    def __getitem__(self, key: slice, /) -> Self: ...
    def __iter__(self) -> Iterator[str]: ...
