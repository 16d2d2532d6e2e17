"""What users and operators ask of jobs that ran: stop the run, try again now, another policy.

Relies on `model.outcome_table` for what a stop means and on `reschedule` for verdicts. Keeps
INV-J5 (a gang is treated as one), INV-J6 and INV-J7.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pyresched.config import SchedulingConfig
from pyresched.errors import InputError
from pyresched.model import (
    Draft,
    EventKind,
    Instant,
    Job,
    JobId,
    JobReader,
    JobState,
    Outcome,
    ReschedulePolicy,
    next_state,
)
from pyresched.model.changes import Changes
from pyresched.model.moves import FORCED, call_off, end_run, put_back
from pyresched.model.outcome_table import Action, RunState, action
from pyresched.model.system import SYSTEM_TYPES
from pyresched.outcomes.deployments import Deployments
from pyresched.outcomes.failures import bounded, policy_of, verdict_on, wait_or_end
from pyresched.reschedule import next_delay, refusals

__all__ = ["STOPPED", "force", "set_policy", "stop"]

STOPPED: Final = "stopped"
"""Reason of a run that its user stopped, if none is given."""


def stop(
    job_ids: Iterable[str],
    snapshot: JobReader,
    config: SchedulingConfig,
    *,
    now: Instant,
    reason: str = "",
) -> Changes:
    """End the active runs of jobs, with their gangs, but not the jobs.

    A service is back at its place at once. A batch job goes by its policy and uses budget, as if
    its run had failed; where nothing follows it is cancelled. Jobs without a run stay as they are.
    """
    draft = Draft(snapshot)
    deployments = Deployments(snapshot)
    reason = reason or STOPPED
    for job in _known(draft, job_ids):
        if job.active_run is None:
            continue
        members = [member for member in draft.members(job) if member.active_run is not None]
        then = action(job.job_type, RunState.STOPPED)
        if then is Action.REQUEUE:
            put_back(draft, {each.id: (Outcome.RETURNED, reason) for each in members}, at=now)
            continue
        verdict = verdict_on(job, now, config, deployments)
        for member in members:
            if then is Action.CALL_OFF or not verdict.eligible:
                call_off(draft, member, at=now, reason=reason)
            else:
                runs = end_run(draft, member, outcome=Outcome.RETURNED, at=now, reason=reason)
                wait_or_end(draft, member, verdict, failed_at=now, at=now, runs=runs)
    return draft.changes()


def force(
    job_ids: Iterable[str],
    snapshot: JobReader,
    config: SchedulingConfig,
    *,
    now: Instant,
    keeps_ended: bool = True,
) -> Changes:
    """Put jobs that wait for their delay, or failed for good, back to their places at once.

    Whatever limit, delay and policy say; such a reschedule is never counted. Gangs as one. Other
    jobs stay as they are. Raises InputError for a job that is not there any more (*keeps_ended*
    False), of a type that has no policy, or whose gang's id is in use again.
    """
    draft = Draft(snapshot)
    job_ids = list(job_ids)
    if not keeps_ended:
        for id, job in zip(job_ids, snapshot.get_many(job_ids), strict=True):
            if job is None:
                raise InputError(
                    f"job {id!r}: not there; this journal forgets jobs that ended, and to force "
                    "one takes a journal that keeps them"
                )
    for job in _known(draft, job_ids):
        if job.state is JobState.BACKING_OFF:
            members = draft.members(job)
        elif _failed(job):
            members = _ended_with(draft, snapshot, job)
        else:
            continue
        if job.state is JobState.FAILED and job.job_type in SYSTEM_TYPES:
            raise InputError(
                f"job {job.id!r}: a {job.job_type} job is not rescheduled; its template makes "
                "another"
            )
        for member in members:
            if member.state is JobState.BACKING_OFF and member.failed_at is None:
                # It waits for its lost node to stop its run: no failure, nothing to be counted.
                state = next_state(member.state, JobState.QUEUED)
                draft.put(member.replace(state=state, eligible_at=None))
                draft.emit(EventKind.REQUEUED, member, at=now)
                continue
            failed_at = member.failed_at if member.failed_at is not None else member.ended_at
            assert failed_at is not None, "it has failed"
            delay = member.retry_delay
            if delay is None:
                events = () if member.tracker is None else member.tracker.events
                delay = next_delay(policy_of(member, config), events, failed_at=failed_at)
            draft.put(
                member.replace(
                    state=next_state(member.state, JobState.QUEUED),
                    failed_at=failed_at,
                    eligible_at=now,
                    retry_delay=delay,
                    ended_at=None,
                    reason=FORCED,
                )
            )
            draft.emit(EventKind.REQUEUED, member, at=now, reason=FORCED)
    return draft.changes()


def set_policy(
    job_ids: Iterable[str],
    policy: ReschedulePolicy | None,
    snapshot: JobReader,
    config: SchedulingConfig,
    *,
    now: Instant,
) -> Changes:
    """Give jobs, with their gangs, another *policy* (None: that of their type) from now on.

    For those that wait, and those that ended for their failures, the verdict is made anew from
    the time of the failure and the history: what was exhausted may wait again, what waits may
    end. Jobs that ended otherwise stay as they are. Raises InputError for a policy that a
    submit would refuse.
    """
    draft = Draft(snapshot)
    deployments = Deployments(snapshot)
    for job in _known(draft, job_ids):
        _check(job, policy, config)
        if job.state.terminal:
            members = _ended_with(draft, snapshot, job) if _failed(job) else ()
        else:
            members = draft.members(job)
        if all(member.policy == policy for member in members):
            continue
        rows = [
            member.replace(
                policy=policy,
                tracker=bounded(member.tracker, policy or config.policy_for(member.job_type)),
                version=member.version,  # the next one is made below
            )
            for member in members
        ]
        failed_at = rows[0].failed_at if rows[0].failed_at is not None else rows[0].ended_at
        if failed_at is None or rows[0].reason == FORCED:
            for row in rows:
                draft.put(row.replace())
            continue
        verdict = verdict_on(rows[0], failed_at, config, deployments)
        for row in rows:
            if row.state is JobState.FAILED and not verdict.eligible:
                draft.put(row.replace(reason=verdict.reason.value))
            elif row.state is JobState.QUEUED and verdict.eligible and verdict.at <= now:
                draft.put(row.replace(eligible_at=verdict.at, retry_delay=verdict.delay))
            else:
                wait_or_end(draft, row, verdict, failed_at=failed_at, at=now)
    return draft.changes()


def _known(draft: Draft, job_ids: Iterable[str]) -> Iterator[Job]:
    """The jobs of these ids that there are, as decided when their turn comes."""
    for job_id in job_ids:
        job = draft.job(JobId(job_id))
        if job is not None:
            yield job


def _failed(job: Job) -> bool:
    """Whether *job* ended because its run failed, or that of a member of its gang."""
    return (
        job.state is JobState.FAILED
        and bool(job.runs)
        and job.runs[-1].outcome in {Outcome.FAILED, Outcome.RETURNED}
    )


def _ended_with(draft: Draft, snapshot: JobReader, job: Job) -> Sequence[Job]:
    """The members of the gang of *job* that ended with it, or *job*. Raises InputError."""
    if job.gang is None:
        return (job,)
    members = [draft.seen(member) for member in snapshot.gang(job.queue, job.gang.id)]
    if any(not member.state.terminal for member in members):
        raise InputError(
            f"job {job.id!r}: the id of its gang, {job.gang.id!r}, is in use again; submit it anew"
        )
    return [member for member in members if _failed(member) and member.ended_at == job.ended_at]


def _check(job: Job, policy: ReschedulePolicy | None, config: SchedulingConfig) -> None:
    """Raise InputError for a *policy* that a submit of *job* would refuse."""
    if policy is not None and job.job_type in SYSTEM_TYPES:
        raise InputError(f"job {job.id!r}: a {job.job_type} job takes no policy; leave it out")
    wrong = refusals(
        policy, min_delay=config.reschedule_min_delay, dialect=config.reschedule_dialect
    )
    for sentence in wrong:
        raise InputError(f"job {job.id!r}: policy: {sentence}")
