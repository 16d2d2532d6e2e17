"""The round: what one pass over one pool would do, as a function of its arguments.

Owns the stages and nothing else: order and memo are native (`RoundWalk`), shares and victims
are `shares` and `preempt`. docs/round.md tells it in pseudo-code. Keeps INV-R1 to INV-R7.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Final, Protocol

from pyresched._core import JobStore, RoundWalk
from pyresched.config import SchedulingConfig
from pyresched.model import (
    Instant,
    Job,
    JobReader,
    Method,
    Node,
    Placement,
    PoolName,
    Queue,
    QueueName,
    ReasonCode,
    RoundResult,
    Termination,
    avoided_nodes,
)
from pyresched.nodedb import NodeDb
from pyresched.scheduling.preempt import RoomMaker
from pyresched.scheduling.refused import Refusals
from pyresched.scheduling.shares import ShareRule
from pyresched.scheduling.state import RoundState

__all__ = ["QueueReader", "run_round"]

_SHOWN: Final = 64  # characters of an argument that a message repeats
_METHODS: Final[Mapping[str, Method]] = {each.value: each for each in Method}


class QueueReader(JobReader, Protocol):
    """What a round asks of the job db: a snapshot, a transaction or a dry run."""

    def queues(self) -> Iterable[QueueName]:
        """The queues that have queued jobs."""

    def queued(self, queue: str, pool: str, /) -> Iterable[Job]:
        """The queued jobs of a queue that may run in the pool, in scheduling order."""


def run_round(  # noqa: PLR0917  # the one signature that every caller has by heart
    snapshot: QueueReader,
    nodes: NodeDb,
    queues: Mapping[QueueName, Queue] | Mapping[str, Queue],
    pool: str,
    config: SchedulingConfig,
    state: RoundState,
    now: Instant,  # noqa: ARG001  # for what depends on time: penalties, rates
) -> tuple[RoundResult, RoundState]:
    """What to place and whom to preempt in *pool*. Writes nothing; equal input, equal output.

    *snapshot* is any reader of the job db, *queues* the queues by name, *state* what the last
    round over the pool returned. A job of a queue or class that is not known, or of a queue
    whose weight cannot be used, is refused and hinders nobody. Raises ConfigError for an
    unknown pool, TypeError for an argument of another kind.
    """
    _refuse_other_kinds(snapshot, nodes, queues, pool, config, state)
    # 1. A copy of the nodes to decide on, and what an allocation costs in this pool.
    fork = nodes.fork(pool)
    rule = ShareRule(
        nodes.totals(pool),
        config.multipliers(pool),
        protected_fraction=config.protected_fraction,
    )
    walk = RoundWalk(
        fork.table,
        rule.fairness,
        {each.name: (each.priority, each.preemptible) for each in config.priority_classes},
        lookback=config.max_queue_lookback,
        avoid_of=avoided_nodes,
        values_of=_values_of(fork.nodes),
    )
    # 2. Who asks for what, and who holds what.
    waiting = set(snapshot.queues())
    queued = 0
    for name in sorted(waiting.union(map(QueueName, queues))):
        jobs = list(snapshot.queued(name, pool)) if name in waiting else []
        queued += len(jobs)
        queue = queues.get(name)
        weight = 0.0 if queue is None else _usable(queue.weight)
        walk.add_queue(name, weight, jobs, _closed(queue, weight, node_count=len(fork)))
    walk.add_running(snapshot.leased(), pool)
    # 3. Each candidate in its turn: free room, else room that runs above their share give.
    maker = None
    if walk.has_preemptible_runs():
        maker = RoomMaker(walk, rule, members_of=snapshot.gang)
    walk.place(members_of=snapshot.gang, room_maker=maker)
    # 4. What gave way for nothing stays where it is.
    preempted = () if maker is None else maker.preemptions()
    # 5. The decisions, with a reason for each that was not made.
    result = RoundResult(
        pool=PoolName(pool),
        scheduled=tuple(
            Placement(job_id, node_id, priority, _METHODS[method])
            for job_id, node_id, priority, method in walk.placed
        ),
        preempted=preempted,
        refused=Refusals(walk.refused(), (*config.spec.names, "jobs")),
        termination=_termination(queued=queued, node_count=len(fork)),
        count_shares=partial(rule.figures, walk.standings()),
    )
    return result, state


def _refuse_other_kinds(  # noqa: PLR0917  # as those of `run_round`
    snapshot: object, nodes: object, queues: object, pool: object, config: object, state: object
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


def _short(value: object) -> str:
    """As it is shown, where that is short, else its type."""
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"a {type(value).__name__}"


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


def _values_of(nodes: Sequence[Node]) -> Callable[[str], list[list[int]]]:
    """For a label, the indices of the nodes that share each of its values, by value."""

    @cache
    def values_of(label: str) -> list[list[int]]:
        by_value: dict[str, list[int]] = {}
        for i, node in enumerate(nodes):
            value = node.labels.get(label)
            if value:
                by_value.setdefault(value, []).append(i)
        return [by_value[value] for value in sorted(by_value)]

    return values_of


def _termination(*, queued: int, node_count: int) -> Termination:
    if not queued:
        return Termination.NOTHING_QUEUED
    return Termination.NO_REMAINING_CANDIDATES if node_count else Termination.NO_NODES
