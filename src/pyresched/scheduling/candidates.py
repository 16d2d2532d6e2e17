"""What might start a job that was refused for a reason: the changes that are worth a trial.

Owns which changes go with which reason. Nothing here is believed: `Trials` runs the round.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from pyresched.model import Instant, Job, Node, ReasonCode, ResourceVector, Taint
from pyresched.scheduling.buckets import Bucket, Rate, next_token, rate_of
from pyresched.scheduling.nearest import Vicinity
from pyresched.scheduling.remedies import PLACES, Change, ChangeKind
from pyresched.scheduling.trials import Trials

__all__ = ["search"]

_NEAR: Final = 3  # nodes, or changes of one kind, that are tried
_LOOKED_AT: Final = 12  # nodes on which a job is looked for that might end
_HEAVIEST: Final = 20  # doublings of the weight that a queue has
_WEIGHTS: Final = 64  # weights that are told apart in each doubling
_MOST_TIMES: Final = 1024  # as often the request as a node may grow
_LONGEST_WAIT: Final = 16  # tokens that are waited for
_INT31: Final = 2**31 - 1
_MOST_ADDED: Final = 2**60
_STATES: Final[Mapping[ReasonCode, str]] = {
    ReasonCode.NODE_CORDONED: "cordoned",
    ReasonCode.NODE_DRAINING: "draining",
    ReasonCode.NODE_LOST: "lost",
    ReasonCode.NODE_DISCONNECTED: "out of reach",
}


def search(trials: Trials) -> None:
    """Try what the reason of the refusal suggests; `trials.found` has it in order of size."""
    code = trials.reason.code
    own = _OWN.get(code)
    if own is not None:
        own(trials)
    if code in _PLACING:
        _preemption_rate(trials)
        trials.try_each(_otherwise(trials))
        trials.try_each(_nodes_opened(trials))
        trials.try_each(_asking_less(trials))
        _more_room(trials)
        trials.try_each(_ends(trials))
    if code in _BY_TURNS and len(trials.inputs.queues) > 1:
        _weight(trials)
    trials.found.sort(key=lambda change: change.size)


# --- what the job asks --------------------------------------------------------------------------


def _otherwise(trials: Trials) -> Iterator[Change]:
    """What would open a node to it by one word: tolerations, selector, constraints, a name."""
    found: dict[tuple[object, ...], Change] = {}
    for near in trials.outlook.nodes:
        # The nodes are in order, so the first of each kind is the nearest.
        if len(near.faults) == 1:
            for change in _undoing(near, trials.job):
                found.setdefault(_what(change), change)
    if trials.reason.code is ReasonCode.TOO_CROWDED:
        for each in trials.outlook.asked.constraints:
            if each.distinct:
                change = Change(kind=ChangeKind.DROP_CONSTRAINT, name=str(each))
                found.setdefault(_what(change), change)
    counts: dict[ChangeKind, int] = {}
    for change in found.values():
        counts[change.kind] = counts.get(change.kind, 0) + 1
        if counts[change.kind] <= _NEAR:
            yield change


def _asking_less(trials: Trials) -> Iterator[Change]:
    """As much less as its nearest open node lacks, if something of the request is left."""
    if trials.job.gang is not None:
        return
    wanted = trials.outlook.wanted
    for near in _usable(trials):
        lacks = near.lacks
        if lacks and all(amount < wanted.get(name, 0) for name, amount in lacks.items()):
            extent = max(amount / wanted[name] for name, amount in lacks.items())
            yield Change(kind=ChangeKind.ASK_LESS, amounts=dict(lacks), extent=extent)
            return


def _what(change: Change) -> tuple[object, ...]:
    """Changes for two nodes that are the same for the job; labels are of a node."""
    node = change.node_id if change.kind is ChangeKind.ADD_LABEL else ""
    return (change.kind, node, change.name, change.value, change.taint)


def _undoing(near: Vicinity, job: Job) -> Iterable[Change]:
    """What the job, or the node's labels, could say for the one fault of a node to go."""
    fault, node = near.faults[0], near.node
    match fault.code:
        case ReasonCode.UNTOLERATED_TAINT:
            return [Change(kind=ChangeKind.TOLERATE, taint=_taint(node, fault.subject))]
        case ReasonCode.LABEL_MISSING | ReasonCode.LABEL_DIFFERS:
            label, value = fault.subject, fault.expected
            added = Change(kind=ChangeKind.ADD_LABEL, node_id=node.id, name=label, value=value)
            if (label, value) not in job.requirements.selector:  # its gang is to share it
                return [added] if value else []
            return [Change(kind=ChangeKind.DROP_SELECTOR, name=label, value=value), added]
        case ReasonCode.CONSTRAINT_NOT_MET:
            return [Change(kind=ChangeKind.DROP_CONSTRAINT, name=fault.subject)]
        case ReasonCode.AFFINITY_NOT_MET:
            return [Change(kind=ChangeKind.DROP_AFFINITY)]
        case ReasonCode.NODE_NOT_NAMED if job.requirements.nodes:
            return [Change(kind=ChangeKind.NAME_NODE, node_id=node.id)]
        case _:
            return []


def _taint(node: Node, subject: str) -> Taint:
    return next(
        taint
        for taint in node.taints
        if f"{taint.key}={taint.value}:{taint.effect.value}" == subject
    )


# --- nodes --------------------------------------------------------------------------------------


def _usable(trials: Trials) -> list[Vicinity]:
    """The nearest of the nodes that the job may use."""
    return [near for near in trials.outlook.nodes if not near.faults][:_LOOKED_AT]


def _nodes_opened(trials: Trials) -> Iterator[Change]:
    """Nodes that only their own state closes to it, the nearest ones."""
    closed = [
        near
        for near in trials.outlook.nodes
        if len(near.faults) == 1 and near.faults[0].code in _STATES
    ]
    for near in closed[:_NEAR]:
        state = _STATES[near.faults[0].code]
        yield Change(kind=ChangeKind.OPEN_NODE, node_id=near.node.id, value=state)


def _more_room(trials: Trials) -> None:
    """What a near node lacks; more of it where others that go first would take that."""
    for near in _usable(trials)[:_NEAR]:
        if not near.lacks:
            continue
        change = _adding(near, dict(near.lacks))
        if trials.starts(change):
            trials.found.append(change)
            return
        wanted = {name: amount for name, amount in trials.outlook.wanted.items() if amount}
        if near.node.max_jobs is not None:
            wanted[PLACES] = len(trials.members)
        before = len(trials.found)
        free = trials.outlook.free(near.node.id)
        trials.least(partial(_growing, near, wanted, free), 0, _MOST_TIMES)
        if len(trials.found) > before:
            return


def _growing(
    near: Vicinity, wanted: Mapping[str, int], free: Mapping[str, int], times: int
) -> Change:
    """What the node lacks and so many times the request besides, where that is not free there."""
    amounts = dict(near.lacks)
    for name, amount in wanted.items():
        spare = 0 if name in near.lacks else max(free.get(name, amount) - amount, 0)
        amounts[name] = near.lacks.get(name, 0) + times * amount - spare
    return _adding(
        near, {name: min(amount, _MOST_ADDED) for name, amount in amounts.items() if amount > 0}
    )


def _adding(near: Vicinity, amounts: dict[str, int]) -> Change:
    return Change(
        kind=ChangeKind.MORE_ROOM,
        node_id=near.node.id,
        amounts=amounts,
        extent=sum(amounts.values()) / max(sum(near.node.total), 1),
    )


def _ends(trials: Trials) -> Iterator[Change]:
    """On each of the nearest nodes the first of its jobs that holds all that is missing."""
    inputs = trials.inputs
    pools = {inputs.pool, *inputs.config.pool(inputs.pool).away_pools}
    total = inputs.config.spec.sum(node.total for node in inputs.nodes if node.pool in pools)
    given = 0
    for near in _usable(trials):
        for other in trials.outlook.holders(near.node.id):
            if _covers(other, near, inputs.config.spec.names):
                yield Change(
                    kind=ChangeKind.END_JOB,
                    job_id=other.id,
                    node_id=near.node.id,
                    extent=_part(other.requirements.resources, total),
                )
                given += 1
                break
        if given == _NEAR:
            return


def _covers(other: Job, near: Vicinity, names: Iterable[str]) -> bool:
    """Whether the end of *other* frees what is missing on its node."""
    held = dict(zip(names, other.requirements.resources, strict=True)) | {PLACES: 1}
    return all(held[name] >= amount for name, amount in near.lacks.items())


def _part(amounts: ResourceVector, total: ResourceVector) -> float:
    """The largest share of any resource."""
    return max((a / t for a, t in zip(amounts, total, strict=True) if t), default=0.0)


def _new_node(trials: Trials) -> None:
    amounts = {name: amount for name, amount in trials.outlook.wanted.items() if amount}
    trials.try_each([Change(kind=ChangeKind.NEW_NODE, amounts=amounts)])


# --- the queue and the gang ---------------------------------------------------------------------


def _weight(trials: Trials) -> None:
    """The smallest weight that starts it, to a hundredth, where the largest does."""
    inputs = trials.inputs
    queue = inputs.queues.get(trials.job.queue)
    if queue is None:
        return
    now = inputs.config.pool(inputs.pool).weight_of(queue)

    def weighing(step: int) -> Change:
        weight = float(f"{now * 2 ** (step / _WEIGHTS):.3g}")
        extent = weight / now - 1
        return Change(kind=ChangeKind.WEIGHT, name=queue.name, number=weight, extent=extent)

    trials.least(weighing, 0, _HEAVIEST * _WEIGHTS)


def _of_queue(kind: ChangeKind, trials: Trials) -> None:
    trials.try_each([Change(kind=kind, name=trials.job.queue)])


def _usable_weight(trials: Trials) -> None:
    trials.try_each([Change(kind=ChangeKind.WEIGHT, name=trials.job.queue, number=1.0)])


def _gang_comes(trials: Trials) -> None:
    missing = max(trials.reason.wanted - trials.reason.had, 1)
    name = trials.job.gang.id if trials.job.gang is not None else ""
    kind = ChangeKind.COMPLETE_GANG
    trials.try_each([Change(kind=kind, name=name, number=missing, extent=missing)])


def _gang_agrees(trials: Trials) -> None:
    name = trials.job.gang.id if trials.job.gang is not None else ""
    trials.try_each([Change(kind=ChangeKind.AGREE, name=name)])


def _known_class(trials: Trials) -> None:
    name = trials.inputs.config.default_priority_class
    trials.try_each([Change(kind=ChangeKind.KNOWN_CLASS, name=name)])


# --- limits -------------------------------------------------------------------------------------


def _limit(key: str, now: float, value: float) -> Change:
    extent = value / max(now, 1e-9) - 1
    return Change(kind=ChangeKind.LIMIT, name=key, number=value, extent=extent)


def _lookback(trials: Trials) -> None:
    now = trials.inputs.config.max_queue_lookback
    trials.try_each([_limit("max_queue_lookback", now, trials.position)])


def _tries(key: str, trials: Trials) -> None:
    """The smallest budget that reaches it."""
    inputs = trials.inputs
    now = getattr(inputs.config, key)
    queued = sum(
        1 for name in inputs.snapshot.queues() for _ in inputs.snapshot.queued(name, inputs.pool)
    )
    trials.least(partial(_limit, key, now), now, min(queued, _INT31))


def _rate(key: str, trials: Trials) -> None:
    """Until the rate allows it, from token to token; a larger burst where it was full."""
    config, rates = trials.inputs.config, trials.inputs.state.rates
    name = trials.job.queue
    bucket = rates.all if key == "burst" else rates.queues.get(name)
    per_second = config.rate if key == "burst" else config.queue_rate
    burst = getattr(config, key)
    rate = rate_of(per_second, burst)
    _first(trials, _waits(bucket, rate, trials.inputs.now))
    if burst is not None:
        trials.least(partial(_limit, key, burst), burst, min(burst * 64 + 1024, _INT31))


def _preemption_rate(trials: Trials) -> None:
    """Until fair share may take runs for it, from token to token, if it may not take all now."""
    inputs = trials.inputs
    settings = inputs.config.pool(inputs.pool)
    rate = rate_of(settings.preemption_rate, settings.preemption_burst)
    waits = _waits(inputs.state.preemption, rate, inputs.now)
    if waits and trials.starts(waits[-1]):
        _first(trials, waits)


def _first(trials: Trials, changes: Iterable[Change]) -> None:
    """Keep the first of *changes* that starts the job."""
    for change in changes:
        if trials.starts(change):
            trials.found.append(change)
            return


def _waits(bucket: Bucket | None, rate: Rate | None, now: Instant) -> list[Change]:
    """Until *bucket* holds a token more, two more, and so on until it is full."""
    found: list[Change] = []
    at = None if rate is None else next_token(bucket, rate, now)
    while rate is not None and at is not None and len(found) < _LONGEST_WAIT:
        wait = at - now
        found.append(Change(kind=ChangeKind.WAIT, number=wait, extent=wait / 1e9))
        at = next_token(bucket, rate, at)
    return found


def _burst(key: str, trials: Trials) -> None:
    now = getattr(trials.inputs.config, key)
    trials.try_each([_limit(key, now or 1, len(trials.members))])


def _round_fraction(trials: Trials) -> None:
    """The smallest part of the pool that a round may give out, in hundredths."""
    inputs, name = trials.inputs, trials.reason.resource
    fractions = inputs.config.fractions_to_schedule(inputs.pool)
    if name not in fractions:
        return
    key, now = f"max_fraction_to_schedule.{name}", fractions[name]

    def allowing(hundredths: int) -> Change:
        return _limit(key, max(now, 0.01), hundredths / 100)

    trials.least(allowing, math.floor(now * 100), max(math.ceil(now * 100), 100) + 1)


def _class_fraction(trials: Trials) -> None:
    """What its queue would hold in its class with it, as a part of what the pool has."""
    inputs, reason, queue = trials.inputs, trials.reason, trials.job.queue
    total = trials.nodes.totals(inputs.pool) + inputs.config.floating_total(inputs.pool)
    of = dict(zip(inputs.config.spec.names, total, strict=True)).get(reason.resource, 0)
    if not of or queue not in inputs.queues:
        return
    fraction = reason.wanted / of
    while int(of * fraction) < reason.wanted:
        fraction = math.nextafter(fraction, math.inf)
    change = Change(
        kind=ChangeKind.CLASS_LIMIT,
        name=queue,
        value=f"{trials.job.requirements.priority_class}/{reason.resource}",
        number=fraction,
        extent=reason.wanted / max(reason.had, 1) - 1,
    )
    trials.try_each([change])


def _floating(trials: Trials) -> None:
    """What is missing of a floating resource."""
    reason = trials.reason
    missing = max(reason.wanted - reason.had, 1)
    amounts = {reason.resource: missing}
    extent = missing / max(reason.had, 1)
    trials.try_each([Change(kind=ChangeKind.FLOATING, amounts=amounts, extent=extent)])


_OWN: Final[Mapping[ReasonCode, Callable[[Trials], None]]] = {
    ReasonCode.GANG_INCOMPLETE: _gang_comes,
    ReasonCode.GANG_MALFORMED: _gang_agrees,
    ReasonCode.QUEUE_CORDONED: partial(_of_queue, ChangeKind.UNCORDON_QUEUE),
    ReasonCode.UNKNOWN_QUEUE: partial(_of_queue, ChangeKind.MAKE_QUEUE),
    ReasonCode.INVALID_WEIGHT: _usable_weight,
    ReasonCode.UNKNOWN_PRIORITY_CLASS: _known_class,
    ReasonCode.NO_NODES: _new_node,
    ReasonCode.PAST_LOOKBACK: _lookback,
    ReasonCode.ROUND_LIMIT: _round_fraction,
    ReasonCode.RATE_LIMIT: partial(_rate, "burst"),
    ReasonCode.GANG_RATE_LIMIT: partial(_rate, "burst"),
    ReasonCode.QUEUE_RATE_LIMIT: partial(_rate, "queue_burst"),
    ReasonCode.GANG_QUEUE_RATE_LIMIT: partial(_rate, "queue_burst"),
    ReasonCode.GANG_EXCEEDS_BURST: partial(_burst, "burst"),
    ReasonCode.GANG_EXCEEDS_QUEUE_BURST: partial(_burst, "queue_burst"),
    ReasonCode.ROUND_BUDGET: partial(_tries, "max_tries_per_round"),
    ReasonCode.QUEUE_BUDGET: partial(_tries, "max_tries_per_queue"),
    ReasonCode.CLASS_LIMIT: _class_fraction,
    ReasonCode.FLOATING_RESOURCES: _floating,
}
_PLACING: Final = frozenset(
    {
        *(ReasonCode.INSUFFICIENT_RESOURCES, ReasonCode.EXCEEDS_EVERY_NODE),
        *(ReasonCode.NO_MATCHING_NODE, ReasonCode.NODES_CLOSED, ReasonCode.TOO_CROWDED),
        *(ReasonCode.GANG_DOES_NOT_FIT, ReasonCode.GANG_EXCEEDS_POOL),
    }
)
# What a queue is spared that has its turn earlier, or more that is its own.
_BY_TURNS: Final = frozenset(
    {
        *(ReasonCode.INSUFFICIENT_RESOURCES, ReasonCode.GANG_DOES_NOT_FIT, ReasonCode.TOO_CROWDED),
        *(ReasonCode.ROUND_LIMIT, ReasonCode.RATE_LIMIT, ReasonCode.GANG_RATE_LIMIT),
        *(ReasonCode.ROUND_BUDGET, ReasonCode.FLOATING_RESOURCES),
    }
)
