"""Random numbers that a seed fixes for good: the same on any machine and any Python.

Relies only on what Python promises never to change: `random.Random(seed).random()` for whole
seeds, and BLAKE2. The samplers above them are ours, so that no release can alter a log.
"""

import hashlib
import math
from random import Random
from typing import Final

from pyresched.errors import InputError

__all__ = ["Draws", "chance", "checked_seed"]

_UNIT: Final = 2.0**-53


def checked_seed(seed: int) -> int:
    """*seed*, 0 included. Raises InputError below 0 or past 64 bits."""
    if not 0 <= seed < 2**64:
        raise InputError(f"seed {seed}: write a whole number from 0 to 2**64 - 1")
    return seed


def chance(seed: int, *names: str | int) -> float:
    """A number in [0, 1) that *seed* and *names* alone decide, whatever was drawn before."""
    return (_word(seed, *names) >> 11) * _UNIT


def _word(seed: int, *names: str | int) -> int:
    """64 bits that *seed* and *names* decide."""
    text = "\x1f".join([str(seed), *(str(name) for name in names)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


class Draws:
    """A stream of random numbers from *seed*."""

    def __init__(self, seed: int) -> None:
        self.unit = Random(checked_seed(seed)).random
        """The next number in [0, 1), uniform."""

    @classmethod
    def named(cls, seed: int, name: str) -> "Draws":
        """The stream *name* of *seed*: streams of other names tell nothing about it."""
        return cls(_word(checked_seed(seed), name))

    def uniform(self, low: float, high: float) -> float:
        """Uniform between *low* and *high*."""
        return low + (high - low) * self.unit()

    def normal(self) -> float:
        """Standard normal, by Box and Muller (1958)."""
        radius = math.sqrt(-2.0 * math.log(1.0 - self.unit()))
        return radius * math.cos(2.0 * math.pi * self.unit())

    def lognormal(self, *, median: float, sigma: float) -> float:
        """Log-normal with *median*, and *sigma* the deviation of its logarithm."""
        return median * math.exp(sigma * self.normal())

    def weibull(self, *, shape: float, scale: float) -> float:
        """Weibull, by inversion."""
        return scale * math.pow(-math.log(1.0 - self.unit()), 1.0 / shape)

    def gamma(self, shape: float, scale: float) -> float:
        """Gamma with mean *shape* x *scale*, for *shape* of at least 1.

        Marsaglia and Tsang, "A simple method for generating gamma variables", ACM Trans. Math.
        Softw. 26(3), 2000.
        """
        assert shape >= 1.0
        d = shape - 1.0 / 3.0
        c = 1.0 / math.sqrt(9.0 * d)
        while True:
            x = self.normal()
            v = (1.0 + c * x) ** 3
            if v > 0.0 and math.log(1.0 - self.unit()) < 0.5 * x * x + d - d * v + d * math.log(v):
                return d * v * scale
