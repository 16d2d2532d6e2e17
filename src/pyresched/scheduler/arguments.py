"""What the commands of a scheduler are given, looked at before anything is decided.

What is of the wrong kind would be committed as it is, or fail in the midst of a stage.
"""

from collections.abc import Iterable
from typing import Final, TypeVar

from pyresched.model import Instant

__all__ = ["instant", "several"]

_T = TypeVar("_T")
_MOST: Final = 2**63 - 1


def instant(now: object) -> Instant:
    """*now* in ns as an int. Raises TypeError, OverflowError."""
    if not hasattr(now, "__index__"):
        raise TypeError(f"now is a whole number of ns, got {now!r}")
    at = int(now.__index__())
    if not -_MOST <= at <= _MOST:
        raise OverflowError(f"now must be within 2**63 - 1 ns of 0, got {at}")
    return at


def several(given: Iterable[_T], kind: type[_T], name: str) -> list[_T]:
    """The values of *given*, each a *kind*. Raises TypeError, also for one that is no list."""
    if isinstance(given, kind) or not isinstance(given, Iterable):
        what = "ids" if kind is str else f"{kind.__name__}s"
        raise TypeError(f"{name} is several {what}, got {given!r}; write [...] around one")
    values = list(given)
    for i, value in enumerate(values):
        if not isinstance(value, kind):
            raise TypeError(f"{name}[{i}] is a {kind.__name__}, got {value!r}")
    return values
