"""Which nodes a request may use at all."""

import pytest

from kit.jobs import requirements
from kit.nodes import node
from pyresched.model import Taint, TaintEffect, Toleration
from pyresched.nodedb.matching import Matching

NO_SCHEDULE, NO_EXECUTE, PREFER = TaintEffect


def masks(nodes, **asked):
    """(may, preferred) of each node as bits, in the order given."""
    mask, preferred = Matching(nodes).legacy(requirements(1, 1, **asked))
    assert len(mask) % 64 == 0
    assert not any(mask[len(nodes) :])
    may = list(mask[: len(nodes)])
    return may, may if preferred is None else list(preferred[: len(nodes)])


def test_a_selector_wants_each_of_its_labels_with_its_value():
    """Every label must be there, with that value; a node may have more."""
    nodes = [
        node("both", labels={"zone": "a", "disk": "ssd", "rack": "7"}),
        node("other", labels={"zone": "b", "disk": "ssd"}),
        node("missing", labels={"zone": "a"}),
        node("bare"),
    ]
    assert masks(nodes, selector={"zone": "a", "disk": "ssd"})[0] == [1, 0, 0, 0]
    assert masks(nodes, selector={"zone": "a"})[0] == [1, 0, 1, 0]
    assert masks(nodes)[0] == [1, 1, 1, 1]
    assert masks(nodes, selector={"unknown": "x"})[0] == [0, 0, 0, 0]


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
    assert masks(nodes, tolerations=(toleration,))[0] == [accepted, 1]
    assert masks(nodes)[0] == [0, 1]


def test_each_taint_must_be_tolerated():
    """One toleration for two taints is not enough."""
    both = node("both", taints=(Taint("a"), Taint("b")))
    assert masks([both], tolerations=(Toleration("a"),))[0] == [0]
    assert masks([both], tolerations=(Toleration("a"), Toleration("b")))[0] == [1]


def test_a_preference_excludes_nothing():
    """`PreferNoSchedule` moves a node back; a toleration or a real refusal changes that."""
    nodes = [
        node("spot", taints=(Taint("spot", "", PREFER),)),
        node("plain"),
        node("hard", taints=(Taint("spot", "", PREFER), Taint("gpu"))),
    ]
    assert masks(nodes) == ([1, 1, 0], [0, 1, 0])
    assert masks(nodes, tolerations=(Toleration("spot"),)) == ([1, 1, 0], [1, 1, 0])
    assert masks(nodes, tolerations=(Toleration("gpu"),)) == ([1, 1, 1], [0, 1, 0])


def test_equal_questions_share_one_answer():
    """Requests that differ in amounts only are answered from memory, for any number of nodes."""
    matching = Matching([node(f"n{i:03}", labels={"x": str(i % 2)}) for i in range(130)])
    first = matching(requirements(1, 1, selector={"x": "1"}))
    assert matching(requirements(9, 9, selector={"x": "1"})) is first
    assert first[0] == (bytes([0, 1]) * 65).ljust(192, b"\0")


def test_memory_of_answers_is_bounded(monkeypatch):
    """Ever new selectors do not grow it without end, and an old question is answered again."""
    monkeypatch.setattr("pyresched.nodedb.matching._MOST_KEPT", 4)
    matching = Matching([node(labels={"x": "0"})])
    for n in range(10):
        mask, _ = matching(requirements(selector={"x": str(n)}))
        assert mask[0] == (n == 0)
    assert len(matching._known) == 4
    assert matching(requirements(selector={"x": "0"}))[0][0] == 1


def test_no_nodes_no_answers():
    """An empty pool has empty masks."""
    assert Matching([])(requirements(selector={"x": "y"})) == (b"", None)
