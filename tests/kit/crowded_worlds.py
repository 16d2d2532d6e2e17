"""Clusters in which rounds have much to decide, drawn from a seed.

`odd_world` has a little of everything: closed nodes, labels, taints, guests, gangs of all kinds,
over-allocated nodes, cordoned queues. `crowded_world` is full to the brim with runs that may give
way, most of them of queues above their share. `limited` puts limits on either. `wide_world` is one of many
nodes and queues. The same seed gives
the same world on any machine; a `Random` of hypothesis gives one that shrinks.
"""

from random import Random
from typing import Any

from kit.jobs import gang, job, jobs, leased, requirements
from kit.rounds import POOL, World, node
from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.model import (
    AwayEntry,
    Intake,
    Job,
    Outcome,
    PriorityClass,
    Queue,
    Taint,
    TaintEffect,
    Toleration,
    WellKnownNodeType,
)

__all__ = [
    "AWAY",
    "CLASSES",
    "Kind",
    "crowded_world",
    "limited",
    "odd_world",
    "repriced",
    "wide_world",
]

CLASSES = (
    PriorityClass(name="low", priority=0, preemptible=True),
    PriorityClass(name="mid", priority=1000, preemptible=True),
    PriorityClass(name="high", priority=2000, preemptible=True),
    PriorityClass(name="default", priority=1000),
    PriorityClass(name="urgent", priority=2000),
)
AWAY = {"mid": 0, "high": 500}
AWAY_CLASSES = tuple(
    PriorityClass(
        name=each.name,
        priority=each.priority,
        preemptible=each.preemptible,
        away=(AwayEntry(priority=AWAY[each.name], node_type="gpu"),) if each.name in AWAY else (),
    )
    for each in CLASSES
)
GPU = Taint("gpu")
SLOW = Taint("slow", effect=TaintEffect.PREFER_NO_SCHEDULE)
ANY_GPU = (Toleration("gpu", exists=True),)


def _config(draw: Random, *, away: bool, **more: Any) -> SchedulingConfig:
    return SchedulingConfig(
        priority_classes=AWAY_CLASSES if away else CLASSES,
        node_types=(WellKnownNodeType(name="gpu", taints=(GPU,)),),
        pools=(
            PoolConfig(name=POOL, protect_uncapped=draw.random() < 0.2),
            PoolConfig(name="other", away_pools=(POOL,)),
        ),
        protected_fraction=draw.choice([1.0, 1.0, 0.5, 0.25, 0.0]),
        prefer_large_jobs=draw.random() < 0.5,
        default_priority_class="default",
        **more,
    )


class _Room:
    """What nodes have left while runs are put on them."""

    def __init__(self, world: World, *, ignored: bool) -> None:
        self.world = world
        self.ignored = ignored
        self.left = {
            id: [*row.total, 1000 if row.max_jobs is None else row.max_jobs]
            for id, row in world.nodes.items()
        }

    def start(self, draw: Random, members: list[Job], **fields: Any) -> list[Job]:
        """The members, running, if there is room for all; else as they were."""
        left, started = {id: list(amounts) for id, amounts in self.left.items()}, []
        for member in members:
            found = self._node(draw, member, left)
            if found is None:
                return members
            node_id, priority = found
            wanted = (*member.requirements.resources, 1)
            left[node_id] = [a - b for a, b in zip(left[node_id], wanted, strict=True)]
            started.append(leased(member, node_id=node_id, priority=priority, **fields))
        self.left = left
        return started

    def _node(
        self, draw: Random, member: Job, left: dict[str, list[int]]
    ) -> tuple[str, int] | None:
        name = member.requirements.priority_class
        class_ = self.world.config.priority_class(name)
        wanted = (*member.requirements.resources, 1)
        ids = sorted(left)
        draw.shuffle(ids)
        for id in ids:
            if not self.ignored and any(a > b for a, b in zip(wanted, left[id], strict=True)):
                continue
            if GPU not in self.world.nodes[id].taints or member.requirements.tolerations:
                return id, class_.priority
            if class_.away:
                return id, class_.away[0].priority
        return None


def odd_world(seed: int | Random, *, nodes: int = 5, submissions: int = 25) -> World:
    """Up to *nodes* nodes and *submissions* jobs and gangs, a little of everything."""
    draw = Random(seed) if isinstance(seed, int) else seed
    away = draw.random() < 0.3
    world = World(_config(draw, away=away), now=1000)
    plain = draw.random() < 0.5
    world.with_nodes(*[_odd_node(draw, f"n{i}") for i in range(draw.randint(1, nodes))])
    queues = "abcd"
    for name in queues[: draw.randint(1, 4)]:
        world.queues[name] = Queue(
            name=name, weight=draw.choice([1.0, 1.0, 2.0, 0.5]), cordoned=draw.random() < 0.06
        )
    busy = draw.random()
    room = _Room(world, ignored=draw.random() < 0.1)
    for i in range(draw.randint(1, submissions)):
        members = _submission(draw, f"j{i}", draw.choice(queues), plain=plain)
        if draw.random() < busy:
            pool = POOL if draw.random() < 0.95 else "other"
            members = [each.replace(pools=(pool,)) for each in members]
            members = room.start(draw, members, at=draw.randint(0, 9), pool=pool)
            if members[0].active_run is None:
                members = [each.replace(pools=(POOL,)) for each in members]
        elif draw.random() < 0.2:
            members = [_with_past(draw, world, each) for each in members]
        world.with_jobs(members)
    return world


def _odd_node(draw: Random, id: str) -> Any:
    fields: dict[str, Any] = {}
    if draw.random() < 0.5:
        fields["labels"] = {"zone": draw.choice(["east", "west"])}
    fields["taints"] = draw.choice([(), (), (), (), (GPU,), (SLOW,)])
    odd = draw.randrange(24)
    if odd == 0:
        fields["intake"] = Intake.CORDONED
    elif odd == 1:
        fields["lost_at"] = 0
    elif odd > 20:
        fields["max_jobs"] = draw.choice([2, 3])
    return node(id, *draw.choice([(4000, 8192), (2000, 4096), (8000, 4096)]), **fields)


def _submission(draw: Random, id: str, queue: str, *, plain: bool) -> list[Job]:
    common: dict[str, Any] = {
        "queue": queue,
        "submitted_at": draw.randint(0, 5),
        "priority": draw.choice([0, 0, 1]),
    }
    asked: dict[str, Any] = {"priority_class": draw.choice(CLASSES).name}
    if not plain:
        asked["selector"] = draw.choice([{}, {}, {}, {"zone": "east"}])
        asked["tolerations"] = draw.choice([(), (), ANY_GPU])

    def shape() -> Any:
        cores = draw.choice([500, 1000, 1000, 1000, 2000, 3000, 4000, 9000])
        return requirements(cores, draw.choice([0, 512, 1024, 1024, 4096, 8192]), **asked)

    first = shape()
    if draw.random() < 0.75:
        return [job(id, requirements=first, **common)]
    label = draw.choice(["", "", "zone"])
    members = gang(id, size=draw.randint(2, 4), uniformity=label, requirements=first, **common)
    if draw.random() < 0.33:
        other = shape()
        members[1:] = [each.replace(requirements=other) for each in members[1:]]
    return members[1:] if draw.random() < 0.05 else members


def _with_past(draw: Random, world: World, waiting: Job) -> Job:
    """The job as it came back from a run somewhere."""
    world.jobs[waiting.id] = leased(waiting, node_id=draw.choice(sorted(world.nodes)), at=0)
    world.end_run(waiting.id, draw.choice([Outcome.FAILED, Outcome.PREEMPTED]))
    return world.jobs.pop(waiting.id)


def crowded_world(seed: int | Random, *, tainted: float = 0.15) -> World:
    """One to six full nodes, queues above their shares, and more that waits."""
    draw = Random(seed * 7 + 1) if isinstance(seed, int) else seed
    away = draw.random() < 0.4 or tainted > 0.3
    world = World(_config(draw, away=away), now=1000)
    size, uniform = draw.choice([4, 8]), draw.random() < 0.5
    for i in range(draw.randint(1, 6)):
        cores = size if uniform else draw.choice([2, 4, 8])
        taints = (GPU,) if draw.random() < tainted else ()
        labels = {"zone": "ab"[i % 2]}
        world.with_nodes(node(f"n{i}", cores * 1000, size * 1024, taints=taints, labels=labels))
    queues = "abcdef"[: draw.randint(2, 6)]
    for name in queues:
        world.with_queues(**{name: draw.choice([1.0, 1.0, 1.0, 2.0, 0.5])})
    names = [each.name for each in CLASSES]
    classes = draw.choice([names[1:2], names[:2], names[:3], names[:4], [names[0], *names[3:]]])
    kind = Kind(
        classes,
        draw.choice([[1], [1, 2], [1, 2, 4], [1, 3, 4]]),
        draw.choice([0, 0, 0.2, 0.5]),
        queues,
        draw.choice(queues),
        draw.random(),
    )
    room = _Room(world, ignored=False)
    count = failures = 0
    while failures < 5 and count < 40:
        members = kind.submission(draw, count)
        count += 1
        members = room.start(draw, members, at=draw.randint(0, 50))
        failures += members[0].active_run is None
        world.with_jobs(members)
    for _ in range(draw.randint(1, 15)):
        world.with_jobs(kind.submission(draw, count))
        count += 1
    return world


def repriced(world: World, seed: int | Random) -> World:
    """The world after a tenth of its runs were placed when their classes had other priorities."""
    draw = Random(seed) if isinstance(seed, int) else seed
    for id, row in world.jobs.items():
        if row.active_run is not None and draw.random() < 0.1:
            run = row.runs[-1].replace(priority=draw.choice([0, 500, 3000]))
            world.jobs[id] = row.replace(runs=(*row.runs[:-1], run))
    return world


def wide_world() -> World:
    """More queues, jobs, victims and gangs than any array of a round begins with."""
    world = World(now=1000)
    world.with_nodes(*[node(f"n{i}", labels={"zone": f"z{i % 3}"}) for i in range(70)])
    for i in range(40):
        world.with_queues(f"q{i:02}")
    for i in range(280):
        row = job(f"r{i}", 1000, 512, queue=f"q{i % 2:02}", priority_class="spot", submitted_at=i)
        world.running(row, f"n{i // 4}", at=i)
    for i in range(40):
        world.with_jobs(jobs(3, 4000, 512, prefix=f"w{i}", queue=f"q{i:02}"))
        urgent = {"queue": f"q{i:02}", "priority_class": "urgent"}
        world.with_jobs(jobs(2, 3000 + i, 512, prefix=f"u{i}", **urgent))
        if i % 5 == 0:
            world.with_jobs(
                gang(f"g{i}", 2000, 64, size=2 + i % 3, uniformity="zone", queue=f"q{i:02}")
            )
    return world


def limited(world: World, seed: int | Random) -> World:
    """The world under limits of every kind, each there or not."""
    draw = Random(seed) if isinstance(seed, int) else seed

    def maybe(value: Any, otherwise: Any) -> Any:
        return value if draw.random() < 0.4 else otherwise

    def rate(prefix: str, most: int) -> dict[str, Any]:
        limits = {f"{prefix}rate": 0.5, f"{prefix}burst": draw.randint(1, most)}
        return maybe(limits, {})

    own = world.config.pool(POOL)
    pool = {name: getattr(own, name) for name in own.__struct_fields__}
    pool |= rate("preemption_", 6)
    pool["preempt_by_urgency"] = maybe(False, True)
    pool["max_fraction_to_schedule"] = maybe({"cpu": draw.choice([0.0, 0.2, 0.5])}, None)
    kept = {name: getattr(world.config, name) for name in world.config.__struct_fields__}
    kept |= rate("", 6) | rate("queue_", 4)
    kept["pools"] = (PoolConfig(**pool), *world.config.pools[1:])
    kept["max_queue_lookback"] = maybe(draw.choice([1, 3, 6]), 0)
    kept["max_tries_per_round"] = maybe(draw.randint(1, 6), 0)
    kept["max_tries_per_queue"] = maybe(draw.randint(1, 4), 0)
    world.config = SchedulingConfig(**kept)
    for name, queue in world.queues.items():
        fractions = {
            each.name: {"cpu": draw.choice([0.0, 0.1, 0.3])}
            for each in world.config.priority_classes
            if draw.random() < 0.15
        }
        world.queues[name] = Queue(
            name=name,
            weight=queue.weight,
            cordoned=queue.cordoned,
            max_fraction_by_class=fractions,
        )
    return world


class Kind:
    """What a crowded world is made of: jobs and gangs of few sizes and classes."""

    def __init__(  # noqa: PLR0917
        self,
        classes: list[str],
        sizes: list[int],
        gangs: float,
        queues: str,
        heavy: str,
        skew: float,
    ) -> None:
        self.classes, self.sizes, self.gangs = classes, sizes, gangs
        self.queues, self.heavy, self.skew = queues, heavy, skew

    def submission(self, draw: Random, number: int) -> list[Job]:
        """The next job, or gang."""
        queue = self.heavy if draw.random() < self.skew else draw.choice(self.queues)
        common: dict[str, Any] = {"queue": queue, "submitted_at": number}
        asked: dict[str, Any] = {
            "priority_class": draw.choice(self.classes),
            "tolerations": ANY_GPU if draw.random() < 0.3 else (),
            "selector": {"zone": draw.choice("ab")} if draw.random() < 0.1 else {},
        }

        def shape() -> Any:
            cores = draw.choice(self.sizes) * 500
            return requirements(cores, draw.choice([256, 512, 1024]), **asked)

        id = f"j{number:03}"
        if draw.random() >= self.gangs:
            return [job(id, requirements=shape(), **common)]
        label = draw.choice(["", "", "zone"])
        members = gang(
            id, size=draw.randint(2, 4), uniformity=label, requirements=shape(), **common
        )
        if draw.random() < 0.3:
            other = shape()
            members[1:] = [each.replace(requirements=other) for each in members[1:]]
        return members
