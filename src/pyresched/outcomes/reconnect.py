"""Runs that were given up as unknown and report after all: which goes on, it or its replacement.

Relies on `model.reach` for what that means to the job. Keeps INV-J4 (said twice, done once),
INV-J5 (a gang that was given up stays so) and INV-J9.
"""

from typing import Final

from pyresched.config import SchedulingConfig
from pyresched.model import (
    Draft,
    Instant,
    Job,
    JobState,
    Outcome,
    RescheduleTracker,
    Run,
    avoided_nodes,
    next_state,
)
from pyresched.model.moves import GANG, RECONNECTED, drop_unknown, end_run, settle
from pyresched.model.outcome_table import Action, RunState, action
from pyresched.model.reach import is_late, lose_unknown, take_back, unknown
from pyresched.outcomes.reports import FAILURES, Report, ReportKind, why

__all__ = ["goes_on", "reconnect", "renewed"]

_NEVER: Final = 2**63 - 1


def reconnect(
    draft: Draft, job: Job, report: Report, *, now: Instant, config: SchedulingConfig
) -> None:
    """What *report* about an unknown run of *job* changes at *now*; about any other run, nothing.

    A batch job that has succeeded is done, and what replaced the run is stopped. A failure ends
    the run and nothing else: its replacement was decided when it was given up. One that runs is
    lost if too late, else it goes on, unless `goes_on` names the replacement. A member of a gang
    is stopped, since the others were.
    """
    run = next((each for each in unknown(job) if each.id == report.run_id), None)
    if run is None:
        return
    at = min(max(report.at, run.leased_at), now)
    done = action(job.job_type, RunState.SUCCEEDED) is Action.DONE
    if job.gang is not None:
        draft.put(_stopped(draft, job, run, at=at, reason=GANG))
    elif report.kind is ReportKind.SUCCEEDED and done:
        _succeed(draft, job, run, at=at)
    elif report.kind in FAILURES:
        runs = settle(draft, job, run, outcome=Outcome.FAILED, at=at, reason=why(report))
        draft.put(job.replace(runs=runs))
    elif report.kind is not ReportKind.RUNNING:
        draft.put(_stopped(draft, job, run, at=at, reason=report.reason or RECONNECTED))
    elif run.ended_at is not None and is_late(job, run.ended_at, now):
        lose_unknown(draft, job, run, at=now)
    elif goes_on(job, run).id == run.id:
        take_back(draft, job, run, at=at, lease_expires_at=renewed(run, at, config))
    else:
        draft.put(_stopped(draft, job, run, at=at, reason=RECONNECTED))


def goes_on(job: Job, run: Run) -> Run:
    """Which of the unknown *run* of *job*, which runs, and its active run is kept.

    Without an active run the unknown one is. Else by the rule `reconcile` of the group: of the
    two the *original* is the one leased first, and wins ties.
    """
    rival = job.active_run
    if rival is None:
        return run
    first, second = (run, rival) if run.leased_at <= rival.leased_at else (rival, run)
    rule = None if job.rules is None else job.rules.disconnect
    reconcile = "best_score" if rule is None else rule.reconcile
    if reconcile == "keep_original":
        return first
    if reconcile == "keep_replacement":
        return second
    if reconcile == "longest_running":
        return min(first, second, key=_started)
    ranks = dict(avoided_nodes([_before(job, first, second)]))
    return min(first, second, key=lambda each: ranks.get(each.node_id, 0))


def renewed(run: Run, at: Instant, config: SchedulingConfig) -> Instant | None:
    """When the lease of *run*, of which there are news from *at*, ends; never sooner than before."""
    if config.lease_duration is None:
        return run.lease_expires_at
    ends = at + config.lease_duration
    return ends if run.lease_expires_at is None else max(ends, run.lease_expires_at)


def _started(run: Run) -> Instant:
    return _NEVER if run.started_at is None else run.started_at


def _before(job: Job, *apart: Run) -> Job:
    """*job* as its history was without the runs *apart*: they speak for neither node."""
    ids = {run.id for run in apart}
    tracker = job.tracker
    if tracker is not None:
        events = tuple(each for each in tracker.events if each.previous_run not in ids)
        tracker = RescheduleTracker(events=events, last=tracker.last)
    return job.replace(
        runs=tuple(run for run in job.runs if run.id not in ids),
        tracker=tracker,
        version=job.version,
    )


def _stopped(draft: Draft, job: Job, run: Run, *, at: Instant, reason: str) -> Job:
    runs = settle(draft, job, run, outcome=Outcome.RETURNED, at=at, reason=reason)
    return job.replace(runs=runs)


def _succeed(draft: Draft, job: Job, run: Run, *, at: Instant) -> None:
    """The unknown *run* completed, so the job is done and nothing of it goes on."""
    runs = job.runs
    if job.active_run is not None:
        runs = end_run(draft, job, outcome=Outcome.RETURNED, at=at, reason=RECONNECTED)
    others = tuple(each for each in runs if each.id != run.id)
    over = run.replace(ended_at=at)
    job = job.replace(runs=(*others, over))
    done = job.replace(
        state=next_state(job.state, JobState.SUCCEEDED),
        runs=settle(draft, job, over, outcome=Outcome.SUCCEEDED, at=at),
        failed_at=None,
        eligible_at=None,
        retry_delay=None,
        ended_at=at,
        reason="",
        version=job.version,
    )
    draft.put(drop_unknown(draft, done, at=at))
