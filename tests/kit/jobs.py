"""Builders of jobs: every field has a plain default, so that a test names only what it is about.

Amounts are in steps of each resource: thousandths of a core and MiB under the default config.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pyresched.model import Gang, Job, JobState, Outcome, Requirements, ResourceVector, Run

__all__ = [
    "backing_off",
    "ended",
    "gang",
    "job",
    "jobs",
    "leased",
    "requeued",
    "requirements",
    "run",
]


def requirements(
    *amounts: int,
    priority_class: str = "default",
    selector: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    tolerations: tuple[Any, ...] = (),
    **rules: Any,
) -> Requirements:
    """A request of *amounts* (1000 and 1024 unless given: one core, 1 GiB); *rules* as `Requirements` takes them."""
    return Requirements(
        ResourceVector(amounts or (1000, 1024)),
        priority_class,
        selector=selector,
        tolerations=tolerations,
        **rules,
    )


def job(
    id: str = "job-1",
    *amounts: int,
    queue: str = "queue-a",
    priority_class: str = "default",
    submitted_at: int = 0,
    **fields: Any,
) -> Job:
    """A queued, validated job of one core and 1 GiB in pool `default`; *fields* as `Job` takes them."""
    fields.setdefault("requirements", requirements(*amounts, priority_class=priority_class))
    fields.setdefault("validated", True)
    return Job(id=id, queue=queue, submitted_at=submitted_at, **fields)


def jobs(count: int, *amounts: int, prefix: str = "job", **fields: Any) -> list[Job]:
    """*count* jobs `job-000000`, `job-000001`, ... submitted 1 ns apart, alike otherwise."""
    first = fields.pop("submitted_at", 0)
    return [
        job(f"{prefix}-{n:06}", *amounts, submitted_at=first + n, **fields) for n in range(count)
    ]


def gang(
    id: str = "gang-1", *amounts: int, size: int = 2, uniformity: str = "", **fields: Any
) -> list[Job]:
    """The *size* members `gang-1.0`, `gang-1.1`, ... of one gang, submitted together."""
    return [
        job(f"{id}.{n}", *amounts, gang=Gang(id, size, uniformity), **fields) for n in range(size)
    ]


def run(id: str = "run-1", *, node_id: str = "node-1", leased_at: int = 0, **fields: Any) -> Run:
    """An active run on `node-1`; *fields* as `Run` takes them."""
    return Run(id=id, node_id=node_id, leased_at=leased_at, **fields)


def leased(job: Job, *, run_id: str = "", at: int = 1, **fields: Any) -> Job:
    """The next version of *job* with a new active run, named after the job and its run count."""
    new = run(run_id or f"{job.id}/run-{len(job.runs) + 1}", leased_at=at, **fields)
    return job.replace(state=JobState.LEASED, runs=(*job.runs, new))


def _with_run_ended(job: Job, outcome: Outcome, at: int) -> tuple[Run, ...]:
    return (*job.runs[:-1], job.runs[-1].replace(ended_at=at, outcome=outcome))


def requeued(job: Job, outcome: Outcome = Outcome.PREEMPTED, *, at: int = 2) -> Job:
    """The next version of the leased *job*: its run ended with *outcome*, itself queued again."""
    return job.replace(state=JobState.QUEUED, runs=_with_run_ended(job, outcome, at))


def backing_off(job: Job, *, at: int = 2, eligible_at: int = 10, **fields: Any) -> Job:
    """The next version of the leased *job*: its run failed at *at*, its next waits for *eligible_at*."""
    return job.replace(
        state=JobState.BACKING_OFF,
        runs=_with_run_ended(job, Outcome.FAILED, at),
        failed_at=at,
        eligible_at=eligible_at,
        retry_delay=eligible_at - at,
        **fields,
    )


def ended(job: Job, state: JobState = JobState.SUCCEEDED, *, at: int = 2) -> Job:
    """The next version of *job*, ended for good; its active run, if any, ended alike."""
    outcome = {JobState.SUCCEEDED: Outcome.SUCCEEDED, JobState.FAILED: Outcome.FAILED}
    runs = job.runs
    if job.active_run is not None:
        runs = _with_run_ended(job, outcome.get(state, Outcome.CANCELLED), at)
    return job.replace(state=state, runs=runs, ended_at=at)
