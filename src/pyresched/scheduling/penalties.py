"""Short runs: a queue that floods a pool with them still pays for a minimum of time.

A run that ended sooner than its pool's cut-off counts for its queue up to that age, as though it
went on, when turns are taken; it holds nothing, and entitles to nothing. All of it follows from
the rows of ended jobs, so that whoever still has these rows has lost no penalty.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from pyresched.config import SchedulingConfig
from pyresched.model import (
    Duration,
    Instant,
    Job,
    JobId,
    Outcome,
    PoolName,
    QueueName,
    ResourceVector,
)

__all__ = ["ShortRun", "by_queue", "charged", "cutoffs", "live"]

_NOT_ITS_DOING: Final = frozenset({Outcome.PREEMPTED, Outcome.LOST, Outcome.UNKNOWN})


class ShortRun(Struct, frozen=True, gc=False):
    """What the run of a job that ended too soon counts for, until *deadline*."""

    job_id: JobId
    pool: PoolName
    queue: QueueName
    request: ResourceVector
    deadline: Instant


def cutoffs(config: SchedulingConfig) -> Mapping[PoolName, Duration]:
    """The age up to which a run counts, for each pool that has one."""
    return {
        pool.name: pool.short_job_penalty_cutoff
        for pool in config.pools
        if pool.short_job_penalty_cutoff is not None
    }


def charged(job: Job, cutoffs: Mapping[PoolName, Duration]) -> ShortRun | None:
    """What the last run of *job* counts for after it, or None.

    Only of a job that has ended, by itself or by its user, while its run was younger than the
    cut-off of its pool. A run that never started, was stopped for another job or went with its
    node is not its queue's doing.
    """
    if job.ended_at is None or not job.runs:
        return None
    run = job.runs[-1]
    cutoff = cutoffs.get(run.pool)
    if cutoff is None or run.started_at is None or run.outcome in _NOT_ITS_DOING:
        return None
    deadline = run.started_at + cutoff
    if job.ended_at >= deadline:
        return None
    return ShortRun(job.id, run.pool, job.queue, job.requirements.resources, deadline)


def live(entries: Iterable[ShortRun], now: Instant) -> tuple[ShortRun, ...]:
    """Those of *entries* that still count at *now*: until their deadline, and no longer."""
    return tuple(each for each in entries if each.deadline > now)


def by_queue(entries: Iterable[ShortRun], now: Instant) -> dict[QueueName, ResourceVector]:
    """What the entries that still count at *now* come to, by queue, in the order of the names."""
    sums: dict[QueueName, ResourceVector] = {}
    for each in live(entries, now):
        before = sums.get(each.queue)
        sums[each.queue] = each.request if before is None else before + each.request
    return dict(sorted(sums.items()))
