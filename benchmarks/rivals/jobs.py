"""Jobs as plain Python objects with slots, for the rival job db: nothing native in them.

`python_job` and `native_job` turn one kind into the other, so that both dbs can be asked the
same. What many jobs share (requirements, gangs) is one object for all equal ones.
"""

from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Self

from pyresched.model import (
    Gang,
    Job,
    JobState,
    Outcome,
    Requirements,
    ReschedulePolicy,
    RescheduleTracker,
    ResourceVector,
    Run,
    Toleration,
)

__all__ = [
    "PythonGang",
    "PythonJob",
    "PythonRequirements",
    "PythonRun",
    "native_job",
    "python_job",
    "python_requirements",
]


@dataclass(slots=True)
class PythonRequirements:
    """What a job asks of a node."""

    resources: tuple[int, ...]
    priority_class: str
    selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()


@dataclass(slots=True)
class PythonGang:
    """Jobs that start together."""

    id: str
    cardinality: int
    uniformity: str = ""


@dataclass(slots=True)
class PythonRun:
    """One attempt."""

    id: str
    node_id: str
    pool: str
    priority: int
    leased_at: int
    lease_expires_at: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    outcome: Outcome | None = None
    reason: str = ""


@dataclass(slots=True, eq=False)
class PythonJob:
    """One unit of work. Changed by `replace` only: stored ones are shared by versions."""

    id: str
    queue: str
    requirements: PythonRequirements
    submitted_at: int
    job_set: str = ""
    priority: int = 0
    pools: tuple[str, ...] = ("default",)
    state: JobState = JobState.QUEUED
    validated: bool = False
    gang: PythonGang | None = None
    runs: tuple[PythonRun, ...] = ()
    job_type: str = "batch"
    policy: ReschedulePolicy | None = None
    rules: object | None = None
    tracker: RescheduleTracker | None = None
    failed_at: int | None = None
    eligible_at: int | None = None
    retry_delay: int | None = None
    ended_at: int | None = None
    reason: str = ""
    payload: object = None
    version: int = 1

    def replace(self, **changes: object) -> Self:
        """A copy with *changes*, one version on unless they say otherwise."""
        twin = type(self)(*_job_values(self))
        twin.version += 1
        for name, value in changes.items():
            setattr(twin, name, value)
        return twin

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, PythonJob) and bool(_job_values(self) == _job_values(other))

    def __hash__(self) -> int:
        return hash(self.id)


_job_values = attrgetter(*PythonJob.__slots__)
_run_values = attrgetter(*PythonRun.__slots__)


@cache
def python_requirements(requirements: Requirements) -> PythonRequirements:
    """The same for the rival."""
    return PythonRequirements(
        tuple(requirements.resources),
        requirements.priority_class,
        requirements.selector,
        requirements.tolerations,
    )


@cache
def _python_gang(gang: Gang) -> PythonGang:
    return PythonGang(gang.id, gang.cardinality, gang.uniformity)


def python_job(job: Job) -> PythonJob:
    """The same for the rival."""
    fields = job.as_dict()
    fields["requirements"] = python_requirements(job.requirements)
    fields["gang"] = job.gang and _python_gang(job.gang)
    fields["runs"] = tuple(PythonRun(*_run_values(run)) for run in job.runs)
    return PythonJob(**fields)  # type: ignore[arg-type]


def native_job(job: PythonJob) -> Job:
    """The job of `pyresched` that says the same."""
    fields = dict(zip(PythonJob.__slots__, _job_values(job), strict=True))
    asked, gang = job.requirements, job.gang
    fields["requirements"] = Requirements(
        ResourceVector(asked.resources),
        asked.priority_class,
        selector=asked.selector,
        tolerations=asked.tolerations,
    )
    fields["gang"] = gang and Gang(gang.id, gang.cardinality, gang.uniformity)
    fields["runs"] = tuple(
        Run(**dict(zip(PythonRun.__slots__, _run_values(run), strict=True))) for run in job.runs
    )
    return Job(**fields)
