"""What reports lead to."""

import pytest

from kit.jobs import backing_off, gang, job, leased
from kit.readers import DictReader
from pyresched.config import SchedulingConfig
from pyresched.model import (
    NANOS,
    Changes,
    Instant,
    Job,
    JobState,
    Outcome,
    RescheduleEvent,
    ReschedulePolicy,
    RescheduleTracker,
    RunId,
)
from pyresched.model.moves import GANG, GANG_DONE
from pyresched.outcomes import Report, ReportKind, apply, due

NOW = 1_000 * NANOS
POLICY = ReschedulePolicy(attempts=2, interval=3600 * NANOS, delay=5 * NANOS)
CONFIG = SchedulingConfig()


def report(job: Job, kind: str, *, at: Instant = NOW, reason: str = "") -> Report:
    """What the executor says of the newest run of *job*."""
    run = job.runs[-1].id
    return Report(run_id=run, job_id=job.id, kind=ReportKind(kind), at=at, reason=reason)


def applied(
    reader: DictReader, *reports: Report, config: SchedulingConfig = CONFIG, now: Instant = NOW
) -> tuple[Changes, DictReader]:
    """The changes and the jobs after them."""
    changes = apply(reports, reader, config, now)
    return changes, reader.with_changes(changes)


def said(changes: Changes) -> list[tuple[str, str]]:
    """Each event as (kind, job)."""
    return [(event.kind.value, event.job_id) for event in changes.events]


def ends(changes: Changes) -> dict[str, tuple[JobState, Outcome | None, str]]:
    """State, outcome and reason of the newest run by job."""
    return {row.id: (row.state, row.runs[-1].outcome, row.runs[-1].reason) for row in changes.jobs}


def test_a_run_starts_and_succeeds() -> None:
    """Two reports in one batch are one new row, with both events and times."""
    row = leased(job("a"), at=5)
    changes, _ = applied(
        DictReader([row]), report(row, "running", at=7), report(row, "succeeded", at=9)
    )
    (after,) = changes.jobs
    assert (after.state, after.ended_at, after.version) == (JobState.SUCCEEDED, 9, row.version + 1)
    run = after.runs[-1]
    assert (run.started_at, run.ended_at, run.outcome) == (7, 9, Outcome.SUCCEEDED)
    assert said(changes) == [("running", "a"), ("succeeded", "a")]
    assert [event.run_id for event in changes.events] == [run.id, run.id]


@pytest.mark.parametrize("job_type", ["service", "system"])
def test_a_service_that_completes_is_queued_again(job_type: str) -> None:
    """At its place; a batch job that completes is done."""
    row = leased(job("a", job_type=job_type, submitted_at=3))
    changes, after = applied(DictReader([row]), report(row, "succeeded"))
    assert (after["a"].state, after["a"].submitted_at) == (JobState.QUEUED, 3)
    assert said(changes) == [("succeeded", "a"), ("requeued", "a")]


def test_a_failed_run_waits_for_its_delay() -> None:
    """From the time of the failure; the reason of the run is kept with it."""
    row = leased(job("a", policy=POLICY))
    changes, _ = applied(DictReader([row]), report(row, "failed", at=NOW - 7, reason="exit_1"))
    (after,) = changes.jobs
    assert after.state is JobState.BACKING_OFF
    assert (after.failed_at, after.eligible_at) == (NOW - 7, NOW - 7 + POLICY.delay)
    assert after.retry_delay == POLICY.delay
    assert after.tracker is None, "a reschedule counts when it is granted"
    assert ends(changes)["a"][1:] == (Outcome.FAILED, "exit_1")
    assert said(changes) == [("failed", "a"), ("backing_off", "a")]


def test_a_job_past_its_attempts_has_failed() -> None:
    """Counted in its tracker; the verdict's code is its reason."""
    events = tuple(
        RescheduleEvent(
            time=NOW - n, previous_run=RunId(f"r{n}"), previous_node="n", delay=POLICY.delay
        )
        for n in (2, 1)
    )
    row = leased(job("a", policy=POLICY, tracker=RescheduleTracker(events=events)))
    changes, after = applied(DictReader([row]), report(row, "failed"))
    assert (after["a"].state, after["a"].reason) == (JobState.FAILED, "exhausted")
    assert after["a"].ended_at == NOW
    assert said(changes) == [("failed", "a"), ("exhausted", "a")]
    assert changes.events[-1].reason == "exhausted"


@pytest.mark.parametrize(
    ("job_type", "state"),
    [
        ("batch", JobState.BACKING_OFF),
        ("service", JobState.BACKING_OFF),
        ("system", JobState.FAILED),
        ("sysbatch", JobState.FAILED),
    ],
)
def test_a_job_without_a_policy_has_that_of_its_type(job_type: str, state: JobState) -> None:
    """`system` and `sysbatch` have none."""
    row = leased(job("a", job_type=job_type))
    _, after = applied(DictReader([row]), report(row, "failed"))
    assert after["a"].state is state


def test_a_returned_run_puts_its_job_back_without_blame() -> None:
    """At once, with its history."""
    tracker = RescheduleTracker()
    row = leased(job("a", tracker=tracker))
    changes, after = applied(DictReader([row]), report(row, "returned", reason="image"))
    assert ends(changes) == {"a": (JobState.QUEUED, Outcome.RETURNED, "image")}
    assert after["a"].tracker == tracker
    assert said(changes) == [("returned", "a"), ("requeued", "a")]


@pytest.mark.parametrize("kind", [kind.value for kind in ReportKind])
def test_late_and_repeated_reports_change_nothing(kind: str) -> None:
    """Of ended runs, of older runs, of jobs that are not there; INV-J4."""
    row = leased(job("a", policy=POLICY))
    waiting = backing_off(row)
    again = leased(waiting, run_id="second")
    for reader in (DictReader([waiting]), DictReader([again]), DictReader()):
        changes, _ = applied(reader, report(row, kind))
        assert not changes
    changes, after = applied(DictReader([row]), report(row, kind), report(row, kind))
    assert len(changes.jobs) == 1
    assert not applied(after, report(row, kind))[0]


def test_times_of_reports_are_kept_between_the_lease_and_now() -> None:
    """Clocks of executors are wrong in both directions."""
    row = leased(job("a", policy=POLICY), at=50)
    early = applied(DictReader([row]), report(row, "failed", at=-3))[0].jobs[0]
    late = applied(DictReader([row]), report(row, "failed", at=NOW + 3))[0].jobs[0]
    assert (early.failed_at, late.failed_at) == (50, NOW)


def test_a_running_report_renews_the_lease() -> None:
    """Only forward, and without an event; where leases have no end nothing changes."""
    config = SchedulingConfig(lease_duration=10)
    row = leased(job("a"), at=1, lease_expires_at=11)
    _, started = applied(DictReader([row]), report(row, "running", at=3), config=config)
    assert started["a"].runs[-1].lease_expires_at == 13
    changes, renewed = applied(started, report(row, "running", at=8), config=config)
    assert renewed["a"].runs[-1].lease_expires_at == 18
    assert renewed["a"].runs[-1].started_at == 3
    assert not changes.events
    assert not applied(renewed, report(row, "running", at=5), config=config)[0]


def test_a_gang_fails_as_one() -> None:
    """One verdict, one instant; the others are returned; each that failed is blamed."""
    members = [leased(each) for each in gang("g", size=4, policy=POLICY)]
    changes, after = applied(
        DictReader(members),
        report(members[0], "succeeded"),
        report(members[2], "failed", at=NOW - 2, reason="exit_2"),
        report(members[1], "failed", at=NOW - 1, reason="exit_1"),
    )
    assert ends(changes) == {
        "g.0": (JobState.BACKING_OFF, Outcome.RETURNED, GANG),
        "g.1": (JobState.BACKING_OFF, Outcome.FAILED, "exit_1"),
        "g.2": (JobState.BACKING_OFF, Outcome.FAILED, "exit_2"),
        "g.3": (JobState.BACKING_OFF, Outcome.RETURNED, GANG),
    }
    waits = {(row.failed_at, row.eligible_at, row.retry_delay) for row in after}
    assert waits == {(NOW - 2, NOW - 2 + POLICY.delay, POLICY.delay)}
    assert [kind for kind, _ in said(changes)].count("backing_off") == 4


def test_an_exhausted_gang_fails_whole() -> None:
    """No member is left behind."""
    members = [leased(each) for each in gang("g", policy=ReschedulePolicy())]
    _, after = applied(DictReader(members), report(members[1], "failed"))
    assert [(row.state, row.reason) for row in after] == [(JobState.FAILED, "disabled")] * 2


def test_a_gang_succeeds_when_all_its_members_have() -> None:
    """Until then those that have hold their room; both in one batch or one by one."""
    members = [leased(each) for each in gang("g")]
    changes, half = applied(DictReader(members), report(members[0], "succeeded", at=NOW - 9))
    assert ends(changes) == {"g.0": (JobState.LEASED, None, GANG_DONE)}
    assert not changes.events
    assert not applied(half, report(members[0], "succeeded"))[0]
    changes, whole = applied(half, report(members[1], "succeeded", at=NOW - 1))
    assert ends(changes) == {
        "g.0": (JobState.SUCCEEDED, Outcome.SUCCEEDED, ""),
        "g.1": (JobState.SUCCEEDED, Outcome.SUCCEEDED, ""),
    }
    assert {row.ended_at for row in whole} == {NOW - 1}
    at_once, _ = applied(DictReader(members), *(report(each, "succeeded") for each in members))
    assert ends(at_once) == ends(changes)


def test_a_member_that_had_succeeded_runs_again_when_its_gang_fails() -> None:
    """A gang succeeds as one or not at all."""
    members = [leased(each) for each in gang("g", policy=POLICY)]
    _, half = applied(DictReader(members), report(members[0], "succeeded"))
    changes, _ = applied(half, report(members[1], "failed"))
    assert ends(changes) == {
        "g.0": (JobState.BACKING_OFF, Outcome.RETURNED, GANG),
        "g.1": (JobState.BACKING_OFF, Outcome.FAILED, ""),
    }


def test_a_gang_of_which_a_member_is_returned_goes_back_whole() -> None:
    """Nobody is blamed; a failure in the same batch outweighs it."""
    members = [leased(each) for each in gang("g", policy=POLICY)]
    changes, _ = applied(DictReader(members), report(members[1], "returned", reason="image"))
    assert ends(changes) == {
        "g.0": (JobState.QUEUED, Outcome.RETURNED, GANG),
        "g.1": (JobState.QUEUED, Outcome.RETURNED, "image"),
    }
    changes, _ = applied(
        DictReader(members), report(members[1], "returned"), report(members[0], "failed")
    )
    assert {row.state for row in changes.jobs} == {JobState.BACKING_OFF}


def test_gangs_of_two_queues_with_one_id_are_two() -> None:
    """The identity of a gang is (queue, id)."""
    ours = [leased(each) for each in gang("g", queue="a", policy=POLICY)]
    theirs = [
        leased(each.replace(id=f"t{each.id}", version=1), run_id=f"t{each.id}")
        for each in gang("g", queue="b")
    ]
    changes, _ = applied(
        DictReader([*ours, *theirs]), report(ours[0], "failed"), report(theirs[1], "succeeded")
    )
    assert set(ends(changes)) == {"g.0", "g.1", "tg.1"}


def test_due_jobs_go_back_to_their_queues() -> None:
    """At the very instant, not before; what they waited for is kept for the grant."""
    row = backing_off(leased(job("a")), at=2, eligible_at=10)
    reader = DictReader([row])
    assert not due(reader, 9, CONFIG)
    changes = due(reader, 10, CONFIG)
    (after,) = changes.jobs
    assert (after.state, after.retry_delay) == (JobState.QUEUED, 8)
    assert said(changes) == [("requeued", "a")]
    assert not due(reader.with_changes(changes), 10, CONFIG)


@pytest.mark.parametrize(("said_why", "why"), [("", "setup_failed"), ("no_start_enoent",) * 2])
def test_a_run_that_could_not_be_set_up_has_failed(said_why: str, why: str) -> None:
    """By the policy, as any other failure; its run says that it never began."""
    row = leased(job("a", policy=POLICY))
    changes, after = applied(DictReader([row]), report(row, "setup_failed", reason=said_why))
    assert ends(changes) == {"a": (JobState.BACKING_OFF, Outcome.FAILED, why)}
    assert after["a"].eligible_at == NOW + POLICY.delay


def test_a_service_that_completes_starts_anew() -> None:
    """Its history is over with the run."""
    tracker = RescheduleTracker(
        events=(
            RescheduleEvent(time=1, previous_run=RunId("r"), previous_node="n", delay=POLICY.delay),
        )
    )
    row = leased(job("a", job_type="service", tracker=tracker))
    _, after = applied(DictReader([row]), report(row, "succeeded"))
    assert after["a"].tracker is None
