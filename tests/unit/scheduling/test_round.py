"""Facts of a round, each on a cluster small enough to follow by hand.

Where a node has 32 cores and 256 GiB and jobs ask for 1 core and 4 GiB, the numbers are those
that users of Armada know.
"""

import json
import math
import pickle

import pytest
from msgspec import structs

from kit.jobs import gang, job, jobs, leased, requeued, requirements
from kit.round_checks import breaches
from kit.rounds import CONFIG, POOL, World, node
from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.errors import ConfigError, InputError
from pyresched.jobdb import JobDb
from pyresched.model import (
    Ends,
    Intake,
    Method,
    Outcome,
    Placement,
    PriorityClass,
    Queue,
    ReasonCode,
    Requirements,
    RescheduleEvent,
    RescheduleTracker,
    ResourceVector,
    Termination,
    UnschedulableReason,
)
from pyresched.nodedb import NodeDb
from pyresched.scheduling import RoundState, run_round

SMALL = (1000, 4096)
LARGE = (32_000, 262_144)


def big(id="n1", **fields):
    """A node of 32 cores and 256 GiB."""
    return node(id, *LARGE, **fields)


def decided(world):
    """What a round decides, sound by every invariant."""
    result = world.round()
    assert breaches(world, result) == []
    return result


def placed(world):
    """Where each job goes, as {job id: node id}."""
    return {each.job_id: each.node_id for each in decided(world).scheduled}


def codes(world):
    """Why each job was refused, as {job id: code}."""
    return {id: reason.code for id, reason in decided(world).refused.items()}


def by_queue(world):
    """How many jobs each queue got placed."""
    counts = dict.fromkeys(sorted(world.queues), 0)
    for id in placed(world):
        counts[world.jobs[id].queue] += 1
    return counts


# --- nodes ------------------------------------------------------------------------------------


def test_a_full_node_takes_no_more():
    """33 jobs of a core on 32 cores: the first 32 go."""
    world = World().with_nodes(big()).with_queues("queue-a").with_jobs(jobs(33, *SMALL))
    assert sorted(placed(world)) == [f"job-{n:06}" for n in range(32)]
    assert codes(world) == {"job-000032": ReasonCode.INSUFFICIENT_RESOURCES}


def test_a_job_that_does_not_fit_does_not_stop_those_behind_it():
    """Ten jobs of a whole node between two small ones: both small ones go."""
    world = World().with_nodes(big()).with_queues("queue-a")
    world.with_jobs(job("first", *SMALL), job("last", *SMALL, submitted_at=20))
    world.with_jobs(jobs(10, *LARGE, submitted_at=5))
    assert set(placed(world)) == {"first", "last"}


def test_the_fullest_node_that_fits_is_taken_and_the_lower_id_on_a_tie():
    """Best fit by the first resource, then the next, then the id."""
    world = (
        World().with_nodes(node("n1"), node("n2"), node("n3", 4000, 4096)).with_queues("queue-a")
    )
    world.with_jobs(job("small", 1000, 1024))
    assert placed(world) == {"small": "n3"}
    world.with_jobs(job("small", 1000, 6000))
    assert placed(world) == {"small": "n1"}
    world.running(job("old", 1000, 1024), "n2")
    assert placed(world) == {"small": "n2"}


def test_cordoned_draining_and_lost_nodes_take_nothing_and_keep_what_runs():
    """A running job stays; a waiting one is told that the nodes are closed."""
    closed = [
        big("n1", intake=Intake.CORDONED),
        big("n2", intake=Intake.DRAINING),
        big("n3", lost_at=0),
    ]
    world = World().with_nodes(*closed).with_queues("queue-a")
    world.running(job("old", *SMALL, priority_class="best-effort"), "n1")
    world.with_jobs(job("new", *SMALL))
    result = decided(world)
    assert not result
    assert codes(world) == {"new": ReasonCode.NODES_CLOSED}


def test_an_over_allocated_node_keeps_its_runs_and_gets_none():
    """A capacity that drops below what runs preempts nobody."""
    world = World().with_nodes(node("n1", 1000, 1024)).with_queues("queue-a", "queue-b")
    world.running(job("old", 4000, 1024, priority_class="best-effort"), "n1")
    world.with_jobs(job("new", 500, 512, queue="queue-b"))
    result = decided(world)
    assert not result
    assert result.refused["new"].code is ReasonCode.NODES_CLOSED


def test_a_used_node_comes_after_unused_ones_and_a_failed_one_last():
    """The avoid order goes before best fit, and forbids nothing."""
    world = World().with_nodes(node("n1"), node("n2"), node("n3")).with_queues("queue-a")
    failed = requeued(leased(job("back"), node_id="n1"), Outcome.FAILED)
    world.with_jobs(failed)
    world.running(job("old-2", 4000, 8192), "n2").running(job("old-3", 4000, 8192), "n3")
    assert placed(world) == {"back": "n1"}
    world.finish("old-3")
    assert placed(world) == {"back": "n3"}


def test_a_node_to_avoid_that_is_free_comes_before_preempting_anyone():
    """The only free node is the one it failed on; a run elsewhere could be preempted."""
    world = World().with_nodes(node("n1"), node("n2")).with_queues("queue-a", "queue-b")
    world.with_jobs(requeued(leased(job("back"), node_id="n1"), Outcome.FAILED))
    world.running(job("victim", 4000, 8192, queue="queue-b", priority_class="spot"), "n2")
    assert placed(world) == {"back": "n1"}
    assert decided(world).preempted == ()


def test_a_run_that_is_out_of_reach_makes_its_node_used_not_failed_on():
    """Its replacement goes to a node that nobody used, then to that one, then where it failed."""
    world = World().with_nodes(node("n1"), node("n2"), node("n3")).with_queues("queue-a")
    failed = requeued(leased(job("back"), run_id="r1", node_id="n1"), Outcome.FAILED)
    event = RescheduleEvent(time=3, previous_run="r1", previous_node="n1", delay=1)
    again = failed.replace(tracker=RescheduleTracker(events=(event,)))
    world.with_jobs(requeued(leased(again, run_id="r2", node_id="n2"), Outcome.UNKNOWN))
    assert placed(world) == {"back": "n3"}
    world.running(job("old-3", 4000, 8192), "n3")
    assert placed(world) == {"back": "n2"}
    world.running(job("old-2", 4000, 8192), "n2")
    assert placed(world) == {"back": "n1"}


def test_a_job_that_is_forced_avoids_as_any_other():
    """The hand lifts its limit, not what is known of nodes."""
    world = World().with_nodes(node("n1"), node("n2")).with_queues("queue-a")
    failed = requeued(leased(job("back"), node_id="n1"), Outcome.FAILED)
    forced = failed.replace(reason="forced", failed_at=2, eligible_at=2, retry_delay=0)
    world.with_jobs(forced)
    assert placed(world) == {"back": "n2"}


def test_a_gang_takes_free_nodes_that_it_used_before_preempting_anyone():
    """Though it failed on one of them; the node of the victim was never used."""
    members = gang("g", 4000, 1024, size=2)
    members[0] = requeued(leased(members[0], node_id="n1"), Outcome.FAILED)
    members[1] = requeued(leased(members[1], node_id="n2"), Outcome.RETURNED)
    world = World().with_nodes(node("n1"), node("n2"), node("n3"))
    world.with_queues("queue-a", "queue-b").with_jobs(members)
    world.running(job("victim", 4000, 8192, queue="queue-b", priority_class="spot"), "n3")
    assert set(placed(world).values()) == {"n1", "n2"}
    assert decided(world).preempted == ()


# --- order ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "weights", "expected"),
    [
        (1, {"a": 1.0, "b": 1.0}, {"a": 16, "b": 16}),
        (1, {"a": 1.0, "b": 1.0, "c": 1.0}, {"a": 11, "b": 11, "c": 10}),
        (3, {"a": 1.0, "b": 0.5}, {"a": 64, "b": 32}),
        (3, {"a": 1.0, "b": 0.5, "c": 0.1}, {"a": 60, "b": 30, "c": 6}),
    ],
)
def test_queues_get_room_by_weight(nodes, weights, expected):
    """The queue with the lowest cost after its next job is next; names break ties."""
    world = World().with_nodes(*[big(f"n{i}") for i in range(nodes)]).with_queues(**weights)
    for queue in weights:
        world.with_jobs(jobs(100, *SMALL, prefix=queue, queue=queue))
    assert by_queue(world) == expected


def test_what_a_queue_runs_counts_wherever_it_runs():
    """A queue that holds more than a share gets nothing while the other is below it."""
    world = World().with_nodes(big()).with_queues("a", "b")
    world.with_jobs(leased(job("elsewhere", 32_000, 4096, queue="a"), node_id="gone"))
    world.with_jobs(
        jobs(32, *SMALL, prefix="a", queue="a"), jobs(32, *SMALL, prefix="b", queue="b")
    )
    assert by_queue(world) == {"a": 0, "b": 32}


def test_the_dominant_resource_counts():
    """1 core and 16 GiB against 1 core and 4 GiB: 10 and 22 on one node."""
    world = World().with_nodes(big()).with_queues("a", "b")
    world.with_jobs(jobs(100, 1000, 16_384, prefix="a", queue="a"))
    world.with_jobs(jobs(100, 1000, 4096, prefix="b", queue="b"))
    assert by_queue(world) == {"a": 10, "b": 22}


def test_multipliers_of_a_pool_change_what_counts():
    """With memory left out both queues get half of the cores."""
    world = World(
        SchedulingConfig(
            priority_classes=CONFIG.priority_classes,
            pools=(PoolConfig(name=POOL, fairness_resources={"cpu": 1.0}),),
        )
    )
    world.with_nodes(node("n1", 32_000, 1_000_000)).with_queues("a", "b")
    world.with_jobs(jobs(100, 1000, 16_384, prefix="a", queue="a"))
    world.with_jobs(jobs(100, 1000, 4096, prefix="b", queue="b"))
    assert by_queue(world) == {"a": 16, "b": 16}


def test_a_higher_class_goes_first_whatever_its_queue_holds():
    """Class priority comes before cost between queues."""
    world = World().with_nodes(big()).with_queues("a", "b")
    world.running(job("old", 16_000, 4096, queue="a"), "n1")
    world.with_jobs(jobs(20, *SMALL, prefix="a", queue="a", priority_class="urgent"))
    world.with_jobs(jobs(20, *SMALL, prefix="b", queue="b"))
    assert by_queue(world) == {"a": 16, "b": 0}


def test_within_a_queue_class_then_job_priority_then_place_decide():
    """Job priorities 10, 1, 20, each a whole node: the one with 1 goes."""
    world = World().with_nodes(big()).with_queues("queue-a")
    world.with_jobs(*[job(f"p{n}", *LARGE, priority=n) for n in (10, 1, 20)])
    assert placed(world) == {"p1": "n1"}
    world.with_jobs(job("urgent", *LARGE, priority=99, priority_class="urgent", submitted_at=9))
    assert placed(world) == {"urgent": "n1"}


def test_only_the_first_jobs_of_a_queue_are_looked_at_and_the_cut_is_told():
    """Look-back 3 of [small, 3 large, small]: the first goes, the last is past the look-back."""
    world = World(SchedulingConfig(max_queue_lookback=3)).with_nodes(big()).with_queues("queue-a")
    world.with_jobs(job("first", *SMALL), job("last", *SMALL, submitted_at=20))
    world.with_jobs(jobs(3, *LARGE, submitted_at=5))
    assert set(placed(world)) == {"first"}
    past = UnschedulableReason(ReasonCode.PAST_LOOKBACK, Ends.QUEUE, wanted=5, had=3)
    assert decided(world).refused["last"] == past
    assert decided(world).refused["job-000002"] == past


# --- gangs ------------------------------------------------------------------------------------


def test_a_gang_is_placed_whole_or_not_at_all():
    """A gang of 32 cores fits one node, a gang of 33 leaves no trace."""
    world = World().with_nodes(big()).with_queues("queue-a")
    world.with_jobs(gang("fits", *SMALL, size=32))
    assert len(placed(world)) == 32
    world = World().with_nodes(big()).with_queues("queue-a")
    world.with_jobs(gang("too-big", *SMALL, size=33), job("next", *SMALL, submitted_at=1))
    assert placed(world) == {"next": "n1"}
    assert decided(world).refused["too-big.0"] == UnschedulableReason(
        ReasonCode.GANG_DOES_NOT_FIT, wanted=33, had=32
    )


def test_a_gang_stands_at_the_place_of_its_last_member():
    """A small job between the members of a gang goes before the gang."""
    members = gang("g", *LARGE, size=2)
    members[1] = members[1].replace(submitted_at=9)
    world = World().with_nodes(big("n1"), big("n2")).with_queues("queue-a")
    world.with_jobs(members, job("between", *SMALL, submitted_at=5))
    assert set(placed(world)) == {"between"}
    world.with_nodes(big("n3"))
    assert set(placed(world)) == {"between", "g.0", "g.1"}


def test_members_are_placed_largest_first():
    """Small ones first would take the room that the large one needs."""
    small, large = gang("g", 1000, 1024, size=2)
    large = large.replace(requirements=requirements(4000, 1024), version=1)
    world = (
        World().with_nodes(node("n1", 4000, 8192), node("n2", 1000, 8192)).with_queues("queue-a")
    )
    world.with_jobs(small, large)
    result = decided(world)
    assert [each.job_id for each in result.scheduled] == ["g.1", "g.0"]
    assert placed(world) == {"g.1": "n1", "g.0": "n2"}


def test_members_that_have_ended_do_not_count():
    """Two of three are enough when the third is done."""
    members = gang("g", *SMALL, size=3)
    world = World().with_nodes(big()).with_queues("queue-a").with_jobs(members)
    world.jobs["g.0"] = leased(members[0])
    world.finish("g.0")
    world.jobs |= {each.id: each for each in members[1:]}
    assert set(placed(world)) == {"g.1", "g.2"}


def test_a_gang_waits_until_all_members_are_there():
    """Missing members, and those that still run, are counted in the reason."""
    world = World().with_nodes(big()).with_queues("queue-a")
    world.with_jobs(gang("g", *SMALL, size=4)[:3])
    assert decided(world).refused["g.1"] == UnschedulableReason(
        ReasonCode.GANG_INCOMPLETE, wanted=4, had=3
    )


@pytest.mark.parametrize(
    "odd",
    [
        {"requirements": requirements(*SMALL, priority_class="urgent")},
        {"pools": (POOL, "other")},
        {"gang": gang("g", size=4)[0].gang},
        {"gang": gang("g", size=3, uniformity="zone")[0].gang},
    ],
)
def test_a_gang_whose_members_disagree_is_malformed(odd):
    """Class, pools, cardinality and label must be the same for all."""
    members = gang("g", *SMALL, size=3)
    members[1] = members[1].replace(**odd)
    world = World().with_nodes(big()).with_queues("queue-a").with_jobs(members)
    assert set(codes(world).values()) == {ReasonCode.GANG_MALFORMED}
    assert len(codes(world)) == 3


def test_a_gang_with_too_many_members_is_malformed():
    """Three queued where two were declared."""
    members = [*gang("g", *SMALL, size=2), job("g.2", *SMALL, gang=gang("g", size=2)[0].gang)]
    world = World().with_nodes(big()).with_queues("queue-a").with_jobs(members)
    assert set(codes(world).values()) == {ReasonCode.GANG_MALFORMED}


def test_a_gang_that_reaches_past_the_look_back_waits():
    """Its members within the look-back are refused for the same reason."""
    world = World(SchedulingConfig(max_queue_lookback=2)).with_nodes(big()).with_queues("queue-a")
    world.with_jobs(gang("g", *SMALL, size=3))
    assert set(codes(world).values()) == {ReasonCode.PAST_LOOKBACK}


def test_nodes_of_a_gang_share_the_value_of_its_label():
    """3 whole nodes wanted, 2 with value a and 3 with b: all go to b."""
    nodes = [big(f"n{i}", labels={"zone": "a" if i < 2 else "b"}) for i in range(5)]
    world = World().with_nodes(*nodes).with_queues("queue-a")
    world.with_jobs(gang("g", *LARGE, size=3, uniformity="zone"))
    assert set(placed(world).values()) == {"n2", "n3", "n4"}
    world.with_jobs(gang("g", *LARGE, size=4, uniformity="zone"))
    assert decided(world).refused["g.0"] == UnschedulableReason(
        ReasonCode.GANG_DOES_NOT_FIT, wanted=4, had=3
    )
    world.with_jobs(gang("g", *LARGE, size=4, uniformity="rack"))
    assert set(codes(world).values()) == {ReasonCode.NO_MATCHING_NODE}


def test_a_gang_that_must_be_uniform_has_its_own_reason():
    """That a lone job of its shape found no room says less than that no node carries the label."""
    world = World().with_nodes(big()).with_queues("queue-a")
    world.running(job("old", *SMALL), "n1")
    world.with_jobs(job("lone", *LARGE), gang("g", *LARGE, uniformity="zone", submitted_at=5))
    assert codes(world) == {
        "g.0": ReasonCode.NO_MATCHING_NODE,
        "g.1": ReasonCode.NO_MATCHING_NODE,
        "lone": ReasonCode.INSUFFICIENT_RESOURCES,
    }


def test_the_members_of_a_gang_avoid_what_any_of_them_failed_on():
    """One member failed on n1: no member goes there while there is room elsewhere."""
    members = gang("g", 1000, 1024, size=2)
    members[0] = requeued(leased(members[0], node_id="n1"), Outcome.FAILED)
    world = World().with_nodes(node("n1", 4000, 4096), node("n2")).with_queues("queue-a")
    world.with_jobs(members)
    assert placed(world) == {"g.0": "n2", "g.1": "n2"}


# --- reasons ----------------------------------------------------------------------------------


def test_a_reason_says_what_was_wanted_and_what_the_nearest_node_had():
    """INSUFFICIENT now, EXCEEDS never, NO_MATCHING by selector; each with its evidence."""
    world = World().with_nodes(node("n1"), node("n2", 2000, 8192)).with_queues("queue-a")
    world.running(job("old", 1000, 1024), "n1")
    world.with_jobs(
        job("now", 4000, 1024),
        job("never", 5000, 1024),
        job("nowhere", requirements=requirements(100, 100, selector={"zone": "x"})),
    )
    assert decided(world).refused == {
        "never": UnschedulableReason(
            ReasonCode.EXCEEDS_EVERY_NODE, resource="cpu", wanted=5000, had=4000
        ),
        "now": UnschedulableReason(
            ReasonCode.INSUFFICIENT_RESOURCES, resource="cpu", wanted=4000, had=3000
        ),
        "nowhere": UnschedulableReason(ReasonCode.NO_MATCHING_NODE),
    }


def test_the_nearest_node_lacks_the_fewest_resources_and_the_least_of_them():
    """Of three nodes it is the one that is short of memory alone, by the smallest part."""
    nodes = [node("n1", 1000, 1000), node("n2", 4000, 7000), node("n3", 4000, 8000)]
    world = World().with_nodes(*nodes).with_queues("queue-a").with_jobs(job("j", 2000, 9000))
    assert decided(world).refused["j"] == UnschedulableReason(
        ReasonCode.EXCEEDS_EVERY_NODE, resource="memory", wanted=9000, had=8000
    )


@pytest.mark.parametrize(
    ("amounts", "lacks"),
    [((8000, 9000), ("cpu", 8000, 4000)), ((5000, 32_768), ("memory", 32_768, 8192))],
)
def test_of_several_resources_the_one_that_lacks_most_is_named(amounts, lacks):
    """Half of the cores against nearly all of the memory, and the other way round."""
    world = World().with_nodes(node("n1")).with_queues("queue-a").with_jobs(job("j", *amounts))
    reason = decided(world).refused["j"]
    assert (reason.resource, reason.wanted, reason.had) == lacks


def test_equal_jobs_are_refused_with_the_reason_of_the_first():
    """The evidence is that of the one try, not of a later one."""
    world = World().with_nodes(big()).with_queues("queue-a")
    world.with_jobs(jobs(5, *LARGE), job("last", *SMALL, submitted_at=9))
    reasons = {decided(world).refused[f"job-{n:06}"] for n in range(1, 5)}
    assert len(reasons) == 1
    assert codes(world)["last"] is ReasonCode.INSUFFICIENT_RESOURCES


def test_unknown_queues_cordoned_queues_and_bad_weights_are_told_and_hinder_nobody():
    """Each of their jobs gets the reason; the others are placed."""
    world = World().with_nodes(big()).with_queues("good", "cordoned")
    world.queues["cordoned"] = Queue(name="cordoned", cordoned=True)
    for name, weight in (("zero", 0.0), ("negative", -1.0), ("nan", math.nan), ("inf", math.inf)):
        world.queues[name] = bad = Queue(name=name)
        structs.force_setattr(bad, "weight", weight)  # as another program may have written it
    world.with_jobs(*[job(name, *SMALL, queue=name) for name in (*world.queues, "unknown")])
    assert placed(world) == {"good": "n1"}
    assert codes(world) == {
        "cordoned": ReasonCode.QUEUE_CORDONED,
        "inf": ReasonCode.INVALID_WEIGHT,
        "nan": ReasonCode.INVALID_WEIGHT,
        "negative": ReasonCode.INVALID_WEIGHT,
        "unknown": ReasonCode.UNKNOWN_QUEUE,
        "zero": ReasonCode.INVALID_WEIGHT,
    }
    assert {share.queue for share in decided(world).shares} == {"cordoned", "good"}
    assert decided(world).refused["nan"].ends is Ends.QUEUE


def test_an_unknown_class_and_a_request_of_other_resources_are_told_and_hinder_nobody():
    """A store under another configuration cannot crash a round."""
    world = World().with_nodes(big()).with_queues("queue-a")
    world.with_jobs(
        job("good", *SMALL),
        job("classless", *SMALL, priority_class="nobody-knows"),
        job("wide", requirements=Requirements(ResourceVector((1, 2, 3)))),
        job("negative", requirements=Requirements(ResourceVector((-1, 2)))),
    )
    assert placed(world) == {"good": "n1"}
    assert codes(world) == {
        "classless": ReasonCode.UNKNOWN_PRIORITY_CLASS,
        "negative": ReasonCode.INVALID_REQUEST,
        "wide": ReasonCode.INVALID_REQUEST,
    }


def test_a_pool_without_nodes_refuses_everything():
    """NO_NODES ends the round; nothing divides by zero."""
    world = World().with_queues("queue-a").with_jobs(job())
    result = decided(world)
    assert result.termination is Termination.NO_NODES
    assert result.refused["job-1"] == UnschedulableReason(ReasonCode.NO_NODES, Ends.ROUND)
    assert [share.demand_share for share in result.shares] == [1.0]


def test_a_round_with_nothing_queued_changes_nothing():
    """It says so, and still counts who holds what."""
    world = World().with_nodes(big()).with_queues("queue-a")
    world.running(job("old", 16_000, 4096), "n1")
    result = decided(world)
    assert result.termination is Termination.NOTHING_QUEUED
    assert not result
    assert [share.actual_share for share in result.shares] == [0.5]


def test_an_unknown_pool_is_an_error_that_names_the_near_one():
    """A round over a pool that the configuration does not have makes no sense."""
    world = World().with_nodes(big())
    with pytest.raises(ConfigError, match="defaut"):
        run_round(
            world.reader(), world.node_db(), {}, "defaut", world.config, RoundState(), world.now
        )


# --- results ----------------------------------------------------------------------------------


def test_a_job_of_another_pool_is_not_seen():
    """Neither placed nor refused; its run on a node of this pool holds its room."""
    world = World().with_nodes(big()).with_queues("queue-a")
    world.with_jobs(job("away", *SMALL, pools=("other",)))
    world.with_jobs(
        leased(job("guest", 32_000, 4096, pools=("other",)), node_id="n1", pool="other")
    )
    world.with_jobs(job("home", *SMALL))
    assert codes(world) == {"home": ReasonCode.INSUFFICIENT_RESOURCES}
    assert [share.actual_share for share in decided(world).shares] == [0.0]


def test_a_placement_carries_the_priority_of_its_class():
    """That at which leasing binds it."""
    world = World().with_nodes(big()).with_queues("queue-a")
    world.with_jobs(job("j", *SMALL, priority_class="urgent"))
    assert decided(world).scheduled == (Placement("j", "n1", 2000, Method.NO_PREEMPTION),)


def test_shares_say_where_each_queue_stood():
    """Held before, asked for, entitled to, held after."""
    world = World().with_nodes(big()).with_queues(a=1.0, b=3.0)
    world.running(job("old", 8000, 4096, queue="a"), "n1")
    world.with_jobs(jobs(8, *SMALL, prefix="b", queue="b"))
    a, b = decided(world).shares
    assert (a.queue, a.actual_share, a.demand_share, a.fair_share) == ("a", 0.25, 0.25, 0.25)
    assert (b.queue, b.actual_share, b.demand_share, b.fair_share) == ("b", 0.0, 0.25, 0.75)
    assert (b.adjusted_share, b.protected_share, b.resulting_share) == (0.25, 0.75, 0.25)


def test_what_a_queue_may_ask_for_does_not_grow_by_what_the_round_gives_it():
    """Shares are read after the round, but say what it went by; here a class has a limit."""
    classes = [PriorityClass(name="default", priority=1000, max_fraction_per_queue={"cpu": 0.75})]
    world = World(config=SchedulingConfig(priority_classes=classes)).with_queues("a", "b")
    world.with_nodes(node("n1", 32_000, 8192))
    world.with_jobs(jobs(8, 4000, 512, prefix="b", queue="b"), job("a", 4000, 512, queue="a"))
    a, b = decided(world).shares
    assert (a.demand_share, a.constrained_demand_share, a.resulting_share) == (0.125, 0.125, 0.125)
    assert (b.demand_share, b.constrained_demand_share, b.resulting_share) == (1.0, 0.75, 0.75)
    assert (a.adjusted_share, b.adjusted_share) == (0.125, 0.75)


def test_a_result_survives_pickling_and_json():
    """Saved and loaded it is the same result; refusals may be counted without being looked at."""
    world = World().with_nodes(big()).with_queues("queue-a").with_jobs(jobs(40, *SMALL))
    result = decided(world)
    assert result.refused_by_code() == {"insufficient_resources": 8}
    assert len(result.refused) == 8
    again = pickle.loads(pickle.dumps(result))  # noqa: S301  # our own bytes
    assert again == result
    assert json.loads(json.dumps(result.to_dict())) == result.to_dict()
    assert "insufficient_resources" in repr(result.refused)


def test_the_job_db_and_any_other_reader_give_the_same_round():
    """A snapshot, a transaction and a dry run are readers alike."""
    world = World().with_nodes(big(), node("n2")).with_queues("queue-a", "queue-b")
    world.running(job("old", *SMALL, priority_class="best-effort"), "n1")
    world.with_jobs(jobs(40, *SMALL), gang("g", *SMALL, size=3, queue="queue-b"))
    db = world.job_db()
    expected = world.round().to_dict()
    assert world.round(db.snapshot()).to_dict() == expected
    with db.dry_run() as dry:
        assert world.round(dry).to_dict() == expected


def test_the_state_comes_back_as_it_was():
    """This version keeps nothing from round to round."""
    world = World().with_nodes(big())
    state = RoundState()
    _, after = run_round(world.reader(), world.node_db(), {}, POOL, world.config, state, world.now)
    assert after == state


def test_classes_of_one_priority_are_told_apart_by_queue_order_only():
    """A preemptible and a non-preemptible class of one priority compete by cost."""
    config = SchedulingConfig(
        priority_classes=(
            PriorityClass(name="default", priority=5),
            PriorityClass(name="spot", priority=5, preemptible=True),
        )
    )
    world = World(config).with_nodes(big()).with_queues("a", "b")
    world.with_jobs(jobs(40, *SMALL, prefix="a", queue="a"))
    world.with_jobs(jobs(40, *SMALL, prefix="b", queue="b", priority_class="spot"))
    assert by_queue(world) == {"a": 16, "b": 16}


@pytest.mark.parametrize(
    ("at", "given", "told"),
    [
        (0, JobDb(), r"pass its snapshot\(\)"),
        (1, (), r"nodes is a NodeDb, got \(\)"),
        (2, [Queue(name="q")], r"queues is a mapping of queues by name, got .*Queue"),
        (2, {"q": None}, "queues is a mapping of queues by name, got None as 'q'"),
        (2, {7: Queue(name="q")}, r"queues is a mapping of queues by name, got .*Queue.* as 7"),
        (3, None, "pool is a str, got None"),
        (4, "default", "config is a SchedulingConfig, got 'default'"),
        (5, None, "state is a RoundState, got None"),
        (6, 1.5, "now is an int of ns, got 1.5"),
    ],
)
def test_an_argument_of_another_kind_is_named(at, given, told):
    """A db in place of its snapshot above all; two that are swapped too."""
    right = [JobDb().snapshot(), NodeDb(CONFIG), {}, POOL, CONFIG, RoundState(), 0]
    run_round(*right)
    right[at] = given
    with pytest.raises(TypeError, match=told):
        run_round(*right)


def test_a_result_counts_how_far_it_came_with_each_queue():
    """Turns are counted over all queues; who must stand in line again is told."""
    world = World().with_nodes(node("n1", 4000, 8192)).with_queues(a=1.0, b=1.0)
    spot = requirements(1000, 1024, priority_class="spot")
    for i in range(4):
        world.with_jobs(
            [leased(job(f"a{i}", requirements=spot, queue="a"), node_id="n1", at=i, priority=1000)]
        )
    world.with_jobs(gang("g", size=2, queue="b", requirements=spot))
    world.with_jobs([job("b9", queue="b", requirements=spot, submitted_at=9)])
    result = decided(world)
    a, b = result.queues
    # Who gave way has a turn again in the next pass, which counts from 0.
    assert (a.waiting, a.preempted, a.tried, a.first_position) == (4, 2, 0, 0)
    assert a.last_position is None
    assert (b.queued, b.looked_at, b.cut_off, b.tried) == (3, 3, False, 2)
    assert (b.scheduled_jobs, b.scheduled_gangs) == (2, 1)
    assert (b.first_position, b.last_position) == (0, 0)


@pytest.mark.parametrize("now", [2**63, -(2**63) - 1])
def test_a_time_beyond_64_bits_is_refused(now):
    """With a sentence, not with what the core makes of it."""
    with pytest.raises(InputError, match=f"now is an int64 of ns, got {now}"):
        run_round(JobDb().snapshot(), NodeDb(CONFIG), {}, POOL, CONFIG, RoundState(), now)
