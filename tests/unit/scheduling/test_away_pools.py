"""Guests on nodes of other pools: where they go, whom they may take off, who takes them off."""

from typing import Any

import pytest

from kit.driving import node as big_node
from kit.driving import scheduler
from kit.jobs import gang, job, leased, requirements
from kit.rounds import World
from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.model import (
    Job,
    Node,
    PriorityClass,
    ResourceVector,
    RoundResult,
)
from pyresched.model.resources import Resource
from pyresched.scheduling import RoundState, run_round

CLASSES = (
    PriorityClass(name="low", priority=0, preemptible=True),
    PriorityClass(name="mid", priority=1000, preemptible=True),
    PriorityClass(name="firm", priority=1000),
)
GUEST = PoolConfig(name="guest", away_pools=("owner",))
OWNER = PoolConfig(name="owner")


def world(*pools: PoolConfig, **config: Any) -> World:
    """A pool whose jobs may be guests on nodes of another, and nothing in it."""
    config.setdefault("protected_fraction", 0.0)
    made = SchedulingConfig(
        priority_classes=CLASSES,
        default_priority_class="mid",
        pools=pools or (GUEST, OWNER),
        **config,
    )
    return World(made).with_queues("x", "y")


def node(id: str, cores: int, pool: str) -> Node:
    """A node of *cores* cores."""
    return Node(id=id, total=ResourceVector([cores, cores]), pool=pool)


def wants(id: str, cores: int = 1, *, pool: str = "guest", name: str = "mid", **fields) -> Job:
    """A queued job of *pool*."""
    fields.setdefault("queue", "x")
    asked = requirements(cores, cores, priority_class=name)
    return job(id, requirements=asked, pools=(pool,), **fields)


def runs(id: str, node_id: str, cores: int = 1, *, pool: str = "guest", **fields) -> Job:
    """A run of *pool*."""
    waiting = wants(id, cores, pool=pool, **fields)
    priority = next(c.priority for c in CLASSES if c.name == waiting.requirements.priority_class)
    return leased(waiting, node_id=node_id, pool=pool, priority=priority)


def over(pool: str, rows: World) -> RoundResult:
    """What a round over *pool* decides."""
    state = RoundState()
    return run_round(
        rows.reader(), rows.node_db(), rows.queues, pool, rows.config, state, rows.now
    )[0]


def placed(result: RoundResult) -> dict[str, tuple[str, int, str]]:
    """Node, priority and method by job."""
    return {p.job_id: (p.node_id, p.priority, p.method.value) for p in result.scheduled}


def gone(result: RoundResult) -> dict[str, str]:
    """The cause by job that gave way."""
    return {p.job_id: p.reason.value for p in result.preempted}


def test_jobs_go_home_first_and_then_where_they_are_guests():
    """At the priority of their class; a guest is placed away, whatever that took."""
    rows = world().with_nodes(node("g", 2, "guest"), node("o", 2, "owner"))
    rows.with_jobs(wants("a"), wants("b"), wants("c"), wants("d"), wants("e"))
    result = over("guest", rows)
    assert placed(result) == {
        "a": ("g", 1000, "no_preemption"),
        "b": ("g", 1000, "no_preemption"),
        "c": ("o", 1000, "away"),
        "d": ("o", 1000, "away"),
    }
    assert result.refused["e"].code.value == "insufficient_resources"


def test_a_job_is_a_guest_before_anybody_at_home_gives_way():
    """Free room on lent nodes costs nobody anything."""
    rows = world().with_nodes(node("g", 1, "guest"), node("o", 1, "owner"))
    rows.with_jobs(runs("low", "g", name="low"), wants("new"))
    result = over("guest", rows)
    assert (placed(result), gone(result)) == ({"new": ("o", 1000, "away")}, {})


def test_a_pool_without_nodes_of_its_own_lives_on_those_of_others():
    """Its queues share what the owner leaves."""
    rows = world().with_nodes(node("o", 4, "owner"))
    rows.with_jobs(
        runs("own", "o", pool="owner"),
        [wants(f"x{i}") for i in range(3)],
        [wants(f"y{i}", queue="y") for i in range(3)],
    )
    result = over("guest", rows)
    assert set(placed(result)) == {"x0", "y0", "x1"}
    assert {each.queue: each.fair_share for each in result.shares} == {"x": 0.5, "y": 0.5}


@pytest.mark.parametrize("name", ["low", "mid", "firm"])
@pytest.mark.parametrize("pool", ["owner", "third", ""])
def test_a_guest_takes_nobody_off_who_is_not_of_its_pool(pool: str, name: str):
    """Neither by share nor by urgency, however low: the owner's runs, other guests, strays."""
    rows = world(GUEST, OWNER, PoolConfig(name="third", away_pools=("owner",)))
    rows.with_nodes(node("o", 1, "owner"))
    rows.with_jobs(runs("there", "o", pool=pool, queue="y", name=name), wants("new"))
    result = over("guest", rows)
    assert not result
    assert result.refused["new"].code.value == "insufficient_resources"


def test_runs_of_the_pool_on_lent_nodes_are_like_those_at_home():
    """They count for their queue, which loses one of them to another's job."""
    rows = world().with_nodes(node("o", 4, "owner"))
    rows.with_jobs(
        runs("own", "o", 2, pool="owner"), runs("x0", "o"), runs("x1", "o"), wants("y0", queue="y")
    )
    result = over("guest", rows)
    assert gone(result) == {"x1": "fair_share"}
    assert placed(result) == {"y0": ("o", 1000, "away")}


def test_what_others_hold_of_a_lent_node_is_nothing_to_share():
    """A queue with all that is left to the pool is above its half, though the nodes have more."""
    rows = world(protected_fraction=1.0).with_nodes(node("g", 2, "guest"), node("o", 8, "owner"))
    rows.with_jobs(runs("own", "o", 8, pool="owner"), runs("x0", "g"), runs("x1", "g"))
    rows.with_jobs(wants("y0", queue="y"))
    assert gone(over("guest", rows)) == {"x1": "fair_share"}


def test_any_job_of_the_owner_takes_guests_off_first():
    """60. Five guests of a higher class on a full node, five jobs of the lowest: all five go."""
    rows = world().with_nodes(node("o", 5, "owner"))
    rows.with_jobs([runs(f"g{i}", "o") for i in range(5)])
    rows.with_jobs([wants(f"o{i}", pool="owner", name="low") for i in range(5)])
    result = over("owner", rows)
    assert gone(result) == {f"g{i}": "guest" for i in range(5)}
    assert {each.queue for each in result.shares} == {"x"}
    assert all(share.actual_share == 0 for share in result.shares), "guests count for nobody"


@pytest.mark.parametrize(("name", "outs"), [("low", 0), ("mid", 5)])
def test_guests_that_count_as_they_are_yield_to_higher_classes_only(name: str, outs: int):
    """60. Without `preempt_guests_first` five jobs of a lower class take off none of five."""
    owner = PoolConfig(name="owner", preempt_guests_first=False)
    rows = world(GUEST, owner).with_nodes(node("o", 5, "owner"))
    rows.with_jobs([runs(f"g{i}", "o", name="low") for i in range(5)])
    rows.with_jobs([wants(f"o{i}", pool="owner", name=name) for i in range(5)])
    assert len(over("owner", rows).preempted) == outs


def test_runs_of_the_owner_are_never_taken_off_by_guests():
    """60. A full node of the lowest class at home, five guests that are more urgent: nothing."""
    rows = world().with_nodes(node("o", 5, "owner"))
    rows.with_jobs([runs(f"o{i}", "o", pool="owner", name="low") for i in range(5)])
    rows.with_jobs([wants(f"g{i}") for i in range(5)])
    assert not over("guest", rows)


def test_a_guest_that_cannot_give_way_stays_to_its_end():
    """As a run at home of its class would."""
    rows = world().with_nodes(node("o", 1, "owner"))
    rows.with_jobs(runs("g", "o", name="firm"), wants("new", pool="owner"))
    assert not over("owner", rows)


def with_licences(*pools: PoolConfig) -> World:
    """Nodes have none; pools have some."""
    resources = (
        Resource("cpu", "1m"),
        Resource("memory", "1Mi"),
        Resource("licence", "1", floating=True),
    )
    rows = world(*pools, resources=resources)
    return rows.with_nodes(Node(id="o", total=ResourceVector([4, 4, 0]), pool="owner"))


def licensed(id: str, *, runs_there: bool) -> Job:
    """A job of the guest pool that needs six licences."""
    asked = requirements(1, 1, 6, priority_class="mid")
    waiting = job(id, requirements=asked, queue="x", pools=("guest",))
    return leased(waiting, node_id="o", pool="guest", priority=1000) if runs_there else waiting


@pytest.mark.parametrize(("quantity", "ins"), [(10, {"a"}), (12, {"a", "b"})])
def test_what_floats_is_that_of_the_pool_of_the_guest(quantity: int, ins: set[str]):
    """33. Two guests of six: as many as their own pool has licences for; the owner has none."""
    rows = with_licences(
        PoolConfig(name="guest", away_pools=("owner",), floating={"licence": quantity}), OWNER
    )
    rows.with_jobs(licensed("a", runs_there=False), licensed("b", runs_there=False))
    assert set(placed(over("guest", rows))) == ins


def test_guests_stay_whatever_floats_in_the_pool_of_the_owner():
    """33. Ten licences there, two guests of six: both."""
    rows = with_licences(GUEST, PoolConfig(name="owner", floating={"licence": 10}))
    rows.with_jobs(licensed("a", runs_there=True), licensed("b", runs_there=True))
    assert not over("owner", rows)


def test_what_the_owner_runs_counts_for_no_licence_of_a_guest():
    """Its runs on lent nodes hold licences of its own pool."""
    rows = with_licences(
        PoolConfig(name="guest", away_pools=("owner",), floating={"licence": 6}),
        PoolConfig(name="owner", floating={"licence": 6}),
    )
    theirs = licensed("theirs", runs_there=True)
    rows.with_jobs(theirs.replace(runs=(theirs.runs[0].replace(pool="owner"),)))
    rows.with_jobs(licensed("ours", runs_there=False))
    assert set(placed(over("guest", rows))) == {"ours"}


def test_a_gang_may_be_partly_at_home_and_partly_guests():
    """All or none, over nodes of both; it gives way as one to a job of the owner."""
    rows = world().with_nodes(node("g", 1, "guest"), node("o", 1, "owner"))
    shape = requirements(1, 1, priority_class="mid")
    members = gang("team", size=2, requirements=shape, queue="x", pools=("guest",))
    rows.with_jobs(members)
    result = over("guest", rows)
    assert {one.node_id for one in result.scheduled} == {"g", "o"}
    for one in result.scheduled:
        rows.with_jobs(
            leased(rows.jobs[one.job_id], node_id=one.node_id, pool="guest", priority=1000)
        )
    rows.with_jobs(wants("new", pool="owner"))
    result = over("owner", rows)
    assert placed(result)["new"][0] == "o"
    assert [one.node_id for one in result.preempted] == ["o"]


# --- pool after pool ----------------------------------------------------------------------------


def cluster(*pools: PoolConfig):
    """A scheduler with a node of four cores of the owner."""
    config = SchedulingConfig(
        priority_classes=CLASSES, default_priority_class="mid", pools=pools or (GUEST, OWNER)
    )
    return scheduler(big_node("o", 4, pool="owner"), config=config)


def asks(id: str, cores: int, pool: str, **fields) -> Job:
    """A queued job of *cores* cores."""
    asked = requirements(1000 * cores, 1024, priority_class="mid")
    return job(id, requirements=asked, pools=(pool,), **fields)


@pytest.mark.parametrize("pools", [(GUEST, OWNER), (OWNER, GUEST)])
def test_a_node_given_out_by_one_pool_is_taken_for_those_after_it(pools):
    """In the same cycle; the owner may take a guest off at once, and rests then."""
    made = cluster(*pools)
    made.submit([asks("g", 3, "guest"), asks("o", 3, "owner")], 0)
    results = made.step(0).results
    assert [one.active_run.pool for one in made.snapshot().leased()] == ["owner"]
    assert len(results["guest"].scheduled) == (pools[0] is GUEST)
    assert len(results["owner"].preempted) == (pools[0] is GUEST)
    assert made.check() == []
    assert not any(made.step(1).results.values())


def test_room_that_is_given_back_is_there_for_the_pools_after_it():
    """A guest's gang that gives way to the owner leaves its node at home in the same cycle."""
    made = cluster(OWNER, GUEST)
    made.join_nodes([big_node("g", 4, pool="guest")], 0)
    shape = requirements(4000, 1024, priority_class="mid")
    made.submit(gang("team", size=2, requirements=shape, pools=("guest",)), 0)
    made.step(0)
    made.submit([asks("o", 4, "owner"), asks("late", 4, "guest", submitted_at=1)], 1)
    results = made.step(1).results
    assert [one.job_id for one in results["guest"].scheduled] == ["late"]
    assert made.check() == []


def test_a_lost_node_ends_the_runs_of_guests_too():
    """They are replaced like any other; none is left on it."""
    made = cluster()
    made.submit([asks("g", 3, "guest"), asks("o", 1, "owner")], 0)
    made.step(0)
    assert len(list(made.snapshot().leased())) == 2
    made.lose_nodes(["o"], 1)
    assert list(made.snapshot().leased()) == []
    assert made.check() == []
    made.nodes_back(["o"], 2)
    made.step(2)
    assert {one.active_run.pool for one in made.snapshot().leased()} == {"guest", "owner"}


def test_a_guest_placed_by_a_cycle_is_known_to_the_next():
    """The run is of its own pool, on the node of the owner, whom it costs no share."""
    made = cluster()
    made.submit([asks("g", 4, "guest")], 0)
    made.step(0)
    (run,) = made.snapshot().get("g").runs
    assert (run.pool, run.node_id) == ("guest", "o")
    assert made.nodes.fork("owner").bound("o") == ("g",)
    made.submit([asks("late", 1, "guest", submitted_at=1)], 1)
    results = made.step(1).results
    assert results["guest"].refused["late"].code.value == "insufficient_resources"
    assert [share.queue for share in results["owner"].shares] == []
