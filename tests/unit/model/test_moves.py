"""Ends of runs without blame."""

from kit.jobs import gang, job, leased
from kit.readers import DictReader
from pyresched.model import Draft, EventKind, JobState, Outcome, RescheduleTracker
from pyresched.model.moves import GANG, end_run, put_back


def test_a_job_that_is_put_back_keeps_its_place_and_its_history() -> None:
    """Submit time and tracker are untouched; its run tells what happened."""
    tracker = RescheduleTracker()
    row = leased(job("a", submitted_at=5, tracker=tracker), run_id="r", at=7)
    draft = Draft(DictReader([row]))
    put_back(draft, {"a": (Outcome.LOST, "node_lost")}, at=9)
    (after,) = draft.changes().jobs
    assert (after.state, after.submitted_at, after.tracker) == (JobState.QUEUED, 5, tracker)
    assert after.active_run is None
    run = after.runs[-1]
    assert (run.outcome, run.ended_at, run.reason) == (Outcome.LOST, 9, "node_lost")
    kinds = [(event.kind, event.run_id) for event in draft.changes().events]
    assert kinds == [(EventKind.LOST, "r"), (EventKind.REQUEUED, "")]


def test_a_gang_is_put_back_as_one() -> None:
    """The members that nothing happened to are returned; each ends once."""
    members = [leased(member) for member in gang("g", size=3)]
    draft = Draft(DictReader(members))
    put_back(
        draft,
        {"g.1": (Outcome.PREEMPTED, "fairness"), "g.2": (Outcome.PREEMPTED, "fairness")},
        at=9,
    )
    changes = draft.changes()
    assert [(job.id, job.runs[-1].outcome, job.runs[-1].reason) for job in changes.jobs] == [
        ("g.0", Outcome.RETURNED, GANG),
        ("g.1", Outcome.PREEMPTED, "fairness"),
        ("g.2", Outcome.PREEMPTED, "fairness"),
    ]
    assert {job.version for job in changes.jobs} == {3}
    assert len(changes.events) == 6


def test_a_job_without_an_active_run_stays_as_it_is() -> None:
    """Nor does an unknown one matter: both are late news."""
    draft = Draft(DictReader([job("a")]))
    put_back(draft, {"a": (Outcome.LOST, ""), "gone": (Outcome.LOST, "")}, at=9)
    assert not draft.changes()


def test_a_run_never_ends_before_it_was_leased() -> None:
    """Clocks of executors may be behind."""
    row = leased(job("a"), at=50)
    (run,) = end_run(Draft(DictReader([row])), row, outcome=Outcome.FAILED, at=40)
    assert run.ended_at == 50
