"""Jobs that were due to be tried again and found no place: their history says so, once."""

from collections.abc import Iterable

from pyresched.model import (
    Changes,
    Draft,
    Job,
    JobId,
    JobReader,
    JobState,
    LastReschedule,
    RescheduleTracker,
)

__all__ = ["is_due", "unplaced"]


def is_due(job: Job) -> bool:
    """Whether *job* is queued to be tried again, and nothing says yet that there is no place."""
    return (
        job.state is JobState.QUEUED
        and job.retry_delay is not None
        and (job.tracker is None or job.tracker.last is not LastReschedule.NO_PLACEMENT)
    )


def unplaced(job_ids: Iterable[JobId], snapshot: JobReader) -> Changes:
    """Say of those of *job_ids* that still are due, after a round, that it found no place.

    Nothing is counted, and the job keeps its place: it is tried in every round from now on. The
    reason of each round lies in its result; this is what stays.
    """
    draft = Draft(snapshot)
    for job in snapshot.get_many(list(job_ids)):
        if job is not None and is_due(job):
            events = () if job.tracker is None else job.tracker.events
            tracker = RescheduleTracker(events=events, last=LastReschedule.NO_PLACEMENT)
            draft.put(job.replace(tracker=tracker))
    return draft.changes()
