"""Jobs that are due at about one time are served together.

A pure function of times. Rule `followups`: what Nomad runs at the first time of a batch, up to a
window early, is run at the last one here, so that no delay is cut short.
"""

from collections.abc import Iterable
from typing import Final

from pyresched.durations import NANOS
from pyresched.ids import Duration, Instant

__all__ = ["WINDOW", "followups", "last_of_first"]

WINDOW: Final[Duration] = 5 * NANOS
"""How far from the first time of a batch its others are, less than this."""


def followups(times: Iterable[Instant], window: Duration = WINDOW) -> list[tuple[Instant, int]]:
    """The first time of each batch of *times*, and how many are in it.

    A batch has what comes less than *window* after its first; it is not chained. All in ns.
    """
    batches: list[tuple[Instant, int]] = []
    for at in sorted(times):
        if batches and at - batches[-1][0] < window:
            batches[-1] = (batches[-1][0], batches[-1][1] + 1)
        else:
            batches.append((at, 1))
    return batches


def last_of_first(ascending: Iterable[Instant], window: Duration = WINDOW) -> Instant | None:
    """The last time of the first batch, None without any; looks at nothing behind it."""
    first = last = None
    for at in ascending:
        if first is None:
            first = at
        elif at - first >= window:
            break
        last = at
    return last
