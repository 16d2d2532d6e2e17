"""What an explanation proposes is so: made by hand, it starts the job."""

from collections import Counter

from kit.crowded_worlds import crowded_world, odd_world
from kit.random_worlds import random_world
from kit.remedies import done
from kit.rounds import POOL, World
from pyresched.scheduling import Explanation, RoundState, Standing, explain

SEEDS = range(120)
HARDER = range(30)


def explained(world: World, job_id: str) -> Explanation:
    """From the rows of *world*."""
    return explain(
        job_id,
        *(world.reader(), world.node_db(), world.queues),
        *(POOL, world.config, RoundState(), world.now),
    )


def test_every_change_that_is_proposed_starts_the_job():
    """By itself, in a world that the test changes; and of most kinds there is some."""
    seen: Counter[str] = Counter()
    for make, seeds in ((random_world, SEEDS), (odd_world, HARDER), (crowded_world, HARDER)):
        for seed in seeds:
            world = make(seed)
            for job_id in list(world.round().refused)[:4]:
                told = explained(world, job_id)
                assert told.standing is Standing.REFUSED
                assert list(told.changes) == sorted(told.changes, key=lambda each: each.size)
                assert told.rounds <= 60
                for change in told.changes:
                    result = done(world, change, job_id).round()
                    placed = {each.job_id for each in result.scheduled}
                    assert job_id in placed, (make.__name__, seed, job_id, change)
                    seen[change.kind.value] += 1
    assert {
        *("more_room", "add_label", "ask_less", "drop_selector", "make_queue", "end_job"),
        *("limit", "complete_gang", "open_node", "tolerate", "weight", "new_node"),
        "uncordon_queue",
    } <= set(seen)


def test_a_job_that_is_alone_in_being_short_of_room_is_always_told_how_much():
    """Of a lone job that fits no node as it is, what is missing there starts it."""
    told = 0
    for seed in SEEDS:
        world = random_world(seed)
        for job_id, reason in list(world.round().refused.items())[:4]:
            job = world.jobs[job_id]
            if reason.code.value != "exceeds_every_node" or job.gang is not None:
                continue
            assert any(c.kind.value == "more_room" for c in explained(world, job_id).changes)
            told += 1
    assert told > 10


def test_explanations_change_nothing_and_repeat():
    """The same twice, and the world is as it was."""
    for seed in range(30):
        world = random_world(seed)
        before = world.round().to_dict()
        for job_id in sorted(world.jobs)[:6]:
            first, second = explained(world, job_id), explained(world, job_id)
            assert first.to_dict() == second.to_dict()
        assert world.round().to_dict() == before
