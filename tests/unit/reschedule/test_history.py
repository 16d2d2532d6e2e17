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


def test_forced_reschedules_are_kept_by_the_same_rule() -> None:
    """They count in no window, but the delay series goes on from them."""
    tracker = RescheduleTracker()
    for now, forced in ((899, True), (900, True), (950, False)):
        tracker = tracker.extended(
            UNLIMITED, now=now, previous_run="run", previous_node="node", delay=5, forced=forced
        )
    assert [event.forced for event in tracker.events] == [True, True, False]
    assert times(tracker, LIMITED) == [900, 950, 1000]


LEAST, MOST = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    ("policy", "at", "now", "kept"),
    [
        (ReschedulePolicy(attempts=1, interval=MOST), LEAST, MOST, False),
        (ReschedulePolicy(attempts=1, interval=MOST), LEAST, -1, True),
        (ReschedulePolicy(attempts=1, interval=MOST), LEAST, 0, False),
        (ReschedulePolicy(attempts=1, interval=1), MOST, LEAST, True),
        (ReschedulePolicy(attempts=2**80, interval=2**90), 0, MOST, True),
        (ReschedulePolicy(attempts=-(2**80), interval=0), 0, MOST, True),
        (ReschedulePolicy(attempts=1, interval=-(2**90)), 0, 0, False),
    ],
)
def test_ages_and_policies_at_the_ends_of_int64(
    policy: ReschedulePolicy, at: int, now: int, *, kept: bool
) -> None:
    """No difference of instants wraps; a number past int64 counts as its end."""
    after = history((at, 5)).extended(
        policy, now=now, previous_run="run", previous_node="node", delay=MOST
    )
    assert [event.time for event in after.events] == [at] * kept + [now]


def test_what_a_history_cannot_take_is_refused_by_field() -> None:
    """A policy that is none, a time that is none; the history stays as it was."""
    tracker = history((1, 5))
    fields = {"now": 1, "previous_run": "run", "previous_node": "node", "delay": 2}
    for change, message in (
        ({"now": 1.5}, "now is a whole number"),
        ({"delay": None}, "delay is a whole number"),
        ({"forced": 1}, "forced is True or False"),
        ({"previous_run": None}, "previous_run"),
    ):
        with pytest.raises(TypeError, match=message):
            tracker.extended(LIMITED, **{**fields, **change})  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        tracker.extended(3, **fields)  # type: ignore[arg-type]
    assert tracker == history((1, 5))


def test_events_outlive_the_history_that_they_were_taken_from() -> None:
    """Ids too long to lie in the event itself are shared with it, and counted."""
    tracker = RescheduleTracker()
    runs = [f"a-run-id-that-is-longer-than-any-native-form-{n}" for n in range(4)]
    for now, run in enumerate(runs):
        tracker = tracker.extended(
            UNLIMITED, now=now, previous_run=run, previous_node=run.upper(), delay=1
        )
    assert [event.previous_run for event in tracker.events] == runs
    assert [event.previous_node for event in tracker.events] == [run.upper() for run in runs]


def test_a_forced_reschedule_is_told_from_others() -> None:
    """The newest event says so; it is kept as others are."""
    for forced in (False, True):
        after = extended(
            None, LIMITED, now=5, previous_run="r", previous_node="n", delay=0, forced=forced
        )
        assert after.events[-1].forced is forced
