"""The node search in Python and in NumPy: best fit over what is left, one job after the other.

Both place numbers on numbers: no ids, no labels, no undo, nothing at all but the search and the
change, which is less than ours has to do. A node is its number, -1 is none.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from sortedcontainers import SortedList

__all__ = ["NumpyColumns", "NumpyNodes", "SortedNodes"]


class SortedNodes:
    """Nodes in a sorted list of (amounts left, number), walked from the least that could do."""

    def __init__(self, left: Iterable[Sequence[int]]) -> None:
        self._keys = SortedList((*amounts, number) for number, amounts in enumerate(left))

    def place(self, requests: Iterable[tuple[int, ...]]) -> list[int]:
        """The node of each request in turn."""
        return [self._place(wanted) for wanted in requests]

    def _place(self, wanted: tuple[int, ...]) -> int:
        keys = self._keys
        for key in keys.irange((*wanted, -1)):
            for has, want in zip(key, wanted, strict=False):
                if has < want:
                    break
            else:
                keys.remove(key)
                left = [has - want for has, want in zip(key, wanted, strict=False)]
                keys.add((*left, key[-1]))
                return key[-1]
        return -1


class NumpyNodes:
    """Nodes as the rows of one array, all looked at for each job."""

    def __init__(self, left: npt.NDArray[np.int64]) -> None:
        self._left = left.copy()
        self._scale = _scale_of(left)
        self._key = left @ self._scale

    def place(self, requests: npt.NDArray[np.int64]) -> list[int]:
        """The node of each request in turn."""
        return [self._place(wanted) for wanted in requests]

    def _place(self, wanted: npt.NDArray[np.int64]) -> int:
        fits = np.flatnonzero((self._left >= wanted).all(axis=1))
        if not len(fits):
            return -1
        # argmin gives the first of equals, and numbers ascend.
        best = int(fits[self._key[fits].argmin()])
        self._left[best] -= wanted
        self._key[best] -= wanted @ self._scale
        return best


class NumpyColumns:
    """The same with the amounts of a resource side by side: what a second thought makes of it."""

    def __init__(self, left: npt.NDArray[np.int64]) -> None:
        self._left = left.T.copy()
        self._scale = _scale_of(left)
        self._key = left @ self._scale

    def place(self, requests: npt.NDArray[np.int64]) -> list[int]:
        """The node of each request in turn."""
        return [self._place(wanted) for wanted in requests]

    def _place(self, wanted: npt.NDArray[np.int64]) -> int:
        fits = np.flatnonzero((self._left >= wanted[:, None]).all(axis=0))
        if not len(fits):
            return -1
        best = int(fits[self._key[fits].argmin()])
        self._left[:, best] -= wanted
        self._key[best] -= wanted @ self._scale
        return best


def _scale_of(left: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Factors that make one number of a node's amounts which orders as they do."""
    bits = [max(1, int(most).bit_length()) for most in left.max(axis=0, initial=0)]
    if sum(bits) > 62:
        raise ValueError(f"amounts of {bits} bits do not fit one key of 62")
    shifts = np.cumsum([0, *bits[:0:-1]])[::-1]
    return np.left_shift(1, shifts).astype(np.int64)
