"""What a report is drawn from: the frozen outcome of a simulation, jobs, runs and samples.

Relies on nothing but the ids of `model`; whoever simulates fills these in. Instants are
integer nanoseconds on the time axis of the log, amounts are in units of the resource.
"""

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct

from pyresched.ids import Duration, Instant

__all__ = [
    "JobCounts",
    "JobEnd",
    "JobRecord",
    "LineCounts",
    "NodeRecord",
    "Outage",
    "RunRecord",
    "Sample",
    "SimulationResult",
    "SkippedLine",
    "Summary",
    "WaitSeconds",
]


class JobEnd(Enum):
    """Where a job of the log stood at the end."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REFUSED = "refused"  # can never be placed on these nodes; `reason` says why
    UNFINISHED = "unfinished"  # the simulation ended first


class JobRecord(Struct, frozen=True, kw_only=True, gc=False):
    """One job of the log, a gang of pieces included.

    `started_at` is the first start, None if it never ran; `ended_at` is None while it is
    unfinished and, for a refused job, the instant of the refusal. `runs` counts attempts,
    not pieces, `reschedules` those of them that replaced a failed one, `restarts` how often its
    processes were started again within their runs; `cores` is what it asked for in total;
    `run_time` is its service time.
    """

    id: str
    queue: str
    submitted_at: Instant
    started_at: Instant | None = None
    ended_at: Instant | None = None
    end: JobEnd
    runs: int = 0
    reschedules: int = 0
    restarts: int = 0
    reason: str = ""
    priority_class: str = "default"
    cores: int = 1
    pieces: int = 1
    run_time: Duration = 0


class RunRecord(Struct, frozen=True, kw_only=True, gc=False):
    """One attempt at one piece on one node. `ended_at` None and `outcome` "": still running.

    `attempt` counts from 1 within the job, `piece` from 0 within a gang (always 0 otherwise).
    `previous_run`, on `previous_node`, is the one before it of that piece, whatever ended it. Of
    one that failed, `attempts_used` says how much of the policy its failure found used up (`2/3
    in 1h`), `eligible_at` until when the job waited, `stopped` why nothing followed. `restarts`
    counts how often its process was started again.
    """

    id: str
    job_id: str
    node_id: str
    started_at: Instant
    ended_at: Instant | None = None
    outcome: str = ""
    reason: str = ""
    queue: str = ""
    cores: int = 1
    attempt: int = 1
    piece: int = 0
    previous_run: str = ""
    previous_node: str = ""
    attempts_used: str = ""
    eligible_at: Instant | None = None
    stopped: str = ""
    restarts: int = 0


class NodeRecord(Struct, frozen=True, kw_only=True, gc=False):
    """A node, in the order of the cluster."""

    id: str
    cores: int


class Outage(Struct, frozen=True, kw_only=True, gc=False):
    """A node was away from `lost_at` until `back_at` (None: until the end)."""

    node_id: str
    lost_at: Instant
    back_at: Instant | None = None


class Sample(Struct, frozen=True, kw_only=True):
    """The state right after the cycle at `at`; it holds until the next sample.

    `allocated` and `capacity` (nodes that are not lost) are by resource name; `queued` counts
    waiting jobs by queue, those backing off included, empty queues left out, names sorted.
    """

    at: Instant
    allocated: Mapping[str, int]
    capacity: Mapping[str, int]
    queued: Mapping[str, int]
    running: int
    done: int = 0


class JobCounts(Struct, frozen=True, kw_only=True):
    """Jobs of the log by end; the ends add up to `total`."""

    total: int
    succeeded: int
    failed: int
    cancelled: int
    refused: int
    unfinished: int = 0


class WaitSeconds(Struct, frozen=True, kw_only=True):
    """Seconds from submit to first start, over jobs that started; None when none did."""

    mean: float | None
    median: float | None
    p95: float | None


class LineCounts(Struct, frozen=True, kw_only=True):
    """Lines of the log that hold a job, and those of them that could not be used."""

    read: int
    skipped: int


class SkippedLine(Struct, frozen=True, kw_only=True, gc=False):
    """A line of *file* that could not be used, numbered from 1, and why."""

    file: str
    number: int
    reason: str


class Summary(Struct, frozen=True, kw_only=True):
    """The figures of a simulation; as JSON this is `summary.json`, key by key.

    `attempts` counts a gang once, `runs` each of its pieces (the rows of `runs.csv`);
    `reschedules` and `preemptions` count a gang once, `runs_lost` and `runs_failed` are runs,
    `restarts` processes that were started again within their runs.
    `utilisation` is core time in use over core time that was there, from the first submit to
    the last end; `slowdown` the mean bounded slowdown (threshold 10 s), `jain` Jain's index
    of the service of queues; both None when nothing ended.
    """

    log: str
    seed: int
    jobs: JobCounts
    attempts: int
    runs: int
    reschedules: int
    restarts: int
    preemptions: int
    nodes: int
    cores: int
    nodes_lost: int
    runs_lost: int
    runs_failed: int
    makespan_s: float
    utilisation: float
    wait_s: WaitSeconds
    slowdown: float | None
    slowdown_median: float | None
    jain: float | None
    cycles: int
    lines: LineCounts
    failure_lines: LineCounts | None = None


class SimulationResult(Struct, frozen=True, kw_only=True):
    """All that a simulation came to. Jobs in order of the log, runs in order of their start."""

    log: str
    started_at: Instant
    ended_at: Instant
    resources: tuple[str, ...]
    nodes: tuple[NodeRecord, ...]
    jobs: tuple[JobRecord, ...]
    runs: tuple[RunRecord, ...]
    outages: tuple[Outage, ...]
    samples: tuple[Sample, ...]
    skipped_lines: tuple[SkippedLine, ...]
    summary: Summary
    notes: tuple[str, ...] = ()
