"""Jobs and changes of jobs for properties: ids of every form, runs that clash, states that may not.

Some of what comes out is against the rules of the store: `job_model.refusals` knows which.
"""

from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import strategies as st

from kit.job_model import JobModel
from kit.jobs import backing_off, ended, leased, requeued, requirements, run
from pyresched.model import Gang, Job, JobState, Outcome

__all__ = [
    "BAD_KEYS",
    "CHANGES",
    "GANGS",
    "IDS",
    "POOLS",
    "QUEUES",
    "RUNS",
    "Hostile",
    "few",
    "ids_of",
    "new_jobs",
    "same_answers",
]

IDS = [
    "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "01ARZ3NDEKTSV4RRFFQ69G5FAW",
    "01BX5ZZKBKACTAV9WEVGEMMVRZ",
    "123e4567-e89b-12d3-a456-426614174000",
    "123e4567-e89b-12d3-a456-426614174001",
    "a",
    "a\0",
    "b" * 16,
    "b" * 17,
    "b" * 40 + "1",
    "b" * 40 + "2",
    "é" * 9,
    "\U0001f600",
    *(f"job-{n}" for n in range(30)),
]
RUNS = [*(f"run-{n}" for n in range(12)), "01ARZ3NDEKTSV4RRFFQ69G5FAV", "r" * 60]
QUEUES = ["alpha", "beta", "été"]
POOLS = ["p", "q", "r"]
GANGS = ["g", "h"]


class Hostile(str):
    """An id that is text, whose own methods must never be called."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise AssertionError("eq was called")

    def __hash__(self) -> int:
        raise AssertionError("hash was called")


# Keys that no job can have, and what each is: every call that takes an id raises it.
BAD_KEYS: list[tuple[Any, type[Exception]]] = [
    (7, TypeError),
    (None, TypeError),
    (b"a", TypeError),
    ("", ValueError),
    ("x" * 256, ValueError),
    ("\ud800", UnicodeEncodeError),
]

few = st.integers(0, 4)
runs = st.lists(st.sampled_from(RUNS), max_size=3).map(
    lambda ids: tuple(
        run(id) if id is ids[-1] else run(id, ended_at=1, outcome=Outcome.LOST) for id in ids
    )
)
new_jobs = st.builds(
    Job,
    id=st.sampled_from(IDS),
    queue=st.sampled_from(QUEUES),
    requirements=st.sampled_from(["default"] * 8 + ["best-effort"] * 4 + ["unknown"]).map(
        lambda name: requirements(priority_class=name)
    ),
    submitted_at=few,
    priority=few,
    pools=st.lists(st.sampled_from(POOLS), max_size=3).map(tuple),
    state=st.sampled_from([JobState.QUEUED] * 8 + list(JobState)),
    validated=st.booleans(),
    gang=st.none() | st.sampled_from(GANGS).map(lambda id: Gang(id, 2)),
    runs=runs,
    eligible_at=st.none() | few,
    version=st.sampled_from([1, 1, 1, 2, 5]),
)
# What becomes of a job that is there. Some of it is against the rules: the model knows.
CHANGES: dict[str, Callable[[Job, int], Job]] = {
    "lease": lambda job, n: leased(job, run_id=RUNS[n % len(RUNS)]),
    "lease anew": lambda job, _: leased(job),
    "run": lambda job, _: job.replace(state=JobState.RUNNING),
    "requeue": lambda job, _: requeued(job) if job.runs else job,
    "back off": lambda job, n: backing_off(job, eligible_at=n % 5) if job.runs else job,
    "succeed": lambda job, _: ended(job),
    "cancel": lambda job, _: ended(job, JobState.CANCELLED),
    "queue": lambda job, _: job.replace(state=JobState.QUEUED),
    "skip versions": lambda job, n: job.replace(
        state=JobState(n % 8), eligible_at=1, version=job.version + 3
    ),
    "priority": lambda job, n: job.replace(priority=n % 5),
    "pools": lambda job, n: job.replace(pools=tuple(POOLS[: n % 4])),
    "other queue": lambda job, n: job.replace(queue=QUEUES[n % 3]),
    "submit time": lambda job, n: job.replace(submitted_at=n % 5),
    "validate": lambda job, n: job.replace(validated=n % 2 == 0),
    "gang": lambda job, n: job.replace(gang=Gang(GANGS[n % 2], 2) if n % 3 else None),
    "drop runs": lambda job, n: job.replace(runs=job.runs[n % 2 + 1 :]),
    "reason": lambda job, n: job.replace(reason=str(n)),
    "same": lambda job, _: job,
    "equal": lambda job, _: Job(**job.as_dict()),  # type: ignore[arg-type]
}


def ids_of(jobs: Iterable[Job]) -> list[str]:
    """Their ids."""
    return [job.id for job in jobs]


def same_answers(reader: Any, model: JobModel) -> None:
    """Every question that a reader can be asked."""
    everything = model.all()
    assert list(reader) == everything
    assert len(reader) == len(everything)
    assert reader.get_many(IDS) == [model.jobs.get(id) for id in IDS]
    assert [reader.get(id) for id in IDS] == [model.jobs.get(id) for id in IDS]
    assert [id in reader for id in IDS] == [id in model.jobs for id in IDS]
    assert [reader.by_run(id) for id in RUNS] == [model.by_run(id) for id in RUNS]
    assert ids_of(reader.leased()) == ids_of(model.leased())
    assert ids_of(reader.unvalidated()) == ids_of(model.unvalidated())
    for before in (None, -1, 0, 2, 4):
        assert list(reader.backing_off(before)) == model.backing_off(before)
    assert reader.queues() == model.queues()
    for queue in QUEUES:
        for gang in GANGS:
            assert reader.gang(queue, gang) == model.gang(queue, gang)
        for pool in (*POOLS, None, "nowhere"):
            queued = model.queued(queue, pool)
            assert ids_of(reader.queued(queue, pool)) == ids_of(queued)
            assert reader.queue_length(queue, pool) == len(queued)
