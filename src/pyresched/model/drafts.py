"""A set of changes while a stage builds it: each row once, one version above what was read.

A stage reads its own decisions through it. Relies on any `JobReader`. Keeps INV-J2.
"""

from collections.abc import Sequence
from typing import Final

from pyresched._core import Job, Run
from pyresched.ids import Instant, JobId, NodeId, RunId
from pyresched.model.changes import Changes, Event, EventKind
from pyresched.model.readers import JobReader

__all__ = ["Draft"]

_NO_RUN: Final = RunId("")
_NO_NODE: Final = NodeId("")


class Draft:
    """Decisions on top of *reader*, not yet written anywhere.

    Rows come from `job`, `members` or the reader, are changed by `Job.replace` and handed back
    by `put`; a row put twice is still one version above the one that was read.
    """

    __slots__ = ("_events", "_jobs", "_reader")

    def __init__(self, reader: JobReader) -> None:
        self._reader = reader
        self._jobs: dict[JobId, Job] = {}
        self._events: list[Event] = []

    @property
    def reader(self) -> JobReader:
        """What this is decided on top of."""
        return self._reader

    def job(self, job_id: JobId) -> Job | None:
        """The job as decided so far, or None when there is none."""
        return self._jobs.get(job_id) or self._reader.get(job_id)

    def seen(self, job: Job) -> Job:
        """*job*, a row of the reader, as decided so far."""
        return self._jobs.get(job.id, job)

    def members(self, job: Job) -> Sequence[Job]:
        """The members of the gang of *job* that have not ended, or *job*, as decided so far."""
        if job.gang is None:
            return (job,)
        # The id of a gang may be used again once the gang has ended.
        members = map(self.seen, self._reader.gang(job.queue, job.gang.id))
        return [member for member in members if not member.state.terminal]

    def put(self, job: Job) -> Job:
        """Hand back the next version of a row. Returns it as it will be written."""
        held = self._jobs.get(job.id)
        if held is not None:
            job = job.replace(version=held.version)
        self._jobs[job.id] = job
        return job

    def emit(
        self,
        kind: EventKind,
        job: Job,
        *,
        at: Instant,
        run: Run | None = None,
        reason: str = "",
        attempts_used: str = "",
        eligible_at: Instant | None = None,
    ) -> None:
        """Say that *kind* happened to *job*, or to its *run*."""
        event = Event(
            kind=kind,
            at=at,
            queue=job.queue,
            job_set=job.job_set,
            job_id=job.id,
            run_id=_NO_RUN if run is None else run.id,
            node_id=_NO_NODE if run is None else run.node_id,
            reason=reason,
            attempts_used=attempts_used,
            eligible_at=eligible_at,
        )
        self._events.append(event)

    def changes(self) -> Changes:
        """What was decided, rows in the order in which they were first put."""
        return Changes(jobs=tuple(self._jobs.values()), events=tuple(self._events))
