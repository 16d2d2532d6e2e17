"""Nodes that join, are lost, return, are cordoned."""

import pytest

from kit.jobs import gang, job, leased
from kit.readers import DictReader
from pyresched import fleet
from pyresched.errors import DuplicateId, UnknownNode
from pyresched.model import (
    Changes,
    EventKind,
    Intake,
    JobState,
    Node,
    Outcome,
    ResourceVector,
)


def node(id: str = "node-1", cores: int = 4, **fields) -> Node:
    """A node of four cores."""
    return Node(id=id, total=ResourceVector([cores, 1]), **fields)


def known(*nodes: Node) -> dict[str, Node]:
    """The nodes by id."""
    return {each.id: each for each in nodes}


def kinds(changes: Changes) -> list[EventKind]:
    """What is said to have happened, in order."""
    return [event.kind for event in changes.events]


def test_a_new_node_joins_at_version_one_and_in_reach() -> None:
    """Whatever version it comes with: rows are counted here."""
    changes = fleet.join([node(version=9, lost_at=3)], {}, now=5)
    assert changes.nodes == (node(),)
    assert changes.events[0].kind is EventKind.NODE_JOINED
    assert changes.events[0].at == 5


def test_a_node_that_joins_as_it_was_changes_nothing() -> None:
    """Heartbeats are many."""
    assert not fleet.join([node(), node()], known(node(version=7)), now=5)


def test_a_known_node_with_other_figures_is_changed_and_keeps_its_intake() -> None:
    """An operator's cordon outlives what the executor says."""
    old = node(version=2, intake=Intake.CORDONED)
    changes = fleet.join([node(cores=8)], known(old), now=5)
    assert changes.nodes == (node(cores=8, version=3, intake=Intake.CORDONED),)
    assert kinds(changes) == [EventKind.NODE_CHANGED]


def test_a_lost_node_that_joins_is_back() -> None:
    """With other figures it is changed as well."""
    old = node(version=2, lost_at=1)
    same = fleet.join([node()], known(old), now=5)
    assert same.nodes == (node(version=3),)
    assert kinds(same) == [EventKind.NODE_BACK]
    other = fleet.join([node(cores=8)], known(old), now=5)
    assert kinds(other) == [EventKind.NODE_BACK, EventKind.NODE_CHANGED]


def test_one_id_with_two_figures_is_refused() -> None:
    """Nothing could say which is right."""
    with pytest.raises(DuplicateId, match="node-1"):
        fleet.join([node(), node(cores=8)], {}, now=5)


def test_a_lost_node_loses_its_runs_and_nobody_elses() -> None:
    """Their jobs are queued again in the same commit, their gangs with them."""
    there = leased(job("there"), node_id="node-1")
    away = leased(job("away"), node_id="node-2")
    pair = [
        leased(member, node_id=id)
        for member, id in zip(gang("g"), ["node-2", "node-1"], strict=True)
    ]
    reader = DictReader([there, away, *pair, job("waits")])
    nodes = known(node("node-1"), node("node-2"))
    changes = fleet.lose(["node-1"], nodes, jobs=reader, now=5)
    assert changes.nodes == (node("node-1", version=2, lost_at=5),)
    ended = {row.id: (row.state, row.runs[-1].outcome) for row in changes.jobs}
    assert ended == {
        "there": (JobState.QUEUED, Outcome.LOST),
        "g.0": (JobState.QUEUED, Outcome.RETURNED),
        "g.1": (JobState.QUEUED, Outcome.LOST),
    }
    assert kinds(changes)[0] is EventKind.NODE_LOST


def test_losing_a_lost_node_and_finding_one_that_was_never_lost_change_nothing() -> None:
    """Applying news twice is harmless."""
    lost = known(node(version=2, lost_at=1))
    assert not fleet.lose(["node-1"], lost, jobs=DictReader(), now=5)
    assert not fleet.back(["node-1"], known(node()), now=5)
    back = fleet.back(["node-1", "node-1"], lost, now=5)
    assert back.nodes == (node(version=3),)
    assert kinds(back) == [EventKind.NODE_BACK]


def test_a_cordon_is_kept_apart_from_loss() -> None:
    """Cordoned and back to open, each once."""
    cordoned = fleet.cordon(["node-1"], known(node()), now=5)
    assert cordoned.nodes == (node(version=2, intake=Intake.CORDONED),)
    assert not fleet.cordon(["node-1"], known(*cordoned.nodes), now=6)
    opened = fleet.uncordon(["node-1"], known(*cordoned.nodes), now=6)
    assert opened.nodes == (node(version=3),)


def test_an_unknown_node_is_an_error() -> None:
    """For each of the verbs, before anything is decided."""
    with pytest.raises(UnknownNode, match="no node 'other'"):
        fleet.lose(["node-1", "other"], known(node()), jobs=DictReader(), now=5)
    for verb in (fleet.back, fleet.cordon, fleet.uncordon):
        with pytest.raises(UnknownNode):
            verb(["other"], known(node()), now=5)
