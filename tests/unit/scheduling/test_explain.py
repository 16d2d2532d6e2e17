"""Explanations, reason by reason: what is said, and that what is proposed starts the job."""

import copy
import json
from typing import Any

import pytest
from msgspec import structs

from kit.jobs import backing_off, ended, gang, job, leased, requirements
from kit.remedies import done
from kit.rounds import CONFIG, POOL, World, node
from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.errors import InputError
from pyresched.model import (
    NANOS,
    Constraint,
    Intake,
    Operator,
    PriorityClass,
    ReasonCode,
    Resource,
    Taint,
)
from pyresched.scheduling import (
    Explanation,
    RoundInputs,
    RoundState,
    Standing,
    explain,
    load_round,
    save_round,
)
from pyresched.scheduling import run_round as run
from pyresched.scheduling.buckets import Bucket
from pyresched.scheduling.explanation import explain_inputs
from pyresched.scheduling.remedies import readable
from pyresched.scheduling.state import RateState

NEW = RoundState()
SMALL = Constraint("size", Operator.IN, ("small",))


def taken(world: World, state: RoundState) -> tuple[Any, ...]:
    """What `run_round` takes."""
    return (
        *(world.reader(), world.node_db(), world.queues),
        *(POOL, world.config, state, world.now),
    )


def told(world: World, job_id: str = "x", *, state: RoundState = NEW) -> Explanation:
    """Why *job_id* waits; what is proposed is done by hand, and the job starts."""
    found = explain(job_id, *taken(world, state))
    for change in found.changes:
        result, _ = run(*taken(done(world, change, job_id), state))
        assert job_id in {each.job_id for each in result.scheduled}, change
    return found


def kinds(found: Explanation) -> list[str]:
    """Of the changes, the smallest first."""
    return [change.kind.value for change in found.changes]


def sentences(found: Explanation) -> list[str]:
    """Of the changes, the smallest first."""
    return [change.sentence(found.spec) for change in found.changes]


def full(**fields: Any) -> World:
    """A node of four cores of which a running job of queue `a` has three; `x` of queue `a` waits."""
    world = World().with_nodes(node("n1", **fields)).with_queues("a")
    return world.running(job("old", 3000, 1024, queue="a"), "n1")


def x(*amounts: int, **fields: Any) -> Any:
    """The job that asks why."""
    return job("x", *(amounts or (1000, 1024)), queue="a", submitted_at=5, **fields)


# --- reasons --------------------------------------------------------------------------------------


def test_room_that_is_missing_is_told_in_units_that_people_use():
    """By how much on the nearest node, who holds it, how much less would do."""
    world = full().with_jobs(x(1500, 1024))
    world.with_nodes(node("n2", 1000, 512))
    found = told(world)
    assert found.reason.code is ReasonCode.INSUFFICIENT_RESOURCES
    assert found.nearest.node_id == "n1"
    assert found.nearest.lacks == {"cpu": "0.5"}
    assert sentences(found) == [
        "ask for 0.5 cpu less",
        "0.5 cpu more on node 'n1'",
        "the end of job 'old' on node 'n1'",
    ]
    assert found.smallest.kind.value == "ask_less"
    assert "lacks 0.5 cpu" in found.sentence()
    assert "wanted 1.5, best node had 1" in found.sentence()


def test_who_should_end_is_the_youngest_of_the_least_urgent_that_holds_enough():
    """The least urgent class first, the youngest of it, but none that holds too little."""
    world = World().with_nodes(node("n1")).with_queues("a")
    for name, amount, class_, at in (
        *(("old", 1000, "spot", 1), ("young", 1000, "spot", 2), ("urgent", 1000, "urgent", 9)),
        ("tiny", 500, "best-effort", 9),
    ):
        world.running(job(name, amount, 1, queue="a", priority_class=class_), "n1", at=at)
    world.with_jobs(x(1500, 1024, priority_class="best-effort"))
    found = told(world)
    (end,) = [change for change in found.changes if change.kind.value == "end_job"]
    assert end.job_id == "young"


def test_more_than_the_missing_room_where_others_come_first():
    """They would take it, so there must be enough for them too."""
    world = full().with_jobs(x(2000, 1), job("first", 2000, 1, queue="a"))
    found = told(world)
    (more,) = [change for change in found.changes if change.kind.value == "more_room"]
    assert more.amounts["cpu"] == 3000


def test_no_more_of_what_the_node_has_enough_of_is_asked_for():
    """Where others come first: what they take besides is there already, up to the last of it."""
    others = [job(f"first-{n}", 2000, 2000, queue="a") for n in range(3)]
    world = full().with_jobs(x(2000, 2000), others)
    found = told(world)
    (more,) = [change for change in found.changes if change.kind.value == "more_room"]
    assert more.amounts == {"cpu": 7000, "memory": 8000 - (8192 - 1024)}


def test_a_job_larger_than_every_node_is_told_by_how_much():
    """And what it might ask for instead."""
    found = told(World().with_nodes(node("n1")).with_queues("a").with_jobs(x(9000, 1024)))
    assert found.reason.code is ReasonCode.EXCEEDS_EVERY_NODE
    assert sentences(found) == ["ask for 5 cpu less", "5 cpu more on node 'n1'"]


def test_places_count_where_a_node_limits_jobs():
    """One more is enough."""
    found = told(full(max_jobs=1).with_jobs(x(priority_class="spot")))
    assert found.nearest.lacks == {"jobs": "1"}
    assert "1 place for jobs more on node 'n1'" in sentences(found)


@pytest.mark.parametrize(
    ("asked", "fields", "proposed"),
    [
        ({"selector": {"zone": "a"}}, {"labels": {"zone": "b"}}, ["drop_selector", "add_label"]),
        ({"selector": {"zone": "a"}}, {}, ["drop_selector", "add_label"]),
        ({}, {"taints": (Taint("gpu", "v"),)}, ["tolerate"]),
        ({"constraints": (SMALL,)}, {"labels": {"size": "big"}}, ["drop_constraint"]),
        ({"affinity": ((SMALL,),)}, {}, ["drop_affinity"]),
        ({"nodes": ("gone",)}, {}, ["name_node"]),
    ],
    ids=["label differs", "label missing", "taint", "constraint", "affinity", "named"],
)
def test_what_keeps_a_job_off_a_node_that_has_room(asked, fields, proposed):
    """One word more or less in what the job asks, or a label on the node."""
    world = World().with_nodes(node("n1", **fields)).with_queues("a")
    world.with_jobs(x(requirements=requirements(**asked)))
    found = told(world)
    assert found.reason.code is ReasonCode.NO_MATCHING_NODE
    assert kinds(found) == proposed
    assert len(found.nearest.faults) == 1


def test_nothing_is_proposed_where_two_words_are_in_the_way():
    """It says so, with the nearest node and all that keeps it off."""
    world = World().with_nodes(node("n1", taints=(Taint("gpu"),))).with_queues("a")
    world.with_jobs(x(requirements=requirements(selector={"zone": "a"})))
    found = told(world)
    assert found.changes == ()
    assert found.smallest is None
    assert [fault.code.value for fault in found.nearest.faults] == [
        "untolerated_taint",
        "label_missing",
    ]
    assert "No single change" in found.sentence()
    assert "taint gpu=:NoSchedule not tolerated" in found.sentence()


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"intake": Intake.CORDONED}, "cordoned"),
        ({"intake": Intake.DRAINING}, "draining"),
        ({"lost_at": 0}, "lost"),
        ({"disconnected_at": 0}, "out of reach"),
    ],
)
def test_a_node_that_is_closed_might_open(fields, state):
    """Whatever closed it."""
    world = World().with_nodes(node("n1", **fields)).with_queues("a").with_jobs(x())
    found = told(world)
    assert found.reason.code is ReasonCode.NODES_CLOSED
    assert sentences(found) == [f"open node 'n1', which is {state}"]


def test_a_node_that_holds_more_than_it_has_needs_that_too():
    """All of it, or it takes nothing; of what the job does not even ask for, too."""
    world = World().with_nodes(node("n1", 1000, 512)).with_queues("a")
    world.running(job("old", 3000, 1024, queue="a"), "n1").with_jobs(x(500, 0))
    found = told(world)
    assert found.reason.code is ReasonCode.NODES_CLOSED
    assert found.nearest.lacks == {"cpu": "2.5", "memory": "512Mi"}
    assert sentences(found)[0] == "2.5 cpu, 512Mi memory more on node 'n1'"


def test_what_is_missing_is_counted_once_the_round_is_over():
    """With the room of a run that gave way, and without that of the job that it gave way to."""
    world = World().with_nodes(node("n1")).with_queues("a", "b")
    world.running(job("old", 4000, 1024, queue="b", priority_class="spot"), "n1")
    world.with_jobs(job("new", 3000, 1, queue="a"), x(2000, 1))
    found = told(world)
    assert found.nearest.lacks == {"cpu": "1"}


def test_a_crowded_scope_might_drop_its_condition():
    """Or the job that is there ends."""
    alone = requirements(constraints=(Constraint("", Operator.DISTINCT_HOSTS),))
    world = World().with_nodes(node("n1")).with_queues("a")
    world.running(job("old", queue="a", requirements=alone), "n1")
    world.with_jobs(x(requirements=alone))
    found = told(world)
    assert found.reason.code is ReasonCode.TOO_CROWDED
    assert kinds(found) == ["drop_constraint", "end_job"]


def test_a_gang_that_does_not_fit_is_told_what_its_members_lack_together():
    """On one node, once those that fit have their room."""
    world = full().with_jobs(gang("x", 1000, 1024, size=3, queue="a"))
    found = told(world, "x.0")
    assert found.reason.code is ReasonCode.GANG_DOES_NOT_FIT
    assert found.nearest.lacks == {"cpu": "2"}
    assert kinds(found) == ["more_room", "end_job"]
    assert "2 cpu more on node 'n1'" in sentences(found)


def test_a_gang_that_must_share_a_value_is_measured_where_most_of_it_fits():
    """A label on another node may be enough."""
    world = (
        World()
        .with_queues("a")
        .with_nodes(
            node("n1", labels={"rack": "one"}), node("n2", labels={"rack": "two"}), node("n3")
        )
    )
    world.running(job("old", 3000, 1024, queue="a"), "n2")
    world.with_jobs(gang("x", 3000, 1024, size=2, uniformity="rack", queue="a"))
    found = told(world, "x.1")
    assert found.reason.code is ReasonCode.GANG_DOES_NOT_FIT
    assert found.nearest.node_id == "n1"
    assert sentences(found)[:2] == [
        "label node 'n3' with rack=one",
        "2 cpu more on node 'n1'",
    ]


def test_a_gang_that_is_incomplete_waits_for_its_members():
    """Those that are elsewhere, or were never submitted."""
    world = World().with_nodes(node("n1")).with_queues("a")
    first, second, _ = gang("x", size=3, queue="a")
    world.with_jobs(first, backing_off(leased(second)))
    found = told(world, "x.0")
    assert found.reason.code is ReasonCode.GANG_INCOMPLETE
    assert sentences(found) == ["queue 2 members more of gang 'x' here"]


def test_a_gang_whose_members_disagree_might_agree():
    """With the one that asks."""
    world = World().with_nodes(node("n1")).with_queues("a")
    first, second = gang("x", size=2, queue="a")
    world.with_jobs(first, second.replace(requirements=requirements(priority_class="spot")))
    found = told(world, "x.0")
    assert found.reason.code is ReasonCode.GANG_MALFORMED
    assert kinds(found) == ["agree"]


def test_a_queue_might_be_opened_made_or_given_a_weight():
    """By its reason."""
    world = World().with_nodes(node("n1")).with_jobs(x())
    found = told(world)
    assert found.reason.code is ReasonCode.UNKNOWN_QUEUE
    assert sentences(found) == ["make queue 'a', with weight 1"]
    world.with_queues("a")
    world.queues["a"] = structs.replace(world.queues["a"], cordoned=True)
    found = told(world)
    assert found.reason.code is ReasonCode.QUEUE_CORDONED
    assert sentences(found) == ["uncordon queue 'a'"]
    world.with_queues("a")
    structs.force_setattr(world.queues["a"], "weight", 0.0)
    found = told(world)
    assert found.reason.code is ReasonCode.INVALID_WEIGHT
    assert sentences(found) == ["give queue 'a' the weight 1"]


def test_a_class_that_is_not_there_might_be_the_usual_one():
    """Of the configuration."""
    world = World().with_nodes(node("n1")).with_queues("a")
    world.with_jobs(x(priority_class="unheard"))
    found = told(world)
    assert found.reason.code is ReasonCode.UNKNOWN_PRIORITY_CLASS
    assert sentences(found) == ["put it into priority class 'default'"]


def test_a_pool_without_nodes_needs_one():
    """As large as the job."""
    found = told(World().with_queues("a").with_jobs(x()))
    assert found.reason.code is ReasonCode.NO_NODES
    assert sentences(found) == ["add a node with 1 cpu, 1Gi memory to the pool"]
    assert found.nearest is None


def test_the_look_back_might_reach_it():
    """Just so far; the jobs before it are counted."""
    world = World(config=SchedulingConfig(max_queue_lookback=2)).with_queues("a")
    world.with_nodes(node("n1", 9000, 9000)).with_jobs(x())
    world.with_jobs(job(f"j{n}", queue="a") for n in range(3))
    found = told(world)
    assert found.reason.code is ReasonCode.PAST_LOOKBACK
    assert sentences(found) == ["set max_queue_lookback to 4"]
    assert found.position == 4
    assert (found.ahead.jobs, found.ahead.placed) == (3, 2)
    assert found.ahead.refused == {"past_lookback": 1}


def test_a_weight_that_brings_its_turn_forward():
    """The smallest, where one core is left and two queues want it."""
    world = World().with_nodes(node("n1", 2000, 9000)).with_queues("a", "b")
    world.running(job("old", 1000, 1, queue="a"), "n1")
    world.with_jobs(x(1000, 1), job("other", 1000, 1, queue="b"))
    found = told(world)
    (weight,) = [change for change in found.changes if change.kind.value == "weight"]
    assert 1.9 < weight.number < 2.1
    lighter = structs.replace(weight, number=weight.number * 0.97)
    assert not [each for each in done(world, lighter, "x").round().scheduled if each.job_id == "x"]


# --- limits ---------------------------------------------------------------------------------------


def limited(**settings: Any) -> World:
    """A large node, and queue `a` with two jobs before `x`."""
    config = SchedulingConfig(priority_classes=CONFIG.priority_classes, **settings)
    world = World(config=config, now=10 * NANOS).with_nodes(node("n1", 10_000, 10_240))
    world.with_queues("a").with_jobs(job("j0", queue="a"), job("j1", queue="a"), x())
    return world


def test_the_part_of_the_pool_that_a_round_gives_out_might_grow():
    """In hundredths."""
    found = told(limited(max_fraction_to_schedule={"cpu": 0.15}))
    assert found.reason.code is ReasonCode.ROUND_LIMIT
    assert sentences(found) == ["set max_fraction_to_schedule.cpu to 0.2"]


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("max_tries_per_round", ReasonCode.ROUND_BUDGET),
        ("max_tries_per_queue", ReasonCode.QUEUE_BUDGET),
    ],
)
def test_a_budget_might_reach_it(key, code):
    """The smallest that does."""
    found = told(limited(**{key: 1}))
    assert found.reason.code is code
    assert sentences(found) == [f"set {key} to 3"]


@pytest.mark.parametrize(
    ("prefix", "code"),
    [("", ReasonCode.RATE_LIMIT), ("queue_", ReasonCode.QUEUE_RATE_LIMIT)],
)
def test_a_rate_lets_it_start_after_a_while(prefix, code):
    """As long as its tokens take; a larger burst where the bucket is full."""
    settings = {f"{prefix}rate": 2.0, f"{prefix}burst": 4}
    used = Bucket(nanos=0, part=0, at=10 * NANOS)
    rates = RateState(queues={"a": used}) if prefix else RateState(all=used)
    found = told(limited(**settings), state=RoundState(rates=rates))
    assert found.reason.code is code
    assert sentences(found)[0] == "wait 1.5s"
    found = told(limited(**{f"{prefix}rate": 2.0, f"{prefix}burst": 2}))
    assert found.reason.code is code
    assert sentences(found) == [f"set {prefix}burst to 3"]


@pytest.mark.parametrize(
    ("prefix", "codes"),
    [
        ("", (ReasonCode.GANG_EXCEEDS_BURST, ReasonCode.GANG_RATE_LIMIT)),
        ("queue_", (ReasonCode.GANG_EXCEEDS_QUEUE_BURST, ReasonCode.GANG_QUEUE_RATE_LIMIT)),
    ],
)
def test_a_gang_needs_tokens_for_all_its_members(prefix, codes):
    """More than there may ever be, or than there are now."""
    settings = {f"{prefix}rate": 1.0, f"{prefix}burst": 2}
    world = limited(**settings)
    world.jobs.clear()
    world.with_jobs(gang("x", size=3, queue="a"))
    found = told(world, "x.0")
    assert found.reason.code is codes[0]
    assert sentences(found) == [f"set {prefix}burst to 3"]
    world.config = structs.replace(world.config, **{f"{prefix}burst": 3})
    used = Bucket(nanos=NANOS, part=0, at=10 * NANOS)
    rates = RateState(queues={"a": used}) if prefix else RateState(all=used)
    found = told(world, "x.0", state=RoundState(rates=rates))
    assert found.reason.code is codes[1]
    assert sentences(found)[0] == "wait 2s"


def test_a_job_for_which_fair_share_may_take_nobody_yet_is_told_how_long_to_wait():
    """Its reason is that there is no room; with one token both runs may go that are in its way."""
    pool = PoolConfig(name=POOL, preemption_rate=0.5, preemption_burst=5)
    world = World(config=structs.replace(CONFIG, pools=(pool,))).with_nodes(node("n1"))
    world.with_queues("a", "b").with_jobs(job("x", 2000, 1024, queue="b", priority_class="spot"))
    for n in range(4):
        world.running(job(f"old-{n}", 1000, 1024, queue="a", priority_class="spot"), "n1", at=n)
    world.now = 10 * NANOS
    used = RoundState(preemption=Bucket(nanos=0, part=0, at=10 * NANOS))
    found = told(world, state=used)
    assert found.reason.code is ReasonCode.INSUFFICIENT_RESOURCES
    assert sentences(found)[0] == "wait 2s"
    assert "wait" not in kinds(told(world.with_jobs(job("y", 1, 1, queue="a")), "y", state=used))


def test_what_its_queue_may_hold_in_its_class_might_grow():
    """By as much as the job brings it over."""
    classes = (
        PriorityClass(name="default", priority=1000, max_fraction_per_queue={"cpu": 0.25}),
        PriorityClass(name="spot", preemptible=True),
    )
    world = limited()
    world.config = SchedulingConfig(priority_classes=classes)
    found = told(world)
    assert found.reason.code is ReasonCode.CLASS_LIMIT
    assert sentences(found) == ["let queue 'a' hold 0.3 of the pool's cpu in class 'default'"]


def test_a_floating_resource_might_be_bought():
    """One more."""
    config = SchedulingConfig(
        resources=(*CONFIG.resources, Resource("licence", floating=True)),
        pools=(PoolConfig(name="default", floating={"licence": 2}),),
    )
    world = World(config=config).with_nodes(node("n1", 9000, 9000, 0)).with_queues("a")
    world.with_jobs(job(f"j{n}", 1000, 1, 1, queue="a") for n in range(2))
    world.with_jobs(x(1000, 1, 1))
    found = told(world)
    assert found.reason.code is ReasonCode.FLOATING_RESOURCES
    assert sentences(found) == ["give the pool 1 licence more"]
    assert found.nearest.lacks == {}
    assert found.excluded == ()  # there is room on n1: it is not told to be closed


def test_nodes_with_room_are_not_among_those_that_keep_a_job_off():
    """A limit holds it back; of the nodes only those are told that could not take it."""
    world = World().with_nodes(node("n1"), node("n2", 500, 512), node("n3", intake=Intake.CORDONED))
    world.with_queues("a").with_jobs(x())
    world.queues["a"] = structs.replace(world.queues["a"], cordoned=True)
    found = told(world)
    assert found.nearest.sentence() == "'n1': lacks nothing"
    assert [each.sentence() for each in found.excluded] == [
        "1 node: insufficient resources: cpu: wanted 1000, best node had 500",
        "1 node: cordoned",
    ]


# --- other jobs -----------------------------------------------------------------------------------


def test_a_job_that_does_not_wait_is_told_where_it_is():
    """Running, starting, ended, waiting for its delay, in another pool."""
    world = full().with_jobs(
        x(1000, 1),
        ended(leased(job("ended", queue="a"))),
        backing_off(leased(job("failed", queue="a"))),
        job("away", queue="a", pools=("other",)),
        job("each", queue="a", pools=(), job_type="system"),
    )
    standing = {id: told(world, id).standing for id in world.jobs}
    assert standing == {
        "old": Standing.RUNNING,
        "x": Standing.PLACED,
        "ended": Standing.ENDED,
        "failed": Standing.BACKING_OFF,
        "away": Standing.NOT_HERE,
        "each": Standing.TEMPLATE,
    }
    assert "ask about 'each@NODE'" in told(world, "each").sentence()
    assert told(world, "x").sentence() == "Job 'x' of queue 'a' starts on node 'n1'."
    assert "not in pool 'default'" in told(world, "away").sentence()


def test_a_job_that_has_ended_or_failed_is_told_why_or_how_long_it_has_to_wait():
    """The reason on its row; the rest of its delay, and none that is over."""
    world = full().with_jobs(
        ended(leased(job("e", queue="a"))).replace(reason="gang_exceeds_burst"),
        backing_off(leased(job("f", queue="a")), eligible_at=90 * NANOS),
    )
    world.now = 60 * NANOS
    assert told(world, "e").sentence().endswith("gang_exceeds_burst.")
    assert told(world, "f").sentence().endswith("is queued again in 30s.")
    world.now = 95 * NANOS
    assert told(world, "f").to_dict()["delay"] == 0


def test_a_job_that_gives_way_is_told_to_whom():
    """And from where."""
    world = World().with_nodes(node("n1")).with_queues("a", "b")
    world.running(job("x", 4000, 1024, queue="a", priority_class="spot"), "n1")
    world.with_jobs(job("new", 1000, 1024, queue="b"))
    found = told(world)
    assert (found.standing, found.node_id, found.for_job_id) == (Standing.PREEMPTED, "n1", "new")
    assert "leaves node 'n1' to 'new'" in found.sentence()


def test_an_unknown_job_is_refused_with_the_nearest():
    """One line."""
    with pytest.raises(InputError, match="no job 'xx' in this round; did you mean 'x'"):
        told(full().with_jobs(x()), "xx")


@pytest.mark.parametrize(("known", "number"), [("007", "7"), ("040.0", "40")])
def test_a_number_of_a_log_is_refused_with_the_job_that_a_simulation_made_of_it(known, number):
    """Jobs of a simulation have zeros before the number, members of gangs a number behind it."""
    with pytest.raises(InputError, match=f"did you mean '{known}'"):
        told(full().with_jobs(job(known, queue="a")), number)


def test_no_more_rounds_are_run_than_may_be():
    """What is left out is counted; none at all proposes nothing."""
    world = full().with_jobs(x(1500, 1024))
    for most in (0, 1, 2):
        found = explain("x", *taken(world, RoundState()), most_rounds=most)
        assert found.rounds == most
        assert found.left_out > 0
        assert len(found.changes) == most


def test_a_result_explains_from_what_its_round_read():
    """Though nodes have changed since; not one that was pickled."""
    world = full().with_jobs(x(1500, 1024))
    arguments = taken(world, RoundState())
    result, _ = run(*arguments)
    arguments[1].upsert_many([node("n1", 9000, 9000)])
    assert result.explain("x").to_dict() == told(world).to_dict()
    with pytest.raises(LookupError, match="has not kept"):
        copy.copy(result).explain("x")


def test_a_saved_round_explains_as_the_one_it_was_saved_from(tmp_path):
    """All of it; and everything is plain."""
    world = full().with_jobs(x(1500, 1024))
    save_round(tmp_path / "some.round", *taken(world, RoundState()))
    found = load_round(tmp_path / "some.round").explain("x")
    assert found.to_dict() == told(world).to_dict()
    assert json.loads(json.dumps(found.to_dict()))["changes"][0]["kind"] == "ask_less"


def test_what_is_proposed_is_only_what_a_round_bears_out():
    """Negative control: a round that always decides the same leaves nothing to propose."""
    arguments = taken(full().with_jobs(x(1500, 1024)), NEW)
    decided = run(*arguments)
    found = explain_inputs("x", RoundInputs.of(*arguments), lambda *_: decided)
    assert found.rounds > 0
    assert found.changes == ()


@pytest.mark.parametrize(
    ("unit", "amount", "shown"),
    [
        ("1m", 1500, "1.5"),
        ("1m", 2, "0.002"),
        ("1Mi", 512, "512Mi"),
        ("1Mi", 1536, "1.5Gi"),
        ("1", 8, "8"),
        ("1", 2_500_000, "2.5M"),
        ("1Mi", -1024, "-1Gi"),
    ],
)
def test_amounts_are_shown_as_people_write_them(unit, amount, shown):
    """Of any resource."""
    assert readable(Resource("r", unit), amount) == shown
