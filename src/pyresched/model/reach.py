"""Runs that are out of reach: how long one is waited for, and its way back or out.

Owns what `fleet` (the node says it) and `outcomes` (a report says it) decide alike. Relies on
`Draft` and `moves`. Keeps INV-J5, INV-J6 and INV-J9.
"""

from typing import Final

from pyresched._core import Job, JobState, LastReschedule, Outcome, RescheduleTracker, Run
from pyresched.ids import Instant
from pyresched.model.changes import EventKind
from pyresched.model.drafts import Draft
from pyresched.model.moves import RECONNECTED, end_run, settle
from pyresched.model.states import next_state

__all__ = ["NODE_LOST", "is_late", "lose_unknown", "lost_at", "take_back", "tolerated", "unknown"]

NODE_LOST: Final = "node_lost"
"""Reason of a run whose node was lost, or out of reach for too long."""

_END: Final = 2**63 - 1


def tolerated(job: Job) -> bool:
    """Whether the group of *job* lets a run go on where its node is out of reach.

    Not where nodes stop such runs themselves; else for a time, or for ever if nothing may take
    its place (rule `lost-after-0`).
    """
    rule = None if job.rules is None else job.rules.disconnect
    if rule is None or rule.stop_on_client_after is not None:
        return False
    return rule.lost_after > 0 or not rule.replace


def lost_at(job: Job, since: Instant) -> Instant | None:
    """When a run of *job* that is out of reach *since* then is lost; None: never."""
    rule = None if job.rules is None else job.rules.disconnect
    if rule is None or not tolerated(job):
        return since
    if rule.lost_after == 0:
        return None
    return min(since + rule.lost_after, _END)


def is_late(job: Job, since: Instant, now: Instant) -> bool:
    """Whether a run of *job* that is out of reach *since* then is lost by *now*."""
    at = lost_at(job, since)
    return at is not None and at <= now


def unknown(job: Job) -> tuple[Run, ...]:
    """The runs of *job* that were given up and may still go on."""
    return tuple(run for run in job.runs if run.outcome is Outcome.UNKNOWN)


def lose_unknown(draft: Draft, job: Job, run: Run, *, at: Instant) -> None:
    """The unknown *run* of *job* is lost. Who still waits to replace it is back at once, unblamed.

    That needs no budget, and with a gang all its members are.
    """
    waits = job.state in {JobState.BACKING_OFF, JobState.QUEUED} and job.runs[-1].id == run.id
    runs = settle(draft, job, run, outcome=Outcome.LOST, at=at, reason=NODE_LOST)
    draft.put(job.replace(runs=runs))
    if not waits:
        return
    for each in draft.members(job):
        member = draft.seen(each)
        if member.eligible_at is None:
            continue
        draft.put(
            member.replace(
                state=next_state(member.state, JobState.QUEUED),
                failed_at=None,
                eligible_at=None,
                retry_delay=None,
                reason="",
            )
        )
        if member.state is JobState.BACKING_OFF:
            draft.emit(EventKind.REQUEUED, member, at=at)


def take_back(
    draft: Draft, job: Job, run: Run, *, at: Instant, lease_expires_at: Instant | None
) -> None:
    """The unknown *run* of *job* goes on and is its newest again; what replaced it is stopped.

    Nothing is taken from the budget that no replacement has used.
    """
    runs = job.runs
    if job.active_run is not None:
        runs = end_run(draft, job, outcome=Outcome.RETURNED, at=at, reason=RECONNECTED)
    kept = run.replace(
        started_at=at if run.started_at is None else run.started_at,
        ended_at=None,
        outcome=None,
        reason="",
        lease_expires_at=lease_expires_at,
    )
    draft.put(
        job.replace(
            state=next_state(job.state, JobState.RUNNING),
            runs=(*(each for each in runs if each.id != run.id), kept),
            tracker=_placed(job.tracker),
            failed_at=None,
            eligible_at=None,
            retry_delay=None,
            reason="",
        )
    )
    draft.emit(EventKind.RECONNECTED, job, at=at, run=kept)


def _placed(tracker: RescheduleTracker | None) -> RescheduleTracker | None:
    """*tracker* without a word of that a replacement, which is needed no longer, found no place."""
    if tracker is None or tracker.last is not LastReschedule.NO_PLACEMENT:
        return tracker
    if not tracker.events:
        return None
    return RescheduleTracker(events=tracker.events, last=LastReschedule.OK)
