"""The state over time, thinned so that any length of log gives about as many samples.

Relies on virtual time only: which moments are kept depends on the moments that came.
"""

from collections.abc import Callable
from typing import Final

from pyresched.model import NANOS, Instant
from pyresched.report.records import Sample

__all__ = ["Samples"]

_MOST: Final = 2048


class Samples:
    """Keeps the first state of each grid step; the step doubles when there are too many."""

    def __init__(self, start: Instant, *, most: int = _MOST) -> None:
        self._start = start
        self._step = NANOS
        self._most = most
        self._kept: dict[int, Sample] = {}
        self._next = start

    def offer(self, now: Instant, state: Callable[[], Sample]) -> None:
        """Keep what *state* gives, if *now* is in a step of which nothing is kept yet."""
        if now < self._next:
            return
        self._kept[self._cell(now)] = state()
        while len(self._kept) > self._most:
            self._step *= 2
            thinned: dict[int, Sample] = {}
            for sample in self._kept.values():
                thinned.setdefault(self._cell(sample.at), sample)
            self._kept = thinned
        self._next = self._start + (self._cell(now) + 1) * self._step

    def kept(self, last: Sample) -> tuple[Sample, ...]:
        """The samples in order of time; *last*, the state at the end, is always one of them."""
        before = [sample for sample in self._kept.values() if sample.at < last.at]
        return (*before, last)

    def _cell(self, at: Instant) -> int:
        return (at - self._start) // self._step
