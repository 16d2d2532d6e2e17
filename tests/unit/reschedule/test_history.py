"""Histories: what a new reschedule adds and what it lets go."""

import pytest

from kit.policies import history
from pyresched.model import LastReschedule, NodeId, ReschedulePolicy, RescheduleTracker, RunId
from pyresched.reschedule import extended

LIMITED = ReschedulePolicy(attempts=2, interval=100, delay=5)
UNLIMITED = ReschedulePolicy(delay=5, unlimited=True)
DISABLED = ReschedulePolicy(interval=100, delay=5)


def times(tracker: RescheduleTracker | None, policy: ReschedulePolicy | None) -> list[int]:
    """Times of the events after a reschedule at 1000."""
    after = extended(
        tracker,
        policy,
        now=1000,
        previous_run=RunId("run"),
        previous_node=NodeId("node"),
        delay=7,
    )
    newest = after.events[-1]
    assert (newest.previous_run, newest.previous_node, newest.delay) == ("run", "node", 7)
    assert after.last is LastReschedule.OK
    return [event.time for event in after.events]


@pytest.mark.parametrize("tracker", [None, RescheduleTracker()])
@pytest.mark.parametrize("policy", [LIMITED, UNLIMITED, DISABLED, None])
def test_the_first_reschedule_makes_a_history_of_one(tracker, policy) -> None:
    """None and an empty tracker alike, under any policy."""
    assert times(tracker, policy) == [1000]


def test_a_limited_policy_keeps_its_window() -> None:
    """Events that are exactly an interval old stay, older ones go, later ones stay."""
    tracker = history((899, 5), (900, 5), (950, 5), (1010, 5))
    assert times(tracker, LIMITED) == [900, 950, 1010, 1000]


def test_other_policies_keep_the_newest_five() -> None:
    """Unlimited, disabled (a forced reschedule) and none at all."""
    tracker = history(*((time, 5) for time in range(8)))
    for policy in (UNLIMITED, DISABLED, None):
        assert times(tracker, policy) == [3, 4, 5, 6, 7, 1000]


def test_a_limit_without_a_window_keeps_nothing() -> None:
    """An interval of 0 can count nothing; one of a nanosecond can."""
    policy = ReschedulePolicy(attempts=2, interval=0, delay=5)
    assert times(history((1000, 5)), policy) == [1000]
    policy = ReschedulePolicy(attempts=2, interval=1, delay=5)
    assert times(history((998, 5), (999, 5)), policy) == [999, 1000]


def test_the_old_history_is_untouched() -> None:
    """Trackers are values: the old one still says what it said."""
    tracker = history((1, 5), (2, 5))
    times(tracker, LIMITED)
    assert tracker == history((1, 5), (2, 5))
