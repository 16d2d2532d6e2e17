"""Exact shares against a slow reference that only knows how to pour water: INV-F1 to INV-F4."""

import math
import sys
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyresched.fairness import DominantResourceFairness, shares, theoretical_share
from pyresched.model import ResourceVector

demands = st.one_of(
    st.just(0.0), st.floats(0, 2), st.floats(0, 1e-6), st.just(math.inf), st.just(1.0)
)
weights = st.one_of(st.floats(0.01, 100), st.floats(1e-9, 1e9), st.sampled_from([1.0, 2.0]))
queues = st.lists(st.tuples(weights, demands), min_size=1, max_size=12)


def poured(weights, demands):
    """What each gets of 1 by bisection of the water level, in exact fractions."""
    if sum(demands) <= 1:
        return list(demands)
    exact = [Fraction(weight) for weight in weights]
    caps = [None if math.isinf(demand) else Fraction(demand) for demand in demands]

    def filled(level):
        return [
            weight * level if cap is None else min(weight * level, cap)
            for weight, cap in zip(exact, caps, strict=True)
        ]

    low, high = Fraction(0), 1 / min(exact)
    while sum(filled(high)) < 1:
        high *= 2
    for _ in range(160):
        middle = (low + high) / 2
        if sum(filled(middle)) < 1:
            low = middle
        else:
            high = middle
    return [float(share) for share in filled(low)]


@given(queues)
def test_shares_are_the_water_level(given_queues):
    """Adjusted, and for each queue what it would get without end to its own demand."""
    given_weights, given_demands = zip(*given_queues, strict=True)
    found = shares(given_weights, given_demands)
    whole = math.fsum(given_weights)
    assert found.fair == pytest.approx([w / whole for w in given_weights], rel=1e-12)
    assert found.adjusted == pytest.approx(poured(given_weights, given_demands), abs=1e-9)
    for i, share in enumerate(found.uncapped):
        endless = [math.inf if k == i else d for k, d in enumerate(given_demands)]
        assert share == pytest.approx(poured(given_weights, endless)[i], abs=1e-9)


@given(queues, weights)
def test_a_newcomer_gets_what_it_could_count_on(given_queues, weight):
    """The theoretical share is that of one queue more whose demand has no end."""
    given_weights, given_demands = zip(*given_queues, strict=True)
    exact = poured([*given_weights, weight], [*given_demands, math.inf])[-1]
    found = theoretical_share(given_weights, given_demands, weight=weight)
    assert found == pytest.approx(exact, abs=1e-9)


@given(queues)
def test_the_loop_of_the_reference_is_near_the_water_level(given_queues):
    """Adjusted shares miss at most the hundredth that it hands to nobody; no figure is NaN."""
    given_weights, given_demands = zip(*given_queues, strict=True)
    exact = shares(given_weights, given_demands)
    loop = shares(given_weights, given_demands, "armada")
    assert loop.fair == exact.fair
    handed_out = math.fsum(loop.adjusted)
    assert handed_out <= math.fsum(exact.adjusted) + 1e-9
    for found, right, demand in zip(loop.adjusted, exact.adjusted, given_demands, strict=True):
        assert found <= demand
        assert found <= right + 1e-9
    assert not any(map(math.isnan, loop.uncapped))


@given(queues)
def test_shares_keep_their_promises(given_queues):
    """Nobody above its demand, nothing left while someone wants it, nobody below its fair part."""
    given_weights, given_demands = zip(*given_queues, strict=True)
    found = shares(given_weights, given_demands)
    assert math.fsum(found.fair) == pytest.approx(1)
    assert math.fsum(found.adjusted) == pytest.approx(min(1, math.fsum(given_demands)))
    for fair, adjusted, uncapped, demand in zip(*found, given_demands, strict=True):
        assert 0 <= adjusted <= demand
        assert adjusted >= min(fair, demand) - 1e-12
        assert adjusted <= uncapped <= 1 + 1e-12
        assert uncapped >= fair - 1e-12


@given(queues, st.randoms())
def test_shares_do_not_hang_on_the_order_of_the_queues(given_queues, random):
    """Any order gives each queue the same share."""
    shuffled = list(enumerate(given_queues))
    random.shuffle(shuffled)
    straight = shares(*zip(*given_queues, strict=True))
    mixed = shares(*zip(*(queue for _, queue in shuffled), strict=True))
    for one, other in zip(straight, mixed, strict=True):
        assert [one[i] for i, _ in shuffled] == pytest.approx(list(other), abs=1e-12)


@given(st.lists(st.tuples(st.floats(5e-324, sys.float_info.max), demands), min_size=1, max_size=6))
def test_weights_of_any_size_give_shares(given_queues):
    """No overflow, no NaN, nothing negative, and all of the pool is given to those who want it."""
    given_weights, given_demands = zip(*given_queues, strict=True)
    found = shares(given_weights, given_demands)
    for each in (*found.fair, *found.adjusted, *found.uncapped):
        assert 0 <= each <= 1 + 1e-9
    assert math.fsum(found.adjusted) == pytest.approx(min(1, math.fsum(given_demands)), abs=1e-9)


amounts = st.integers(-(2**63), 2**63 - 1)


@given(
    st.lists(st.tuples(st.integers(0, 2**63 - 1), st.floats(0, 1e6)), min_size=1, max_size=5),
    st.data(),
)
def test_costs_are_the_largest_share(pool, data):
    """Never negative; many are as one by one, bit for bit."""
    totals, multipliers = zip(*pool, strict=True)
    fairness = DominantResourceFairness(ResourceVector(totals), multipliers)
    rows = data.draw(st.lists(st.tuples(*[amounts] * len(pool)), max_size=6))
    vectors = [ResourceVector(row) for row in rows]
    expected = [
        max(
            [0.0]
            + [
                float(amount) / float(total) * multiplier
                for amount, total, multiplier in zip(row, totals, multipliers, strict=True)
                if total
            ]
        )
        for row in rows
    ]
    assert [fairness.unweighted_cost(each) for each in vectors] == expected
    assert fairness.unweighted_costs(vectors) == expected
    factors = data.draw(st.lists(st.floats(1e-3, 1e3), min_size=len(rows), max_size=len(rows)))
    assert fairness.weighted_costs(vectors, factors) == [
        fairness.weighted_cost(each, factor) for each, factor in zip(vectors, factors, strict=True)
    ]
