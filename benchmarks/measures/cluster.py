"""Nodes and jobs for the placement lines, as columns of numbers and as what a fork is asked.

Made from numbers alone, so that ours and the rivals place the same jobs on the same nodes and
must come to the same answer. Node i has the id of rank i, so that ties break alike.
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from measures.keys import Keys
from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.model import (
    Job,
    JobState,
    Node,
    NodeId,
    PoolName,
    PriorityClass,
    Requirements,
    Resource,
    ResourceVector,
    Run,
)
from pyresched.nodedb import NodeDb

__all__ = [
    "POOL",
    "Amounts",
    "Arrivals",
    "Cluster",
    "Mismatch",
    "alike",
    "balanced",
    "config",
    "lopsided",
    "nearly_full",
    "opposed",
    "running",
]

POOL = "default"
SHAPES = 50
NO_NODE = -1
RESOURCES = ("gpu", "cpu", "memory", "disk")

Amounts = npt.NDArray[np.int64]


class Mismatch(RuntimeError):
    """Two that should place alike did not."""


def config(levels: int = 1) -> SchedulingConfig:
    """Four resources and *levels* preemptible classes `p0`, `p1`, ... of these priorities."""
    return SchedulingConfig(
        resources=tuple(Resource(name) for name in RESOURCES),
        priority_classes=tuple(
            PriorityClass(name=f"p{level}", priority=level, preemptible=True)
            for level in range(levels)
        ),
        default_priority_class="p0",
        pools=(PoolConfig(name=PoolName(POOL)),),
    )


class Arrivals:
    """Jobs that are new, as the node db is told of them."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._pairs = [(None, job) for job in jobs]

    def pairs(self) -> Sequence[tuple[None, Job]]:
        """(before, after) of each."""
        return self._pairs


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Nodes with *totals*, and jobs of *shapes*: job i asks for `shapes[wanted[i]]`.

    *levels*: job i is of class i modulo that.
    """

    totals: Amounts
    shapes: Amounts
    wanted: npt.NDArray[np.int32]
    levels: int = 1
    spare_levels: int = 0  # classes that no job is of

    @property
    def jobs(self) -> int:
        """How many."""
        return len(self.wanted)

    @cached_property
    def db(self) -> NodeDb:
        """The empty nodes."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that many levels cost: it is what is measured
            return NodeDb(config(self.levels + self.spare_levels), self.nodes())

    def nodes(self) -> list[Node]:
        """The nodes, their ids in the order of their numbers."""
        return [
            Node(id=NodeId(f"node-{number:06}"), total=ResourceVector(total))
            for number, total in enumerate(self.totals.tolist())
        ]

    @cached_property
    def requirements(self) -> list[list[Requirements]]:
        """By level and shape."""
        return [
            [Requirements(ResourceVector(shape), f"p{level}") for shape in self.shapes.tolist()]
            for level in range(self.levels)
        ]

    @cached_property
    def arrivals(self) -> list[Job]:
        """The jobs, queued."""
        by_level, levels = self.requirements, self.levels
        return [
            Job(
                id=id,
                queue="queue",
                requirements=by_level[i % levels][shape],
                submitted_at=i,
                validated=True,
            )
            for i, (id, shape) in enumerate(zip(self.ids, self.wanted.tolist(), strict=True))
        ]

    @cached_property
    def ids(self) -> list[str]:
        """The ids of the jobs."""
        return Keys(self.jobs).fresh(range(self.jobs))

    def numbers(self, placed: Sequence[NodeId | None]) -> npt.NDArray[np.int32]:
        """Node ids as numbers."""
        return np.fromiter(
            (NO_NODE if node_id is None else int(node_id[5:]) for node_id in placed),
            dtype=np.int32,
            count=len(placed),
        )

    @cached_property
    def placed(self) -> list[NodeId | None]:
        """Where ours puts each job."""
        with self.db.fork(POOL).attempt() as attempt:
            return attempt.place(self.arrivals)

    @cached_property
    def node_of(self) -> npt.NDArray[np.int32]:
        """The same as numbers."""
        return self.numbers(self.placed)

    def left_at(self, start: int) -> Amounts:
        """What each node has left when the first *start* jobs are where ours puts them."""
        left = self.totals.copy()
        node_of, wanted = self.node_of[:start], self.wanted[:start]
        there = node_of != NO_NODE
        np.subtract.at(left, node_of[there], self.shapes[wanted[there]])
        if left.min(initial=0) < 0:
            raise Mismatch(f"ours gave away more than a node has, before job {start}")
        return left

    def compare(self, who: str, found: Any, jobs: slice) -> None:
        """Raise Mismatch if *who* puts one of *jobs* elsewhere than ours does."""
        expected = self.node_of[jobs]
        wrong = np.flatnonzero(np.asarray(found) != expected)
        if len(wrong):
            i = int(wrong[0])
            raise Mismatch(
                f"job {i + (jobs.start or 0)}: {who} has node {found[i]}, ours {expected[i]}"
            )


def balanced(nodes: int, jobs: int, **fields: int) -> Cluster:
    """50 small shapes, one in 17 with a GPU, and nodes of four kinds, the last with GPUs.

    All jobs together ask for two thirds of the memory and of the cores. Best fit packs node
    after node until its memory is gone, and leaves it in the way with a part of its cores.
    """
    draw = np.random.default_rng(50)
    shapes = np.stack(
        [
            np.arange(SHAPES) % 20 == 7,
            100 * draw.integers(1, 11, size=SHAPES),
            64 * draw.integers(8, 136, size=SHAPES),
            64 * draw.integers(1, 17, size=SHAPES),
        ],
        axis=1,
    ).astype(np.int64)
    wanted = draw.integers(SHAPES, size=jobs, dtype=np.int32)
    each = shapes[wanted].mean(axis=0) * jobs / nodes
    kind = draw.integers(4, size=nodes)
    times = np.array([[0.58, 0.29, 4.7], [1.16, 1.15, 4.7], [2.33, 2.29, 4.7], [2.33, 2.29, 4.7]])
    totals = np.zeros((nodes, 4), dtype=np.int64)
    totals[:, 1:] = times[kind] * each[1:] + draw.integers([1_600, 4_096, 6_400], size=(nodes, 3))
    totals[:, 0] = np.where(kind == 3, int(np.ceil(each[0] * 4)), 0)
    return Cluster(totals=totals, shapes=shapes, wanted=wanted, **fields)


def lopsided(nodes: int, jobs: int) -> Cluster:
    """Every other job wants much of the cores and little memory, the others the reverse."""
    draw = np.random.default_rng(51)
    much, little = draw.integers(8, 17, size=SHAPES), draw.integers(1, 3, size=SHAPES)
    cores = np.arange(SHAPES) % 2 == 0
    ones = np.ones(SHAPES, dtype=np.int64)
    shapes = np.stack(
        [0 * ones, 100 * np.where(cores, much, little), 128 * np.where(cores, little, much), ones],
        axis=1,
    ).astype(np.int64)
    wanted = draw.integers(SHAPES, size=jobs, dtype=np.int32)
    each = shapes[wanted].sum(axis=0) / nodes / 0.95
    totals = np.tile(np.ceil(each).astype(np.int64), (nodes, 1))
    totals[:, 1:] += draw.integers(16, size=(nodes, 3))
    return Cluster(totals=totals, shapes=shapes, wanted=wanted)


def opposed(nodes: int, jobs: int) -> Cluster:
    """What a node has much of it has little of the rest, and jobs want one of the two.

    Nodes and jobs are spread over all ratios of cores to memory: of the nodes with enough
    cores nearly all lack the memory, which is what a walk in the order of cores runs into.
    """
    draw = np.random.default_rng(52)
    part, share = draw.random(nodes), (np.arange(SHAPES) + 0.5) / SHAPES
    per_node = jobs / nodes
    totals = np.stack(
        [
            np.zeros(nodes),
            1_000 * per_node * part + 1_000,
            1_000 * per_node * (1 - part) + 1_000,
            np.full(nodes, 16 * per_node),
        ],
        axis=1,
    ).astype(np.int64)
    shapes = np.stack(
        [np.zeros(SHAPES), 1_000 * share, 1_000 * (1 - share), np.ones(SHAPES)], axis=1
    ).astype(np.int64)
    wanted = draw.integers(SHAPES, size=jobs, dtype=np.int32)
    return Cluster(totals=totals, shapes=shapes, wanted=wanted)


def alike(nodes: int, jobs: int) -> Cluster:
    """Jobs of one core and 4 GiB that fill equal nodes of 32 cores and 256 GiB to the last core."""
    if jobs > 32 * nodes:
        raise ValueError(f"{jobs} cores wanted, {32 * nodes} there")
    return Cluster(
        totals=np.tile(np.array([[0, 32_000, 262_144, 0]], dtype=np.int64), (nodes, 1)),
        shapes=np.array([[0, 1_000, 4_096, 0]], dtype=np.int64),
        wanted=np.zeros(jobs, dtype=np.int32),
    )


def nearly_full(nodes: int) -> Cluster:
    """Nodes of which a job has all but one core, and as many jobs of one core."""
    cluster = alike(nodes, nodes)
    held = Requirements(ResourceVector((0, 31_000, 31 * 4_096, 0)), "p0")
    cluster.db.advance(
        Arrivals(
            running(f"first-{number:06}", held, f"node-{number:06}") for number in range(nodes)
        )
    )
    return cluster


def running(id: str, asked: Requirements, node_id: str, *, priority: int = 0) -> Job:
    """A job with an active run."""
    run = Run(id=f"{id}/1", node_id=NodeId(node_id), pool=POOL, priority=priority, leased_at=1)
    return Job(
        id=id,
        queue="queue",
        requirements=asked,
        submitted_at=0,
        state=JobState.LEASED,
        runs=(run,),
        validated=True,
    )
