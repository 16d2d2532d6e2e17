"""The one place where tests say who decides a round: the engine, or the plain model of it."""

import os
from dataclasses import dataclass, field

from kit.round_model2 import model_round
from kit.round_rules import Buckets, rules_of
from kit.rounds import POOL, World
from pyresched.scheduling import RoundState, run_round

__all__ = ["Decided", "Decider"]

BY_MODEL = os.environ.get("PYRESCHED_ROUND", "model") == "model"


@dataclass
class Decided:
    """What a round came to, as plain values."""

    scheduled: list[tuple[str, str, int, str]] = field(default_factory=list)
    preempted: list[tuple[str, str, str, str, str]] = field(default_factory=list)
    moved: list[tuple[str, str, str, int]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    rested: bool = True
    passes: int = 1

    @property
    def ins(self) -> set[str]:
        """Who got a node and had none."""
        return {each[0] for each in self.scheduled}

    @property
    def outs(self) -> set[str]:
        """Who had a node and has none."""
        return {each[0] for each in self.preempted}

    def __bool__(self) -> bool:
        return bool(self.scheduled or self.preempted or self.moved)


class Decider:
    """Decides rounds over one world, and keeps what a round hands to the next."""

    def __init__(self) -> None:
        self.buckets = Buckets()
        self.state = RoundState()

    def decide(self, world: World) -> Decided:
        """What a round decides now."""
        return self.by_model(world) if BY_MODEL else self.by_engine(world)

    def by_model(self, world: World) -> Decided:
        """The same by the plain model."""
        read = rules_of(world.config, POOL, world.queues, self.buckets, world.now)
        result = model_round(
            world.jobs.values(),
            world.nodes.values(),
            world.queues,
            POOL,
            world.config,
            read,
            world.now,
        )
        self.buckets.take("all", len(result.scheduled))
        for queue in world.queues:
            count = sum(world.jobs[each[0]].queue == queue for each in result.scheduled)
            self.buckets.take(f"queue {queue}", count)
        self.buckets.take(f"preemption {POOL}", result.preemption_tokens)
        return Decided(
            result.scheduled,
            result.preempted,
            [each[:4] for each in result.moved],
            result.refused,
            result.rested,
            result.passes,
        )

    def by_engine(self, world: World) -> Decided:
        """The same by `run_round`."""
        result, self.state = run_round(
            world.reader(), world.node_db(), world.queues, POOL, world.config, self.state, world.now
        )
        return Decided(
            [(p.job_id, p.node_id, p.priority, p.method.value) for p in result.scheduled],
            [
                (p.job_id, p.run_id, p.node_id, p.for_job_id, p.reason.value)
                for p in result.preempted
            ],
            [(m.job_id, m.from_node_id, m.node_id, m.priority) for m in result.moved],
            {id: reason.code.value for id, reason in result.refused.items()},
            result.termination.value != "no_rest",
            result.passes,
        )
