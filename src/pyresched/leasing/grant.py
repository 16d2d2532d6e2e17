"""A round's decisions turned into leases.

Relies on `reschedule` for the history of a job that is tried again. Keeps INV-J5, INV-J6 and
INV-J7 (what a tracker records is what was granted).
"""

from collections.abc import Callable, Iterable
from functools import partial

from pyresched.config import SchedulingConfig
from pyresched.model import (
    Changes,
    Draft,
    EventKind,
    GangId,
    Instant,
    Job,
    JobId,
    JobReader,
    JobState,
    Move,
    Outcome,
    Preemption,
    QueueName,
    RescheduleTracker,
    RoundResult,
    Run,
    next_state,
)
from pyresched.model.moves import FORCED, end_run, put_back
from pyresched.reschedule import extended

__all__ = ["grant"]


def grant(
    result: RoundResult,
    snapshot: JobReader,
    now: Instant,
    ids: Callable[[], str],
    config: SchedulingConfig,
) -> Changes:
    """Leases for what *result* placed, and the end of the runs that it preempted or moved.

    *snapshot* is what the round read. *ids* gives an id that no run has had. A job whose last
    run failed has its tracker extended, a gang as one; a preempted job, with its whole gang,
    goes back to its place. A moved job has a new run at once, and its gang stays as it is.
    """
    draft = Draft(snapshot)
    put_back(draft, dict(_preempted(result.preempted, snapshot)), at=now)
    expires = None if config.lease_duration is None else now + config.lease_duration
    new_run = partial(Run, pool=result.pool, leased_at=now, lease_expires_at=expires)
    for move in result.moved:
        _move(draft, move, new_run, ids, now=now)
    rows = snapshot.get_many([placement.job_id for placement in result.scheduled])
    jobs = [draft.seen(row) for row in rows if row is not None]
    assert len(jobs) == len(rows), "a round placed a job that its snapshot does not have"
    trackers = _trackers([job for job in jobs if job.retry_delay is not None], config, now=now)
    for placement, job in zip(result.scheduled, jobs, strict=True):
        run = new_run(id=ids(), node_id=placement.node_id, priority=placement.priority)
        state = next_state(job.state, JobState.LEASED)
        runs = (*job.runs, run)
        if job.retry_delay is None:
            draft.put(job.replace(state=state, runs=runs))
            draft.emit(EventKind.LEASED, job, at=now, run=run)
            continue
        draft.put(
            job.replace(
                state=state,
                runs=runs,
                tracker=trackers[_whole(job)],
                failed_at=None,
                eligible_at=None,
                retry_delay=None,
                reason="",
            )
        )
        draft.emit(EventKind.LEASED, job, at=now, run=run)
        draft.emit(EventKind.RESCHEDULED, job, at=now, run=run, reason=job.reason)
    return draft.changes()


def _move(
    draft: Draft, move: Move, new_run: Callable[..., Run], ids: Callable[[], str], *, now: Instant
) -> None:
    """End the run that *move* names, if it still is the active one, and lease its job anew."""
    job = draft.job(move.job_id)
    run = None if job is None else job.active_run
    if job is None or run is None or run.id != move.run_id:
        return
    ended = end_run(draft, job, outcome=Outcome.PREEMPTED, at=now, reason=move.reason.value)
    run = new_run(id=ids(), node_id=move.node_id, priority=move.priority)
    state = next_state(next_state(job.state, JobState.QUEUED), JobState.LEASED)
    draft.put(job.replace(state=state, runs=(*ended, run)))
    draft.emit(EventKind.LEASED, job, at=now, run=run)


def _preempted(
    preemptions: Iterable[Preemption], snapshot: JobReader
) -> Iterable[tuple[JobId, tuple[Outcome, str]]]:
    """The outcome and reason by job, for the runs that still are the active ones."""
    for preemption in preemptions:
        job = snapshot.get(preemption.job_id)
        run = None if job is None else job.active_run
        if run is not None and run.id == preemption.run_id:
            yield preemption.job_id, (Outcome.PREEMPTED, preemption.reason.value)


def _whole(job: Job) -> tuple[QueueName, GangId | None, JobId | None]:
    """What is rescheduled as one: the gang of *job*, or itself."""
    return (job.queue, None, job.id) if job.gang is None else (job.queue, job.gang.id, None)


def _trackers(
    waited: Iterable[Job], config: SchedulingConfig, *, now: Instant
) -> dict[tuple[QueueName, GangId | None, JobId | None], RescheduleTracker]:
    """One history for each job or gang that is tried again, with this time in it."""
    wholes: dict[tuple[QueueName, GangId | None, JobId | None], list[Job]] = {}
    for job in waited:
        wholes.setdefault(_whole(job), []).append(job)
    trackers = {}
    for whole, members in wholes.items():
        blamed = {Outcome.FAILED, Outcome.UNKNOWN}
        first = next((each for each in members if each.runs[-1].outcome in blamed), members[0])
        assert first.retry_delay is not None, "only jobs that waited are tried again"
        policy = first.policy if first.policy is not None else config.policy_for(first.job_type)
        trackers[whole] = extended(
            first.tracker,
            policy,
            now=now,
            previous_run=first.runs[-1].id,
            previous_node=first.runs[-1].node_id,
            delay=first.retry_delay,
            forced=first.reason == FORCED,
        )
    return trackers
