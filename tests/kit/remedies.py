"""What an explanation proposes, done by hand to the rows of a `World`: the test's own reading.

Shares no code with `pyresched.scheduling.remedies`, so that both must mean the same.
"""

from dataclasses import replace
from typing import Any

from msgspec import structs

from kit.rounds import World
from pyresched.config import SchedulingConfig
from pyresched.model import (
    Gang,
    Intake,
    Job,
    JobState,
    Node,
    Queue,
    Requirements,
    ResourceVector,
    Toleration,
)
from pyresched.scheduling import Change, ChangeKind

__all__ = ["done"]

FIELDS = (
    *("resources", "priority_class", "selector", "tolerations", "constraints", "affinity"),
    *("preferences", "spread", "scope", "nodes"),
)


def done(world: World, change: Change, job_id: str) -> World:
    """Another world in which *change* was made for the job."""
    world = replace(
        world, nodes=dict(world.nodes), jobs=dict(world.jobs), queues=dict(world.queues)
    )
    globals()[f"_{change.kind.value}"](world, change, world.jobs[job_id])
    return world


def _ask(world: World, jobs: list[Job], **changes: Any) -> None:
    for job in jobs:
        fields = {name: getattr(job.requirements, name) for name in FIELDS}
        fields |= {name: edit(fields[name]) for name, edit in changes.items()}
        world.jobs[job.id] = job.replace(requirements=Requirements(**fields))


def _living(world: World, job: Job) -> list[Job]:
    return [each for each in world.mates(job.id) if not each.state.terminal]


def _vector(world: World, amounts: dict[str, int]) -> ResourceVector:
    return ResourceVector([amounts.get(name, 0) for name in world.config.spec.names])


def _set(world: World, **fields: Any) -> None:
    kept = {name: getattr(world.config, name) for name in world.config.__struct_fields__}
    world.config = SchedulingConfig(**{**kept, **fields})


def _set_pool(world: World, **fields: Any) -> None:
    first, *others = world.config.pools
    _set(world, pools=(structs.replace(first, **fields), *others))


def _wait(world: World, change: Change, _: Job) -> None:
    world.now += change.number


def _complete_gang(world: World, _: Change, job: Job) -> None:
    every = world.mates(job.id)
    for each in every:
        if not each.state.terminal and each.id != job.id:
            runs = each.runs[:-1] if each.active_run is not None else each.runs
            world.jobs[each.id] = each.replace(state=JobState.QUEUED, pools=job.pools, runs=runs)
    for n in range(job.gang.cardinality - len(every)):
        world.with_jobs(job.replace(id=f"{job.id}-came-{n}", runs=()))


def _tolerate(world: World, change: Change, job: Job) -> None:
    taint = change.taint
    wanted = Toleration(taint.key, taint.value, taint.effect)
    _ask(world, _living(world, job), tolerations=lambda old: (*old, wanted))


def _drop_selector(world: World, change: Change, job: Job) -> None:
    _ask(
        world,
        _living(world, job),
        selector=lambda old: tuple(pair for pair in old if pair[0] != change.name),
    )


def _drop_constraint(world: World, change: Change, job: Job) -> None:
    _ask(
        world,
        _living(world, job),
        constraints=lambda old: tuple(each for each in old if str(each) != change.name),
    )


def _drop_affinity(world: World, _: Change, job: Job) -> None:
    _ask(world, _living(world, job), affinity=lambda _: ())


def _name_node(world: World, change: Change, job: Job) -> None:
    _ask(world, _living(world, job), nodes=lambda old: (*old, change.node_id))


def _known_class(world: World, change: Change, job: Job) -> None:
    _ask(world, _living(world, job), priority_class=lambda _: change.name)


def _agree(world: World, _: Change, job: Job) -> None:
    members = _living(world, job)
    like = Gang(job.gang.id, len(members), job.gang.uniformity)
    for each in members:
        world.jobs[each.id] = each.replace(gang=like, pools=job.pools)
    wanted = job.requirements.priority_class
    _ask(world, _living(world, job), priority_class=lambda _: wanted)


def _ask_less(world: World, change: Change, job: Job) -> None:
    _ask(world, [job], resources=lambda old: old - _vector(world, change.amounts))


def _make_queue(world: World, change: Change, _: Job) -> None:
    world.queues[change.name] = Queue(name=change.name)


def _uncordon_queue(world: World, change: Change, _: Job) -> None:
    world.queues[change.name] = structs.replace(world.queues[change.name], cordoned=False)


def _weight(world: World, change: Change, _: Job) -> None:
    world.queues[change.name] = structs.replace(world.queues[change.name], weight=change.number)


def _limit(world: World, change: Change, _: Job) -> None:
    key, _, resource = change.name.partition(".")
    old = getattr(world.config, key)
    _set(world, **{key: {**old, resource: change.number} if resource else change.number})


def _class_limit(world: World, change: Change, _: Job) -> None:
    name, _, resource = change.value.partition("/")
    limits = {name: {"default": {resource: change.number}}}
    queue = world.queues[change.name]
    world.queues[change.name] = structs.replace(queue, max_fraction_by_class_by_pool=limits)


def _floating(world: World, change: Change, _: Job) -> None:
    old = world.config.pools[0].floating
    more = {name: int(old.get(name, 0)) + count for name, count in change.amounts.items()}
    _set_pool(world, floating={**old, **more})


def _change_node(world: World, node_id: str, **fields: Any) -> None:
    world.nodes[node_id] = structs.replace(world.nodes[node_id], **fields)


def _open_node(world: World, change: Change, _: Job) -> None:
    opened = {"intake": Intake.OPEN, "lost_at": None, "disconnected_at": None}
    _change_node(world, change.node_id, **opened)


def _add_label(world: World, change: Change, _: Job) -> None:
    labels = {**world.nodes[change.node_id].labels, change.name: change.value}
    _change_node(world, change.node_id, labels=labels)


def _more_room(world: World, change: Change, _: Job) -> None:
    old = world.nodes[change.node_id]
    most = None if old.max_jobs is None else old.max_jobs + change.amounts.get("jobs", 0)
    total = old.total + _vector(world, change.amounts)
    _change_node(world, change.node_id, total=total, max_jobs=most)


def _new_node(world: World, change: Change, _: Job) -> None:
    world.with_nodes(Node(id="one-more", total=_vector(world, change.amounts)))


def _end_job(world: World, change: Change, _: Job) -> None:
    job = world.jobs[change.job_id]
    world.jobs[job.id] = job.replace(state=JobState.SUCCEEDED, runs=job.runs[:-1], ended_at=0)


assert all(f"_{kind.value}" in globals() for kind in ChangeKind)
