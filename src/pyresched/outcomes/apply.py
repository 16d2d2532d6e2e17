"""What reports of executors lead to: successes, verdicts on failures, returns.

Relies on `reschedule` for the verdict and on `model.moves` for ends without blame. Keeps
INV-J4 (a report applied twice changes nothing), INV-J5 and INV-J6.
"""

from collections.abc import Mapping, Sequence
from typing import Final

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
from pyresched.model.moves import GANG, GANG_DONE, end_run, put_back, with_run
from pyresched.model.outcome_table import Action, RunState, action
from pyresched.outcomes.reports import Report, ReportKind
from pyresched.reschedule import next_reschedule

__all__ = ["apply", "due"]

_FAILURES: Final = frozenset({ReportKind.FAILED, ReportKind.SETUP_FAILED})


class _Ended(Struct, frozen=True):
    """A run ended at that time for that reason."""

    at: Instant
    reason: str


class _GangReports(Struct):
    """What the members of one gang report in one batch."""

    member: Job
    failed: dict[JobId, _Ended]
    returned: dict[JobId, _Ended]
    done: dict[JobId, Instant]


def apply(
    reports: Sequence[Report], snapshot: JobReader, config: SchedulingConfig, now: Instant
) -> Changes:
    """What *reports* change, in their order.

    A report about a run that is not the active one of its job is late, or a repeat, and
    changes nothing. Times of reports are kept between the lease and *now*. The reports of one
    batch about one gang count as one: a failure among them outweighs all else.
    """
    draft = Draft(snapshot)
    gangs: dict[tuple[QueueName, GangId], _GangReports] = {}
    rows = snapshot.get_many([report.job_id for report in reports])
    for report, row in zip(reports, rows, strict=True):
        if row is None:
            continue
        job = draft.seen(row)
        run = job.active_run
        if run is None or run.id != report.run_id:
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
            elif report.kind in _FAILURES:
                reported.failed.setdefault(job.id, _Ended(at, _why(report)))
            else:
                reported.returned.setdefault(job.id, _Ended(at, report.reason))
        elif report.kind is ReportKind.SUCCEEDED:
            _succeed(draft, job, at=at)
        elif report.kind in _FAILURES:
            _fail(draft, [job], {job.id: _Ended(at, _why(report))}, config=config)
        else:
            put_back(draft, {job.id: (Outcome.RETURNED, report.reason)}, at=at)
    for reported in gangs.values():
        _gang(draft, reported, config=config)
    return draft.changes()


def due(snapshot: JobReader, now: Instant) -> Changes:
    """Jobs whose delay is over at *now* go back to their places in their queues."""
    draft = Draft(snapshot)
    for job in snapshot.backing_off(now):
        draft.put(job.replace(state=next_state(job.state, JobState.QUEUED)))
        draft.emit(EventKind.REQUEUED, job, at=now)
    return draft.changes()


def _running(draft: Draft, job: Job, run: Run, *, at: Instant, config: SchedulingConfig) -> None:
    """The run has started, or is still there: its lease goes on from *at*."""
    starts = run.started_at is None
    expires = run.lease_expires_at
    if config.lease_duration is not None:
        renewed = at + config.lease_duration
        if expires is None or renewed > expires:
            expires = renewed
    if not starts and expires == run.lease_expires_at:
        return
    kept = run.replace(started_at=at if starts else run.started_at, lease_expires_at=expires)
    state = next_state(job.state, JobState.RUNNING)
    draft.put(job.replace(state=state, runs=with_run(job, kept)))
    if starts:
        draft.emit(EventKind.RUNNING, job, at=at, run=kept)


def _why(report: Report) -> str:
    """The code of a failure; one that could not be started has one of its own."""
    if report.kind is ReportKind.SETUP_FAILED:
        return report.reason or ReportKind.SETUP_FAILED.value
    return report.reason


def _succeed(draft: Draft, job: Job, *, at: Instant) -> None:
    """The run completed: a batch job is done, a service is queued again, as new."""
    runs = end_run(draft, job, outcome=Outcome.SUCCEEDED, at=at)
    if action(job.job_type, RunState.SUCCEEDED) is Action.RENEW:
        state = next_state(job.state, JobState.QUEUED)
        draft.put(job.replace(state=state, runs=runs, tracker=None))
        draft.emit(EventKind.REQUEUED, job, at=at)
    else:
        state = next_state(job.state, JobState.SUCCEEDED)
        draft.put(job.replace(state=state, runs=runs, ended_at=at))


def _fail(
    draft: Draft,
    members: Sequence[Job],
    blamed: dict[JobId, _Ended],
    *,
    config: SchedulingConfig,
) -> None:
    """One verdict for all *members*, who carry one tracker: they wait to the same instant, or end.

    The time of the first failure is the one for count, decision and display.
    """
    first = next(member for member in members if member.id in blamed)
    failed_at = min(end.at for end in blamed.values())
    policy = first.policy if first.policy is not None else config.policy_for(first.job_type)
    verdict = next_reschedule(policy, first.tracker, failed_at)
    for member in members:
        if member.active_run is None:
            continue
        own = blamed.get(member.id)
        if own is None:
            runs = end_run(draft, member, outcome=Outcome.RETURNED, at=failed_at, reason=GANG)
        else:
            runs = end_run(draft, member, outcome=Outcome.FAILED, at=own.at, reason=own.reason)
        if verdict.eligible:
            draft.put(
                member.replace(
                    state=next_state(member.state, JobState.BACKING_OFF),
                    runs=runs,
                    failed_at=failed_at,
                    eligible_at=verdict.at,
                    retry_delay=verdict.delay,
                )
            )
            draft.emit(EventKind.BACKING_OFF, member, at=failed_at)
        else:
            reason = verdict.reason.value
            state = next_state(member.state, JobState.FAILED)
            draft.put(member.replace(state=state, runs=runs, ended_at=failed_at, reason=reason))
            draft.emit(EventKind.EXHAUSTED, member, at=failed_at, reason=reason)


def _gang(draft: Draft, reported: _GangReports, *, config: SchedulingConfig) -> None:
    """What the reports of one batch mean to a gang: it ends, waits or goes on as one."""
    members = draft.members(reported.member)
    if reported.failed:
        _fail(draft, members, reported.failed, config=config)
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
