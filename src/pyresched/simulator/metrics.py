"""The figures of a simulation, from its records alone.

Sums are of integers, so no figure depends on an order; shares and seconds are rounded to six
places at the end. Nothing here knows the scheduler.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final

from pyresched.model import NANOS, Instant
from pyresched.report.records import JobEnd, JobRecord, NodeRecord, Outage, RunRecord, WaitSeconds

__all__ = [
    "SLOWDOWN_THRESHOLD",
    "bounded_slowdown",
    "jain_index",
    "mean",
    "quantile",
    "rounded",
    "rounded_mean",
    "service_by_queue",
    "utilisation",
    "wait_seconds",
]

SLOWDOWN_THRESHOLD: Final = 10 * NANOS
"""Run times below this count as this, so that jobs of an instant do not drown all others."""
_PLACES: Final = 6


def rounded(value: float | Fraction) -> float:
    """*value* to six places, as figures are written."""
    return round(float(value), _PLACES)


def mean(values: Sequence[int]) -> Fraction | None:
    """The exact mean, None of nothing."""
    return Fraction(sum(values), len(values)) if values else None


def rounded_mean(values: Sequence[Fraction]) -> float | None:
    """The mean to six places, whatever the order of *values*; None of nothing."""
    # Exact fractions of many run times would have a denominator of megabytes.
    return rounded(math.fsum(map(float, values)) / len(values)) if values else None


def quantile(values: Iterable[int | Fraction], share: Fraction) -> Fraction | None:
    """The value below which *share* of *values* lie, between two of them by their distance.

    (The method of R's type 7 and of NumPy's default.) None of nothing.
    """
    ordered = sorted(values)
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * Fraction(ordered[above] - ordered[below])


def wait_seconds(jobs: Iterable[JobRecord]) -> WaitSeconds:
    """Waits from submit to first start, over jobs that started."""
    waits = [job.started_at - job.submitted_at for job in jobs if job.started_at is not None]
    return WaitSeconds(
        mean=_in_seconds(mean(waits)),
        median=_in_seconds(quantile(waits, Fraction(1, 2))),
        p95=_in_seconds(quantile(waits, Fraction(95, 100))),
    )


def bounded_slowdown(job: JobRecord) -> Fraction | None:
    """Time from submit to end over run time, both with a floor of 10 s; None if it never ran.

    Feitelson and Rudolph, "Metrics and benchmarking for parallel job scheduling", JSSPP 1998.
    Lost time and reschedules lengthen the numerator, never the denominator.
    """
    if job.started_at is None or job.ended_at is None or job.end is JobEnd.CANCELLED:
        return None
    turnaround = job.ended_at - job.submitted_at
    return max(Fraction(1), Fraction(turnaround, max(job.run_time, SLOWDOWN_THRESHOLD)))


def utilisation(
    runs: Iterable[RunRecord],
    nodes: Iterable[NodeRecord],
    outages: Iterable[Outage],
    *,
    start: Instant,
    end: Instant,
) -> float:
    """Core time that runs held over core time of nodes that were there, from *start* to *end*."""
    held = sum(
        run.cores * ((end if run.ended_at is None else run.ended_at) - run.started_at)
        for run in runs
    )
    cores = {node.id: node.cores for node in nodes}
    there = sum(cores.values()) * (end - start)
    for outage in outages:
        back = end if outage.back_at is None else min(outage.back_at, end)
        there -= cores[outage.node_id] * max(0, back - max(outage.lost_at, start))
    return rounded(Fraction(held, there)) if there > 0 else 0.0


def service_by_queue(jobs: Iterable[JobRecord]) -> dict[str, Fraction]:
    """For each queue the share of its jobs' core time from submit to end that was service.

    That is the inverse of its slowdown, weighted by work: 1 for a queue that never waits.
    Jobs that ran to an end count; queues without one are left out, as is one whose jobs all
    take no time.
    """
    served: dict[str, int] = {}
    taken: dict[str, int] = {}
    for job in jobs:
        if job.end in (JobEnd.SUCCEEDED, JobEnd.FAILED) and job.ended_at is not None:
            served[job.queue] = served.get(job.queue, 0) + job.cores * job.run_time
            taken[job.queue] = taken.get(job.queue, 0) + job.cores * (
                job.ended_at - job.submitted_at
            )
    return {
        queue: Fraction(served[queue], taken[queue]) for queue in sorted(taken) if taken[queue] > 0
    }


def jain_index(shares: Iterable[Fraction]) -> float | None:
    """How even *shares* are: 1 when equal, 1/n when one has all. None of nothing or of zeros.

    Jain, Chiu and Hawe, "A quantitative measure of fairness and discrimination", DEC-TR-301, 1984.
    """
    values = [float(share) for share in shares]
    squares = math.fsum(value * value for value in values)
    return rounded(math.fsum(values) ** 2 / (len(values) * squares)) if squares else None


def _in_seconds(value: Fraction | None) -> float | None:
    return None if value is None else rounded(value / NANOS)
