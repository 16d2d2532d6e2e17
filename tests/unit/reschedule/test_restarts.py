"""Restarts within a run: the window slides, jitter is bounded, problems are named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.policies import INT64
from pyresched.errors import InputError
from pyresched.reschedule import (
    Exit,
    JobType,
    ProblemCode,
    RestartAction,
    RestartPolicy,
    next_restart,
    restarts_on_success,
)

small_policies = st.builds(
    RestartPolicy,
    attempts=st.integers(0, 5),
    interval=st.integers(-5, 200),
    delay=st.integers(-5, 40),
    mode=st.sampled_from(["fail", "delay"]),
)
BITS = st.integers(0, 2**64 - 1)


@given(policy=small_policies, runs=st.lists(st.tuples(st.integers(0, 60), BITS), max_size=40))
def test_no_window_holds_more_restarts_than_attempts(
    policy: RestartPolicy, runs: list[tuple[int, int]]
) -> None:
    """Whenever processes end: any half-open interval has at most `attempts` restarts, each after its delay."""
    now, history, restarts = 0, (), []
    for lasted, bits in runs:
        now += lasted
        verdict = next_restart(policy, history, Exit.FAILED, now=now, on_success=False, bits=bits)
        if verdict.action is not RestartAction.RESTART:
            assert policy.mode == "fail" or policy.attempts == 0
            break
        assert verdict.wait == verdict.at - now >= max(policy.delay, 1)
        now, history = verdict.at, verdict.history
        restarts.append(now)
    for first in restarts:
        held = [each for each in restarts if first <= each < first + policy.interval]
        assert len(held) <= max(policy.attempts, 0)


@given(policy=small_policies, runs=st.lists(st.integers(0, 60), max_size=40))
def test_mode_fail_gives_up_only_when_the_window_is_full(
    policy: RestartPolicy, runs: list[int]
) -> None:
    """A model that counts all restarts ever: the run fails exactly when one more would be too many."""
    now, history, restarts = 0, (), []
    for lasted in runs:
        now += lasted
        wait = max(policy.delay, 1)
        held = sum(now + wait - each < policy.interval for each in restarts)
        verdict = next_restart(policy, history, Exit.FAILED, now=now, on_success=False)
        full = held >= policy.attempts and (policy.mode == "fail" or policy.attempts == 0)
        assert (verdict.action is RestartAction.FAIL) is full
        if full:
            break
        now, history = verdict.at, verdict.history
        restarts.append(now)


@given(delay=st.integers(4, 10**12), bits=BITS)
def test_jitter_adds_less_than_a_quarter(delay: int, bits: int) -> None:
    """From the delay to just under one and a quarter of it; no bits, no jitter."""
    policy = RestartPolicy(attempts=1, interval="24h", delay=delay)
    verdict = next_restart(policy, (), Exit.FAILED, now=0, on_success=False, bits=bits)
    assert delay <= verdict.wait <= delay + delay // 4
    plain = next_restart(policy, (), Exit.FAILED, now=0, on_success=False)
    assert plain.wait == delay
    most = next_restart(policy, (), Exit.FAILED, now=0, on_success=False, bits=2**64 - 1)
    assert most.wait == delay + (delay - 1) // 4


@given(
    policy=st.builds(
        RestartPolicy,
        attempts=INT64,
        interval=INT64,
        delay=INT64,
        mode=st.sampled_from(["fail", "delay", "", "x"]),
    ),
    history=st.lists(INT64, max_size=4).map(lambda times: tuple(sorted(times))),
    now=INT64,
    ended=st.sampled_from(Exit),
    on_success=st.booleans(),
    bits=BITS,
)
def test_any_figures_give_a_verdict_within_int64(
    *,
    policy: RestartPolicy,
    history: tuple[int, ...],
    now: int,
    ended: Exit,
    on_success: bool,
    bits: int,
) -> None:
    """Saturates at the ends; never raises, and `problems` of any policy neither."""
    verdict = next_restart(policy, history, ended, now=now, on_success=on_success, bits=bits)
    assert -(2**63) <= verdict.at <= 2**63 - 1
    assert verdict.wait >= 0
    assert all(problem.sentence for problem in policy.problems())


def test_a_least_wait_keeps_virtual_time_going() -> None:
    """A policy without a delay still waits what the caller needs."""
    policy = RestartPolicy(attempts=2, interval="5s")
    assert next_restart(policy, (), Exit.FAILED, now=7, on_success=False).at == 8
    verdict = next_restart(policy, (), Exit.FAILED, now=7, on_success=False, least=1_000_000)
    assert verdict.at == 1_000_007


def test_what_was_asked_for_is_done_at_once_and_counts_nowhere() -> None:
    """A restart by a person: no delay, no budget, whatever the policy."""
    policy = RestartPolicy(attempts=1, interval="1m", delay="10s")
    verdict = next_restart(policy, (5,), Exit.ASKED, now=9, on_success=False)
    assert (verdict.action, verdict.at, verdict.history) == (RestartAction.RESTART, 9, (5,))
    nothing = next_restart(None, (), Exit.ASKED, now=9, on_success=False)
    assert nothing.action is RestartAction.RESTART


def test_without_a_policy_nothing_is_restarted() -> None:
    """The end of the process is the end of the run."""
    for ended, action in [
        (Exit.FAILED, RestartAction.FAIL),
        (Exit.UNRECOVERABLE, RestartAction.FAIL),
        (Exit.SUCCEEDED, RestartAction.DONE),
    ]:
        assert next_restart(None, (), ended, now=0, on_success=False).action is action


def test_who_is_started_again_after_success() -> None:
    """Main tasks of what runs for ever, sidecars, and nobody else."""
    lasting = {JobType.SERVICE, JobType.SYSTEM}
    for job_type in JobType:
        assert restarts_on_success(job_type.value) is (job_type in lasting)
        assert restarts_on_success(job_type.value, hook="prestart", sidecar=True)
        assert not restarts_on_success(job_type.value, hook="poststart", sidecar=False)
        assert not restarts_on_success(job_type.value, hook="poststop", sidecar=True)


def test_defaults_by_type_have_no_problem() -> None:
    """Nomad's figures."""
    for name in ("service", "system"):
        default = RestartPolicy.default(name)
        assert default == RestartPolicy(attempts=2, interval="30m", delay="15s", mode="fail")
        assert default.problems() == ()
    for name in ("batch", "sysbatch"):
        default = RestartPolicy.default(name)
        assert default == RestartPolicy(attempts=3, interval="24h", delay="15s", mode="fail")
        assert str(default) == "3 in 24h with 15s delay, mode = fail"


def test_durations_are_text_or_nanoseconds() -> None:
    """Both give nanoseconds; text that is none is refused in one line."""
    assert RestartPolicy(interval="1h30m").interval == 5_400_000_000_000
    with pytest.raises(InputError, match=r"'1d' is not a duration"):
        RestartPolicy(interval="1d")


def test_attempts_that_do_not_fit_are_told_what_would() -> None:
    """The figures beside the sentence are those in it."""
    (problem,) = RestartPolicy(attempts=4, interval="25s", delay="10s").problems()
    assert problem.code is ProblemCode.ATTEMPTS_DO_NOT_FIT_INTERVAL
    assert problem.sentence == "4 attempts need an interval of 40s; yours is 25s"
    assert (problem.possible_attempts, problem.recommended_interval) == (2, 40_000_000_000)
