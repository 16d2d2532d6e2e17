"""Masks, tiers and reasons for all nodes at once are those of asking each pair by itself."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kit.matching import liking, may_use
from pyresched.model import (
    Constraint,
    Intake,
    Node,
    NodeId,
    Operator,
    Preference,
    Requirements,
    ResourceVector,
    Spread,
    Taint,
    TaintEffect,
    Toleration,
)
from pyresched.nodedb.matching import Matching
from pyresched.nodedb.refusals import excluded, explain

LABELS = ("zone", "disk", "size", "os")
VALUES = ("", "a", "b", "3", "12", "1.2.3", "1.3.0-beta", "ssd,nvme")
TAINTS = [
    Taint("gpu", "yes", TaintEffect.NO_SCHEDULE),
    Taint("old", "", TaintEffect.NO_EXECUTE),
    Taint("spot", "", TaintEffect.PREFER_NO_SCHEDULE),
]
TOLERATIONS = [
    Toleration("gpu", "yes"),
    Toleration("old", exists=True),
    Toleration("spot", exists=True, effect=TaintEffect.PREFER_NO_SCHEDULE),
    Toleration(exists=True),
]
WANTED = {
    Operator.GT: ("3",),
    Operator.LT: ("5",),
    Operator.GREATER_EQUAL: ("1.5",),
    Operator.LESS: ("b",),
    Operator.REGEXP: ("^[ab]?$",),
    Operator.VERSION: (">= 1.2, < 2",),
    Operator.SEMVER: (">= 1.2.0, < 1.3.0",),
    Operator.SET_CONTAINS: ("nvme",),
    Operator.SET_CONTAINS_ANY: ("hdd, ssd",),
}
PRESENCE = (Operator.EXISTS, Operator.DOES_NOT_EXIST, Operator.IS_SET, Operator.IS_NOT_SET)

labels = st.dictionaries(st.sampled_from(LABELS), st.sampled_from(VALUES), min_size=1, max_size=4)
ids = st.sampled_from([f"n{i}" for i in range(9)])


@st.composite
def nodes_of_a_pool(draw):
    """Nodes sorted by id, some of them alike."""
    return [draw(node_rows(f"n{i}")) for i in range(draw(st.sampled_from([0, 1, 3, 5, 8])))]


@st.composite
def node_rows(draw, id):
    """One node."""
    return Node(
        id=NodeId(id),
        total=ResourceVector((1,)),
        labels=draw(labels),
        taints=tuple(draw(st.lists(st.sampled_from(TAINTS), max_size=2, unique=True))),
        intake=draw(st.sampled_from([Intake.OPEN, Intake.OPEN, *Intake])),
        lost_at=draw(st.sampled_from([None, None, 5])),
    )


@st.composite
def conditions(draw, *, distinct=False):
    """A constraint by any operator."""
    label = draw(st.sampled_from(LABELS))
    operator = draw(st.sampled_from(list(Operator)))
    if operator is Operator.DISTINCT_HOSTS:
        return Constraint("", operator) if distinct else Constraint(label, Operator.EXISTS)
    if operator is Operator.DISTINCT_PROPERTY:
        return Constraint(label, operator) if distinct else Constraint(label, Operator.EXISTS)
    if operator in (Operator.IN, Operator.NOT_IN):
        values = tuple(draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=3)))
    elif operator in PRESENCE:
        values = ()
    else:
        values = WANTED.get(operator) or (draw(st.sampled_from(VALUES)),)
    return Constraint(label, operator, values)


def terms(most=2):
    """Conditions that all must hold."""
    return st.lists(conditions(), max_size=most).map(tuple)


weights = st.integers(-3, 3).filter(bool)
PARTS = {
    "selector": st.dictionaries(st.sampled_from(LABELS), st.sampled_from(VALUES), max_size=2),
    "tolerations": st.lists(st.sampled_from(TOLERATIONS), max_size=2, unique=True).map(tuple),
    "constraints": st.lists(conditions(distinct=True), max_size=2).map(tuple),
    "affinity": st.lists(terms(), max_size=3).map(tuple),
    "preferences": st.lists(st.builds(Preference, weights, terms()), max_size=4).map(tuple),
    "spread": st.lists(st.builds(Spread, st.sampled_from(LABELS)), max_size=1).map(tuple),
    "nodes": st.lists(ids, max_size=5).map(tuple),
}


@st.composite
def requests(draw):
    """What a job may ask of nodes: few parts of the language at once, so that some nodes do."""
    parts = draw(st.lists(st.sampled_from(sorted(PARTS)), min_size=1, max_size=3, unique=True))
    return Requirements(ResourceVector((1,)), **{part: draw(PARTS[part]) for part in parts})


def expected_tiers(nodes, asked):
    """Equal nodes share a tier; tiers count up from the best."""
    usable = [node for node in nodes if may_use(node, asked)]
    order = sorted({liking(node, asked) for node in usable})
    return [order.index(liking(node, asked)) + 1 if node in usable else 0 for node in nodes]


@given(nodes_of_a_pool(), st.lists(requests(), min_size=1, max_size=3))
def test_tiers_are_those_of_sorting_every_node(nodes, requests):
    """For any labels, taints and requests, asked in any order of one matching."""
    matching = Matching(nodes)
    for asked in requests:
        tiers = matching(asked).tiers
        assert len(tiers) == (64 if nodes else 0)
        assert list(tiers[: len(nodes)]) == expected_tiers(nodes, asked)
        assert not any(tiers[len(nodes) :])


@given(st.data())
def test_an_updated_matching_is_one_made_anew(data):
    """Whatever was asked before, whichever nodes changed, and again after that."""
    nodes = data.draw(nodes_of_a_pool())
    asked = data.draw(st.lists(requests(), min_size=1, max_size=3))
    matching = Matching(nodes)
    for _ in range(2):
        for one in data.draw(st.lists(st.sampled_from(asked))):
            matching(one)
        if data.draw(st.booleans()):
            matching.types  # noqa: B018 - made, so that it must follow
        changed = {
            i: data.draw(node_rows(nodes[i].id))
            for i in data.draw(st.lists(st.integers(0, 7), max_size=3))
            if i < len(nodes)
        }
        before = [matching(one) for one in asked]
        old, matching = matching, matching.updated(changed)
        nodes = [changed.get(i, node) for i, node in enumerate(nodes)]
        anew = Matching(nodes)
        assert matching.nodes == anew.nodes
        for one in asked:
            assert matching(one) == anew(one)
        assert [old(one) for one in asked] == before


@given(nodes_of_a_pool(), requests(), st.none() | st.sets(st.integers(0, 7)))
def test_reasons_counted_over_a_pool_are_those_of_each_node(nodes, asked, only):
    """Each node once, under its first reason; one without a reason may be used and is open."""
    among = None if only is None else sorted(i for i in only if i < len(nodes))
    counted = Counter()
    for i, node in enumerate(nodes):
        reason = explain(asked, node)
        usable = may_use(node, asked) and node.takes_new_runs
        assert (reason is None) == usable
        if among is not None and i not in among:
            counted["node_not_named", "", "", ""] += 1
        elif reason is not None:
            counted[reason.code.value, reason.subject, reason.expected, reason.found] += 1
    found = excluded(Matching(nodes), asked, nodes, among)
    assert [each.nodes for each in found] == sorted((e.nodes for e in found), reverse=True)
    assert {
        (e.reason.code.value, e.reason.subject, e.reason.expected, e.reason.found): e.nodes
        for e in found
    } == counted


@given(nodes_of_a_pool(), st.sampled_from(LABELS))
def test_a_counted_label_has_the_index_of_each_value(nodes, label):
    """Equal exactly for equal values, -1 where the label is absent, 0 and up otherwise."""
    asked = Requirements(ResourceVector((1,)), spread=(Spread(label),), scope="s")
    dynamic = Matching(nodes)(asked).dynamic
    assert (dynamic.scope, dynamic.host_limit) == ("s", 0)
    (counted,) = dynamic.properties
    index = memoryview(counted.values).cast("i")
    assert len(index) == len(nodes)
    values = [node.labels.get(label) for node in nodes]
    assert [i == -1 for i in index] == [value is None for value in values]
    for i, one in zip(index, values, strict=True):
        for j, other in zip(index, values, strict=True):
            assert (i == j) == (one == other)
    assert set(index) - {-1} == set(range(len({*values} - {None})))


@pytest.mark.parametrize("field", ["labels", "taints"])
def test_a_node_that_only_changes_its_room_keeps_every_answer(field):
    """What is remembered is shared, not made again."""
    nodes = [Node(id=NodeId(f"n{i}"), total=ResourceVector((1,))) for i in range(3)]
    asked = Requirements(ResourceVector((1,)), selector={"zone": "a"})
    matching = Matching(nodes)
    answer = matching(asked)
    bigger = replace(nodes[1], total=ResourceVector((9,)))
    assert matching.updated({1: bigger})(asked) is answer
    other = {"labels": {"zone": "a"}, "taints": (TAINTS[0],)}
    assert matching.updated({1: replace(nodes[1], **{field: other[field]})})(asked) is not answer
