"""The cost of an allocation: figures worked out by hand, one by one and many at once."""

import math
from array import array

import pytest

from pyresched.errors import InputError
from pyresched.fairness import DominantResourceFairness
from pyresched.model import ResourceVector

V = ResourceVector
# Thousandths, so that halves are whole: totals 1, 2, 3.
FOO_BAR = DominantResourceFairness(V((1000, 2000, 3000)), (1, 1, 0))


@pytest.mark.parametrize(
    ("allocation", "cost"),
    [
        ((500, 0, 0), 0.5),
        ((0, 500, 0), 0.25),
        ((500, 1100, 0), 0.55),
        ((0, 0, 3000), 0.0),
        ((0, 0, 0), 0.0),
        ((2000, 0, 0), 2.0),
        ((-500, 0, 0), 0.0),
        ((-500, 100, 0), 0.05),
    ],
)
def test_the_dominant_share_is_the_cost(allocation, cost):
    """The largest share of what counts; never negative; above 1 when more is held than there is."""
    assert FOO_BAR.unweighted_cost(V(allocation)) == cost
    assert FOO_BAR.weighted_cost(V(allocation), 2) == cost / 2


def test_a_resource_of_which_there_is_none_costs_nothing():
    """Totals of zero, all or some."""
    some = DominantResourceFairness(V((1000, 0)), (1, 1))
    assert some.unweighted_cost(V((500, 1000))) == 0.5
    none = DominantResourceFairness(V((0, 0)), (1, 1))
    assert none.unweighted_cost(V((500, 1000))) == 0.0
    assert none.unweighted_costs([V((1, 1))]) == [0.0]


def test_multipliers_say_what_counts_for_how_much():
    """Four times as dear, half as dear, not at all."""
    total = V((1000, 2000))
    assert DominantResourceFairness(total, (4, 1)).unweighted_cost(V((500, 0))) == 2.0
    assert DominantResourceFairness(total, (0, 0.5)).unweighted_cost(V((900, 2000))) == 0.5


def test_many_are_as_one_by_one():
    """Vectors give a list, rows of a buffer an array; with weights and without."""
    allocations = [V((3 * n, 5 * n % 7, n)) for n in range(50)]
    weights = [0.5 + n for n in range(50)]
    alone = [FOO_BAR.unweighted_cost(each) for each in allocations]
    weighted = [FOO_BAR.weighted_cost(*both) for both in zip(allocations, weights, strict=True)]
    assert FOO_BAR.unweighted_costs(allocations) == alone
    assert FOO_BAR.weighted_costs(iter(allocations), iter(weights)) == weighted
    flat = array("q", [amount for each in allocations for amount in each])
    rows = memoryview(flat).cast("B").cast("q", shape=(50, 3))
    assert FOO_BAR.unweighted_costs(rows) == array("d", alone)
    assert FOO_BAR.weighted_costs(rows, array("d", weights)) == array("d", weighted)
    assert FOO_BAR.weighted_costs(rows, weights) == array("d", weighted)
    assert FOO_BAR.unweighted_costs([]) == []


def test_numpy_rows_are_read_in_place():
    """Any two-dimensional C-ordered int64 buffer will do."""
    numpy = pytest.importorskip("numpy", reason="a rival in benchmarks, not a dependency")
    rows = numpy.arange(30, dtype=numpy.int64).reshape(10, 3)
    expected = [FOO_BAR.unweighted_cost(V(row.tolist())) for row in rows]
    assert FOO_BAR.unweighted_costs(rows).tolist() == expected
    for wrong in (rows.astype("float64"), rows.astype("int32"), rows[0], rows.T):
        with pytest.raises(ValueError, match=r".+"):
            FOO_BAR.unweighted_costs(wrong)
    assert list(FOO_BAR.unweighted_costs(rows[:0])) == []


@pytest.mark.parametrize("weight", [0, -1, math.nan, math.inf, -math.inf])
def test_weights_that_are_none_are_refused_everywhere(weight):
    """Single, in a list, in a buffer; nothing is returned by half."""
    one = V((1, 1, 1))
    rows = memoryview(array("q", one)).cast("B").cast("q", shape=(1, 3))
    for call in (
        lambda: FOO_BAR.weighted_cost(one, weight),
        lambda: FOO_BAR.weighted_costs([one, one], [1, weight]),
        lambda: FOO_BAR.weighted_costs(rows, array("d", [weight])),
        lambda: FOO_BAR.weighted_costs(rows, [weight]),
    ):
        with pytest.raises(InputError, match="write a finite number above 0"):
            call()


def test_shapes_must_agree():
    """Widths of vectors and rows, and one weight for each allocation."""
    rows = memoryview(array("q", [1, 1])).cast("B").cast("q", shape=(1, 2))
    for call in (
        lambda: FOO_BAR.unweighted_cost(V((1, 1))),
        lambda: FOO_BAR.weighted_cost(V((1, 1)), 1),
        lambda: FOO_BAR.unweighted_costs([V((1, 1, 1)), V((1,))]),
        lambda: FOO_BAR.unweighted_costs(rows),
        lambda: FOO_BAR.weighted_costs([V((1, 1, 1))], [1, 1]),
        lambda: FOO_BAR.weighted_costs([V((1, 1, 1))], []),
        lambda: DominantResourceFairness(V((1, 1)), (1,)),
    ):
        with pytest.raises(InputError):
            call()
    one = memoryview(array("q", [1, 1, 1])).cast("B").cast("q", shape=(1, 3))
    with pytest.raises(InputError, match="2 weights for 1 allocations"):
        FOO_BAR.weighted_costs(one, [1, 1])


@pytest.mark.parametrize("multiplier", [-1, math.nan, math.inf])
def test_multipliers_that_are_none_are_refused(multiplier):
    """Negative or not finite."""
    with pytest.raises(InputError, match=r"multiplier .* of resource 1; write a finite number"):
        DominantResourceFairness(V((1, 1)), (1, multiplier))


def test_a_negative_total_is_refused():
    """A pool has nothing or something."""
    with pytest.raises(InputError, match="total -1 of resource 0; write 0 or more"):
        DominantResourceFairness(V((-1, 1)), (1, 1))


def test_the_ends_of_int64_are_no_trap():
    """No product, no wrap."""
    most = 2**63 - 1
    whole = DominantResourceFairness(V((most, 1)), (1, 1))
    assert whole.unweighted_cost(V((most, 0))) == 1.0
    assert whole.unweighted_cost(V((0, most))) == float(most)
    assert whole.unweighted_cost(V((-most - 1, 0))) == 0.0


def test_wrong_types_are_type_errors():
    """None is no vector."""
    for call in (
        lambda: FOO_BAR.unweighted_cost(None),
        lambda: FOO_BAR.unweighted_costs([None]),
        lambda: FOO_BAR.unweighted_costs([(1, 1, 1)]),
        lambda: FOO_BAR.weighted_cost(V((1, 1, 1)), "1"),
        lambda: FOO_BAR.unweighted_costs(None),
    ):
        with pytest.raises(TypeError):
            call()
