"""What the end of a run does to its job and to the job's gang, where no policy has a say.

Stages that end runs share it: lost nodes, ended leases, returns, preemption, cancellation. Relies on
`Draft`. Keeps INV-J5 (a gang fails as one) and INV-J6 (a place in the queue is never lost).
"""

from collections.abc import Mapping
from typing import Final

from pyresched._core import Job, JobState, Outcome, Run
from pyresched.ids import Instant, JobId
from pyresched.model.changes import EventKind
from pyresched.model.drafts import Draft
from pyresched.model.states import next_state

__all__ = [
    "FORCED",
    "GANG",
    "GANG_DONE",
    "RECONNECTED",
    "call_off",
    "drop_unknown",
    "end_run",
    "put_back",
    "settle",
    "with_run",
]

FORCED: Final = "forced"
"""Reason of a queued job that is tried again by hand, and of its event when it is."""
GANG: Final = "gang"
"""Reason of a run that was stopped because another member's was."""
GANG_DONE: Final = "gang_done"
"""Reason of an active run whose process succeeded: it holds its room until its gang ends."""
RECONNECTED: Final = "reconnected"
"""Reason of a run that was stopped because another of its job, one of both out of reach, goes on."""

_EVENTS: Final[Mapping[Outcome, EventKind]] = {
    Outcome.SUCCEEDED: EventKind.SUCCEEDED,
    Outcome.FAILED: EventKind.FAILED,
    Outcome.PREEMPTED: EventKind.PREEMPTED,
    Outcome.RETURNED: EventKind.RETURNED,
    Outcome.LOST: EventKind.LOST,
    Outcome.CANCELLED: EventKind.CANCELLED,
    Outcome.UNKNOWN: EventKind.UNKNOWN,
}


def with_run(job: Job, run: Run) -> tuple[Run, ...]:
    """The runs of *job* with its newest replaced by *run*."""
    return (*job.runs[:-1], run)


def end_run(
    draft: Draft, job: Job, *, outcome: Outcome, at: Instant, reason: str = ""
) -> tuple[Run, ...]:
    """Say that the active run of *job* ended, and return its runs with that one ended.

    A run never ends before it was leased, whatever the clock of its executor says.
    """
    run = job.active_run
    assert run is not None, f"job {job.id!r} has no run to end"
    ended = run.replace(ended_at=max(at, run.leased_at), outcome=outcome, reason=reason)
    draft.emit(_EVENTS[outcome], job, at=at, run=ended, reason=reason)
    return with_run(job, ended)


def settle(
    draft: Draft, job: Job, run: Run, *, outcome: Outcome, at: Instant, reason: str = ""
) -> tuple[Run, ...]:
    """Say what the unknown *run* of *job* came to after all, and return the runs with that.

    It ended when it was given up; *at* is when that is known.
    """
    ended = run.replace(outcome=outcome, reason=reason)
    draft.emit(_EVENTS[outcome], job, at=at, run=ended, reason=reason)
    return tuple(ended if each.id == run.id else each for each in job.runs)


def drop_unknown(draft: Draft, job: Job, *, at: Instant) -> Job:
    """*job*, which ends, with its unknown runs returned for good: whoever has them stops them."""
    for run in job.runs:
        if run.outcome is Outcome.UNKNOWN:
            runs = settle(draft, job, run, outcome=Outcome.RETURNED, at=at, reason=RECONNECTED)
            job = job.replace(runs=runs, version=job.version)
    return job


def call_off(draft: Draft, job: Job, *, at: Instant, reason: str = "") -> None:
    """End *job*, which has not ended, and its active run if it has one, as cancelled."""
    runs = job.runs
    if job.active_run is None:
        draft.emit(EventKind.CANCELLED, job, at=at, reason=reason)
    else:
        runs = end_run(draft, job, outcome=Outcome.CANCELLED, at=at, reason=reason)
    cancelled = job.replace(
        state=next_state(job.state, JobState.CANCELLED),
        runs=runs,
        failed_at=None,
        eligible_at=None,
        retry_delay=None,
        ended_at=at,
        reason=reason,
    )
    draft.put(drop_unknown(draft, cancelled, at=at))


def put_back(
    draft: Draft,
    ended: Mapping[JobId, tuple[Outcome, str]],
    *,
    at: Instant,
    until: Instant | None = None,
) -> None:
    """End runs without blame: their jobs go back to their places in their queues at once.

    *ended* gives the outcome and the reason by job. The other members of a gang are stopped
    with outcome `returned`. Jobs without an active run stay as they are. With *until* they
    wait for that instant first, which uses no budget either.
    """
    for job_id in ended:
        job = draft.job(job_id)
        if job is None or job.active_run is None:
            continue
        for member in draft.members(job):
            if member.active_run is None:
                continue
            outcome, reason = ended.get(member.id, (Outcome.RETURNED, GANG))
            runs = end_run(draft, member, outcome=outcome, at=at, reason=reason)
            if until is None:
                state = next_state(member.state, JobState.QUEUED)
                draft.put(member.replace(state=state, runs=runs))
                draft.emit(EventKind.REQUEUED, member, at=at)
            else:
                state = next_state(member.state, JobState.BACKING_OFF)
                draft.put(member.replace(state=state, runs=runs, eligible_at=until))
                draft.emit(EventKind.BACKING_OFF, member, at=at, eligible_at=until)
