"""What a round goes by, apart from its rows, as plain values: read from a configuration by hand.

Shares no code with `pyresched.scheduling`: the oracle of the round, `kit.round_model`, reads these.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from pyresched.config import SchedulingConfig
from pyresched.model import Job, Queue, Toleration, parse_quantity

__all__ = ["Buckets", "Rules", "rules_of"]

SECOND = 1_000_000_000


def nowhere(_: Job) -> list[tuple[int, tuple[Any, ...]]]:
    """No other place to go."""
    return []


@dataclass(frozen=True)
class Rules:
    """Amounts are in steps by resource, limits in jobs or tries; inf and 0 are none."""

    protected_fraction: float = 1.0
    protect_uncapped: bool = False
    prefer_large: bool = False
    lookback: int = 0
    weights: Mapping[str, float] = field(default_factory=dict)
    penalty: Mapping[str, list[int]] = field(default_factory=dict)
    # Where else a job may go, in order: at which priority, tolerating what.
    away_of: Callable[[Job], list[tuple[int, tuple[Any, ...]]]] = nowhere
    home: bool = True
    away: bool = True
    gangs_away: bool = True
    fair_share: bool = True
    urgency: bool = True
    round_fraction: tuple[float, ...] = ()
    class_fraction: Mapping[tuple[str, str], tuple[float, ...]] = field(default_factory=dict)
    tokens: float = math.inf
    burst: float = math.inf
    queue_tokens: Mapping[str, float] = field(default_factory=dict)
    queue_burst: float = math.inf
    preemption_tokens: float = math.inf
    tries: int = 0
    queue_tries: int = 0
    floating: tuple[int | None, ...] = ()  # None: nodes have it
    free_only: bool = False


class Buckets:
    """The tokens of every rate limit: full at first, filled up with time."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[Fraction, int]] = {}

    def left(self, name: str, rate: float | None, burst: int | None, now: int) -> float:
        """How many tokens there are *now*; without a rate there is no end of them."""
        if rate is None:
            return math.inf
        most = Fraction(burst or 0)
        left, at = self._left.get(name, (most, now))
        left = min(most, left + Fraction(rate) * (now - at) / SECOND)
        self._left[name] = (left, now)
        return float(left)

    def take(self, name: str, count: int) -> None:
        """Use up *count* of them, if the limit is one."""
        if name in self._left:
            left, at = self._left[name]
            self._left[name] = (left - count, at)


def rules_of(
    config: SchedulingConfig,
    pool: str,
    queues: Mapping[str, Queue],
    buckets: Buckets | None = None,
    now: int = 0,
) -> Rules:
    """The rules of a round over *pool* at *now*."""
    buckets = buckets or Buckets()
    own = config.pool(pool)
    names = [each.name for each in config.resources]

    def by_resource(fractions: Mapping[str, float]) -> tuple[float, ...]:
        return tuple(fractions.get(name, math.inf) for name in names)

    class_fraction = {}
    for queue in queues.values():
        for each in config.priority_classes:
            merged = dict(each.max_fraction_per_queue)
            merged |= each.max_fraction_per_queue_by_pool.get(pool, {})
            merged |= queue.max_fraction_by_class.get(each.name, {})
            merged |= queue.max_fraction_by_class_by_pool.get(each.name, {}).get(pool, {})
            if merged:
                class_fraction[queue.name, each.name] = by_resource(merged)
    floating: tuple[int | None, ...] = ()
    if any(each.floating for each in config.resources):
        floating = tuple(
            int(parse_quantity(own.floating.get(each.name, 0)) / parse_quantity(each.unit))
            if each.floating
            else None
            for each in config.resources
        )
    protected = own.protected_fraction
    round_fraction = own.max_fraction_to_schedule
    return Rules(
        protected_fraction=config.protected_fraction if protected is None else protected,
        protect_uncapped=own.protect_uncapped,
        prefer_large=config.prefer_large_jobs,
        lookback=config.max_queue_lookback,
        weights={q: own.queue_weights.get(q, queue.weight) for q, queue in queues.items()},
        away_of=lambda job: _away(job, config),
        home=own.place_home,
        away=own.place_away,
        gangs_away=own.place_away and own.place_gangs_away,
        fair_share=own.preempt_by_fair_share,
        urgency=own.preempt_by_urgency,
        round_fraction=by_resource(
            config.max_fraction_to_schedule if round_fraction is None else round_fraction
        ),
        class_fraction=class_fraction,
        tokens=buckets.left("all", config.rate, config.burst, now),
        burst=math.inf if config.rate is None else config.burst or 0,
        queue_tokens={
            q: buckets.left(f"queue {q}", config.queue_rate, config.queue_burst, now)
            for q in queues
        },
        queue_burst=math.inf if config.queue_rate is None else config.queue_burst or 0,
        preemption_tokens=buckets.left(
            f"preemption {pool}", own.preemption_rate, own.preemption_burst, now
        ),
        tries=config.max_tries_per_round,
        queue_tries=config.max_tries_per_queue,
        floating=floating,
    )


def _away(job: Job, config: SchedulingConfig) -> list[tuple[int, tuple[Any, ...]]]:
    class_ = config.priority_class(job.requirements.priority_class)
    found = []
    for entry in class_.away:
        named = [(entry.node_type, ())] if entry.node_type else []
        named += [(each.name, each.when) for each in entry.node_types]
        taints = [
            taint
            for name, when in named
            for node_type in config.node_types
            if node_type.name == name
            and all(_holds(job, condition, config) for condition in (*node_type.when, *when))
            for taint in node_type.taints
        ]
        if taints:
            more = tuple(
                Toleration(each.key, effect=each.effect, exists=True)
                if each.value == "*"
                else Toleration(each.key, each.value, each.effect)
                for each in taints
            )
            found.append((entry.priority, more))
    return found


def _holds(job: Job, condition: Any, config: SchedulingConfig) -> bool:
    at = [each.name for each in config.resources].index(condition.resource)
    asked = job.requirements.resources[at] * parse_quantity(config.resources[at].unit)
    value = parse_quantity(condition.value)
    return {">": asked > value, "<": asked < value, "==": asked == value}[condition.operator]
