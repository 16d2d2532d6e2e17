"""Jobs that their users take back. Keeps INV-J5 (a gang is cancelled as one)."""

from collections.abc import Iterable

from pyresched.model import (
    Changes,
    Draft,
    EventKind,
    Instant,
    JobId,
    JobReader,
    JobState,
    Outcome,
    next_state,
)
from pyresched.model.moves import end_run

__all__ = ["cancel"]


def cancel(
    job_ids: Iterable[str], snapshot: JobReader, *, now: Instant, reason: str = ""
) -> Changes:
    """End jobs, with their gangs and active runs, as cancelled.

    Jobs that are unknown or have ended stay as they are, so that asking twice is harmless.
    """
    draft = Draft(snapshot)
    for job_id in job_ids:
        job = draft.job(JobId(job_id))
        if job is None or job.state.terminal:
            continue
        for member in draft.members(job):
            runs = member.runs
            if member.active_run is None:
                draft.emit(EventKind.CANCELLED, member, at=now, reason=reason)
            else:
                runs = end_run(draft, member, outcome=Outcome.CANCELLED, at=now, reason=reason)
            state = next_state(member.state, JobState.CANCELLED)
            draft.put(
                member.replace(
                    state=state,
                    runs=runs,
                    failed_at=None,
                    eligible_at=None,
                    retry_delay=None,
                    ended_at=now,
                    reason=reason,
                )
            )
    return draft.changes()
