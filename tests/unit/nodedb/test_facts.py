"""What schedulers of batch jobs are known to do with nodes, fact by fact, and what they get wrong.

The numbers are those of a list of facts about a scheduler in wide use; R5 to R10 are its defects.
Where ours differs on purpose the test says how.

| fact | here, or why not |
|---|---|
| 49 levels | `test_the_evicted_level_comes_first`, then that of runs of other pools |
| 50 totals | `test_totals_of_nothing_are_zero_and_of_nodes_their_sum` |
| 51 assigned node | `test_a_job_that_must_use_a_node_gets_that_or_none`; one that is not there is an error |
| 52 to 53, 69, 97 accounting | `test_there_and_back`, `test_amounts_at_each_level`, `test_who_is_not_preemptible_counts_at_every_level`; `test_fork.py` has more |
| 54 run of another pool | `test_a_run_of_another_pool_is_below_all_of_this_one` |
| 55 pod slots | `test_slots_are_a_resource_like_any_other` |
| 56 to 58 one by one | `test_a_node_takes_what_it_has_room_for`, `test_taints_keep_out`, `test_labels_decide`; an unknown resource is an error when the request is written |
| 59 gangs | `test_gangs_fit_whole_or_leave_no_trace` |
| 60 to 63, 67 disallowed resources, default tolerations, away nodes | no such settings here |
| 64 to 65 preemption | `test_a_full_node_is_had_by_preempting`, `test_only_the_less_urgent_give_way` |
| 66, 70 preempted twice, siblings of gangs | the round's: `tests/properties/test_round.py` |
| 68, 84 to 88 resolutions, rounded keys | amounts are exact, R8; `test_order_of_amounts` has the order that keys had to keep |
| 71 to 78 order | `test_all_nodes_by_id`, `test_nodes_come_fullest_first`, `test_order_at_a_level`, `test_later_resources`, `test_gpus`, `test_no_more_nodes`, `test_only_nodes_of_the_types_asked_for` |
| 79 to 80, 83 matching | `test_labels_decide`, `test_taints_keep_out`, `test_room_at_a_priority`, `test_the_first_short_resource_is_named` |
| 81 node types | no types here: every label and taint counts, whether a type would know it or not |
| 82 reasons are told apart | `test_reasons_with_other_amounts_differ` |
| 89 empty node id | `test_nodes.py` |
| 90 to 92 rounding | `test_requests_round_up_and_capacity_down`; `model/test_resources.py` |
| 93 to 94 exceeding | `test_the_first_short_resource_is_named`; a vector is never without its resources |
| 95 multiplying, 99 text | `_core/test_resources.py`, `model/test_resources.py` |
| 96 unallocatable amounts | a node states what it has for jobs |
| 98 buckets | `test_a_binding_takes_from_its_level_down` |
| R5 to R10 | the tests that begin with `test_r` |
"""

from itertools import combinations

import pytest

from kit.jobs import job, leased, requirements
from kit.nodes import Pairs, node, node_config, nodes
from pyresched.config import SchedulingConfig
from pyresched.errors import IllegalBinding, InputError, UnknownNode
from pyresched.model import (
    Constraint,
    Intake,
    Operator,
    ReasonCode,
    Requirements,
    Resource,
    ResourceSpec,
    ResourceVector,
    Rounding,
    Taint,
    TaintEffect,
    Toleration,
    UnschedulableReason,
)
from pyresched.nodedb import CROSS_POOL, EVICTED, NodeDb

CONFIG = node_config(0, 1, 2, 3, 28000, 29000, 30000, preemptible=[0, 1, 2], width=3)
LEVELS = (0, 1, 2, 3, 28000, 29000, 30000)
CPU, GPU = (32, 256, 0), (64, 1024, 8)  # cores, GiB, GPUs
LARGE = Taint("largeJobsOnly", "true", TaintEffect.NO_SCHEDULE)


def fork_of(*rows, config=CONFIG):
    """A fork of the nodes."""
    return NodeDb(config, rows).fork("default")


def small(priority=0, **asked):
    """One core and 4 GiB."""
    return requirements(1, 4, 0, priority_class=f"p{priority}", **asked)


def place(fork, asked, count, *, priority=0, prefix="job"):
    """How many of *count* alike jobs find a node; they keep it."""
    names = [f"{prefix}-{n}" for n in range(count)]
    placed = fork.table.place_each(names, [asked] * count, priority, priority < 3)
    return count - placed.count(None)


def used(fork, node_id, *amounts, priority=0, name=None):
    """Something holds *amounts* of a node."""
    held = requirements(*amounts, priority_class=f"p{priority}")
    fork.table.bind(name or f"on-{node_id}", held, node_id, priority, priority < 3)


def order(fork, asked, priority):
    """The nodes in the order in which a search would take them, each left out once found."""
    left, found = [each.id for each in fork.nodes], []
    while left and (best := fork.find(asked, priority, only=left)):
        found.append(best.node_id)
        left.remove(best.node_id)
    return found


def by_position(found):
    """The numbers in the ids."""
    return [int(node_id.split("-")[1]) for node_id in found]


# --- levels and totals --------------------------------------------------------------------------


def test_the_evicted_level_comes_first():
    """Below every class; both ends are known to each node."""
    fork = fork_of(node("a", *CPU))
    assert fork.table.levels == LEVELS
    assert EVICTED < CROSS_POOL < min(LEVELS)
    every = (EVICTED, CROSS_POOL, *LEVELS)
    assert {fork.allocatable("a", level).to_tuple() for level in every} == {CPU}


def test_totals_of_nothing_are_zero_and_of_nodes_their_sum():
    """Two CPU nodes and three with GPUs."""
    db = NodeDb(CONFIG)
    assert db.totals("default").to_tuple() == (0, 0, 0)
    db.upsert_many(nodes(2, *CPU))
    db.upsert_many(nodes(3, *GPU, prefix="gpu"))
    assert db.totals("default").to_tuple() == (2 * 32 + 3 * 64, 2 * 256 + 3 * 1024, 24)


def test_slots_are_a_resource_like_any_other():
    """A node for one pod: taken, given back, taken."""
    fork = fork_of(node("a", 32, 256, 1))
    pod = requirements(1, 4, 1, priority_class="p0")
    fork.table.bind("j", pod, "a", 0, True)
    assert fork.allocatable("a", 0).to_tuple()[2] == 0
    fork.table.evict("j")
    fork.table.unbind("j")
    assert fork.allocatable("a", 0).to_tuple()[2] == 1
    fork.table.bind("k", pod, "a", 0, True)
    assert not fork.find(pod, 0)


# --- accounting ---------------------------------------------------------------------------------


def everything(fork):
    """All that a fork says of its nodes and of what is bound."""
    amounts = [
        fork.allocatable(each.id, level) for each in fork.nodes for level in (EVICTED, *LEVELS)
    ]
    return amounts, {job: fork.binding(job) for job in fork.table.bound_jobs()}


def test_there_and_back():
    """Each way restores; an evicted job still owns its node; the rest is refused."""
    fork = fork_of(node("g", *GPU))
    asked, table = requirements(8, 128, 1, priority_class="p0"), fork.table
    empty = everything(fork)
    table.bind("j", asked, "g", 0, True)
    bound = everything(fork)
    table.unbind("j")
    assert everything(fork) == empty
    table.bind("j", asked, "g", 0, True)
    table.evict("j")
    assert fork.bound("g") == ("j",)
    table.unbind("j")
    assert everything(fork) == empty
    table.bind("j", asked, "g", 0, True)
    table.evict("j")
    table.bind("j", asked, "g", 0, True)
    assert everything(fork) == bound
    with pytest.raises(IllegalBinding):
        table.bind("j", asked, "g", 0, True)
    table.evict("j")
    with pytest.raises(IllegalBinding):
        table.evict("j")
    with pytest.raises(IllegalBinding):
        table.evict("nobody")
    table.unbind("nobody")


def test_amounts_at_each_level():
    """A preemptible job and one that is not; both evicted: free to all but the lowest level."""
    fork = fork_of(node("a", *CPU))
    fork.table.bind("soft", small(), "a", 0, True)
    fork.table.bind("hard", small(3), "a", 3, False)
    left = {level: fork.allocatable("a", level).to_tuple()[:2] for level in (EVICTED, *LEVELS)}
    assert left == {EVICTED: (30, 248), 0: (30, 248)} | dict.fromkeys(LEVELS[1:], (31, 252))
    aside = fork.fork()
    fork.table.evict("soft")
    fork.table.evict("hard")
    left = {level: fork.allocatable("a", level).to_tuple()[:2] for level in (EVICTED, *LEVELS)}
    assert left == {EVICTED: (30, 248)} | dict.fromkeys(LEVELS, (32, 256))
    assert aside.allocatable("a", 0).to_tuple()[:2] == (30, 248)


def test_who_is_not_preemptible_counts_at_every_level():
    """And gives each back exactly."""
    fork = fork_of(node("a", *CPU))
    before = everything(fork)
    fork.table.bind("hard", small(3), "a", 3, False)
    assert {fork.allocatable("a", level).to_tuple() for level in (EVICTED, *LEVELS)} == {
        (31, 252, 0)
    }
    fork.table.unbind("hard")
    assert everything(fork) == before


def test_a_binding_takes_from_its_level_down():
    """{1: 10, 2: 20, 3: 30, 4: 40} less 2 at level 2 is {8, 18, 30, 40}."""
    fork = fork_of(node("a", 40), config=node_config(1, 2, 3, 4, preemptible=[1, 2, 3, 4], width=1))
    for priority in (1, 2, 3):
        fork.table.bind(f"j{priority}", requirements(10), "a", priority, True)
    assert [*fork.allocatable("a", 1)] == [10]
    fork.table.bind("new", requirements(2), "a", 2, True)
    assert [fork.allocatable("a", level)[0] for level in (1, 2, 3, 4)] == [8, 18, 30, 40]


@pytest.mark.parametrize(
    ("pool", "priority", "preemptible", "held"),
    [("cpu", 1, True, CROSS_POOL), ("gpu", 1, True, 1), ("cpu", 3, False, 3)],
    ids=["of another pool", "of this pool", "not preemptible"],
)
def test_a_run_of_another_pool_is_below_all_of_this_one(pool, priority, preemptible, held):
    """It holds nothing that a job of this pool may not take, unless it is not preemptible."""
    db = NodeDb(CONFIG, [node("a", *CPU, pool="gpu")])
    one = job("j", *CPU, priority_class=f"p{priority}")
    db.advance(Pairs.added([leased(one, node_id="a", priority=priority, pool=pool)]))
    fork = db.fork("gpu")
    assert fork.binding("j").preemptible == preemptible
    assert not preemptible or fork.binding("j").priority == held
    left = [fork.allocatable("a", level)[0] for level in (EVICTED, CROSS_POOL, 0, 1, 2)]
    assert left[:2] == [0, 0]
    assert left[2:] == {CROSS_POOL: [32, 32, 32], 1: [0, 0, 32], 3: [0, 0, 0]}[held]
    assert db.check() == []


# --- where a job goes ---------------------------------------------------------------------------


def test_a_job_that_must_use_a_node_gets_that_or_none():
    """With a reason when it is full, and an error when there is no such node."""
    fork = fork_of(node("a", *CPU), node("b", 1, 4, 0))
    assert fork.find(small(), 0, only=["a"]).node_id == "a"
    refused = fork.find(requirements(2, 1, 0), 0, only=["b"])
    assert len(refused.reasons) == 1
    with pytest.raises(UnknownNode, match="no node 'c'"):
        fork.find(small(), 0, only=["c"])


def test_a_node_takes_what_it_has_room_for():
    """32 small jobs fit, not the 33rd; 32 more at the next priority, none of the first again."""
    assert place(fork_of(node("a", *CPU)), small(), 33) == 32
    fork = fork_of(node("a", *CPU))
    assert place(fork, small(), 32) == 32
    assert place(fork, small(1), 32, priority=1, prefix="one") == 32
    assert place(fork, small(), 32, prefix="again") == 0
    assert not fork.find(requirements(8, 128, 1), 0)
    with pytest.raises(InputError, match="unknown resource 'gibberish'"):
        CONFIG.spec.vector({"gibberish": 1}, rounding=Rounding.UP)


def test_taints_keep_out():
    """Who tolerates the taint may go there; key and value are asked."""
    fork = fork_of(node("a", *CPU, taints=(LARGE,)))
    assert not fork.find(small(), 0)
    assert not fork.find(small(tolerations=(Toleration("largeJobsOnly", "false"),)), 0)
    assert fork.find(small(tolerations=(Toleration("largeJobsOnly", "true"),)), 0)
    assert fork.find(small(), 0).reason.code is ReasonCode.NO_MATCHING_NODE


@pytest.mark.parametrize(
    "asked",
    [
        {"selector": {"key": "value"}},
        {"constraints": (Constraint("key", Operator.IN, ("value",)),)},
        {"affinity": ((Constraint("key", Operator.IN, ("other", "value")),),)},
    ],
    ids=["selector", "constraint", "affinity"],
)
def test_labels_decide(asked):
    """Of two nodes the one with the label takes 32 and no more; wrong or missing labels none."""

    def request(**fields):
        return Requirements(ResourceVector((1, 4, 0)), "p0", **fields)

    fork = fork_of(node("a", *CPU, labels={"key": "value"}), node("b", *CPU))
    assert place(fork, request(**asked), 33) == 32
    assert {fork.node_of(f"job-{n}") for n in range(32)} == {"a"}
    both = asked | {"tolerations": (Toleration("largeJobsOnly", "true"),)}
    for labels, taints, fits in [
        ({"key": "value"}, (LARGE,), (False, True)),
        ({"key": "wrong"}, (LARGE,), (False, False)),
        ({"key": "wrong"}, (), (False, False)),
        ({}, (), (False, False)),
        ({"key": "value"}, (), (True, True)),
    ]:
        fork = fork_of(node("a", *CPU, labels=labels, taints=taints))
        found = [bool(fork.find(request(**each), 0)) for each in (asked, both)]
        assert tuple(found) == fits, (labels, taints)


@pytest.mark.parametrize(
    ("rows", "gangs", "fit"),
    [
        (1, [(1, 32)], [True]),
        (1, [(1, 33)], [False]),
        (2, [(1, 32), (1, 33), (1, 32)], [True, False, True]),
        (2, [(32, 1), (1, 32), (1, 1)], [True, True, False]),
    ],
)
def test_gangs_fit_whole_or_leave_no_trace(rows, gangs, fit):
    """(cores, members) each; one that does not fit takes nothing from the next."""
    fork = fork_of(*nodes(rows, *CPU))
    found = []
    for number, (cores, members) in enumerate(gangs):
        with fork.attempt() as attempt:
            asked = requirements(cores, 4, 0, priority_class="p0")
            whole = place(fork, asked, members, prefix=f"gang-{number}") == members
            if whole:
                attempt.keep()
        found.append(whole)
    assert found == fit
    assert fork.check() == []


def test_a_full_node_is_had_by_preempting():
    """By nobody of the same priority; at the level of those that would go; evicted ones first."""
    fork = fork_of(node("a", *CPU))
    place(fork, small(), 32)
    assert not fork.find(small(), 0)
    assert fork.find(small(1), 1) == ("a", 1)
    fork.table.evict("job-5")
    assert fork.find(small(1), 1) == ("a", 0)
    assert fork.find(small(), 0) == ("a", 0)
    assert not fork.find(small(), EVICTED)


@pytest.mark.parametrize(("held", "new", "gives_way"), [(2, 1, False), (1, 1, True), (0, 1, True)])
def test_only_the_less_urgent_give_way(held, new, gives_way):
    """An evicted job of a higher priority than the new one's stays."""
    fork = fork_of(node("a", *CPU))
    place(fork, small(held), 32, priority=held)
    candidates = [f"job-{n}" for n in range(32)]
    for job_id in candidates:
        fork.table.evict(job_id)
    victims = fork.victims(small(new), new, candidates)
    assert bool(victims) == gives_way
    assert not gives_way or victims.job_ids == ("job-31",)


# --- order --------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 3])
def test_all_nodes_by_id(count):
    """Whatever order they were given in."""
    rows = nodes(count, *CPU)
    db = NodeDb(CONFIG, reversed(rows))
    assert [each.id for each in db] == [each.id for each in rows]
    assert order(db.fork("default"), requirements(0, 0, 0), 0) == [each.id for each in rows]


def rows_used(total, amounts, *, priority=0):
    """A fork of as many nodes as *amounts*, with so much of each used."""
    fork = fork_of(*nodes(len(amounts), *total))
    for number, each in enumerate(amounts):
        used(fork, f"node-{number:04}", *each, priority=priority)
    return fork


def test_nodes_come_fullest_first():
    """15, 16 and 17 cores used of 32: the one with 16 left, then that with 17."""
    fork = rows_used(CPU, [(15, 0, 0), (16, 0, 0), (17, 0, 0)])
    assert by_position(order(fork, requirements(16, 0, 0), 0)) == [1, 0]


def test_order_at_a_level():
    """Used at priorities 0, 1 and 2, asked at 1. What is free to all comes before preempting."""
    fork = fork_of(*nodes(9, *CPU))
    for number in range(9):
        cores = (15, 16, 17)[number % 3]
        used(fork, f"node-{number:04}", cores, 0, 0, priority=number // 3)
    left = sorted((fork.allocatable(each.id, 1)[0], each.id) for each in fork.nodes)
    assert by_position(id for cores, id in left if cores >= 16) == [4, 7, 3, 6, 0, 1, 2]
    assert by_position(order(fork, requirements(16, 0, 0), 1)) == [1, 4, 7, 0, 3, 6, 2]


def test_later_resources():
    """Of those with the cores the next with the memory, in the order of the vector."""
    pairs = [(15, 1), (15, 2), (15, 129), (15, 130), (15, 131)]
    pairs += [(16, 130), (16, 128), (16, 129), (17, 0)]
    fork = rows_used(CPU, [(*pair, 0) for pair in pairs])
    assert by_position(order(fork, requirements(16, 128, 0), 0)) == [6, 1, 0]


GPUS = [(31, 1, 0), (31, 1, 1), (31, 1, 2), (31, 1, 5), (31, 2, 0)]
GPUS += [(31, 2, 1), (32, 514, 0), (32, 512, 0), (32, 513, 0), (33, 0, 0)]


@pytest.mark.parametrize("kinds", [1, 3])
def test_gpus(kinds):
    """Three resources; the same when the nodes are of three kinds."""
    rows = [
        node(f"node-{number:04}", *GPU, labels={"kind": str(number % kinds)})
        for number in range(len(GPUS))
    ]
    fork = fork_of(*rows)
    for row, each in zip(rows, GPUS, strict=True):
        used(fork, row.id, *each)
    assert by_position(order(fork, requirements(32, 512, 4), 0)) == [7, 5, 4, 2, 1, 0]


def test_no_more_nodes():
    """A search that finds nothing finds nothing a hundred times."""
    fork = rows_used(CPU, [(32, 0, 0)])
    assert not any(fork.find(requirements(1, 0, 0), 0) for _ in range(100))


def test_only_nodes_of_the_types_asked_for():
    """Three kinds named, the fourth would be the best."""
    rows = [node(f"node-{n}", *CPU, labels={"kind": kind}) for n, kind in enumerate("ABCD")]
    fork = fork_of(*rows)
    for row, cores in zip(rows, (15, 16, 17, 16), strict=True):
        used(fork, row.id, cores, 0, 0)
    named = Constraint("kind", Operator.IN, ("A", "B", "C"))
    asked = Requirements(ResourceVector((16, 0, 0)), "p0", constraints=(named,))
    left = ["node-3", "node-2", "node-1", "node-0"]
    found = []
    while best := fork.find(asked, 0, only=left):
        found.append(best.node_id)
        left.remove(best.node_id)
    assert by_position(found) == [1, 0]


def test_order_of_amounts():
    """(1, 2) before (2, 1), and what is short before both; each amount counts exactly."""
    fork = fork_of(node("a", 2, 1), node("b", 1, 2), node("c", 1, 2), config=node_config(width=2))
    fork.table.bind("j", requirements(0, 3), "c", 0, False)
    assert order(fork, requirements(1, 1), 0) == ["b", "a"]
    assert [*fork.allocatable("c", 0)] == [1, -1]
    fork = fork_of(node("a", 2**40 + 1), node("b", 2**40), config=node_config(width=1))
    assert order(fork, requirements(1), 0) == ["b", "a"]


# --- matching and reasons -----------------------------------------------------------------------


def test_room_at_a_priority():
    """One core held at priority 0 is there for 1 and not for 0; with no total for nobody."""
    config = node_config(0, 1, preemptible=[0, 1], width=1)
    asked = requirements(1)
    assert fork_of(node("a", 1), config=config).find(asked, 1)
    fork = fork_of(node("a", 1), config=config)
    fork.table.bind("j", asked, "a", 0, True)
    assert fork.has_room(asked, "a", priority=1)
    assert not fork.has_room(asked, "a", priority=0)
    assert not fork_of(node("a", 0), config=config).find(asked, 1)


def test_the_first_short_resource_is_named():
    """In the order of the vector: slots where only they are short, cores where both are."""

    def reason(*total):
        return fork_of(node("a", *total), config=node_config(width=2)).find(requirements(10, 1), 0)

    assert reason(10, 1)
    assert reason(10, 0).reason.resource == "memory"
    short = reason(0, 0)
    assert (short.reason.resource, short.reason.wanted, short.reason.had) == ("cpu", 10, 0)


def test_reasons_with_other_amounts_differ():
    """By resource, by what was wanted, by what there was."""
    code = ReasonCode.INSUFFICIENT_RESOURCES
    made = [
        UnschedulableReason(code, resource=resource, wanted=wanted, had=had)
        for resource in ("cpu", "memory")
        for wanted in (1000, 1001)
        for had in (1, 2)
    ]
    assert len(set(made)) == len(made)
    assert not any(one == other for one, other in combinations(made, 2))


@pytest.mark.parametrize(
    ("unit", "text", "down", "up"),
    [
        ("1m", "9999999n", 9, 10),
        ("1m", "1n", 0, 1),
        ("1m", "999999999n", 999, 1000),
        ("1m", "12.3m", 12, 13),
        ("1m", "1Mi", 1048576000, 1048576000),
        ("1", "1m", 0, 1),
        ("1", "1.5Mi", 1572864, 1572864),
        ("1", "100000Ti", 100000 * 2**40, 100000 * 2**40),
        ("1", "1000000001n", 1, 2),
    ],
)
def test_requests_round_up_and_capacity_down(unit, text, down, up):
    """To whole steps of the resource, exactly."""
    spec = ResourceSpec((Resource("r", unit),))
    assert spec.vector({"r": text}, rounding=Rounding.DOWN)[0] == down
    assert spec.vector({"r": text}, rounding=Rounding.UP)[0] == up


# --- defects not to repeat ----------------------------------------------------------------------


def test_r5_an_abort_leaves_nothing_behind():
    """Neither the priority of the try, nor what it held, nor a reason; the next try is as the first."""
    fork = fork_of(node("a", *CPU))
    before = everything(fork)
    with fork.attempt():
        fork.table.bind("j", small(), "a", 29000, True)
        assert fork.binding("j").priority == 29000
    assert everything(fork) == before
    assert fork.binding("j") is None
    with fork.attempt() as attempt:
        fork.table.bind("j", small(), "a", 0, True)
        attempt.keep()
    assert fork.binding("j").priority == 0
    assert fork.allocatable("a", 1).to_tuple() == CPU


def test_r6_conditions_are_all_asked():
    """A node for which only the first of two holds is none, whatever their order."""
    first = Constraint("zone", Operator.IN, ("a",))
    second = Constraint("disk", Operator.EXISTS)
    rows = [
        node("both", *CPU, labels={"zone": "a", "disk": "ssd"}),
        node("first", *CPU, labels={"zone": "a"}),
        node("second", *CPU, labels={"disk": "ssd"}),
    ]
    for both in ((first, second), (second, first)):
        asked = Requirements(ResourceVector((1, 4, 0)), "p0", constraints=both)
        assert order(fork_of(*rows), asked, 0) == ["both"]


def test_r7_cordon_and_uncordon_are_exact():
    """Twice is as once, and back is as before: labels, taints and all."""
    row = node("a", *CPU, labels={"zone": "a"}, taints=(LARGE,))
    shut = node("a", *CPU, labels={"zone": "a"}, taints=(LARGE,), intake=Intake.CORDONED)
    db = NodeDb(CONFIG, [row])
    asked = small(tolerations=(Toleration("largeJobsOnly", "true"),))
    for _ in range(2):
        for _ in range(2):
            db.upsert_many([shut])
            assert not db.fork("default").find(asked, 0)
        assert db.get("a").taints == (LARGE,)
        db.upsert_many([row])
        assert db.get("a") == row
        assert db.fork("default").find(asked, 0)
        assert not db.fork("default").find(small(), 0)


def test_r8_rounding_hides_no_node():
    """Half a core fits where 900 thousandths are left."""
    config = SchedulingConfig()
    total = config.spec.vector({"cpu": "900m", "memory": "1Gi"}, rounding=Rounding.DOWN)
    asked = config.spec.vector({"cpu": "500m"}, rounding=Rounding.UP)
    fork = fork_of(node("a", *total), config=config)
    assert fork.find(Requirements(asked), 0)
    assert not fork.find(Requirements(asked + asked), 0)


def test_r9_alike_nodes_are_all_found():
    """Three nodes that differ in nothing but their ids take what three take."""
    fork = fork_of(*nodes(3, *CPU))
    assert place(fork, small(), 97) == 96
    assert len(order(fork_of(*nodes(200, *CPU)), small(), 0)) == 200


def test_r10_no_victim_more_than_needed():
    """The small job that is later in the order stays when a larger one has to go anyway."""
    fork = fork_of(node("a", 8, 8, 0))
    for name, cores in (("large", 6), ("little", 2)):
        used(fork, "a", cores, 0, 0, name=name)
        fork.table.evict(name)
    asked = requirements(6, 0, 0, priority_class="p0")
    assert fork.victims(asked, 0, ["large", "little"]).job_ids == ("large",)


@pytest.mark.parametrize("wanted", range(1, 37))
def test_r10_eight_candidates_at_every_size(wanted):
    """Cores 1 to 8 in a mixed order: equal to a look at all sets."""
    cores = [3, 8, 1, 6, 2, 7, 5, 4]
    fork = fork_of(node("a", 36, 0, 0))
    names = [f"job-{n}" for n in range(8)]
    for name, each in zip(names, cores, strict=True):
        used(fork, "a", each, 0, 0, name=name)
    suffices = [
        chosen
        for size in range(1, 9)
        for chosen in combinations(range(8), size)
        if sum(cores[i] for i in chosen) >= wanted
    ]
    best = min(suffices, key=lambda chosen: (-chosen[0], len(chosen), [-i for i in chosen]))
    asked = requirements(wanted, 0, 0, priority_class="p0")
    assert fork.victims(asked, 0, names).job_ids == tuple(names[i] for i in best)
