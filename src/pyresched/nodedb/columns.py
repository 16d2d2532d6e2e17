"""One label over all nodes of a pool: its distinct values, and which node has which.

A condition is asked once for each distinct value and spread over the nodes by table. Masks are
whole numbers, one byte for each node, the first node lowest; no column changes.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from pyresched.model import Node

__all__ = ["Column", "mask_at"]

ABSENT: Final = -1
_SMALL: Final = 255  # values that a byte can tell apart, beside that of an absent label
_FEW: Final = 8  # a mask of less than one value in so many is made from positions


def mask_at(positions: Iterable[int], count: int) -> int:
    """The mask of the nodes at *positions* out of *count*."""
    mask = bytearray(count)
    for i in positions:
        mask[i] = 1
    return int.from_bytes(mask, "little")


class Column:
    """The values of a label, sorted; `codes` has the index of each node's, or -1."""

    def __init__(self, values: tuple[str, ...], codes: "array[int]", counts: list[int]) -> None:
        self.values = values
        self.codes = codes
        self._counts = counts

    @staticmethod
    def of(label: str, nodes: Sequence[Node]) -> "Column":
        """The column of *label* over *nodes*."""
        found = [node.labels.get(label) for node in nodes]
        values = tuple(sorted({value for value in found if value is not None}))
        index: dict[str | None, int] = {value: i for i, value in enumerate(values)}
        index[None] = ABSENT
        codes = array("i", map(index.__getitem__, found))
        counts = [0] * (len(values) + 1)  # of absent ones at the end, where -1 finds it
        for code in codes:
            counts[code] += 1
        return Column(values, codes, counts)

    def with_changed(self, changed: Mapping[int, str | None]) -> "Column | None":
        """A column in which the nodes at the keys of *changed* have these values.

        None if another set of values comes out: then make it anew.
        """
        codes, counts = self.codes[:], self._counts[:]
        for i, value in changed.items():
            code = ABSENT if value is None else self.code_of(value)
            if code == ABSENT and value is not None:
                return None
            counts[codes[i]] -= 1
            counts[code] += 1
            codes[i] = code
        return None if 0 in counts[:-1] else Column(self.values, codes, counts)

    def code_of(self, value: str) -> int:
        """The index of *value*, or -1."""
        i = bisect_left(self.values, value)
        return i if i < len(self.values) and self.values[i] == value else ABSENT

    def value_of(self, node: int) -> str | None:
        """The value that a node has, or None."""
        code = self.codes[node]
        return None if code == ABSENT else self.values[code]

    def mask_where(self, accepts: Callable[[str | None], bool]) -> int:
        """The mask of the nodes whose value (None: absent) *accepts* takes."""
        return self._mask([accepts(value) for value in self.values], absent=accepts(None))

    def mask_of(self, value: str | None) -> int:
        """The mask of the nodes that have *value*, or lack the label for None."""
        if value is None:
            return self._mask([False] * len(self.values), absent=True)
        code = self.code_of(value)
        if code == ABSENT:
            return 0
        if len(self.values) > _SMALL:
            return mask_at(self._positions[code], len(self.codes))
        truths = [False] * len(self.values)
        truths[code] = True
        return self._mask(truths, absent=False)

    def _mask(self, truths: list[bool], *, absent: bool) -> int:
        if len(truths) <= _SMALL:
            table = bytes(truths).ljust(_SMALL, b"\0") + bytes([absent])
            return int.from_bytes(self._small.translate(table), "little")
        if not absent and sum(truths) < len(truths) // _FEW:
            at = (i for code, true in enumerate(truths) if true for i in self._positions[code])
            return mask_at(at, len(self.codes))
        return int.from_bytes(bytes(map([*truths, absent].__getitem__, self.codes)), "little")

    @cached_property
    def _small(self) -> bytes:
        return bytes(code & 0xFF for code in self.codes)

    @cached_property
    def _positions(self) -> list[list[int]]:
        positions: list[list[int]] = [[] for _ in self.values]
        for i, code in enumerate(self.codes):
            if code != ABSENT:
                positions[code].append(i)
        return positions
