"""Jobs of both kinds from the same columns: eight fields, three resources, one in ten in a gang.

A queue has twenty job sets; the jobs of a set ask for the same, as those of real sets do.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from measures.keys import ID_LENGTH, Keys
from pyresched.config import SchedulingConfig
from pyresched.model import (
    Gang,
    Job,
    JobState,
    Outcome,
    Requirements,
    RescheduleEvent,
    RescheduleTracker,
    Resource,
    Rounding,
    Run,
)
from rivals.jobs import PythonGang, PythonJob, PythonRun, python_requirements

__all__ = ["CONFIG", "KINDS", "POOL", "JobColumns", "queue_count"]

CONFIG = SchedulingConfig(
    resources=(Resource("cpu", "1m"), Resource("memory", "1Mi"), Resource("gpu", "1"))
)
POOL = "default"
KINDS = ("ours", "python")
SETS_A_QUEUE = 20
GANG_SIZE = 4
IN_A_GANG = 10  # one in so many
NEVER = 1_800_000_000_000_000_000


def queue_count(jobs: int) -> int:
    """1,000 queues for a million jobs."""
    return max(10, jobs // 1_000)


class JobColumns:
    """The fields of *count* jobs, and jobs of either kind made of them.

    `gang_size` puts every job in a gang of that size instead of one in ten in one of four.
    """

    def __init__(self, count: int, *, gang_size: int | None = None) -> None:
        self.count = count
        self.keys = Keys(count)
        draw = np.random.default_rng(count)
        numbers = np.arange(count)
        sets = SETS_A_QUEUE * queue_count(count)
        group = numbers // (gang_size or GANG_SIZE)
        together = np.full(count, fill_value=True) if gang_size else group % IN_A_GANG == 0
        self.gang_codes = np.where(
            together, np.cumsum(np.diff(group, prepend=-1) * together) - 1, -1
        )
        self.gang_codes = self.gang_codes.astype(np.int32)
        # The members of a gang are of one set.
        leader = np.where(
            together, numbers // (gang_size or GANG_SIZE) * (gang_size or GANG_SIZE), numbers
        )
        self.set_codes = draw.integers(sets, size=count, dtype=np.int32)[leader]
        self.queue_codes = self.set_codes // SETS_A_QUEUE
        shape_of, pools_of = draw.integers(32, size=sets), draw.integers(8, size=sets)
        self.shape_codes = shape_of[self.set_codes].astype(np.int32)
        self.pools_codes = np.maximum(pools_of - 5, 0)[self.set_codes].astype(np.int32)
        self.priorities = draw.integers(1_000, size=count, dtype=np.int64)
        self.submitted = 1_700_000_000_000_000_000 + numbers * 1_000_000
        size = gang_size or GANG_SIZE
        self.gangs = [
            Gang(f"gang-{n}", size) for n in range(int(self.gang_codes.max(initial=-1)) + 1)
        ]
        self.queues = [f"queue-{n:04}" for n in range(queue_count(count))]
        self.sets = [f"set-{n % SETS_A_QUEUE:02}-of-{n // SETS_A_QUEUE}" for n in range(sets)]
        self.pools = [(POOL,), (POOL, "gpu"), ("gpu",)]
        self.shapes = [_shape(n) for n in range(32)]
        self.python_shapes = [python_requirements(each) for each in self.shapes]

    @cached_property
    def python_gangs(self) -> list[PythonGang]:
        """The gangs as the rival has them."""
        return [PythonGang(each.id, each.cardinality) for each in self.gangs]

    def of(self, who: str, numbers: Iterable[int]) -> list[Any]:
        """New jobs of *who*, nothing in them used before but what many jobs share."""
        return list(self.ours(numbers) if who == "ours" else self.python(numbers))

    def _rows(self, numbers: Iterable[int]) -> Iterator[tuple[Any, ...]]:
        at: Any = (
            numbers if isinstance(numbers, np.ndarray) else np.fromiter(numbers, dtype=np.int64)
        )
        columns = (self.submitted, self.priorities, self.queue_codes, self.shape_codes)
        more = (self.set_codes, self.pools_codes, self.gang_codes)
        return zip(
            self.keys.fresh(at.tolist()),
            *(column[at].tolist() for column in (*columns, *more)),
            strict=True,
        )

    def ours(self, numbers: Iterable[int]) -> Iterator[Job]:
        """Jobs of `pyresched`."""
        queues, shapes, sets, pools = self.queues, self.shapes, self.sets, self.pools
        for id, submitted, priority, queue, shape, set_, where, gang in self._rows(numbers):
            yield Job(
                id=id,
                queue=queues[queue],
                requirements=shapes[shape],
                submitted_at=submitted,
                job_set=sets[set_],
                priority=priority,
                pools=pools[where],
                validated=True,
                gang=None if gang < 0 else self.gangs[gang],
            )

    def python(self, numbers: Iterable[int]) -> Iterator[PythonJob]:
        """Jobs of the rival."""
        queues, shapes, sets, pools = self.queues, self.python_shapes, self.sets, self.pools
        gangs = self.python_gangs
        for id, submitted, priority, queue, shape, set_, where, gang in self._rows(numbers):
            yield PythonJob(
                id,
                queues[queue],
                shapes[shape],
                submitted,
                sets[set_],
                priority,
                pools[where],
                JobState.QUEUED,
                True,  # noqa: FBT003  validated
                None if gang < 0 else gangs[gang],
            )

    def buffers(self) -> dict[str, Any]:
        """What `upsert_columns` takes, the ids in memory of their own."""
        ids = np.frombuffer(self.keys.buffer(slice(0, self.count)), dtype=f"S{ID_LENGTH}").copy()
        return {
            "ids": ids,
            "submitted_at": self.submitted,
            "queue": (self.queue_codes, self.queues),
            "requirements": (self.shape_codes, self.shapes),
            "priority": self.priorities,
            "gang": (self.gang_codes, self.gangs),
            "job_set": (self.set_codes, self.sets),
            "pools": (self.pools_codes, self.pools),
            "validated": True,
        }

    def python_from_buffers(self, columns: dict[str, Any]) -> list[PythonJob]:
        """What the rival has to do with the same columns before it can store them."""
        queues, sets, pools = self.queues, self.sets, self.pools
        shapes, gangs = self.python_shapes, self.python_gangs
        rows = zip(
            columns["ids"].astype(f"U{ID_LENGTH}").tolist(),
            columns["submitted_at"].tolist(),
            columns["priority"].tolist(),
            *(columns[name][0].tolist() for name in ("queue", "requirements", "job_set")),
            *(columns[name][0].tolist() for name in ("pools", "gang")),
            strict=True,
        )
        return [
            PythonJob(
                id,
                queues[queue],
                shapes[shape],
                submitted,
                sets[set_],
                priority,
                pools[where],
                JobState.QUEUED,
                True,  # noqa: FBT003  validated
                None if gang < 0 else gangs[gang],
            )
            for id, submitted, priority, queue, shape, set_, where, gang in rows
        ]


def _shape(n: int) -> Requirements:
    cores = 2 ** (n % 6)
    amounts = {"cpu": cores, "memory": f"{cores * (1 + n // 6)}Gi", "gpu": n % 3}
    return Requirements(
        CONFIG.spec.vector(amounts, rounding=Rounding.UP), CONFIG.default_priority_class
    )


def leased(job: Any, turn: int) -> Any:
    """The job, of either kind, with a new active run."""
    run = {"id": f"{job.id[:-6]}{turn:06}", "node_id": f"node-{turn:05}", "leased_at": NEVER + turn}
    if isinstance(job, PythonJob):
        return job.replace(
            state=JobState.LEASED, runs=(*job.runs, PythonRun(pool=POOL, priority=0, **run))
        )
    return job.replace(state=JobState.LEASED, runs=(*job.runs, Run(**run)))


def tried_once(job: Any, run_id: str, node_id: str) -> Any:
    """The job, of either kind, queued again after a run that failed, with the tracker of that."""
    run = {
        "id": run_id,
        "node_id": node_id,
        "pool": POOL,
        "priority": 0,
        "leased_at": job.submitted_at + 1_000,
        "started_at": job.submitted_at + 2_000,
        "ended_at": job.submitted_at + 3_000,
        "outcome": Outcome.FAILED,
    }
    event = RescheduleEvent(
        time=job.submitted_at + 4_000, previous_run=run_id, previous_node=node_id, delay=30 * 10**9
    )
    made: Sequence[Any] = (PythonRun(**run) if isinstance(job, PythonJob) else Run(**run),)
    return job.replace(runs=tuple(made), tracker=RescheduleTracker(events=(event,)))
