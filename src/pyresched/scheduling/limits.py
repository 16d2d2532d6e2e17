"""How much a round may start, take and try: the limits of a configuration in whole numbers.

Decides what each fraction and rate comes to in one pool at one time, and what a round used of
it; the walk asks. Relies on `buckets` for what is left of a rate.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from msgspec import Struct, structs

from pyresched.config import SchedulingConfig
from pyresched.durations import INT64_MAX
from pyresched.model import (
    ExecutorName,
    Instant,
    Job,
    JobState,
    Node,
    NodeId,
    Queue,
    QueueName,
    ReasonCode,
    ResourceVector,
    RoundResult,
)
from pyresched.scheduling.buckets import Bucket, Rate, next_token, rate_of, taken, tokens
from pyresched.scheduling.state import RateState, RoundState

__all__ = ["QueueLimits", "RoundLimits", "lagging_nodes", "limits_for", "look_again", "spent"]

_NO_LIMIT: Final = INT64_MAX


class QueueLimits(Struct, frozen=True, kw_only=True):
    """What one queue may start and hold.

    `tokens` are the jobs that may start in this round, None: no limit; `burst` the most that
    ever could at once. `classes` says by class what the jobs of the queue may hold in it, the
    largest number where there is no limit; a class without any is not there.
    """

    tokens: int | None = None
    burst: int | None = None
    classes: Mapping[str, ResourceVector] = {}


class RoundLimits(Struct, frozen=True, kw_only=True):
    """What one round may do; a queue that is not in `queues` has no limits of its own.

    Of what has started anew `most` may be passed by one candidate, not by two. `floating` is
    what the pool has of each floating resource (of others: the largest number). `tries` and
    `tries_per_queue` count candidates; 0 is no limit. Of `preemption_tokens` each run that
    gives way to fair share costs one, and below one none does.
    """

    tokens: int | None = None
    burst: int | None = None
    most: ResourceVector | None = None
    tries: int = 0
    tries_per_queue: int = 0
    preemption_tokens: int | None = None
    floating: ResourceVector | None = None
    queues: Mapping[QueueName, QueueLimits] = {}


def limits_for(  # noqa: PLR0917  # in the order in which `run_round` has them
    pool: str,
    queues: Mapping[QueueName, Queue],
    config: SchedulingConfig,
    state: RoundState,
    now: Instant,
    total: ResourceVector,
) -> RoundLimits:
    """The limits of a round at *now* over *pool*, which has *total* with what floats in it.

    Fractions are of *total*, rounded down; what rates allow is counted once, at *now*. Limits
    of a queue on classes or resources that are not configured count for nothing. Raises
    ConfigError for an unknown pool.
    """
    own = config.pool(pool)
    overall = rate_of(config.rate, config.burst)
    preemption = rate_of(own.preemption_rate, own.preemption_burst)
    fractions = config.fractions_to_schedule(pool)
    return RoundLimits(
        tokens=None if overall is None else tokens(state.rates.all, overall, now),
        burst=None if overall is None else overall.burst,
        most=_part(total, fractions, config) if fractions else None,
        tries=config.max_tries_per_round,
        tries_per_queue=config.max_tries_per_queue,
        preemption_tokens=(
            None if preemption is None else tokens(state.preemption, preemption, now)
        ),
        floating=_floating(pool, config),
        queues=_queue_limits(pool, queues, config, state.rates, now, total),
    )


def spent(  # noqa: PLR0917  # as `limits_for`
    pool: str,
    config: SchedulingConfig,
    state: RoundState,
    now: Instant,
    scheduled: Mapping[QueueName, int],
    victims: int,
) -> RoundState:
    """*state* after a round at *now* started so many jobs of each queue and preempted *victims*.

    The victims are those of fair share. Buckets that have filled up are dropped, and one of
    which nothing was taken stays as it is, so that a round that does nothing changes nothing.
    """
    own = config.pool(pool)
    overall = rate_of(config.rate, config.burst)
    each = rate_of(config.queue_rate, config.queue_burst)
    preemption = rate_of(own.preemption_rate, own.preemption_burst)
    started = sum(scheduled.values())
    buckets: dict[QueueName, Bucket] = {}
    if each is not None:
        known = state.rates.queues
        used = {name for name, count in scheduled.items() if count}
        for name in sorted(used.union(known)):
            left = taken(known.get(name), each, now, scheduled.get(name, 0))
            if left is not None:
                buckets[name] = left
    return structs.replace(
        state,
        rates=RateState(
            all=None if overall is None else taken(state.rates.all, overall, now, started),
            queues=buckets,
        ),
        preemption=(
            None if preemption is None else taken(state.preemption, preemption, now, victims)
        ),
    )


def look_again(
    result: RoundResult, config: SchedulingConfig, state: RoundState, now: Instant
) -> Instant | None:
    """When time alone may let start what limits kept from starting in *result*; None: never.

    *state* is what that round at *now* returned. A limit on one round asks for another one at
    once if this one changed something; a rate asks for one when it allows one more.
    """
    if not result.refused:
        return None
    codes = {ReasonCode(code) for code in result.refused_by_code()}
    if result and codes & _OF_A_ROUND:
        return now
    own = config.pool(result.pool)
    asked: list[tuple[Bucket | None, Rate | None]] = []
    if codes & _OF_ALL_QUEUES:
        asked.append((state.rates.all, rate_of(config.rate, config.burst)))
    if codes & _OF_A_QUEUE:
        each = rate_of(config.queue_rate, config.queue_burst)
        asked += [(bucket, each) for bucket in state.rates.queues.values()]
    preemption = rate_of(own.preemption_rate, own.preemption_burst)
    if preemption is not None and tokens(state.preemption, preemption, now) < 1:
        asked.append((state.preemption, preemption))
    times = [next_token(bucket, rate, now) for bucket, rate in asked if rate is not None]
    return min((time for time in times if time is not None), default=None)


_OF_A_ROUND: Final = frozenset(
    {
        ReasonCode.ROUND_LIMIT,
        ReasonCode.ROUND_BUDGET,
        ReasonCode.QUEUE_BUDGET,
        ReasonCode.PAST_LOOKBACK,
    }
)
_OF_ALL_QUEUES: Final = frozenset({ReasonCode.RATE_LIMIT, ReasonCode.GANG_RATE_LIMIT})
_OF_A_QUEUE: Final = frozenset({ReasonCode.QUEUE_RATE_LIMIT, ReasonCode.GANG_QUEUE_RATE_LIMIT})


def lagging_nodes(
    nodes: Iterable[Node], jobs: Iterable[Job], config: SchedulingConfig
) -> frozenset[NodeId]:
    """The *nodes* of executors with too many leases among *jobs* that they have not taken up.

    Both of all pools, since an executor may have nodes in several. Nothing new goes there.
    """
    most = config.max_unacknowledged_runs
    if not most:
        return frozenset()
    executor_of = {node.id: node.executor for node in nodes}
    open_leases: dict[ExecutorName, int] = {}
    for job in jobs:
        if job.state is not JobState.LEASED or job.node_id is None:
            continue
        executor = executor_of.get(job.node_id)
        if executor is not None:
            open_leases[executor] = open_leases.get(executor, 0) + 1
    return frozenset(
        node_id for node_id, executor in executor_of.items() if open_leases.get(executor, 0) > most
    )


def _queue_limits(  # noqa: PLR0917  # as `limits_for`
    pool: str,
    queues: Mapping[QueueName, Queue],
    config: SchedulingConfig,
    rates: RateState,
    now: Instant,
    total: ResourceVector,
) -> dict[QueueName, QueueLimits]:
    """The limits of each of *queues* that has any; queues with the same share one value."""
    each = rate_of(config.queue_rate, config.queue_burst)
    limited = partial(_class_limits, pool, config=config, total=total)
    common = limited(None)
    full = QueueLimits(
        tokens=None if each is None else each.burst,
        burst=None if each is None else each.burst,
        classes=common,
    )
    limits: dict[QueueName, QueueLimits] = {}
    for name, queue in queues.items():
        has_own = queue.max_fraction_by_class or queue.max_fraction_by_class_by_pool
        classes = limited(queue) if has_own else common
        bucket = rates.queues.get(name)
        if each is not None and bucket is not None:
            left = tokens(bucket, each, now)
            limits[name] = QueueLimits(tokens=left, burst=each.burst, classes=classes)
        elif has_own:
            limits[name] = structs.replace(full, classes=classes)
        elif each is not None or common:
            limits[name] = full
    return limits


def _class_limits(
    pool: str, queue: Queue | None, *, config: SchedulingConfig, total: ResourceVector
) -> dict[str, ResourceVector]:
    """What the jobs of *queue* may hold in each class that has a limit, the closest word last."""
    limits = {}
    for each in config.priority_classes:
        fractions = dict(each.max_fraction_per_queue)
        fractions |= each.max_fraction_per_queue_by_pool.get(pool, {})
        if queue is not None:
            fractions |= queue.max_fraction_by_class.get(each.name, {})
            by_pool = queue.max_fraction_by_class_by_pool.get(each.name, {})
            fractions |= by_pool.get(pool, {})
        if not fractions.keys().isdisjoint(config.spec.names):
            limits[each.name] = _part(total, fractions, config)
    return limits


def _part(
    total: ResourceVector, fractions: Mapping[str, float], config: SchedulingConfig
) -> ResourceVector:
    """The *fractions* of *total*, rounded down; no limit for a resource without one.

    The product is that of doubles: 0.3 of 10 is 3 and a third of 96 is 32, as it was meant.
    """
    parts = []
    for name, amount in zip(config.spec.names, total, strict=True):
        fraction = fractions.get(name)
        if fraction is None:
            parts.append(_NO_LIMIT)
        elif fraction == 1:
            parts.append(amount)
        else:
            product = amount * fraction
            parts.append(int(product) if product < _NO_LIMIT else _NO_LIMIT)
    return ResourceVector(parts)


def _floating(pool: str, config: SchedulingConfig) -> ResourceVector | None:
    """What *pool* has of floating resources, or None if there are none at all."""
    if not config.has_floating:
        return None
    has = config.floating_total(pool)
    return ResourceVector(
        [
            amount if resource.floating else _NO_LIMIT
            for resource, amount in zip(config.resources, has, strict=True)
        ]
    )
