"""Nodes out of reach: what becomes of each run on them, at once, later and when they are back."""

import pytest

from kit.driving import node, report, said, scheduler
from kit.jobs import gang, job
from pyresched.config import SchedulingConfig
from pyresched.errors import UnknownNode
from pyresched.model import (
    NANOS,
    DisconnectRule,
    GroupRules,
    Job,
    JobState,
    Outcome,
    ReschedulePolicy,
    UpdateRule,
)
from pyresched.outcomes import Report, ReportKind
from pyresched.scheduler import Scheduler

SECOND = NANOS
POLICY = ReschedulePolicy(attempts=1, interval=3600 * SECOND, delay=5 * SECOND)
MINUTE = DisconnectRule(lost_after=60 * SECOND)
KEPT = DisconnectRule(lost_after=60 * SECOND, replace=False)
FOR_EVER = DisconnectRule(replace=False)
STOPS = DisconnectRule(stop_on_client_after=20 * SECOND)


def rules(disconnect: DisconnectRule | None = MINUTE, **fields) -> GroupRules:
    """Those of one group."""
    return GroupRules(group="job/group", disconnect=disconnect, **fields)


def started(*jobs: Job, nodes=("n1", "n2"), config=None, runs: bool = True) -> Scheduler:
    """A scheduler whose jobs have run since 1 on the first of its nodes; the others join then."""
    made = scheduler(node(nodes[0]), config=config)
    made.submit(list(jobs), 0)
    made.step(0)
    if runs:
        report(made, *(each.id for each in jobs), kind="running", now=1)
    made.join_nodes([node(name) for name in nodes[1:]], 1)
    return made


def row(made: Scheduler, id: str = "a") -> Job:
    """The job as it is now."""
    found = made.snapshot().get(id)
    assert found is not None
    assert made.check() == []
    return found


def ends(made: Scheduler, id: str = "a") -> list[tuple[str | None, str]]:
    """What the runs of a job came to, oldest first."""
    return [(each.outcome and each.outcome.value, each.reason) for each in row(made, id).runs]


def tell(made: Scheduler, run_id: str, kind: str, now: int, id: str = "a") -> None:
    """A report of any run."""
    made.report([Report(run_id=run_id, job_id=id, kind=ReportKind(kind), at=now)], now)


@pytest.mark.parametrize("job_type", ["batch", "service"])
@pytest.mark.parametrize("by", ["disconnect_nodes", "lose_nodes"])
@pytest.mark.parametrize("disconnect", [None, DisconnectRule()])
def test_a_run_that_nobody_waits_for_is_lost_and_replaced_at_once(job_type, by, disconnect) -> None:
    """Whatever its type, without delay or budget; its node is lost."""
    made = started(job("a", policy=POLICY, job_type=job_type, rules=rules(disconnect)))
    getattr(made, by)(["n1"], 2)
    assert made.nodes.get("n1").lost_at == 2
    made.step(2)
    assert ends(made) == [("lost", "node_lost"), (None, "")]
    assert row(made).tracker is None
    assert said(made)[-4:] == ["node_lost", "lost", "requeued", "leased"]


def test_a_run_that_has_not_begun_is_lost_though_its_group_would_wait() -> None:
    """Nothing is known of it that could go on."""
    made = started(job("a", policy=POLICY, rules=rules()), runs=False)
    made.disconnect_nodes(["n1"], 2)
    assert ends(made) == [("lost", "node_lost")]
    assert made.nodes.get("n1").lost_at == 2


@pytest.mark.parametrize("job_type", ["batch", "service"])
def test_a_run_out_of_reach_is_replaced_by_its_policy(job_type) -> None:
    """After its delay, with budget; the time of the failure is when it was out of reach."""
    made = started(job("a", policy=POLICY, job_type=job_type, rules=rules()))
    made.disconnect_nodes(["n1"], 2)
    assert made.nodes.get("n1").disconnected_at == 2
    waits = row(made)
    assert waits.state is JobState.BACKING_OFF
    assert (waits.failed_at, waits.eligible_at) == (2, 2 + 5 * SECOND)
    assert ends(made) == [("unknown", "node_disconnected")]
    assert made.step(2).next_wake == 2 + 5 * SECOND
    assert made.step(2 + 5 * SECOND).next_wake == 2 + 60 * SECOND
    assert row(made).node_id == "n2"
    assert [event.previous_node for event in row(made).tracker.events] == ["n1"]
    assert said(made)[-6:] == [
        *("node_disconnected", "unknown", "backing_off"),
        *("requeued", "leased", "rescheduled"),
    ]


def test_who_must_not_be_replaced_runs_on_and_stays_bound() -> None:
    """By its rule, or since its policy gives it nothing, or its deployment has failed."""
    exhausted = ReschedulePolicy()
    update = UpdateRule(progress_deadline=1, min_healthy_time=0)
    made = started(
        job("rule", policy=POLICY, rules=rules(KEPT)),
        job("policy", policy=exhausted, rules=rules()),
        job("deployed", policy=POLICY, rules=rules(update=update, count=2)),
    )
    made.disconnect_nodes(["n1"], 2)
    made.step(3)
    for id in ("rule", "policy", "deployed"):
        assert row(made, id).state is JobState.RUNNING
        assert row(made, id).node_id == "n1"
    made.nodes_back(["n1"], 4)
    report(made, "rule", kind="succeeded", now=5)
    assert row(made, "rule").state is JobState.SUCCEEDED


@pytest.mark.parametrize("disconnect", [MINUTE, KEPT])
def test_after_lost_after_a_run_is_lost_and_replaced_without_budget(disconnect) -> None:
    """At that very time, whether it was replaced already or waits; the node is lost with it."""
    made = started(job("a", policy=ReschedulePolicy(), rules=rules(disconnect)))
    made.disconnect_nodes(["n1"], 2)
    assert made.step(60 * SECOND).next_wake == 2 + 60 * SECOND
    made.step(1 + 60 * SECOND)
    assert row(made).node_id == "n1"
    made.step(2 + 60 * SECOND)
    assert ends(made) == [("lost", "node_lost"), (None, "")]
    assert (row(made).node_id, row(made).tracker) == ("n2", None)
    assert made.nodes.get("n1").lost_at == 2 + 60 * SECOND
    assert made.nodes.get("n1").disconnected_at is None


@pytest.mark.parametrize("delay", [3600 * SECOND, SECOND], ids=["waits", "found no place"])
def test_who_waits_for_its_policy_when_the_run_is_lost_is_back_at_once(delay) -> None:
    """Nothing is counted: a lost run is replaced without delay or budget."""
    slow = ReschedulePolicy(attempts=1, interval=7200 * SECOND, delay=delay)
    made = started(job("a", policy=slow, rules=rules()), nodes=("n1",))
    made.disconnect_nodes(["n1"], 2)
    made.step(30 * SECOND)
    made.step(2 + 60 * SECOND)
    made.join_nodes([node("n2")], 61 * SECOND)
    made.step(61 * SECOND)
    assert ends(made) == [("lost", "node_lost"), (None, "")]
    assert not (row(made).tracker and row(made).tracker.events)
    assert "rescheduled" not in said(made)
    assert said(made).count("requeued") == 1


def test_who_waits_for_another_reason_when_the_run_is_lost_waits_on() -> None:
    """Its replacement has failed since: that is what the delay is for."""
    twice = ReschedulePolicy(attempts=2, interval=3600 * SECOND, delay=50 * SECOND)
    made = started(job("a", policy=twice, rules=rules()))
    made.disconnect_nodes(["n1"], 2)
    made.step(51 * SECOND)
    report(made, "a", kind="failed", now=55 * SECOND)
    made.step(61 * SECOND)
    assert ends(made) == [("lost", "node_lost"), ("failed", "")]
    assert (row(made).state, row(made).eligible_at) == (JobState.BACKING_OFF, 105 * SECOND)


def test_another_node_that_is_lost_takes_no_unknown_run_along() -> None:
    """Only its own."""
    made = started(job("a", policy=POLICY, rules=rules()))
    made.disconnect_nodes(["n1"], 2)
    made.lose_nodes(["n2"], 3)
    assert ends(made) == [("unknown", "node_disconnected")]


def test_who_was_replaced_stays_so_when_the_first_run_is_lost() -> None:
    """Only what is known of that run changes; whoever has it is told to stop it."""
    made = started(job("a", policy=POLICY, rules=rules()))
    made.disconnect_nodes(["n1"], 2)
    made.step(6 * SECOND)
    made.step(61 * SECOND)
    assert ends(made) == [("lost", "node_lost"), (None, "")]
    assert said(made)[-2:] == ["node_lost", "lost"]
    assert made.step(62 * SECOND).next_wake is None


def test_zero_lost_after_without_replacement_never_ends() -> None:
    """Rule lost-after-0, on a node that is disconnected and on one that is lost."""
    for by in ("disconnect_nodes", "lose_nodes"):
        made = started(job("a", policy=POLICY, rules=rules(FOR_EVER)))
        getattr(made, by)(["n1"], 2)
        assert made.step(10**6 * SECOND).next_wake is None
        assert (row(made).state, row(made).node_id) == (JobState.RUNNING, "n1")
        assert made.nodes.get("n1").disconnected_at == 2


def test_a_lost_node_waits_only_for_runs_without_replacement() -> None:
    """All others are lost with it, those that wait or were replaced too, until time is over."""
    made = started(
        job("kept", policy=POLICY, rules=rules(KEPT)),
        job("unknown", policy=POLICY, rules=rules()),
        job("stays", policy=ReschedulePolicy(), rules=rules()),
    )
    made.disconnect_nodes(["n1"], 2)
    made.lose_nodes(["n1"], 3)
    assert ends(made, "kept") == [(None, "")]
    assert ends(made, "unknown") == [("lost", "node_lost")]
    assert row(made, "unknown").state is JobState.QUEUED
    assert ends(made, "stays") == [("lost", "node_lost")]
    assert made.nodes.get("n1").disconnected_at == 2
    assert not made.lose_nodes(["n1"], 4)
    made.cancel(["kept"], 5)
    made.step(5)
    assert made.nodes.get("n1").lost_at == 5


@pytest.mark.parametrize("by", ["disconnect_nodes", "lose_nodes"])
@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize(("kill", "grace"), [(SECOND, 5 * SECOND), (9 * SECOND, 9 * SECOND)])
def test_no_replacement_before_its_node_has_surely_stopped_the_run(
    by, replace, kill, grace
) -> None:
    """It waits for that and no delay; no budget is used, and no history is written."""
    rule = DisconnectRule(stop_on_client_after=20 * SECOND, replace=replace)
    made = started(job("a", policy=POLICY, rules=rules(rule, kill_timeout=kill)))
    getattr(made, by)(["n1"], 2)
    until = 2 + 20 * SECOND + grace
    assert row(made).eligible_at == until
    assert (row(made).state, row(made).retry_delay) == (JobState.BACKING_OFF, None)
    assert made.step(3).next_wake == until
    made.step(until - 1)
    assert row(made).active_run is None
    made.step(until)
    assert ends(made) == [("lost", "node_lost"), (None, "")]
    assert (row(made).tracker, row(made).eligible_at) == (None, None)
    assert "rescheduled" not in said(made)


def test_who_waits_for_its_node_may_be_forced_or_get_another_policy() -> None:
    """By hand it is back at once, as new; there is no failure to judge."""
    made = started(job("a", policy=POLICY, rules=rules(STOPS)))
    made.lose_nodes(["n1"], 2)
    made.set_policy(["a"], ReschedulePolicy(), 3)
    assert row(made).state is JobState.BACKING_OFF
    made.force(["a"], 4)
    made.step(4)
    assert (row(made).state, row(made).tracker) == (JobState.LEASED, None)


# Gangs


def two_nodes(*disconnects: DisconnectRule | None, size: int = 2, policy=POLICY) -> Scheduler:
    """A gang with a member on each of two nodes, and a third node that is free."""
    members = [
        each.replace(rules=rules(rule), version=1)
        for each, rule in zip(
            gang("g", 3000, 64, size=size, policy=policy), disconnects, strict=True
        )
    ]
    made = scheduler(node("n1"), node("n2"))
    made.submit(members, 0)
    made.step(0)
    report(made, "g.0", "g.1", kind="running", now=1)
    assert {row(made, each.id).node_id for each in members} == {"n1", "n2"}
    return made


@pytest.mark.parametrize(("gone", "other"), [("g.0", "g.1"), ("g.1", "g.0")])
def test_a_gang_is_replaced_as_one(gone, other) -> None:
    """The members elsewhere are stopped, all wait to one instant, and none comes back alone."""
    made = two_nodes(MINUTE, MINUTE)
    there = row(made, gone).node_id
    first = row(made, gone).active_run.id
    made.disconnect_nodes([there], 2)
    assert ends(made, gone) == [("unknown", "node_disconnected")]
    assert ends(made, other) == [("returned", "gang")]
    waits = {(row(made, id).state, row(made, id).eligible_at) for id in ("g.0", "g.1")}
    assert waits == {(JobState.BACKING_OFF, 2 + 5 * SECOND)}
    made.nodes_back([there], 3)
    tell(made, first, "running", 3, gone)
    assert ends(made, gone) == [("returned", "gang")]
    assert row(made, gone).state is JobState.BACKING_OFF
    made.step(6 * SECOND)
    assert {row(made, id).state for id in ("g.0", "g.1")} == {JobState.LEASED}
    assert row(made, other).tracker == row(made, gone).tracker


@pytest.mark.parametrize("gone", ["g.0", "g.1"])
def test_the_history_of_a_gang_names_the_node_that_was_out_of_reach(gone) -> None:
    """And the run on it."""
    made = two_nodes(MINUTE, MINUTE)
    was = row(made, gone).active_run
    made.disconnect_nodes([was.node_id], 2)
    made.join_nodes([node("n3")], 2)
    made.step(6 * SECOND)
    event = row(made, "g.0").tracker.events[0]
    assert (event.previous_run, event.previous_node) == (was.id, was.node_id)


def test_a_gang_with_a_member_that_nobody_waits_for_is_lost_as_one() -> None:
    """The strictest member decides for all."""
    made = two_nodes(None, KEPT)
    made.disconnect_nodes(["n1", "n2"], 2)
    assert ends(made, "g.0") == [("lost", "node_lost")]
    assert ends(made, "g.1") == [("lost", "node_lost")]
    assert {row(made, id).state for id in ("g.0", "g.1")} == {JobState.QUEUED}


def test_a_gang_that_must_not_be_replaced_stays_whole_until_time_is_over() -> None:
    """Then all its members are back at once."""
    made = two_nodes(KEPT, KEPT)
    there = row(made, "g.0").node_id
    made.disconnect_nodes([there], 2)
    made.step(3)
    assert ends(made, "g.0") == ends(made, "g.1") == [(None, "")]
    made.step(2 + 60 * SECOND)
    assert ends(made, "g.0") == [("lost", "node_lost")]
    assert ends(made, "g.1") == [("returned", "gang")]
    assert {row(made, id).state for id in ("g.0", "g.1")} == {JobState.QUEUED}


def test_a_gang_that_waits_is_back_as_one_when_the_run_is_lost() -> None:
    """Without delay or budget."""
    slow = ReschedulePolicy(attempts=1, interval=7200 * SECOND, delay=3600 * SECOND)
    made = two_nodes(MINUTE, MINUTE, policy=slow)
    made.disconnect_nodes([row(made, "g.0").node_id], 2)
    made.step(61 * SECOND)
    assert {row(made, id).state for id in ("g.0", "g.1")} == {JobState.QUEUED}
    assert {row(made, id).retry_delay for id in ("g.0", "g.1")} == {None}


# Nodes and leases


def test_a_node_is_disconnected_only_if_some_run_may_go_on_there() -> None:
    """One that is empty, or has none but others, is lost; said again, nothing changes."""
    made = started(job("a", policy=POLICY, rules=rules()), nodes=("n1", "n2"))
    made.disconnect_nodes(["n1", "n2", "n1"], 2)
    assert (made.nodes.get("n1").disconnected_at, made.nodes.get("n1").lost_at) == (2, None)
    assert (made.nodes.get("n2").disconnected_at, made.nodes.get("n2").lost_at) == (None, 2)
    assert not made.disconnect_nodes(["n1", "n2"], 3)
    with pytest.raises(UnknownNode):
        made.disconnect_nodes(["n1", "other"], 3)


def test_a_disconnected_node_takes_nothing_until_it_is_back() -> None:
    """By whichever command; the runs that it kept go on."""
    for back in ("nodes_back", "join_nodes"):
        made = started(job("a", policy=POLICY, rules=rules(KEPT)), nodes=("n1",))
        made.disconnect_nodes(["n1"], 2)
        made.submit([job("b")], 3)
        result = made.step(3).results["default"]
        assert result.refused["b"].code.value == "nodes_closed"
        getattr(made, back)(["n1"] if back == "nodes_back" else [node("n1")], 4)
        made.step(4)
        assert (row(made).state, row(made, "b").node_id) == (JobState.RUNNING, "n1")
        assert said(made).count("node_back") == 1


def test_leases_of_runs_out_of_reach_end_only_once_they_are_back() -> None:
    """Nobody can renew them meanwhile; then each has a whole one, and ends if nobody does."""
    config = SchedulingConfig(lease_duration=10 * SECOND)
    for back in ("nodes_back", "join_nodes"):
        made = started(job("a", policy=POLICY, rules=rules(KEPT)), config=config)
        made.disconnect_nodes(["n1"], 2)
        assert made.step(20 * SECOND).next_wake == 2 + 60 * SECOND
        getattr(made, back)(["n1"] if back == "nodes_back" else [node("n1")], 30 * SECOND)
        assert made.step(30 * SECOND).next_wake == 40 * SECOND
        assert row(made).state is JobState.RUNNING
        made.step(40 * SECOND)
        assert ends(made)[0] == ("lost", "lease_ended")


def test_a_restart_forgets_nothing_that_is_out_of_reach() -> None:
    """Runs that are unknown, and those that are kept, are found in the rows."""
    made = started(
        job("a", policy=POLICY, rules=rules()), job("b", policy=POLICY, rules=rules(KEPT))
    )
    made.disconnect_nodes(["n1"], 2)
    made.step(6 * SECOND)
    again = Scheduler(made.config, made.journal, ids=lambda: "later")
    assert again.step(7 * SECOND).next_wake == 2 + 60 * SECOND
    again.step(61 * SECOND)
    assert [each.outcome for each in row(again).runs] == [Outcome.LOST, None]
    assert row(again, "b").runs[0].outcome is Outcome.LOST


def test_a_job_that_ends_gives_up_its_run_out_of_reach() -> None:
    """Whoever has it is told to stop it, however the job ended."""
    for how in ("succeeded", "failed", "cancelled"):
        made = started(job("a", policy=POLICY, rules=rules()))
        made.disconnect_nodes(["n1"], 2)
        made.step(6 * SECOND)
        if how == "cancelled":
            made.cancel(["a"], 7 * SECOND)
        else:
            report(made, "a", kind=how, now=7 * SECOND)
        assert row(made).state.name.lower() == how
        assert ends(made)[0] == ("returned", "reconnected")
        assert not made.sync.unsettled


# System jobs


def test_system_jobs_stay_where_their_node_is_out_of_reach() -> None:
    """One whose group allows for it runs on; any other is lost, and waits there for its node."""
    for disconnect, ended in ((MINUTE, (None, "")), (None, ("lost", "node_lost"))):
        made = scheduler(node("n1"), node("n2"))
        own = rules(disconnect, update=UpdateRule())
        made.submit([job("log", 100, 64, job_type="system", rules=own)], 0)
        made.submit([job("a", 3000, 64, policy=POLICY, rules=rules(KEPT))], 0)
        made.step(0)
        report(made, "a", "log@n1", "log@n2", kind="running", now=1)
        there = row(made).node_id
        made.disconnect_nodes([there], 2)
        made.step(3)
        assert ends(made, f"log@{there}") == [ended]
        assert not row(made, f"log@{there}").state.terminal
        made.step(61 * SECOND)
        assert row(made, f"log@{there}").state is JobState.CANCELLED
        assert row(made, f"log@{there}").reason == "node_lost"
