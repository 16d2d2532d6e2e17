"""The workload model of Lublin and Feitelson: sizes, run times and arrivals of rigid jobs.

Lublin and Feitelson, "The workload on parallel supercomputers: modeling the characteristics
of rigid jobs", J. Parallel Distrib. Comput. 63(11), 2003, pp. 1105-1122. Parameters are those
published for all jobs together (not split into batch and interactive), from four sites' logs.

* Size: 1 with a fixed share; else 2 to the power of a two-stage uniform variable, rounded to a
  whole power for another fixed share.
* Run time: its natural logarithm is hyper-gamma; the weight of the short component falls
  linearly with the size, so that wide jobs run longer.
* Arrivals: the logarithm of the gap at rush hour is gamma. A gap is paid with the weights of
  half hours, which follow a gamma density over the day: a night lets fewer jobs through.
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from msgspec import Struct

from pyresched.simulator.draws import Draws

__all__ = ["ArrivalModel", "LublinModel", "RunTimeModel", "SizeModel", "gamma_cdf"]

BUCKETS: Final = 48  # half hours of a day
BUCKET_S: Final = 86_400 // BUCKETS
_SERIES_END: Final = 1e-15


class SizeModel(Struct, frozen=True, kw_only=True):
    """Processors of a job. Table of the paper: `low` 0.8, `middle` = `high` - 2.5, `share` 0.86.

    `serial` is the share of jobs of size 1, `powers` the share of all jobs that are parallel
    and take a power of 2 by choice (others hit one by chance). `low`, `middle` and `high` are
    logarithms to base 2; `high` is that of the machine's size.
    """

    serial: float = 0.244
    powers: float = 0.576
    low: float = 0.8  # below log2(2), so that rounding gives 2 its share
    middle: float = 4.5
    high: float = 7.0
    share: float = 0.86

    @classmethod
    def of(cls, processors: int) -> "SizeModel":
        """The model of a machine of *processors* (at least 1)."""
        high = math.log2(processors)
        low = min(0.8, high)
        return cls(low=low, middle=max(low, high - 2.5), high=high)

    def draw(self, draws: Draws) -> int:
        """Processors of the next job, at least 1."""
        kind = draws.unit()
        if kind < self.serial:
            return 1
        first = draws.unit() < self.share
        low, high = (self.low, self.middle) if first else (self.middle, self.high)
        exponent = draws.uniform(low, high)
        if kind < self.serial + self.powers:
            # Never past the machine, whose size need not be a power of 2.
            exponent = min(math.floor(exponent + 0.5), math.floor(self.high))
        return max(1, math.floor(math.exp2(exponent) + 0.5))


class RunTimeModel(Struct, frozen=True, kw_only=True):
    """Run time in seconds: exp of a hyper-gamma variable.

    Gamma(`a1`, `b1`) with probability `pa` x size + `pb` (kept within 0 and 1), else
    Gamma(`a2`, `b2`). Longer than exp(`longest`), almost two days, is drawn again.
    """

    a1: float = 4.2
    b1: float = 0.94
    a2: float = 312.0
    b2: float = 0.03
    pa: float = -0.0054
    pb: float = 0.78
    longest: float = 12.0

    def draw(self, draws: Draws, *, size: int) -> float:
        """Seconds that the next job runs on *size* processors."""
        short = min(1.0, max(0.0, self.pa * size + self.pb))
        while True:
            first = draws.unit() < short
            a, b = (self.a1, self.b1) if first else (self.a2, self.b2)
            logarithm = draws.gamma(a, b)
            if logarithm <= self.longest:
                return math.exp(logarithm)


class ArrivalModel(Struct, frozen=True, kw_only=True):
    """Arrivals: exp of Gamma(`a_gap` x `all_day`, `b_gap`) seconds between jobs at rush hour.

    `all_day` turns the gap at rush hour into that of the whole day. Jobs of a day follow
    Gamma(`a_day`, `b_day`) over half hours that count from half past 5 in the morning, where
    the cycle is lowest (bucket 11). Gaps above exp(`longest`), 5 days, are drawn again.
    """

    a_gap: float = 10.2303
    b_gap: float = 0.4871
    all_day: float = 1.0225
    a_day: float = 8.1737
    b_day: float = 3.9631
    day_start: int = 11
    longest: float = 13.0

    def weights(self) -> tuple[float, ...]:
        """The weight of each half hour from midnight on, 1 on average."""
        edges = [
            gamma_cdf(bucket - 0.5, self.a_day, self.b_day)
            for bucket in range(self.day_start, self.day_start + BUCKETS + 1)
        ]
        raw = [0.0] * BUCKETS
        for offset, (left, right) in enumerate(pairwise(edges)):
            raw[(self.day_start + offset - 1) % BUCKETS] = right - left
        mean = math.fsum(raw) / BUCKETS
        return tuple(weight / mean for weight in raw)

    def gap(self, draws: Draws) -> float:
        """Seconds to the next job, as at a time of mean weight."""
        while True:
            logarithm = draws.gamma(self.a_gap * self.all_day, self.b_gap)
            if logarithm <= self.longest:
                return math.exp(logarithm)

    def times(self, gaps: Iterator[float]) -> Iterator[float]:
        """Arrival times in seconds from a midnight, for *gaps* as `gap` draws them."""
        weights = self.weights()
        bucket = 0  # half hours since the start
        credit = 0.0  # what is saved up since the start of the bucket, in mean half hours
        for gap in gaps:
            credit += gap / BUCKET_S
            while credit > (weight := weights[bucket % BUCKETS]):
                credit -= weight
                bucket += 1
            yield (bucket + credit / weights[bucket % BUCKETS]) * BUCKET_S


class LublinModel(Struct, frozen=True, kw_only=True):
    """The three parts together."""

    size: SizeModel = SizeModel()
    run_time: RunTimeModel = RunTimeModel()
    arrival: ArrivalModel = ArrivalModel()


def gamma_cdf(x: float, shape: float, scale: float) -> float:
    """The distribution function of Gamma(*shape*, *scale*) at *x* of at least 0, by its series."""
    x /= scale
    if x <= 0.0:
        return 0.0
    term = total = 1.0 / shape
    denominator = shape
    while term > total * _SERIES_END:
        denominator += 1.0
        term *= x / denominator
        total += term
    return total * math.exp(shape * math.log(x) - x - math.lgamma(shape))
