from kit.jobs import backing_off, gang, job, leased, requeued
from pyresched.model import (
    AvoidRank,
    Outcome,
    RescheduleEvent,
    RescheduleTracker,
    avoided_nodes,
)


def event(run_id: str, node_id: str) -> RescheduleEvent:
    """A reschedule of *run_id*, which was on *node_id*."""
    return RescheduleEvent(time=1, previous_run=run_id, previous_node=node_id, delay=0)


def test_a_job_without_runs_avoids_nothing():
    """Nothing used, nothing avoided."""
    assert avoided_nodes([job()]) == ()


def test_the_node_of_a_run_that_ended_without_blame_counts_as_used():
    """Preempted, returned and lost runs give rank 1."""
    for outcome in (Outcome.PREEMPTED, Outcome.RETURNED, Outcome.LOST):
        back = requeued(leased(job(), node_id="n1"), outcome)
        assert avoided_nodes([back]) == (("n1", AvoidRank.USED),)


def test_the_node_of_a_failed_run_counts_as_failed_on():
    """A failure gives rank 2."""
    back = backing_off(leased(job(), node_id="n1"))
    assert avoided_nodes([back]) == (("n1", AvoidRank.FAILED_ON),)


def test_only_the_last_run_counts_beside_the_tracker():
    """A preempted run before the last one leaves no mark."""
    twice = requeued(leased(requeued(leased(job(), node_id="n1")), node_id="n2"))
    assert avoided_nodes([twice]) == (("n2", AvoidRank.USED),)


def test_an_event_counts_by_what_its_run_came_to():
    """A rescheduled run that is known to be lost was no failure of its node."""
    lost = requeued(leased(job(), run_id="r1", node_id="n1"), Outcome.LOST)
    again = requeued(leased(lost, run_id="r2", node_id="n2"))
    tracked = again.replace(tracker=RescheduleTracker(events=(event("r1", "n1"),)))
    assert avoided_nodes([tracked]) == (("n1", AvoidRank.USED), ("n2", AvoidRank.USED))


def test_an_event_of_a_run_that_is_no_longer_known_counts_as_a_failure():
    """The tracker outlives the runs."""
    tracked = job(tracker=RescheduleTracker(events=(event("gone", "n9"),)))
    assert avoided_nodes([tracked]) == (("n9", AvoidRank.FAILED_ON),)


def test_the_members_of_a_gang_avoid_what_any_of_them_used_at_its_worst():
    """The union over members, the higher rank where they differ, by node id."""
    first, second = gang(size=2)
    failed = backing_off(leased(first, node_id="n2"))
    stopped = requeued(leased(second, node_id="n2"), Outcome.RETURNED)
    other = requeued(leased(second, node_id="n1"), Outcome.RETURNED)
    assert avoided_nodes([failed, stopped]) == (("n2", AvoidRank.FAILED_ON),)
    assert avoided_nodes([stopped, failed]) == (("n2", AvoidRank.FAILED_ON),)
    assert avoided_nodes([failed, other]) == (
        ("n1", AvoidRank.USED),
        ("n2", AvoidRank.FAILED_ON),
    )
