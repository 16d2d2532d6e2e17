"""Where a job is tried again: unused nodes, then used ones, then those that it failed on."""

from kit.driving import node, report, scheduler
from kit.jobs import gang, job
from pyresched.model import NANOS, ReschedulePolicy
from pyresched.scheduler import Scheduler

SECOND = NANOS
NODES = ["n0", "n1", "n2"]
POLICY = ReschedulePolicy(delay=SECOND, unlimited=True)


def cluster(*ids: str) -> Scheduler:
    """Nodes of four cores each."""
    return scheduler(*(node(id) for id in ids))


def only(made: Scheduler, ids: list[str], now: int) -> None:
    """Let these nodes take new runs, and no others."""
    made.cordon_nodes([each.id for each in made.nodes], now)
    made.uncordon_nodes(ids, now)


def place(made: Scheduler, now: int, id: str = "a") -> str:
    """The node of *id* after a step."""
    made.step(now)
    row = made.snapshot().get(id)
    assert row is not None
    assert row.node_id is not None, "it has a place"
    return row.node_id


def tried(*, open_nodes: list[str]) -> str:
    """Where a job goes that failed on n0 and was returned from n1, among these nodes."""
    made = cluster(*NODES)
    made.submit([job("a", policy=POLICY)], 0)
    only(made, ["n0"], 0)
    assert place(made, 0) == "n0"
    report(made, "a", kind="failed", now=1)
    only(made, ["n1"], 1)
    assert place(made, 2 * SECOND) == "n1"
    report(made, "a", kind="returned", now=3 * SECOND)
    only(made, open_nodes, 3 * SECOND)
    return place(made, 3 * SECOND)


def test_used_nodes_come_after_others_and_those_it_failed_on_last() -> None:
    """And none is forbidden."""
    assert tried(open_nodes=NODES) == "n2"
    assert tried(open_nodes=["n0", "n1"]) == "n1"
    assert tried(open_nodes=["n0"]) == "n0"


def test_a_gang_avoids_where_any_of_its_members_failed() -> None:
    """All of it, though one member alone failed."""
    made = cluster(*NODES)
    members = gang("g", 1000, 64, policy=POLICY)
    first, second = (each.id for each in members)
    made.submit(members, 0)
    only(made, ["n0"], 0)
    assert place(made, 0, first) == "n0"
    report(made, first, kind="failed", now=1)
    only(made, ["n0", "n2"], 1)
    assert place(made, 2 * SECOND, first) == "n2"
    assert place(made, 2 * SECOND, second) == "n2"


def test_a_free_node_that_it_failed_on_comes_before_preempting_anyone() -> None:
    """Where that node is closed the same job does preempt."""
    for closed, at in [(False, "n0"), (True, "n1")]:
        made = cluster("n0", "n1")
        made.submit([job("a", 4000, 64, policy=POLICY)], 0)
        only(made, ["n0"], 0)
        assert place(made, 0) == "n0"
        only(made, ["n1"], 0)
        made.submit([job("low", 4000, 64, priority_class="best-effort")], 0)
        assert place(made, 0, "low") == "n1"
        report(made, "a", kind="failed", now=1)
        only(made, ["n1"] if closed else ["n0", "n1"], 1)
        result = made.step(2 * SECOND).results["default"]
        assert [each.job_id for each in result.preempted] == (["low"] if closed else [])
        row = made.snapshot().get("a")
        assert row is not None
        assert row.node_id == at
