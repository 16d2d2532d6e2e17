"""Decisions become leases."""

from itertools import count

from kit.jobs import backing_off, gang, job, leased
from kit.readers import DictReader
from pyresched.config import SchedulingConfig
from pyresched.leasing import grant
from pyresched.model import (
    Changes,
    Job,
    JobState,
    LastReschedule,
    Move,
    Outcome,
    Placement,
    Preemption,
    PreemptionCause,
    ReschedulePolicy,
    RoundResult,
)

POLICY = ReschedulePolicy(attempts=3, interval=1000, delay=8)


def placed(*job_ids: str, node_id: str = "node-9") -> tuple[Placement, ...]:
    """Each job on *node_id*."""
    return tuple(Placement(id, node_id, 1000) for id in job_ids)


def preempted(job: Job, cause: PreemptionCause = PreemptionCause.FAIR_SHARE) -> Preemption:
    """The newest run of *job* gives way."""
    return Preemption(job.id, job.runs[-1].id, job.runs[-1].node_id, "winner", cause)


def moved(job: Job, node_id: str = "node-9") -> Move:
    """The newest run of *job* gives way, and the job goes on on *node_id*."""
    run = job.runs[-1]
    return Move(job.id, run.id, run.node_id, node_id, 500, "winner", PreemptionCause.URGENCY)


def granted(
    reader: DictReader, *, config: SchedulingConfig | None = None, **decisions
) -> tuple[Changes, DictReader]:
    """What a round's *decisions* at 50 lead to; runs are named `new-1`, `new-2`, ..."""
    numbers = count(1)
    changes = grant(
        RoundResult(pool="default", **decisions),
        reader,
        50,
        lambda: f"new-{next(numbers)}",
        config or SchedulingConfig(),
    )
    return changes, reader.with_changes(changes)


def due(row: Job) -> Job:
    """The waiting job, queued again."""
    return row.replace(state=JobState.QUEUED)


def said(changes: Changes) -> list[tuple[str, str, str]]:
    """Each event as (kind, job, run)."""
    return [(event.kind.value, event.job_id, event.run_id) for event in changes.events]


def test_a_placed_job_has_a_lease() -> None:
    """With the node, pool, priority and time of the decision; without end unless configured."""
    changes, after = granted(DictReader([job("a")]), scheduled=placed("a"))
    run = after["a"].active_run
    assert after["a"].state is JobState.LEASED
    assert (run.id, run.node_id, run.pool, run.priority) == ("new-1", "node-9", "default", 1000)
    assert (run.leased_at, run.lease_expires_at, run.started_at) == (50, None, None)
    assert after["a"].tracker is None
    assert said(changes) == [("leased", "a", "new-1")]


def test_leases_end_where_the_configuration_says_so() -> None:
    """So long after the grant."""
    _, after = granted(
        DictReader([job("a")]), scheduled=placed("a"), config=SchedulingConfig(lease_duration=7)
    )
    assert after["a"].active_run.lease_expires_at == 57


def test_the_history_is_extended_when_the_replacement_is_granted() -> None:
    """At the time of the grant, with the delay that was decided at the failure; INV-J7."""
    row = due(
        backing_off(leased(job("a", policy=POLICY), run_id="old", node_id="node-1"), eligible_at=10)
    )
    changes, after = granted(DictReader([row]), scheduled=placed("a"))
    (event,) = after["a"].tracker.events
    assert (event.time, event.previous_run, event.previous_node, event.delay) == (
        50,
        "old",
        "node-1",
        8,
    )
    assert after["a"].tracker.last is LastReschedule.OK
    waits = (after["a"].failed_at, after["a"].eligible_at, after["a"].retry_delay)
    assert waits == (None, None, None)
    assert said(changes) == [("leased", "a", "new-1"), ("rescheduled", "a", "new-1")]


def test_a_gang_has_one_history_of_the_member_that_failed() -> None:
    """Whatever the order of the decisions."""
    first, second = (
        leased(each, node_id=f"node-of-{each.id}") for each in gang("g", policy=POLICY)
    )
    failed = due(backing_off(second))
    stopped = due(
        first.replace(
            state=JobState.BACKING_OFF,
            runs=(first.runs[0].replace(ended_at=2, outcome=Outcome.RETURNED),),
            failed_at=2,
            eligible_at=10,
            retry_delay=8,
        )
    )
    _, after = granted(DictReader([stopped, failed]), scheduled=placed("g.0", "g.1"))
    assert after["g.0"].tracker == after["g.1"].tracker
    (event,) = after["g.0"].tracker.events
    assert (event.previous_run, event.previous_node) == (second.runs[0].id, "node-of-g.1")


def test_a_preempted_job_goes_back_to_its_place() -> None:
    """Its gang too, by the round's own word or because a member must not stay alone."""
    alone = leased(job("alone", submitted_at=4))
    members = [leased(each) for each in gang("g", size=3)]
    changes, after = granted(
        DictReader([alone, *members]),
        preempted=(
            preempted(alone),
            preempted(members[1]),
            preempted(members[2], PreemptionCause.GANG),
        ),
    )
    assert [(row.id, row.state, row.runs[-1].outcome, row.runs[-1].reason) for row in after] == [
        ("g.0", JobState.QUEUED, Outcome.RETURNED, "gang"),
        ("g.1", JobState.QUEUED, Outcome.PREEMPTED, "fair_share"),
        ("g.2", JobState.QUEUED, Outcome.PREEMPTED, "gang"),
        ("alone", JobState.QUEUED, Outcome.PREEMPTED, "fair_share"),
    ]
    assert after["alone"].submitted_at == 4
    assert said(changes)[:2] == [("preempted", "alone", "alone/run-1"), ("requeued", "alone", "")]


def test_a_run_that_is_not_the_active_one_is_not_preempted() -> None:
    """A decision on an older snapshot is late."""
    old = leased(job("a"), run_id="old")
    now = leased(due(old.replace(runs=(old.runs[0].replace(ended_at=2, outcome=Outcome.LOST),))))
    assert not granted(DictReader([now]), preempted=(preempted(old),))[0]


def test_a_moved_job_has_a_new_run_at_once() -> None:
    """Its old one was preempted; it is one version on, never queued, and keeps its history."""
    old = leased(job("a", policy=POLICY)).replace(state=JobState.RUNNING)
    changes, after = granted(DictReader([old]), moved=(moved(old),))
    row = after["a"]
    assert (row.state, row.version) == (JobState.LEASED, old.version + 1)
    before, run = row.runs
    assert (before.id, before.outcome, before.reason) == (
        old.runs[0].id,
        Outcome.PREEMPTED,
        "urgency",
    )
    assert (before.ended_at, run.leased_at, run.started_at) == (50, 50, None)
    assert (run.id, run.node_id, run.pool, run.priority) == ("new-1", "node-9", "default", 500)
    assert row.active_run == run
    assert said(changes) == [("preempted", "a", old.runs[0].id), ("leased", "a", "new-1")]


def test_the_gang_of_a_moved_job_stays_as_it_is() -> None:
    """The other members run on where they are."""
    members = [leased(each) for each in gang("g", size=3)]
    changes, after = granted(DictReader(members), moved=(moved(members[1]),))
    assert [row.id for row in changes.jobs] == ["g.1"]
    assert [row.active_run.node_id for row in after][1] == "node-9"


def test_a_run_that_is_not_the_active_one_is_not_moved() -> None:
    """A decision on an older snapshot is late."""
    old = leased(job("a"), run_id="old")
    now = leased(due(old.replace(runs=(old.runs[0].replace(ended_at=2, outcome=Outcome.LOST),))))
    assert not granted(DictReader([now]), moved=(moved(old),))[0]
    assert not granted(DictReader([due(now.replace(runs=()))]), moved=(moved(old),))[0]


def test_no_decisions_change_nothing() -> None:
    """A round over a full cluster commits nothing."""
    assert not granted(DictReader([job("a")]))[0]
