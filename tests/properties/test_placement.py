"""Placing by the whole language, one job after another, against a model that sorts every node.

Nodes are open and large, so that what jobs ask of them and of each other decides. Holds INV-B8.
"""

from hypothesis import given
from hypothesis import strategies as st

from kit.nodes import Held, ModelNodes, node_config
from pyresched.model import (
    Constraint,
    Node,
    NodeId,
    Operator,
    Preference,
    Requirements,
    ResourceVector,
    Spread,
    Taint,
    TaintEffect,
)
from pyresched.nodedb import NodeDb

SOFT = Taint("spot", "", TaintEffect.PREFER_NO_SCHEDULE)
ZONE_A, ZONE_B = (Constraint("zone", Operator.EQUAL, (value,)) for value in "ab")
RULES = {
    "constraints": [
        Constraint("zone", Operator.NOT_EQUAL, ("c",)),
        Constraint("", Operator.DISTINCT_HOSTS),
        Constraint("zone", Operator.DISTINCT_PROPERTY),
        Constraint("zone", Operator.DISTINCT_PROPERTY, ("2",)),
    ],
    "affinity": [(ZONE_A,), (ZONE_B, Constraint("disk", Operator.EXISTS))],
    "preferences": [
        Preference(5, (Constraint("disk", Operator.EXISTS),)),
        Preference(-5, (ZONE_B,)),
        Preference(3, (ZONE_A,)),
    ],
    "spread": [
        Spread("zone"),
        Spread("zone", 10, (("a", 70),)),
        Spread("zone", 90, (("b", 20), ("c", 30))),
        Spread("disk", 20),
    ],
    "nodes": ["n0", "n2", "n3", "n4"],
}


@st.composite
def node_rows(draw, id):
    """An open node with room for many; most are alike but for their labels."""
    labels = {"zone": draw(st.sampled_from(["a", "b", "c", ""])), "disk": "ssd"}
    kept = draw(st.sampled_from([("zone",), ("zone", "disk"), ("zone", "disk"), ("disk",), ()]))
    return Node(
        id=NodeId(id),
        total=ResourceVector((draw(st.sampled_from([9, 9, 9, 12])),)),
        labels={label: labels[label] for label in kept},
        taints=draw(st.sampled_from([(), (), (), (SOFT,)])),
    )


@st.composite
def requests(draw):
    """One unit, mostly, with one or two rules; rarely none, but perhaps of a scope."""
    parts = draw(st.lists(st.sampled_from(sorted(RULES)), max_size=2, unique=True))
    rules = {
        part: tuple(draw(st.lists(st.sampled_from(RULES[part]), min_size=1, max_size=2)))
        for part in parts
    }
    scope = draw(st.sampled_from(["", "web", "web"]))
    return Requirements(ResourceVector((draw(st.sampled_from([1, 1, 3])),)), **rules, scope=scope)


@given(st.data())
def test_each_job_goes_where_sorting_every_node_puts_it(data):
    """Jobs of a few shapes one after another; some leave, are evicted, or are taken back."""
    rows = [data.draw(node_rows(f"n{i}")) for i in range(data.draw(st.integers(2, 5)))]
    fork = NodeDb(node_config(width=1), rows).fork("default")
    model = ModelNodes(rows, (0, 1000))
    shapes = data.draw(st.lists(requests(), min_size=1, max_size=3))
    with fork.attempt() as attempt:
        for i in range(data.draw(st.integers(1, 10))):
            asked = data.draw(st.sampled_from(shapes))
            found = fork.find(asked, 1000)
            expected = model.find(asked, 1000)
            assert (found.node_id if found else None) == (expected[0] if expected else None)
            if not expected:
                check_exclusions(found, rows, model, asked)
                continue
            with fork.attempt() as tried:  # taken back: nothing of it may count
                tried.bind_as(f"try-{i}", asked, rows[0].id, 1000, False)
            attempt.bind_as(f"job-{i}", asked, expected[0], 1000, True)
            model.held[f"job-{i}"] = Held(expected[0], asked, 1000, preemptible=True)
            change = data.draw(st.sampled_from(["", "", "unbind", "evict"]))
            if change == "unbind":
                attempt.unbind(f"job-{i}")
                del model.held[f"job-{i}"]
            elif change == "evict":
                attempt.evict(f"job-{i}")
                model.held[f"job-{i}"].evicted = True
        attempt.keep()
    assert fork.check() == []


def check_exclusions(found, rows, model, asked):
    """Each node is counted once, by the kind of its first reason."""
    counted = {"may": 0, "taken": 0, "full": 0}
    for node in rows:
        if not model.matches(node, asked):
            counted["may"] += 1
        elif not model.has_place(node, asked):
            counted["taken"] += 1
        else:
            counted["full"] += 1
    kinds = {"host_taken": "taken", "property_taken": "taken", "insufficient_resources": "full"}
    told = {"may": 0, "taken": 0, "full": 0}
    for each in found.excluded:
        told[kinds.get(each.reason.code.value, "may")] += each.nodes
    assert told == counted
    assert found.reasons


@given(st.data())
def test_alike_jobs_in_a_batch_spread_as_one_by_one(data):
    """`place_many` counts the jobs that it places itself, and leaves no trace of them."""
    rows = [data.draw(node_rows(f"n{i}")) for i in range(data.draw(st.integers(2, 5)))]
    fork = NodeDb(node_config(width=1), rows).fork("default")
    model = ModelNodes(rows, (0, 1000))
    asked = data.draw(requests())
    count = data.draw(st.integers(1, 8))
    for _ in range(2):
        placed = fork.place_many(asked, count, 1000)
        in_turn = [node_id for node_id, copies in placed for _ in range(copies)]
        assert in_turn == model.place_many(asked, count, 1000)


@given(st.data())
def test_nobody_gives_way_on_a_node_that_may_not_be_used(data):
    """Victims are found among nodes that the language and the other jobs of the scope leave."""
    rows = [data.draw(node_rows(f"n{i}")) for i in range(data.draw(st.integers(1, 3)))]
    fork = NodeDb(node_config(0, 1000, preemptible=[0], width=1), rows).fork("default")
    model = ModelNodes(rows, (0, 1000))
    shapes = data.draw(st.lists(requests(), min_size=1, max_size=2))
    with fork.attempt() as attempt:
        for i in range(data.draw(st.integers(0, 3))):
            node, asked = data.draw(st.sampled_from(rows)), data.draw(st.sampled_from(shapes))
            attempt.bind_as(f"job-{i}", asked, node.id, 0, True)
            model.held[f"job-{i}"] = Held(node.id, asked, 0, preemptible=True)
        for node in rows:  # nothing is free, one filler must go
            left = model.left(node, None)[0]
            filler = Requirements(ResourceVector((max(left, 0),)), scope="filler")
            attempt.bind_as(f"z-{node.id}", filler, node.id, 0, True)
            model.held[f"z-{node.id}"] = Held(node.id, filler, 0, preemptible=True)
        asked = data.draw(st.sampled_from(shapes))
        candidates = data.draw(st.permutations(sorted(model.held)))
        found = fork.victims(asked, 1000, candidates)
        expected = model.victims(asked, 1000, candidates)
        assert ((found.node_id, list(found.job_ids)) if found else None) == expected
