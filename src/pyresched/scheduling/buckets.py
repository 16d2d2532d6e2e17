"""Token buckets in whole numbers: how many may start now, and when there will be more.

A token is kept in billionths, and what a rate adds in a nanosecond in billionths of these, so
that nothing is lost or gained by rounding however often one looks.
"""

from fractions import Fraction
from typing import Final

from msgspec import Struct

from pyresched.model import Instant

__all__ = ["Bucket", "Rate", "next_token", "rate_of", "taken", "tokens"]

_NANO: Final = 10**9


class Rate(Struct, frozen=True):
    """How a bucket fills: by so many billionths of a token a second, up to `burst` tokens."""

    nanos: int
    burst: int


class Bucket(Struct, frozen=True, kw_only=True):
    """What one held at the time `at`: `nanos` billionths of a token and `part` billionths of one.

    One that was never used is full, and is not written down. Below 0 it is overdrawn.
    """

    nanos: int
    part: int
    at: Instant


def rate_of(rate: float | None, burst: int | None) -> Rate | None:
    """The rate of so many tokens a second, to the billionth; None is no limit."""
    if rate is None or burst is None:
        return None
    return Rate(round(Fraction(repr(float(rate))) * _NANO), burst)


def tokens(bucket: Bucket | None, rate: Rate, now: Instant) -> int:
    """The whole tokens in *bucket* at *now*; below 0, by how many it is overdrawn, rounded up."""
    return _held(bucket, rate, now) // (_NANO * _NANO)


def taken(bucket: Bucket | None, rate: Rate, now: Instant, count: int) -> Bucket | None:
    """*bucket* after *count* tokens were taken at *now*; None is full.

    As long as nothing is taken, it stays as it is written down.
    """
    full = rate.burst * _NANO * _NANO
    left = _held(bucket, rate, now) - count * _NANO * _NANO
    if left >= full:
        return None
    if not count:
        return bucket
    nanos, part = divmod(left, _NANO)
    # A clock that went back must not let the same time fill it twice.
    return Bucket(nanos=nanos, part=part, at=now if bucket is None else max(now, bucket.at))


def next_token(bucket: Bucket | None, rate: Rate, now: Instant) -> Instant | None:
    """When *bucket* will hold a whole token more than at *now*, or None if it is full."""
    held = _held(bucket, rate, now)
    if bucket is None or held >= rate.burst * _NANO * _NANO:
        return None
    more = (held // (_NANO * _NANO) + 1) * _NANO * _NANO
    wait = -(-(more - held) // rate.nanos)
    return Instant(max(now, bucket.at) + wait)


def _held(bucket: Bucket | None, rate: Rate, now: Instant) -> int:
    """What is in *bucket* at *now*, in billionths of billionths of a token."""
    full = rate.burst * _NANO * _NANO
    if bucket is None:
        return full
    filled = max(0, now - bucket.at) * rate.nanos
    return min(bucket.nanos * _NANO + bucket.part + filled, full)
