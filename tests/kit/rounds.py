"""A small world for tests of the round: nodes, jobs and queues that change from round to round.

`World` holds plain rows and knows no stage; `kit.round_checks` says what a round did wrong in it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kit.jobs import leased
from pyresched.config import SchedulingConfig
from pyresched.jobdb import JobDb
from pyresched.model import (
    Job,
    JobState,
    Node,
    Outcome,
    PriorityClass,
    Queue,
    ResourceVector,
    RoundResult,
)
from pyresched.nodedb import NodeDb
from pyresched.scheduling import RoundState, run_round

__all__ = ["CONFIG", "Reader", "World", "node", "replace_node"]

CONFIG = SchedulingConfig(
    priority_classes=(
        PriorityClass(name="default", priority=1000),
        PriorityClass(name="urgent", priority=2000),
        PriorityClass(name="spot", priority=1000, preemptible=True),
        PriorityClass(name="best-effort", priority=0, preemptible=True),
    )
)
POOL = "default"


def node(id: str, *amounts: int, **fields: Any) -> Node:
    """An open node of 4 cores and 8 GiB unless *amounts* say otherwise."""
    return Node(id=id, total=ResourceVector(amounts or (4000, 8192)), **fields)


class Reader:
    """Rows as a round reads them, found by scanning: what a job db must look like to a round."""

    def __init__(self, jobs: Iterable[Job], config: SchedulingConfig = CONFIG) -> None:
        self._jobs = sorted(jobs, key=lambda job: (job.submitted_at, job.id))
        self._priorities = {each.name: each.priority for each in config.priority_classes}

    def get(self, id: str) -> Job | None:
        return next((job for job in self._jobs if job.id == id), None)

    def get_many(self, ids: Iterable[str]) -> list[Job | None]:
        return [self.get(id) for id in ids]

    def gang(self, queue: str, gang_id: str) -> list[Job]:
        return [j for j in self._jobs if j.queue == queue and j.gang and j.gang.id == gang_id]

    def leased(self) -> list[Job]:
        return [job for job in self._jobs if job.state.active]

    def unvalidated(self) -> list[Job]:
        return [job for job in self._jobs if not job.validated]

    def backing_off(self, before: int) -> list[Job]:
        waiting = (job for job in self._jobs if job.state is JobState.BACKING_OFF)
        return [job for job in waiting if job.eligible_at is not None and job.eligible_at <= before]

    def queues(self) -> list[str]:
        return sorted({job.queue for job in self._jobs if job.state is JobState.QUEUED})

    def queued(self, queue: str, pool: str | None = None) -> list[Job]:
        waiting = (
            job
            for job in self._jobs
            if job.queue == queue
            and job.state is JobState.QUEUED
            and (pool is None or pool in job.pools)
        )
        return sorted(waiting, key=self._turn)

    def pairs(self) -> list[tuple[Job | None, Job | None]]:
        """Every job as a difference from nothing."""
        return [(None, job) for job in self._jobs]

    def __contains__(self, id: object) -> bool:
        return any(job.id == id for job in self._jobs)

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(self._jobs)

    def _turn(self, job: Job) -> tuple[int, int, int, str]:
        urgency = self._priorities.get(job.requirements.priority_class, 0)
        return (-urgency, job.priority, job.submitted_at, job.id)


@dataclass
class World:
    """Rows by id, and a clock that a test moves."""

    config: SchedulingConfig = CONFIG
    nodes: dict[str, Node] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    now: int = 0

    # --- rows -------------------------------------------------------------------------------

    def with_nodes(self, *nodes: Node) -> "World":
        self.nodes.update((each.id, each) for each in nodes)
        return self

    def with_queues(self, *names: str, **weights: float) -> "World":
        for name in (*names, *weights):
            self.queues[name] = Queue(name=name, weight=weights.get(name, 1.0))
        return self

    def with_jobs(self, *jobs: Job | Iterable[Job]) -> "World":
        for each in jobs:
            members = [each] if isinstance(each, Job) else each
            self.jobs.update((job.id, job) for job in members)
        return self

    def running(self, job: Job, node_id: str, *, at: int = 0) -> "World":
        """Add *job* with a run on *node_id* that began *at*."""
        class_ = self.config.priority_class(job.requirements.priority_class)
        return self.with_jobs(leased(job, node_id=node_id, at=at, priority=class_.priority))

    def reader(self) -> Reader:
        return Reader(self.jobs.values(), self.config)

    def node_db(self) -> NodeDb:
        db = NodeDb(self.config, self.nodes.values())
        db.advance(self.reader())
        return db

    def job_db(self) -> JobDb:
        db = JobDb(self.config)
        with db.write() as txn:
            txn.upsert_many(self.jobs.values())
        return db

    # --- what happens -----------------------------------------------------------------------

    def round(self, snapshot: Any = None, nodes: NodeDb | None = None) -> RoundResult:
        """What a round decides now; nothing changes."""
        result, _ = run_round(
            self.reader() if snapshot is None else snapshot,
            self.node_db() if nodes is None else nodes,
            self.queues,
            POOL,
            self.config,
            RoundState(),
            self.now,
        )
        return result

    def grant(self, decided: Any) -> None:
        """Make the decisions of a result, or of `Decided`, true."""
        plain = decided if hasattr(decided, "rested") else None
        preempted = (
            [p[0] for p in plain.preempted] if plain else [p.job_id for p in decided.preempted]
        )
        for job_id in preempted:
            self.end_run(job_id, Outcome.PREEMPTED)
        if plain:
            placed = [(m[0], m[2], m[3]) for m in plain.moved]
            started = [each[:3] for each in plain.scheduled]
        else:
            placed = [(m.job_id, m.node_id, m.priority) for m in decided.moved]
            started = [(p.job_id, p.node_id, p.priority) for p in decided.scheduled]
        for job_id, *_ in placed:
            self.end_run(job_id, Outcome.PREEMPTED)
        for job_id, node_id, priority in (*placed, *started):
            self.jobs[job_id] = leased(
                self.jobs[job_id], node_id=node_id, at=self.now, priority=priority
            )

    def end_run(self, job_id: str, outcome: Outcome) -> None:
        """End the active run of a job, which goes back to its queue."""
        job = self.jobs[job_id]
        run = job.runs[-1].replace(ended_at=self.now, outcome=outcome)
        self.jobs[job_id] = job.replace(state=JobState.QUEUED, runs=(*job.runs[:-1], run))

    def mates(self, job_id: str) -> list[Job]:
        """The job and the other members of its gang."""
        job = self.jobs[job_id]
        if job.gang is None:
            return [job]
        return [
            other
            for other in self.jobs.values()
            if other.queue == job.queue and other.gang and other.gang.id == job.gang.id
        ]

    def put_back(self, job_id: str, outcome: Outcome) -> None:
        """A run ends with *outcome*; the other members of its gang are stopped."""
        for mate in self.mates(job_id):
            if mate.active_run is not None:
                self.end_run(mate.id, outcome if mate.id == job_id else Outcome.RETURNED)

    def finish(self, job_id: str) -> None:
        """A job ends for good, and with it its gang."""
        for mate in self.mates(job_id):
            if mate.active_run is not None:
                self.end_run(mate.id, Outcome.SUCCEEDED)
            self.jobs[mate.id] = self.jobs[mate.id].replace(
                state=JobState.SUCCEEDED, ended_at=self.now
            )

    def lose(self, node_id: str) -> None:
        """A node is lost, and with it the runs on it."""
        row = self.nodes[node_id]
        self.nodes[node_id] = replace_node(row, lost_at=self.now)
        for job in list(self.jobs.values()):
            if self.jobs[job.id].node_id == node_id:
                self.put_back(job.id, Outcome.LOST)

    def back(self, node_id: str) -> None:
        self.nodes[node_id] = replace_node(self.nodes[node_id], lost_at=None)

    def forget_ended(self) -> None:
        """Drop the rows of jobs that have ended."""
        self.jobs = {id: job for id, job in self.jobs.items() if not job.state.terminal}


def replace_node(row: Node, **fields: Any) -> Node:
    """The next version of a node's row."""
    kept = {name: getattr(row, name) for name in row.__struct_fields__}
    return Node(**{**kept, "version": row.version + 1, **fields})
