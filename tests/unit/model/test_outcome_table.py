"""The outcome table: complete, without idle rows, and what the reference says where it counts."""

from itertools import product

import pytest

from pyresched.model import JobType
from pyresched.model.outcome_table import ROWS, Action, NodeState, Row, RunState, action


def fits(row: Row, job_type: JobType, run: RunState, node: NodeState) -> bool:
    """Whether *row* speaks of that."""
    return (
        (not row.types or job_type in row.types)
        and run in row.runs
        and (not row.nodes or node in row.nodes)
    )


def test_every_row_decides_something() -> None:
    """No row is hidden by those before it."""
    deciding = set()
    for each in product(JobType, RunState, NodeState):
        number = next(n for n, row in enumerate(ROWS) if fits(row, *each))
        deciding.add(number)
        assert action(*each) is ROWS[number].action
    assert deciding == set(range(len(ROWS)))


@pytest.mark.parametrize("node", list(NodeState), ids=lambda node: node.value)
def test_what_has_ended_is_judged_without_its_node(node: NodeState) -> None:
    """A failed run follows the policy, also on a draining or dead node; vectors C23, C24."""
    for run in (RunState.FAILED, RunState.SETUP_FAILED):
        assert action("service", run, node) is Action.BACK_OFF
        assert action("batch", run, node) is Action.BACK_OFF
        assert action("system", run, node) is Action.BACK_OFF
        assert action("sysbatch", run, node) is Action.FAIL
    assert action("batch", RunState.SUCCEEDED, node) is Action.DONE
    assert action("sysbatch", RunState.SUCCEEDED, node) is Action.DONE
    assert action("service", RunState.SUCCEEDED, node) is Action.RENEW
    assert action("batch", RunState.EXPIRED, node) is Action.LOSE


@pytest.mark.parametrize(
    ("job_type", "run", "node", "then"),
    [
        ("service", "running", "ready", "keep"),
        ("service", "running", "draining", "migrate"),
        ("batch", "running", "draining", "keep"),
        ("batch", "running", "drain_over", "migrate"),
        ("system", "running", "draining", "keep"),
        ("system", "running", "drain_over", "call_off"),
        ("batch", "running", "down", "lose"),
        ("system", "pending", "gone", "lose"),
        ("batch", "running", "disconnected", "disconnect"),
        ("batch", "unknown", "disconnected", "keep"),
        ("system", "running", "disconnected", "await"),
        ("service", "pending", "disconnected", "lose"),
        ("service", "running", "unreachable", "lose"),
        ("service", "running", "down_kept", "await"),
        ("service", "unknown", "down_kept", "keep"),
        ("service", "reconnected", "ready", "reconnect"),
        ("batch", "reconnected", "draining", "reconnect"),
        ("service", "reconnected", "draining", "migrate"),
        ("service", "stopped", "ready", "requeue"),
        ("batch", "stopped", "ready", "stop_by_policy"),
        ("sysbatch", "stopped", "ready", "call_off"),
        ("batch", "preempted", "ready", "requeue"),
    ],
)
def test_the_table_says(job_type: str, run: str, node: str, then: str) -> None:
    """Row by row, where types or nodes differ."""
    assert action(job_type, RunState(run), NodeState(node)) is Action(then)


def test_an_unknown_type_is_refused() -> None:
    """By the name of the type."""
    with pytest.raises(ValueError, match="cron"):
        action("cron", RunState.FAILED)
