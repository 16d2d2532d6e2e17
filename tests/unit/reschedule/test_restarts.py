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
    RestartVerdict,
    Severity,
    next_restart,
    restart_bits,
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


def test_a_verdict_shows_all_its_figures() -> None:
    """Used of what there is, the history to hand in next, and the end itself where nothing follows."""
    policy = RestartPolicy(attempts=2, interval=100, delay=10)
    again = next_restart(policy, (50,), Exit.FAILED, now=80, on_success=False)
    assert again == RestartVerdict(
        action=RestartAction.RESTART,
        at=90,
        wait=10,
        history=(50, 90),
        attempted=2,
        attempts=2,
    )
    for ended, action in [
        (Exit.FAILED, RestartAction.FAIL),
        (Exit.UNRECOVERABLE, RestartAction.FAIL),
        (Exit.SUCCEEDED, RestartAction.DONE),
    ]:
        over = next_restart(policy, (50, 60), ended, now=80, on_success=False)
        assert over == RestartVerdict(
            action=action, at=80, wait=0, history=(50, 60), attempted=2, attempts=2
        )
    asked = next_restart(policy, (50, 60), Exit.ASKED, now=80, on_success=False)
    assert (asked.attempted, asked.attempts, asked.wait) == (2, 2, 0)
    assert next_restart(None, (), Exit.FAILED, now=0, on_success=False).attempts == 0


def test_a_restart_leaves_the_window_when_it_is_an_interval_old() -> None:
    """One that would come exactly then counts no more; a nanosecond earlier it does."""
    policy = RestartPolicy(attempts=1, interval=100, delay=10)
    for now, action in [(140, RestartAction.RESTART), (139, RestartAction.FAIL)]:
        assert next_restart(policy, (50,), Exit.FAILED, now=now, on_success=False).action is action


def test_mode_delay_waits_until_the_window_lets_one_go() -> None:
    """The oldest of as many as there are attempts; what is then an interval old is forgotten."""
    policy = RestartPolicy(attempts=2, interval=100, delay=10, mode="delay")
    verdict = next_restart(policy, (20, 50, 60), Exit.FAILED, now=65, on_success=False)
    assert (verdict.at, verdict.wait) == (150, 85)
    assert (verdict.history, verdict.attempted) == ((60, 150), 2)


def test_more_than_64_bits_are_cut_to_them() -> None:
    """Whatever source the caller has, jitter stays within a quarter."""
    policy = RestartPolicy(attempts=1, interval="1h", delay=1000)
    for bits, wait in [(2**64, 1000), (2**64 + 2**63, 1125), (2**65 - 1, 1249)]:
        assert (
            next_restart(policy, (), Exit.FAILED, now=0, on_success=False, bits=bits).wait == wait
        )


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
        assert not restarts_on_success(job_type.value, hook="poststart")
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


@pytest.mark.parametrize(
    ("fields", "code", "sentence"),
    [
        (
            {"mode": "dealy"},
            ProblemCode.UNKNOWN_MODE,
            "mode 'dealy' is unknown; did you mean 'delay'?",
        ),
        (
            {"attempts": 0, "mode": "delay"},
            ProblemCode.ZERO_ATTEMPTS_AMBIGUOUS,
            "attempts = 0 never restarts, so mode must be fail; write mode, or attempts",
        ),
        (
            {"interval": "4999ms", "delay": "1s"},
            ProblemCode.INTERVAL_BELOW_MINIMUM,
            "interval is 4.999s; write at least 5s",
        ),
        (
            {"attempts": 4, "interval": "25s", "delay": "10s"},
            ProblemCode.ATTEMPTS_DO_NOT_FIT_INTERVAL,
            "4 attempts need an interval of 40s; yours is 25s",
        ),
        (
            {"attempts": 1, "interval": "5s", "delay": "6s"},
            ProblemCode.ATTEMPTS_DO_NOT_FIT_INTERVAL,
            "1 attempt needs an interval of 6s; yours is 5s",
        ),
    ],
)
def test_each_problem_says_what_would_be_right(
    fields: dict[str, object], code: ProblemCode, sentence: str
) -> None:
    """The only problem of a policy that is fine but for *fields*."""
    fine = {"attempts": 2, "interval": "1m", "delay": "15s", "mode": "fail"}
    (problem,) = RestartPolicy(**{**fine, **fields}).problems()
    assert (problem.code, problem.sentence) == (code, sentence)
    assert problem.severity is Severity.ERROR


@pytest.mark.parametrize(
    "fields",
    [
        {"attempts": 4, "interval": "40s", "delay": "10s"},
        {"attempts": 0, "interval": "5s", "delay": "10s"},
        {"attempts": -1, "interval": "5s", "delay": "10s"},
        {"attempts": 2, "interval": "5s", "mode": "delay"},
    ],
)
def test_what_just_fits_is_no_problem(fields: dict[str, object]) -> None:
    """The edge belongs to what is right."""
    assert RestartPolicy(**fields).problems() == ()


def test_attempts_that_do_not_fit_are_told_what_would() -> None:
    """The figures beside the sentence are those in it."""
    (problem,) = RestartPolicy(attempts=4, interval="25s", delay="10s").problems()
    assert (problem.possible_attempts, problem.recommended_interval) == (2, 40_000_000_000)
    *_, problem = RestartPolicy(attempts=2, interval=-5, delay=1).problems()
    assert (problem.possible_attempts, problem.recommended_interval) == (0, 2)
    for fields in ({"attempts": 0, "delay": 1}, {"attempts": 2, "delay": 0}):
        (problem,) = RestartPolicy(interval=-5, **fields).problems()
        assert problem.code is ProblemCode.INTERVAL_BELOW_MINIMUM


@pytest.mark.parametrize(
    ("seed", "run_id", "number", "bits"),
    [
        (0, "run-1", 0, 4667058489491682106),
        (7, "run-1", 0, 2820340657827454728),
        (0, "run-2", 0, 11493405093358565264),
        (0, "run-1", 1, 13490269100141346515),
    ],
)
def test_the_bits_of_a_restart_are_those_of_its_seed_run_and_number(
    seed: int, run_id: str, number: int, bits: int
) -> None:
    """On any machine, in any release: what was simulated once can be simulated again."""
    assert restart_bits(seed, run_id, number) == bits
