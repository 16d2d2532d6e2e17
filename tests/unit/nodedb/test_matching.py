"""Which nodes a request may use, and which it likes better."""

import itertools

import pytest

from kit.jobs import requirements
from kit.nodes import node, node_config
from pyresched.model import (
    Constraint,
    Intake,
    Operator,
    Preference,
    Spread,
    Taint,
    TaintEffect,
    Toleration,
)
from pyresched.nodedb import NodeDb
from pyresched.nodedb.matching import Matching
from pyresched.nodedb.refusals import explain

NO_SCHEDULE, NO_EXECUTE, PREFER = TaintEffect
BAR = Constraint("bar", Operator.IN, ("bar",))
FOO = Taint("foo", "foo")


def tiers(nodes, /, **asked):
    """The tier of each node, in the order given; 0 may not be used."""
    found = Matching(nodes)(requirements(1, 1, **asked)).tiers
    assert len(found) % 64 == 0
    assert not any(found[len(nodes) :])
    return list(found[: len(nodes)])


def test_a_selector_wants_each_of_its_labels_with_its_value():
    """Fact 81, as far as nothing depends on an index: all must be there, with that value."""
    nodes = [
        node("both", labels={"zone": "a", "disk": "ssd", "rack": "7"}),
        node("other", labels={"zone": "b", "disk": "ssd"}),
        node("missing", labels={"zone": "a"}),
        node("bare"),
    ]
    assert tiers(nodes, selector={"zone": "a", "disk": "ssd"}) == [1, 0, 0, 0]
    assert tiers(nodes, selector={"zone": "a"}) == [1, 0, 1, 0]
    assert tiers(nodes) == [1, 1, 1, 1]
    assert tiers(nodes, selector={"unknown": "x"}) == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("fields", "asked", "fits"),
    [
        ({"taints": (FOO,)}, {"tolerations": (Toleration("foo", "foo"),)}, True),
        ({"taints": (FOO,)}, {}, False),
        ({"labels": {"bar": "bar"}}, {"affinity": ((BAR,),)}, True),
        ({"labels": {"bar": "other"}}, {"affinity": ((BAR,),)}, False),
        ({"labels": {"bar": "bar"}}, {"selector": {"bar": "bar"}}, True),
        ({"labels": {"bar": "other"}}, {"selector": {"bar": "bar"}}, False),
        (
            {"labels": {"bar": "bar", "baz": "baz"}},
            {"affinity": ((BAR,),), "selector": {"baz": "baz"}},
            True,
        ),
        ({"labels": {"bar": "bar"}}, {"affinity": ((BAR,),), "selector": {"baz": "baz"}}, False),
        ({"labels": {"baz": "baz"}}, {"affinity": ((BAR,),), "selector": {"baz": "baz"}}, False),
        ({}, {}, True),
        ({"labels": {}, "taints": ()}, {}, True),
        ({"labels": {}}, {"selector": {}, "affinity": ()}, True),
        ({}, {"affinity": ((BAR,),)}, False),
    ],
    ids=itertools.count(),
)
def test_facts_of_one_node(fields, asked, fits):
    """Fact 79; a search, the masks and the explanation agree."""
    one = node("a", 8, 8, **fields)
    assert tiers([one], **asked) == [int(fits)]
    asked = requirements(1, 1, **asked)
    assert bool(NodeDb(node_config(), [one]).fork("default").find(asked, 1000)) == fits
    assert (explain(asked, one) is None) == fits


@pytest.mark.parametrize("effect", [NO_SCHEDULE, NO_EXECUTE])
@pytest.mark.parametrize(
    ("toleration", "accepted"),
    [
        (Toleration("gpu", "yes"), 1),
        (Toleration("gpu", "no"), 0),
        (Toleration("gpu"), 0),
        (Toleration("other", "yes"), 0),
        (Toleration("gpu", exists=True), 1),
        (Toleration(exists=True), 1),
        (Toleration("gpu", "yes", effect=NO_SCHEDULE), {NO_SCHEDULE: 1, NO_EXECUTE: 0}),
        (Toleration("gpu", exists=True, effect=NO_EXECUTE), {NO_SCHEDULE: 0, NO_EXECUTE: 1}),
        (Toleration("gpu", "yes", effect=PREFER), 0),
    ],
)
def test_tolerations_accept_as_in_kubernetes(effect, toleration, accepted):
    """Key, value and effect decide; an empty effect is any, `exists` ignores the value."""
    nodes = [node("tainted", taints=(Taint("gpu", "yes", effect),)), node("plain")]
    if isinstance(accepted, dict):
        accepted = accepted[effect]
    assert tiers(nodes, tolerations=(toleration,)) == [accepted, 1]
    assert tiers(nodes) == [0, 1]


def test_each_taint_must_be_tolerated():
    """One toleration for two taints is not enough; two of one key in any order are two."""
    both = node("both", taints=(Taint("a", "1"), Taint("a", "2")))
    turned = node("turned", taints=(Taint("a", "2"), Taint("a", "1")))
    assert tiers([both, turned], tolerations=(Toleration("a", "1"),)) == [0, 0]
    assert tiers(
        [both, turned], tolerations=(Toleration("a", "1"), Toleration("a", "2"))
    ) == [1, 1]  # fmt: skip


def test_a_soft_taint_excludes_nothing():
    """`PreferNoSchedule` moves a node back; a toleration or a real refusal changes that."""
    nodes = [
        node("spot", taints=(Taint("spot", "", PREFER),)),
        node("plain"),
        node("hard", taints=(Taint("spot", "", PREFER), Taint("gpu"))),
    ]
    assert tiers(nodes) == [2, 1, 0]
    assert tiers(nodes, tolerations=(Toleration("spot"),)) == [1, 1, 0]
    assert tiers(nodes, tolerations=(Toleration("gpu"),)) == [2, 1, 2]
    assert tiers(nodes[:1]) == [1]


def test_affinity_terms_are_alternatives_of_conditions_that_all_hold():
    """No terms ask nothing; an empty term is met by no node, as in Kubernetes."""
    ssd = Constraint("disk", Operator.IN, ("ssd",))
    big = Constraint("cores", Operator.GT, ("16",))
    nodes = [
        node("ssd", labels={"disk": "ssd", "cores": "8"}),
        node("big", labels={"disk": "hdd", "cores": "32"}),
        node("both", labels={"disk": "ssd", "cores": "32"}),
        node("bare"),
    ]
    assert tiers(nodes, affinity=((ssd, big),)) == [0, 0, 1, 0]
    assert tiers(nodes, affinity=((ssd,), (big,))) == [1, 1, 1, 0]
    assert tiers(nodes, affinity=()) == [1, 1, 1, 1]
    assert tiers(nodes, affinity=((),)) == [0, 0, 0, 0]
    assert tiers(nodes, affinity=((), (ssd,))) == [1, 0, 1, 0]


def test_constraints_all_hold():
    """Beside affinity and selector."""
    low, high = Constraint("gen", Operator.GREATER_EQUAL, ("3",)), BAR
    nodes = [node(f"n{i}", labels={"gen": str(i), "bar": "bar"}) for i in (2, 3, 10)]
    assert tiers(nodes, constraints=(low, high)) == [0, 1, 1]
    assert tiers(nodes, constraints=(low,), selector={"gen": "10"}) == [0, 0, 1]


def test_named_nodes_are_the_only_ones():
    """Unknown ids mean nothing."""
    nodes = [node(id) for id in "abc"]
    assert tiers(nodes, nodes=("b", "c", "gone")) == [0, 1, 1]
    assert tiers(nodes, nodes=("gone",)) == [0, 0, 0]


def test_preferences_add_up_after_soft_taints():
    """Weights of those that hold; below zero pushes back; equal sums share a tier."""
    a, b = (Constraint(label, Operator.EXISTS) for label in "ab")
    nodes = [
        node("bare"),
        node("a", labels={"a": ""}),
        node("b", labels={"b": ""}),
        node("both", labels={"a": "", "b": ""}),
        node("soft", labels={"a": "", "b": ""}, taints=(Taint("x", "", PREFER),)),
    ]
    likes = (Preference(10, (a,)), Preference(20, (b,)))
    assert tiers(nodes, preferences=likes) == [4, 3, 2, 1, 5]
    assert tiers(nodes, preferences=(Preference(-5, (a,)),)) == [1, 2, 1, 2, 3]
    assert tiers(nodes, preferences=(Preference(5, (a, b)),)) == [2, 2, 2, 1, 3]
    assert tiers(nodes, preferences=(Preference(5, ()),)) == [1, 1, 1, 1, 2]
    assert tiers(nodes[:4], preferences=(Preference(5, (a,)), Preference(5, (b,)))) == [3, 2, 2, 1]


def test_past_255_tiers_the_worst_share_the_last():
    """A byte holds no more; what is best stays apart."""
    nodes = [node(f"n{i:03}", labels={"n": str(i)}) for i in range(300)]
    distinct = tuple(
        Preference(1, (Constraint("n", Operator.GREATER_EQUAL, (str(i),)),)) for i in range(300)
    )
    assert tiers(nodes, preferences=distinct) == [min(300 - i, 255) for i in range(300)]


def test_labels_of_many_values_match_alike():
    """A column past what a byte can number, by every way of making its mask."""
    nodes = [node(f"n{i:03}", labels={"host": f"h{i}"} if i % 100 else {}) for i in range(400)]
    host = [f"h{i}" if i % 100 else None for i in range(400)]
    assert tiers(nodes, selector={"host": "h7"}) == [int(h == "h7") for h in host]
    assert tiers(nodes, selector={"host": "h1000"}) == [0] * 400
    for each in (
        Constraint("host", Operator.IN, ("h1", "h399")),
        Constraint("host", Operator.NOT_IN, ("h1",)),
        Constraint("host", Operator.REGEXP, ("[13579]$",)),
        Constraint("host", Operator.DOES_NOT_EXIST),
        Constraint("host", Operator.EXISTS),
    ):
        assert tiers(nodes, constraints=(each,)) == [int(each.accepts(h)) for h in host]


def test_what_depends_on_other_jobs_is_told_by_value():
    """Distinct constraints first, in the order of the requirements, then spreads."""
    nodes = [node("a", labels={"zone": "y"}), node("b", labels={"zone": "x"}), node("c")]
    asked = requirements(
        constraints=(
            Constraint("zone", Operator.DISTINCT_PROPERTY, ("2",)),
            Constraint("", Operator.DISTINCT_HOSTS),
        ),
        spread=(Spread("zone", 70, (("x", 60), ("z", 10))), Spread("zone", 30)),
        scope="web",
    )
    masks = Matching(nodes)(asked)
    assert list(masks.tiers[:3]) == [1, 1, 0]
    scope, hosts, (distinct, aimed, even) = masks.dynamic
    assert (scope, hosts) == ("web", 1)
    assert list(memoryview(distinct.values).cast("i")) == [1, 0, -1]
    assert (distinct.limit, distinct.weight, distinct.desired) == (2, 0, ())
    assert (aimed.limit, aimed.weight, aimed.desired) == (0, 70, (60, 30))
    assert (even.limit, even.weight, even.desired) == (0, 30, ())
    assert aimed.values == even.values == distinct.values
    off = requirements(constraints=(Constraint("", Operator.DISTINCT_HOSTS, ("false",)),))
    assert Matching(nodes)(off).dynamic is None
    assert Matching(nodes)(requirements(scope="web")).dynamic is None


def test_cordon_and_uncordon_are_exact():
    """R7: a state and no taint; twice is once, and nothing of it is left behind."""
    db = NodeDb(node_config(), [node("a", 8, 8, taints=(FOO,))])
    asked = requirements(1, 1, tolerations=(Toleration("foo", exists=True),))
    every = requirements(1, 1, tolerations=(Toleration(exists=True),))
    before = db.fork("default").find(asked, 1000)
    assert before
    for _ in range(2):
        shut = node("a", 8, 8, taints=(FOO,), intake=Intake.CORDONED)
        db.upsert_many([shut])
        assert shut.taints == (FOO,)
        for one in (asked, every):  # no toleration opens it
            assert not db.fork("default").find(one, 1000)
    for _ in range(2):
        db.upsert_many([node("a", 8, 8, taints=(FOO,))])
        assert db.fork("default").find(asked, 1000) == before
        assert not db.fork("default").find(requirements(1, 1), 1000)


def test_equal_questions_share_one_answer():
    """Requests that differ in amounts only are answered from memory, for any number of nodes."""
    matching = Matching([node(f"n{i:03}", labels={"x": str(i % 2)}) for i in range(130)])
    first = matching(requirements(1, 1, selector={"x": "1"}))
    assert matching(requirements(9, 9, selector={"x": "1"})) is first
    assert first.tiers == (bytes([0, 1]) * 65).ljust(192, b"\0")


def test_memory_of_answers_is_bounded(monkeypatch):
    """Ever new selectors do not grow it without end, and an old question is answered again."""
    monkeypatch.setattr("pyresched.nodedb.matching._MOST_KEPT", 4)
    monkeypatch.setattr("pyresched.nodedb.matching._MOST_MASKS", 3)
    matching = Matching([node(labels={"x": "0"})])
    for n in range(10):
        asked = requirements(constraints=(Constraint("x", Operator.EQUAL, (str(n),)),))
        assert matching(asked).tiers[0] == (n == 0)
    assert len(matching._known) == 4
    assert len(matching._masks) == 3
    again = requirements(constraints=(Constraint("x", Operator.EQUAL, ("0",)),))
    assert matching(again).tiers[0] == 1


def test_a_condition_is_asked_once_for_each_value(monkeypatch):
    """Not once for each node; and not again when a node without a new value changes."""
    asked = []
    original = Constraint.accepts
    monkeypatch.setattr(Constraint, "accepts", lambda c, v: asked.append(v) or original(c, v))
    nodes = [node(f"n{i:03}", labels={"x": str(i % 3)}) for i in range(300)]
    matching = Matching(nodes)
    want = requirements(constraints=(Constraint("x", Operator.IN, ("1",)),))
    matching(want)
    matching(requirements(2, constraints=want.constraints, selector={"x": "1"}))
    assert sorted(map(str, asked)) == ["0", "1", "2", "None"]
    matching.updated({7: node("n007", labels={"x": "1", "y": "new"})})(want)
    assert len(asked) == 4


def test_no_nodes_no_answers():
    """An empty pool has empty masks."""
    assert Matching([])(requirements(selector={"x": "y"})) == (b"", None)
    assert Matching([]).types == b""


def test_alike_nodes_share_a_type_and_types_are_few():
    """By taints and labels of few values; 64 at most, however many kinds there are."""
    nodes = [
        node(
            f"n{i:04}",
            labels={"zone": f"z{i % 4}", "host": f"h{i}"},
            taints=(FOO,) if i % 3 else (),
        )
        for i in range(1200)
    ]
    matching = Matching(nodes)
    types = matching.types
    assert len(types) == 1200
    groups = {(one.labels["zone"], one.taints): t for one, t in zip(nodes, types, strict=True)}
    assert len(set(groups.values())) == len(groups) == 8
    for one, found in zip(nodes, types, strict=True):
        assert groups[one.labels["zone"], one.taints] == found
    moved = matching.updated({5: node("n0005", labels={"zone": "z0"}, taints=(FOO,))})
    assert moved.types[5] == groups["z0", (FOO,)]
    assert moved.types[:5] + moved.types[6:] == types[:5] + types[6:]
    odd = [node(f"n{i:04}", taints=(Taint(f"t{i}"),)) for i in range(300)]
    assert set(Matching(odd).types) <= set(range(64))
    strange = matching.updated({0: node("n0000", labels={"zone": "new"}, taints=(Taint("t"),))})
    assert strange.types[0] < 64
