"""One verdict for what failed or was stopped: it waits for its delay, or ends.

Relies on `reschedule` for the verdict. Keeps INV-J5 (a gang carries one history and gets one
verdict) and INV-J7.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from pyresched.config import SchedulingConfig
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
    RescheduleTracker,
    Run,
    Verdict,
    VerdictReason,
    next_state,
)
from pyresched.model.moves import GANG, drop_unknown, end_run
from pyresched.model.outcome_table import Action, RunState, action
from pyresched.model.system import SYSTEM_TYPES
from pyresched.outcomes.deployments import Deployments
from pyresched.reschedule import next_reschedule

__all__ = ["Ended", "bounded", "fail", "judge", "policy_of", "verdict_on", "wait_or_end"]

_NO_DELAY: Final = 0


class Ended(Struct, frozen=True):
    """A run ended at that time for that reason."""

    at: Instant
    reason: str


def policy_of(job: Job, config: SchedulingConfig) -> ReschedulePolicy | None:
    """The policy of *job*: its own, or that of its type."""
    return job.policy if job.policy is not None else config.policy_for(job.job_type)


def verdict_on(
    job: Job, failed_at: Instant, config: SchedulingConfig, deployments: Deployments
) -> Verdict:
    """What follows for *job*, or the gang it stands for, whose run failed at *failed_at*.

    In a deployment that has failed nothing follows.
    """
    verdict = next_reschedule(policy_of(job, config), job.tracker, failed_at)
    ends = action(job.job_type, RunState.FAILED) is Action.FAIL
    if ends or (verdict.reason is VerdictReason.NO_POLICY and job.job_type in SYSTEM_TYPES):
        reason = VerdictReason.NOT_APPLICABLE
        return structs.replace(verdict, eligible=False, reason=reason, delay=_NO_DELAY)
    if verdict.eligible and deployments.failed(job, failed_at):
        reason = VerdictReason.PAST_PROGRESS_DEADLINE
        return structs.replace(verdict, eligible=False, reason=reason)
    return verdict


def judge(snapshot: JobReader, config: SchedulingConfig) -> Callable[[Job, Instant], Verdict]:
    """What `verdict_on` says, for who knows nothing of deployments."""
    deployments = Deployments(snapshot)
    return lambda job, failed_at: verdict_on(job, failed_at, config, deployments)


def fail(
    draft: Draft,
    members: Sequence[Job],
    blamed: Mapping[JobId, Ended],
    *,
    config: SchedulingConfig,
    deployments: Deployments,
) -> None:
    """One verdict for all *members*, who carry one tracker: they wait to the same instant, or end.

    The time of the first failure is the one for count, decision and display.
    """
    first = next(member for member in members if member.id in blamed)
    failed_at = min(end.at for end in blamed.values())
    verdict = verdict_on(first, failed_at, config, deployments)
    for member in members:
        if member.active_run is None:
            continue
        own = blamed.get(member.id)
        if own is None:
            runs = end_run(draft, member, outcome=Outcome.RETURNED, at=failed_at, reason=GANG)
        else:
            runs = end_run(draft, member, outcome=Outcome.FAILED, at=own.at, reason=own.reason)
        wait_or_end(draft, member, verdict, failed_at=failed_at, at=failed_at, runs=runs)


def wait_or_end(
    draft: Draft,
    job: Job,
    verdict: Verdict,
    *,
    failed_at: Instant,
    at: Instant,
    runs: tuple[Run, ...] | None = None,
) -> None:
    """Do to *job*, whose runs are *runs* (None: as they are), what *verdict* says, at *at*."""
    runs = job.runs if runs is None else runs
    if verdict.eligible:
        draft.put(
            job.replace(
                state=next_state(job.state, JobState.BACKING_OFF),
                runs=runs,
                failed_at=failed_at,
                eligible_at=verdict.at,
                retry_delay=verdict.delay,
                ended_at=None,
                reason="",
            )
        )
        draft.emit(
            *(EventKind.BACKING_OFF, job),
            at=at,
            attempts_used=verdict.used,
            eligible_at=verdict.at,
        )
        return
    reason = verdict.reason.value
    failed = job.replace(
        state=next_state(job.state, JobState.FAILED),
        runs=runs,
        failed_at=None,
        eligible_at=None,
        retry_delay=None,
        ended_at=failed_at,
        reason=reason,
    )
    draft.put(drop_unknown(draft, failed, at=at))
    draft.emit(EventKind.EXHAUSTED, job, at=at, reason=reason, attempts_used=verdict.used)


def bounded(
    tracker: RescheduleTracker | None, policy: ReschedulePolicy | None
) -> RescheduleTracker | None:
    """What *policy*, which is new, needs of *tracker*: as many counted events as it allows.

    More of them change no verdict: the limit is reached when the oldest of so many is in the
    window.
    """
    if tracker is None or policy is None or policy.attempts <= 0:
        return tracker
    counted = [n for n, event in enumerate(tracker.events) if not event.forced]
    if len(counted) <= policy.attempts:
        return tracker
    return RescheduleTracker(events=tracker.events[counted[-policy.attempts] :], last=tracker.last)
