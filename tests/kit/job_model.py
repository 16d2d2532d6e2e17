"""What the job db should answer, from a plain dict: slow, obvious, and without an index.

Relies on nothing of the store; the properties hold the two against each other.
"""

from collections.abc import Iterable, Mapping

from pyresched.errors import (
    DuplicateId,
    IllegalTransition,
    InputError,
    RunBelongsToOtherJob,
)
from pyresched.model import NEXT, Job, JobState

__all__ = ["JobModel", "refusals"]

CLASS_PRIORITIES: Mapping[str, int] = {"default": 1000, "best-effort": 0}


def submit_order(job: Job) -> tuple[int, str]:
    """By submit time, then by id."""
    return (job.submitted_at, job.id)


class JobModel:
    """A job db as a dict. Copies are as deep as they need be: jobs are frozen."""

    def __init__(self, jobs: Mapping[str, Job] | None = None) -> None:
        self.jobs = dict(jobs or {})

    def copy(self) -> "JobModel":
        """The same jobs, apart."""
        return JobModel(self.jobs)

    def upsert_many(self, jobs: Iterable[Job]) -> None:
        """All or none; raises the first of `refusals`."""
        batch = list(jobs)
        for refused in refusals(self.jobs, batch):
            raise refused("the model refuses")
        self.jobs.update((job.id, job) for job in batch)

    def delete_many(self, ids: Iterable[str]) -> int:
        """How many there were."""
        return len([self.jobs.pop(id) for id in dict.fromkeys(ids) if id in self.jobs])

    def in_order(self, jobs: Iterable[Job]) -> list[Job]:
        """By submit time, then by id."""
        return sorted(jobs, key=submit_order)

    def all(self) -> list[Job]:
        """Every job."""
        return self.in_order(self.jobs.values())

    def by_run(self, run_id: str) -> Job | None:
        """The job with that run."""
        return next((j for j in self.jobs.values() if run_id in [r.id for r in j.runs]), None)

    def gang(self, queue: str, gang_id: str) -> list[Job]:
        """The members."""
        return [j for j in self.all() if j.queue == queue and j.gang and j.gang.id == gang_id]

    def leased(self) -> list[Job]:
        """Those with room on a node."""
        return [j for j in self.all() if j.state.active and j.active_run]

    def unvalidated(self) -> list[Job]:
        """Those to be validated."""
        return [j for j in self.all() if not j.validated and not j.state.terminal]

    def backing_off(self, before: int | None = None) -> list[Job]:
        """Those that wait, due first."""
        waiting = [j for j in self.jobs.values() if j.state is JobState.BACKING_OFF]
        due = [j for j in waiting if before is None or (j.eligible_at or 0) <= before]
        return sorted(due, key=lambda j: (j.eligible_at or 0, *submit_order(j)))

    def queued(self, queue: str, pool: str | None = None, *, market: bool = False) -> list[Job]:
        """A queue in scheduling order."""
        return sorted(
            (
                j
                for j in self.jobs.values()
                if j.state is JobState.QUEUED
                and j.queue == queue
                and (pool is None or pool in j.pools)
            ),
            key=lambda j: (
                -CLASS_PRIORITIES[j.requirements.priority_class],
                0 if market else j.priority,
                *submit_order(j),
            ),
        )

    def queues(self) -> list[str]:
        """Those with queued jobs."""
        return sorted({j.queue for j in self.jobs.values() if j.state is JobState.QUEUED})

    def diff(self, older: "JobModel") -> list[tuple[Job | None, Job | None]]:
        """Pairs of old and new of all that differ."""
        ids = {*self.jobs, *older.jobs}
        pairs = [(older.jobs.get(id), self.jobs.get(id)) for id in ids]
        differ = [(old, new) for old, new in pairs if old != new]
        return sorted(differ, key=lambda pair: submit_order(pair[1] or pair[0]))  # type: ignore[arg-type]


def refusals(stored: Mapping[str, Job], batch: list[Job]) -> list[type[Exception]]:
    """Every error that one of *batch* deserves."""
    found: list[type[Exception]] = []
    owners = {run.id: job.id for job in stored.values() for run in job.runs}
    seen: dict[str, Job] = {}
    for job in batch:
        if seen.setdefault(job.id, job) != job:
            found.append(DuplicateId)
        if job.requirements.priority_class not in CLASS_PRIORITIES:
            found.append(InputError)
        if job.state is JobState.BACKING_OFF and job.eligible_at is None:
            found.append(InputError)
        if any(len(key.encode()) > 255 for key in (job.id, *(run.id for run in job.runs))):
            found.append(ValueError)
        if len({run.id for run in job.runs}) < len(job.runs):
            found.append(DuplicateId)
        if any(owners.setdefault(run.id, job.id) != job.id for run in job.runs):
            found.append(RunBelongsToOtherJob)
        old = stored.get(job.id)
        if old is not None and not _may_follow(old, job):
            found.append(IllegalTransition)
    return found


def _may_follow(old: Job, new: Job) -> bool:
    if old.state is new.state or new.state in NEXT[old.state]:
        return True
    return new.version > old.version + 1 and not old.state.terminal
