"""The one place where tests say who decides a round: the engine, or the plain model of it."""

import os

from kit.decided import Decided, plain
from kit.round_model import model_round
from kit.round_rules import Buckets, rules_of
from kit.rounds import POOL, World
from pyresched.scheduling import RoundState, run_round

__all__ = ["Decided", "Decider"]

BY_MODEL = os.environ.get("PYRESCHED_ROUND", "engine") == "model"


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
            result.moved,
            result.refused,
            result.rested,
            result.passes,
        )

    def by_engine(self, world: World) -> Decided:
        """The same by `run_round`."""
        result, self.state = run_round(
            world.reader(), world.node_db(), world.queues, POOL, world.config, self.state, world.now
        )
        return plain(result)
