"""Deployments: until when progress must come, and what follows when it does not."""

from kit.driving import node, report, run_names, scheduler
from kit.jobs import job, leased
from kit.readers import DictReader
from kit.reschedule_vectors import facts
from pyresched.config import SchedulingConfig
from pyresched.model import NANOS, GroupRules, JobState, Outcome, ReschedulePolicy, UpdateRule
from pyresched.outcomes import Report, ReportKind, apply, due
from pyresched.outcomes.deployments import (
    Deployments,
    DeploymentState,
    required_progress,
    state_of,
    watch,
)
from pyresched.scheduler import Scheduler

SECOND = NANOS
RULE = UpdateRule(progress_deadline=600 * SECOND, min_healthy_time=10 * SECOND)
FOREVER = ReschedulePolicy(delay=5 * SECOND, unlimited=True)
CONFIG = SchedulingConfig()


def member(id="a", *, rule=RULE, count=2, at=0, started=None, version=1, **fields):
    """A job of a deployment, leased at *at* and started then or later."""
    rules = GroupRules(group="web/api", count=count, version=version, update=rule)
    fields.setdefault("policy", FOREVER)
    row = leased(job(id, job_type="service", rules=rules, **fields), at=at)
    run = row.runs[-1].replace(started_at=at if started is None else started)
    return row.replace(state=JobState.RUNNING, runs=(run,))


def failed(row, at):
    """*row* after a report that its run failed at *at*, alone in the world."""
    news = Report(run_id=row.runs[-1].id, job_id=row.id, kind=ReportKind.FAILED, at=at)
    return apply([news], DictReader([row]), CONFIG, at).jobs[0]


def test_runs_are_watched_as_by_nomad() -> None:
    """Every row of Nomad's watcher."""
    for row in facts("deployment_watcher"):
        got = watch(
            healthy=row["healthy"],
            progress_deadline=row["progress_deadline_ns"],
            active=row["active"],
            eligible=row["eligible"],
            permitted=row["already_permitted"],
        )
        assert got._asdict() == row["expected"], row["id"]


def test_progress_is_required_as_by_nomad() -> None:
    """The first placement starts the clock, healthy runs move it on, nothing else does."""
    for row in facts("progress_deadline"):
        if row["id"] in {"PD6", "PD7"}:  # nobody promotes or pauses a deployment here: rule `n/a`
            continue
        got = required_progress(
            row["require_by_before_ns"],
            row["at_ns"],
            row["progress_deadline_ns"],
            healthy=row["event"] == "alloc_healthy",
        )
        assert got == row["expected_require_by_ns"], row["id"]


def test_a_deployment_succeeds_once_enough_jobs_were_healthy() -> None:
    """Each for the least healthy time; it stays so whatever fails later."""
    both = [member("a"), member("b", at=300 * SECOND)]
    assert state_of(both, RULE, 2, 309 * SECOND) is DeploymentState.RUNNING
    assert state_of(both, RULE, 2, 310 * SECOND) is DeploymentState.SUCCESSFUL
    assert state_of(both, RULE, 2, 10**6 * SECOND) is DeploymentState.SUCCESSFUL


def test_a_deployment_fails_at_its_deadline() -> None:
    """Which a newly healthy run moves on, counted from when it became healthy."""
    one = [member("a", at=100 * SECOND)]
    assert state_of(one, RULE, 2, (110 + 600) * SECOND - 1) is DeploymentState.RUNNING
    assert state_of(one, RULE, 2, (110 + 600) * SECOND) is DeploymentState.FAILED
    late = [*one, member("b", at=701 * SECOND)]
    assert state_of(late, RULE, 2, 720 * SECOND) is DeploymentState.FAILED
    assert state_of([job("c")], RULE, 1, 1) is DeploymentState.RUNNING, "nothing was placed yet"


def test_a_failure_past_the_deadline_ends_its_job() -> None:
    """Before it the policy decides, and so it does after a success."""
    row = member("a", at=0, count=2)
    assert failed(row, 5 * SECOND).state is JobState.BACKING_OFF
    after = failed(row, 700 * SECOND)
    assert (after.state, after.reason) == (JobState.FAILED, "past_progress_deadline")
    assert failed(member("a", count=1), 700 * SECOND).state is JobState.BACKING_OFF


def test_without_a_deadline_the_first_failure_ends_its_job() -> None:
    """And no time does."""
    row = member("a", rule=UpdateRule(progress_deadline=0, min_healthy_time=10 * SECOND))
    assert state_of([row], row.rules.update, 2, 10**9 * SECOND) is DeploymentState.RUNNING
    assert failed(row, 5 * SECOND).reason == "past_progress_deadline"


def test_what_waits_past_the_deadline_ends_when_due() -> None:
    """And so does one whose fellow has used up its policy."""
    waiting = failed(member("a", started=590 * SECOND), 599 * SECOND)
    assert waiting.eligible_at == 604 * SECOND
    (after,) = due(DictReader([waiting]), waiting.eligible_at, CONFIG).jobs
    assert (after.state, after.reason) == (JobState.FAILED, "past_progress_deadline")
    assert after.ended_at == 599 * SECOND
    spent = failed(member("b", policy=ReschedulePolicy()), 2 * SECOND)
    assert spent.reason == "disabled"
    early = failed(member("a"), SECOND)
    (after,) = due(DictReader([early, spent]), 6 * SECOND, CONFIG).jobs
    assert after.reason == "past_progress_deadline"
    (after,) = due(DictReader([early]), 6 * SECOND, CONFIG).jobs
    assert after.state is JobState.QUEUED


def without_place(*, forced=False):
    """A scheduler on which two jobs of a deployment failed in time and are due, with no place.

    With *forced* the second was tried again by hand.
    """
    made = scheduler(node())
    rules = GroupRules(group="web/api", count=2, version=1, update=RULE)
    for id in ("a", "b"):
        made.submit([job(id, job_type="service", rules=rules, policy=FOREVER)], 0)
    made.step(0)
    report(made, "a", "b", kind="failed", now=590 * SECOND)
    made.cordon_nodes(["node-1"], 590 * SECOND)
    if forced:
        made.force(["b"], 591 * SECOND)
    made.step(595 * SECOND)
    assert [row.state for row in made.snapshot()] == [JobState.QUEUED] * 2
    return made


def test_who_found_no_place_until_the_deadline_is_not_tried_again() -> None:
    """Also by a program that has just started; before the deadline it is."""
    made, other = without_place(), without_place()
    other.uncordon_nodes(["node-1"], 599 * SECOND)
    other.step(599 * SECOND)
    assert all(row.state is JobState.LEASED for row in other.snapshot())
    restarted = Scheduler(CONFIG, made.journal, ids=run_names("later"))
    restarted.uncordon_nodes(["node-1"], 601 * SECOND)
    assert not any(restarted.step(601 * SECOND).results.values()), "nothing is placed"
    for row in restarted.snapshot():
        assert (row.state, row.reason) == (JobState.FAILED, "past_progress_deadline")
        assert row.ended_at == 590 * SECOND
    assert restarted.check() == []


def test_who_is_forced_is_tried_again_past_the_deadline() -> None:
    """By hand means whatever the deployment says, and for that job alone."""
    made = without_place(forced=True)
    made.uncordon_nodes(["node-1"], 601 * SECOND)
    made.step(601 * SECOND)
    assert {row.id: row.state for row in made.snapshot()} == {
        "a": JobState.FAILED,
        "b": JobState.LEASED,
    }


def test_other_versions_and_plain_jobs_are_not_of_it() -> None:
    """They are never looked at for a plain job."""

    class Unread(DictReader):
        def __iter__(self):
            raise AssertionError("nobody needs all jobs")

    plain = leased(job("p", policy=FOREVER))
    assert not Deployments(Unread([plain])).failed(plain, 10**12)
    old, new = member("a", version=1), member("b", version=2, at=900 * SECOND)
    deployments = Deployments(DictReader([old, new]))
    assert deployments.failed(old, 1000 * SECOND)
    assert not deployments.failed(new, 1000 * SECOND)


def test_a_run_that_ended_before_it_was_healthy_was_not() -> None:
    """Whatever time has passed since."""
    row = member("a")
    run = row.runs[-1].replace(ended_at=9 * SECOND, outcome=Outcome.LOST)
    ended = row.replace(state=JobState.QUEUED, runs=(run,))
    assert state_of([ended], RULE, 1, 599 * SECOND) is DeploymentState.RUNNING
    longer = row.replace(state=JobState.QUEUED, runs=(run.replace(ended_at=10 * SECOND),))
    assert state_of([longer], RULE, 1, 599 * SECOND) is DeploymentState.SUCCESSFUL


def test_the_clock_of_a_deployment_starts_with_the_first_lease_in_whatever_order_runs_are() -> None:
    """A run that was out of reach and is taken back is the newest again."""
    row = member(at=0, started=10**6 * SECOND)
    later = leased(row, run_id="later", at=100 * SECOND).runs[-1]
    moved = row.replace(
        runs=(later.replace(ended_at=later.leased_at, outcome=Outcome.RETURNED), row.runs[0])
    )
    assert state_of([moved], RULE, 1, 599 * SECOND) is DeploymentState.RUNNING
    assert state_of([moved], RULE, 1, 600 * SECOND) is DeploymentState.FAILED
