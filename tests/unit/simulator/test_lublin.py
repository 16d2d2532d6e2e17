"""The workload model against what its paper and its authors' own sample say."""

import itertools
import math
import statistics
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyresched.simulator.draws import Draws
from pyresched.simulator.lublin import (
    ArrivalModel,
    RunTimeModel,
    SizeModel,
    gamma_cdf,
)

COUNT = 20_000


@pytest.fixture(scope="module")
def sizes() -> list[int]:
    """Sizes on a machine of 256 processors."""
    model, draws = SizeModel.of(256), Draws(1)
    return [model.draw(draws) for _ in range(COUNT)]


@pytest.fixture(scope="module")
def run_times(sizes: list[int]) -> list[float]:
    """Run times of jobs of those sizes."""
    model, draws = RunTimeModel(), Draws(2)
    return [model.draw(draws, size=size) for size in sizes]


def test_the_share_of_serial_jobs_is_the_published_one(sizes: list[int]) -> None:
    """24.4 % by choice, and the few that round down to 1."""
    assert sizes.count(1) / COUNT == pytest.approx(0.244, abs=0.01)


def test_the_share_of_powers_of_two_is_the_published_one(sizes: list[int]) -> None:
    """57.6 % by choice; the authors' sample of 10,000 jobs has 61.2 % with those by chance."""
    powers = sum(size > 1 and size & (size - 1) == 0 for size in sizes)
    assert powers / COUNT == pytest.approx(0.612, abs=0.015)


def test_sizes_have_the_median_and_mean_of_the_authors_sample(sizes: list[int]) -> None:
    """Their 10,000 jobs on 256 processors: median 8, mean 22.1, none above the machine."""
    assert statistics.median(sizes) == 8
    assert statistics.mean(sizes) == pytest.approx(22.1, rel=0.05)
    assert max(sizes) == 256


def test_run_times_have_the_median_and_mean_of_the_authors_sample(run_times: list[float]) -> None:
    """Their 10,000 jobs: median 137 s, mean 4,863 s; none above exp(12)."""
    assert statistics.median(run_times) == pytest.approx(137, rel=0.10)
    assert statistics.mean(run_times) == pytest.approx(4863, rel=0.05)
    assert max(run_times) <= math.exp(12)


def test_wide_jobs_run_longer(sizes: list[int], run_times: list[float]) -> None:
    """The short component weighs less with each processor."""
    wide = [time for size, time in zip(sizes, run_times, strict=True) if size >= 64]
    narrow = [time for size, time in zip(sizes, run_times, strict=True) if size <= 4]
    assert statistics.median(wide) > 5 * statistics.median(narrow)


def test_a_size_that_no_probability_covers_still_has_a_run_time() -> None:
    """The weight of the short component is kept between 0 and 1."""
    draws = Draws(3)
    long_runs = [RunTimeModel().draw(draws, size=10_000) for _ in range(200)]
    assert statistics.median(long_runs) == pytest.approx(math.exp(312 * 0.03), rel=0.2)


def test_arrivals_follow_the_day() -> None:
    """The busiest hours are those around two in the afternoon, the quietest at five at night."""
    model, draws = ArrivalModel(), Draws(4)
    times = list(model.times(model.gap(draws) for _ in range(COUNT)))
    assert times == sorted(times)
    hours = Counter(int(time // 3600) % 24 for time in times)
    by_count = sorted(range(24), key=lambda hour: hours[hour])
    assert set(by_count[:3]) <= {2, 3, 4, 5, 6}
    assert set(by_count[-3:]) <= {11, 12, 13, 14, 15, 16}
    gaps = [after - before for before, after in itertools.pairwise(times)]
    # The authors' sample: 116 s.
    assert statistics.median(gaps) == pytest.approx(116, rel=0.1)


def test_weights_of_half_hours_are_one_on_average() -> None:
    """So a gap at a time of mean weight lasts as long as it was drawn."""
    weights = ArrivalModel().weights()
    assert len(weights) == 48
    assert statistics.fmean(weights) == pytest.approx(1.0)
    assert all(weight > 0 for weight in weights)


@given(st.integers(1, 5000), st.integers(0, 1000))
def test_no_job_is_wider_than_its_machine(processors: int, seed: int) -> None:
    """Whatever the machine's size, 1 included."""
    model, draws = SizeModel.of(processors), Draws(seed)
    drawn = [model.draw(draws) for _ in range(20)]
    assert all(1 <= size <= processors for size in drawn)


def test_the_gamma_distribution_function_is_right_where_it_is_known() -> None:
    """Shape 1 is exponential, shape 2 is Erlang."""
    for x in (0.0, 0.1, 1.0, 7.0, 30.0):
        assert gamma_cdf(x, 1.0, 2.0) == pytest.approx(1 - math.exp(-x / 2))
        assert gamma_cdf(x, 2.0, 1.0) == pytest.approx(1 - math.exp(-x) * (1 + x))
