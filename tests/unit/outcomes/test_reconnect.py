"""Runs that were given up and report after all."""

import pytest

from kit.jobs import gang, job, leased, requeued
from kit.readers import DictReader
from pyresched.config import SchedulingConfig
from pyresched.model import (
    NANOS,
    Changes,
    DisconnectRule,
    EventKind,
    GroupRules,
    Job,
    JobState,
    LastReschedule,
    Outcome,
    RescheduleEvent,
    RescheduleTracker,
)
from pyresched.outcomes import Report, ReportKind, apply
from pyresched.outcomes.reconnect import goes_on

SECOND = NANOS
GIVEN_UP = 20
EVENT = RescheduleEvent(time=30, previous_run="first", previous_node="n1", delay=10)
OK = LastReschedule.OK
HISTORY = RescheduleTracker(events=(EVENT,))


def rules(reconcile: str = "best_score", lost_after: int = 60 * SECOND) -> GroupRules:
    """Those of a group that lets runs go on out of reach."""
    rule = DisconnectRule(lost_after=lost_after, reconcile=reconcile)
    return GroupRules(group="job/group", disconnect=rule)


def waiting(state: JobState = JobState.BACKING_OFF, **fields) -> Job:
    """A job whose first run was given up on n1, and that has no replacement yet."""
    fields = {"rules": rules(), **fields}
    first = leased(job("a", **fields), run_id="first", node_id="n1", at=10, started_at=12)
    gone = requeued(first, Outcome.UNKNOWN, at=GIVEN_UP)
    return gone.replace(state=state, failed_at=GIVEN_UP, eligible_at=30, retry_delay=10)


def replaced(**fields) -> Job:
    """The same once its replacement has been leased on n2."""
    row = waiting(JobState.QUEUED, **fields)
    row = row.replace(failed_at=None, eligible_at=None, retry_delay=None)
    row = row.replace(tracker=fields.get("tracker", HISTORY))
    return leased(row, run_id="second", node_id="n2", at=30)


def told(row: Job, kind: str, *, run_id: str = "first", now: int = 50, **fields) -> Changes:
    """What a report about one of its runs changes."""
    news = [Report(run_id=run_id, job_id=row.id, kind=ReportKind(kind), at=now, **fields)]
    return apply(news, DictReader([row]), SchedulingConfig(), now)


def ends(changes: Changes) -> dict[str, tuple[str | None, str]]:
    """What the runs of the one job that changed have come to."""
    (row,) = changes.jobs
    return {run.id: (run.outcome and run.outcome.value, run.reason) for run in row.runs}


def kinds(changes: Changes) -> list[tuple[str, str]]:
    """What is said, of which run."""
    return [(event.kind.value, event.run_id) for event in changes.events]


@pytest.mark.parametrize("state", [JobState.BACKING_OFF, JobState.QUEUED])
@pytest.mark.parametrize("reconcile", ["best_score", "keep_replacement", "longest_running"])
def test_a_run_that_nothing_has_replaced_goes_on(state, reconcile) -> None:
    """Whatever the rule says; nothing is counted, and nothing is waited for any more."""
    changes = told(waiting(state, rules=rules(reconcile)), "running")
    (row,) = changes.jobs
    assert (row.state, row.tracker) == (JobState.RUNNING, None)
    assert (row.failed_at, row.eligible_at, row.retry_delay) == (None, None, None)
    assert row.active_run is not None
    assert (row.active_run.id, row.active_run.started_at) == ("first", 12)
    assert kinds(changes) == [("reconnected", "first")]


def test_a_run_that_goes_on_needs_no_place_any_more() -> None:
    """That its replacement found none is forgotten, and what happened before is not."""
    for events, after in [((), None), ((EVENT,), RescheduleTracker(events=(EVENT,), last=OK))]:
        missed = RescheduleTracker(events=events, last=LastReschedule.NO_PLACEMENT)
        (row,) = told(waiting(JobState.QUEUED, tracker=missed), "running").jobs
        assert row.tracker == after


def test_a_run_that_is_kept_is_the_newest_again_and_its_replacement_is_stopped() -> None:
    """What the replacement used stays in the history."""
    changes = told(replaced(rules=rules("keep_original")), "running")
    (row,) = changes.jobs
    assert [run.id for run in row.runs] == ["second", "first"]
    assert ends(changes) == {"second": ("returned", "reconnected"), "first": (None, "")}
    assert (row.node_id, row.state, row.tracker) == ("n1", JobState.RUNNING, HISTORY)
    assert kinds(changes) == [("returned", "second"), ("reconnected", "first")]


def test_a_run_that_is_not_kept_is_stopped_for_good() -> None:
    """Said again it changes nothing, and the replacement never hears of it."""
    row = replaced(rules=rules("keep_replacement"))
    changes = told(row, "running")
    assert ends(changes) == {"first": ("returned", "reconnected"), "second": (None, "")}
    assert changes.jobs[0].state is JobState.LEASED
    assert kinds(changes) == [("returned", "first")]
    assert not told(changes.jobs[0], "running")


@pytest.mark.parametrize(
    ("reconcile", "second_started", "kept"),
    [
        ("keep_original", 35, "first"),
        ("keep_replacement", 35, "second"),
        ("longest_running", 35, "first"),
        ("longest_running", 12, "first"),
        ("longest_running", 11, "second"),
        ("longest_running", None, "first"),
        ("best_score", 35, "first"),
    ],
)
def test_the_rule_of_the_group_says_which_goes_on(reconcile, second_started, kept) -> None:
    """The longest since it started; a tie is the original's."""
    row = replaced(rules=rules(reconcile))
    second = row.runs[1].replace(started_at=second_started)
    row = row.replace(runs=(row.runs[0], second))
    assert goes_on(row, row.runs[0]).id == kept


@pytest.mark.parametrize(
    ("node_id", "outcome", "kept"),
    [
        ("n1", Outcome.FAILED, "second"),
        ("n1", Outcome.LOST, "second"),
        ("n2", Outcome.FAILED, "first"),
        ("n3", Outcome.FAILED, "first"),
    ],
)
def test_the_best_score_is_that_of_the_node_that_history_avoids_less(
    node_id, outcome, kept
) -> None:
    """By what came before both runs: neither the one nor the other speaks for its own node."""
    old = requeued(leased(job("a"), run_id="old", node_id=node_id, at=1), outcome)
    event = RescheduleEvent(time=9, previous_run="old", previous_node=node_id, delay=1)
    row = replaced(tracker=RescheduleTracker(events=(event, EVENT)))
    row = row.replace(runs=(*old.runs, *row.runs))
    assert goes_on(row, row.runs[1]).id == kept


def test_between_two_that_are_out_of_reach_the_one_leased_first_is_the_original() -> None:
    """Though it was taken back and is the newest in the row."""
    row = told(replaced(rules=rules("keep_original")), "running").jobs[0]
    second = row.runs[0].replace(outcome=Outcome.UNKNOWN, ended_at=40)
    row = row.replace(runs=(second, row.runs[1]))
    assert goes_on(row, second).id == "first"


def test_a_run_is_lost_from_lost_after_on() -> None:
    """Not a nanosecond sooner; a job that waits for its policy is then back at once."""
    until = GIVEN_UP + 60 * SECOND
    assert ends(told(waiting(), "running", now=until - 1))["first"] == (None, "")
    changes = told(waiting(), "running", now=until)
    assert ends(changes)["first"] == ("lost", "node_lost")
    assert (changes.jobs[0].state, changes.jobs[0].retry_delay) == (JobState.QUEUED, None)
    assert [event.kind for event in changes.events] == [EventKind.LOST, EventKind.REQUEUED]
    changes = told(replaced(rules=rules("keep_original")), "running", now=until)
    assert ends(changes) == {"first": ("lost", "node_lost"), "second": (None, "")}


@pytest.mark.parametrize("make", [waiting, replaced])
@pytest.mark.parametrize("kind", ["failed", "setup_failed"])
def test_one_that_has_failed_just_ends(make, kind) -> None:
    """Its replacement, or what it waits for, was decided when it was given up."""
    row = make()
    changes = told(row, kind, reason="exit_1")
    assert ends(changes)["first"] == ("failed", "exit_1")
    after = changes.jobs[0]
    assert (after.state, after.eligible_at) == (row.state, row.eligible_at)
    assert kinds(changes) == [("failed", "first")]
    assert after.active_run == row.active_run


@pytest.mark.parametrize("make", [waiting, replaced])
def test_a_batch_job_whose_run_has_succeeded_is_done(make) -> None:
    """However late, as long as it is not lost; what replaced it is stopped."""
    changes = told(make(), "succeeded", now=10**6 * SECOND)
    (row,) = changes.jobs
    assert (row.state, row.ended_at, row.eligible_at) == (JobState.SUCCEEDED, 10**15, None)
    assert (row.runs[-1].id, row.runs[-1].outcome) == ("first", Outcome.SUCCEEDED)
    assert all(run.outcome is not None for run in row.runs)
    assert kinds(changes)[-1] == ("succeeded", "first")


def test_a_batch_job_that_is_done_gives_up_every_other_run() -> None:
    """Also one that is out of reach as well."""
    row = replaced()
    row = requeued(row, Outcome.UNKNOWN, at=40)
    changes = told(row, "succeeded")
    assert ends(changes) == {"second": ("returned", "reconnected"), "first": ("succeeded", "")}


@pytest.mark.parametrize("kind", ["succeeded", "returned"])
def test_a_service_whose_run_is_over_goes_on_with_the_other(kind) -> None:
    """A service has no end that one of its runs could reach."""
    changes = told(replaced(job_type="service"), kind)
    assert ends(changes) == {"first": ("returned", "reconnected"), "second": (None, "")}
    assert changes.jobs[0].state is JobState.LEASED


def test_a_run_of_another_or_one_that_is_settled_changes_nothing() -> None:
    """Late news, as ever."""
    assert not told(waiting(), "running", run_id="other")
    settled = told(waiting(), "failed").jobs[0]
    for kind in ("running", "succeeded", "failed"):
        assert not told(settled, kind)


@pytest.mark.parametrize("kind", ["running", "succeeded", "failed", "returned"])
def test_a_member_of_a_gang_that_comes_back_is_stopped(kind) -> None:
    """The others were stopped when it was given up."""
    members = [leased(each.replace(rules=rules()), run_id=each.id) for each in gang("g")]
    rows = [
        requeued(members[0], Outcome.UNKNOWN, at=GIVEN_UP),
        requeued(members[1], Outcome.RETURNED, at=GIVEN_UP),
    ]
    news = [Report(run_id="g.0", job_id="g.0", kind=ReportKind(kind), at=50)]
    changes = apply(news, DictReader(rows), SchedulingConfig(), 50)
    assert ends(changes) == {"g.0": ("returned", "gang")}
    assert changes.jobs[0].state is JobState.QUEUED


def test_a_run_that_is_taken_back_has_a_lease_that_begins_now() -> None:
    """Nobody could renew it while it was out of reach."""
    config = SchedulingConfig(lease_duration=7)
    news = [Report(run_id="first", job_id="a", kind=ReportKind.RUNNING, at=50)]
    (row,) = apply(news, DictReader([waiting()]), config, 50).jobs
    assert row.active_run is not None
    assert row.active_run.lease_expires_at == 57
