"""Who gives way, to whom, and who does not. Nodes have 4 cores and 8 GiB unless said."""

from typing import Any

import pytest

from kit.deciding import Decider
from kit.facts import Cluster
from kit.jobs import gang, job, jobs, leased, requeued, requirements
from kit.round_checks import breaches
from kit.rounds import CONFIG, World, node
from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.model import Outcome, PriorityClass

SPOT = {"priority_class": "spot"}
IN_ZONE = requirements(1000, 1024, selector={"zone": "z"})


def spot(id, cores=1, **fields):
    """A preemptible job of *cores* cores and 1 GiB each, of queue b."""
    fields.setdefault("queue", "b")
    return job(id, cores * 1000, cores * 1024, **{**SPOT, **fields})


def firm(id, cores=1, **fields):
    """A job that is not preemptible, of queue a."""
    fields.setdefault("queue", "a")
    return job(id, cores * 1000, cores * 1024, **fields)


def world(*nodes, classes: Any = CONFIG.priority_classes, weight=1.0, **config):
    """Queues a, of this *weight*, and b, of 1, over *nodes*."""
    made = World(SchedulingConfig(priority_classes=classes, **config))
    return made.with_nodes(*nodes).with_queues(a=weight, b=1.0)


def full_of_spot(nodes=1, **config):
    """Nodes full of preemptible runs of one core, the later the younger."""
    over = world(*[node(f"n{i}") for i in range(nodes)], **config)
    for i in range(4 * nodes):
        over.running(spot(f"s{i}"), f"n{i % nodes}", at=i)
    return over


def decided(over):
    """What a round decides, sound by every invariant."""
    result = Decider().decide(over)
    assert breaches(over, result) == []
    return result


def victims(over):
    """Who gives way, in the order of the decisions."""
    return [each[0] for each in decided(over).preempted]


# --- by share -----------------------------------------------------------------------------------


def test_the_youngest_run_of_a_queue_above_its_share_gives_way():
    """One core is needed: one run goes, and it says who, where, for whom and why."""
    result = decided(full_of_spot().with_jobs(firm("new")))
    assert result.scheduled == [("new", "n0", 1000, "fair_share")]
    assert result.preempted == [("s3", "s3/run-1", "n0", "new", "fair_share")]
    assert result.refused == {}


def test_a_queue_gives_way_until_it_is_at_its_share_and_no_further():
    """Queue b holds everything and a wants everything: each ends with half."""
    over = full_of_spot().with_jobs([firm(f"j{i}") for i in range(4)])
    assert victims(over) == ["s3", "s2"]


def test_a_preemptible_job_takes_by_share_too():
    """What counts is the share of its queue, not whether it may lose the room again."""
    assert victims(full_of_spot().with_jobs(firm("new", **SPOT))) == ["s3"]


def test_a_queue_at_its_share_loses_nothing():
    """Queue b holds half of the pool, which is its share; a gets nothing for its job."""
    over = world(node("n0"))
    over.running(spot("s0", 2), "n0").running(firm("old", 2), "n0").with_jobs(firm("new"))
    assert victims(over) == []


@pytest.mark.parametrize(("fraction", "lost"), [(1.0, 2), (0.5, 3), (0.0, 4), (2.0, 0)])
def test_the_protected_fraction_moves_the_line(fraction, lost):
    """At half of its share protected, b may sink to a quarter of the pool; at 0 to nothing.

    By then a holds more than its share, but what cannot give way keeps its room.
    """
    over = full_of_spot(protected_fraction=fraction).with_jobs([firm(f"j{i}") for i in range(4)])
    assert len(victims(over)) == lost or fraction < 1.0


def test_no_run_goes_that_is_not_needed():
    """With the old large run, one of the young small ones is enough: the older is spared."""
    over = world(node("n0"), weight=4.0, protected_fraction=0.0)
    over.running(spot("large", 2), "n0", at=0)
    over.running(spot("s1"), "n0", at=1).running(spot("s2"), "n0", at=2)
    over.with_jobs(firm("new", 2))
    assert victims(over) == ["s2", "s1"]
    over.with_jobs(firm("new", 3))
    assert victims(over) == ["s2", "large"]


def test_who_is_spared_is_spared_at_once():
    """The third core is not needed by the first job; nor may the next one sit down there."""
    over = world(node("n0"), weight=3.0)
    over.running(spot("large", 2), "n0", at=0)
    over.running(spot("s1"), "n0", at=1).running(spot("s2"), "n0", at=2)
    over.with_jobs(firm("new", 3), firm("next", submitted_at=1))
    result = decided(over)
    assert (result.ins, result.outs) == ({"new"}, {"s2", "large"})


def test_the_node_is_the_one_whose_oldest_victim_is_the_youngest():
    """Two young runs on n1 go rather than one old run on n0."""
    over = world(node("n0", 2000, 8192), node("n1", 2000, 8192))
    over.running(spot("old", 2), "n0", at=0)
    over.running(spot("s1"), "n1", at=8).running(spot("s2"), "n1", at=9)
    over.with_jobs(firm("new", 2))
    assert victims(over) == ["s2", "s1"]


def test_a_queue_spread_over_nodes_in_turn_still_makes_room_for_a_large_job():
    """The protected share is asked node by node: on n1 the oldest of its runs may go too."""
    over = full_of_spot(nodes=2, weight=4.0).with_jobs(firm("new", 4))
    assert victims(over) == ["s7", "s5", "s3", "s1"]


def test_a_node_to_avoid_is_cleared_only_if_no_other_would_do():
    """The youngest run is where the job failed; an older one elsewhere goes."""
    over = world(node("n0"), node("n1"), weight=4.0)
    over.running(spot("old", 4), "n0", at=0).running(spot("young", 4), "n1", at=9)
    over.with_jobs(requeued(leased(firm("new", 4), node_id="n1"), Outcome.FAILED))
    assert victims(over) == ["old"]


def test_off_nobody_gives_way_by_share():
    """The pool turns it off, and the new job waits."""
    pool = PoolConfig(name="default", preempt_by_fair_share=False)
    assert victims(full_of_spot(pools=(pool,)).with_jobs(firm("new"))) == []


# --- by urgency ---------------------------------------------------------------------------------


def test_a_more_urgent_job_takes_room_of_a_queue_at_its_share():
    """Urgency does not ask for shares; the youngest run goes."""
    over = world(node("n0"))
    over.running(spot("s0"), "n0", at=1).running(spot("s1"), "n0", at=2)
    over.running(firm("old", 2), "n0").with_jobs(firm("new", priority_class="urgent"))
    result = decided(over)
    assert result.scheduled == [("new", "n0", 2000, "urgency")]
    assert result.preempted == [("s1", "s1/run-1", "n0", "new", "urgency")]


def test_an_equally_urgent_job_takes_nothing_by_urgency():
    """Both are at 1000, and b is at its share."""
    over = world(node("n0"))
    over.running(spot("s0", 2), "n0").running(firm("old", 2), "n0").with_jobs(firm("new"))
    assert victims(over) == []


def test_the_lowest_class_goes_first():
    """A run of best effort rather than one of spot, whichever is younger."""
    over = world(node("n0"), node("n1"))
    over.running(spot("low", 4, priority_class="best-effort"), "n0", at=1)
    over.running(spot("mid", 4), "n1", at=9).running(firm("more", 0), "n1")
    over.with_jobs(firm("new", 4, priority_class="urgent"))
    assert victims(over) == ["low"]


def test_off_nobody_gives_way_by_urgency():
    """The pool turns it off, and the urgent job waits."""
    pool = PoolConfig(name="default", preempt_by_urgency=False)
    over = world(node("n0"), pools=(pool,))
    over.running(spot("s0", 2), "n0").running(firm("old", 2), "n0")
    over.with_jobs(firm("new", priority_class="urgent"))
    assert victims(over) == []


def test_runs_that_are_not_preemptible_stay():
    """A node full of them refuses a more urgent job."""
    over = world(node("n0"))
    for i in range(4):
        over.running(firm(f"old{i}", queue="b"), "n0")
    over.with_jobs(firm("new", priority_class="urgent"))
    assert victims(over) == []


def test_a_more_urgent_run_does_not_give_way_to_a_less_urgent_job():
    """A preemptible class above the job's own priority is safe from it."""
    classes = (
        PriorityClass(name="default", priority=1000),
        PriorityClass(name="spot", priority=1001, preemptible=True),
    )
    over = world(node("n0"), classes=classes)
    over.running(spot("s0", 4), "n0").with_jobs(firm("new"))
    assert victims(over) == []


def test_runs_of_an_unknown_queue_give_way_to_urgency_only():
    """A deleted queue has no share to be above; its runs hold their room against equals."""
    over = world(node("n0"))
    over.running(job("old", 4000, 1024, queue="deleted", **SPOT), "n0")
    over.with_jobs(firm("new"))
    assert victims(over) == []
    over.with_jobs(firm("new", priority_class="urgent"))
    assert victims(over) == ["old"]


# --- gangs --------------------------------------------------------------------------------------


def test_a_gang_gives_way_whole():
    """One member's room is needed; its mate on another node goes with it, and says why."""
    over = world(node("n0"), node("n1"))
    for i, member in enumerate(gang("g", 4000, 4096, size=2, queue="b", **SPOT)):
        over.running(member, f"n{i}", at=5)
    over.with_jobs(firm("new", 4))
    assert decided(over).preempted == [
        ("g.0", "g.0/run-1", "n0", "new", "fair_share"),
        ("g.1", "g.1/run-1", "n1", "new", "gang"),
    ]


def test_a_gang_that_could_not_go_whole_stays():
    """One member runs in another pool: nothing of the gang is touched."""
    over = world(node("n0"), node("n1", pool="other"))
    members = gang("g", 4000, 4096, size=2, queue="b", **SPOT)
    over.running(members[0], "n0", at=5)
    over.with_jobs(leased(members[1], node_id="n1", pool="other"))
    over.with_jobs(firm("new", 4, priority_class="urgent"))
    assert victims(over) == []


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("urgency", ["urgent", "default"])
def test_room_left_by_a_gang_goes_to_others_in_the_same_round(size, urgency):
    """To those after the job that needed it, and to those that were refused before it."""
    over = world(node("n0"), node("n1")).with_queues("c")
    for i, member in enumerate(gang("g", 4000, 4096, size=2, queue="b", **SPOT)):
        over.running(member, f"n{i}", at=5)
    asked = requirements(3000 // size, 3072 // size, **SPOT)
    if size == 1:
        over.with_jobs(job("other", queue="c", requirements=asked))
    else:
        over.with_jobs(gang("other", size=2, queue="c", requirements=asked))
    over.with_jobs(firm("first", 4, priority_class=urgency))
    result = decided(over)
    assert (len(result.ins), len(result.outs), result.refused) == (1 + size, 2, {})


def test_a_gang_preempts_for_all_its_members_or_not_at_all():
    """Two nodes wanted, one can be cleared: nobody goes. Where both can be, both are."""
    over = world(node("n0"), node("n1"), weight=4.0)
    over.running(spot("s0", 4), "n0", at=0).running(firm("old", 4, queue="b"), "n1", at=1)
    over.with_jobs(gang("g", 4000, 4096, size=2, queue="a"))
    result = decided(over)
    assert (result.preempted, result.refused["g.0"]) == ([], "gang_does_not_fit")
    over = full_of_spot(nodes=3, weight=4.0).with_jobs(gang("g", 3000, 3072, size=2, queue="a"))
    result = decided(over)
    assert len(result.outs) == 6
    assert {each[3] for each in result.scheduled} == {"fair_share"}


# --- back home ----------------------------------------------------------------------------------


def young_lone_run_beside_an_old_gang():
    """A young run on n0, and a gang with a run there and one on n1, in zone z; all of b."""
    nodes = (node("n0"), node("n1", 1000, 1024, labels={"zone": "z"}))
    over = world(*nodes, weight=9.0, protected_fraction=0.0)
    for member, node_id, cores in zip(
        gang("g", size=2, queue="b", **SPOT), ("n0", "n1"), (2, 1), strict=True
    ):
        asked = requirements(cores * 1000, cores * 1024, **SPOT)
        over.running(member.replace(requirements=asked, version=1), node_id, at=1)
    return over.running(spot("lone", 2), "n0", at=9)


def test_a_victim_that_another_job_made_needless_keeps_its_node():
    """The lone run went for the first job, then the gang went for the second: lone never moved."""
    over = young_lone_run_beside_an_old_gang()
    over.with_jobs(firm("first", 2, priority_class="urgent"))
    over.with_jobs(job("second", queue="a", requirements=IN_ZONE))
    result = decided(over)
    assert (result.outs, result.ins) == ({"g.0", "g.1"}, {"first", "second"})
    assert result.moved == []


def test_who_finds_room_elsewhere_is_moved():
    """The run lost its node to a job that can go nowhere else, and gets a new run on the other."""
    over = world(node("n0", labels={"zone": "z"}), node("n1", 2000, 8192))
    over.running(spot("s0", 2), "n0", at=1).running(firm("old", 2), "n0")
    asked = requirements(1000, 1024, priority_class="urgent", selector={"zone": "z"})
    over.with_jobs(job("new", queue="a", requirements=asked))
    result = decided(over)
    assert result.preempted == []
    assert result.moved == [("s0", "n0", "n1", 1000, "new", "urgency")]


def test_a_round_after_a_preemption_leaves_everyone_alone():
    """What gave way does not come back for the room, so nothing flaps."""
    over = full_of_spot(nodes=2).with_jobs([firm(f"j{i}") for i in range(9)])
    over.now = 100
    over.grant(decided(over))
    for _ in range(5):
        over.now += 10
        assert not decided(over)


def test_what_is_placed_in_a_pass_is_not_its_victim_and_nothing_flaps():
    """The urgent preemptible job and the firm one want the same core in turn."""
    over = world(node("n0"), protected_fraction=0.0)
    over.running(spot("s0", 3), "n0", at=0)
    over.with_jobs(spot("fresh"), firm("new", 2), jobs(3, 1000, 1024, queue="b", **SPOT))
    over.now = 100
    over.grant(decided(over))
    assert not decided(over)


# --- guests and those away ----------------------------------------------------------------------


def test_a_guest_goes_before_anybody_and_for_the_least():
    """A run of another pool gives way to a job of the lowest class, whatever its own."""
    pools = (PoolConfig(name="default"), PoolConfig(name="other", away_pools=("default",)))
    over = world(node("n0"), pools=pools)
    over.running(spot("mine", 2), "n0", at=9)
    guest = spot("guest", 2, pools=("other",))
    over.with_jobs(leased(guest, node_id="n0", pool="other", priority=1000))
    over.with_jobs(firm("new", 2, priority_class="best-effort"))
    assert decided(over).preempted == [("guest", "guest/run-1", "n0", "new", "guest")]


def test_a_guest_that_cannot_give_way_stays():
    """Its class is not preemptible: it holds its room against all."""
    pools = (PoolConfig(name="default"), PoolConfig(name="other", away_pools=("default",)))
    over = world(node("n0"), pools=pools)
    guest = firm("guest", 4, pools=("other",))
    over.with_jobs(leased(guest, node_id="n0", pool="other", priority=1000))
    over.with_jobs(firm("new", priority_class="urgent"))
    assert victims(over) == []


@pytest.mark.parametrize("cores", [3, 7, 10])
def test_a_queue_that_holds_its_share_to_the_last_core_loses_nothing(cores):
    """Not even where that part of the pool is no exact number to a computer."""
    cluster = Cluster(0, protected_fraction=1.0)
    cluster.node("n0", cpu=cores - 1)
    cluster.node("n1", cpu=1, labels={"kind": "small"})
    cluster.queue("A", cores)
    cluster.queue("B", cores / (cores - 2))
    cluster.queue("C", cores)
    cluster.submit("A", 1, on="n1")
    cluster.submit("B", cores - 1, "priority-2-non-preemptible", on="n0")
    cluster.submit("A", cores)
    # It would go first, and nobody else is where it has to go.
    cluster.submit("C", 2 * cores, cpu=0.5, selector={"kind": "small"})
    assert not cluster.round()
