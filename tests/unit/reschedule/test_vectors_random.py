"""Random policies and histories: the package against the oracle, where no rule speaks.

Figures stay where int64 does not overflow (rule `saturate`), a history without events is none
(`empty-tracker`), and recorded delays are not under the policy's (`policy-change`).
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from kit import reschedule_oracle as oracle
from pyresched.model import (
    NANOS,
    NodeId,
    RescheduleEvent,
    ReschedulePolicy,
    RescheduleTracker,
    RunId,
)
from pyresched.reschedule import Severity, extended, next_reschedule, problems

NOW = 1_700_000_000 * NANOS


def durations(most: int) -> st.SearchStrategy[int]:
    """Up to *most* seconds; whole ones, or a nanosecond beside, so that edges are met."""
    return st.builds(
        lambda whole, beside: max(whole * NANOS + beside, 0),
        st.integers(0, most),
        st.sampled_from([-1, 0, 0, 0, 1]),
    )


@st.composite
def policies(draw: st.DrawFn) -> oracle.Policy:
    """Policies of any kind, valid or not."""
    delay = draw(durations(30))
    return oracle.Policy(
        attempts=draw(st.integers(-1, 12)),
        interval=draw(durations(240)),
        delay=delay,
        function=draw(st.sampled_from([*oracle.FUNCTIONS, "linear", ""])),
        max_delay=draw(st.one_of(durations(90), st.just(delay), st.just(2 * delay))),
        unlimited=draw(st.booleans()),
    )


@st.composite
def histories(draw: st.DrawFn, policy: oracle.Policy) -> tuple[oracle.Event, ...]:
    """Events up to now, oldest first, some at the edge of the window or of the cap."""
    edges = st.sampled_from([policy.interval, policy.interval + 1, policy.max_delay + 1])
    ages = draw(st.lists(st.one_of(durations(300), edges), max_size=8))
    delays = st.one_of(durations(60), st.just(policy.max_delay), st.just(policy.delay))
    return tuple(
        oracle.Event(NOW - age, max(draw(delays), policy.delay), f"run-{n}", "node")
        for n, age in enumerate(sorted(ages, reverse=True))
    )


def ours(policy: oracle.Policy) -> ReschedulePolicy:
    """The same policy as the package has it."""
    return ReschedulePolicy(
        attempts=policy.attempts,
        interval=policy.interval,
        delay=policy.delay,
        delay_function=policy.function,
        max_delay=policy.max_delay,
        unlimited=policy.unlimited,
    )


def tracker(events: tuple[oracle.Event, ...]) -> RescheduleTracker:
    """The same history as the package has it."""
    return RescheduleTracker(
        events=tuple(
            RescheduleEvent(
                time=event.time,
                previous_run=RunId(event.run),
                previous_node=NodeId(event.node),
                delay=event.delay,
            )
            for event in events
        )
    )


@given(policies().flatmap(lambda policy: st.tuples(st.just(policy), histories(policy))))
@settings(max_examples=150, deadline=None)
def test_verdicts_and_histories_are_those_of_the_oracle(
    made: tuple[oracle.Policy, tuple[oracle.Event, ...]],
) -> None:
    """Delay, time, count and eligibility, and the history after a replacement."""
    policy, events = made
    delay = oracle.next_delay(policy, events, NOW)
    _, eligible = oracle.reschedulable(policy, events or None, NOW, tracker=bool(events))
    verdict = next_reschedule(ours(policy), tracker(events), NOW)
    used, limit = oracle.attempts_used(policy, events, NOW)
    assert (verdict.delay, verdict.at, verdict.eligible) == (delay, NOW + delay, eligible)
    assert (verdict.attempted, verdict.attempts) == (used, limit)
    now = NOW + delay
    after = extended(
        tracker(events),
        ours(policy),
        now=now,
        previous_run=RunId("last"),
        previous_node=NodeId("node"),
        delay=delay,
    )
    kept = (*oracle.pruned(policy, events, now), oracle.Event(now, delay, "last", "node"))
    assert after.events == tracker(kept).events


@given(policies(), st.sampled_from([NANOS, 5 * NANOS]))
@settings(max_examples=150, deadline=None)
def test_problems_are_those_of_the_oracle(policy: oracle.Policy, minimum: int) -> None:
    """Codes in order, the figures of the fit check, and the warning about haste."""
    found = problems(ours(policy), min_delay=minimum)
    errors = [each for each in found if each.severity is Severity.ERROR]
    assert [each.code.value for each in errors] == oracle.codes(policy, minimum)
    for each in errors:
        if each.code.value == "attempts_do_not_fit_interval":
            fit = oracle.fit_of(policy)
            assert (each.possible_attempts, each.recommended_interval) == (
                fit.possible,
                fit.interval,
            )
    haste = [each for each in found if each.code.value == "low_delay_with_unlimited"]
    assert [each.code.value for each in haste] == oracle.warnings(policy, minimum)
