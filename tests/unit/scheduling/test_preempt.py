"""Who gives way, to whom, and who does not. Nodes have 4 cores and 8 GiB unless said."""

import pytest

from kit.jobs import gang, job, jobs, leased, requeued, requirements
from kit.rounds import World, breaches, node
from pyresched.config import SchedulingConfig
from pyresched.model import (
    Method,
    Outcome,
    Placement,
    Preemption,
    PreemptionCause,
    PriorityClass,
    ReasonCode,
)

SPOT = {"priority_class": "spot"}


def spot(id, cores=1, **fields):
    """A preemptible job of *cores* cores and 1 GiB each, of queue b."""
    return job(id, cores * 1000, cores * 1024, queue="b", **SPOT, **fields)


def firm(id, cores=1, **fields):
    """A job that is not preemptible, of queue a."""
    fields.setdefault("queue", "a")
    return job(id, cores * 1000, cores * 1024, **fields)


def world(*nodes, **config):
    """Queues a and b over *nodes*."""
    made = World() if not config else World(with_classes(**config))
    return made.with_nodes(*nodes).with_queues("a", "b")


def with_classes(**config):
    """The kit's classes under other settings."""
    return SchedulingConfig(priority_classes=World().config.priority_classes, **config)


def decided(over):
    """What a round decides, sound by every invariant."""
    result = over.round()
    assert breaches(over, result) == []
    return result


def victims(over):
    """Who gives way, in the order of the decisions."""
    return [each.job_id for each in decided(over).preempted]


def full_of_spot(nodes=1, **config):
    """Nodes full of preemptible runs of one core, the later the younger."""
    over = world(*[node(f"n{i}") for i in range(nodes)], **config)
    for i in range(4 * nodes):
        over.running(spot(f"s{i}"), f"n{i % nodes}", at=i)
    return over


def test_the_youngest_run_of_a_queue_above_its_share_gives_way():
    """One core is needed: one run goes, and it says who, where and for whom."""
    over = full_of_spot().with_jobs(firm("new"))
    result = decided(over)
    assert result.scheduled == (Placement("new", "n0", 1000, Method.FAIR_SHARE),)
    assert result.preempted == (
        Preemption("s3", "s3/run-1", "n0", "new", PreemptionCause.FAIR_SHARE),
    )
    assert dict(result.refused) == {}


def test_a_queue_gives_way_until_it_is_at_its_share_and_no_further():
    """Queue b holds everything and a wants everything: each ends with half."""
    over = full_of_spot().with_jobs([firm(f"j{i}") for i in range(4)])
    assert victims(over) == ["s3", "s2"]
    assert {share.queue: share.resulting_share for share in decided(over).shares} == {
        "a": 0.5,
        "b": 0.5,
    }
    assert decided(over).refused_by_code() == {"insufficient_resources": 2}


def test_a_queue_at_its_share_loses_nothing():
    """Queue b holds half of the pool, which is its share; a gets nothing for its job."""
    over = world(node("n0"))
    over.running(spot("s0", 2), "n0").running(firm("old", 2), "n0").with_jobs(firm("new"))
    assert victims(over) == []


def test_unused_share_of_others_protects_too():
    """Queue a asks for a quarter only, so b may keep three quarters though its fair share is half."""
    over = full_of_spot().with_jobs(firm("new"))
    assert victims(over) == ["s3"]
    over = world(node("n0"))
    for i in range(3):
        over.running(spot(f"s{i}"), "n0", at=i)
    over.running(firm("old"), "n0").with_jobs(firm("new", 1, priority_class="urgent"))
    protected = {share.queue: share.protected_share for share in decided(over).shares}
    assert protected == {"a": 0.5, "b": 0.5}
    assert victims(over) == ["s2"]
    over.jobs.pop("new")
    over.with_jobs(spot("more"))
    protected = {share.queue: share.protected_share for share in decided(over).shares}
    assert protected == {"a": 0.5, "b": 0.75}


@pytest.mark.parametrize(("fraction", "lost"), [(1.0, 2), (0.5, 3), (0.0, 4), (2.0, 0)])
def test_the_protected_fraction_moves_the_line(fraction, lost):
    """At half of its share protected, b may sink to a quarter of the pool; at 0 to nothing."""
    over = full_of_spot(protected_fraction=fraction).with_jobs([firm(f"j{i}") for i in range(4)])
    assert len(victims(over)) == lost


def test_a_preemptible_job_preempts_nobody():
    """However far below its share its queue is."""
    over = full_of_spot().with_jobs(firm("new", **SPOT))
    assert not decided(over)


def test_runs_that_are_not_preemptible_stay():
    """A node full of them refuses a more urgent job."""
    over = world(node("n0"))
    for i in range(4):
        over.running(firm(f"old{i}", queue="b"), "n0")
    over.with_jobs(firm("new", priority_class="urgent"))
    assert victims(over) == []


def test_a_more_urgent_run_does_not_give_way_to_a_less_urgent_job():
    """A preemptible class above the job's own priority is safe from it."""
    config = SchedulingConfig(
        priority_classes=(
            PriorityClass(name="default", priority=1000),
            PriorityClass(name="spot", priority=1001, preemptible=True),
        )
    )
    over = World(config).with_nodes(node("n0")).with_queues("a", "b")
    over.running(spot("s0", 4), "n0").with_jobs(firm("new"))
    assert victims(over) == []


def test_no_run_goes_that_is_not_needed():
    """With the old large run, one of the young small ones is enough: the older is spared."""
    over = world(node("n0"), protected_fraction=0.0)
    over.running(spot("large", 2), "n0", at=0)
    over.running(spot("s1"), "n0", at=1).running(spot("s2"), "n0", at=2)
    over.with_jobs(firm("new", 2))
    assert victims(over) == ["s2", "s1"]
    over.with_jobs(firm("new", 3))
    assert victims(over) == ["s2", "large"]


def test_older_runs_stay_once_the_younger_ones_would_bring_the_queue_to_its_share():
    """The same under full protection: after s2 and s1 the queue is at its share, so large stays."""
    over = world(node("n0"))
    over.running(spot("large", 2), "n0", at=0)
    over.running(spot("s1"), "n0", at=1).running(spot("s2"), "n0", at=2)
    over.with_jobs(firm("new", 3))
    assert victims(over) == []


def test_the_node_is_the_one_whose_oldest_victim_is_the_youngest():
    """Two young runs on n1 go rather than one old run on n0."""
    over = world(node("n0", 2000, 8192), node("n1", 2000, 8192))
    over.running(spot("old", 2), "n0", at=0)
    over.running(spot("s1"), "n1", at=8).running(spot("s2"), "n1", at=9)
    over.with_jobs(firm("new", 2))
    assert victims(over) == ["s2", "s1"]


def test_a_node_to_avoid_is_cleared_only_if_no_other_would_do():
    """The youngest run is where the job failed; an older one elsewhere goes."""
    over = world(node("n0"), node("n1"))
    over.running(spot("old", 4), "n0", at=0).running(spot("young", 4), "n1", at=9)
    back = requeued(leased(firm("new", 4), node_id="n1"), Outcome.FAILED)
    over.with_jobs(back)
    assert victims(over) == ["old"]


def test_a_gang_gives_way_whole():
    """One member's room is needed; its mate on another node goes with it, and says why."""
    over = world(node("n0"), node("n1"))
    for i, member in enumerate(gang("g", 4000, 4096, size=2, queue="b", **SPOT)):
        over.running(member, f"n{i}", at=5)
    over.with_jobs(firm("new", 4))
    assert decided(over).preempted == (
        Preemption("g.0", "g.0/run-1", "n0", "new", PreemptionCause.FAIR_SHARE),
        Preemption("g.1", "g.1/run-1", "n1", "new", PreemptionCause.GANG),
    )


def test_a_gang_that_could_not_go_whole_stays():
    """One member runs in another pool: nothing of the gang is touched."""
    over = world(node("n0"), node("n1", pool="other"))
    members = gang("g", 4000, 4096, size=2, queue="b", **SPOT)
    over.running(members[0], "n0", at=5)
    over.with_jobs(leased(members[1], node_id="n1", pool="other"))
    over.with_jobs(firm("new", 4))
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
    assert len(result.scheduled) == 1 + size
    assert len(result.preempted) == 2
    assert dict(result.refused) == {}


def test_a_gang_preempts_for_all_its_members_or_not_at_all():
    """Two nodes wanted, one can be cleared: nobody goes. With more share to take, both go."""
    over = world(node("n0"), node("n1"))
    over.running(spot("s0", 4), "n0", at=0).running(firm("old", 4, queue="b"), "n1", at=1)
    over.with_jobs(gang("g", 4000, 4096, size=2, queue="a"))
    assert victims(over) == []
    assert decided(over).refused["g.0"].code is ReasonCode.INSUFFICIENT_RESOURCES
    over = full_of_spot(nodes=3)
    over.with_jobs(gang("g", 3000, 3072, size=2, queue="a"))
    assert len(victims(over)) == 6
    assert {each.method for each in decided(over).scheduled} == {Method.FAIR_SHARE}


def young_lone_run_beside_an_old_gang():
    """A young run on n0, and a gang with a run there and one on n1, in zone z; all of b."""
    over = world(node("n0"), node("n1", 1000, 1024, labels={"zone": "z"}))
    for member, node_id, cores in zip(
        gang("g", size=2, queue="b", **SPOT), ("n0", "n1"), (2, 1), strict=True
    ):
        asked = requirements(cores * 1000, cores * 1024, **SPOT)
        over.running(member.replace(requirements=asked, version=1), node_id, at=1)
    return over.running(spot("lone", 2), "n0", at=9)


IN_ZONE = requirements(1000, 1024, selector={"zone": "z"})


def test_a_victim_that_another_member_made_needless_keeps_its_node_at_once():
    """The lone run went first, then the gang freed its room: no third job may sit down there."""
    over = young_lone_run_beside_an_old_gang()
    wanted = gang("w", 2000, 2048, size=2, queue="a")
    wanted[1] = wanted[1].replace(requirements=IN_ZONE, version=1)
    over.with_jobs(wanted, firm("later", 2, submitted_at=5))
    result = decided(over)
    assert {each.job_id for each in result.preempted} == {"g.0", "g.1"}
    assert set(result.refused) == {"later"}


def test_a_victim_that_another_job_made_needless_keeps_its_node_in_the_end():
    """The lone run went for the first job, then the gang went for the second."""
    over = young_lone_run_beside_an_old_gang()
    over.with_jobs(firm("first", 2, priority_class="urgent"))
    over.with_jobs(job("second", queue="a", requirements=IN_ZONE))
    result = decided(over)
    assert {each.job_id for each in result.preempted} == {"g.0", "g.1"}
    assert [each.job_id for each in result.scheduled] == ["first", "second"]
    assert {share.queue: share.resulting_share for share in result.shares} == {"a": 0.6, "b": 0.4}


def test_of_two_needless_victims_the_older_keeps_its_node():
    """The gang frees room for one of the two that went for the first job."""
    over = world(node("n0"), node("n1", 1000, 1024, labels={"zone": "z"}), protected_fraction=0.0)
    for i, member in enumerate(gang("g", 1000, 1024, size=2, queue="b", **SPOT)):
        over.running(member, f"n{i}", at=1)
    over.running(spot("older"), "n0", at=5).running(spot("younger"), "n0", at=6)
    over.running(firm("old"), "n0")
    over.with_jobs(firm("first", 2, priority_class="urgent"))
    over.with_jobs(job("second", queue="a", requirements=IN_ZONE))
    assert victims(over) == ["younger", "g.0", "g.1"]


def test_a_run_that_can_be_spared_is_spared_before_the_next_member_looks_for_room():
    """The second member would else sit on the room of s1, though n1 has some."""
    over = world(node("n0"), node("n1"), protected_fraction=0.0)
    over.running(spot("large", 2), "n0", at=0)
    over.running(spot("s1"), "n0", at=1).running(spot("s2"), "n0", at=2)
    over.running(firm("old", 3), "n1")
    wanted = gang("g", 3000, 3072, size=2, queue="a")
    wanted[1] = wanted[1].replace(requirements=requirements(1000, 1024), version=1)
    over.with_jobs(wanted)
    assert victims(over) == ["s2", "large"]


def test_what_is_placed_in_a_round_is_never_its_victim():
    """The job of b goes first as the cheaper; that of a then takes older runs only."""
    over = world(node("n0"))
    over.running(spot("s0", 3), "n0", at=0)
    over.with_jobs(spot("fresh"), firm("new", 2))
    result = decided(over)
    scheduled = {each.job_id for each in result.scheduled}
    assert scheduled.isdisjoint(each.job_id for each in result.preempted)


def test_runs_of_an_unknown_queue_hold_their_room():
    """Eight cores of a queue that was deleted are not given away."""
    over = world(node("n0"))
    over.running(job("old", 3000, 1024, queue="deleted", **SPOT), "n0")
    over.with_jobs(jobs(4, 1000, 1024, queue="a"))
    result = decided(over)
    assert len(result.scheduled) == 1
    assert result.preempted == ()


def test_a_round_after_a_preemption_leaves_everyone_alone():
    """What gave way does not come back for the room, so nothing flaps."""
    over = full_of_spot(nodes=2).with_jobs([firm(f"j{i}") for i in range(9)])
    over.now = 100
    over.grant(decided(over))
    for _ in range(5):
        over.now += 10
        assert not decided(over)
