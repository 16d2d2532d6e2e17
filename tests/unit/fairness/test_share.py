"""Shares by weight and demand: figures worked out by hand."""

import math

import pytest

from pyresched.errors import InputError
from pyresched.fairness import fairness_error, shares, theoretical_share


def near(*figures):
    """The figures but for rounding."""
    return pytest.approx(figures, abs=1e-12)


BY_HAND = [
    ([1], [0.01], [1], [0.01], [1]),
    ([1, 1], [0.01, 0.01], [0.5, 0.5], [0.01, 0.01], [0.99, 0.99]),
    ([1, 1], [0.01, 10], [0.5, 0.5], [0.01, 0.99], [0.5, 0.99]),
    ([1, 3], [1, 1], [0.25, 0.75], [0.25, 0.75], [0.25, 0.75]),
    ([1, 3], [0.01, 1], [0.25, 0.75], [0.01, 0.99], [0.25, 0.99]),
    ([1, 3], [1, 0.01], [0.25, 0.75], [0.99, 0.01], [0.99, 0.75]),
    ([1, 1, 1], [0, 0, 0], [1 / 3] * 3, [0, 0, 0], [1, 1, 1]),
    ([1, 1, 1], [1, 1, 1], [1 / 3] * 3, [1 / 3] * 3, [1 / 3] * 3),
    ([1, 1], [math.inf, 0.25], [0.5, 0.5], [0.75, 0.25], [0.75, 0.5]),
    ([1, 1], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]),
]
# Where Armada's loop is wrong: after two passes it counts again what it has counted already.
THREE_PASSES = ([1, 1, 1], [0.01, 0.4, 10])
MORE_THAN_ALL = ([2, 1, 0.1], [0, 0.4, 1])


@pytest.mark.parametrize("compat", ["exact", "armada"])
@pytest.mark.parametrize("by_hand", BY_HAND)
def test_shares_are_those_worked_out_by_hand(compat, by_hand):
    """What is not wanted goes to the others by weight; Armada's loop says the same of these."""
    weights, demands, fair, adjusted, uncapped = by_hand
    found = shares(weights, demands, compat)
    assert found.fair == near(*fair)
    assert found.adjusted == near(*adjusted)
    assert found.uncapped == near(*uncapped)


def test_uncapped_shares_are_exact_where_the_loop_is_not():
    """The infinite-demand share of each queue, beside what Armada's own tests pin."""
    exact, armada = shares(*THREE_PASSES), shares(*THREE_PASSES, compat="armada")
    assert exact.adjusted == armada.adjusted == near(0.01, 0.4, 0.59)
    assert exact.uncapped == near(1 / 3, 0.495, 0.59)
    assert armada.uncapped == near(0.380_833_333_333_333_3, 0.495, 0.59)
    exact, armada = shares(*MORE_THAN_ALL), shares(*MORE_THAN_ALL, compat="armada")
    assert exact.uncapped == near(20 / 31, 10 / 11, 0.6)
    assert armada.uncapped[0] == pytest.approx(1.13, abs=0.005)


def test_the_loop_leaves_a_hundredth_of_the_pool_with_nobody():
    """It stops when no more is free; the water level is reached exactly."""
    weights, demands = [100, 1], [0.985, 9]
    assert sum(shares(weights, demands).adjusted) == pytest.approx(1)
    assert sum(shares(weights, demands, "armada").adjusted) == pytest.approx(1 / 101 + 0.985)


def test_the_loop_knows_weights_of_any_size():
    """Their sum may leave the range of a double; no figure does."""
    huge, tiny = 1.7e308, 5e-324
    for weights in ([huge, huge, huge], [huge, tiny, huge], [tiny, tiny, tiny]):
        found = shares(weights, [0.1, 0.5, math.inf], "armada")
        assert all(0 <= each <= 2 for figures in found for each in figures)


def test_another_way_to_count_is_refused():
    """The message names the nearest."""
    with pytest.raises(InputError, match=r"compat 'armadda' .*did you mean 'armada'"):
        shares([1], [1], "armadda")


@pytest.mark.parametrize("compat", ["exact", "armada"])
@pytest.mark.parametrize(
    ("others", "demands", "share"),
    [
        ([], [], 1.0),
        ([1], [5], 0.5),
        ([1, 1], [5, 5], 1 / 3),
        ([0.5], [5], 2 / 3),
        ([2], [5], 1 / 3),
        ([1], [0.01], 0.99),
    ],
)
def test_what_a_newcomer_of_weight_one_could_count_on(compat, others, demands, share):
    """The share of one more queue without end to its demand."""
    found = theoretical_share(others, demands, compat=compat)
    assert found == pytest.approx(share)


def test_what_a_heavier_newcomer_could_count_on():
    """By its weight, against those that have enough to do."""
    assert theoretical_share([1, 1], [5, 5], weight=2) == pytest.approx(0.5)
    with pytest.raises(InputError, match="write a finite number above 0"):
        theoretical_share([1], [1], weight=0)


def test_the_fairness_error_is_what_queues_miss():
    """What one has above its share makes up for nothing."""
    assert fairness_error([0.5, 0.5], [0.25, 0.75]) == 0.25
    assert fairness_error([0.5, 0.25], [0.125, 0.125]) == 0.5
    assert fairness_error([0.2], [0.9]) == 0.0
    assert fairness_error([], []) == 0.0
    with pytest.raises(ValueError, match="shorter"):
        fairness_error([0.5, 0.5], [0.5])


def test_no_queues_no_shares():
    """Empty in, empty out."""
    assert shares([], []) == ((), (), ())


@pytest.mark.parametrize("weight", [0, -1, -0.0, math.nan, math.inf, -math.inf])
def test_weights_that_are_none_are_refused(weight):
    """The message shows the weight and says what would be right."""
    with pytest.raises(InputError, match="write a finite number above 0") as raised:
        shares([1, weight], [1, 1])
    assert repr(weight) in str(raised.value)


@pytest.mark.parametrize("demand", [-0.1, math.nan, -math.inf])
def test_demands_that_are_none_are_refused(demand):
    """Negative or not a number."""
    with pytest.raises(InputError, match="write a share from 0"):
        shares([1, 1], [demand, 1])


def test_lengths_must_agree():
    """One demand for each weight."""
    with pytest.raises(InputError, match="2 weights for 1 demands"):
        shares([1, 1], [1])


def test_what_is_no_number_is_a_type_error():
    """Not a silent zero."""
    with pytest.raises(TypeError):
        shares(["a"], [1])
    with pytest.raises(TypeError):
        shares([1], [None])
