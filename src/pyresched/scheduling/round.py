"""The round: what passes over one pool come to, as a function of its arguments.

Owns the stages and nothing else: turns, victims and seats are native (`RoundWalk`), shares are
`shares`, limits are `limits`. docs/round.md tells it in pseudo-code. Keeps INV-R1 to INV-R8.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, Final, SupportsIndex

from pyresched._core import JobStore, RoundWalk
from pyresched.config import SchedulingConfig
from pyresched.errors import InputError
from pyresched.model import (
    Instant,
    Move,
    Node,
    Placements,
    PoolName,
    Preemption,
    PreemptionCause,
    PriorityClass,
    Queue,
    QueueCounts,
    QueueName,
    ReasonCode,
    Requirements,
    ResourceVector,
    RoundResult,
    Termination,
    avoided_nodes,
)
from pyresched.nodedb import NodeDb
from pyresched.scheduling.away import away_variants
from pyresched.scheduling.explanation import Explanation, explain_inputs
from pyresched.scheduling.inputs import QueueReader, RoundInputs
from pyresched.scheduling.limits import lagging_nodes, limits_for, spent
from pyresched.scheduling.penalties import by_queue
from pyresched.scheduling.refused import Refusals
from pyresched.scheduling.shares import ShareRule, Standing, constrained_demand
from pyresched.scheduling.state import RoundState

__all__ = ["run_round"]

_SHOWN: Final = 64  # characters of an argument that a message repeats
_MOST_PASSES: Final = 20
_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1


def run_round(  # noqa: PLR0917  # the one signature that every caller has by heart
    snapshot: QueueReader,
    nodes: NodeDb,
    queues: Mapping[QueueName, Queue] | Mapping[str, Queue],
    pool: str,
    config: SchedulingConfig,
    state: RoundState,
    now: Instant,
) -> tuple[RoundResult, RoundState]:
    """What to place and whom to preempt in *pool*. Writes nothing; equal input, equal output.

    *snapshot* is any reader of the job db, *queues* the queues by name, *state* what the last
    round over the pool returned. A job of a queue or class that is not known, or of a queue
    whose weight cannot be used, is refused and hinders nobody. Raises ConfigError for an
    unknown pool, TypeError for an argument of another kind, InputError for a *now* of more than
    64 bits.
    """
    _refuse_other_kinds(snapshot, nodes, queues, pool, config, state, now)
    # 1. Who is entitled to what, and what limits allow now.
    plan = _Plan(
        snapshot=snapshot,
        nodes=nodes,
        queues=queues,
        pool=PoolName(pool),
        config=config,
        state=state,
        now=now,
    )
    # 2. Passes over a copy of the nodes, until one changes nothing.
    walk = plan.walk(gives_way=True)
    rested = walk.decide(most_passes=_MOST_PASSES)
    if not rested:
        # 3. Nobody gives way where that would not come to an end; free room does.
        walk = plan.walk(gives_way=False)
        walk.decide(most_passes=1)
    # 4. The decisions, with a reason for each that was not made.
    counts = walk.counts()
    job_ids, at, priorities, methods = walk.scheduled(snapshot)
    result = RoundResult(
        pool=PoolName(pool),
        scheduled=Placements(job_ids, at, priorities, methods, walk.table.node_ids),
        moved=tuple(
            Move(job_id, run_id, was, node_id, priority, for_job, PreemptionCause(cause))
            for job_id, run_id, was, for_job, cause, node_id, priority in walk.moved()
        ),
        preempted=tuple(
            Preemption(job_id, run_id, was, for_job, PreemptionCause(cause))
            for job_id, run_id, was, for_job, cause in walk.preempted()
        ),
        refused=Refusals(walk.refused(), (*config.spec.names, "jobs")),
        termination=_termination(walk, rested=rested),
        passes=walk.passes,
        queues=tuple(_counts(*each) for each in counts),
        count_shares=partial(plan.rule.figures, plan.standings(walk)),
        explain_job=plan.explaining(),
    )
    started = {queue: placed for queue, _, _, _, placed, *_ in counts if placed}
    return result, spent(pool, config, state, now, started, walk.displaced_runs)


def _counts(  # noqa: PLR0917  # as the walk gives them
    queue: QueueName,
    queued: int,
    looked_at: int,
    tried: int,
    jobs: int,
    gangs: int,
    waiting: int,
    preempted: int,
    first: int,
    last: int,
) -> QueueCounts:
    """How far the round came with *queue*."""
    return QueueCounts(
        queue=queue,
        queued=queued,
        looked_at=looked_at,
        cut_off=0 < looked_at < queued,
        tried=tried,
        scheduled_jobs=jobs,
        scheduled_gangs=gangs,
        waiting=waiting,
        preempted=preempted,
        first_position=None if first < 0 else first,
        last_position=None if last < 0 else last,
    )


class _Plan:
    """What a round reads, and what follows from it before anything is decided."""

    def __init__(  # those of `run_round`
        self,
        *,
        snapshot: QueueReader,
        nodes: NodeDb,
        queues: Mapping[QueueName, Queue] | Mapping[str, Queue],
        pool: PoolName,
        config: SchedulingConfig,
        state: RoundState,
        now: Instant,
    ) -> None:
        self._snapshot = snapshot
        self._nodes = nodes
        self._state = state
        self._queues = {QueueName(name): queue for name, queue in queues.items()}
        self._pool = pool
        self._config = config
        self._now = now
        self._settings = config.pool(pool)
        self._classes = {each.name: each for each in config.priority_classes}
        total = nodes.totals(pool)
        self.rule = ShareRule.of(config, pool, total)
        self._limits = limits_for(
            pool, self._queues, config, state, now, total + config.floating_total(pool)
        )
        self._penalties = by_queue(state.penalties, now)
        self._nothing = ResourceVector.zero(len(total))
        self._counted: dict[QueueName, ResourceVector | None] = {}  # of demands, at first

    def walk(self, *, gives_way: bool) -> RoundWalk:
        """The native part of the round, on a copy of the nodes of its own."""
        config, settings, classes = self._config, self._settings, self._classes
        fork = self._nodes.fork(self._pool)
        walk = RoundWalk(
            fork.table,
            self.rule.fairness,
            {name: (each.priority, each.preemptible) for name, each in classes.items()},
            self._pool,
            now=self._now,
            lookback=config.max_queue_lookback,
            prefer_large=config.prefer_large_jobs,
            avoid_of=avoided_nodes,
            values_of=_values_of(fork.nodes, self.rule),
            members_of=self._snapshot.gang,
            variants_of=_variants_of(config, classes),
            share=gives_way and settings.preempt_by_fair_share,
            urgency=gives_way and settings.preempt_by_urgency,
            home=settings.place_home,
            away=settings.place_away,
            gang_away=settings.place_gangs_away,
        )
        waiting = set(self._snapshot.queues())
        queued = 0
        for name in sorted(waiting.union(self._queues)):
            queue = self._queues.get(name)
            weight = 0.0 if queue is None else _usable(settings.weight_of(queue))
            queued += walk.add_queue(
                name,
                weight,
                self._snapshot.queued(name, self._pool) if name in waiting else (),
                _closed(queue, weight, node_count=len(fork)),
            )
        walk.add_running(self._snapshot.leased())
        if config.max_unacknowledged_runs:
            walk.close_nodes(
                sorted(lagging_nodes(self._nodes.nodes(), self._snapshot.leased(), config))
            )
        self._set_limits(walk)
        # What the walk places is among what is held by class from then on, and still asked for.
        self._counted = {queue: self._constrained(walk, queue) for queue, *_ in walk.standings()}
        if queued:  # else nobody has a turn, whatever the shares
            for name, protected, adjusted in self.rule.claims(self.standings(walk)):
                walk.set_share(name, protected, adjusted, self._penalties.get(name))
        return walk

    def explaining(self) -> Callable[[str, RoundResult], Explanation]:
        """What explains a job from what the round read: rows as they are now, no node db."""
        return partial(
            _explained,
            [self._nodes.nodes(name) for name in self._nodes.pools()],
            snapshot=self._snapshot,
            queues=self._queues,
            pool=self._pool,
            config=self._config,
            state=self._state,
            now=self._now,
        )

    def _set_limits(self, walk: RoundWalk) -> None:
        limits = self._limits
        walk.set_limits(
            tokens=_or_no_end(limits.tokens),
            burst=_or_no_end(limits.burst),
            most=limits.most,
            tries=limits.tries,
            queue_tries=limits.tries_per_queue,
            preemption_tokens=_or_no_end(limits.preemption_tokens),
            floating=limits.floating,
            floats=bytes(resource.floating for resource in self._config.resources),
        )
        for name, own in limits.queues.items():
            walk.set_queue_limits(
                name,
                tokens=_or_no_end(own.tokens),
                burst=_or_no_end(own.burst),
                classes=dict(own.classes),
            )

    def standings(self, walk: RoundWalk) -> list[Standing]:
        """Where each queue that takes part stands now; what it may ask for is as it was at first."""
        return [
            Standing(
                queue=queue,
                weight=weight,
                held=held,
                asked=asked,
                now=now,
                constrained=self._counted[queue],
                penalty=self._penalties.get(queue),
                raw_weight=self._queues[queue].weight,
            )
            for queue, weight, held, asked, now in walk.standings()
        ]

    def _constrained(self, walk: RoundWalk, queue: QueueName) -> ResourceVector | None:
        """What counts of the demand of *queue*; None: all of it."""
        own = self._limits.queues.get(queue)
        if own is None or not own.classes:
            return None
        return constrained_demand(walk.demands_by_class(queue), own.classes, self._nothing)


def _explained(
    rows: Sequence[Sequence[Node]],
    job_id: str,
    result: RoundResult,
    **taken: Any,  # noqa: ANN401 - the fields of `RoundInputs`
) -> Explanation:
    nodes = tuple(sorted(chain(*rows), key=attrgetter("id")))
    inputs = RoundInputs(nodes=nodes, **taken)
    return explain_inputs(job_id, inputs, run_round, result=result)


def _refuse_other_kinds(  # noqa: PLR0917  # as those of `run_round`
    snapshot: object,
    nodes: object,
    queues: object,
    pool: object,
    config: object,
    state: object,
    now: object,
) -> None:
    """Raise TypeError that names the first argument that is not of its kind."""
    if isinstance(snapshot, JobStore):
        raise TypeError(
            f"a round reads one version of the jobs, got {snapshot!r}; pass its snapshot()"
        )
    for name, value, wanted in (
        ("nodes", nodes, NodeDb),
        ("queues", queues, Mapping),
        ("pool", pool, str),
        ("config", config, SchedulingConfig),
        ("state", state, RoundState),
    ):
        if not isinstance(value, wanted):
            what = "mapping of queues by name" if wanted is Mapping else wanted.__name__
            raise TypeError(f"{name} is a {what}, got {_short(value)}")
    assert isinstance(queues, Mapping)
    for name, queue in queues.items():
        if not (isinstance(name, str) and isinstance(queue, Queue)):
            raise TypeError(
                f"queues is a mapping of queues by name, got {_short(queue)} as {_short(name)}"
            )
    if not isinstance(now, SupportsIndex):
        raise TypeError(f"now is an int of ns, got {_short(now)}")
    if not _INT64_MIN <= now.__index__() <= _INT64_MAX:
        raise InputError(f"now is an int64 of ns, got {_short(now)}")


def _short(value: object) -> str:
    """As it is shown, where that is short, else its type."""
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"a {type(value).__name__}"


def _or_no_end(limit: int | None) -> float:
    return math.inf if limit is None else limit


def _usable(weight: float) -> float:
    """*weight*, or 0 for one that cannot be used: such a queue takes no part."""
    return weight if math.isfinite(weight) and weight > 0 else 0.0


def _closed(queue: Queue | None, weight: float, *, node_count: int) -> str | None:
    """Why no job of *queue* may be placed, as a code, or None."""
    if queue is None:
        return ReasonCode.UNKNOWN_QUEUE.value
    if not weight:
        return ReasonCode.INVALID_WEIGHT.value
    if not node_count:
        return ReasonCode.NO_NODES.value
    return ReasonCode.QUEUE_CORDONED.value if queue.cordoned else None


def _values_of(nodes: Sequence[Node], rule: ShareRule) -> Callable[[str], list[list[int]]]:
    """For a label, the indices of the nodes that share each of its values, most capacity first."""

    def values_of(label: str) -> list[list[int]]:
        by_value: dict[str, list[int]] = {}
        for i, node in enumerate(nodes):
            value = node.labels.get(label)
            if value:
                by_value.setdefault(value, []).append(i)
        return [
            by_value[value] for value in sorted(by_value, key=lambda v: (-size(by_value[v]), v))
        ]

    def size(at: Sequence[int]) -> float:
        takes_new = [nodes[i].allocatable for i in at if nodes[i].takes_new_runs]
        return rule.fairness.unweighted_cost(
            sum(takes_new, start=ResourceVector.zero(rule.fairness.width))
        )

    return values_of


def _variants_of(
    config: SchedulingConfig, classes: Mapping[str, PriorityClass]
) -> Callable[[Requirements], Sequence[tuple[Requirements, int]]] | None:
    """Where requirements of each class may go away from home; None where none may."""
    if not any(each.away for each in classes.values()):
        return None
    return lambda wanted: away_variants(wanted, classes[wanted.priority_class], config)


def _termination(walk: RoundWalk, *, rested: bool) -> Termination:
    if not rested:
        return Termination.NO_REST
    ended = walk.ended_by()
    if ended is not None:
        return Termination(ended)
    if not any(queued for _, queued, *_ in walk.counts()):
        return Termination.NOTHING_QUEUED
    return Termination.NO_REMAINING_CANDIDATES if walk.table.count else Termination.NO_NODES
