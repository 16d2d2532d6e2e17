"""What reports of executors lead to: successes, verdicts on failures, returns.

Relies on `reschedule` for the verdict and on `model.moves` for ends without blame. Keeps
INV-J4 (a report applied twice changes nothing), INV-J5 and INV-J6.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

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
    Outcome,
    QueueName,
    Run,
    next_state,
)
from pyresched.model.moves import FORCED, GANG_DONE, drop_unknown, end_run, put_back, with_run
from pyresched.model.outcome_table import Action, RunState, action
from pyresched.outcomes.deployments import Deployments
from pyresched.outcomes.failures import Ended, fail, verdict_on, wait_or_end
from pyresched.outcomes.reconnect import reconnect, renewed
from pyresched.outcomes.reports import FAILURES, Report, ReportKind, why

__all__ = ["apply", "awaits_deployment", "due", "past_deadline"]


class _GangReports(Struct):
    """What the members of one gang report in one batch."""

    member: Job
    failed: dict[JobId, Ended]
    returned: dict[JobId, Ended]
    done: dict[JobId, Instant]


def apply(
    reports: Sequence[Report], snapshot: JobReader, config: SchedulingConfig, now: Instant
) -> Changes:
    """What *reports* change, in their order.

    A report about a run that is neither the active one of its job nor unknown is late, or a
    repeat, and changes nothing. Times of reports are kept between the lease and *now*. The
    reports of one batch about one gang count as one: a failure among them outweighs all else.
    """
    draft = Draft(snapshot)
    deployments = Deployments(snapshot)
    gangs: dict[tuple[QueueName, GangId], _GangReports] = {}
    rows = snapshot.get_many([report.job_id for report in reports])
    for report, row in zip(reports, rows, strict=True):
        if row is None:
            continue
        job = draft.seen(row)
        run = job.active_run
        if run is None or run.id != report.run_id:
            reconnect(draft, job, report, now=now, config=config)
            continue
        at = min(max(report.at, run.leased_at), now)
        if report.kind is ReportKind.RUNNING:
            _running(draft, job, run, at=at, config=config)
        elif job.gang is not None:
            reported = gangs.setdefault(
                (job.queue, job.gang.id),
                _GangReports(member=row, failed={}, returned={}, done={}),
            )
            if report.kind is ReportKind.SUCCEEDED:
                reported.done.setdefault(job.id, at)
            elif report.kind in FAILURES:
                reported.failed.setdefault(job.id, Ended(at, why(report)))
            else:
                reported.returned.setdefault(job.id, Ended(at, report.reason))
        elif report.kind is ReportKind.SUCCEEDED:
            _succeed(draft, job, at=at)
        elif report.kind in FAILURES:
            blamed = {job.id: Ended(at, why(report))}
            fail(draft, [job], blamed, config=config, deployments=deployments)
        else:
            put_back(draft, {job.id: (Outcome.RETURNED, report.reason)}, at=at)
    for reported in gangs.values():
        _gang(draft, reported, config=config, deployments=deployments)
    return draft.changes()


def due(snapshot: JobReader, now: Instant, config: SchedulingConfig) -> Changes:
    """Jobs whose delay is over at *now* go back to their places in their queues.

    But those of a deployment that has failed meanwhile end.
    """
    draft = Draft(snapshot)
    deployments = Deployments(snapshot)
    for job in snapshot.backing_off(now):
        if job.rules is not None and job.failed_at is not None and deployments.failed(job, now):
            verdict = verdict_on(job, now, config, deployments)
            if not verdict.eligible:
                wait_or_end(draft, job, verdict, failed_at=job.failed_at, at=now)
                continue
        # Who waited for a node to stop its run has nothing to be counted later.
        waited = job.eligible_at if job.retry_delay is not None else None
        draft.put(job.replace(state=next_state(job.state, JobState.QUEUED), eligible_at=waited))
        draft.emit(EventKind.REQUEUED, job, at=now)
    return draft.changes()


def past_deadline(
    job_ids: Iterable[JobId], snapshot: JobReader, now: Instant, config: SchedulingConfig
) -> Changes:
    """End those of *job_ids* that are queued to be tried again in a deployment that has failed.

    Past the deadline nothing of it is rescheduled, whether its delay was over before or not; but
    who is forced is, and who was never tried or lost its run without blame starts.
    """
    draft = Draft(snapshot)
    deployments = Deployments(snapshot)
    for row in snapshot.get_many(list(job_ids)):
        job = None if row is None else draft.seen(row)
        if job is None or not awaits_deployment(job) or not deployments.failed(job, now):
            continue
        assert job.failed_at is not None, "it is queued for its failure"
        verdict = verdict_on(job, now, config, deployments)
        if not verdict.eligible:
            for member in draft.members(job):
                if awaits_deployment(member):
                    wait_or_end(draft, member, verdict, failed_at=job.failed_at, at=now)
    return draft.changes()


def awaits_deployment(job: Job) -> bool:
    """Whether *job* is queued to be tried again unless its deployment fails."""
    return (
        job.state is JobState.QUEUED
        and job.retry_delay is not None
        and job.failed_at is not None
        and job.reason != FORCED
        and job.rules is not None
        and job.rules.update is not None
    )


def _running(draft: Draft, job: Job, run: Run, *, at: Instant, config: SchedulingConfig) -> None:
    """The run has started, or is still there: its lease goes on from *at*."""
    starts = run.started_at is None
    expires = renewed(run, at, config)
    if not starts and expires == run.lease_expires_at:
        return
    kept = run.replace(started_at=at if starts else run.started_at, lease_expires_at=expires)
    state = next_state(job.state, JobState.RUNNING)
    draft.put(job.replace(state=state, runs=with_run(job, kept)))
    if starts:
        draft.emit(EventKind.RUNNING, job, at=at, run=kept)


def _succeed(draft: Draft, job: Job, *, at: Instant) -> None:
    """The run completed: a batch job is done, a service is queued again, as new."""
    runs = end_run(draft, job, outcome=Outcome.SUCCEEDED, at=at)
    if action(job.job_type, RunState.SUCCEEDED) is Action.RENEW:
        state = next_state(job.state, JobState.QUEUED)
        draft.put(job.replace(state=state, runs=runs, tracker=None))
        draft.emit(EventKind.REQUEUED, job, at=at)
    else:
        state = next_state(job.state, JobState.SUCCEEDED)
        done = job.replace(state=state, runs=runs, ended_at=at)
        draft.put(drop_unknown(draft, done, at=at))


def _gang(
    draft: Draft,
    reported: _GangReports,
    *,
    config: SchedulingConfig,
    deployments: Deployments,
) -> None:
    """What the reports of one batch mean to a gang: it ends, waits or goes on as one."""
    members = draft.members(reported.member)
    if reported.failed:
        fail(draft, members, reported.failed, config=config, deployments=deployments)
    elif reported.returned:
        ended = {id: (Outcome.RETURNED, end.reason) for id, end in reported.returned.items()}
        put_back(draft, ended, at=min(end.at for end in reported.returned.values()))
    elif all(_is_done(member, reported.done) for member in members):
        for member in members:
            _succeed(draft, member, at=max(reported.done.values()))
    else:
        for member in members:
            run = member.active_run
            if run is not None and member.id in reported.done and run.reason != GANG_DONE:
                draft.put(member.replace(runs=with_run(member, run.replace(reason=GANG_DONE))))


def _is_done(member: Job, done: Mapping[JobId, Instant]) -> bool:
    """Whether the process of its run has succeeded, now or before."""
    run = member.active_run
    return run is not None and (member.id in done or run.reason == GANG_DONE)
