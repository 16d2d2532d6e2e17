import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.model import Resource, ResourceVector
from pyresched.scheduling.shares import ShareRule, Standing, constrained_demand


def rule(*total, fraction=1.0, multipliers=(1.0, 1.0), uncapped=False):
    """Shares of a pool of *total*."""
    return ShareRule(
        ResourceVector(total), multipliers, protected_fraction=fraction, protect_uncapped=uncapped
    )


def standing(queue, held, asked, weight=1.0, now=None):
    """A queue by how many hundredths of each resource it holds and asks for."""
    return (
        queue,
        weight,
        ResourceVector((held, held)),
        ResourceVector((asked, asked)),
        ResourceVector((held if now is None else now,) * 2),
    )


def test_the_larger_of_fair_and_adjusted_share_is_protected():
    """A queue that asks for little keeps its fair share; what it leaves goes to the others."""
    standings = [standing("a", 1, 0), standing("b", 60, 40), standing("c", 30, 0)]
    a, b, c = rule(100, 100).figures(standings)
    assert (a.fair_share, a.adjusted_share, a.protected_share) == (1 / 3, 0.01, 1 / 3)
    assert b.adjusted_share == b.protected_share == pytest.approx(0.69)
    assert (c.adjusted_share, c.protected_share) == (0.3, 1 / 3)


def test_the_protected_fraction_scales_what_is_protected():
    """Half of a half."""
    claims = rule(100, 100, fraction=0.5).claims([standing("a", 0, 100), standing("b", 0, 100)])
    assert claims == [("a", 0.25, 0.5), ("b", 0.25, 0.5)]


def test_demand_is_what_runs_and_what_waits():
    """Both in cost of the dominant resource."""
    (only,) = rule(100, 100).figures([standing("a", 30, 20, now=50)])
    assert (only.actual_share, only.demand_share, only.resulting_share) == (0.3, 0.5, 0.5)


def test_everyone_wants_all_of_a_pool_that_has_nothing():
    """Shares by weight, no division by zero."""
    a, b = rule(0, 0).figures([standing("a", 0, 5), standing("b", 0, 5, weight=3.0)])
    assert (a.demand_share, a.adjusted_share, a.actual_share) == (1.0, 0.25, 0.0)
    assert b.adjusted_share == 0.75


def test_no_queue_is_no_share():
    """An empty round counts nothing."""
    assert rule(1, 1).figures([]) == ()
    assert rule(1, 1).claims([]) == []


def test_the_uncapped_share_is_protected_where_that_is_asked_for():
    """A queue that asks for little keeps what it would get if it asked for all."""
    standings = [standing("a", 1, 0), standing("b", 40, 0), standing("c", 30, 70)]
    for fraction in (1.0, 0.5):
        a, b, c = rule(100, 100, fraction=fraction, uncapped=True).figures(standings)
        assert b.protected_share == pytest.approx(0.495 * fraction)
        assert [a.uncapped_share, b.uncapped_share] == pytest.approx([1 / 3, 0.495])
        assert c.protected_share == pytest.approx(0.59 * fraction)
        assert rule(100, 100, fraction=fraction, uncapped=True).claims(standings) == [
            (each.queue, each.protected_share, each.adjusted_share) for each in (a, b, c)
        ]


def test_what_a_class_may_not_have_is_no_demand():
    """Each class is cut to its limit before they are added; one without a limit counts whole."""
    v = ResourceVector
    by_class = {"low": v((90, 10)), "high": v((20, 20)), "free": v((1, 2))}
    limits = {"low": v((50, 100)), "high": v((30, 5)), "none": v((0, 0))}
    assert constrained_demand(by_class, limits, v((0, 0))) == v((71, 17))
    assert constrained_demand({}, limits, v((0, 0))) == v((0, 0))


def test_adjusted_shares_go_by_constrained_demand():
    """What a queue may not have anyway is handed on; its whole demand is shown beside."""
    limited = Standing(*standing("a", 0, 100), constrained=ResourceVector((20, 20)))
    a, b = rule(100, 100).figures([limited, standing("b", 0, 100)])
    assert (a.demand_share, a.constrained_demand_share) == (1.0, 0.2)
    assert (b.demand_share, b.constrained_demand_share) == (1.0, 1.0)
    assert (a.adjusted_share, b.adjusted_share) == pytest.approx((0.2, 0.8))
    assert a.protected_share == a.fair_share == 0.5


def test_a_penalty_is_shown_and_entitles_to_nothing():
    """It counts when turns are taken; neither what is held nor what is protected has it in it."""
    plain = standing("a", 10, 10)
    late = Standing(*plain, penalty=ResourceVector((25, 5)))
    (a,), (b,) = rule(100, 100).figures([plain]), rule(100, 100).figures([late])
    assert (a.penalty_share, b.penalty_share) == (0.0, 0.25)
    assert structs.replace(b, penalty_share=0.0) == a


def test_an_overridden_weight_is_shown_beside_the_raw_one():
    """Shares go by the weight; without an override the two are the same."""
    heavy = Standing(*standing("a", 0, 100, weight=3.0), raw_weight=1.5)
    a, b = rule(100, 100).figures([heavy, standing("b", 0, 100)])
    assert (a.weight, a.raw_weight, a.fair_share) == (3.0, 1.5, 0.75)
    assert (b.weight, b.raw_weight) == (1.0, 1.0)


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf, -math.inf])
def test_a_queue_whose_weight_cannot_be_used_takes_nothing_from_the_others(weight):
    """All its shares are 0, theirs as though it were not there."""
    bad = Standing(*standing("a", 10, 90, weight=weight), raw_weight=weight)
    others = [standing("b", 0, 100), standing("c", 0, 100)]
    a, *rest = rule(100, 100).figures([bad, *others])
    assert tuple(rest) == rule(100, 100).figures(others)
    assert (a.weight, a.raw_weight, a.fair_share, a.adjusted_share) == (0.0, 0.0, 0.0, 0.0)
    assert (a.uncapped_share, a.protected_share, a.actual_share) == (0.0, 0.0, 0.1)
    assert rule(100, 100).claims([bad]) == [("a", 0.0, 0.0)]


def test_the_rule_of_a_pool_is_what_the_configuration_says():
    """Floating quantities count in the total; the pool's fraction and option go first."""
    config = SchedulingConfig(
        resources=(Resource("cpu", "1"), Resource("licences", "1", floating=True)),
        protected_fraction=0.25,
        pools=(
            PoolConfig(
                name="own", floating={"licences": 10}, protected_fraction=0.5, protect_uncapped=True
            ),
            PoolConfig(name="plain", fairness_resources={"cpu": 2.0}),
        ),
    )
    v = ResourceVector
    own = ShareRule.of(config, "own", v((100, 0)))
    asks = [
        ("a", 1.0, v((0, 0)), v((1, 5)), v((0, 0))),
        ("b", 1.0, v((0, 0)), v((9, 9)), v((0, 0))),
    ]
    a, b = own.figures(asks)
    assert (a.demand_share, b.demand_share) == (0.5, 0.9)
    assert (a.uncapped_share, a.protected_share) == (0.5, 0.25)
    plain = ShareRule.of(config, "plain", v((100, 0)))
    a, b = plain.figures(asks)
    assert (a.demand_share, b.demand_share) == (0.02, 0.18)
    assert a.protected_share == 0.125


amounts = st.one_of(st.integers(0, 200), st.sampled_from([0, 2**63 - 1]))
vectors = st.tuples(amounts, amounts).map(ResourceVector)
odd_weights = st.one_of(
    st.floats(0.1, 10), st.floats(), st.sampled_from([5e-324, 1.7e308, 0.0, math.inf])
)
anything = st.builds(
    Standing,
    queue=st.sampled_from("abcdef"),
    weight=odd_weights,
    held=vectors,
    asked=vectors,
    now=vectors,
    constrained=st.none() | vectors,
    penalty=st.none() | vectors,
    raw_weight=st.none() | odd_weights,
)


@given(
    st.lists(anything, max_size=6, unique_by=lambda each: each.queue),
    st.tuples(amounts, amounts),
    st.floats(0, 3),
    st.booleans(),
)
def test_no_figure_is_ever_nan(standings, total, fraction, uncapped):
    """Whatever weights and amounts are; none is negative, and shares are parts of one pool."""
    counted = rule(*total, fraction=fraction, uncapped=uncapped)
    figures = counted.figures(standings)
    for each in figures:
        for name, value in structs.asdict(each).items():
            assert name == "queue" or (math.isfinite(value) and value >= 0)
    assert math.fsum(each.adjusted_share for each in figures) <= 1 + 1e-9
    assert counted.claims(standings) == [
        (each.queue, each.protected_share, each.adjusted_share) for each in figures
    ]


@given(
    st.lists(
        st.tuples(st.integers(1, 5), st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=5
    )
)
def test_adjusted_shares_are_the_water_level_in_fractions(queues):
    """Poured one full queue at a time, without rounding."""
    standings = [
        standing(str(i), held, asked, weight=float(weight))
        for i, (weight, held, asked) in enumerate(queues)
    ]
    demands = [Fraction(held + asked, 100) for _, held, asked in queues]
    left, open_ = Fraction(1), set(range(len(queues)))
    level = [Fraction(0)] * len(queues)
    while open_:
        each = left / sum(queues[i][0] for i in open_)
        full = {i for i in open_ if demands[i] <= each * queues[i][0]}
        for i in full or open_:
            level[i] = demands[i] if full else each * queues[i][0]
            left -= level[i] if full else 0
        open_ -= full or open_
    found = [each.adjusted_share for each in rule(100, 100).figures(standings)]
    assert found == pytest.approx([float(each) for each in level], abs=1e-12)
