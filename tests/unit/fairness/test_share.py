"""Shares by weight and demand: figures worked out by hand."""

import math

import pytest

from pyresched.errors import InputError
from pyresched.fairness import shares


def near(*figures):
    """The figures but for rounding."""
    return pytest.approx(figures, abs=1e-12)


@pytest.mark.parametrize(
    ("weights", "demands", "fair", "adjusted", "uncapped"),
    [
        ([1], [0.01], [1], [0.01], [1]),
        ([1, 1], [0.01, 0.01], [0.5, 0.5], [0.01, 0.01], [0.99, 0.99]),
        ([1, 1], [0.01, 10], [0.5, 0.5], [0.01, 0.99], [0.5, 0.99]),
        ([1, 3], [1, 1], [0.25, 0.75], [0.25, 0.75], [0.25, 0.75]),
        ([1, 3], [0.01, 1], [0.25, 0.75], [0.01, 0.99], [0.25, 0.99]),
        ([1, 3], [1, 0.01], [0.25, 0.75], [0.99, 0.01], [0.99, 0.75]),
        ([1, 1, 1], [0.01, 0.4, 10], [1 / 3] * 3, [0.01, 0.4, 0.59], [1 / 3, 0.495, 0.59]),
        ([1, 1, 1], [0, 0, 0], [1 / 3] * 3, [0, 0, 0], [1, 1, 1]),
        ([1, 1, 1], [1, 1, 1], [1 / 3] * 3, [1 / 3] * 3, [1 / 3] * 3),
        ([2, 1, 0.1], [0, 0.4, 1], [20 / 31, 10 / 31, 1 / 31], [0, 0.4, 0.6], [20 / 31, 10 / 11, 0.6]),
        ([1, 1], [math.inf, 0.25], [0.5, 0.5], [0.75, 0.25], [0.75, 0.5]),
        ([1, 1], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]),
    ],
)  # fmt: skip
def test_shares_are_those_worked_out_by_hand(weights, demands, fair, adjusted, uncapped):
    """What is not wanted goes to the others by weight, exactly."""
    found = shares(weights, demands)
    assert found.fair == near(*fair)
    assert found.adjusted == near(*adjusted)
    assert found.uncapped == near(*uncapped)


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
def test_what_a_newcomer_of_weight_one_would_get(others, demands, share):
    """The share of one more queue without end to its demand."""
    assert shares([*others, 1], [*demands, math.inf]).adjusted[-1] == pytest.approx(share)


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
