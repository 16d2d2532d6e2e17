"""Gangs as one: whatever becomes of one member becomes of all, with one history and one budget."""

import pytest

from kit.driving import node, report, scheduler
from kit.jobs import gang
from pyresched.model import (
    NANOS,
    DisconnectRule,
    GroupRules,
    Job,
    JobState,
    Outcome,
    ReschedulePolicy,
)
from pyresched.outcomes import Report, ReportKind

SECOND = NANOS
ONCE = ReschedulePolicy(attempts=1, interval=3600 * SECOND, delay=5 * SECOND)
TWICE = ReschedulePolicy(attempts=2, interval=3600 * SECOND, delay=7 * SECOND)
RULES = GroupRules(group="group", disconnect=DisconnectRule(lost_after=60 * SECOND))


class Whole:
    """A gang of two, a member on each of two nodes; the third has nothing."""

    def __init__(self, job_type: str = "batch") -> None:
        self.made = scheduler(*(node(id, cores=2) for id in ("n1", "n2", "n3")))
        members = gang("g", 2000, 64, policy=ONCE, rules=RULES, job_type=job_type)
        self.ids = [each.id for each in members]
        self.made.submit(members, 0)
        self.made.step(0)
        report(self.made, *self.ids, kind="running", now=0)
        self.first = self.rows[0]
        assert len({row.node_id for row in self.rows}) == 2

    @property
    def rows(self) -> list[Job]:
        """Its members."""
        assert self.made.check() == []
        return [row for row in self.made.snapshot().get_many(self.ids) if row is not None]

    def fail(self, now: int) -> None:
        """One member fails."""
        report(self.made, self.ids[0], kind="failed", now=now)

    def here(self) -> list[str]:
        """The node of its first member."""
        assert self.first.node_id is not None
        return [self.first.node_id]


def fail(whole: Whole) -> None:
    """A member fails."""
    whole.fail(SECOND)


def fail_for_good(whole: Whole) -> None:
    """A member fails again, and the one budget is used up."""
    whole.fail(SECOND)
    whole.made.step(6 * SECOND)
    whole.fail(7 * SECOND)


def stop(whole: Whole) -> None:
    """A user stops a member's run."""
    whole.made.stop(whole.ids[1:], SECOND)


def disconnect(whole: Whole) -> None:
    """The node of a member is out of reach."""
    whole.made.disconnect_nodes(whole.here(), SECOND)


def come_back(whole: Whole) -> None:
    """It is back, and its run goes on, but the others were stopped."""
    disconnect(whole)
    whole.made.nodes_back(whole.here(), 2 * SECOND)
    run = whole.first.runs[-1]
    news = Report(run_id=run.id, job_id=whole.ids[0], kind=ReportKind.RUNNING, at=2 * SECOND)
    whole.made.report([news], 2 * SECOND)


def lose(whole: Whole) -> None:
    """The node of a member is lost."""
    whole.made.lose_nodes(whole.here(), SECOND)


def drain(whole: Whole) -> None:
    """The node of a member has drained until its deadline."""
    whole.made.cordon_nodes(["n1", "n2", "n3"], SECOND)
    whole.made.drain_nodes(whole.here(), SECOND, deadline=0)
    whole.made.step(SECOND)


def give_back(whole: Whole) -> None:
    """The executor of a member returns it."""
    report(whole.made, whole.ids[0], kind="returned", now=SECOND)


def force(whole: Whole) -> None:
    """By hand, for one member of those that have failed for good."""
    fail_for_good(whole)
    whole.made.force(whole.ids[:1], 8 * SECOND)


def force_early(whole: Whole) -> None:
    """By hand, while all wait."""
    fail(whole)
    whole.made.force(whole.ids[1:], 2 * SECOND)


def set_policy(whole: Whole) -> None:
    """Another policy for one member revives all."""
    fail_for_good(whole)
    whole.made.set_policy(whole.ids[:1], TWICE, 8 * SECOND)


@pytest.mark.parametrize(
    ("what", "state", "outcome", "counted"),
    [
        (fail, "backing_off", "failed", 0),
        (fail_for_good, "failed", "failed", 1),
        (stop, "backing_off", "returned", 0),
        (disconnect, "backing_off", "unknown", 0),
        (come_back, "backing_off", "returned", 0),
        (lose, "queued", "lost", 0),
        (drain, "queued", "returned", 0),
        (give_back, "queued", "returned", 0),
        (force, "queued", "failed", 1),
        (force_early, "queued", "failed", 0),
        (set_policy, "backing_off", "failed", 1),
    ],
)
@pytest.mark.parametrize("job_type", ["batch", "service"])
def test_what_becomes_of_one_becomes_of_all(
    what, state: str, outcome: str, counted: int, job_type: str
) -> None:
    """One state, one time to wait for, one history; blame is for whom it was, and for no other."""
    if what is stop and job_type == "service":
        state = "queued"
    whole = Whole(job_type)
    what(whole)
    one, other = whole.rows
    for row in (one, other):
        assert row.state is JobState[state.upper()]
        assert len(() if row.tracker is None else row.tracker.events) == counted
    assert [one.runs[-1].outcome, other.runs[-1].outcome] == [Outcome(outcome), Outcome.RETURNED]
    for same in ("state", "policy", "tracker", "failed_at", "eligible_at", "retry_delay", "reason"):
        assert getattr(one, same) == getattr(other, same), same


@pytest.mark.parametrize("what", [fail, stop, disconnect, lose, give_back, force, force_early])
def test_it_is_placed_again_all_or_none(what) -> None:
    """Not while one member has no place; then at one time, with one history."""
    whole = Whole()
    what(whole)
    made = whole.made
    made.cordon_nodes(["n1", "n2", "n3"], 9 * SECOND)
    free = [id for id in ("n1", "n2", "n3") if id not in whole.here()]
    made.uncordon_nodes(free[:1], 9 * SECOND)
    made.step(20 * SECOND)
    assert [row.active_run for row in whole.rows] == [None, None]
    made.uncordon_nodes(free, 21 * SECOND)
    made.step(21 * SECOND)
    one, other = whole.rows
    assert {one.node_id, other.node_id} == set(free)
    assert one.tracker == other.tracker
    uncounted = {lose, give_back}
    assert (one.tracker is None) == (what in uncounted)
