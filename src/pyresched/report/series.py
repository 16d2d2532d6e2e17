"""What each picture shows, as small tables of plain rows: binned, ranked and sliced.

Pure functions of a result. A picture keeps its size however long the log: time is cut into
bins that carry time-weighted means, queues beyond the largest share one row, and the Gantt
chart shows a slice that its own title names.
"""

import bisect
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypedDict

from pyresched.model import NANOS
from pyresched.report.records import RunRecord, Sample, SimulationResult

__all__ = [
    "GanttRow",
    "GanttSlice",
    "OutageRow",
    "QueueRow",
    "UtilisationRow",
    "WaitRow",
    "gantt_slice",
    "queue_rows",
    "utilisation_rows",
    "wait_rows",
]

DAY: Final = 24 * 3600 * NANOS
BINS: Final = 480
QUEUES_SHOWN: Final = 7
WAIT_QUEUES_SHOWN: Final = 25
GANTT_NODES: Final = 32
GANTT_BARS: Final = 3000
OTHERS: Final = "(others)"


class UtilisationRow(TypedDict):
    """Shares of the cluster's cores in percent during the bin that begins at `day`."""

    day: float
    used: float
    there: float


class QueueRow(TypedDict):
    """Mean number of waiting jobs of a queue during a bin."""

    day: float
    queue: str
    jobs: float
    place: int


class WaitRow(TypedDict):
    """Wait of a queue's started jobs in hours: quartiles and the 95th percentile."""

    queue: str
    started: int
    low: float
    median: float
    high: float
    p95: float


class GanttRow(TypedDict):
    """A bar: a run on neighbouring cores of a node; `bottom`, `top` in nodes from the first."""

    node: str
    start: float
    end: float
    bottom: float
    top: float
    outcome: str
    job: str
    queue: str
    cores: int
    attempt: int


class OutageRow(TypedDict):
    """A node away."""

    node: str
    start: float
    end: float
    bottom: float
    top: float


class GanttSlice(TypedDict):
    """The part of the result that the Gantt chart shows, and how to call it."""

    title: str
    nodes: list[str]
    bars: list[GanttRow]
    outages: list[OutageRow]
    start: float
    end: float


def _days(result: SimulationResult, at: int) -> float:
    return round((at - result.started_at) / DAY, 6)


def _bins(result: SimulationResult, count: int) -> list[int]:
    """Edges of at most *count* equal bins from the first submit to the end."""
    span = max(result.ended_at - result.started_at, 1)
    count = max(1, min(count, span // NANOS or 1))
    return [result.started_at + span * i // count for i in range(count + 1)]


def _holding(samples: Sequence[Sample], edges: Sequence[int]) -> Iterator[tuple[int, Sample, int]]:
    """(bin, sample, nanoseconds for which the sample held within the bin), in order of time."""
    ends = [*(sample.at for sample in samples[1:]), edges[-1]]
    for sample, held_until in zip(samples, ends, strict=False):
        start = max(sample.at, edges[0])
        end = min(held_until, edges[-1])
        place = bisect.bisect_right(edges, start) - 1
        while start < end:
            stop = min(end, edges[place + 1])
            yield place, sample, stop - start
            start = stop
            place += 1


def utilisation_rows(result: SimulationResult, bins: int = BINS) -> list[UtilisationRow]:
    """Cores in use and cores there (not lost), in percent of all cores, by time."""
    first, total = result.resources[0], max(sum(node.cores for node in result.nodes), 1)
    unit = _units_per_core(result)
    edges = _bins(result, bins)
    used = [0.0] * (len(edges) - 1)
    there = [0.0] * (len(edges) - 1)
    for place, sample, held in _holding(result.samples, edges):
        used[place] += sample.allocated.get(first, 0) * held
        there[place] += sample.capacity.get(first, 0) * held
    scale = [100 / (total * unit * (b - a)) for a, b in itertools.pairwise(edges)]
    return [
        {
            "day": _days(result, edges[i]),
            "used": round(used[i] * scale[i], 3),
            "there": round(there[i] * scale[i], 3),
        }
        for i in range(len(used))
    ]


def _units_per_core(result: SimulationResult) -> int:
    """Units of the first resource that one core counts, read off the fullest sample."""
    first, cores = result.resources[0], max(sum(node.cores for node in result.nodes), 1)
    most = max((sample.capacity.get(first, 0) for sample in result.samples), default=0)
    return max(round(most / cores), 1)


def queue_rows(
    result: SimulationResult, bins: int = BINS, shown: int = QUEUES_SHOWN
) -> list[QueueRow]:
    """Waiting jobs by time and queue; queues beyond the *shown* longest are one row."""
    edges = _bins(result, bins)
    weight: dict[str, float] = defaultdict(float)
    waiting: dict[tuple[int, str], float] = defaultdict(float)
    for place, sample, held in _holding(result.samples, edges):
        for queue, jobs in sample.queued.items():
            weight[queue] += jobs * held
            waiting[place, queue] += jobs * held
    ranked = sorted(weight, key=lambda queue: (-weight[queue], queue))
    named = ranked[:shown] if len(ranked) > shown + 1 else ranked
    rest = ranked[len(named) :]
    return [
        {
            "day": _days(result, edges[place]),
            "queue": queue,
            "jobs": round(
                sum(waiting.get((place, member), 0.0) for member in members)
                / (edges[place + 1] - edges[place]),
                3,
            ),
            "place": rank,
        }
        for place in range(len(edges) - 1)
        for rank, (queue, members) in enumerate(
            [(queue, [queue]) for queue in named] + ([(OTHERS, rest)] if rest else [])
        )
    ]


def wait_rows(result: SimulationResult, shown: int = WAIT_QUEUES_SHOWN) -> list[WaitRow]:
    """Wait by queue, longest median first; the *shown* queues with the most started jobs."""
    waits: dict[str, list[float]] = defaultdict(list)
    for job in result.jobs:
        if job.started_at is not None:
            waits[job.queue].append((job.started_at - job.submitted_at) / (3600 * NANOS))
    busiest = sorted(waits, key=lambda queue: (-len(waits[queue]), queue))[:shown]
    rows: list[WaitRow] = []
    for queue in busiest:
        ordered = sorted(waits[queue])
        low, median, high, p95 = (_percentile(ordered, share) for share in (25, 50, 75, 95))
        rows.append(
            {
                "queue": queue,
                "started": len(ordered),
                "low": low,
                "median": median,
                "high": high,
                "p95": p95,
            }
        )
    return sorted(rows, key=lambda row: (-row["median"], -row["p95"], row["queue"]))


def _percentile(ordered: Sequence[float], share: int) -> float:
    """The smallest value that *share* percent of *ordered* do not exceed."""
    return round(ordered[max(0, -(-len(ordered) * share // 100) - 1)], 6)


def gantt_slice(
    result: SimulationResult, nodes: int = GANTT_NODES, bars: int = GANTT_BARS
) -> GanttSlice:
    """What ran where: all of it when it fits, else some nodes and the busiest stretch of time.

    Nodes that were lost come first into the choice, then the first nodes; a slice keeps the
    order of the cluster.
    """
    chosen = _chosen_nodes(result, nodes)
    place = {node: i for i, node in enumerate(chosen)}
    runs = sorted(
        (run for run in result.runs if run.node_id in place),
        key=lambda run: (run.started_at, run.id),
    )
    start, end = _window(result, runs, bars)
    drawn = list(_packed(result, runs, place, start, end))
    whole_time = start <= result.started_at and end >= result.ended_at
    which = (
        "every node"
        if len(chosen) == len(result.nodes)
        else (f"{len(chosen)} of {len(result.nodes)} nodes")
    )
    when = "" if whole_time else f", day {_days(result, start):.2f} to {_days(result, end):.2f}"
    return {
        "title": f"What ran where: {which}{when}",
        "nodes": chosen,
        "bars": drawn,
        "outages": [
            {
                "node": outage.node_id,
                "start": _days(result, max(outage.lost_at, start)),
                "end": _days(result, min(outage.back_at or end, end)),
                "bottom": float(place[outage.node_id]),
                "top": place[outage.node_id] + 1.0,
            }
            for outage in result.outages
            if outage.node_id in place
            and outage.lost_at < end
            and (outage.back_at is None or outage.back_at > start)
        ],
        "start": _days(result, start),
        "end": _days(result, end),
    }


def _chosen_nodes(result: SimulationResult, most: int) -> list[str]:
    ids = [node.id for node in result.nodes]
    if len(ids) <= most:
        return ids
    lost = {outage.node_id for outage in result.outages}
    ranked = sorted(range(len(ids)), key=lambda i: (ids[i] not in lost, i))[:most]
    return [ids[i] for i in sorted(ranked)]


def _window(result: SimulationResult, runs: Sequence[RunRecord], most: int) -> tuple[int, int]:
    """All of the time if it holds at most *most* runs, else the shortest stretch that starts so many."""
    if len(runs) <= most:
        return result.started_at, result.ended_at
    starts = [run.started_at for run in runs]
    best = min(range(len(starts) - most), key=lambda i: (starts[i + most] - starts[i], i))
    return starts[best], max(starts[best + most], starts[best] + 1)


def _packed(
    result: SimulationResult,
    runs: Sequence[RunRecord],
    place: Mapping[str, int],
    start: int,
    end: int,
) -> Iterator[GanttRow]:
    """Bars of *runs* within [start, end): each run on the lowest free cores of its node."""
    cores = {node.id: max(node.cores, 1) for node in result.nodes}
    busy_until = {node: [result.started_at] * cores[node] for node in place}
    for run in runs:
        run_end = result.ended_at if run.ended_at is None else run.ended_at
        lanes = busy_until[run.node_id]
        free = [lane for lane, until in enumerate(lanes) if until <= run.started_at][: run.cores]
        for lane in free:
            lanes[lane] = run_end
        if run.started_at >= end or run_end <= start:
            continue
        for low, high in _stretches(free):
            yield {
                "node": run.node_id,
                "start": _days(result, max(run.started_at, start)),
                "end": _days(result, min(run_end, end)),
                "bottom": round(place[run.node_id] + low / len(lanes), 4),
                "top": round(place[run.node_id] + high / len(lanes), 4),
                "outcome": run.outcome or "running",
                "job": run.job_id,
                "queue": run.queue,
                "cores": run.cores,
                "attempt": run.attempt,
            }


def _stretches(lanes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Neighbouring lanes as [low, high)."""
    low = 0
    for i in range(1, len(lanes) + 1):
        if i == len(lanes) or lanes[i] != lanes[i - 1] + 1:
            yield lanes[low], lanes[i - 1] + 1
            low = i
