"""The submit check: could a job or a gang be placed if nothing else ran?

Relies on bare copies of the node db, where lost, cordoned and full nodes count as open and
empty, and places as a round does: what it refuses, no round over these nodes would place.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from pyresched.config import SchedulingConfig
from pyresched.fairness import DominantResourceFairness
from pyresched.model import (
    Ends,
    Gang,
    GangId,
    Job,
    JobId,
    Node,
    NodeId,
    PoolName,
    QueueName,
    ReasonCode,
    Requirements,
    UnschedulableReason,
)
from pyresched.nodedb import EVICTED, NodeDb, NodeFork, NotFound

__all__ = ["SubmitCheck", "unplaceable"]

_NO_NODES: Final = UnschedulableReason(ReasonCode.NO_NODES, Ends.ROUND)


def unplaceable(
    jobs: Iterable[Job], nodes: NodeDb, config: SchedulingConfig
) -> Mapping[JobId, UnschedulableReason]:
    """The reason by id of each of *jobs* that could not even be placed on the empty cluster.

    Members of a gang that are all in *jobs* are placed together, all or none; so bring gangs
    whole. A job that any of its pools could hold is not in the answer. Keep a `SubmitCheck`
    to ask often.
    """
    return SubmitCheck(nodes, config)(jobs)


class SubmitCheck:
    """`unplaceable` over the nodes of *nodes* as they are at each call; remembers its answers."""

    def __init__(self, nodes: NodeDb, config: SchedulingConfig) -> None:
        self._nodes = nodes
        self._config = config
        self._classes = {each.name for each in config.priority_classes}
        self._rounds = {each.name for each in config.pools}  # no other pool ever has one
        self._pools: dict[PoolName, _EmptyPool] = {}

    def __call__(self, jobs: Iterable[Job]) -> Mapping[JobId, UnschedulableReason]:
        """The reason by id of each of *jobs* that could not be placed, in the order of *jobs*."""
        found: dict[JobId, UnschedulableReason] = {}
        for members in _together(jobs):
            reason = self._reason(members)
            if reason is not None:
                found.update((job.id, reason) for job in members)
        return found

    def _reason(self, members: Sequence[Job]) -> UnschedulableReason | None:
        """Why none of their pools could hold *members*: what the first pool says."""
        first, gang = members[0], members[0].gang
        if first.requirements.priority_class not in self._classes:
            return UnschedulableReason(ReasonCode.UNKNOWN_PRIORITY_CLASS)
        if gang is not None and not _agree(members, gang):
            return UnschedulableReason(
                ReasonCode.GANG_MALFORMED, wanted=gang.cardinality, had=len(members)
            )
        reasons = []
        for name in first.pools:
            reason = self._pool(name).reason(members) if name in self._rounds else _NO_NODES
            if reason is None:
                return None
            reasons.append(reason)
        return reasons[0] if reasons else _NO_NODES

    def _pool(self, name: PoolName) -> "_EmptyPool":
        nodes = self._nodes.nodes(name)
        known = self._pools.get(name)
        # The node db makes a new tuple when a node of the pool comes, goes or changes.
        if known is None or known.source is not nodes:
            fairness = DominantResourceFairness(
                self._nodes.capacity(name), self._config.multipliers(name)
            )
            known = self._pools[name] = _EmptyPool(nodes, self._nodes.bare(name), fairness)
        return known


class _EmptyPool:
    """What one pool could hold, by shape."""

    def __init__(
        self, source: tuple[Node, ...], fork: NodeFork, fairness: DominantResourceFairness
    ) -> None:
        self.source = source  # what *fork* was made from; its own nodes are opened copies
        self.nodes = fork.nodes
        self._fork = fork
        self._fairness = fairness
        self._known: dict[tuple[object, ...], UnschedulableReason | None] = {}

    def reason(self, members: Sequence[Job]) -> UnschedulableReason | None:
        """Why *members* do not fit together, or None if they do."""
        if not self.nodes:
            return _NO_NODES
        gang = members[0].gang
        shapes = tuple(job.requirements for job in members)
        if gang is None:
            return self._remembered(shapes, self._lone, shapes[0])
        for shape in dict.fromkeys(shapes):
            reason = self._remembered((shape,), self._lone, shape)
            if reason is not None:
                return reason
        key = (gang.uniformity, *shapes)
        return self._remembered(key, self._together, shapes, gang.uniformity)

    def _remembered(
        self,
        key: tuple[object, ...],
        answer: Callable[..., UnschedulableReason | None],
        *question: object,
    ) -> UnschedulableReason | None:
        if key not in self._known:
            self._known[key] = answer(*question)
        return self._known[key]

    def _lone(self, shape: Requirements) -> UnschedulableReason | None:
        found = self._fork.find(shape, EVICTED)
        return found.reason if isinstance(found, NotFound) else None

    def _together(
        self, shapes: Sequence[Requirements], uniformity: str
    ) -> UnschedulableReason | None:
        if uniformity:
            values = self._fork.label_values(uniformity)
            node_sets = [
                [node.id for node in self.nodes if node.labels.get(uniformity) == value]
                for value in values
                if value
            ]
            most = max((self._placed(shapes, only) for only in node_sets), default=0)
        elif len(set(shapes)) == 1:
            homes = self._fork.place_many(shapes[0], len(shapes), EVICTED)
            most = sum(count for _, count in homes)
        else:
            most = self._placed(shapes, ())
        if most == len(shapes):
            return None
        return UnschedulableReason(ReasonCode.GANG_EXCEEDS_POOL, wanted=len(shapes), had=most)

    def _placed(self, shapes: Sequence[Requirements], only: Sequence[NodeId]) -> int:
        """How many of *shapes* find a node, the largest first, until one does not."""
        order = sorted(
            shapes,
            key=lambda shape: (
                -self._fairness.unweighted_cost(shape.resources),
                [-amount for amount in shape.resources],
            ),
        )
        with self._fork.attempt() as attempt:
            for n, shape in enumerate(order):
                found = self._fork.find(shape, EVICTED, only=only or None)
                if isinstance(found, NotFound):
                    return n
                attempt.bind_as(f"member {n}", shape, found.node_id, 0, preemptible=False)
        return len(order)


def _together(jobs: Iterable[Job]) -> Iterable[list[Job]]:
    """Each job alone or with the members of its gang, in the order of the first of them."""
    groups: dict[tuple[QueueName, GangId | None, JobId | None], list[Job]] = {}
    for job in jobs:
        key = (job.queue, None, job.id) if job.gang is None else (job.queue, job.gang.id, None)
        groups.setdefault(key, []).append(job)
    return groups.values()


def _agree(members: Sequence[Job], gang: Gang) -> bool:
    """Whether *members* could be those of one gang."""
    first = members[0]
    return len(members) <= gang.cardinality and all(
        job.gang == gang
        and job.pools == first.pools
        and job.requirements.priority_class == first.requirements.priority_class
        for job in members
    )
