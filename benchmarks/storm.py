"""A reschedule storm: every job fails at once, again and again, under each delay function.

Simulated with the production scheduler. Writes `storm.png` (reschedules over time, and what waits) and
prints a table; ends with 1 if any window of a policy's interval holds more reschedules of a job
than its attempts.
"""

import argparse
import sys
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import altair as alt
import vl_convert

from pyresched.config import SchedulingConfig
from pyresched.durations import NANOS
from pyresched.model import RescheduleBlock, ReschedulePolicy
from pyresched.report.records import SimulationResult
from pyresched.simulator import simulate
from pyresched.simulator.formats.swf import parse_swf

RUN_TIME = 60
ATTEMPTS = 8
INTERVAL = "12h"
DELAY = "30s"
CAP, NO_CAP = "5m", "10000h"
MINUTE = 60 * NANOS


class Storm(NamedTuple):
    """One storm and what it cost."""

    name: str
    policy: ReschedulePolicy
    result: SimulationResult
    seconds: float


def storms(jobs: int) -> Iterator[Storm]:
    """Each delay function, those that grow with and without a cap."""
    yield storm("constant", "0s", jobs)
    for function in ("exponential", "fibonacci"):
        for max_delay in (CAP, NO_CAP):
            yield storm(function, max_delay, jobs)


def storm(function: str, max_delay: str, jobs: int, *, cores: int | None = None) -> Storm:
    """*jobs* of one core and a minute that all come at 0 and always fail, on *cores*."""
    policy = ReschedulePolicy(
        attempts=ATTEMPTS,
        interval=INTERVAL,
        delay=DELAY,
        delay_function=function,
        max_delay=max_delay,
    )
    written = {name: getattr(policy, name) for name in policy.__struct_fields__}
    config = SchedulingConfig(reschedule={"batch": RescheduleBlock(**written)})
    wide = 100 if jobs >= 1000 else 10
    nodes = f"{-(-(cores or jobs) // wide)}x{wide}"
    began = time.perf_counter()
    result = simulate(parse_swf(_log(jobs), name="storm.swf"), nodes=nodes, config=config)
    seconds = time.perf_counter() - began
    cap = "" if function == "constant" else f", {'no cap' if max_delay == NO_CAP else CAP}"
    return Storm(f"{function}{cap}", policy, result, seconds)


def _log(jobs: int) -> list[str]:
    """A log in which every job fails after a minute."""
    fields: dict[int, object] = {2: 0, 4: RUN_TIME, 5: 1, 8: 1, 11: 0, 12: 1, 15: 1}
    lines = []
    for number in range(1, jobs + 1):
        fields[1], fields[12] = number, number % 20
        lines.append(" ".join(str(fields.get(field, -1)) for field in range(1, 19)))
    return lines


def reschedules(result: SimulationResult) -> dict[str, list[int]]:
    """When the failed runs of each job were replaced, in order."""
    times: defaultdict[str, list[int]] = defaultdict(list)
    outcomes = {run.id: run.outcome for run in result.runs}
    for run in result.runs:
        if outcomes.get(run.previous_run) == "failed":
            times[run.job_id].append(run.started_at)
    return times


def fullest_window(result: SimulationResult, interval: int) -> int:
    """The most reschedules of one job in any half-open window of *interval*."""
    fullest = 0
    for times in reschedules(result).values():
        for n, at in enumerate(times):
            fullest = max(fullest, bisect_left(times, at + interval) - n)
    return fullest


def row(each: Storm) -> dict[str, Any]:
    """The figures of one storm."""
    result = each.result
    started = Counter(run.started_at for run in result.runs if run.previous_run)
    return {
        "storm": each.name,
        "jobs": len(result.jobs),
        "reschedules": result.summary.reschedules,
        "fullest": fullest_window(result, each.policy.interval),
        "peak": max(started.values(), default=0),
        "ended": (result.ended_at - result.started_at) // NANOS,
        "cycles": result.summary.cycles,
        "seconds": each.seconds,
    }


def draw(all_storms: list[Storm], path: Path) -> None:
    """Starts of replacements by minute, and jobs that wait, a row a storm."""
    rows = []
    for each in all_storms:
        end = each.result.ended_at / MINUTE
        minutes = alt.X(
            "minute:Q",
            title="minutes since the first start",
            scale=alt.Scale(domain=[0, end], nice=False),
        )
        counts = Counter(run.started_at for run in each.result.runs if run.previous_run)
        starts = [{"minute": at / MINUTE, "runs": count} for at, count in counts.items()]
        waits = [
            {"minute": sample.at / MINUTE, "jobs": sum(sample.queued.values())}
            for sample in each.result.samples
        ]
        left = (
            alt.Chart(alt.InlineData(values=starts))
            .mark_bar(color="#3b6ea5", width=2)
            .encode(x=minutes, y=alt.Y("runs:Q", title="replacements"))
        )
        right = (
            alt.Chart(alt.InlineData(values=waits))
            .mark_area(color="#e0a526", interpolate="step-after")
            .encode(x=minutes, y=alt.Y("jobs:Q", title="jobs that wait"))
        )
        size = {"width": 460, "height": 110}
        rows.append(
            left.properties(title=f"{each.name}: {each.policy}", **size)
            | right.properties(title=" ", **size)
        )
    chart = alt.vconcat(*rows).configure_title(anchor="start", fontSize=12)
    path.write_bytes(vl_convert.vegalite_to_png(chart.to_dict(), scale=1.2))


def main() -> int:
    """Run the storms, print their figures, draw them."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--jobs", type=int, default=50_000)
    options.add_argument("--out", type=Path, default=Path("build"), help="folder of storm.png")
    given = options.parse_args()
    done = []
    for each in storms(given.jobs):
        figures = row(each)
        if not done:
            print(*(f"{name:>12}" for name in figures))
        shown = (f"{v:.1f}" if isinstance(v, float) else v for v in figures.values())
        print(*(f"{value:>12}" for value in shown), flush=True)
        done.append(each)
    given.out.mkdir(parents=True, exist_ok=True)
    draw(done, given.out / "storm.png")
    print(f"drawn: {given.out / 'storm.png'}")
    return int(any(row(each)["fullest"] > ATTEMPTS for each in done))


if __name__ == "__main__":
    sys.exit(main())
