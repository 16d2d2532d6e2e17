"""What could not be placed even if nothing else ran."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.jobs import gang, job, jobs, leased, requirements
from kit.rounds import POOL, World, node
from pyresched.model import Ends, Intake, ReasonCode, UnschedulableReason
from pyresched.scheduling import SubmitCheck, unplaceable


def refused(world, *submitted):
    """The reasons for *submitted* over the nodes of *world*."""
    return dict(unplaceable(submitted, world.node_db(), world.config))


def full(*nodes):
    """A world whose nodes are full."""
    world = World().with_nodes(*nodes).with_queues("queue-a")
    for each in nodes:
        world.running(job(f"old-{each.id}", *each.total), each.id)
    return world


def test_what_fits_an_empty_node_is_not_refused_however_full_cordoned_or_lost_it_is():
    """The check asks what could ever be, not what is now."""
    world = full(node("n1"), node("n2", intake=Intake.CORDONED), node("n3", lost_at=0))
    assert refused(world, job("j", 4000, 8192), *gang("g", 4000, 8192, size=3)) == {}


def test_more_than_any_node_has_is_refused_with_the_evidence():
    """The largest total of the first resource that no node has enough of."""
    world = World().with_nodes(node("n1"), node("n2", 2000, 9000))
    assert refused(world, job("wide", 4001, 1), job("deep", 1, 9001)) == {
        "wide": UnschedulableReason(
            ReasonCode.EXCEEDS_EVERY_NODE, resource="cpu", wanted=4001, had=4000
        ),
        "deep": UnschedulableReason(
            ReasonCode.EXCEEDS_EVERY_NODE, resource="memory", wanted=9001, had=9000
        ),
    }


def test_a_selector_that_no_node_carries_is_refused():
    """NO_MATCHING_NODE."""
    world = World().with_nodes(node("n1", labels={"zone": "a"}))
    picky = requirements(1, 1, selector={"zone": "b"})
    assert refused(world, job("j", requirements=picky)) == {
        "j": UnschedulableReason(ReasonCode.NO_MATCHING_NODE)
    }


def test_a_gang_larger_than_the_pool_is_refused_whole():
    """Each member would fit, all together not; every member says so."""
    world = World().with_nodes(node("n1"), node("n2"))
    reason = UnschedulableReason(ReasonCode.GANG_EXCEEDS_POOL, wanted=3, had=2)
    members = gang("g", 3000, 1024, size=3)
    assert refused(world, *members) == dict.fromkeys(["g.0", "g.1", "g.2"], reason)
    assert refused(world, *gang("g", 2000, 1024, size=4)) == {}


def test_a_gang_is_refused_for_the_member_that_fits_nowhere():
    """Its own reason says more than that the gang does not fit."""
    members = gang("g", 1000, 1024, size=2)
    members[1] = members[1].replace(requirements=requirements(9000, 1))
    world = World().with_nodes(node("n1"))
    assert {reason.code for reason in refused(world, *members).values()} == {
        ReasonCode.EXCEEDS_EVERY_NODE
    }


def test_members_of_different_sizes_are_placed_largest_first():
    """As a round would: 3 on the node of 3, then both of 2 on the node of 4."""
    members = gang("g", 2000, 1024, size=3)
    members[2] = members[2].replace(requirements=requirements(3000, 1024))
    world = World().with_nodes(node("n1"), node("n2", 3000, 8192))
    assert refused(world, *members) == {}
    world = World().with_nodes(node("n1"))
    assert {reason.had for reason in refused(world, *members).values()} == {1}


def test_a_uniform_gang_needs_room_under_one_value():
    """Five nodes, but no zone has four; no node carries a rack."""
    nodes = [node(f"n{i}", labels={"zone": "a" if i < 2 else "b"}) for i in range(5)]
    world = World().with_nodes(*nodes)
    assert refused(world, *gang("g", 4000, 8192, size=3, uniformity="zone")) == {}
    reason = UnschedulableReason(ReasonCode.GANG_EXCEEDS_POOL, wanted=4, had=3)
    assert refused(world, *gang("g", 4000, 8192, size=4, uniformity="zone"))["g.0"] == reason
    reason = UnschedulableReason(ReasonCode.GANG_EXCEEDS_POOL, wanted=2, had=0)
    assert refused(world, *gang("g", 1000, 1024, size=2, uniformity="rack"))["g.0"] == reason


@pytest.mark.parametrize("pools", [("other",), ("nowhere",), ()])
def test_a_job_of_pools_without_nodes_is_refused(pools):
    """NO_NODES, also for a pool that the configuration does not have."""
    world = World().with_nodes(node("n1"))
    assert refused(world, job("j", pools=pools)) == {
        "j": UnschedulableReason(ReasonCode.NO_NODES, Ends.ROUND)
    }


def test_one_pool_that_could_hold_it_is_enough():
    """The pools of a job are alternatives."""
    world = World().with_nodes(node("n1"))
    assert refused(world, job("j", pools=("other", POOL))) == {}


def test_an_unknown_class_and_members_that_disagree_are_refused():
    """What no round would ever place."""
    world = World().with_nodes(node("n1"))
    assert refused(world, job("j", priority_class="nobody"))["j"].code is (
        ReasonCode.UNKNOWN_PRIORITY_CLASS
    )
    members = gang("g", size=2)
    members[1] = members[1].replace(pools=(POOL, "other"))
    assert refused(world, *members)["g.1"].code is ReasonCode.GANG_MALFORMED


def test_the_check_asks_once_for_a_shape_while_the_nodes_are_the_same(monkeypatch):
    """A copy of the nodes is made once, not for each job."""
    world = World().with_nodes(node("n1"), node("n2"))
    db = world.node_db()
    check = SubmitCheck(db, world.config)
    asked = []
    bare = db.bare
    monkeypatch.setattr(db, "bare", lambda pool: asked.append(pool) or bare(pool))
    check(jobs(3))
    check(jobs(3, prefix="other"))
    assert asked == [POOL]


def test_the_check_sees_nodes_come_and_go():
    """What it remembers is of the nodes as they were."""
    world = World().with_nodes(node("n1"))
    db = world.node_db()
    check = SubmitCheck(db, world.config)
    asked = [job("j", 8000, 1024)]
    assert check(asked)["j"].code is ReasonCode.EXCEEDS_EVERY_NODE
    db.upsert_many([node("n2", 8000, 8192)])
    assert check(asked) == {}
    db.remove_many(["n2"])
    assert check(asked)["j"].had == 4000


@given(
    st.lists(st.sampled_from([1000, 2000, 3000, 4000, 5000]), min_size=1, max_size=5),
    st.lists(st.sampled_from([2000, 4000, 4000, 5000]), max_size=4),
)
def test_the_check_and_a_round_over_the_empty_cluster_agree(sizes, nodes):
    """A job or gang is refused exactly if the round places nothing of it."""
    world = World().with_queues("queue-a")
    world.with_nodes(*[node(f"n{i}", cores, 100_000) for i, cores in enumerate(nodes)])
    members = [job("j", sizes[0], 1)]
    if len(sizes) > 1:
        members = [
            each.replace(requirements=requirements(size, 1), version=1)
            for each, size in zip(gang("g", size=len(sizes)), sizes, strict=True)
        ]
    world.with_jobs(members)
    placed = {each.job_id for each in world.round().scheduled}
    assert placed.isdisjoint(refused(world, *members))
    assert placed | set(refused(world, *members)) == {each.id for each in members}


def test_reasons_come_in_the_order_of_the_jobs():
    """No hash decides."""
    world = full(node("n1"))
    wide = jobs(50, 9000, 1)
    assert list(refused(world, *reversed(wide))) == [each.id for each in reversed(wide)]
    assert leased(wide[0]).id in refused(world, *wide)
