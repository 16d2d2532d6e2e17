"""The facts on nodes: which runs stay, move or are lost, and which nodes are tried last."""

from typing import Any

from kit.jobs import job, run
from kit.policies import history
from kit.reschedule_vectors import assert_agree
from kit.reschedule_worlds import World
from pyresched.model import NANOS, Outcome, RescheduleEvent, RescheduleTracker, avoided_nodes

FOREVER = {
    "attempts": 0,
    "interval_ns": 0,
    "delay_ns": 5 * NANOS,
    "delay_function": "constant",
    "max_delay_ns": 0,
    "unlimited": True,
}


def _klass(row: dict[str, Any]) -> bool:
    """What becomes of the run of a job that is always rescheduled."""
    alloc = {**row["alloc"], "node_state": row["node_state"]}
    world = World([alloc], row["now_ns"], policy=FOREVER).happens()
    assert world.made.check() == []
    return world.klass("job-0") == row["expected"]


def _avoided(row: dict[str, Any]) -> bool:
    """The nodes that a job of this history would rather not use."""
    prev = row["prev"]
    if prev is None:
        return not avoided_nodes([job()]) and row["expected_penalty_nodes"] == []
    outcome = Outcome.FAILED if prev["client_status"] == "failed" else Outcome.PREEMPTED
    last = run(node_id=prev["node"], ended_at=1, outcome=outcome)
    events = tuple(
        RescheduleEvent(time=n, previous_run=f"before-{n}", previous_node=name, delay=1)
        for n, name in enumerate(prev["tracker_prev_nodes"])
    )
    tracker = RescheduleTracker(events=events) if events else history()
    found = {name for name, _ in avoided_nodes([job(runs=(last,), tracker=tracker)])}
    return found == set(row["expected_penalty_nodes"])


def test_facts_on_nodes_agree_or_carry_a_rule() -> None:
    """Each row of two groups, with the exact lists of those that differ."""
    assert_agree("fleet", {"penalty_nodes": _avoided, "classify": _klass})
