"""Properties of rescheduling: limits, delays, saturation, histories."""

from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from kit.policies import INT64, always_failing, history, policies, valid_policies
from pyresched.model import (
    NodeId,
    RescheduleEvent,
    ReschedulePolicy,
    RescheduleTracker,
    RunId,
    VerdictReason,
    parse_duration,
)
from pyresched.reschedule import Severity, attempted, extended, next_reschedule, problems
from pyresched.reschedule.fit import exact_fit

STEPS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 60)), min_size=1, max_size=40)


@dataclass
class Job:
    """A job that fails, waits and is replaced; it keeps every reschedule beside its tracker."""

    now: int = 0
    tracker: RescheduleTracker | None = None
    replaced: list[RescheduleEvent] = field(default_factory=list)

    def fail(self, policy: ReschedulePolicy, *, after: int, late: int):
        """Fail *after* a while; if the verdict allows, be replaced *late* after its time."""
        failed_at = self.now + after
        verdict = next_reschedule(policy, self.tracker, failed_at)
        self.now = failed_at
        if verdict.eligible:
            self.now = verdict.at + late
            self.tracker = extended(
                self.tracker,
                policy,
                now=self.now,
                previous_run=RunId("r"),
                previous_node=NodeId("n"),
                delay=verdict.delay,
            )
            self.replaced.append(self.tracker.events[-1])
        return verdict


@given(valid_policies(limited=True), STEPS, st.booleans())
def test_no_window_ever_holds_more_reschedules_than_attempts(policy, steps, unlimited) -> None:
    """Whatever the runs last and however late a replacement comes, also beside `unlimited`."""
    policy = structs.replace(policy, unlimited=unlimited)
    job = Job()
    for after, late in steps:
        job.fail(policy, after=after, late=late)
        times = [event.time for event in job.replaced]
        for end in times:
            assert sum(end - policy.interval < time <= end for time in times) <= policy.attempts


@given(valid_policies(limited=True), STEPS)
def test_a_window_that_has_passed_gives_its_attempts_back(policy, steps) -> None:
    """A job that fails long after its last reschedule is tried again if its delay fits."""
    job = Job()
    for after, late in steps:
        job.fail(policy, after=after, late=late)
    verdict = next_reschedule(policy, job.tracker, job.now + policy.interval)
    assert verdict.attempted == 0
    assert verdict.eligible or verdict.reason is VerdictReason.DELAY_PAST_INTERVAL


@given(st.lists(valid_policies(), min_size=1, max_size=4), STEPS)
def test_a_delay_is_never_under_the_policys_nor_above_its_cap(changing, steps) -> None:
    """Also for a job whose policy was changed while it had a history."""
    job = Job()
    for number, (after, late) in enumerate(steps):
        policy = changing[number % len(changing)]
        delay = job.fail(policy, after=after, late=late).delay
        assert delay >= policy.delay
        if policy.delay_function == "constant":
            assert delay == policy.delay
        else:
            assert delay <= policy.max_delay


EVENTS = st.lists(st.tuples(INT64, INT64), max_size=5)


@given(policies(), EVENTS, INT64)
def test_every_figure_stays_within_int64(policy, events, failed_at) -> None:
    """No policy, history or time makes a verdict wrap or raise."""
    verdict = next_reschedule(policy, history(*events), failed_at)
    for figure in (verdict.delay, verdict.at, verdict.attempted, verdict.attempts):
        assert -(2**63) <= figure < 2**63
    assert verdict.at == max(-(2**63), min(failed_at + verdict.delay, 2**63 - 1))
    assert verdict.eligible == (verdict.reason is VerdictReason.ELIGIBLE)
    assert not (verdict.eligible and not policy.enabled)


@given(policies(), st.none() | INT64)
@example(ReschedulePolicy(attempts=1, interval=-1, delay=10**9), None)
def test_validation_takes_any_policy(policy, attempts) -> None:
    """Problems are reported for every policy, never raised; all figures stay within int64."""
    if attempts is not None:
        policy = structs.replace(policy, attempts=attempts, unlimited=False)
    for dialect in ("nomad", "exact"):
        for problem in problems(policy, dialect=dialect):
            assert "\n" not in problem.sentence
            assert 0 <= (problem.possible_attempts or 0) < 2**63
            assert -(2**63) <= (problem.recommended_interval or 0) < 2**63


@given(policies(), st.integers(0, 2**62))
def test_no_history_is_one_thing_however_it_is_written(policy, failed_at) -> None:
    """None and a tracker without events give one verdict, without a test of the delay."""
    verdict = next_reschedule(policy, None, failed_at)
    assert verdict == next_reschedule(policy, RescheduleTracker(), failed_at)
    assert verdict.eligible == policy.enabled
    assert verdict.delay == policy.delay


@given(valid_policies(), STEPS)
def test_pruning_keeps_what_counting_and_delays_need(policy, steps) -> None:
    """A pruned history counts as the whole one does, and doubles the same delay."""
    job = Job()
    for after, late in steps:
        verdict = job.fail(policy, after=after, late=late)
        whole = RescheduleTracker(events=tuple(job.replaced))
        for later in (0, 1, policy.interval - 1, policy.interval, policy.interval + 1):
            at = job.now + max(later, 0)
            pruned = next_reschedule(policy, job.tracker, at)
            full = next_reschedule(policy, whole, at)
            assert pruned.attempted == full.attempted
            if policy.delay_function != "fibonacci" or policy.unlimited:
                assert pruned == full
        if verdict.eligible and not policy.unlimited:
            oldest = job.tracker.events[0].time
            assert job.now - oldest <= policy.interval
            assert len(job.tracker.events) <= policy.attempts + 1
        if policy.unlimited:
            assert len(job.replaced) <= 6 or len(job.tracker.events) == 6


@given(valid_policies(limited=True), st.lists(INT64, max_size=6), INT64, st.integers(0, 100))
def test_counting_falls_as_time_goes_on(policy, times, failed_at, later) -> None:
    """Waiting can only free attempts, never use them."""
    events = history(*((time, 0) for time in times)).events
    counted = attempted(policy, events, failed_at=failed_at)
    assert attempted(policy, events, failed_at=failed_at + later) <= counted <= len(events)


@given(valid_policies(limited=True))
@settings(max_examples=400)
def test_the_exact_interval_uses_up_the_attempts_and_one_less_does_not(policy) -> None:
    """The recommended interval, unrounded, is the smallest one; figures of the check agree."""
    fit = exact_fit(policy)
    exact = structs.replace(policy, interval=max(fit.interval, 1))
    assert len(always_failing(exact)) == policy.attempts
    assert (
        len(always_failing(structs.replace(exact, interval=exact.interval * 3))) == policy.attempts
    )
    if policy.attempts > 1:
        assert len(always_failing(structs.replace(exact, interval=exact.interval - 1))) != (
            policy.attempts
        )
    assert fit.fits == (policy.attempts == 1 or policy.interval >= fit.interval)
    assert 1 <= fit.possible <= policy.attempts
    fewer = structs.replace(policy, attempts=fit.possible)
    assert exact_fit(fewer).fits
    if fit.possible < policy.attempts:
        assert not exact_fit(structs.replace(policy, attempts=fit.possible + 1)).fits


@given(valid_policies(limited=True))
def test_a_policy_that_follows_the_advice_has_no_problem_left(policy) -> None:
    """What a sentence recommends passes both checks: nothing is found the second time."""
    seconds = structs.replace(
        policy,
        interval=policy.interval * 10**9,
        delay=policy.delay * 10**9,
        max_delay=policy.max_delay * 10**9,
    )
    for dialect in ("nomad", "exact"):
        found = problems(seconds, dialect=dialect)
        if any(problem.severity is Severity.ERROR for problem in found):
            advice = found[-1].sentence
            text = advice.split("interval of ")[-1] if "interval of " in advice else "15s"
            interval = parse_duration(text.split(";")[0].split(" ")[0])
            assert problems(structs.replace(seconds, interval=interval), dialect=dialect) == ()
