"""All that one round takes, as one value: to keep, to change a little, to run again.

Relies on rows that never change (`Job`, `Node`, `Queue`), never on a node db, which moves on.
Knows no round: who has inputs gives `arguments()` to `run_round`. Serves INV-R7.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol

from msgspec import Struct, structs

from pyresched.config import SchedulingConfig
from pyresched.model import (
    Instant,
    Job,
    JobId,
    JobReader,
    JobState,
    Node,
    Outcome,
    PoolName,
    Queue,
    QueueName,
    Run,
)
from pyresched.nodedb import CROSS_POOL, Binding, NodeDb, NodeFork
from pyresched.scheduling.state import RoundState

__all__ = ["Arguments", "Edited", "QueueReader", "RoundInputs"]

_GRANTED: Final = "granted"  # a run that only the nodes know
_ELSEWHERE: Final = "elsewhere"  # the pool of a guest whose run has ended since


class QueueReader(JobReader, Protocol):
    """What a round asks of the job db: a snapshot, a transaction or a dry run."""

    def queues(self) -> Iterable[QueueName]:
        """The queues that have queued jobs."""

    def queued(self, queue: str, pool: str, /) -> Iterable[Job]:
        """The queued jobs of a queue that may run in the pool, in scheduling order."""


class Arguments(NamedTuple):
    """What `run_round` takes, in its order."""

    snapshot: QueueReader
    nodes: NodeDb
    queues: Mapping[QueueName, Queue]
    pool: str
    config: SchedulingConfig
    state: RoundState
    now: Instant


class RoundInputs(Struct, frozen=True, kw_only=True):
    """The arguments of one round as values, the node db as rows.

    `nodes` are those of every pool, by id. `strays` are jobs whose nodes know better than the
    snapshot, as they do between two pools of one cycle: as the nodes have them, or None where
    the nodes have not heard of a run yet.
    """

    snapshot: QueueReader
    nodes: tuple[Node, ...]
    queues: Mapping[QueueName, Queue]
    pool: PoolName
    config: SchedulingConfig
    state: RoundState
    now: Instant
    strays: Mapping[JobId, Job | None] = {}

    @classmethod
    def of(  # noqa: PLR0917  # as those of `run_round`
        cls,
        snapshot: QueueReader,
        nodes: NodeDb,
        queues: Mapping[QueueName, Queue] | Mapping[str, Queue],
        pool: str,
        config: SchedulingConfig,
        state: RoundState,
        now: Instant,
    ) -> "RoundInputs":
        """Those of a round with these arguments. Raises ConfigError for an unknown pool."""
        return cls(
            snapshot=snapshot,
            nodes=nodes.nodes(),
            queues={QueueName(name): queue for name, queue in queues.items()},
            pool=PoolName(pool),
            config=config,
            state=state,
            now=now,
            strays=_strays(snapshot, nodes.fork(pool), PoolName(pool)),
        )

    def arguments(self) -> Arguments:
        """What `run_round` takes, with a node db of its own."""
        return Arguments(
            self.snapshot,
            self.node_db(),
            self.queues,
            self.pool,
            self.config,
            self.state,
            self.now,
        )

    def node_db(self) -> NodeDb:
        """A new node db that holds what the round's held."""
        nodes = NodeDb(self.config, self.nodes)
        nodes.advance(_Held(self._holders()))
        return nodes

    def jobs(self) -> dict[JobId, Job]:
        """Every job that the round reads, by id: queued here, leased, members of their gangs."""
        found: dict[JobId, Job] = {}
        for queue in sorted(self.snapshot.queues()):
            found.update((job.id, job) for job in self.snapshot.queued(queue, self.pool))
        found.update((job.id, job) for job in self.snapshot.leased())
        gangs = {(job.queue, job.gang.id) for job in found.values() if job.gang is not None}
        for queue, gang in gangs:
            found.update((job.id, job) for job in self.snapshot.gang(queue, gang))
        return dict(sorted(found.items()))

    def with_nodes(self, *changed: Node) -> "RoundInputs":
        """The same with rows of *changed*, new ones too."""
        rows = {node.id: node for node in self.nodes} | {node.id: node for node in changed}
        return structs.replace(self, nodes=tuple(rows[id] for id in sorted(rows)))

    def with_jobs(self, *changed: Job) -> "RoundInputs":
        """The same with rows of *changed*, new ones too."""
        rows = {job.id: job for job in changed}
        strays = {id: job for id, job in self.strays.items() if id not in rows}
        edited = Edited(self.snapshot, rows, self.config)
        return structs.replace(self, snapshot=edited, strays=strays)

    def without_run(self, job: Job) -> "RoundInputs":
        """The same after the run of *job* has ended well, and the job with it."""
        run = job.runs[-1].replace(ended_at=self.now, outcome=Outcome.SUCCEEDED)
        ended = job.replace(state=JobState.SUCCEEDED, runs=(*job.runs[:-1], run), ended_at=self.now)
        return self.with_jobs(ended)

    def _holders(self) -> Iterator[Job]:
        """The jobs as the nodes have them."""
        for job in self.snapshot.leased():
            if job.id not in self.strays:
                yield job
        yield from (job for job in self.strays.values() if job is not None)


class Edited:
    """A reader with other rows in the place of some, found by going over the queues they are in."""

    def __init__(
        self, base: QueueReader, rows: Mapping[JobId, Job], config: SchedulingConfig
    ) -> None:
        self.base: QueueReader = base
        self.rows: Mapping[JobId, Job] = dict(sorted(rows.items()))
        self._priorities = {each.name: each.priority for each in config.priority_classes}
        self._queues = {job.queue for job in self.rows.values()}
        before = base.get_many(self.rows)
        self._queues.update(job.queue for job in before if job is not None)

    def get(self, id: str) -> Job | None:
        """The job, or None."""
        return self.rows.get(JobId(id)) or self.base.get(id)

    def get_many(self, ids: Iterable[str]) -> list[Job | None]:
        """The job or None for each id, in their order."""
        return [self.get(id) for id in ids]

    def gang(self, queue: str, gang_id: str) -> list[Job]:
        """The members of a gang, in submit order and then by id."""
        ours = (
            job
            for job in self.rows.values()
            if job.queue == queue and job.gang is not None and job.gang.id == gang_id
        )
        return sorted((*self._theirs(self.base.gang(queue, gang_id)), *ours), key=_submitted)

    def leased(self) -> list[Job]:
        """Jobs that hold room on a node."""
        ours = (job for job in self.rows.values() if job.state.active)
        return sorted((*self._theirs(self.base.leased()), *ours), key=_submitted)

    def unvalidated(self) -> list[Job]:
        """Jobs that nobody has checked against the nodes yet."""
        ours = (job for job in self.rows.values() if not (job.validated or job.state.terminal))
        return sorted((*self._theirs(self.base.unvalidated()), *ours), key=_submitted)

    def backing_off(self, before: Instant | None = None) -> list[Job]:
        """Jobs that wait and are eligible at *before* or earlier, due first; None: all."""
        ours = (
            job
            for job in self.rows.values()
            if job.state is JobState.BACKING_OFF
            and job.eligible_at is not None
            and (before is None or job.eligible_at <= before)
        )
        found = (*self._theirs(self.base.backing_off(before)), *ours)
        return sorted(found, key=lambda job: (job.eligible_at or 0, *_submitted(job)))

    def queues(self) -> list[QueueName]:
        """The queues that have queued jobs."""
        ours = (job.queue for job in self.rows.values() if job.state is JobState.QUEUED)
        return sorted({*self.base.queues(), *ours})

    def queued(self, queue: str, pool: str) -> Iterable[Job]:
        """The queued jobs of a queue that may run in the pool, in scheduling order."""
        if queue not in self._queues:
            return self.base.queued(queue, pool)
        ours = (
            job
            for job in self.rows.values()
            if job.queue == queue and job.state is JobState.QUEUED and pool in job.pools
        )
        return sorted((*self._theirs(self.base.queued(queue, pool)), *ours), key=self._turn)

    def __contains__(self, id: object) -> bool:
        return id in self.rows or id in self.base

    def __len__(self) -> int:
        return len(self.base) + sum(id not in self.base for id in self.rows)

    def __iter__(self) -> Iterator[Job]:
        return iter(sorted((*self._theirs(self.base), *self.rows.values()), key=_submitted))

    def _theirs(self, jobs: Iterable[Job]) -> Iterator[Job]:
        return (job for job in jobs if job.id not in self.rows)

    def _turn(self, job: Job) -> tuple[int, int, int, str]:
        urgency = self._priorities.get(job.requirements.priority_class, 0)
        return (-urgency, job.priority, job.submitted_at, job.id)


class _Held:
    """Jobs as a difference from nothing."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._jobs = jobs

    def pairs(self) -> list[tuple[Job | None, Job | None]]:
        return [(None, job) for job in self._jobs]


def _submitted(job: Job) -> tuple[int, str]:
    return (job.submitted_at, job.id)


def _strays(snapshot: QueueReader, fork: NodeFork, pool: PoolName) -> dict[JobId, Job | None]:
    """Where what *fork* holds and the runs of *snapshot* differ: as the nodes have it."""
    found: dict[JobId, Job | None] = {}
    agreed: set[JobId] = set()
    here = {node.id for node in fork.nodes}
    for job in snapshot.leased():
        run = job.active_run
        if run is None or run.node_id not in here:
            continue
        held = fork.binding(job.id)
        if held is None:
            found[job.id] = None
        elif held.requirements == job.requirements and _is_of(run, held, pool):
            agreed.add(job.id)
    others = [id for node in fork.nodes for id in fork.bound(node.id) if id not in agreed]
    for id, row in zip(others, snapshot.get_many(others), strict=True):
        held = fork.binding(id)
        if held is not None:
            found[id] = _as_held(id, row, held, pool)
    return dict(sorted(found.items()))


def _is_of(run: Run, held: Binding, pool: PoolName) -> bool:
    """Whether *held* is what the nodes of *pool* make of *run*."""
    guest = held.preemptible and run.pool != pool
    priorities = (run.priority, CROSS_POOL) if guest else (run.priority,)
    return run.node_id == held.node_id and held.priority in priorities


def _as_held(id: JobId, job: Job | None, held: Binding, pool: PoolName) -> Job:
    """A job with one run, of which the nodes of *pool* would make *held*."""
    run = job.runs[-1] if job is not None and job.runs else None
    if run is None or run.node_id != held.node_id:
        run = Run(id=_GRANTED, node_id=held.node_id, pool=pool, leased_at=0)
    if held.priority == CROSS_POOL:
        run = run.replace(pool=run.pool if run.pool != pool else _ELSEWHERE)
    else:
        run = run.replace(pool=pool if held.preemptible else run.pool, priority=held.priority)
    row = job or Job(id=id, queue=_GRANTED, requirements=held.requirements, submitted_at=0)
    return row.replace(
        requirements=held.requirements,
        state=JobState.LEASED,
        runs=(run.replace(ended_at=None, outcome=None),),
        ended_at=None,
    )
