"""What Nomad makes of a run by its node, row by row, beside the outcome table.

Rows that come out otherwise are listed under their rule of docs/reschedule.md.
"""

from typing import Any

import pytest

from kit.jobs import job
from kit.reschedule_vectors import facts
from pyresched.model import DisconnectRule, GroupRules, Job
from pyresched.model.outcome_table import Action, NodeState, RunState, action
from pyresched.model.reach import is_late, tolerated

ROWS = {row["id"]: row for row in facts("classify")}
DIFFERS = {
    # Without `lost_after` a run that nothing may replace is waited for, for ever.
    "lost-after-0": {"C27", "C33"},
    # Replaced at once and unblamed either way.
    "loss": {"C06"},
    # What the server has stopped is over here; there are no canaries.
    "n/a": {"C13", "C14", "C20", "C29", "C30", "C32"},
}
CLASSES = {
    Action.KEEP: "untainted",
    Action.RENEW: "untainted",
    Action.LOSE: "lost",
    Action.DISCONNECT: "disconnecting",
    Action.AWAIT: "disconnecting",
    Action.MIGRATE: "migrate",
    Action.RECONNECT: "reconnecting",
}


def group(row: dict[str, Any]) -> Job:
    """A job with the rules of the run."""
    told = row["alloc"]["disconnect"]
    rule = DisconnectRule(lost_after=told["lost_after_ns"], replace=told["replace"])
    return job(job_type="service", rules=GroupRules(disconnect=rule))


def run_state(row: dict[str, Any]) -> RunState:
    """What is known of the run: as its node said last, or since when it was out of reach."""
    status, states = row["alloc"]["client_status"], row["alloc"]["states"]
    was_unknown = bool(states) and states[-1][0] == "unknown"
    if status == "unknown":
        late = is_late(group(row), states[-1][1], row["now_ns"])
        return RunState.EXPIRED if late else RunState.UNKNOWN
    return {
        "running": RunState.RECONNECTED if was_unknown else RunState.RUNNING,
        "failed": RunState.BACK_FAILED if was_unknown else RunState.FAILED,
        "pending": RunState.PENDING,
        "complete": RunState.SUCCEEDED,
        "lost": RunState.LOST,
    }[status]


def node_state(row: dict[str, Any]) -> NodeState:
    """Where it is; a drain that has not come to a run yet asks nothing of it."""
    own, migrates = group(row), row["alloc"].get("transition", {}).get("migrate", False)
    assert own.rules is not None
    assert own.rules.disconnect is not None
    return {
        "normal": NodeState.READY,
        "draining": NodeState.DRAINING if migrates else NodeState.READY,
        "down": NodeState.DOWN if own.rules.disconnect.replace else NodeState.DOWN_KEPT,
        "gone": NodeState.GONE,
        "disconnected": NodeState.DISCONNECTED if tolerated(own) else NodeState.UNREACHABLE,
    }[row["node_state"]]


def class_of(row: dict[str, Any]) -> str:
    """What we make of it, in Nomad's words."""
    run = run_state(row)
    then = action("service", run, node_state(row))
    if run is RunState.EXPIRED and then is Action.LOSE:
        return "expiring"
    if then is Action.BACK_OFF:
        return "reconnecting" if run is RunState.BACK_FAILED else "untainted"
    return CLASSES[then]


@pytest.mark.parametrize("id", ROWS)
def test_a_run_is_judged_by_its_node_as_by_nomad(id: str) -> None:
    """But for the rows that a rule names: they differ, or have nothing that is like them."""
    agrees = class_of(ROWS[id]) == ROWS[id]["expected"]
    named = [rule for rule, ids in DIFFERS.items() if id in ids]
    assert agrees or len(named) == 1, ROWS[id]
    assert not agrees or not named or named == ["n/a"], "it agrees, so no rule need name it"
