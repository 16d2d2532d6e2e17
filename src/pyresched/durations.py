"""Durations as people write them: Go duration text, or whole nanoseconds.

Relies on nothing but the errors. All arithmetic is on integers, except that the part behind
a decimal point is scaled in binary64 and cut off, which is what Go does and clients see.
"""

import re
from typing import Annotated, Final

from msgspec import Meta

from pyresched.errors import InputError

__all__ = [
    "INT64_MAX",
    "INT64_MIN",
    "NANOS",
    "WrittenDuration",
    "format_duration",
    "parse_duration",
    "saturated",
    "short_duration",
]

NANOS: Final = 1_000_000_000
"""Nanoseconds of a second."""
INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)

WrittenDuration = Annotated[int, Meta(extra={"written": "duration"})]
"""Nanoseconds that a file may also give as duration text."""

_UNIT: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # micro sign
    "μs": 10**3,  # Greek mu
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PIECE: Final = re.compile(r"(?P<whole>[0-9]*)(?P<point>\.?)(?P<part>[0-9]*)(?P<unit>[^0-9.]*)")
_SMALL: Final = 9  # digits up to which a slip is worked out
_WANTED: Final = "write a duration such as 30s, 1h30m or 1.5h (units: ns, us, ms, s, m, h)"
# What people write where Go has no such unit (or no such case, or a space before it), and
# what it comes to.
_MEANT: Final = {
    **{unit: (unit, 1) for unit in _UNIT},
    "d": ("h", 24),
    "day": ("h", 24),
    "days": ("h", 24),
    "w": ("h", 168),
    "week": ("h", 168),
    "weeks": ("h", 168),
    "hr": ("h", 1),
    "hrs": ("h", 1),
    "hour": ("h", 1),
    "hours": ("h", 1),
    "min": ("m", 1),
    "mins": ("m", 1),
    "minute": ("m", 1),
    "minutes": ("m", 1),
    "sec": ("s", 1),
    "secs": ("s", 1),
    "second": ("s", 1),
    "seconds": ("s", 1),
    "msec": ("ms", 1),
    "usec": ("us", 1),
    "nsec": ("ns", 1),
}


def parse_duration(written: str | int) -> int:
    """The nanoseconds of Go duration text (`30s`, `1h30m`, `-1.5h`, `0`) or of a whole number.

    Raises InputError for other text, for a type that is neither, and past int64.
    """
    if isinstance(written, bool) or not isinstance(written, (str, int)):
        raise InputError(f"{written!r} is not a duration; {_WANTED}")
    if isinstance(written, int):
        if not INT64_MIN <= written <= INT64_MAX:
            raise InputError(f"{written} ns is past what can be counted (2**63 - 1 ns)")
        return written
    negative = written.startswith("-")
    rest = written[1:] if written[:1] in ("-", "+") else written
    if rest == "0":
        return 0
    if not rest:
        raise InputError(f"{written!r} is not a duration; {_WANTED}")
    total = 0
    at = 0
    while at < len(rest):
        total, at = _add_piece(written, rest, total=total, at=at)
    if negative:
        return -total
    return _within(written, total, INT64_MAX)


def saturated(nanoseconds: int) -> int:
    """*nanoseconds* kept within int64."""
    return max(INT64_MIN, min(nanoseconds, INT64_MAX))


def format_duration(nanoseconds: int) -> str:
    """*nanoseconds* as Go prints them: `1h30m0s`, `1.5s`, `20ms`, `0s`. Parses back to the same."""
    if nanoseconds == 0:
        return "0s"
    sign = "-" if nanoseconds < 0 else ""
    left = abs(nanoseconds)
    for unit in ("ns", "µs", "ms"):
        size = _UNIT[unit]
        if left < 1000 * size:
            return f"{sign}{_decimal(left, size)}{unit}"
    hours, left = divmod(left, _UNIT["h"])
    minutes, left = divmod(left, _UNIT["m"])
    text = f"{hours}h" if hours else ""
    text += f"{minutes}m" if hours or minutes else ""
    return f"{sign}{text}{_decimal(left, _UNIT['s'])}s"


def short_duration(nanoseconds: int) -> str:
    """*nanoseconds* as people write them: `1h30m`, `1h`, `90ms`. Parses back to the same."""
    text = format_duration(nanoseconds)
    if text.endswith("m0s"):
        text = text.removesuffix("0s")
        if text.endswith("h0m"):
            text = text.removesuffix("0m")
    return text


def _decimal(amount: int, size: int) -> str:
    """*amount* over *size* (a power of ten) without trailing zeros."""
    whole, part = divmod(amount, size)
    if not part:
        return str(whole)
    return f"{whole}.{part:0{len(str(size)) - 1}d}".rstrip("0")


def _add_piece(written: str, rest: str, *, total: int, at: int) -> tuple[int, int]:
    """*total* plus the number with unit that starts at *at*, and where the next one starts."""
    piece = _PIECE.match(rest, at)
    # The pattern can match nothing at all, never fail.
    assert piece is not None
    whole, part, unit = piece["whole"], piece["part"], piece["unit"]
    if not whole and not part:
        raise InputError(f"{written!r} is not a duration; {_WANTED}")
    if not unit:
        raise InputError(f"{written!r} is not a duration: {piece[0]} has no unit; {_WANTED}")
    if unit not in _UNIT:
        raise InputError(f"{written!r} is not a duration: {_unknown(unit, whole, part)}")
    size = _UNIT[unit]
    # More digits than any duration has: int() of very long text is slow and may be refused.
    digits = whole.lstrip("0")[:20]
    amount = _within(written, int(digits or 0) * size, -INT64_MIN)
    amount += _fraction(part, size)
    return _within(written, total + amount, -INT64_MIN), piece.end()


def _fraction(digits: str, size: int) -> int:
    """Nanoseconds of the digits behind the point, as Go rounds them."""
    value, scale = 0, 1.0
    for digit in digits:
        longer = value * 10 + int(digit)
        if longer > INT64_MAX:
            break
        value, scale = longer, scale * 10
    return int(float(value) * (float(size) / scale))


def _within(written: str, amount: int, most: int) -> int:
    if amount > most:
        raise InputError(f"{written!r} is past the longest duration (about 292 years)")
    return amount


def _unknown(unit: str, whole: str, part: str) -> str:
    """What to write in place of a number with the unknown *unit*."""
    meant, times = _MEANT.get(unit.strip().lower(), ("", 0))
    if meant and not part and len(whole) <= _SMALL:
        return f"no unit {unit!r}; write {int(whole) * times}{meant}"
    return f"no unit {unit!r}; {_WANTED}"
