"""Timelines and outlooks: the verdicts followed run by run."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.policies import always_failing, policies, valid_policies
from pyresched.durations import INT64_MAX, NANOS
from pyresched.reschedule import (
    Prospect,
    ReschedulePolicy,
    RestartPolicy,
    VerdictReason,
    extended,
    outlook,
    timeline,
)

FAR = 400
"""Failures after which a policy of `valid_policies` shows no new state."""


@given(policy=valid_policies(), runtime=st.integers(0, 60))
def test_a_timeline_is_what_verdicts_and_histories_say(
    policy: ReschedulePolicy, runtime: int
) -> None:
    """Each step is the policy's own answer on a history that grows by one replacement."""
    steps = timeline(policy, runtime=runtime, failures=30)
    tracker, started = None, 0
    for number, step in enumerate(steps, start=1):
        verdict = policy.next(tracker, failed_at=started + runtime)
        assert (step.number, step.started) == (number, started)
        assert (step.failed, step.verdict) == (started + runtime, verdict)
        started = verdict.at
        tracker = extended(
            tracker, policy, now=started, previous_run="r", previous_node="n", delay=verdict.delay
        )
    assert len(steps) == 30 or not steps[-1].verdict.eligible
    assert all(step.verdict.eligible for step in steps[:-1])


@given(policy=valid_policies(), runtime=st.integers(0, 60))
def test_an_outlook_is_where_the_timeline_ends(policy: ReschedulePolicy, runtime: int) -> None:
    """A policy that gives up does so at that run and time; one that never does goes on and on."""
    seen = outlook(policy, runtime=runtime)
    steps = timeline(policy, runtime=runtime, failures=FAR)
    if seen.prospect is Prospect.GIVES_UP:
        assert (seen.runs, seen.after) == (len(steps), steps[-1].failed)
        assert seen.last == steps[-1].verdict
    else:
        assert seen.prospect is Prospect.NEVER
        assert (seen.runs, seen.after) == (None, None)
        assert seen.last in [step.verdict for step in steps]
        assert len(steps) == FAR


@pytest.mark.parametrize(
    ("fields", "runtime", "prospect"),
    [
        # An event leaves the window when it is an interval old, so that two of 10 are too few.
        ({"attempts": 3, "interval": 20, "delay": 10}, 0, Prospect.NEVER),
        ({"attempts": 3, "interval": 21, "delay": 10}, 0, Prospect.GIVES_UP),
        # A delay as long as the interval ends it.
        ({"attempts": 5, "interval": 20, "delay": 20}, 0, Prospect.GIVES_UP),
        # Delays that still grow are no circle, however empty the window.
        (
            {
                "attempts": 9,
                "interval": 100,
                "delay": 5,
                "delay_function": "exponential",
                "max_delay": 500,
            },
            60,
            Prospect.GIVES_UP,
        ),
        # What is exactly an interval old when the next is placed stays in the history.
        (
            {
                "attempts": 9,
                "interval": 40,
                "delay": 10,
                "delay_function": "fibonacci",
                "max_delay": 30,
            },
            30,
            Prospect.NEVER,
        ),
        ({"unlimited": True, "delay": 7}, 3, Prospect.NEVER),
    ],
)
def test_an_outlook_at_the_edges(fields: dict[str, Any], runtime: int, prospect: Prospect) -> None:
    """The same end as the timeline's, with a verdict of it."""
    policy = ReschedulePolicy(**fields)
    seen, steps = outlook(policy, runtime=runtime), timeline(policy, runtime=runtime, failures=FAR)
    assert seen.prospect is prospect
    assert seen.last in [step.verdict for step in steps]
    assert (prospect is Prospect.GIVES_UP) is (len(steps) < FAR)


def test_an_outlook_past_the_end_of_time_is_unknown() -> None:
    """Delays that double for 292 years; the last verdict is that on the last run there was."""
    policy = ReschedulePolicy(
        attempts=900,
        interval=INT64_MAX,
        delay=10**6,
        delay_function="exponential",
        max_delay=INT64_MAX,
    )
    seen, steps = outlook(policy, runtime=5), timeline(policy, runtime=5, failures=99)
    assert (seen.prospect, seen.runs, seen.after) == (Prospect.UNKNOWN, None, None)
    assert seen.last == steps[-1].verdict
    edge = ReschedulePolicy(attempts=9, interval=INT64_MAX, delay=1)
    assert outlook(edge, runtime=2**62 - 1).last.attempted == 1
    assert outlook(edge, runtime=2**62).last.attempted == 0


def test_a_timeline_ends_with_time() -> None:
    """A replacement at the end of int64 is none."""
    policy = ReschedulePolicy(delay=2**62, unlimited=True)
    assert [step.started for step in timeline(policy)] == [0, 2**62]


@given(policy=policies(), runtime=st.integers(-5, INT64_MAX))
def test_any_policy_has_an_outlook_and_a_timeline(policy: ReschedulePolicy, runtime: int) -> None:
    """Whatever the figures: instants stay within int64, and both end."""
    steps = timeline(policy, runtime=runtime, failures=20)
    assert all(0 <= step.started <= step.failed <= INT64_MAX for step in steps)
    if policy.attempts < 1000:
        outlook(policy, runtime=runtime)


def test_the_documented_fibonacci_delays() -> None:
    """From 5 s: 5, 5, 10, 15, 25 s."""
    policy = ReschedulePolicy(
        attempts=5, interval="1h", delay="5s", delay_function="fibonacci", max_delay="2m"
    )
    steps = timeline(policy)
    delays = [step.verdict.delay // NANOS for step in steps[:-1]]
    assert delays == [5, 5, 10, 15, 25] == [each // NANOS for each in always_failing(policy)]
    last = steps[-1]
    assert (last.number, last.failed) == (6, 60 * NANOS)
    assert last.verdict.sentence() == "exhausted: 5 of 5 in 1h"
    assert last.verdict.used == "5/5 in 1h"


def test_a_window_that_refills_is_told_from_one_that_fills() -> None:
    """15 attempts of 30 s to 2 min: exhausted in 1 h, never in 26 min 40 s, where Nomad's check passes."""
    policy = ReschedulePolicy(
        attempts=15, interval="1h", delay="30s", delay_function="exponential", max_delay="2m"
    )
    assert outlook(policy).prospect is Prospect.GIVES_UP
    short = ReschedulePolicy(
        attempts=15, interval="26m40s", delay="30s", delay_function="exponential", max_delay="2m"
    )
    assert outlook(short).prospect is Prospect.NEVER
    assert [problem.severity.value for problem in short.problems()] == ["warning"]


def test_what_no_policy_and_a_disabled_one_come_to() -> None:
    """One run; the reason says which it was."""
    assert outlook(None).after == 0
    for policy, reason in [
        (None, VerdictReason.NO_POLICY),
        (ReschedulePolicy(), VerdictReason.DISABLED),
    ]:
        seen = outlook(policy, runtime=3)
        assert (seen.prospect, seen.runs, seen.after) == (Prospect.GIVES_UP, 1, 3)
        assert seen.last.reason is reason
        assert [step.verdict for step in timeline(policy, runtime=3)] == [seen.last]


def test_a_timeline_ends_where_it_is_told_to() -> None:
    """By failures, by time, or after a hundred runs."""
    policy = ReschedulePolicy(unlimited=True, delay="10s")
    assert len(timeline(policy)) == 100
    assert [step.started // NANOS for step in timeline(policy, failures=3)] == [0, 10, 20]
    assert [step.started // NANOS for step in timeline(policy, until=20 * NANOS)] == [0, 10, 20]
    assert timeline(policy, failures=0) == timeline(policy, failures=-1) == []
    still = ReschedulePolicy(unlimited=True)
    assert len(timeline(still, until=5)) == 200_000
    assert timeline(policy, until="20s") == timeline(policy, until=20 * NANOS)
    assert timeline(policy, runtime="3s") == timeline(policy, runtime=3 * NANOS)
    limited = ReschedulePolicy(attempts=2, interval="1m", delay="5s")
    assert outlook(limited, runtime="3s") == outlook(limited, runtime=3 * NANOS)
    assert outlook(policy).prospect is Prospect.NEVER


def test_policies_that_print_alike_in_two_languages() -> None:
    """A reschedule policy prints as Nomad does, a restart policy in short durations."""
    policy = ReschedulePolicy(attempts=3, interval="1h", delay="30s")
    assert str(policy) == "3 in 1h0m0s with constant delay, max_delay = 0s"
    assert str(RestartPolicy(attempts=1, interval="1h")) == "1 in 1h with 0s delay, mode = fail"
