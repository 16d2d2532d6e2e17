"""Random numbers: pinned for good, and distributed as they should be."""

import math
import statistics

import pytest

from pyresched.errors import InputError
from pyresched.simulator.draws import Draws, chance, checked_seed


def test_the_numbers_of_a_seed_are_pinned() -> None:
    """A log made today is made again in any year: these are that promise, on any machine."""
    assert Draws(0).unit() == 0.8444218515250481
    assert chance(0, "job-1", 2) == chance(0, "job-1", 2) == 0.12851210842225458
    assert Draws.named(0, "sizes").unit() == 0.5178177462504098


def test_a_chance_depends_on_all_its_names_and_nothing_else() -> None:
    """Two names that read alike when run together are not the same."""
    assert len({chance(0, "a", 1), chance(1, "a", 1), chance(0, "b", 1), chance(0, "a", 2)}) == 4
    assert chance(0, "a1", "b") != chance(0, "a", "1b")


def test_chances_are_uniform() -> None:
    """Ten thousand names fall evenly into ten boxes."""
    boxes = [0] * 10
    for number in range(10_000):
        boxes[int(chance(7, "job", number) * 10)] += 1
    assert all(900 < count < 1100 for count in boxes)


@pytest.mark.parametrize(("shape", "scale"), [(1.0, 2.0), (4.2, 0.94), (312.0, 0.03)])
def test_gamma_has_its_mean_and_deviation(shape: float, scale: float) -> None:
    """Mean shape x scale, deviation sqrt(shape) x scale."""
    draws = Draws(5)
    values = [draws.gamma(shape, scale) for _ in range(20_000)]
    assert statistics.fmean(values) == pytest.approx(shape * scale, rel=0.02)
    assert statistics.stdev(values) == pytest.approx(math.sqrt(shape) * scale, rel=0.03)


def test_weibull_and_lognormal_have_their_means() -> None:
    """As their formulas say."""
    draws = Draws(6)
    weibull = [draws.weibull(shape=0.7, scale=10.0) for _ in range(20_000)]
    assert statistics.fmean(weibull) == pytest.approx(10 * math.gamma(1 + 1 / 0.7), rel=0.04)
    lognormal = [draws.lognormal(median=3.0, sigma=0.5) for _ in range(20_000)]
    assert statistics.fmean(lognormal) == pytest.approx(3 * math.exp(0.125), rel=0.02)
    assert statistics.median(lognormal) == pytest.approx(3.0, rel=0.02)


def test_zero_is_a_seed_and_a_negative_number_is_not() -> None:
    """The message says what would be right."""
    assert checked_seed(0) == 0
    with pytest.raises(InputError, match="seed -1: write a whole number from 0"):
        checked_seed(-1)
    with pytest.raises(InputError, match="seed"):
        Draws(2**64)
