"""Whether attempts fit their interval, by both checks."""

import pytest
from msgspec import structs

from kit.policies import always_failing
from pyresched.model import NANOS, ReschedulePolicy
from pyresched.reschedule.fit import exact_fit, nomad_fit


def policy(
    attempts: int, interval: float, delay: float, function: str, max_delay: float = 0
) -> ReschedulePolicy:
    """A limited policy in seconds."""
    return ReschedulePolicy(
        attempts=attempts,
        interval=round(interval * NANOS),
        delay=round(delay * NANOS),
        delay_function=function,
        max_delay=round(max_delay * NANOS),
    )


@pytest.mark.parametrize("function", ["constant", "exponential", "fibonacci"])
@pytest.mark.parametrize("attempts", [2**31, 2**63 - 1])
def test_any_number_of_attempts_is_answered_at_once(function, attempts) -> None:
    """Absurd limits saturate; a loop over them would never end."""
    absurd = policy(attempts, 24 * 3600, 5, function, 3600)
    for fit in (nomad_fit(absurd), exact_fit(absurd)):
        assert not fit.fits
        assert fit.interval <= fit.sufficient <= 2**63 - 1
        assert fit.possible < 20_000


def test_a_thousand_exponential_attempts_do_not_fit_a_day() -> None:
    """Doubling saturates instead of wrapping: about 41 days are needed."""
    fit = nomad_fit(policy(1000, 24 * 3600, 5, "exponential", 3600))
    assert not fit.fits
    assert 41 * 24 * 3600 < fit.interval / NANOS < 42 * 24 * 3600


@pytest.mark.parametrize("cap", [90, 65])
@pytest.mark.parametrize("interval", [900, 890, 65, 64])
def test_figures_just_above_the_steps_are_those_of_a_loop(interval, cap) -> None:
    """The closed form behind the cap goes on where the series stops."""
    for attempts in range(1, 40):
        one = policy(attempts, interval, 5, "exponential", cap)
        figures, figure = [], 0
        for i in range(attempts):
            delay = 5 * NANOS << i
            figure = figure + cap * NANOS if delay > cap * NANOS else delay
            figures.append(figure)
        fit = nomad_fit(one)
        assert fit.interval == figures[-1]
        assert fit.possible == sum(each < one.interval for each in figures)
        slots = [5 * NANOS, 5 * NANOS]
        capped = False
        while len(slots) < attempts:
            following = slots[-1] + (cap * NANOS if capped else slots[-2])
            if not capped and following > cap * NANOS:
                following, capped = cap * NANOS, True
            slots.append(following)
        fit = nomad_fit(structs.replace(one, delay_function="fibonacci"))
        assert fit.interval == slots[-1]
        past = [i for i, slot in enumerate(slots) if slot > one.interval]
        assert fit.possible == (past[0] if past else 0)
        assert type(fit.possible) is int


@pytest.mark.parametrize("function", ["constant", "exponential", "fibonacci"])
def test_the_possible_attempts_are_those_whose_own_interval_fits(function) -> None:
    """The exact check, counted one by one."""
    for interval in (1, 11, 30, 31, 191, 400):
        one = ReschedulePolicy(
            attempts=9, interval=interval, delay=5, delay_function=function, max_delay=60
        )
        own = [exact_fit(structs.replace(one, attempts=n)).interval for n in range(1, 10)]
        assert exact_fit(one).possible == sum(each <= interval for each in own)


def test_the_sufficient_interval_is_the_smallest_that_passes() -> None:
    """For the strict check it is one nanosecond above what that check recommends."""
    for function in ("constant", "exponential", "fibonacci"):
        for attempts in (2, 3, 9):
            one = policy(attempts, 1, 5, function, 60)
            enough = nomad_fit(one).sufficient
            assert nomad_fit(structs.replace(one, interval=enough)).fits
            assert not nomad_fit(structs.replace(one, interval=enough - 1)).fits


def test_nomads_check_passes_a_policy_that_never_stops() -> None:
    """15 exponential attempts from 30 s to 2 min pass in 26.5 min and are never used up."""
    one = policy(15, 26.5 * 60, 30, "exponential", 120)
    assert nomad_fit(one).fits
    assert not exact_fit(one).fits
    assert len(always_failing(one, most=200)) == 200
    hour = structs.replace(one, interval=3600 * NANOS)
    assert exact_fit(hour).fits
    assert len(always_failing(hour, most=200)) == 15


@pytest.mark.parametrize(
    ("function", "max_delay", "attempts", "interval"),
    [
        ("constant", 0, 2, 6),  # 5 5 | 5
        ("constant", 0, 4, 16),
        ("exponential", 1000, 4, 41),  # 5 10 20 40 | 80: the next delay ends it
        ("exponential", 60, 6, 191),  # 5 10 20 40 60 60 | 60: the full window ends it
        ("exponential", 10, 2, 11),  # 5 10 | 10
        ("exponential", 11, 2, 11),  # 5 10 | 11
        ("exponential", 10, 3, 21),  # 5 10 10 | 10
        ("fibonacci", 1000, 3, 11),  # 5 5 10 | 15
        ("fibonacci", 1000, 4, 31),  # 5 5 10 15 | 25
        ("fibonacci", 60, 6, 96),  # 5 5 10 15 25 40 | 60
        ("fibonacci", 60, 8, 216),  # 5 5 10 15 25 40 60 60 | 60
        ("fibonacci", 10, 4, 26),  # 5 5 10 10 | 10
    ],
)
def test_the_exact_interval_by_hand(function, max_delay, attempts, interval) -> None:
    """From 5 ns; behind the bar stands the delay that follows the last attempt."""
    one = ReschedulePolicy(
        attempts=attempts, interval=1, delay=5, delay_function=function, max_delay=max_delay
    )
    fit = exact_fit(one)
    assert (fit.interval, fit.sufficient, fit.fits) == (interval, interval, False)
    assert exact_fit(structs.replace(one, interval=interval)).fits
    assert len(always_failing(structs.replace(one, interval=interval))) == attempts


def test_delays_of_nothing_fit_any_interval_above_it() -> None:
    """Zero delays never reach a cap; a nanosecond is enough to count with."""
    for function in ("constant", "exponential", "fibonacci"):
        none = ReschedulePolicy(
            attempts=1000, interval=1, delay=0, delay_function=function, max_delay=9
        )
        fit = nomad_fit(none)
        assert (fit.fits, fit.interval) == (True, 0)
        assert fit.possible == (1000 if function == "exponential" else 0)
        assert not nomad_fit(structs.replace(none, interval=-1)).fits
    strict = ReschedulePolicy(
        attempts=1000, interval=0, delay=0, delay_function="exponential", max_delay=9
    )
    assert (nomad_fit(strict).fits, nomad_fit(strict).possible) == (False, 0)


def test_caps_of_a_nanosecond_are_counted_one_by_one() -> None:
    """The smallest figures that there are."""
    small = ReschedulePolicy(attempts=10, interval=3, delay=1)
    assert nomad_fit(small).possible == 3
    assert nomad_fit(structs.replace(small, interval=-1)).possible == 0
    assert nomad_fit(structs.replace(small, interval=7, delay=2)).possible == 3
    capped = ReschedulePolicy(
        attempts=5, interval=4, delay=1, delay_function="exponential", max_delay=1
    )
    assert nomad_fit(capped).possible == 3  # 1 2 3 | 4 5
    capped = structs.replace(capped, delay_function="fibonacci", attempts=500, interval=200)
    assert nomad_fit(capped).possible == 202  # 1 1 1 2 3 ... 200 | 201


def test_one_attempt_fits_any_interval() -> None:
    """The first reschedule is not held against the interval."""
    one = policy(1, 15, 20, "fibonacci", 3600)
    assert exact_fit(one).fits
    assert (exact_fit(one).possible, exact_fit(one).interval) == (1, 0)
    assert len(always_failing(one)) == 1
