"""What the limits of a queue, of a pool and of rates, and other pools, mean to a submit check."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.jobs import gang, job, requirements
from kit.rounds import World, node
from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.model import (
    AwayEntry,
    Ends,
    Intake,
    PriorityClass,
    Queue,
    ReasonCode,
    Resource,
    Taint,
    TaintEffect,
    UnschedulableReason,
    WellKnownNodeType,
)
from pyresched.nodedb import NodeDb
from pyresched.scheduling import SubmitCheck, unplaceable

HALF = PriorityClass(name="default", priority=1000, max_fraction_per_queue={"cpu": 0.5})


def config(*classes, **fields):
    """A configuration with a class `default` unless *classes* say otherwise."""
    return SchedulingConfig(
        priority_classes=classes or (PriorityClass(name="default", priority=1000),),
        default_priority_class=(classes[0].name if classes else "default"),
        **fields,
    )


def refused(config, nodes, *submitted, queues=()):
    """The reasons for *submitted* over *nodes*."""
    by_name = {queue.name: queue for queue in queues}
    return dict(unplaceable(submitted, NodeDb(config, nodes), config, by_name))


NODES = (node("n1"), node("n2"))  # 8 cores in all


def test_individual_members_that_fit_do_not_make_a_gang_that_does():
    """Nor does a cordoned node keep a job out."""
    cordoned = [node("n1", intake=Intake.CORDONED)]
    assert refused(config(), cordoned, job("j", 4000, 1)) == {}
    members = gang("g", 3000, 1, size=2)
    assert {each.code for each in refused(config(), cordoned, *members).values()} == {
        ReasonCode.GANG_EXCEEDS_POOL
    }


def test_more_than_a_queue_may_ever_hold_in_a_class_is_refused():
    """A lone job or a gang as a whole; each member alone would do."""
    reason = UnschedulableReason(
        ReasonCode.CLASS_LIMIT, resource="cpu", wanted=6000, had=4000, subject="default"
    )
    members = gang("g", 2000, 1, size=3)
    assert refused(config(HALF), NODES, *members) == {each.id: reason for each in members}
    assert refused(config(HALF), NODES, *gang("g", 2000, 1, size=2)) == {}
    wide = [node("n1", 8000, 100)]
    assert refused(config(HALF), wide, job("j", 4001, 1))["j"].had == 4000
    assert refused(config(HALF), wide, job("j", 4000, 1)) == {}


def test_what_one_queue_may_not_another_may():
    """Equal jobs, in any order: neither answer leaks."""
    small = Queue(name="small", max_fraction_by_class={"default": {"cpu": 0.25}})
    asked = [
        job(f"{queue}-{i}", 3000, 1, queue=queue) for i in (1, 2) for queue in ("small", "any")
    ]
    for order in (asked, asked[::-1]):
        found = refused(config(), NODES, *order, queues=[small])
        assert set(found) == {"small-1", "small-2"}
        assert found["small-1"].code is ReasonCode.CLASS_LIMIT
        assert found["small-1"].had == 2000


def test_a_queue_with_other_limits_is_asked_anew():
    """The check follows its row; nodes that are the same are not copied for it."""
    rows = {"q": Queue(name="q", max_fraction_by_class={"default": {"cpu": 0.25}})}
    made = config()
    check = SubmitCheck(NodeDb(made, NODES), made, rows)
    asked = [job("j", 3000, 1, queue="q")]
    assert check(asked)["j"].code is ReasonCode.CLASS_LIMIT
    rows["q"] = Queue(name="q", max_fraction_by_class={"default": {"cpu": 0.5}}, version=2)
    assert check(asked) == {}
    rows.clear()
    assert check(asked) == {}


def test_queues_with_the_same_limits_share_what_is_remembered(monkeypatch):
    """A thousand queues do not mean a thousand searches."""
    made = config(HALF)
    db = NodeDb(made, NODES)
    fork = db.bare("default")
    searches = []
    monkeypatch.setattr(db, "bare", lambda _: fork)
    monkeypatch.setattr(fork, "find", lambda *asked: searches.append(asked) or ("n1", 0))
    queues = {f"q{i}": Queue(name=f"q{i}", weight=1.0 + i) for i in range(20)}
    check = SubmitCheck(db, made, queues)
    assert check([job(f"j{i}", queue=f"q{i}") for i in range(20)]) == {}
    assert len(searches) == 1


@pytest.mark.parametrize(
    ("rates", "code", "had"),
    [
        ({"rate": 1.0, "burst": 2}, ReasonCode.GANG_EXCEEDS_BURST, 2),
        ({"queue_rate": 1.0, "queue_burst": 1}, ReasonCode.GANG_EXCEEDS_QUEUE_BURST, 1),
        (
            {"rate": 1.0, "burst": 2, "queue_rate": 1.0, "queue_burst": 1},
            ReasonCode.GANG_EXCEEDS_BURST,
            2,
        ),
    ],
)
def test_a_gang_of_more_members_than_may_ever_start_at_once_is_refused(rates, code, had):
    """At submit, by that reason; lone jobs and smaller gangs are not."""
    made = config(**rates)
    members = gang("g", 100, 1, size=3)
    reason = UnschedulableReason(code, wanted=3, had=had)
    assert refused(made, NODES, *members) == {each.id: reason for each in members}
    assert refused(made, NODES, job("j", 100, 1)) == {}


def test_a_gang_as_large_as_the_burst_may_start():
    """The bucket is full at times."""
    made = config(rate=1.0, burst=3, queue_rate=1.0, queue_burst=3)
    assert refused(made, NODES, *gang("g", 100, 1, size=3)) == {}


FLOATING = (Resource("cpu", "1m"), Resource("memory", "1Mi"), Resource("licences", floating=True))


def test_more_of_a_floating_resource_than_the_pool_has_is_refused():
    """No node has any, and none needs to."""
    made = config(
        resources=FLOATING,
        pools=(PoolConfig(name="default", floating={"licences": 10}), PoolConfig(name="none")),
    )
    nodes = [node("n1", 4000, 8192, 0), node("n2", 4000, 8192, 0, pool="none")]
    assert refused(made, nodes, job("j", 1000, 1, 10)) == {}
    reason = UnschedulableReason(
        ReasonCode.FLOATING_RESOURCES, resource="licences", wanted=11, had=10
    )
    assert refused(made, nodes, job("j", 1000, 1, 11)) == {"j": reason}
    members = gang("g", 1000, 1, 6, size=2)
    assert refused(made, nodes, *members)["g.0"].wanted == 12
    assert refused(made, nodes, *gang("g", 1000, 1, 5, size=2)) == {}
    elsewhere = refused(made, nodes, job("j", 1000, 1, 1, pools=("none",)))["j"]
    assert (elsewhere.code, elsewhere.had) == (ReasonCode.FLOATING_RESOURCES, 0)


def test_what_floats_counts_in_what_a_class_may_hold():
    """A part of the pool's quantity."""
    licensed = PriorityClass(name="default", max_fraction_per_queue={"licences": 0.5})
    made = config(
        licensed,
        resources=FLOATING,
        pools=(PoolConfig(name="default", floating={"licences": 10}),),
    )
    nodes = [node("n1", 4000, 8192, 0)]
    assert refused(made, nodes, job("j", 1000, 1, 5)) == {}
    assert refused(made, nodes, job("j", 1000, 1, 6))["j"].code is ReasonCode.CLASS_LIMIT


GPU = Taint("gpu", "true", TaintEffect.NO_SCHEDULE)
AWAY = PriorityClass(
    name="default", priority=1000, preemptible=True, away=(AwayEntry(priority=0, node_type="gpu"),)
)
GPU_TYPE = WellKnownNodeType(name="gpu", taints=(GPU,))


def away(**switches):
    """A configuration whose class may run away on nodes with GPUs."""
    return config(AWAY, node_types=(GPU_TYPE,), pools=(PoolConfig(name="default", **switches),))


def test_a_node_of_a_type_where_the_class_may_be_away_will_do():
    """As long as the pool places away; for a gang, gangs too."""
    tainted = [node("g1", taints=(GPU,)), node("n1", 1000, 1000)]
    wide = job("j", 4000, 8192)
    assert refused(away(), tainted, wide) == {}
    assert "j" in refused(away(place_away=False), tainted, wide)
    members = gang("g", 1000, 1000, size=5)
    assert refused(away(), tainted, *members) == {}, "four away and one at home"
    assert refused(away(place_gangs_away=False), tainted, wide) == {}
    found = refused(away(place_gangs_away=False), tainted, *members)
    assert found["g.0"] == UnschedulableReason(ReasonCode.GANG_EXCEEDS_POOL, wanted=5, had=1)


def test_a_pool_that_places_nothing_at_home_needs_a_place_away():
    """No search at home is made then."""
    plain = [node("n1")]
    assert refused(away(place_home=False), [node("g1", taints=(GPU,))], job("j")) == {}
    assert refused(away(place_home=False), plain, job("j")) == {}, "tolerating is not wanting"
    no_away = config(pools=(PoolConfig(name="default", place_home=False),))
    assert refused(no_away, plain, job("j"))["j"].code is ReasonCode.NO_MATCHING_NODE


GUESTS = config(pools=(PoolConfig(name="default", away_pools=("big",)), PoolConfig(name="big")))


def test_nodes_where_jobs_of_the_pool_may_be_guests_will_do():
    """Of one that is named among the away pools; not the other way round."""
    nodes = [node("n1", 1000, 1000), node("b1", pool="big")]
    assert refused(GUESTS, nodes, job("j", 4000, 8192)) == {}
    assert "j" in refused(GUESTS, nodes, job("j", 4001, 1))
    small = [node("n1"), node("b1", 1000, 1000, pool="big")]
    assert "j" in refused(GUESTS, small, job("j", 2000, 1, pools=("big",)))


def test_what_a_queue_may_hold_is_a_part_of_all_that_its_jobs_may_use():
    """Half of it is more than half of the pool's own nodes, of which there may be none."""
    limited = config(HALF, pools=GUESTS.pools)
    nodes = [node("b1", pool="big"), node("b2", pool="big")]
    assert refused(limited, nodes, job("j", 4000, 8192)) == {}
    nodes[1] = node("b2", 2000, 8192, pool="big")
    assert refused(limited, nodes, job("j", 4000, 8192))["j"].code is ReasonCode.CLASS_LIMIT


def test_a_gang_may_be_partly_at_home_and_partly_guests():
    """The members are counted over both; a value of a label too."""
    zones = {"zone": "z"}
    nodes = [node("n1", 2000, 8192, labels=zones), node("b1", pool="big", labels=zones)]
    for uniformity in ("", "zone"):
        assert refused(GUESTS, nodes, *gang("g", 1000, 1, size=6, uniformity=uniformity)) == {}
        found = refused(GUESTS, nodes, *gang("g", 1000, 1, size=7, uniformity=uniformity))
        assert found["g.0"].had == 6


def test_pools_with_guests_are_pools_to_check_against():
    """Also before they have nodes of their own."""
    db = NodeDb(GUESTS, [node("b1", pool="big")])
    check = SubmitCheck(db, GUESTS)
    assert check.pools == {"default", "big"}
    assert check([job("j", 4000, 8192)]) == {}
    db.upsert_many([node("n1")])
    db.remove_many(["b1"])
    assert check.pools == {"default"}
    no_nodes = UnschedulableReason(ReasonCode.NO_NODES, Ends.ROUND)
    assert check([job("j", pools=("big",))]) == {"j": no_nodes}


@given(
    st.lists(st.sampled_from([1000, 2000, 4000, 6000]), min_size=1, max_size=4),
    st.lists(st.sampled_from(["none", "half", "quarter"]), min_size=1, max_size=6),
    st.randoms(),
)
def test_the_answer_for_a_job_is_that_of_a_check_that_was_never_asked_before(sizes, kinds, random):
    """Whatever other queues and shapes were asked about."""
    fractions = {
        "none": {},
        "half": {"default": {"cpu": 0.5}},
        "quarter": {"default": {"cpu": 0.25}},
    }
    queues = {
        f"q{i}": Queue(name=f"q{i}", max_fraction_by_class=fractions[kind])
        for i, kind in enumerate(kinds)
    }
    asked = [
        job(f"{queue}-{size}", queue=queue, requirements=requirements(size, 1))
        for queue in queues
        for size in sizes
    ]
    asked = list({each.id: each for each in asked}.values())
    random.shuffle(asked)
    made = config()
    check = SubmitCheck(NodeDb(made, NODES), made, queues)
    for each in asked:
        assert check([each]) == refused(made, NODES, each, queues=queues.values())


AMOUNTS = st.tuples(
    st.sampled_from([1000, 2000, 4000, 5000]), st.just(64), st.sampled_from([0, 0, 1, 3])
)


@given(
    st.lists(AMOUNTS, min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from([2000, 4000]), st.booleans()), max_size=4),
    st.fixed_dictionaries(
        {
            "class_cpu": st.sampled_from([None, 0.5, 1.0]),
            "queue_cpu": st.sampled_from([None, 0.25, 0.75]),
            "burst": st.sampled_from([None, 1, 2, 4]),
            "queue_burst": st.sampled_from([None, 2]),
            "licences": st.sampled_from([0, 3, 6]),
            "home": st.booleans(),
            "away": st.booleans(),
            "gangs_away": st.booleans(),
        }
    ),
)
def test_the_check_and_a_round_over_the_empty_cluster_agree_on_limits(asked, nodes, limits):
    """A job or gang is refused exactly if the round places nothing of it: both ask the same."""
    by_queue = {} if limits["queue_cpu"] is None else {"default": {"cpu": limits["queue_cpu"]}}
    made = config(
        PriorityClass(
            name="default",
            priority=1000,
            preemptible=True,
            max_fraction_per_queue=(
                {} if limits["class_cpu"] is None else {"cpu": limits["class_cpu"]}
            ),
            away=AWAY.away,
        ),
        resources=FLOATING,
        node_types=(GPU_TYPE,),
        rate=None if limits["burst"] is None else 1.0,
        burst=limits["burst"],
        queue_rate=None if limits["queue_burst"] is None else 1.0,
        queue_burst=limits["queue_burst"],
        pools=(
            PoolConfig(
                name="default",
                floating={"licences": limits["licences"]},
                place_home=limits["home"] or not limits["away"],
                place_away=limits["away"],
                place_gangs_away=limits["gangs_away"],
            ),
        ),
    )
    world = World(config=made)
    world.queues["queue-a"] = Queue(name="queue-a", max_fraction_by_class=by_queue)
    world.with_nodes(
        *[
            node(f"n{i}", cores, 8192, 0, taints=(GPU,) if tainted else ())
            for i, (cores, tainted) in enumerate(nodes)
        ]
    )
    members = [job("j", *asked[0])]
    if len(asked) > 1:
        members = [
            each.replace(requirements=requirements(*amounts), version=1)
            for each, amounts in zip(gang("g", size=len(asked)), asked, strict=True)
        ]
    world.with_jobs(members)
    result = world.round()
    placed = {each.job_id for each in result.scheduled}
    found = unplaceable(members, world.node_db(), made, world.queues)
    assert placed | set(found) == {each.id for each in members}, (dict(result.refused), dict(found))
    assert placed.isdisjoint(found)
