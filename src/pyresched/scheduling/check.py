"""The submit check: could a job or a gang be placed if nothing else ran?

Relies on bare copies of the node db, where lost, cordoned and full nodes count as open and
empty, and places as a round does: what it refuses, no round over these nodes would place, nor
would one with other tokens, a longer look-back or a larger budget.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from typing import Final

from msgspec import Struct

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
    Queue,
    QueueName,
    ReasonCode,
    Requirements,
    ResourceVector,
    UnschedulableReason,
)
from pyresched.model.requests import replaced
from pyresched.nodedb import EVICTED, NodeDb, NodeFork, NotFound
from pyresched.scheduling.away import away_variants
from pyresched.scheduling.limits import limits_for
from pyresched.scheduling.state import RoundState

__all__ = ["SubmitCheck", "unplaceable"]

_NO_NODES: Final = UnschedulableReason(ReasonCode.NO_NODES, Ends.ROUND)


def unplaceable(
    jobs: Iterable[Job],
    nodes: NodeDb,
    config: SchedulingConfig,
    queues: Mapping[QueueName, Queue] | None = None,
) -> Mapping[JobId, UnschedulableReason]:
    """The reason by id of each of *jobs* that could not even be placed on the empty cluster.

    Members of a gang that are all in *jobs* are placed together, all or none; so bring gangs
    whole. A job that any of its pools could hold is not in the answer. What a queue that is not
    in *queues* may hold is what its classes say. Keep a `SubmitCheck` to ask often.
    """
    return SubmitCheck(nodes, config, queues)(jobs)


class SubmitCheck:
    """`unplaceable` over *nodes* and *queues* as they are at each call; remembers its answers."""

    def __init__(
        self,
        nodes: NodeDb,
        config: SchedulingConfig,
        queues: Mapping[QueueName, Queue] | None = None,
    ) -> None:
        self._nodes = nodes
        self._config = config
        self._queues: Mapping[QueueName, Queue] = {} if queues is None else queues
        self._classes = {each.name for each in config.priority_classes}
        # Its own nodes, then those where its jobs may be guests; no other pool ever has a round.
        self._near = {each.name: (each.name, *each.away_pools) for each in config.pools}
        self._pools: dict[PoolName, _EmptyPool] = {}

    @property
    def pools(self) -> AbstractSet[PoolName]:
        """The pools whose jobs have any node to go to, of their own pool or as guests."""
        known = frozenset(self._nodes.pools())
        return frozenset(name for name, near in self._near.items() if not known.isdisjoint(near))

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
        if gang is not None:
            if not _agree(members, gang):
                return UnschedulableReason(
                    ReasonCode.GANG_MALFORMED, wanted=gang.cardinality, had=len(members)
                )
            if (reason := self._over_burst(gang)) is not None:
                return reason
        reasons = []
        for name in first.pools:
            reason = _NO_NODES
            if name in self._near:
                reason = self._pool(name).reason(members, self._queues.get(first.queue))
            if reason is None:
                return None
            reasons.append(reason)
        return reasons[0] if reasons else _NO_NODES

    def _over_burst(self, gang: Gang) -> UnschedulableReason | None:
        """Why so many members may never start in one round, or None."""
        for code, burst in (
            (ReasonCode.GANG_EXCEEDS_BURST, self._config.burst),
            (ReasonCode.GANG_EXCEEDS_QUEUE_BURST, self._config.queue_burst),
        ):
            if burst is not None and burst < gang.cardinality:
                return UnschedulableReason(code, wanted=gang.cardinality, had=burst)
        return None

    def _pool(self, name: PoolName) -> "_EmptyPool":
        source = tuple(self._nodes.nodes(each) for each in self._near[name])
        known = self._pools.get(name)
        # The node db makes a new tuple when a node of the pool comes, goes or changes.
        if known is None or any(
            was is not now for was, now in zip(known.source, source, strict=True)
        ):
            forks = [self._nodes.bare(each) for each in self._near[name]]
            capacity = self._config.spec.sum(map(self._nodes.capacity, self._near[name]))
            known = self._pools[name] = _EmptyPool(name, source, forks, capacity, self._config)
        return known


class _Place(Struct, frozen=True):
    """Where to look: nodes, and what to ask of them."""

    fork: NodeFork
    requirements: Requirements


class _EmptyPool:
    """What one pool could hold for whom, by shape and by what the limits of a queue come to."""

    def __init__(
        self,
        name: PoolName,
        source: tuple[tuple[Node, ...], ...],
        forks: Sequence[NodeFork],
        capacity: ResourceVector,
        config: SchedulingConfig,
    ) -> None:
        self.source = source  # what *forks* were made from; their own nodes are opened copies
        self._name = name
        self._config = config
        self._forks = [fork for fork in forks if fork.nodes]
        self._total = capacity + config.floating_total(name)
        self._fairness = DominantResourceFairness(self._total, config.multipliers(name))
        self._limits = limits_for(name, {}, config, RoundState(), 0, self._total)
        # Queues whose limits come to the same share one answer.
        self._allowed_of: dict[QueueName, tuple[Queue | None, _Allowed]] = {}
        self._known: dict[tuple[object, ...], UnschedulableReason | None] = {}

    def reason(self, members: Sequence[Job], queue: Queue | None) -> UnschedulableReason | None:
        """Why *members* do not fit together, or None if they do."""
        if not self._forks:
            return _NO_NODES
        first, gang = members[0], members[0].gang
        allowed = self._allowed(first.queue, queue)
        shapes = tuple(job.requirements for job in members)
        if gang is None:
            return self._remembered((allowed, *shapes), self._lone, allowed, shapes)
        for shape in dict.fromkeys(shapes):
            reason = self._remembered(
                (allowed, "member", shape), self._lone, allowed, (shape,), in_gang=True
            )
            if reason is not None:
                return reason
        return self._remembered(
            (allowed, gang.uniformity, *shapes), self._together, allowed, shapes, gang.uniformity
        )

    def _allowed(self, name: QueueName, queue: Queue | None) -> "_Allowed":
        """What the queue may hold by class; worked out when its row is another."""
        known = self._allowed_of.get(name)
        if known is None or known[0] is not queue:
            asked = {name: Queue(name=name) if queue is None else queue}
            limits = limits_for(self._name, asked, self._config, RoundState(), 0, self._total)
            classes = limits.queues[name].classes if name in limits.queues else {}
            known = self._allowed_of[name] = (queue, tuple(sorted(classes.items())))
        return known[1]

    def _remembered(
        self,
        key: tuple[object, ...],
        answer: Callable[..., UnschedulableReason | None],
        *question: object,
        **options: object,
    ) -> UnschedulableReason | None:
        if key not in self._known:
            self._known[key] = answer(*question, **options)
        return self._known[key]

    def _over_limit(
        self, allowed: "_Allowed", shapes: Sequence[Requirements]
    ) -> UnschedulableReason | None:
        """Which limit of the queue or of the pool *shapes* together exceed, or None."""
        wanted = self._config.spec.sum(shape.resources for shape in shapes)
        name = shapes[0].priority_class
        limit = dict(allowed).get(name)
        for code, most, subject in (
            (ReasonCode.CLASS_LIMIT, limit, name),
            (ReasonCode.FLOATING_RESOURCES, self._limits.floating, ""),
        ):
            at = None if most is None else wanted.first_exceeding(most)
            if most is not None and at is not None:
                resource = self._config.spec.names[at]
                return UnschedulableReason(
                    code, resource=resource, wanted=wanted[at], had=most[at], subject=subject
                )
        return None

    def _lone(
        self, allowed: "_Allowed", shapes: Sequence[Requirements], *, in_gang: bool = False
    ) -> UnschedulableReason | None:
        reason = self._over_limit(allowed, shapes)
        if reason is not None:
            return reason
        for place in self._places(shapes[0], in_gang=in_gang):
            found = place.fork.find(place.requirements, EVICTED)
            if not isinstance(found, NotFound):
                return None
            reason = reason or found.reason
        return reason or UnschedulableReason(ReasonCode.NO_MATCHING_NODE)

    def _together(
        self, allowed: "_Allowed", shapes: Sequence[Requirements], uniformity: str
    ) -> UnschedulableReason | None:
        reason = self._over_limit(allowed, shapes)
        if reason is not None:
            return reason
        places = list(self._places(shapes[0], in_gang=True))
        if uniformity:
            most = 0
            for value in sorted({v for fork in self._forks for v in fork.label_values(uniformity)}):
                most = max(most, self._placed(shapes, uniformity, value) if value else 0)
        elif len(set(shapes)) == 1 and len(places) == 1:
            homes = places[0].fork.place_many(places[0].requirements, len(shapes), EVICTED)
            most = sum(count for _, count in homes)
        else:
            most = self._placed(shapes)
        if most == len(shapes):
            return None
        return UnschedulableReason(ReasonCode.GANG_EXCEEDS_POOL, wanted=len(shapes), had=most)

    def _places(self, shape: Requirements, *, in_gang: bool) -> Iterator[_Place]:
        """Where a round would look for *shape*, in its order: at home first."""
        settings = self._config.pool(self._name)
        asked = [shape] if settings.place_home else []
        if settings.place_away and (settings.place_gangs_away or not in_gang):
            class_ = self._config.priority_class(shape.priority_class)
            asked += [variant for variant, _ in away_variants(shape, class_, self._config)]
        for fork in self._forks:
            for each in asked:
                yield _Place(fork, self._on_nodes(each))

    def _on_nodes(self, shape: Requirements) -> Requirements:
        """What of *shape* a node must have: all but what floats."""
        amounts = self._config.on_nodes(shape.resources)
        if amounts == shape.resources:
            return shape
        return replaced(shape, resources=amounts)

    def _placed(self, shapes: Sequence[Requirements], label: str = "", value: str = "") -> int:
        """How many of *shapes* find a node, the largest first, until one does not."""
        order = sorted(
            shapes,
            key=lambda shape: (
                -self._fairness.unweighted_cost(shape.resources),
                [-amount for amount in shape.resources],
            ),
        )
        only = {fork: _nodes_with(fork, label, value) for fork in self._forks} if label else {}
        with ExitStack() as ends:
            attempts = {fork: ends.enter_context(fork.attempt()) for fork in self._forks}
            for n, shape in enumerate(order):
                for place in self._places(shape, in_gang=True):
                    among = only.get(place.fork)
                    found = place.fork.find(place.requirements, EVICTED, only=among)
                    if not isinstance(found, NotFound):
                        attempts[place.fork].bind_as(
                            f"member {n}", place.requirements, found.node_id, 0, preemptible=False
                        )
                        break
                else:
                    return n
        return len(order)


_Allowed = tuple[tuple[str, ResourceVector], ...]
"""By class that has a limit, what a queue may hold in it."""


def _nodes_with(fork: NodeFork, label: str, value: str) -> list[NodeId]:
    return [node.id for node in fork.nodes if node.labels.get(label) == value]


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
