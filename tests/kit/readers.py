"""A reader of jobs that is a plain dict: what stages are tested against without the store."""

from collections.abc import Iterable, Iterator

from pyresched.model import Changes, Instant, Job, JobState

__all__ = ["DictReader"]


class DictReader:
    """Satisfies `model.JobReader`; `with_changes` makes the next one."""

    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        self._jobs = {job.id: job for job in jobs}

    def with_changes(self, changes: Changes) -> "DictReader":
        """The jobs after *changes*, whose rows must each be one version above or new."""
        for job in changes.jobs:
            old = self._jobs.get(job.id)
            assert job.version == (1 if old is None else old.version + 1), job
        return DictReader({**self._jobs, **{job.id: job for job in changes.jobs}}.values())

    def __getitem__(self, id: str) -> Job:
        return self._jobs[id]

    def get(self, id: str) -> Job | None:
        return self._jobs.get(id)

    def get_many(self, ids: Iterable[str]) -> list[Job | None]:
        return [self._jobs.get(id) for id in ids]

    def gang(self, queue: str, gang_id: str) -> list[Job]:
        return [job for job in self if job.gang and job.queue == queue and job.gang.id == gang_id]

    def leased(self) -> list[Job]:
        return [job for job in self if JobState.LEASED <= job.state <= JobState.RUNNING]

    def unvalidated(self) -> list[Job]:
        return [job for job in self if not job.validated and job.state < JobState.SUCCEEDED]

    def backing_off(self, before: Instant | None = None) -> list[Job]:
        waiting = [job for job in self if job.state is JobState.BACKING_OFF]
        due = [job for job in waiting if before is None or job.eligible_at <= before]
        return sorted(due, key=lambda job: (job.eligible_at, job.submitted_at, job.id))

    def __contains__(self, id: object) -> bool:
        return id in self._jobs

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(sorted(self._jobs.values(), key=lambda job: (job.submitted_at, job.id)))
