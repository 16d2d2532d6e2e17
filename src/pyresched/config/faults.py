"""Values that several parts of a configuration have, and what is wrong with one.

Each function yields a `Fault` for each value that cannot be used, with the path of its key.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pyresched.config.reading import Fault, key_path
from pyresched.errors import did_you_mean
from pyresched.model.queues import fraction_faults as queue_fraction_faults

__all__ = [
    "INT32_MAX",
    "count_faults",
    "fraction_faults",
    "fraction_table_faults",
    "multiplier_faults",
    "name_faults",
    "rate_faults",
    "share_faults",
]

INT32_MAX: Final = 2**31 - 1
# A rate is kept in billionths of a job each second, in integers.
_RATE_MIN: Final = 1e-9
_RATE_MAX: Final = 1e9


def name_faults(path: str, names: Iterable[str]) -> Iterator[Fault]:
    """Names that are empty or there twice."""
    seen: set[str] = set()
    for i, name in enumerate(names):
        if not name:
            yield Fault(f"{path}[{i}].name", "is empty; write a name")
        if name in seen:
            yield Fault(f"{path}[{i}].name", f"{name!r} is there twice; keep one")
        seen.add(name)


def multiplier_faults(
    path: str, multipliers: Mapping[str, float], known: Sequence[str]
) -> Iterator[Fault]:
    """Multipliers that are none, of resources that are not *known*, or all 0."""
    for name, multiplier in multipliers.items():
        if name not in known:
            yield Fault(key_path(path, name), f"unknown resource; {did_you_mean(name, known)}")
        if not (math.isfinite(multiplier) and multiplier >= 0):
            sentence = f"{multiplier} is no multiplier; write a finite number from 0"
            yield Fault(key_path(path, name), sentence)
    if multipliers and not any(multipliers.values()):
        yield Fault(path, "nothing would count; give one resource a multiplier above 0")


def share_faults(path: str, share: float) -> Iterator[Fault]:
    """A part of a share that is none."""
    if not (math.isfinite(share) and share >= 0):
        yield Fault(path, f"{share} is no share; write a finite number from 0")


def fraction_faults(
    path: str, fractions: Mapping[str, float], known: Sequence[str]
) -> Iterator[Fault]:
    """Fractions of a pool that are none, or of resources that are not *known*."""
    for name in fractions:
        if name not in known:
            yield Fault(key_path(path, name), f"unknown resource; {did_you_mean(name, known)}")
    for names, sentence in queue_fraction_faults((), fractions):
        yield Fault(key_path(path, *names), sentence)


def fraction_table_faults(
    path: str,
    what: str,
    table: Mapping[str, Mapping[str, float]],
    names: Sequence[str],
    known: Sequence[str],
) -> Iterator[Fault]:
    """Tables of fractions by name, each name one of *names*, which are of the kind *what*."""
    for name, fractions in table.items():
        own = key_path(path, name)
        if name not in names:
            yield Fault(own, f"unknown {what}; {did_you_mean(name, names)}")
        yield from fraction_faults(own, fractions, known)


def count_faults(path: str, count: int, nothing: str = "no limit") -> Iterator[Fault]:
    """A limit in whole numbers that is none; 0 means *nothing*."""
    if count < 0:
        yield Fault(path, f"{count} is negative; write 0 ({nothing}) or more")
    if count > INT32_MAX:
        yield Fault(path, f"is above {INT32_MAX}; write less, or 0 ({nothing})")


def rate_faults(path: str, prefix: str, rate: float | None, burst: int | None) -> Iterator[Fault]:
    """A rate (each second) and its burst that are none, or one without the other."""
    at_rate, at_burst = (key_path(path, f"{prefix}{name}") for name in ("rate", "burst"))
    if rate is not None and not _RATE_MIN <= rate <= _RATE_MAX:
        sentence = (
            f"{rate} is no rate; write a number each second from {_RATE_MIN:.9f} to {_RATE_MAX:.0f}"
        )
        yield Fault(at_rate, f"{sentence}, or leave it out for no limit")
    if burst is not None and not 1 <= burst <= INT32_MAX:
        sentence = f"with {burst} nothing could ever start; write 1 to {INT32_MAX}"
        yield Fault(at_burst, sentence)
    if rate is not None and burst is None:
        sentence = f"is missing beside {prefix}rate; write how many may come at once"
        yield Fault(at_burst, sentence)
    if rate is None and burst is not None:
        sentence = f"is missing beside {prefix}burst; write how many may come each second"
        yield Fault(at_rate, sentence)
