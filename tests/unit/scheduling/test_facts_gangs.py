"""What is known of gangs: all or none, labels, limits, and how they give way: facts 31 to 37.

Each is a fact of Armada, the reference, told in our words; where ours differ, a line says why.
"""

import pytest

from kit.facts import Cluster, named
from pyresched.config import PoolConfig
from pyresched.model import Resource


@pytest.mark.parametrize(("size", "starts"), [(32, 32), (33, 0)])
def test_a_gang_starts_whole_or_not_at_all(size, starts):
    """31. 32 members fit 32 cores; of 33 none starts."""
    cluster = Cluster()
    cluster.submit("A", size, as_gang=True)
    assert len(cluster.round().ins) == starts


def test_a_gang_that_fails_does_not_fail_its_members_shape():
    """31. A lone job like the members of a gang that did not fit starts."""
    cluster = Cluster()
    cluster.submit("A", 33, as_gang=True)
    cluster.submit("A", 1)
    assert cluster.round().ins == named("A", 33)


def test_a_round_gives_gangs_one_more_than_its_fraction():
    """32. Half of the pool with gangs of 8, 16 and 8: the second reaches past it, the third waits."""
    cluster = Cluster(max_fraction_to_schedule={"cpu": 0.5})
    for size in (8, 16, 8):
        cluster.submit("A", size, as_gang=True)
    assert cluster.round().ins == named("A", range(24))


@pytest.mark.parametrize(("pool", "starts"), [("default", 3), ("other", 5)])
def test_a_pool_has_a_fraction_of_its_own(pool, starts):
    """32. Two of 32 cores in this pool: three jobs of five; that of another pool changes nothing."""
    pools = tuple(
        PoolConfig(name=name, max_fraction_to_schedule={"cpu": 2 / 32} if name == pool else None)
        for name in ("default", "other")
    )
    cluster = Cluster(pools=pools)
    cluster.submit("A", 5)
    assert len(cluster.round().ins) == starts


def licences(count: int) -> Cluster:
    """Ten licences of the pool, and jobs that ask for some."""
    cluster = Cluster(
        resources=(
            Resource("cpu", "1m"),
            Resource("memory", "1Mi"),
            Resource("licence", "1", floating=True),
        ),
        pools=(PoolConfig(name="default", floating={"licence": count}),),
    )
    cluster.world.nodes = {
        id: type(row)(id=id, total=type(row.total)((*row.total, 0)))
        for id, row in cluster.world.nodes.items()
    }
    return cluster


def test_what_floats_is_given_out_once():
    """33. Ten licences and two jobs of six: the first starts, the second waits for that reason."""
    cluster = licences(10)
    cluster.submit("A", 2, more=(6,))
    decided = cluster.round()
    assert decided.ins == named("A", 0)
    assert decided.refused == {"A1": "floating_resources"}


@pytest.mark.parametrize("labels", [{}, {"zone": "own"}])
def test_a_gang_that_no_value_holds_does_not_start(labels):
    """34. No node has the label, or each a value of its own: nothing of three jobs of 16 cores."""
    cluster = Cluster(0)
    for i in range(3):
        zone = {key: f"{value}{i}" for key, value in labels.items()}
        cluster.node(f"n{i}", labels=zone)
    cluster.submit("A", 3, cpu=16, as_gang=True, uniformity="zone")
    decided = cluster.round()
    assert not decided
    assert set(decided.refused.values()) == {"gang_does_not_fit" if labels else "no_matching_node"}


def test_a_gang_goes_to_the_value_that_holds_it():
    """34. Two nodes of a, three of b, three whole nodes wanted: all on b."""
    cluster = Cluster(0)
    for i, zone in enumerate("aabbb"):
        cluster.node(f"n{i}", labels={"zone": zone})
    cluster.submit("A", 3, cpu=32, as_gang=True, uniformity="zone")
    decided = cluster.round()
    assert {node_id for _, node_id, *_ in decided.scheduled} == {"n2", "n3", "n4"}


def test_of_values_that_hold_a_gang_the_one_that_disturbs_nobody_wins():
    """34. The larger value is full of runs that would give way, the smaller one is free."""
    cluster = Cluster(0)
    for i, zone in enumerate("aab"):
        cluster.node(f"n{i}", labels={"zone": zone})
    cluster.submit("A", 64, on="n0")
    for i, id in enumerate(f"A{i}" for i in range(64)):
        if i >= 32:
            row = cluster.world.jobs[id]
            run = row.runs[-1].replace(node_id="n1")
            cluster.world.jobs[id] = row.replace(runs=(run,))
    cluster.submit("B", 2, cpu=16, as_gang=True, uniformity="zone")
    decided = cluster.round()
    assert {node_id for _, node_id, *_ in decided.scheduled} == {"n2"}
    assert decided.outs == set()


def test_no_rounding_hides_a_node():
    """35. Three nodes, jobs of 16 cores: six of six.

    The reference finds three under a resolution of 17; amounts are compared exactly here.
    """
    cluster = Cluster(3)
    cluster.submit("A", 6, cpu=16)
    assert len(cluster.round().ins) == 6


def test_a_limit_of_one_queue_says_nothing_of_the_same_shape_in_another():
    """36. A is at its limit of a class; a like job of B starts."""
    cluster = Cluster()
    cluster.queue("A", max_fraction_by_class={"priority-0": {"cpu": 1 / 32}})
    cluster.submit("A", 2)
    cluster.submit("B", 1)
    decided = cluster.round()
    assert decided.ins == named("A", 0) | named("B", 0)
    assert decided.refused == {"A1": "class_limit"}


def test_what_does_not_fit_is_not_tried_again_for_another_queue():
    """36. The second job of a shape that has no room gets the reason of the first."""
    cluster = Cluster()
    cluster.submit("A", 1, cpu=33)
    cluster.submit("B", 1, cpu=33)
    assert set(cluster.round().refused.values()) == {"exceeds_every_node"}


def test_one_new_job_takes_one_victim():
    """37. A full node of a queue above its share, and a new job of one core: one run goes."""
    cluster = Cluster()
    cluster.submit("A", 32, on="n0")
    cluster.submit("B", 1)
    assert cluster.round().outs == named("A", 31)


def test_a_gang_gives_way_whole():
    """37. The last in line is a gang of two: both go, and what they leave over is free."""
    cluster = Cluster()
    cluster.submit("A", 30, on="n0")
    cluster.submit("A", 2, as_gang=True, on="n0")
    cluster.submit("B", 1)
    decided = cluster.round()
    assert decided.outs == named("A", 30, 31)
    assert decided.ins == named("B", 0)
