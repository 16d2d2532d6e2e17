"""Clusters in the middle of their life, drawn from a seed: larger than a shrinking test wants.

The same seed gives the same world on any machine and under any hash seed.
"""

from random import Random
from typing import Any

from kit.jobs import gang, job, leased, requirements
from kit.rounds import CONFIG, POOL, World, node
from pyresched.config import SchedulingConfig
from pyresched.model import Intake, Job, Node, Outcome, Taint, TaintEffect, Toleration

__all__ = ["random_world"]

QUEUES = "abc"
CLASSES = [each.name for each in CONFIG.priority_classes]
GPU = Taint("gpu")
SLOW = Taint("slow", effect=TaintEffect.PREFER_NO_SCHEDULE)
ANY_GPU = Toleration("gpu", exists=True)


def random_world(seed: int, *, nodes: int = 6, submissions: int = 25) -> World:
    """Up to *nodes* nodes, and up to *submissions* jobs and gangs that run, wait or came back."""
    draw = Random(seed)
    world = World(now=1000)
    world.with_nodes(*[_node(draw, f"n{i}") for i in range(draw.randint(1, nodes))])
    for queue in QUEUES[: draw.randint(1, len(QUEUES))]:
        world.with_queues(**{queue: draw.choice([1.0, 1.0, 2.0, 0.5])})
    busy = draw.random()
    for i in range(draw.randint(1, submissions)):
        members = _submission(draw, f"j{i}")
        whole = members[0].gang is None or len(members) == members[0].gang.cardinality
        if whole and draw.random() < busy:
            members = _started(draw, world, members)
        world.with_jobs(members)
    if draw.random() < 0.7:
        _end_what_has_no_room(draw, world)
    world.config = SchedulingConfig(
        priority_classes=CONFIG.priority_classes,
        max_queue_lookback=draw.choice([0, 0, 0, 3]),
        protected_fraction=draw.choice([1.0, 1.0, 0.5, 0.0]),
    )
    return world


def _amounts(draw: Random) -> tuple[int, int]:
    cores = draw.choice([500, 1000, 1000, 2000, 3000, 4000, 9000])
    return cores, draw.choice([0, 512, 1024, 1024, 4096, 8192])


def _node(draw: Random, id: str) -> Node:
    fields: dict[str, Any] = {}
    if draw.random() < 0.5:
        fields["labels"] = {"zone": draw.choice(["east", "west"])}
    fields["taints"] = draw.choice([(), (), (), (), (GPU,), (SLOW,)])
    odd = draw.randrange(14)
    if odd == 0:
        fields["intake"] = Intake.CORDONED
    elif odd == 1:
        fields["lost_at"] = 0
    elif odd == 2:
        fields["pool"] = "other"
    return node(id, *draw.choice([(4000, 8192), (2000, 4096), (8000, 4096)]), **fields)


def _submission(draw: Random, id: str) -> list[Job]:
    common: dict[str, Any] = {
        "queue": draw.choice(QUEUES),
        "submitted_at": draw.randint(0, 5),
        "priority": draw.choice([0, 0, 1]),
    }
    asked: dict[str, Any] = {
        "priority_class": draw.choice(CLASSES),
        "selector": draw.choice([{}, {}, {}, {"zone": "east"}, {"zone": "none"}]),
        "tolerations": draw.choice([(), (), (ANY_GPU,)]),
    }
    shape = requirements(*_amounts(draw), **asked)
    if draw.random() < 0.75:
        return [job(id, requirements=shape, **common)]
    uniformity = draw.choice(["", "", "zone"])
    members = gang(id, size=draw.randint(2, 4), uniformity=uniformity, requirements=shape, **common)
    if draw.random() < 0.33:
        other = requirements(*_amounts(draw), **asked)
        members[1:] = [each.replace(requirements=other) for each in members[1:]]
    return members[1:] if draw.random() < 0.12 else members


def _started(draw: Random, world: World, members: list[Job]) -> list[Job]:
    class_ = CONFIG.priority_class(members[0].requirements.priority_class)
    at, ids = draw.randint(0, 9), sorted(world.nodes)
    return [
        leased(
            each,
            node_id=draw.choice(ids),
            at=at,
            priority=class_.priority,
            pool=POOL if draw.random() < 0.95 else "other",
        )
        for each in members
    ]


def _end_what_has_no_room(draw: Random, world: World) -> None:
    """Put back runs, in the order in which they were added, until no node is above its total."""
    used: dict[str, list[int]] = {}
    for each in list(world.jobs.values()):
        run = world.jobs[each.id].active_run
        if run is None:
            continue
        sums = used.setdefault(run.node_id, [0] * len(each.requirements.resources))
        after = [a + b for a, b in zip(sums, each.requirements.resources, strict=True)]
        if any(a > b for a, b in zip(after, world.nodes[run.node_id].total, strict=True)):
            world.put_back(each.id, draw.choice([Outcome.PREEMPTED, Outcome.FAILED]))
        else:
            sums[:] = after
