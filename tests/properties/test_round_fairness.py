"""Rounds against the exact optimum: on divisible loads nobody ends a whole job below its level."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from kit.jobs import jobs
from kit.rounds import World, node

CORES = st.integers(1, 12)
WEIGHTS = st.sampled_from([1, 1, 2, 3, 5])
QUEUES = st.lists(st.tuples(WEIGHTS, st.integers(0, 40)), min_size=1, max_size=5)


def levels(demands: list[tuple[int, int]], cores: int) -> list[Fraction]:
    """What each (weight, demand) gets of *cores*: nobody more than it asks for, the rest by weight."""
    got = [Fraction(0)] * len(demands)
    left, wanting = Fraction(cores), {i for i, (_, demand) in enumerate(demands) if demand}
    while wanting and left:
        each = left / sum(demands[i][0] for i in wanting)
        full = {i for i in wanting if demands[i][1] <= each * demands[i][0]}
        for i in full or wanting:
            got[i] = Fraction(demands[i][1]) if full else each * demands[i][0]
        left -= sum(got[i] for i in full or wanting)
        wanting -= full or wanting
    return got


def world_of(queues: list[tuple[int, int]], sizes: list[int]) -> World:
    """Nodes of so many cores, and one-core jobs that may be preempted queued in each queue."""
    world = World().with_nodes(
        *[node(f"n{i}", 1000 * cores, 1024 * cores) for i, cores in enumerate(sizes)]
    )
    for i, (weight, demand) in enumerate(queues):
        world.with_queues(**{f"q{i}": float(weight)})
        world.with_jobs(
            jobs(demand, prefix=f"q{i}", queue=f"q{i}", priority_class="spot", submitted_at=100 * i)
        )
    return world


def held(world: World, queues: list[tuple[int, int]]) -> list[int]:
    """How many jobs of each queue run."""
    return [
        sum(row.queue == f"q{i}" and row.state.active for row in world.jobs.values())
        for i in range(len(queues))
    ]


@given(QUEUES, st.lists(CORES, min_size=1, max_size=3))
def test_an_empty_cluster_is_shared_to_within_one_job(queues, sizes):
    """No queue is a whole job below its exact level, and nothing is left over.

    Above it one may be by what all others are below: a heavy queue by more than a job. Nobody
    who wants more would, with one job more, have less for its weight than another has now.
    """
    world = world_of(queues, sizes)
    world.grant(world.round())
    found, cores = held(world, queues), sum(sizes)
    assert sum(found) == min(cores, sum(demand for _, demand in queues))
    for count, level in zip(found, levels(queues, cores), strict=True):
        assert count > level - 1
    turns = [Fraction(count + 1, queue[0]) for count, queue in zip(found, queues, strict=True)]
    wanting = [i for i, (_, demand) in enumerate(queues) if found[i] < demand]
    for count, (weight, _) in zip(found, queues, strict=True):
        assert all(Fraction(count, weight) <= turns[i] for i in wanting)


@given(QUEUES, st.lists(CORES, min_size=1, max_size=3), st.integers(0, 4))
def test_who_comes_late_gets_its_level_from_those_who_are_above(queues, sizes, late):
    """One queue comes when the others have it all: it ends less than a job below its exact level."""
    late %= len(queues)
    before = [(weight, 0 if i == late else demand) for i, (weight, demand) in enumerate(queues)]
    world = world_of(before, sizes)
    world.grant(world.round())
    world.now += 1
    world.with_jobs(
        jobs(
            queues[late][1],
            prefix=f"late{late}",
            queue=f"q{late}",
            priority_class="spot",
            submitted_at=world.now,
        )
    )
    world.grant(world.round())
    found, cores = held(world, queues), sum(sizes)
    assert sum(found) == min(cores, sum(demand for _, demand in queues))
    for count, level in zip(found, levels(queues, cores), strict=True):
        assert count > level - 1
    world.now += 1
    assert not world.round(), "and stays there"
