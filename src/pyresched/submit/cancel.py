"""Jobs that their users take back. Keeps INV-J5 (a gang is cancelled as one)."""

from collections.abc import Iterable

from pyresched.model import Changes, Draft, Instant, JobId, JobReader
from pyresched.model.moves import call_off

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
            call_off(draft, member, at=now, reason=reason)
    return draft.changes()
