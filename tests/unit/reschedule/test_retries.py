"""Columns of verdicts: forms of what goes in and comes out, and what is refused."""

from array import array
from typing import Any

import numpy as np
import pytest

import pyresched
from kit.policies import history
from pyresched.errors import InputError
from pyresched.model import ReschedulePolicy, RescheduleTracker, VerdictReason
from pyresched.reschedule import next_many, next_reschedule

LEAST, MOST = -(2**63), 2**63 - 1
POLICY = ReschedulePolicy(attempts=2, interval=100, delay=5)
TRACKERS = [None, history((1, 5)), history((1, 5), (9, 5)), RescheduleTracker()]


def test_columns_are_buffers_of_fixed_types() -> None:
    """As `reader.columns` gives them: NumPy and others read them in place."""
    columns = next_many(POLICY, TRACKERS, 10)
    assert {name: column.format for name, column in columns.items()} == {
        "at": "q",
        "delay": "q",
        "attempted": "q",
        "attempts": "q",
        "reason": "b",
        "eligible": "b",
    }
    assert np.asarray(columns["at"]).tolist() == [15, 15, 15, 15]
    assert columns["attempted"].tolist() == [0, 1, 2, 0]
    assert columns["eligible"].tolist() == [1, 1, 0, 1]
    assert [tuple(VerdictReason)[code].value for code in columns["reason"]] == [
        "eligible",
        "eligible",
        "exhausted",
        "eligible",
    ]


@pytest.mark.parametrize("form", [list, tuple, lambda times: array("q", times), np.array])
@pytest.mark.parametrize("of_trackers", [list, tuple, iter])
def test_times_and_trackers_come_in_any_form(form: Any, of_trackers: Any) -> None:
    """What is asked is the same."""
    times = [10, 20, 200, -1]
    columns = next_many([POLICY, None] * 2, of_trackers(TRACKERS), form(times))
    alone = [
        next_reschedule(policy, tracker, at)
        for policy, tracker, at in zip([POLICY, None] * 2, TRACKERS, times, strict=True)
    ]
    assert columns["at"].tolist() == [each.at for each in alone]
    assert columns["attempted"].tolist() == [each.attempted for each in alone]


def test_no_runs_have_empty_columns() -> None:
    """All six of them."""
    assert {len(column) for column in next_many([], [], []).values()} == {0}
    assert len(next_many(POLICY, (), 5)) == 6


def test_many_policies_are_told_apart() -> None:
    """By identity, however many there are and in whatever order they come."""
    policies = [ReschedulePolicy(unlimited=True, delay=n) for n in range(500)]
    given = [policies[n * 7919 % 500] for n in range(2_000)]
    columns = next_many(given, [None] * 2_000, 0)
    assert columns["delay"].tolist() == [policy.delay for policy in given]


def test_numbers_past_int64_count_as_its_ends() -> None:
    """Columns hold no more, so a policy means no more."""
    policy = ReschedulePolicy(attempts=2**70, interval=2**80, delay=2**90, max_delay=-(2**90))
    columns = next_many([policy], [history((1, 5))], MOST)
    held = ReschedulePolicy(attempts=MOST, interval=MOST, delay=MOST, max_delay=LEAST)
    alone = next_reschedule(held, history((1, 5)), MOST)
    assert columns["at"][0] == alone.at == MOST
    assert columns["delay"][0] == alone.delay == MOST
    assert columns["attempts"][0] == alone.attempts == MOST
    assert tuple(VerdictReason)[columns["reason"][0]] is alone.reason


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ((POLICY, [None, 3], 0), TypeError, r"trackers\[1\] is a RescheduleTracker or None, got 3"),
        ((POLICY, None, 0), TypeError, "trackers is a sequence"),
        ((POLICY, "ab", 0), TypeError, "trackers is a sequence"),
        ((POLICY, RescheduleTracker(), 0), TypeError, "trackers is a sequence"),
        ((3, [None], 0), TypeError, "policies is a ReschedulePolicy or None, got 3"),
        (([POLICY, 3], [None] * 2, 0), TypeError, r"policies\[1\] is a ReschedulePolicy or None"),
        (([POLICY], [None] * 2, 0), InputError, "policies has 1 rows, trackers have 2"),
        ((POLICY, [None] * 2, [0]), InputError, "failed_at has 1 rows, trackers have 2"),
        ((POLICY, [None], None), InputError, "failed_at is an int or an int64 buffer"),
        ((POLICY, [None], 2**63), OverflowError, "failed_at must be from"),
        ((POLICY, [None], np.array([1.5])), InputError, "failed_at"),
        ((POLICY, [None], [1.5]), (InputError, TypeError), "failed_at"),
    ],
)
def test_what_cannot_be_is_refused_by_name(given: Any, error: Any, message: str) -> None:
    """Column and row, as elsewhere."""
    with pytest.raises(error, match=message):
        next_many(*given)


class Hostile:
    """A policy that does not say how many attempts, or gives no number."""

    interval = delay = max_delay = 0
    delay_function = "constant"
    unlimited = False

    def __init__(self, attempts: object) -> None:
        self._attempts = attempts

    @property
    def attempts(self) -> object:
        """What it was made with."""
        if isinstance(self._attempts, Exception):
            raise self._attempts
        return self._attempts


def test_what_a_policy_raises_goes_through() -> None:
    """And what it says is looked at, not trusted."""
    for _ in range(3):
        with pytest.raises(KeyError, match="gone"):
            next_many([POLICY, Hostile(KeyError("gone"))], [None] * 2, 0)  # type: ignore[list-item]
        with pytest.raises(TypeError, match="attempts is a whole number"):
            next_many(Hostile("two"), [None], 0)  # type: ignore[arg-type]


def test_a_list_that_shrinks_meanwhile_is_read_as_it_was() -> None:
    """A policy may run code, which may take away what is being read."""
    trackers: list[RescheduleTracker | None] = [history((1, 5)) for _ in range(50)]
    given: list[Any] = []

    class Clearing(Hostile):
        @property
        def attempts(self) -> object:
            trackers.clear()
            given.clear()
            return 3

    given += [Clearing(0)] * 50
    columns = next_many(given, trackers, 5)
    assert columns["attempts"].tolist() == [3] * 50
    assert trackers == []


def test_it_is_a_public_name() -> None:
    """Of the package too."""
    assert pyresched.next_many is next_many


def limited(interval: int) -> ReschedulePolicy:
    """A policy whose window matters and whose delay does not."""
    return ReschedulePolicy(attempts=2, interval=interval, delay=LEAST)


def growing(function: str, delay: int, max_delay: int) -> ReschedulePolicy:
    """One whose delay matters."""
    return ReschedulePolicy(
        unlimited=True, delay=delay, delay_function=function, max_delay=max_delay
    )


@pytest.mark.parametrize(
    ("policy", "events", "failed_at"),
    [
        *((limited(100), [(0, 5)], at) for at in (99, 100, -1)),
        (limited(0), [(1, 5)], 0),
        (limited(0), [(0, 5)], 0),
        (limited(-1), [(2, 5)], 0),
        (limited(-1), [(1, 5)], 0),
        (limited(LEAST), [(MOST, 5)], LEAST),
        (limited(LEAST), [(MOST, 5)], -1),
        (limited(MOST), [(LEAST, 5)], MOST),
        (limited(MOST), [(LEAST, 5)], -2),
        (limited(MOST), [(LEAST, 5)], -1),
        *((growing("exponential", 5, 50), [(0, 30)], at) for at in (50, 51)),
        *((growing("exponential", 5, 50), [(0, 25)], at) for at in (50, 51)),
        (growing("exponential", 5, MOST), [(0, MOST)], 0),
        (growing("exponential", 5, MOST), [(LEAST, MOST)], MOST),
        (growing("exponential", 5, MOST), [(LEAST, MOST)], -1),
        (growing("exponential", 5, 50), [(MOST, 30)], LEAST),
        (growing("exponential", 5, 50), [(LEAST, 30)], MOST),
        (growing("exponential", LEAST, 0), [(0, LEAST)], 0),
        (growing("fibonacci", 5, 50), [(0, 50), (1, 5)], 2),
        (growing("fibonacci", 5, 50), [(0, 5), (1, 5)], 2),
        (growing("fibonacci", 5, 0), [(0, MOST), (1, MOST)], 2),
        (growing("fibonacci", 5, 0), [(0, LEAST), (1, LEAST)], 2),
        (growing("fibonacci", MOST, 0), [(0, 5)], MOST),
        (ReschedulePolicy(attempts=2, interval=5, delay=5), [(-9, 5)], 0),
        (ReschedulePolicy(attempts=2, interval=6, delay=5), [(-9, 5)], 0),
        (ReschedulePolicy(interval=6, delay=5), [(0, 5)], 0),
    ],
)
def test_at_the_edge_of_each_rule_the_answer_is_that_of_one(
    policy: ReschedulePolicy, events: list[tuple[int, int]], failed_at: int
) -> None:
    """A nanosecond on either side, and where a difference or a sum leaves int64."""
    tracker = history(*events)
    alone = next_reschedule(policy, tracker, failed_at)
    columns = next_many(policy, [tracker], failed_at)
    names = ("eligible", "at", "delay", "attempted", "attempts")
    assert [columns[name][0] for name in names] == [getattr(alone, name) for name in names]
    assert tuple(VerdictReason)[columns["reason"][0]] is alone.reason
