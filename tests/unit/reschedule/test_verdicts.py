"""Verdicts: reasons, delays, the edge of the window."""

import pytest

from kit.policies import always_failing, history
from pyresched.model import NANOS, ReschedulePolicy, VerdictReason
from pyresched.reschedule import Verdict, next_delay, next_reschedule

THREE = ReschedulePolicy(attempts=3, interval=100, delay=5)


@pytest.mark.parametrize(
    ("policy", "events", "reason"),
    [
        (None, [], VerdictReason.NO_POLICY),
        (None, [(90, 5)], VerdictReason.NO_POLICY),
        (ReschedulePolicy(interval=100, delay=5), [], VerdictReason.DISABLED),
        (ReschedulePolicy(attempts=-1, interval=100, delay=5), [], VerdictReason.DISABLED),
        (THREE, [], VerdictReason.ELIGIBLE),
        (THREE, [(80, 5), (90, 5)], VerdictReason.ELIGIBLE),
        (THREE, [(70, 5), (80, 5), (90, 5)], VerdictReason.EXHAUSTED),
        (THREE, [(0, 5), (80, 5), (90, 5)], VerdictReason.ELIGIBLE),
        (THREE, [(1, 5), (80, 5), (90, 5)], VerdictReason.EXHAUSTED),
        (THREE, [(80, 5), (90, 5), (500, 5)], VerdictReason.EXHAUSTED),
        (ReschedulePolicy(attempts=3, interval=100, delay=100), [], VerdictReason.ELIGIBLE),
        (
            ReschedulePolicy(attempts=3, interval=100, delay=100),
            [(50, 100)],
            VerdictReason.DELAY_PAST_INTERVAL,
        ),
        (ReschedulePolicy(attempts=3, interval=101, delay=100), [(50, 9)], VerdictReason.ELIGIBLE),
        (ReschedulePolicy(delay=5, unlimited=True), [(90, 5)] * 9, VerdictReason.ELIGIBLE),
        (ReschedulePolicy(attempts=-3, delay=5, unlimited=True), [(90, 5)], VerdictReason.ELIGIBLE),
    ],
)
def test_the_first_rule_that_speaks_gives_the_reason(policy, events, reason) -> None:
    """A run that failed at 100, under each rule and just beside it."""
    verdict = next_reschedule(policy, history(*events), 100)
    assert verdict.reason is reason
    assert verdict.eligible == (reason is VerdictReason.ELIGIBLE)


def test_a_verdict_shows_what_was_used_of_what_there_is() -> None:
    """`2 of 3`, and the time also where nothing follows."""
    verdict = next_reschedule(THREE, history((80, 5), (90, 5)), 100)
    assert (verdict.attempted, verdict.attempts, verdict.delay, verdict.at) == (2, 3, 5, 105)
    refused = next_reschedule(THREE, history((70, 5), (80, 5), (90, 5)), 100)
    assert (refused.attempted, refused.attempts, refused.at) == (3, 3, 105)


def test_figures_are_zero_where_nothing_counts() -> None:
    """Without a policy, and with one that has no limit; one attempt is a limit."""
    nothing = next_reschedule(None, None, 100)
    assert (nothing.attempted, nothing.attempts, nothing.interval) == (0, 0, 0)
    endless = ReschedulePolicy(interval=100, delay=5, unlimited=True)
    verdict = next_reschedule(endless, None, 100)
    assert (verdict.attempted, verdict.attempts, verdict.interval) == (0, 0, 0)
    single = ReschedulePolicy(attempts=1, interval=100, delay=5)
    verdict = next_reschedule(single, None, 100)
    assert (verdict.attempted, verdict.attempts, verdict.interval) == (0, 1, 100)


@pytest.mark.parametrize(
    ("reason", "sentence", "used"),
    [
        (VerdictReason.ELIGIBLE, "tried again after 1m30s", "2/3 in 1h"),
        (VerdictReason.DISABLED, "disabled: the policy allows no reschedule", "2/3 in 1h"),
        (VerdictReason.NO_POLICY, "no policy: nothing is tried again", "2/3 in 1h"),
        (VerdictReason.EXHAUSTED, "exhausted: 2 of 3 in 1h", "2/3 in 1h"),
        (
            VerdictReason.DELAY_PAST_INTERVAL,
            "the delay of 1m30s is not shorter than the interval of 1h",
            "2/3 in 1h",
        ),
        (
            VerdictReason.NOT_APPLICABLE,
            "not applicable to system and sysbatch jobs",
            "2/3 in 1h",
        ),
        (
            VerdictReason.PAST_PROGRESS_DEADLINE,
            "deployment past its progress deadline",
            "2/3 in 1h",
        ),
    ],
)
def test_each_reason_has_a_sentence(reason, sentence, used) -> None:
    """With the figures of the verdict."""
    verdict = Verdict(
        eligible=reason is VerdictReason.ELIGIBLE,
        at=0,
        delay=90 * NANOS,
        attempted=2,
        attempts=3,
        reason=reason,
        interval=3600 * NANOS,
    )
    assert (verdict.sentence(), verdict.used) == (sentence, used)


def test_what_was_used_without_a_limit() -> None:
    """Unlimited, or nothing at all."""
    endless = ReschedulePolicy(delay=5, unlimited=True)
    assert next_reschedule(endless, None, 0).used == "unlimited"
    assert next_reschedule(None, None, 0).used == "none"


def delays(function: str, *, delay: int = 5, max_delay: int = 0, runs: tuple[int, ...] = ()):
    """The first eight delays of an unlimited policy, in seconds."""
    policy = ReschedulePolicy(
        delay=delay * NANOS, delay_function=function, max_delay=max_delay * NANOS, unlimited=True
    )
    lengths = [run * NANOS for run in runs]
    return [each // NANOS for each in always_failing(policy, runs=lengths, most=8)]


@pytest.mark.parametrize(
    ("function", "max_delay", "series"),
    [
        ("constant", 60, [5, 5, 5, 5, 5, 5, 5, 5]),
        ("exponential", 60, [5, 10, 20, 40, 60, 60, 60, 60]),
        ("exponential", 0, [5, 10, 20, 40, 80, 160, 320, 640]),
        ("fibonacci", 60, [5, 5, 10, 15, 25, 40, 60, 60]),
        ("fibonacci", 0, [5, 5, 10, 15, 25, 40, 65, 105]),
        ("linear", 60, [5, 5, 5, 5, 5, 5, 5, 5]),
        ("", 60, [5, 5, 5, 5, 5, 5, 5, 5]),
    ],
)
def test_each_function_has_its_series(function, max_delay, series) -> None:
    """Runs that fail at once, replaced when due."""
    assert delays(function, max_delay=max_delay) == series


def test_a_run_that_outlives_the_cap_starts_the_series_anew() -> None:
    """Only where the delay would pass the cap, and only by more than the cap."""
    # The run after the delay of 40 s lasts 61 s: the next would be 80, past the cap of 60.
    assert delays("exponential", max_delay=60, runs=(0, 0, 0, 0, 61)) == [
        5,
        10,
        20,
        40,
        5,
        10,
        20,
        40,
    ]
    assert delays("exponential", max_delay=60, runs=(0, 0, 0, 0, 60)) == [5, 10, 20, 40] + [60] * 4
    assert delays("exponential", max_delay=60, runs=(0, 0, 3600)) == [5, 10, 20, 40] + [60] * 4
    # From the cap, fibonacci starts with its base delay twice; from below it, it does not.
    assert delays("fibonacci", max_delay=20, runs=(0, 0, 0, 0, 0, 21)) == [
        5,
        5,
        10,
        15,
        20,
        5,
        5,
        10,
    ]
    assert delays("fibonacci", max_delay=20, runs=(0, 0, 0, 0, 21)) == [5, 5, 10, 15, 5, 20, 20, 20]


def test_a_longer_delay_of_a_changed_policy_holds_at_once() -> None:
    """Shorter delays that an earlier policy recorded do not undercut it."""
    policy = ReschedulePolicy(delay=60, delay_function="exponential", max_delay=600, unlimited=True)
    assert next_delay(policy, history((0, 5)).events, failed_at=10) == 60
    assert next_delay(policy, history((0, 40)).events, failed_at=10) == 80


def test_the_smallest_cap_is_a_cap() -> None:
    """Only 0 means none."""
    policy = ReschedulePolicy(delay=1, delay_function="exponential", max_delay=1, unlimited=True)
    assert next_delay(policy, history((0, 1)).events, failed_at=1) == 1


def test_sums_saturate() -> None:
    """No delay wraps, and no time passes the end of int64."""
    most = 2**63 - 1
    for function in ("exponential", "fibonacci"):
        policy = ReschedulePolicy(delay=1, delay_function=function, unlimited=True)
        verdict = next_reschedule(policy, history((0, most - 1), (0, most)), most - 3)
        assert (verdict.delay, verdict.at) == (most, most)
