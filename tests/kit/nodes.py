"""Builders of nodes and diffs, and a node db as a plain model: the oracle of its property tests.

The model keeps a list of nodes and a dict of what each job holds; every answer is a scan over
all of it, written from the contract and sharing no code with `pyresched.nodedb`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any

from kit.matching import liking, may_use
from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.model import (
    Intake,
    Job,
    Node,
    NodeId,
    Operator,
    PoolName,
    PriorityClass,
    Requirements,
    Resource,
    ResourceVector,
)

__all__ = ["Held", "ModelNodes", "Pairs", "node", "node_config", "nodes"]

INT64_MAX = 2**63 - 1


def node(id: str = "node-1", *amounts: int, pool: str = "default", **fields: Any) -> Node:
    """A node of *amounts* (8000 and 8192 unless given: 8 cores, 8 GiB); *fields* as `Node` takes them."""
    total = ResourceVector(amounts or (8000, 8192))
    return Node(id=NodeId(id), total=total, pool=PoolName(pool), **fields)


def nodes(count: int, *amounts: int, prefix: str = "node", **fields: Any) -> list[Node]:
    """*count* nodes `node-0000`, `node-0001`, ... alike otherwise."""
    return [node(f"{prefix}-{n:04}", *amounts, **fields) for n in range(count)]


def node_config(
    *priorities: int, preemptible: Iterable[int] = (), width: int = 2
) -> SchedulingConfig:
    """Classes `p0`, `p1000`, ... with these priorities (0 and 1000), and *width* resources.

    Those in *preemptible* are preemptible. The resources are cpu, memory, gpu, ...
    """
    wanted = sorted(set(priorities or (0, 1000)))
    soft = set(preemptible)
    names = ["cpu", "memory", "gpu", *(f"r{n}" for n in range(3, width))][:width]
    return SchedulingConfig(
        resources=tuple(Resource(name) for name in names),
        priority_classes=tuple(
            PriorityClass(name=f"p{p}", priority=p, preemptible=p in soft) for p in wanted
        ),
        default_priority_class=f"p{wanted[0]}",
        pools=(PoolConfig(name=PoolName("default")),),
    )


class Pairs:
    """A diff by shape: jobs that are new, gone or changed."""

    def __init__(self, *pairs: tuple[Job | None, Job | None]) -> None:
        self._pairs = pairs

    @classmethod
    def added(cls, jobs: Iterable[Job]) -> "Pairs":
        """A diff in which all of *jobs* are new."""
        return cls(*((None, job) for job in jobs))

    def pairs(self) -> Sequence[tuple[Job | None, Job | None]]:
        return self._pairs


@dataclass
class Held:
    """What a job holds."""

    node_id: str
    requirements: Requirements
    priority: int
    preemptible: bool
    evicted: bool = False


@dataclass
class ModelNodes:
    """The nodes of one pool and what is bound to them, as plain values."""

    nodes: list[Node]
    levels: tuple[int, ...]
    held: dict[str, Held] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)  # over-allocated from the start

    def copy(self) -> "ModelNodes":
        """A model that shares nothing that either changes."""
        held = {job: Held(**vars(one)) for job, one in self.held.items()}
        return ModelNodes(list(self.nodes), self.levels, held, set(self.closed))

    def close_over_allocated(self) -> None:
        """What a fork does: nodes that hold more than they have take nothing."""
        self.closed = {n.id for n in self.nodes if min(self.left(n, None)) < 0}

    def left(self, node: Node, level: int | None) -> tuple[int, ...]:
        """What is left at *level*; None is the evicted level."""
        counted = [
            one.requirements.resources
            for one in self.held.values()
            if one.node_id == node.id
            and (
                level is None
                or (not one.evicted and (not one.preemptible or one.priority >= level))
            )
        ]
        return tuple(
            total - min(sum(vector[r] for vector in counted), INT64_MAX)
            for r, total in enumerate(node.total)
        )

    def matches(self, node: Node, requirements: Requirements) -> bool:
        """Whether it may go there at all."""
        if node.lost_at is not None or node.intake is not Intake.OPEN or node.id in self.closed:
            return False
        return may_use(node, requirements)

    def peers(self, requirements: Requirements) -> list[Node]:
        """The node of each job of its scope, evicted ones too; of no scope, of each that asks alike."""
        by_id = {n.id: n for n in self.nodes}
        scope = requirements.scope
        return [
            by_id[NodeId(one.node_id)]
            for one in self.held.values()
            if (one.requirements.scope == scope if scope else one.requirements == requirements)
        ]

    def has_place(self, node: Node, requirements: Requirements) -> bool:
        """Whether the distinct constraints leave the node to one more job."""
        peers = self.peers(requirements)
        for each in requirements.constraints:
            if each.operator is Operator.DISTINCT_HOSTS:
                taken = sum(peer.id == node.id for peer in peers)
            else:
                value = node.labels.get(each.label)
                taken = sum(peer.labels.get(each.label) == value for peer in peers)
            if each.limit and taken >= each.limit:
                return False
        return True

    def unspread(self, node: Node, requirements: Requirements) -> Fraction | float:
        """How little the spreads want one more job here: least first."""
        peers = self.peers(requirements)
        wanted = Fraction(0)
        for each in requirements.spread:
            value = node.labels.get(each.label)
            if value is None:
                return float("inf")
            values = {n.labels[each.label] for n in self.nodes if each.label in n.labels}
            share = (
                Fraction(each.percent_of(value), 100)
                if each.targets
                else Fraction(10_000 // len(values), 10_000)
            )
            used = sum(peer.labels.get(each.label) == value for peer in peers)
            wanted += each.weight * (share * (len(peers) + 1) - (used + 1))
        return -wanted

    def seen_levels(self, priority: int | None) -> list[int | None]:
        """The levels that a job of *priority* may take room at, the free one first.

        Those of the classes, and those at which something preemptible was bound.
        """
        if priority is None:
            return [None]
        used = [one.priority for one in self.held.values() if one.preemptible]
        return [None, *sorted({priority, *(at for at in (*self.levels, *used) if at <= priority)})]

    def named(self, level: int | None, priority: int | None) -> int | None:
        """What *level* is called to a job of *priority*: the lowest class that sees as much."""
        if level is None or priority is None:
            return None
        return min(priority, *(at for at in self.levels if at >= level), priority)

    def find(
        self,
        requirements: Requirements,
        priority: int | None,
        *,
        avoid: Mapping[str, int] = {},
        only: Iterable[str] | None = None,
    ) -> tuple[str, int | None] | None:
        """(node id, level) by looking at every node and sorting, or None."""
        for level in self.seen_levels(priority):
            fitting = sorted(
                (
                    avoid.get(n.id, 0),
                    liking(n, requirements),
                    self.unspread(n, requirements),
                    self.left(n, level),
                    n.id,
                )
                for n in self.nodes
                if (only is None or n.id in only)
                and self.matches(n, requirements)
                and self.has_place(n, requirements)
                and all(
                    w <= h for w, h in zip(requirements.resources, self.left(n, level), strict=True)
                )
            )
            if fitting:
                return fitting[0][-1], self.named(level, priority)
        return None

    def place_many(
        self,
        requirements: Requirements,
        count: int,
        priority: int | None,
        *,
        avoid: Mapping[str, int] = {},
    ) -> list[str]:
        """The node of each of up to *count* alike jobs, one by one."""
        trial = self.copy()
        placed = []
        for n in range(count):
            found = trial.find(requirements, priority, avoid=avoid)
            if found is None:
                break
            placed.append(found[0])
            trial.held[f"copy {n}"] = Held(found[0], requirements, priority or 0, preemptible=False)
        return placed

    def victims(
        self, requirements: Requirements, priority: int, candidates: Sequence[str]
    ) -> tuple[str, list[str]] | None:
        """(node id, victims) by trying every set of candidates on every node, or None.

        Best is the set whose dearest (first) victim stands latest, then the smallest, then the
        one latest in the order. Victims count for distinct constraints as if they stayed.
        """
        place = {job: i for i, job in enumerate(candidates)}
        best: tuple[tuple[Any, ...], str, list[str]] | None = None
        free = self.find(requirements, None)
        if free is not None:
            return free[0], []
        for n in self.nodes:
            if not self.matches(n, requirements) or not self.has_place(n, requirements):
                continue
            here = [
                job
                for job in candidates
                if self.held[job].node_id == n.id
                and self.held[job].preemptible
                and self.held[job].priority <= priority
            ]
            for size in range(1, len(here) + 1):
                for chosen in combinations(here, size):
                    trial = self.copy()
                    for job in chosen:
                        del trial.held[job]
                    left = trial.left(n, None)
                    if any(w > h for w, h in zip(requirements.resources, left, strict=True)):
                        continue
                    order = [place[job] for job in chosen]
                    key = (-order[0], size, [-at for at in order])
                    if best is None or key < best[0]:
                        best = (key, n.id, list(chosen))
        return None if best is None else (best[1], best[2])
