import pytest

from pyresched.model import ResourceVector
from pyresched.scheduling.shares import ShareRule


def rule(*total, fraction=1.0, multipliers=(1.0, 1.0)):
    """Shares of a pool of *total*."""
    return ShareRule(ResourceVector(total), multipliers, protected_fraction=fraction)


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
    assert rule(100, 100).protected(standings)["b"] == b.protected_share


def test_the_protected_fraction_scales_what_is_protected():
    """Half of a half."""
    protected = rule(100, 100, fraction=0.5).protected(
        [standing("a", 0, 100), standing("b", 0, 100)]
    )
    assert protected == {"a": 0.25, "b": 0.25}


def test_demand_is_what_runs_and_what_waits():
    """Both in cost of the dominant resource."""
    (only,) = rule(100, 100).figures([standing("a", 30, 20, now=50)])
    assert (only.actual_share, only.demand_share, only.resulting_share) == (0.3, 0.5, 0.5)


def test_exactly_at_a_share_is_not_above_it():
    """Not even where the quotient is not a double."""
    assert not rule(3, 3).is_above(ResourceVector((1, 1)), 1 / 3)
    assert not rule(10, 10).is_above(ResourceVector((3, 3)), 0.1 + 0.1 + 0.1 - 1e-12)
    assert rule(1000, 1000).is_above(ResourceVector((334, 0)), 1 / 3)


def test_everyone_wants_all_of_a_pool_that_has_nothing():
    """Shares by weight, no division by zero."""
    a, b = rule(0, 0).figures([standing("a", 0, 5), standing("b", 0, 5, weight=3.0)])
    assert (a.demand_share, a.adjusted_share, a.actual_share) == (1.0, 0.25, 0.0)
    assert b.adjusted_share == 0.75


def test_no_queue_is_no_share():
    """An empty round counts nothing."""
    assert rule(1, 1).figures([]) == ()
    assert rule(1, 1).protected([]) == {}
