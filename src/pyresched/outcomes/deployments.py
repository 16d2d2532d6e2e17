"""Deployments: whether the runs of a new version of a group come up in time.

A deployment is worked out from the rows of its jobs, so that nothing is kept beside them:
those with one queue, group and version whose rules have `update`. Others cost nothing. Times
are integer nanoseconds; rules are in docs/reschedule.md (Nomad's `progress_deadline`).
"""

from collections.abc import Iterable
from enum import Enum
from typing import Final, NamedTuple

from pyresched.model import Duration, Instant, Job, JobReader, JobState, Outcome, UpdateRule

__all__ = ["DeploymentState", "Deployments", "Watch", "required_progress", "state_of", "watch"]

_Key = tuple[str, str, int]
_END: Final = 2**63 - 1


class Watch(NamedTuple):
    """What one run means to its deployment: it fails, or the run may be replaced in it."""

    fail: bool = False
    permit: bool = False


class DeploymentState(Enum):
    """How a deployment stands."""

    RUNNING = "running"
    SUCCESSFUL = "successful"
    FAILED = "failed"


def watch(
    *,
    healthy: bool | None,
    progress_deadline: Duration,
    active: bool,
    eligible: bool,
    permitted: bool = False,
) -> Watch:
    """What a run that is *healthy*, or not, or not known yet, means to a deployment.

    An unhealthy one fails an *active* deployment that has no deadline, or if its policy gives it
    no other run (*eligible*); else it may be replaced, which is said once (*permitted*).
    """
    if healthy is None or healthy:
        return Watch()
    if progress_deadline == 0 or (active and not eligible):
        return Watch(fail=True)
    return Watch(permit=active and not permitted)


def required_progress(
    before: Instant | None, at: Instant, deadline: Duration, *, healthy: bool = False
) -> Instant:
    """Until when the next progress must come, after something happened at *at*.

    The first placement (*before* is None) starts the clock; later a run that became *healthy*
    moves it on, never back, and nothing else does.
    """
    if before is None:
        return min(at + deadline, _END)
    return max(before, min(at + deadline, _END)) if healthy else before


def state_of(members: Iterable[Job], rule: UpdateRule, count: int, now: Instant) -> DeploymentState:
    """How the deployment of these jobs stands at *now*.

    Successful once *count* of them have had a healthy run, one that ran `min_healthy_time`; it
    stays so. Failed, if that comes first, when the deadline passes without progress, when a job
    ended for its failures, or at the first failure without a deadline.
    """
    members = list(members)
    first = min((run.leased_at for job in members for run in job.runs), default=None)
    if first is None:
        return DeploymentState.RUNNING
    deadline = rule.progress_deadline
    failed_by = min(_failures(members, deadline, now), default=_END)
    required = required_progress(None, first, deadline) if deadline else _END
    healthy: set[str] = set()
    for at, job_id in sorted(_healthy(members, rule.min_healthy_time, now)):
        if at > min(required, failed_by):
            break
        required = required_progress(required, at, deadline, healthy=deadline > 0)
        healthy.add(job_id)
        if len(healthy) >= count:
            return DeploymentState.SUCCESSFUL
    return DeploymentState.FAILED if min(required, failed_by) <= now else DeploymentState.RUNNING


class Deployments:
    """The deployments of *reader*, each looked at once, and only if a job of it is asked for."""

    def __init__(self, reader: JobReader) -> None:
        self._reader = reader
        self._members: dict[_Key, list[Job]] | None = None

    def failed(self, job: Job, now: Instant) -> bool:
        """Whether *job* is of a deployment that has failed at *now*, or fails if *job* failed."""
        rules = job.rules
        if rules is None or rules.update is None:
            return False
        members = self._of(_key(job))
        state = state_of(members, rules.update, rules.count, now)
        if state is DeploymentState.RUNNING:
            return watch(
                healthy=False,
                progress_deadline=rules.update.progress_deadline,
                active=True,
                eligible=True,
            ).fail
        return state is DeploymentState.FAILED

    def _of(self, key: _Key) -> list[Job]:
        """The jobs of one deployment: a walk over all jobs, once."""
        if self._members is None:
            self._members = {}
            for job in self._reader:
                if job.rules is not None and job.rules.update is not None:
                    self._members.setdefault(_key(job), []).append(job)
        return self._members.get(key, [])


def _key(job: Job) -> _Key:
    rules = job.rules
    assert rules is not None, "only jobs of a group are deployed"
    return job.queue, rules.group, rules.version


def _healthy(
    members: Iterable[Job], min_healthy_time: Duration, now: Instant
) -> Iterable[tuple[Instant, str]]:
    """When runs became healthy, with their jobs."""
    for job in members:
        for run in job.runs:
            if run.started_at is not None:
                at = run.started_at + min_healthy_time
                if at <= (now if run.ended_at is None else min(run.ended_at, now)):
                    yield at, job.id


def _failures(members: Iterable[Job], deadline: Duration, now: Instant) -> Iterable[Instant]:
    """When something failed the deployment by itself."""
    for job in members:
        if job.state is JobState.FAILED and job.ended_at is not None and job.ended_at <= now:
            yield job.ended_at
        if deadline == 0:
            for run in job.runs:
                if run.outcome is Outcome.FAILED and run.ended_at is not None:
                    yield run.ended_at
