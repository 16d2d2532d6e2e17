"""Nodes that drain: who leaves when, and in what company."""

import pytest

from kit.driving import node, report, said, scheduler
from kit.jobs import gang, job
from pyresched.errors import InputError, UnknownNode
from pyresched.model import (
    NANOS,
    DisconnectRule,
    GroupRules,
    Intake,
    JobState,
    MigrateRule,
    RescheduleEvent,
    ReschedulePolicy,
    RescheduleTracker,
)
from pyresched.scheduler import Scheduler

SECOND = NANOS
PACE = MigrateRule(max_parallel=1, min_healthy_time=10 * SECOND)
POLICY = ReschedulePolicy(attempts=1, interval=3600 * SECOND, delay=5 * SECOND)


def web(count: int, migrate: MigrateRule | None = PACE, group: str = "web/front", **fields) -> list:
    """The jobs of one service."""
    rules = GroupRules(group=group, count=count, migrate=migrate)
    name = group.replace("/", "-")
    return [
        job(f"{name}-{n}", 1000, 64, job_type="service", rules=rules, **fields)
        for n in range(count)
    ]


def running(*jobs, nodes=("n1", "n2"), cores=8) -> Scheduler:
    """A scheduler whose jobs have run since 0 on the first of its nodes; the others join then."""
    made = scheduler(node(nodes[0], cores=cores))
    made.submit(list(jobs), 0)
    made.step(0)
    for row in made.snapshot().leased():
        report(made, row.id, kind="running", now=0)
    made.join_nodes([node(name, cores=cores) for name in nodes[1:]], 0)
    return made


def on(made: Scheduler, node_id: str) -> list[str]:
    """The jobs on a node, by id."""
    assert made.check() == []
    return sorted(row.id for row in made.snapshot().leased() if row.node_id == node_id)


def start_all(made: Scheduler, now: int) -> None:
    """What was leased has begun."""
    for row in list(made.snapshot().leased()):
        if row.state is JobState.LEASED:
            report(made, row.id, kind="running", now=now)


def test_a_service_without_a_rule_leaves_at_once_and_keeps_its_history() -> None:
    """To its place in the queue and on to another node in one step: no delay, no budget."""
    event = RescheduleEvent(time=0, previous_run="r", previous_node="n9", delay=1)
    history = RescheduleTracker(events=(event,))
    made = running(*web(2, None, tracker=history, policy=POLICY))
    made.drain_nodes(["n1"], 5)
    made.step(5)
    assert (on(made, "n1"), on(made, "n2")) == ([], ["web-front-0", "web-front-1"])
    row = made.snapshot().get("web-front-0")
    assert (row.runs[0].outcome.value, row.runs[0].reason) == ("returned", "drained")
    assert (row.tracker, row.retry_delay) == (history, None)
    assert "rescheduled" not in said(made)


@pytest.mark.parametrize("most", [1, 2])
def test_no_more_leave_at_once_than_leave_the_group_short_by_its_rule(most) -> None:
    """The next go when the replacements have been healthy for long enough, and not before."""
    pace = MigrateRule(max_parallel=most, min_healthy_time=10 * SECOND)
    made = running(*web(4, pace))
    now = 20 * SECOND
    made.drain_nodes(["n1"], now)
    for left in range(4 - most, -1, -most):
        assert made.step(now).next_wake is None
        assert len(on(made, "n1")) == left
        made.step(now + SECOND)
        assert len(on(made, "n1")) == left, "what has not begun is not healthy"
        start_all(made, now)
        if left:
            assert made.step(now).next_wake == now + 10 * SECOND
            made.step(now + 10 * SECOND - 1)
            assert len(on(made, "n1")) == left, "nor what has just begun"
        now += 10 * SECOND
    assert made.step(now).next_wake is None
    assert len(on(made, "n2")) == 4


def test_a_group_that_is_short_already_lets_nobody_go() -> None:
    """As many as there are healthy ones above `count - max_parallel`, and no more."""
    made = running(*web(3)[:2])
    made.drain_nodes(["n1"], 20 * SECOND)
    made.step(20 * SECOND)
    assert len(on(made, "n1")) == 2
    made = running(*web(3))
    made.drain_nodes(["n1"], 5 * SECOND)
    made.step(5 * SECOND)
    assert len(on(made, "n1")) == 3, "none of them is healthy yet"


def test_groups_leave_side_by_side_each_at_its_own_pace() -> None:
    """A group is that of one queue."""
    jobs = [
        *web(2),
        *web(2, group="web/back"),
        *(each.replace(id=f"b-{each.id}", queue="queue-b", version=1) for each in web(2)),
    ]
    made = running(*[j for j in jobs if j.queue == "queue-a"])
    made.submit([j for j in jobs if j.queue == "queue-b"], 0)
    made.cordon_nodes(["n2"], 0)
    made.step(0)
    start_all(made, 0)
    made.uncordon_nodes(["n2"], 0)
    made.drain_nodes(["n1"], 20 * SECOND)
    made.step(20 * SECOND)
    assert on(made, "n2") == ["b-web-front-0", "web-back-0", "web-front-0"]


def test_runs_out_of_reach_are_neither_healthy_nor_asked_to_leave() -> None:
    """Disconnect rules go before migration; vector C31."""
    rules = GroupRules(
        group="web/front", count=2, migrate=PACE, disconnect=DisconnectRule(replace=False)
    )
    rows = [each.replace(rules=rules, version=1) for each in web(2)]
    made = scheduler(node("n1", cores=1), node("n2", cores=1))
    made.submit(rows, 0)
    made.step(0)
    start_all(made, 0)
    away = made.snapshot().get("web-front-0").node_id
    other = made.snapshot().get("web-front-1").node_id
    made.disconnect_nodes([away], SECOND)
    made.join_nodes([node("n3")], SECOND)
    made.drain_nodes([away, other], 20 * SECOND, deadline=10 * SECOND)
    made.step(20 * SECOND)
    assert on(made, other) == ["web-front-1"]
    made.step(30 * SECOND)
    assert (on(made, away), on(made, other)) == (["web-front-0"], [])


def test_batch_is_left_to_its_end_until_the_deadline() -> None:
    """Then it is back at its place, without delay or budget; its run was returned."""
    made = running(job("a", policy=POLICY), job("b", policy=POLICY))
    made.drain_nodes(["n1"], 5, deadline=60 * SECOND)
    assert made.step(5).next_wake == 5 + 60 * SECOND
    report(made, "b", kind="succeeded", now=6)
    made.step(4 + 60 * SECOND)
    assert on(made, "n1") == ["a"]
    made.step(5 + 60 * SECOND)
    assert (on(made, "n1"), on(made, "n2")) == ([], ["a"])
    row = made.snapshot().get("a")
    assert (row.runs[0].reason, row.tracker) == ("drained", None)
    assert made.step(70 * SECOND).next_wake is None


def test_without_a_deadline_batch_may_stay_for_ever_and_with_none_at_all_it_goes_now() -> None:
    """None is no deadline, 0 is at once."""
    made = running(job("a"))
    made.drain_nodes(["n1"], 5)
    assert made.step(10**15).next_wake is None
    assert on(made, "n1") == ["a"]
    made.drain_nodes(["n1"], 10**15, deadline=0)
    made.step(10**15)
    assert on(made, "n2") == ["a"]


def test_the_deadline_is_for_whole_groups() -> None:
    """However many are healthy."""
    made = running(*web(3))
    made.drain_nodes(["n1"], 0, deadline=5 * SECOND)
    made.step(0)
    assert len(on(made, "n1")) == 3
    made.step(5 * SECOND)
    assert len(on(made, "n2")) == 3


def test_a_job_that_leaves_comes_back_to_its_place_and_never_to_that_node() -> None:
    """Without room elsewhere it is the first to wait."""
    made = running(*web(1, None), nodes=("n1",))
    made.submit([job("later", 100, 64, submitted_at=3)], 3)
    made.drain_nodes(["n1"], 5)
    made.step(5)
    assert on(made, "n1") == []
    waiting = [row.id for row in made.snapshot() if row.state is JobState.QUEUED]
    assert waiting == ["web-front-0", "later"]
    made.undrain_nodes(["n1"], 6)
    made.step(6)
    assert on(made, "n1") == ["later", "web-front-0"]


def test_a_gang_leaves_as_one() -> None:
    """The member on a node that does not drain goes too; the gang is placed again all or none."""
    members = gang("g", 3000, 64, job_type="service")
    made = scheduler(node("n1"), node("n2"))
    made.submit(members, 0)
    made.step(0)
    made.join_nodes([node("n3")], 0)
    made.drain_nodes(["n1"], 5)
    made.step(5)
    assert on(made, "n1") == []
    assert sorted(on(made, "n2") + on(made, "n3")) == ["g.0", "g.1"]
    reasons = {row.runs[0].reason for row in made.snapshot()}
    assert reasons == {"drained"}


@pytest.mark.parametrize("most", [1, 2])
def test_a_gang_goes_whole_by_the_pace_of_its_group(most) -> None:
    """If one may go all of its members do, and each of them counts."""
    rules = GroupRules(group="web/front", count=4, migrate=MigrateRule(max_parallel=most))
    made = running(
        *gang("g", 1000, 64, job_type="service", rules=rules),
        *gang("h", 1000, 64, job_type="service", rules=rules),
    )
    made.drain_nodes(["n1"], 20 * SECOND)
    made.step(20 * SECOND)
    assert (on(made, "n1"), on(made, "n2")) == (["h.0", "h.1"], ["g.0", "g.1"])


# System jobs


def with_system(**drain) -> Scheduler:
    """A batch job and a system job on a node that drains since 5."""
    made = running(job("a", 1000, 64), job("log", 100, 64, job_type="system"), nodes=("n1",))
    made.drain_nodes(["n1"], 5, **drain)
    made.step(5)
    assert on(made, "n1") == ["a", "log@n1"]
    return made


def test_system_jobs_leave_after_all_others_and_do_not_come_back() -> None:
    """Until the node no longer drains."""
    made = with_system()
    report(made, "a", kind="succeeded", now=6)
    made.step(6)
    assert on(made, "n1") == []
    assert made.snapshot().get("log@n1").reason == "node_draining"
    made.step(7)
    assert len(made.snapshot()) == 3
    made.undrain_nodes(["n1"], 8)
    made.step(8)
    assert on(made, "n1") == ["log@n1#2"]


def test_at_the_deadline_system_jobs_leave_with_the_others() -> None:
    """Though nothing else has happened since the last step."""
    made = with_system(deadline=10)
    assert made.step(5).next_wake == 15
    made.step(15)
    assert on(made, "n1") == []


def test_a_drain_that_goes_round_system_jobs_leaves_them() -> None:
    """Also at its deadline, and when they are alone: then nothing is waited for."""
    made = with_system(deadline=10, ignore_system=True)
    made.step(15)
    assert on(made, "n1") == ["log@n1"]
    assert made.step(20).next_wake is None
    made = with_system(deadline=10, ignore_system=True)
    report(made, "a", kind="succeeded", now=6)
    assert made.step(6).next_wake is None


# The command


def test_a_drain_is_a_row_that_says_until_when() -> None:
    """Said again with another deadline it has that; as it was, nothing changes."""
    made = scheduler(node("n1"))
    made.drain_nodes(["n1"], 5, deadline=10, ignore_system=True)
    row = made.nodes.get("n1")
    assert (row.intake, row.drain_deadline, row.drain_system) == (Intake.DRAINING, 15, False)
    assert not made.drain_nodes(["n1"], 5, deadline=10, ignore_system=True)
    made.join_nodes([node("n1", cores=8)], 6)
    assert made.nodes.get("n1").drain_deadline == 15
    changes = made.drain_nodes(["n1"], 6)
    assert (changes.nodes[0].drain_deadline, changes.nodes[0].drain_system) == (None, True)
    assert changes.events[0].reason == "draining"


@pytest.mark.parametrize("by", ["undrain_nodes", "uncordon_nodes", "cordon_nodes"])
def test_a_drain_that_ends_leaves_nothing_behind(by) -> None:
    """Its deadline is that of no later drain."""
    made = scheduler(node("n1"), node("n2"))
    made.drain_nodes(["n1"], 5, deadline=10, ignore_system=True)
    getattr(made, by)(["n1"], 6)
    row = made.nodes.get("n1")
    assert (row.drain_deadline, row.drain_system) == (None, True)
    assert row.intake is (Intake.CORDONED if by == "cordon_nodes" else Intake.OPEN)


def test_to_end_a_drain_opens_no_cordoned_node() -> None:
    """An operator's cordon is another matter."""
    made = scheduler(node("n1"), node("n2"))
    made.cordon_nodes(["n1"], 5)
    assert not made.undrain_nodes(["n1", "n2"], 6)


@pytest.mark.parametrize("deadline", [-1, 1.5, True, "10s"])
def test_a_deadline_that_is_no_time_is_refused(deadline) -> None:
    """By name; and so is an unknown node."""
    made = scheduler(node("n1"))
    with pytest.raises(InputError, match=r"^deadline .*: write nanoseconds, 0 or more; or None"):
        made.drain_nodes(["n1"], 5, deadline=deadline)
    for by in (made.drain_nodes, made.undrain_nodes):
        with pytest.raises(UnknownNode):
            by(["n1", "other"], 5)
    assert made.nodes.get("n1").intake is Intake.OPEN


def test_a_deadline_beyond_all_time_is_none() -> None:
    """Saturated, and nothing to wake up for."""
    made = running(job("a"))
    made.drain_nodes(["n1"], 5, deadline=2**63 - 1)
    assert made.nodes.get("n1").drain_deadline == 2**63 - 1
    assert made.step(5).next_wake is None
