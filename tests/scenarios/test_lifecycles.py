"""Whole lives of jobs, told by the log alone."""

from kit.driving import node, report, run_names, said, scheduler
from kit.jobs import gang, job
from pyresched.config import SchedulingConfig
from pyresched.model import NANOS, JobState, Outcome, ReschedulePolicy
from pyresched.scheduler import Scheduler

DELAY = 5 * NANOS
POLICY = ReschedulePolicy(attempts=1, interval=3600 * NANOS, delay=DELAY)


def test_a_job_runs_and_succeeds() -> None:
    """The plain case."""
    made = scheduler(node())
    made.submit([job("a")], 0)
    made.step(1)
    report(made, "a", kind="running", now=2)
    report(made, "a", kind="succeeded", now=9)
    assert said(made, "a") == ["submitted", "leased", "running", "succeeded"]
    row = made.snapshot().get("a")
    run = row.runs[0]
    assert (run.leased_at, run.started_at, run.ended_at, row.ended_at) == (1, 2, 9, 9)


def test_a_job_fails_is_tried_again_and_gives_up() -> None:
    """One attempt: the second failure is the last."""
    made = scheduler(node("n1", 1), node("n2", 1))
    made.submit([job("a", policy=POLICY)], 0)
    made.step(0)
    first = made.snapshot().get("a").node_id
    report(made, "a", kind="failed", now=1, reason="exit_1")
    made.step(1 + DELAY)
    row = made.snapshot().get("a")
    assert row.node_id != first, "another node is free"
    assert [event.previous_node for event in row.tracker.events] == [first]
    report(made, "a", kind="failed", now=2 + DELAY)
    assert said(made, "a") == [
        *("submitted", "leased", "failed", "backing_off"),
        *("requeued", "leased", "rescheduled", "failed", "exhausted"),
    ]
    row = made.snapshot().get("a")
    assert (row.state, row.reason) == (JobState.FAILED, "exhausted")


def test_a_lost_run_is_replaced_at_once_and_without_budget() -> None:
    """Though its policy allows nothing; the node that is back is used again."""
    made = scheduler(node("n1"), node("n2"))
    made.submit([job("a", policy=ReschedulePolicy())], 0)
    made.step(0)
    for now in (1, 2, 3):
        lost = made.snapshot().get("a").node_id
        made.lose_nodes([lost], now)
        made.step(now)
        assert made.snapshot().get("a").node_id not in {lost, None}
        made.nodes_back([lost], now)
    row = made.snapshot().get("a")
    assert row.tracker is None
    assert [run.outcome for run in row.runs[:-1]] == [Outcome.LOST] * 3
    assert said(made, "a") == ["submitted", "leased", *(["lost", "requeued", "leased"] * 3)]


def test_history_survives_loss_and_a_restart_of_the_program() -> None:
    """A failure after them is counted with the one before."""
    made = scheduler(node("n1"), node("n2"))
    made.submit([job("a", policy=POLICY)], 0)
    made.step(0)
    report(made, "a", kind="failed", now=1)
    made.step(1 + DELAY)
    history = made.snapshot().get("a").tracker
    made.lose_nodes([made.snapshot().get("a").node_id], 2 + DELAY)
    again = Scheduler(SchedulingConfig(), made.journal, ids=run_names("later"))
    assert list(again.snapshot()) == list(made.snapshot())
    again.step(2 + DELAY)
    assert again.snapshot().get("a").tracker == history
    report(again, "a", kind="failed", now=3 + DELAY)
    assert again.snapshot().get("a").state is JobState.FAILED


def test_a_gang_fails_waits_and_comes_back_as_one() -> None:
    """One budget: the member that had no part in it carries the same history."""
    made = scheduler(node("n1", 2), node("n2", 2))
    made.submit(gang("g", 2000, 512, policy=POLICY), 0)
    made.step(0)
    report(made, "g.0", "g.1", kind="running", now=1)
    report(made, "g.1", kind="failed", now=2)
    assert said(made, "g.0")[-2:] == ["returned", "backing_off"]
    assert not made.step(1 + DELAY).results.get("default")
    made.step(2 + DELAY)
    first, second = (made.snapshot().get(id) for id in ("g.0", "g.1"))
    assert first.tracker == second.tracker
    assert len(first.tracker.events) == 1
    assert made.check() == []
    report(made, "g.0", kind="failed", now=3 + DELAY)
    assert {row.reason for row in made.snapshot()} == {"exhausted"}


def test_a_gang_that_loses_a_node_waits_until_it_fits_whole() -> None:
    """And never runs in part."""
    made = scheduler(node("n1", 2), node("n2", 2))
    made.submit(gang("g", 2000, 512), 0)
    made.step(0)
    made.lose_nodes(["n2"], 1)
    made.step(1)
    assert {row.state for row in made.snapshot()} == {JobState.QUEUED}
    made.nodes_back(["n2"], 2)
    made.step(2)
    assert {row.state for row in made.snapshot()} == {JobState.LEASED}
    assert sorted(run.outcome.value for row in made.snapshot() for run in row.runs[:1]) == [
        "lost",
        "returned",
    ]


def test_a_cancelled_job_leaves_its_node_to_the_next() -> None:
    """In the next step."""
    made = scheduler(node("n1", 1))
    made.submit([job("a"), job("b", submitted_at=1)], 1)
    made.step(1)
    made.cancel(["a"], 2, reason="user")
    made.step(2)
    assert made.snapshot().get("b").state is JobState.LEASED
    assert said(made, "a") == ["submitted", "leased", "cancelled"]


def test_a_service_runs_again_after_it_completed() -> None:
    """Until it is cancelled."""
    made = scheduler(node())
    made.submit([job("a", job_type="service")], 0)
    for now in (1, 2, 3):
        made.step(now)
        report(made, "a", kind="succeeded", now=now)
    assert said(made, "a") == ["submitted", *(["leased", "succeeded", "requeued"] * 3)]
