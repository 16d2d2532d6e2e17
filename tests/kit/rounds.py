"""A small world for tests of the round: nodes, jobs and queues that change from round to round.

`World` holds plain rows and knows no stage; `breaches` says what a round did wrong in it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kit.jobs import leased
from kit.round_model import model_shares
from pyresched.config import SchedulingConfig
from pyresched.jobdb import JobDb
from pyresched.model import (
    Intake,
    Job,
    JobState,
    Node,
    Outcome,
    PriorityClass,
    Queue,
    Requirements,
    ResourceVector,
    RoundResult,
    TaintEffect,
)
from pyresched.nodedb import NodeDb
from pyresched.scheduling import RoundState, run_round

__all__ = ["CONFIG", "Reader", "World", "breaches", "node"]

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


# --- what a round must keep ---------------------------------------------------------------------


def breaches(world: World, result: RoundResult) -> list[str]:
    """Each breach of INV-R1 to INV-R8 in *result*, a round over *world* as it is now."""
    return [
        *_room(world, result),
        *_gangs(world, result),
        *_all_answered(world, result),
        *_who_gave_way(world, result),
        *_protection(world, result),
        *_needless(world, result),
        *_progress(world, result),
    ]


def _amounts(requirements: Requirements) -> tuple[int, ...]:
    return requirements.resources.to_tuple()


def _after(world: World, result: RoundResult) -> dict[str, str]:
    """The node of each job that has one once *result* is true."""
    gone = {each.job_id for each in result.preempted}
    at = {
        job.id: str(job.node_id)
        for job in world.jobs.values()
        if job.active_run is not None and job.id not in gone
    }
    return at | {each.job_id: each.node_id for each in result.scheduled}


def _free(world: World, at: dict[str, str], node_id: str) -> list[int]:
    free = list(world.nodes[node_id].total)
    for job_id, where in at.items():
        if where == node_id:
            for i, amount in enumerate(_amounts(world.jobs[job_id].requirements)):
                free[i] -= amount
    return free


def _may_use(row: Node, requirements: Requirements) -> bool:
    return (
        row.intake is Intake.OPEN
        and row.lost_at is None
        and row.pool == POOL
        and all(row.labels.get(key) == value for key, value in requirements.selector)
        and all(
            any(t.tolerates(taint) for t in requirements.tolerations)
            for taint in row.taints
            if taint.effect is not TaintEffect.PREFER_NO_SCHEDULE
        )
    )


def _room(world: World, result: RoundResult) -> Iterator[str]:
    at = _after(world, result)
    for each in result.scheduled:
        row = world.nodes[each.node_id]
        if not _may_use(row, world.jobs[each.job_id].requirements):
            yield f"INV-R1: {each.job_id} on {row.id}, which it may not use"
        if min(_free(world, at, row.id)) < 0:
            yield f"INV-R1: {row.id} is above its total"


def _gangs(world: World, result: RoundResult) -> Iterator[str]:
    for what, ids in (
        ("placed", {each.job_id for each in result.scheduled}),
        ("preempted", {each.job_id for each in result.preempted}),
    ):
        for job_id in sorted(ids):
            mates = {m.id for m in world.mates(job_id) if not m.state.terminal}
            if not mates <= ids:
                yield f"INV-R2: {job_id} was {what} without {sorted(mates - ids)}"


def _all_answered(world: World, result: RoundResult) -> Iterator[str]:
    scheduled = [each.job_id for each in result.scheduled]
    preempted = [each.job_id for each in result.preempted]
    queued = [
        job.id for job in world.jobs.values() if job.state is JobState.QUEUED and POOL in job.pools
    ]
    answers = Counter([*scheduled, *result.refused])
    for job_id in sorted({*queued, *answers}):
        if answers[job_id] != 1 or job_id not in queued:
            yield f"INV-R3: {job_id} is answered {answers[job_id]} times"
    if len(result.refused) != len(list(result.refused)):
        yield "INV-R3: refusals are miscounted"
    twice = [job_id for job_id, count in Counter([*scheduled, *preempted]).items() if count > 1]
    if twice:
        yield f"INV-R3: {twice} are scheduled or preempted twice"


def _who_gave_way(world: World, result: RoundResult) -> Iterator[str]:
    placed = {each.job_id: each for each in result.scheduled}
    for each in result.preempted:
        job = world.jobs[each.job_id]
        run = job.active_run
        if run is None or (run.id, run.node_id) != (each.run_id, each.node_id):
            yield f"INV-R4: {each.job_id} has no such run"
            continue
        if not world.config.priority_class(job.requirements.priority_class).preemptible:
            yield f"INV-R4: {each.job_id} is not preemptible"
        winner = placed.get(each.for_job_id)
        if winner is None:
            yield f"INV-R6: {each.job_id} gave way to {each.for_job_id}, which was not placed"
        elif run.priority > winner.priority:
            yield f"INV-R4: {each.job_id} is more urgent than {each.for_job_id}"
        elif world.config.priority_class(
            world.jobs[winner.job_id].requirements.priority_class
        ).preemptible:
            yield f"INV-R4: {each.job_id} gave way to {each.for_job_id}, which is preemptible"


def _units(world: World, result: RoundResult) -> list[list[Job]]:
    """The preempted jobs by what went whole, in the order of the decisions."""
    units: dict[tuple[str, str], list[Job]] = {}
    for each in result.preempted:
        job = world.jobs[each.job_id]
        key = (job.queue, f"gang {job.gang.id}" if job.gang else job.id)
        units.setdefault(key, []).append(job)
    return list(units.values())


def _protection(world: World, result: RoundResult) -> Iterator[str]:
    figures = model_shares(
        world.jobs.values(), world.nodes.values(), world.queues, POOL, world.config
    )
    held = {queue: list(each.held) for queue, each in figures.items()}
    for unit in _units(world, result):
        queue = unit[0].queue
        share = figures[queue].cost(held[queue])
        if share <= figures[queue].protected:
            yield (
                f"INV-R5: {queue} lost {[job.id for job in unit]} at a share of {share}; "
                f"{figures[queue].protected} are protected"
            )
        for job in unit:
            for i, amount in enumerate(_amounts(job.requirements)):
                held[queue][i] -= amount


def _needless(world: World, result: RoundResult) -> Iterator[str]:
    at = _after(world, result)
    for unit in _units(world, result):
        back = at | {job.id: str(job.node_id) for job in unit}
        if all(min(_free(world, back, str(job.node_id))) >= 0 for job in unit):
            yield f"INV-R6: {[job.id for job in unit]} could have stayed"


def _progress(world: World, result: RoundResult) -> Iterator[str]:
    at = _after(world, result)
    before = {j.id: str(j.node_id) for j in world.jobs.values() if j.active_run is not None}
    # What held too much when the round began takes nothing in it, whoever leaves.
    over = {id for id in world.nodes if min(_free(world, before, id)) < 0}
    free = {
        row.id: _free(world, at, row.id)
        for row in world.nodes.values()
        if row.pool == POOL and row.lost_at is None and row.id not in over
    }
    for job_id, reason in result.refused.items():
        job = world.jobs[job_id]
        if job.gang is not None or reason.code.value not in (
            "insufficient_resources",
            "exceeds_every_node",
            "no_matching_node",
            "nodes_closed",
        ):
            continue
        for node_id, amounts in free.items():
            wanted = _amounts(job.requirements)
            if _may_use(world.nodes[node_id], job.requirements) and all(
                want <= have for want, have in zip(wanted, amounts, strict=True)
            ):
                yield f"INV-R8: {job_id} waits ({reason.sentence()}) and fits on {node_id}"
