"""A small simulated outcome, made up by a seed: enough of everything for a report to draw."""

import random

from pyresched.model import NANOS
from pyresched.report.records import (
    JobCounts,
    JobEnd,
    JobRecord,
    LineCounts,
    NodeRecord,
    Outage,
    RunRecord,
    Sample,
    SimulationResult,
    Summary,
    WaitSeconds,
)

DAY = 24 * 3600 * NANOS
UNITS = 1000  # of the first resource, a core


def result(seed: int = 1, *, jobs: int = 200, nodes: int = 6, cores: int = 4) -> SimulationResult:
    """First come, first served on *nodes* of *cores*, without fail but for one node's outage."""
    draw = random.Random(seed)
    free = {(n, c): 0 for n in range(nodes) for c in range(cores)}
    job_rows, run_rows, changes, at = [], [], [], 0
    for number in range(jobs):
        at += draw.randrange(1, DAY // 60)
        width = draw.randint(1, cores)
        length = draw.randrange(60 * NANOS, DAY // 8)
        node = min(range(nodes), key=lambda n: sorted(free[n, c] for c in range(cores))[width - 1])
        taken = sorted(range(cores), key=lambda c: (free[node, c], c))[:width]
        start = max(at, *(free[node, c] for c in taken))
        for c in taken:
            free[node, c] = start + length
        ended = draw.random()
        outcome = "succeeded" if ended < 0.8 else "failed" if ended < 0.95 else "lost"
        queue = f"user{draw.randint(1, 12):02}"
        run_rows.append(
            RunRecord(
                id=f"r{number:04}",
                job_id=f"j{number:04}",
                node_id=f"n{node + 1:03}",
                started_at=start,
                ended_at=start + length,
                outcome=outcome,
                queue=queue,
                cores=width,
            )
        )
        job_rows.append(
            JobRecord(
                id=f"j{number:04}",
                queue=queue,
                submitted_at=at,
                started_at=start,
                ended_at=start + length,
                end=JobEnd.FAILED if outcome == "failed" else JobEnd.SUCCEEDED,
                runs=1,
                cores=width,
                run_time=length,
            )
        )
        changes += [
            (at, queue, 1, 0),
            (start, queue, -1, width),
            (start + length, queue, 0, -width),
        ]
    end = max(run.ended_at or 0 for run in run_rows)
    return SimulationResult(
        log="made-up",
        started_at=0,
        ended_at=end,
        resources=("cpu",),
        nodes=tuple(NodeRecord(id=f"n{n + 1:03}", cores=cores) for n in range(nodes)),
        jobs=tuple(job_rows),
        runs=tuple(run_rows),
        outages=(Outage(node_id="n002", lost_at=end // 3, back_at=end // 2),),
        samples=tuple(_samples(changes, nodes * cores * UNITS)),
        skipped_lines=(),
        summary=_summary(job_rows, run_rows, nodes=nodes, cores=nodes * cores, seed=seed, end=end),
        notes=("made up by a test",),
    )


def _samples(changes: list[tuple[int, str, int, int]], capacity: int) -> list[Sample]:
    waiting: dict[str, int] = {}
    used, samples = 0, []
    for at, queue, more, width in sorted(changes):
        waiting[queue] = waiting.get(queue, 0) + more
        used += width * UNITS
        samples.append(
            Sample(
                at=at,
                allocated={"cpu": used},
                capacity={"cpu": capacity},
                queued={name: waiting[name] for name in sorted(waiting) if waiting[name]},
                running=0,
            )
        )
    return samples


def _summary(
    jobs: list[JobRecord], runs: list[RunRecord], *, nodes: int, cores: int, seed: int, end: int
) -> Summary:
    failed = sum(job.end is JobEnd.FAILED for job in jobs)
    return Summary(
        log="made-up",
        seed=seed,
        jobs=JobCounts(
            total=len(jobs), succeeded=len(jobs) - failed, failed=failed, cancelled=0, refused=0
        ),
        attempts=len(jobs),
        runs=len(jobs),
        reschedules=0,
        restarts=0,
        preemptions=0,
        nodes=nodes,
        cores=cores,
        nodes_lost=1,
        runs_lost=sum(run.outcome == "lost" for run in runs),
        runs_failed=failed,
        makespan_s=end / NANOS,
        utilisation=0.5,
        wait_s=WaitSeconds(mean=100.0, median=10.0, p95=4000.0),
        slowdown=3.0,
        slowdown_median=1.0,
        jain=0.5,
        cycles=len(jobs),
        lines=LineCounts(read=len(jobs), skipped=0),
    )
