"""Ids as new text each time: a key object that was used before flatters whoever compares by it."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from random import Random

from workloads import job_ids

__all__ = ["ID_LENGTH", "Keys"]

ID_LENGTH = 26


@lru_cache(maxsize=1)
def _text(count: int) -> str:
    return "".join(job_ids(count))


class Keys:
    """*count* ULIDs. `fresh` cuts them out of one text, so that nobody has seen or hashed them."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._text = _text(count)
        self._order: list[int] = []

    def fresh(self, numbers: Iterable[int]) -> list[str]:
        """New text for the ids of *numbers*."""
        text, length = self._text, ID_LENGTH
        return [text[length * n : length * (n + 1)] for n in numbers]

    def buffer(self, numbers: slice) -> bytes:
        """The ids of a range side by side, 26 bytes each."""
        return self._text[ID_LENGTH * numbers.start : ID_LENGTH * numbers.stop].encode()

    def pick(self, turn: int, size: int, *, below: int) -> Sequence[int]:
        """*size* numbers under *below* that look random, others each turn where there are enough."""
        if len(self._order) != below:
            self._order = list(range(below))
            Random(below).shuffle(self._order)
        start = turn * size % below
        picked = self._order[start : start + size]
        return picked + self._order[: size - len(picked)]
