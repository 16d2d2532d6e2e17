"""The checker: silent on a sound table, and one sentence for each breach."""

import pytest

from kit.jobs import requirements
from kit.nodes import node, node_config
from pyresched._core import EVICTED
from pyresched.model import Intake, ResourceVector
from pyresched.nodedb import NodeDb
from pyresched.nodedb.check import breaches


def fork_with_jobs():
    """Two nodes, with a preemptible, an evicted and a firm job."""
    rows = [node("a", 8, 8), node("b", 8, 8)]
    fork = NodeDb(node_config(0, 5, preemptible=[0]), rows).fork("default")
    with fork.attempt() as attempt:
        attempt.bind_as("soft", requirements(3, 1), "a", 0, True)
        attempt.bind_as("gone", requirements(2, 1), "a", 0, True)
        attempt.bind_as("firm", requirements(1, 1), "b", 0, False)
        attempt.evict("gone")
        attempt.keep()
    return fork


class Damaged:
    """A table that answers one question wrongly."""

    def __init__(self, table, question, wrong):
        self._table = table
        self._question = question
        self._wrong = wrong

    def __getattr__(self, name):
        right = getattr(self._table, name)
        if name != self._question:
            return right
        return self._wrong(right) if not callable(right) else lambda *a: self._wrong(right(*a), *a)


def less_cpu(amounts, *_):
    """One step of the first resource less."""
    return amounts - ResourceVector((1, 0))


def test_a_sound_table_has_no_breach():
    """The control of the controls."""
    fork = fork_with_jobs()
    assert fork.check() == []
    assert list(breaches(Damaged(fork.table, "nothing", None), fork.nodes)) == []


@pytest.mark.parametrize(
    ("question", "wrong", "number", "count"),
    [
        (
            "amounts",
            lambda had, i, at: less_cpu(had) if (i, at) == (0, EVICTED) else had,
            "INV-B1",
            1,
        ),
        ("amounts", lambda had, i, at: less_cpu(had) if (i, at) == (1, 0) else had, "INV-B2", 1),
        ("amounts", lambda had, _, at: less_cpu(had) if at == 5 else had, "INV-B2", 2),
        ("total", less_cpu, "INV-B1", 2),
        ("bound", lambda jobs, _: jobs[1:], "INV-B4", 2),
        ("bound_jobs", lambda jobs: jobs[1:], "INV-B4", 1),
        ("binding", lambda held, job: None if job == "firm" else held, "INV-B4", 2),
        ("binding", lambda held, _: ("b", *held[1:]), "INV-B4", 2),
        ("binding", lambda held, _: (*held[:4], not held[4]), "INV-B2", 3),
        ("node_ids", lambda ids: ids[::-1], "INV-B4", 1),
    ],
    ids=[
        "evicted level",
        "one level",
        "one level everywhere",
        "totals",
        "lists",
        "jobs",
        "a job without a node",
        "jobs on another node",
        "jobs evicted or not",
        "nodes in another order",
    ],
)
def test_each_damage_is_reported_under_its_number(question, wrong, number, count):
    """Negative control: amounts, bindings and lists that are off are all seen."""
    fork = fork_with_jobs()
    found = list(breaches(Damaged(fork.table, question, wrong), fork.nodes))
    assert sum(each.startswith(number) for each in found) == count, found


def test_levels_that_decrease_are_reported():
    """A job of a higher class sees less than one of a lower class: never."""
    fork = fork_with_jobs()
    swapped = Damaged(
        fork.table,
        "amounts",
        lambda _, i, at: fork.table.amounts(i, {EVICTED: 5, 5: EVICTED}.get(at, at)),
    )
    assert any(each.startswith("INV-B3") for each in breaches(swapped, fork.nodes))


def test_an_open_table_over_a_closed_node_is_reported():
    """What the row says and what the table does must agree."""
    fork = fork_with_jobs()
    rows = [fork.nodes[0], node("b", 8, 8, intake=Intake.CORDONED)]
    found = list(breaches(fork.table, rows))
    assert [each.split(":")[0] for each in found] == ["INV-B7"]


def test_the_db_reports_what_its_parts_disagree_on():
    """A node filed under another pool, and a job that waits for a node that is there."""
    db = NodeDb(node_config(), [node("a")])
    assert db.check() == []
    db._pool_of["a"] = "other"
    assert [each.split(":")[0] for each in db.check()] == ["INV-B4"]
    db._pool_of["a"] = "default"
    db._homeless["j"] = ("a", requirements(), 0, False, "default")
    assert [each.split(":")[0] for each in db.check()] == ["INV-B6"]
