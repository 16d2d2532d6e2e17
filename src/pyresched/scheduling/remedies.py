"""Changes that may start a job: one value for each, what it says, and the round with it made.

Owns what each kind of change is and how large. Whether it helps is for `trials` to find out.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from fractions import Fraction
from typing import Any, Final

from msgspec import Struct, structs

from pyresched.config import SchedulingConfig
from pyresched.model import (
    Gang,
    Intake,
    Job,
    JobState,
    Node,
    Outcome,
    PoolName,
    Queue,
    Requirements,
    Resource,
    ResourceSpec,
    ResourceVector,
    Taint,
    Toleration,
    format_duration,
    parse_quantity,
)
from pyresched.scheduling.inputs import RoundInputs

__all__ = ["PLACES", "Change", "ChangeKind", "amounts_text", "asking", "made", "mates", "readable"]

PLACES: Final = "jobs"
"""In `Change.amounts`: places on a node that limits how many jobs hold it."""


class ChangeKind(StrEnum):
    """What is changed, in the order of whose business it is; `Change.size` has the tiers."""

    # Others come, or time passes.
    WAIT = "wait"
    COMPLETE_GANG = "complete_gang"
    # The job asks otherwise.
    TOLERATE = "tolerate"
    DROP_SELECTOR = "drop_selector"
    DROP_CONSTRAINT = "drop_constraint"
    DROP_AFFINITY = "drop_affinity"
    NAME_NODE = "name_node"
    KNOWN_CLASS = "known_class"
    AGREE = "agree"
    ASK_LESS = "ask_less"
    # A setting.
    MAKE_QUEUE = "make_queue"
    UNCORDON_QUEUE = "uncordon_queue"
    WEIGHT = "weight"
    LIMIT = "limit"
    CLASS_LIMIT = "class_limit"
    FLOATING = "floating"
    # A node.
    OPEN_NODE = "open_node"
    ADD_LABEL = "add_label"
    MORE_ROOM = "more_room"
    NEW_NODE = "new_node"
    # Somebody else's run.
    END_JOB = "end_job"


_TIERS: Final = (
    ("wait", "complete_gang"),
    (
        *("tolerate", "drop_selector", "drop_constraint", "drop_affinity", "name_node"),
        *("known_class", "agree", "ask_less"),
    ),
    ("make_queue", "uncordon_queue", "weight", "limit", "class_limit", "floating"),
    ("open_node", "add_label", "more_room", "new_node"),
    ("end_job",),
)
_TIER_OF: Final = {kind: tier for tier, kinds in enumerate(_TIERS) for kind in kinds}


class Change(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change to what a round takes.

    `node_id`, `job_id`, `name` (of a queue, a label, a resource or a key of the configuration)
    and `taint` say of what; `value`, `number` and `amounts` (by resource, in steps) what it
    becomes or how much is added. `extent` says how much of what there is that comes to.
    """

    kind: ChangeKind
    node_id: str = ""
    job_id: str = ""
    name: str = ""
    value: str = ""
    number: float | int = 0
    taint: Taint | None = None
    amounts: dict[str, int] = {}
    extent: float = 0.0

    @property
    def size(self) -> tuple[int, float, str, str, str, str]:
        """What orders changes, the smallest first.

        First whose business it is: time and others of its gang, the job's own, a setting's, a
        node's, another job's. Then `extent`: seconds to wait, members to come; the part of a
        request, of a node, of the pool; the growth of a weight or a limit over 1; 0 for a word
        more or less. Then names.
        """
        return (
            *(_TIER_OF[self.kind.value], self.extent, self.kind.value),
            *(self.node_id, self.job_id, self.name),
        )

    def sentence(self, spec: ResourceSpec) -> str:
        """For people, with amounts in the units of *spec*. Never parsed."""
        return _SENTENCES[self.kind](self, amounts_text(self.amounts, spec))

    def to_dict(self, spec: ResourceSpec) -> dict[str, object]:
        """The fields that say something, and the sentence, as plain values."""
        plain: dict[str, object] = {"kind": self.kind.value}
        for field in ("node_id", "job_id", "name", "value", "number", "amounts"):
            if value := getattr(self, field):
                plain[field] = value
        if self.taint is not None:
            plain["taint"] = f"{self.taint.key}={self.taint.value}:{self.taint.effect.value}"
        return plain | {"tier": _TIER_OF[self.kind.value], "sentence": self.sentence(spec)}


def _counted(count: float, noun: str) -> str:
    return f"{count:g} {noun}{'' if count == 1 else 's'}"


_SENTENCES: Final[Mapping[ChangeKind, Callable[[Change, str], str]]] = {
    ChangeKind.WAIT: lambda c, _: f"wait {format_duration(int(c.number))}",
    ChangeKind.COMPLETE_GANG: lambda c, _: (
        f"queue {_counted(c.number, 'member')} more of gang {c.name!r} here"
    ),
    ChangeKind.TOLERATE: lambda c, _: (
        f"tolerate the taint {c.taint.key}={c.taint.value}:{c.taint.effect.value}"
        if c.taint is not None
        else ""
    ),
    ChangeKind.DROP_SELECTOR: lambda c, _: f"drop {c.name}={c.value} from its selector",
    ChangeKind.DROP_CONSTRAINT: lambda c, _: f"drop the constraint {c.name}",
    ChangeKind.DROP_AFFINITY: lambda *_: "drop its affinity",
    ChangeKind.NAME_NODE: lambda c, _: f"name node {c.node_id!r} among those it may use",
    ChangeKind.KNOWN_CLASS: lambda c, _: f"put it into priority class {c.name!r}",
    ChangeKind.AGREE: lambda c, _: (
        f"let all members of gang {c.name!r} agree with it in class, pools, cardinality and label"
    ),
    ChangeKind.ASK_LESS: lambda _, amounts: f"ask for {amounts} less",
    ChangeKind.MAKE_QUEUE: lambda c, _: f"make queue {c.name!r}, with weight 1",
    ChangeKind.UNCORDON_QUEUE: lambda c, _: f"uncordon queue {c.name!r}",
    ChangeKind.WEIGHT: lambda c, _: f"give queue {c.name!r} the weight {c.number:g}",
    ChangeKind.LIMIT: lambda c, _: f"set {c.name} to {c.number:g}",
    ChangeKind.CLASS_LIMIT: lambda c, _: (
        f"let queue {c.name!r} hold {c.number:.6g} of the pool's {c.value.partition('/')[2]} in "
        f"class {c.value.partition('/')[0]!r}"
    ),
    ChangeKind.FLOATING: lambda _, amounts: f"give the pool {amounts} more",
    ChangeKind.OPEN_NODE: lambda c, _: f"open node {c.node_id!r}, which is {c.value}",
    ChangeKind.ADD_LABEL: lambda c, _: f"label node {c.node_id!r} with {c.name}={c.value}",
    ChangeKind.MORE_ROOM: lambda c, amounts: f"{amounts} more on node {c.node_id!r}",
    ChangeKind.NEW_NODE: lambda _, amounts: f"add a node with {amounts} to the pool",
    ChangeKind.END_JOB: lambda c, _: f"the end of job {c.job_id!r} on node {c.node_id!r}",
}


def amounts_text(amounts: Mapping[str, int], spec: ResourceSpec) -> str:
    """*amounts* by resource, in steps, as people would write them: `1.5 cpu, 4Gi memory`."""
    parts = [
        f"{readable(resource, amounts[resource.name])} {resource.name}"
        for resource in spec.resources
        if amounts.get(resource.name)
    ]
    if places := amounts.get(PLACES, 0):
        parts.append(_counted(places, "place") + " for jobs")
    return ", ".join(parts)


def readable(resource: Resource, amount: int) -> str:
    """*amount* steps in the unit that people would use: `1.5`, `500m`, `4Gi`."""
    value = amount * parse_quantity(resource.unit)
    suffixes = _BINARY if resource.unit.endswith("i") else _PLAIN
    for suffix, size in suffixes:
        if abs(value) >= size:
            return f"{_decimal(value / size)}{suffix}"
    return _decimal(value)


_BINARY: Final = tuple((f"{s}i", Fraction(1024**n)) for n, s in reversed([*enumerate("KMGTPE", 1)]))
_PLAIN: Final = (("G", Fraction(10**9)), ("M", Fraction(10**6)))


def _decimal(value: Fraction) -> str:
    """Exact where three digits after the point suffice, else rounded up to them."""
    thousandths = -(-value.numerator * 1000 // value.denominator)
    return f"{thousandths / 1000:.3f}".rstrip("0").rstrip(".")


# --- made ---------------------------------------------------------------------------------------


def mates(inputs: RoundInputs, job: Job) -> list[Job]:
    """*job*, or all members of its gang that have not ended."""
    if job.gang is None:
        return [job]
    found = inputs.snapshot.gang(job.queue, job.gang.id)
    return [each for each in found if not each.state.terminal]


def made(change: Change, inputs: RoundInputs, job: Job) -> RoundInputs:
    """*inputs* with *change* made for *job*."""
    return _MADE[change.kind](change, inputs, job)


def asking(asked: Requirements, **changes: object) -> Requirements:
    """*asked* with other fields."""
    fields: dict[str, Any] = {name: getattr(asked, name) for name in _ASKED}
    return Requirements(**{**fields, **changes})


_ASKED: Final = (
    *("resources", "priority_class", "selector", "tolerations", "constraints", "affinity"),
    *("preferences", "spread", "scope", "nodes"),
)


def _asking(
    inputs: RoundInputs, jobs: Iterable[Job], edit: Callable[[Requirements], Mapping[str, object]]
) -> RoundInputs:
    """With other requirements for *jobs*: what *edit* says in place of what there is."""
    changed = (
        job.replace(requirements=asking(job.requirements, **edit(job.requirements))) for job in jobs
    )
    return inputs.with_jobs(*changed)


def _tolerate(change: Change, inputs: RoundInputs, job: Job) -> RoundInputs:
    taint = change.taint
    assert taint is not None
    added = Toleration(taint.key, taint.value, taint.effect)
    return _asking(
        inputs, mates(inputs, job), lambda asked: {"tolerations": (*asked.tolerations, added)}
    )


def _drop_selector(change: Change, inputs: RoundInputs, job: Job) -> RoundInputs:
    def edit(asked: Requirements) -> Mapping[str, object]:
        return {"selector": tuple(each for each in asked.selector if each[0] != change.name)}

    return _asking(inputs, mates(inputs, job), edit)


def _drop_constraint(change: Change, inputs: RoundInputs, job: Job) -> RoundInputs:
    def edit(asked: Requirements) -> Mapping[str, object]:
        return {
            "constraints": tuple(each for each in asked.constraints if str(each) != change.name)
        }

    return _asking(inputs, mates(inputs, job), edit)


def _drop_affinity(_: Change, inputs: RoundInputs, job: Job) -> RoundInputs:
    return _asking(inputs, mates(inputs, job), lambda _: {"affinity": ()})


def _name_node(change: Change, inputs: RoundInputs, job: Job) -> RoundInputs:
    def edit(asked: Requirements) -> Mapping[str, object]:
        return {"nodes": (*asked.nodes, change.node_id)} if asked.nodes else {}

    return _asking(inputs, mates(inputs, job), edit)


def _ask_less(change: Change, inputs: RoundInputs, job: Job) -> RoundInputs:
    less = _vector(change.amounts, inputs.config.spec)
    return _asking(
        inputs, [job], lambda asked: {"resources": (asked.resources - less).floor_at_zero()}
    )


def _known_class(change: Change, inputs: RoundInputs, job: Job) -> RoundInputs:
    return _asking(inputs, mates(inputs, job), lambda _: {"priority_class": change.name})


def _agree(_: Change, inputs: RoundInputs, job: Job) -> RoundInputs:
    gang = job.gang
    assert gang is not None
    members = mates(inputs, job)
    like = Gang(gang.id, max(len(members), 2), gang.uniformity)
    inputs = inputs.with_jobs(*(each.replace(gang=like, pools=job.pools) for each in members))
    class_ = job.requirements.priority_class
    return _asking(inputs, mates(inputs, job), lambda _: {"priority_class": class_})


def _complete_gang(_: Change, inputs: RoundInputs, job: Job) -> RoundInputs:
    """Members that there are come here; those that there are not are made like *job*."""
    gang = job.gang
    assert gang is not None
    every = inputs.snapshot.gang(job.queue, gang.id)
    rows = [
        _queued_again(each, inputs).replace(pools=job.pools)
        for each in every
        if not each.state.terminal
        and (each.state is not JobState.QUEUED or inputs.pool not in each.pools)
    ]
    taken = {each.id for each in every}
    for n in range(max(0, gang.cardinality - len(every))):
        id = f"{job.id}+{n + 1}"
        while id in taken or id in inputs.snapshot:
            id += "+"
        rows.append(job.replace(id=id, runs=(), tracker=None, state=JobState.QUEUED))
    return inputs.with_jobs(*rows)


def _queued_again(job: Job, inputs: RoundInputs) -> Job:
    runs = job.runs
    if job.active_run is not None:
        ended = runs[-1].replace(ended_at=inputs.now, outcome=Outcome.RETURNED)
        runs = (*runs[:-1], ended)
    return job.replace(state=JobState.QUEUED, runs=runs)


def _make_queue(_: Change, inputs: RoundInputs, job: Job) -> RoundInputs:
    return _with_queue(inputs, Queue(name=job.queue))


def _uncordon_queue(_: Change, inputs: RoundInputs, job: Job) -> RoundInputs:
    return _with_queue(inputs, structs.replace(inputs.queues[job.queue], cordoned=False))


def _weight(change: Change, inputs: RoundInputs, job: Job) -> RoundInputs:
    weight = float(change.number)
    own = inputs.config.pool(inputs.pool).queue_weights
    if job.queue in own:
        return _with_pool(inputs, queue_weights={**own, job.queue: weight})
    return _with_queue(inputs, structs.replace(inputs.queues[job.queue], weight=weight))


def _with_queue(inputs: RoundInputs, queue: Queue) -> RoundInputs:
    return structs.replace(inputs, queues={**inputs.queues, queue.name: queue})


def _with_pool(inputs: RoundInputs, **fields: object) -> RoundInputs:
    pools = tuple(
        structs.replace(pool, **fields) if pool.name == inputs.pool else pool
        for pool in inputs.config.pools
    )
    return structs.replace(inputs, config=structs.replace(inputs.config, pools=pools))


def _limit(change: Change, inputs: RoundInputs, _job: Job) -> RoundInputs:
    key, _, resource = change.name.partition(".")
    config = inputs.config
    if not resource:
        return structs.replace(inputs, config=_config(config, key, int(change.number)))
    own = config.pool(inputs.pool).max_fraction_to_schedule
    if own is not None:
        return _with_pool(inputs, max_fraction_to_schedule={**own, resource: change.number})
    fractions = {**config.max_fraction_to_schedule, resource: change.number}
    return structs.replace(inputs, config=_config(config, key, fractions))


def _config(config: SchedulingConfig, key: str, value: object) -> SchedulingConfig:
    return structs.replace(config, **{key: value})


def _class_limit(change: Change, inputs: RoundInputs, job: Job) -> RoundInputs:
    class_, _, resource = change.value.partition("/")
    queue, pool = inputs.queues[job.queue], inputs.pool
    limits = queue.max_fraction_by_class_by_pool
    of_class = limits.get(class_, {})
    of_pool = {**of_class.get(pool, {}), resource: float(change.number)}
    changed = {**limits, class_: {**of_class, pool: of_pool}}
    return _with_queue(inputs, structs.replace(queue, max_fraction_by_class_by_pool=changed))


def _floating(change: Change, inputs: RoundInputs, _: Job) -> RoundInputs:
    spec, own = inputs.config.spec, inputs.config.pool(inputs.pool)
    more = inputs.config.floating_total(inputs.pool) + _vector(change.amounts, spec)
    quantities = spec.quantities(more)
    floating = {**own.floating, **{name: quantities[name] for name in change.amounts}}
    return _with_pool(inputs, floating=floating)


def _open_node(change: Change, inputs: RoundInputs, _: Job) -> RoundInputs:
    node = _node(change.node_id, inputs)
    open_one = structs.replace(node, intake=Intake.OPEN, lost_at=None, disconnected_at=None)
    return inputs.with_nodes(open_one)


def _add_label(change: Change, inputs: RoundInputs, _: Job) -> RoundInputs:
    node = _node(change.node_id, inputs)
    labels = {**node.labels, change.name: change.value}
    return inputs.with_nodes(structs.replace(node, labels=labels))


def _more_room(change: Change, inputs: RoundInputs, _: Job) -> RoundInputs:
    node = _node(change.node_id, inputs)
    total = node.total + _vector(change.amounts, inputs.config.spec)
    places = change.amounts.get(PLACES, 0)
    most = None if node.max_jobs is None else node.max_jobs + places
    return inputs.with_nodes(structs.replace(node, total=total, max_jobs=most))


def _new_node(change: Change, inputs: RoundInputs, _: Job) -> RoundInputs:
    names, id = {node.id for node in inputs.nodes}, "new-node"
    while id in names:
        id += "+"
    total = _vector(change.amounts, inputs.config.spec)
    return inputs.with_nodes(Node(id=id, total=total, pool=PoolName(inputs.pool)))


def _end_job(change: Change, inputs: RoundInputs, _: Job) -> RoundInputs:
    other = inputs.snapshot.get(change.job_id)
    assert other is not None
    return inputs.without_run(other)


def _wait(change: Change, inputs: RoundInputs, _: Job) -> RoundInputs:
    return structs.replace(inputs, now=inputs.now + int(change.number))


def _node(node_id: str, inputs: RoundInputs) -> Node:
    return next(node for node in inputs.nodes if node.id == node_id)


def _vector(amounts: Mapping[str, int], spec: ResourceSpec) -> ResourceVector:
    return ResourceVector([amounts.get(name, 0) for name in spec.names])


_MADE: Final[Mapping[ChangeKind, Callable[[Change, RoundInputs, Job], RoundInputs]]] = {
    ChangeKind.WAIT: _wait,
    ChangeKind.COMPLETE_GANG: _complete_gang,
    ChangeKind.TOLERATE: _tolerate,
    ChangeKind.DROP_SELECTOR: _drop_selector,
    ChangeKind.DROP_CONSTRAINT: _drop_constraint,
    ChangeKind.DROP_AFFINITY: _drop_affinity,
    ChangeKind.NAME_NODE: _name_node,
    ChangeKind.KNOWN_CLASS: _known_class,
    ChangeKind.AGREE: _agree,
    ChangeKind.ASK_LESS: _ask_less,
    ChangeKind.MAKE_QUEUE: _make_queue,
    ChangeKind.UNCORDON_QUEUE: _uncordon_queue,
    ChangeKind.WEIGHT: _weight,
    ChangeKind.LIMIT: _limit,
    ChangeKind.CLASS_LIMIT: _class_limit,
    ChangeKind.FLOATING: _floating,
    ChangeKind.OPEN_NODE: _open_node,
    ChangeKind.ADD_LABEL: _add_label,
    ChangeKind.MORE_ROOM: _more_room,
    ChangeKind.NEW_NODE: _new_node,
    ChangeKind.END_JOB: _end_job,
}
