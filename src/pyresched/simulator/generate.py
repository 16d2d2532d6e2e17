"""Logs and node failures made from published models and a seed, in the formats of real ones.

Relies on `lublin` for sizes, run times and arrivals. Owners of jobs follow Zipf's law; failures
of nodes follow Schroeder and Gibson, "A large-scale study of failures in high-performance
computing systems", DSN 2006: Weibull times between failures, log-normal repairs.
"""

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from pyresched.errors import InputError
from pyresched.simulator.draws import Draws, checked_seed
from pyresched.simulator.formats.failures import FIXED, NODE, STARTED
from pyresched.simulator.lublin import LublinModel, SizeModel

__all__ = ["FailurePlan", "GeneratedFailures", "GeneratedLog", "WorkloadPlan"]

LEAST_LOAD: Final = 0.001
MOST_LOAD: Final = 1000.0
NORMAL_QUEUE: Final = 1
PREEMPTIBLE_QUEUE: Final = 2
_MOST_JOBS: Final = 10_000_000
_MOST_NODES: Final = 1_000_000
_MOST_CORES: Final = 1_000_000
_MOST_USERS: Final = 1_000_000

_SHORTEST_MEAN_S: Final = 60.0

# Schroeder and Gibson: shape of 0.7 to 0.8 for times between failures (section 5); repairs with
# a median of 54 and a mean of 355 minutes over all systems (section 6).
_FAILURE_SHAPE: Final = 0.7
_REPAIR_MEDIAN_S: Final = 54 * 60.0
_REPAIR_MEAN_S: Final = 355 * 60.0
_REPAIR_SIGMA: Final = math.sqrt(2.0 * math.log(_REPAIR_MEAN_S / _REPAIR_MEDIAN_S))

_FAILURES_BEGIN: Final = datetime(2000, 1, 1, tzinfo=UTC)
_FAILURE_COLUMNS: Final = (
    *("System", "machine type", "nodes", "procstot", "procsinnode", "nodenum", NODE),
    *("node install", "node prod", "node decom", "fru type", "mem", "cputype", "memtype"),
    *("num intercon", "purpose", STARTED, FIXED, "Down Time", "Facilities", "Hardware"),
    *("Human Error", "Network", "Undetermined", "Software", "Same Event"),
)


class WorkloadPlan(Struct, frozen=True, kw_only=True):
    """What log to make. Raises InputError for what cannot be made.

    `failure_share` of all jobs fail, `preemptible_share` go to queue 2, whose jobs give way.
    `load` stretches the gaps between jobs so that what they ask for is that share of the
    machine until the last submit; None leaves the gaps as the model has them.
    """

    jobs: int = 1000
    nodes: int = 32
    cores: int = 4
    users: int = 12
    failure_share: float = 0.1
    preemptible_share: float = 0.15
    load: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        checked_seed(self.seed)
        _check_count("jobs", self.jobs, _MOST_JOBS)
        _check_count("nodes", self.nodes, _MOST_NODES)
        _check_count("cores of a node", self.cores, _MOST_CORES)
        _check_count("users", self.users, _MOST_USERS)
        for name, share in (
            ("failure share", self.failure_share),
            ("preemptible share", self.preemptible_share),
        ):
            if not 0.0 <= share <= 1.0:
                raise InputError(f"{name} {share}: write a number from 0 to 1")
        if self.load is not None and not LEAST_LOAD <= self.load <= MOST_LOAD:
            raise InputError(
                f"load {self.load}: write a number from {LEAST_LOAD} to {MOST_LOAD}, such as 0.8"
            )

    @property
    def processors(self) -> int:
        """All cores of the machine."""
        return self.nodes * self.cores


class FailurePlan(Struct, frozen=True, kw_only=True):
    """What failures to make: for each of `nodes`, one in `mean_s` seconds on average."""

    nodes: int
    cores: int
    until_s: float
    mean_s: float = 720 * 3600.0
    seed: int = 0

    def __post_init__(self) -> None:
        checked_seed(self.seed)
        if not _SHORTEST_MEAN_S <= self.mean_s < math.inf:
            raise InputError(f"mean time between failures {self.mean_s} s: write 60 s or more")


class GeneratedJob(Struct, frozen=True, gc=False):
    """A line of the log in the making."""

    submit_s: int
    run_s: int
    size: int
    failed: bool
    user: int
    queue: int


class GeneratedLog(Struct, frozen=True):
    """A log as made: its jobs in order of submit, and itself as text."""

    plan: WorkloadPlan
    jobs: tuple[GeneratedJob, ...]

    @classmethod
    def of(cls, plan: WorkloadPlan) -> "GeneratedLog":
        """The log of *plan*: equal plans give equal logs."""
        model = LublinModel(size=SizeModel.of(plan.processors))
        # A stream for each part, so that changing one share leaves the rest of the log as it is.
        shape, arrivals, owners = (
            Draws.named(plan.seed, part) for part in ("shape", "arrivals", "owners")
        )
        sizes = [model.size.draw(shape) for _ in range(plan.jobs)]
        run_times = [round(model.run_time.draw(shape, size=size)) for size in sizes]
        gaps = [model.arrival.gap(arrivals) for _ in range(plan.jobs)]
        stretch = 1.0
        if plan.load is not None:
            work = math.fsum(
                size * run_time for size, run_time in zip(sizes, run_times, strict=True)
            )
            stretch = work / plan.processors / plan.load / math.fsum(gaps)
        times = model.arrival.times(gap * stretch for gap in gaps)
        zipf = list(itertools.accumulate(1.0 / rank for rank in range(1, plan.users + 1)))
        jobs = tuple(
            GeneratedJob(
                submit_s=math.floor(time),
                run_s=run_time,
                size=size,
                user=bisect_right(zipf, owners.unit() * zipf[-1]) + 1,
                failed=owners.unit() < plan.failure_share,
                queue=(
                    PREEMPTIBLE_QUEUE if owners.unit() < plan.preemptible_share else NORMAL_QUEUE
                ),
            )
            for time, run_time, size in zip(times, run_times, sizes, strict=True)
        )
        return cls(plan, jobs)

    def lines(self) -> Iterator[str]:
        """The log in Standard Workload Format, line by line, each with its end."""
        plan = self.plan
        yield "; Version: 2.2\n"
        yield f"; Computer: made by pyresched generate, seed {plan.seed}\n"
        yield "; Information: workload model of Lublin and Feitelson, JPDC 63(11), 2003\n"
        yield f"; MaxJobs: {plan.jobs}\n"
        yield f"; MaxRecords: {plan.jobs}\n"
        yield f"; MaxNodes: {plan.nodes}\n"
        yield f"; MaxProcs: {plan.processors}\n"
        yield "; UnixStartTime: 0\n"
        yield "; MaxQueues: 2\n"
        yield f"; Queue: {NORMAL_QUEUE} normal - jobs are not preemptible\n"
        yield f"; Queue: {PREEMPTIBLE_QUEUE} besteffort - jobs can be preempted by normal jobs\n"
        for number, job in enumerate(self.jobs, start=1):
            status = 0 if job.failed else 1
            yield (
                f"{number} {job.submit_s} -1 {job.run_s} {job.size} -1 -1 {job.size} -1 -1 "
                f"{status} {job.user} -1 -1 {job.queue} -1 -1 -1\n"
            )


class GeneratedFailures(Struct, frozen=True):
    """Failures as made: (minute, minutes away, node) in order of time, and themselves as text."""

    plan: FailurePlan
    failures: tuple[tuple[int, int, int], ...]

    @classmethod
    def of(cls, plan: FailurePlan) -> "GeneratedFailures":
        """The failures of *plan*: equal plans give equal failures."""
        draws = Draws.named(plan.seed, "failures")
        scale = plan.mean_s / math.gamma(1.0 + 1.0 / _FAILURE_SHAPE)
        found = []
        for node in range(plan.nodes):
            at = draws.weibull(shape=_FAILURE_SHAPE, scale=scale)
            while at < plan.until_s:
                away = draws.lognormal(median=_REPAIR_MEDIAN_S, sigma=_REPAIR_SIGMA)
                found.append((math.floor(at / 60.0), math.ceil(away / 60.0), node))
                at += away + draws.weibull(shape=_FAILURE_SHAPE, scale=scale)
        return cls(plan, tuple(sorted(found)))

    def lines(self) -> Iterator[str]:
        """The failures as CSV in the columns of the Los Alamos records, line by line."""
        plan = self.plan
        yield ",".join(_FAILURE_COLUMNS) + "\n"
        for minute, away, node in self.failures:
            written = {
                "System": "generated",
                "machine type": "cluster",
                "nodes": plan.nodes,
                "procstot": plan.nodes * plan.cores,
                "procsinnode": plan.cores,
                "nodenum": node,
                NODE: node,
                STARTED: _written_time(minute),
                FIXED: _written_time(minute + away),
                "Down Time": away,
                "Undetermined": "Undetermined",
                "Same Event": "No",
            }
            yield ",".join(str(written.get(column, "")) for column in _FAILURE_COLUMNS) + "\n"


def _written_time(minute: int) -> str:
    at = _FAILURES_BEGIN + timedelta(minutes=minute)
    return f"{at.month}/{at.day}/{at.year} {at.hour}:{at.minute:02}"


def _check_count(name: str, count: int, most: int) -> None:
    if not 1 <= count <= most:
        raise InputError(f"{name} {count}: write a whole number from 1 to {most}")
