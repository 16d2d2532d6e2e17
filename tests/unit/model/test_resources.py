"""Quantities as people write them, and the vectors that they make."""

from decimal import localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyresched.errors import InputError
from pyresched.model import Resource, ResourceSpec, ResourceVector, Rounding, parse_quantity

SPEC = ResourceSpec((Resource("cpu", "1m"), Resource("memory", "1Mi"), Resource("gpu")))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", Fraction(2)),
        (2, Fraction(2)),
        (0.1, Fraction(1, 10)),
        ("500m", Fraction(1, 2)),
        ("1e3", Fraction(1000)),
        ("1.5Gi", Fraction(3 * 2**29)),
        ("1.", Fraction(1)),
        (".5", Fraction(1, 2)),
        ("4k", Fraction(4000)),
        ("-1", Fraction(-1)),
        ("0.1n", Fraction(1, 10**10)),
    ],
)
def test_quantities_are_read_exactly(text: str | float, value: Fraction) -> None:
    """No quantity passes through binary fractions."""
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "x", "1K", "1ki", "1 Gi", "٣", "1e", "--1", "9" * 500, "1e999", True, None,
     float("nan"), float("inf")],
)  # fmt: skip
def test_what_is_no_quantity_is_refused(text: object) -> None:
    """One line with an example, also right after the number that it equals."""
    parse_quantity(1)
    with pytest.raises(InputError, match="is not a quantity; write a number"):
        parse_quantity(text)  # type: ignore[arg-type]


def test_requests_round_up_and_capacity_rounds_down() -> None:
    """So nothing is promised twice."""
    written = {"cpu": "1.0001", "memory": "1.5Mi"}
    assert SPEC.vector(written, rounding=Rounding.UP) == ResourceVector([1001, 2, 0])
    assert SPEC.vector(written, rounding=Rounding.DOWN) == ResourceVector([1000, 1, 0])


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ({"cpus": 1}, "unknown resource 'cpus'; did you mean 'cpu'?"),
        ({"cpu": -1}, "cpu: -1 is negative; write 0 or more"),
        ({"cpu": "-0.0001"}, "cpu: -0.0001 is negative"),
        ({"gpu": 2**63}, "past what can be counted"),
        ({"cpu": "much"}, "'much' is not a quantity"),
    ],
)
def test_a_vector_of_bad_quantities_is_refused(written: dict, right: str) -> None:
    """The resource, the amount and the remedy are named."""
    with pytest.raises(InputError) as caught:
        SPEC.vector(written, rounding=Rounding.UP)
    assert right in str(caught.value)


AMOUNTS = st.lists(st.integers(0, 2**63 - 1), min_size=3, max_size=3)


@given(AMOUNTS, st.integers(1, 30))
def test_amounts_survive_the_way_to_text_and_back(amounts: list[int], precision: int) -> None:
    """Exactly, under whatever decimal context the caller has set."""
    vector = ResourceVector(amounts)
    with localcontext() as context:
        context.prec = precision
        assert SPEC.vector(SPEC.quantities(vector), rounding=Rounding.UP) == vector


@given(st.lists(AMOUNTS, max_size=5))
def test_the_sum_of_vectors_saturates(many: list[list[int]]) -> None:
    """It never wraps."""
    total = SPEC.sum(ResourceVector(amounts) for amounts in many)
    assert total.to_tuple() == tuple(
        min(sum(amounts[i] for amounts in many), 2**63 - 1) for i in range(3)
    )
