"""Problems of a policy: their sentences, their severity, and what moves them."""

import pytest
from msgspec import structs

from pyresched.errors import InputError
from pyresched.model import NANOS, ReschedulePolicy
from pyresched.reschedule import (
    ProblemCode,
    RestartPolicy,
    Severity,
    problems,
    restarts_on_success,
)

HOUR = 3600 * NANOS
FINE = {"attempts": 3, "interval": HOUR, "delay": 30 * NANOS}


def codes(policy: ReschedulePolicy | None, severity: Severity, **options: object) -> list[str]:
    """The codes of one severity, in order."""
    found = problems(policy, **options)
    return [problem.code.value for problem in found if problem.severity is severity]


def test_the_defaults_of_every_job_type_are_fine() -> None:
    """No default has a problem, in either dialect."""
    for job_type in ("service", "batch", "system", "sysbatch"):
        for dialect in ("nomad", "exact"):
            default = ReschedulePolicy.default(job_type)
            assert problems(default, job_type=job_type, dialect=dialect) == ()


@pytest.mark.parametrize(
    ("fields", "code", "sentence"),
    [
        (
            {"interval": 0},
            ProblemCode.ATTEMPTS_NEED_INTERVAL,
            "attempts = 3 need an interval; write at least 15s",
        ),
        (
            {"unlimited": True},
            ProblemCode.ATTEMPTS_AND_UNLIMITED_AMBIGUOUS,
            "attempts = 3 beside unlimited = true; drop attempts, or write unlimited = false",
        ),
        (
            {"delay": NANOS // 2},
            ProblemCode.DELAY_BELOW_MINIMUM,
            "delay is 500ms; write at least 1s",
        ),
        (
            {"delay_function": "exponental"},
            ProblemCode.UNKNOWN_DELAY_FUNCTION,
            "delay_function 'exponental' is unknown; did you mean 'exponential'?",
        ),
        (
            {"delay_function": "exponential"},
            ProblemCode.MAX_DELAY_BELOW_MINIMUM,
            "max_delay is 0s; write at least 1s",
        ),
        (
            {"delay_function": "fibonacci", "max_delay": 20 * NANOS},
            ProblemCode.MAX_DELAY_BELOW_DELAY,
            "max_delay 20s is below delay 30s; write at least 30s",
        ),
        (
            {"interval": 10 * NANOS, "delay": NANOS},
            ProblemCode.INTERVAL_BELOW_MINIMUM,
            "interval is 10s; write at least 15s",
        ),
        (
            {"attempts": 10, "delay": 1200 * NANOS},
            ProblemCode.ATTEMPTS_DO_NOT_FIT_INTERVAL,
            "10 attempts need an interval of 3h20m; yours is 1h",
        ),
        (
            {"attempts": 1, "interval": 20 * NANOS},
            ProblemCode.ATTEMPTS_DO_NOT_FIT_INTERVAL,
            "1 attempt needs an interval of 30s; yours is 20s",
        ),
    ],
)
def test_each_problem_says_what_would_be_right(fields, code, sentence) -> None:
    """The first problem of a policy that is fine but for *fields*."""
    first = problems(ReschedulePolicy(**{**FINE, **fields}))[0]
    assert (first.code, first.severity, first.sentence) == (code, Severity.ERROR, sentence)


@pytest.mark.parametrize(
    ("fields", "interval"),
    [
        # Nomad's check wants more than 40 s, in whole seconds.
        ({"attempts": 3, "delay": 10 * NANOS, "max_delay": HOUR}, "41s"),
        # What both want is less than the least interval.
        ({"attempts": 2, "delay": NANOS, "max_delay": 2 * NANOS}, "15s"),
        # The longest duration stays as it is.
        (
            {"attempts": 2**62, "delay": HOUR, "max_delay": HOUR},
            "2562047h47m16.854775807s",
        ),
    ],
)
def test_a_recommended_interval_is_in_whole_seconds_and_enough(fields, interval) -> None:
    """Rounded up, never below 15 s."""
    policy = ReschedulePolicy(interval=1, delay_function="exponential", **fields)
    *_, last = problems(policy)
    assert (
        last.sentence == f"{policy.attempts} attempts need an interval of {interval}; yours is 1ns"
    )


@pytest.mark.parametrize(
    ("policy", "options", "sentence"),
    [
        (
            ReschedulePolicy(),
            {"job_type": "system"},
            "a system job is never rescheduled; drop the reschedule block",
        ),
        (
            None,
            {"job_type": "batch"},
            "a batch job needs a reschedule policy; merge it with its defaults",
        ),
        (
            ReschedulePolicy(delay="4s", unlimited=True),
            {},
            "delay is 4s with unlimited = true; write at least 5s, or limit the attempts",
        ),
        (
            ReschedulePolicy(attempts=3, delay="10s", unlimited=True, interval="1h"),
            {"origins": {"attempts": "group", "unlimited": "job"}},
            (
                "attempts = 3 (group) beside unlimited = true (job); "
                "drop attempts, or write unlimited = false"
            ),
        ),
    ],
)
def test_problems_of_more_than_a_field_are_told_too(policy, options, sentence) -> None:
    """Types without and with a policy, haste without an end, and who wrote what excludes."""
    assert problems(policy, **options)[0].sentence == sentence


def test_a_policy_that_never_ends_is_told_its_figures() -> None:
    """The exact check's own, and the whole seconds that both checks want."""
    policy = ReschedulePolicy(
        attempts=15, interval="26m30s", delay="30s", delay_function="exponential", max_delay="2m"
    )
    (problem,) = policy.problems()
    assert problem.sentence == (
        "15 attempts need an interval of 27m1s to be used up; yours is 26m30s, "
        "so a job that always fails may never stop"
    )
    assert (problem.possible_attempts, problem.recommended_interval) == (14, 1620 * NANOS + 1)
    (enough,) = ReschedulePolicy(
        attempts=3, interval="20s", delay="10s", delay_function="constant"
    ).problems()
    assert enough.sentence == "3 attempts need an interval of 30s; yours is 20s"


def test_the_edge_of_each_least_figure_belongs_to_what_is_right() -> None:
    """An interval of 15 s, a max_delay of the minimum."""
    assert ReschedulePolicy(attempts=1, interval="15s", delay="5s").problems() == ()
    least = ReschedulePolicy(
        attempts=2, interval="1m", delay="3s", delay_function="exponential", max_delay="3s"
    )
    assert least.problems(min_delay="3s") == ()


def test_a_policy_passes_on_what_it_is_asked() -> None:
    """Its own method answers as the function does."""
    policy = ReschedulePolicy(attempts=15, interval="1600s", delay="30s", max_delay="2m")
    policy = structs.replace(policy, delay_function="exponential")
    for options in ({}, {"job_type": "system"}, {"min_delay": "1m"}, {"dialect": "exact"}):
        assert policy.problems(**options) == problems(policy, **options) != ()
    assert len({policy.problems(**each) for each in ({}, {"dialect": "exact"})}) == 2
    assert str(ReschedulePolicy.default("service")) == (
        "unlimited with exponential delay, max_delay = 1h0m0s"
    )


def test_a_single_attempt_needs_an_interval_too() -> None:
    """And any interval at all is one."""
    one = ReschedulePolicy(attempts=1, interval=0, delay=5 * NANOS)
    assert codes(one, Severity.ERROR)[0] == "attempts_need_interval"
    tiny = ReschedulePolicy(attempts=1, interval=1, delay=5 * NANOS)
    assert codes(tiny, Severity.ERROR)[0] == "interval_below_minimum"


def test_a_policy_of_a_type_that_has_none_is_an_error() -> None:
    """Even a disabled one; and a type that has one needs one."""
    for job_type in ("system", "sysbatch"):
        found = problems(ReschedulePolicy(), job_type=job_type)
        assert found[0].code is ProblemCode.SYSTEM_OR_SYSBATCH_MUST_NOT_HAVE_POLICY
        assert problems(None, job_type=job_type) == ()
    assert problems(None, job_type="batch")[0].code is ProblemCode.POLICY_REQUIRED
    assert problems(None) == ()


def test_a_disabled_policy_has_no_problems() -> None:
    """Whatever its other fields say."""
    junk = ReschedulePolicy(attempts=0, interval=1, delay=-5, delay_function="x", max_delay=-1)
    assert problems(junk) == ()


def test_the_minimum_moves_delay_and_max_delay_together() -> None:
    """At 5 s, what passes at 1 s is two errors; a senseless minimum is an InputError."""
    policy = ReschedulePolicy(
        delay=2 * NANOS, delay_function="exponential", max_delay=3 * NANOS, unlimited=True
    )
    assert codes(policy, Severity.ERROR) == []
    assert codes(policy, Severity.WARNING) == ["low_delay_with_unlimited"]
    for five in ("5s", 5 * NANOS):
        assert codes(policy, Severity.ERROR, min_delay=five) == [
            "delay_below_minimum",
            "max_delay_below_minimum",
        ]
        assert codes(policy, Severity.WARNING, min_delay=five) == []
    with pytest.raises(InputError):
        problems(policy, min_delay="1d")


def test_a_low_delay_is_a_warning_only_where_nothing_ends_it() -> None:
    """From 5 s on, or with a limit, there is none."""
    low = ReschedulePolicy(delay=4 * NANOS, unlimited=True)
    assert codes(low, Severity.WARNING) == ["low_delay_with_unlimited"]
    assert problems(ReschedulePolicy(delay=5 * NANOS, unlimited=True)) == ()
    assert problems(ReschedulePolicy(attempts=3, interval=HOUR, delay=4 * NANOS)) == ()


@pytest.mark.parametrize(
    ("policy", "nomad", "exact"),
    [
        # Each attempt fits Nomad's figure, but the window refills before they are used up.
        (
            ReschedulePolicy(
                attempts=15,
                interval=1590 * NANOS,
                delay=30 * NANOS,
                delay_function="exponential",
                max_delay=120 * NANOS,
            ),
            ([], ["attempts_never_exhausted"]),
            (["attempts_never_exhausted"], []),
        ),
        # Four delays of 15 s are used up within a minute, which Nomad's figure does not see.
        (
            ReschedulePolicy(attempts=4, interval=60 * NANOS - 1, delay=15 * NANOS),
            (["attempts_do_not_fit_interval"], []),
            ([], ["attempts_do_not_fit_interval"]),
        ),
        # Neither check passes.
        (
            ReschedulePolicy(attempts=10, interval=HOUR, delay=1200 * NANOS),
            (["attempts_do_not_fit_interval"], []),
            (["attempts_never_exhausted"], ["attempts_do_not_fit_interval"]),
        ),
    ],
)
def test_the_dialect_decides_which_check_is_an_error(policy, nomad, exact) -> None:
    """The figure of the other check comes as a warning."""
    assert (codes(policy, Severity.ERROR), codes(policy, Severity.WARNING)) == nomad
    exactly = {"dialect": "exact"}
    assert (
        codes(policy, Severity.ERROR, **exactly),
        codes(policy, Severity.WARNING, **exactly),
    ) == exact


def test_the_verdicts_of_the_exact_dialect_change_for_four_known_policies() -> None:
    """Those that the specification names, and no other, among the facts on validation."""
    from kit.reschedule_vectors import facts, policy_of

    changed = []
    for row in facts("validate"):
        policy = policy_of(row["policy"])
        nomad = not codes(policy, Severity.ERROR, min_delay="5s")
        if nomad != (not codes(policy, Severity.ERROR, min_delay="5s", dialect="exact")):
            changed.append(row["id"])
    assert changed == ["V25", "V28", "V30", "V31"]


def test_what_nobody_knows_is_named_with_the_nearest() -> None:
    """Types of jobs and dialects, wherever one is asked for."""
    for ask in (ReschedulePolicy.default, RestartPolicy.default, restarts_on_success):
        with pytest.raises(InputError, match="job type 'bach' is unknown; did you mean 'batch'"):
            ask("bach")
    with pytest.raises(InputError, match="dialect 'exakt' is unknown; did you mean 'exact'"):
        problems(None, dialect="exakt")
