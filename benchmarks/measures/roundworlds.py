"""Clusters that rounds are measured on: jobs loaded as columns, runs leased natively.

Made from numbers alone. Four resources, two classes, nodes of 32 cores, 256 GiB and 1,000 GiB of
disk, of which every fourth has 8 GPUs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from measures.cluster import POOL, RESOURCES
from measures.keys import ID_LENGTH, Keys
from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.jobdb import Diff, JobDb, Snapshot
from pyresched.model import (
    Gang,
    Job,
    Node,
    NodeId,
    PoolName,
    PriorityClass,
    Queue,
    QueueName,
    Requirements,
    Resource,
    ResourceVector,
)
from pyresched.nodedb import NodeDb

__all__ = ["CONFIG", "FIRST_RUN", "World", "crowd", "empty", "gangs", "one_share", "uneven"]

CORES = 32
NODE = (0, CORES * 1_000, 256 * 1_024, 1_000)
GPU_NODE = (8, *NODE[1:])
RACK = "rack"
FIRST_RUN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
CONFIG = SchedulingConfig(
    resources=tuple(Resource(name) for name in RESOURCES),
    priority_classes=(
        PriorityClass(name="steady", priority=1_000),
        PriorityClass(name="spare", priority=0, preemptible=True),
    ),
    default_priority_class="steady",
    pools=(PoolConfig(name=PoolName(POOL)),),
)

Codes = npt.NDArray[np.int32]


class Running:
    """What of a diff is on nodes: a node db need not look at the rest."""

    def __init__(self, diff: Diff) -> None:
        self._pairs = [pair for pair in diff.pairs() if pair[1].active_run]

    def pairs(self) -> Sequence[tuple[Job | None, Job]]:
        """(before, after) of each job that runs."""
        return self._pairs


@dataclass(frozen=True, kw_only=True)
class World:
    """Nodes and jobs: job i is of queue `queue_of[i]` and asks for `shapes[shape_of[i]]`.

    The first `running` jobs run, job i on node i modulo the nodes.
    """

    node_count: int
    queue_count: int
    shapes: Sequence[Requirements]
    queue_of: Codes
    shape_of: Codes
    running: int = 0
    gang_of: Codes | None = None
    gang_size: int = 0
    racks: int = 0
    seen: dict[str, tuple[int, ...]] = field(default_factory=dict)  # what rounds came to

    @property
    def jobs(self) -> int:
        """How many, running ones included."""
        return len(self.shape_of)

    @cached_property
    def ids(self) -> Any:
        """The ids of the jobs, as bytes of fixed width."""
        return np.array(Keys(self.jobs).fresh(range(self.jobs)), dtype=f"S{ID_LENGTH}")

    @cached_property
    def queues(self) -> dict[QueueName, Queue]:
        """Of weight 1, by name."""
        names = [QueueName(f"queue-{n:04}") for n in range(self.queue_count)]
        return {name: Queue(name=name) for name in names}

    @cached_property
    def node_rows(self) -> list[Node]:
        """The nodes, their ids in the order of their numbers."""
        return [
            Node(
                id=NodeId(f"node-{n:06}"),
                total=ResourceVector(NODE if n % 4 else GPU_NODE),
                labels={RACK: f"rack-{n % self.racks:03}"} if self.racks else {},
            )
            for n in range(self.node_count)
        ]

    def db(self) -> JobDb:
        """A new job db with all of it."""
        return self._filled(JobDb(CONFIG))

    def _filled(self, db: JobDb) -> JobDb:
        with db.write() as txn:
            txn.upsert_columns(
                ids=self.ids,
                submitted_at=np.arange(self.jobs) * 1_000,
                queue=(self.queue_of, list(self.queues)),
                requirements=(self.shape_of, self.shapes),
                gang=None if self.gang_of is None else (self.gang_of, self._gangs),
                validated=True,
            )
        if self.running:
            nodes = np.arange(self.running, dtype=np.int32) % self.node_count
            with db.write() as txn:
                txn.lease_many(
                    self.ids[: self.running],
                    run_ids=FIRST_RUN,
                    nodes=(nodes, [node.id for node in self.node_rows]),
                    pool=POOL,
                    priority=self._priorities[: self.running],
                    leased_at=1,
                )
        return db

    @cached_property
    def _versions(self) -> tuple[Snapshot, Snapshot]:
        db = JobDb(CONFIG)
        empty = db.snapshot()
        return self._filled(db).snapshot(), empty

    @property
    def snapshot(self) -> Snapshot:
        """The jobs of one such db."""
        return self._versions[0]

    @cached_property
    def nodes(self) -> NodeDb:
        """The nodes with what runs there."""
        db = NodeDb(CONFIG, self.node_rows)
        if self.running:
            db.advance(Running(self.snapshot.diff(self._versions[1])))
        return db

    @property
    def _gangs(self) -> list[Gang]:
        assert self.gang_of is not None
        return [
            Gang(f"gang-{n}", self.gang_size, RACK if self.racks else "")
            for n in range(int(self.gang_of.max()) + 1)
        ]

    @property
    def _priorities(self) -> npt.NDArray[np.int64]:
        by_shape = [CONFIG.priority_class(each.priority_class).priority for each in self.shapes]
        return np.array(by_shape, dtype=np.int64)[self.shape_of]


def empty(nodes: int, jobs: int, queues: int, *, a_node: int = 100) -> World:
    """Nothing runs; jobs of 50 shapes of both classes, of which so many fill a node, or nearly."""
    draw = np.random.default_rng(60)
    cores = 2_000 // a_node * draw.integers(1, 32, size=50)
    memory = 6_400 // a_node * draw.integers(8, 60, size=50)
    shapes = [
        _shape(
            "steady" if n % 2 else "spare",
            cores=int(cores[n]),
            memory=int(memory[n]),
            gpus=int(n == 7),
        )
        for n in range(50)
    ]
    wanted = draw.integers(50, size=jobs, dtype=np.int32)
    # A GPU is for few.
    wanted[(wanted == 7) & (np.arange(jobs) % 50 > 0)] = 8
    return World(
        node_count=nodes,
        queue_count=queues,
        shapes=shapes,
        queue_of=draw.integers(queues, size=jobs, dtype=np.int32),
        shape_of=wanted,
    )


def uneven(nodes: int, queues: int, *, queued: int) -> World:
    """Full of preemptible jobs of one core: half of the queues run a tenth more than their share,
    the others a tenth less; each has *queued* jobs more.
    """
    running = CORES * nodes
    ends = np.cumsum(np.where(np.arange(queues) % 2, 1.1, 0.9)) / queues
    owners = np.searchsorted(ends, (np.arange(running) + 0.5) / running).astype(np.int32)
    owners = np.random.default_rng(61).permutation(owners)
    waiting = np.arange(queued * queues, dtype=np.int32) % queues
    return World(
        node_count=nodes,
        queue_count=queues,
        shapes=[_shape("spare", cores=1_000, memory=4_096)],
        queue_of=np.concatenate([owners, waiting]),
        shape_of=np.zeros(running + len(waiting), dtype=np.int32),
        running=running,
    )


def crowd(nodes: int, jobs: int, queues: int, *, shapes: int) -> World:
    """Each node has a job that leaves half a core, and each of *jobs* of so many shapes wants
    more than that.
    """
    draw = np.random.default_rng(62)
    made = [_shape("steady", cores=NODE[1] - 500, memory=1_024)]
    made += [
        _shape("steady", cores=501 + n, memory=int(64 * draw.integers(1, 60)))
        for n in range(shapes)
    ]
    return World(
        node_count=nodes,
        queue_count=queues,
        shapes=made,
        queue_of=draw.integers(queues, size=nodes + jobs, dtype=np.int32),
        shape_of=np.concatenate(
            [
                np.zeros(nodes, dtype=np.int32),
                1 + draw.integers(shapes, size=jobs, dtype=np.int32),
            ]
        ),
        running=nodes,
    )


def gangs(nodes: int, count: int, *, size: int, racks: int, together: bool = True) -> World:
    """*count* gangs of *size* jobs of one core, each to be in one of so many racks; or as many
    jobs, each for itself.
    """
    gang_of = np.repeat(np.arange(count, dtype=np.int32), size)
    return World(
        node_count=nodes,
        queue_count=10,
        shapes=[_shape("steady", cores=1_000, memory=4_096)],
        queue_of=gang_of % 10,
        shape_of=np.zeros(count * size, dtype=np.int32),
        gang_of=gang_of if together else None,
        gang_size=size,
        racks=racks,
    )


def one_share(world: World) -> SchedulingConfig:
    """A configuration under which no queue of *world* is above its share."""
    return SchedulingConfig(
        resources=CONFIG.resources,
        priority_classes=CONFIG.priority_classes,
        default_priority_class=CONFIG.default_priority_class,
        pools=CONFIG.pools,
        protected_fraction=float(world.queue_count),
    )


def _shape(class_name: str, *, cores: int, memory: int, gpus: int = 0) -> Requirements:
    return Requirements(ResourceVector((gpus, cores, memory, 0)), class_name)
