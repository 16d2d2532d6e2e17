"""`ResourceVector` against plain Python integers, cut to int64 where it says it saturates."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyresched.model import ResourceVector

LOWEST, HIGHEST = -(2**63), 2**63 - 1

amount = st.integers(LOWEST, HIGHEST) | st.sampled_from([LOWEST, -1, 0, 1, HIGHEST])


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two rows of amounts of one width, 0 included."""
    width = draw(st.integers(0, 5))
    row = st.lists(amount, min_size=width, max_size=width)
    return draw(row), draw(row)


def cut(value: int) -> int:
    """*value* at the nearest end of int64."""
    return max(LOWEST, min(HIGHEST, value))


@given(pairs())
def test_sums_and_differences_are_exact_or_at_the_end_of_int64(
    rows: tuple[list[int], list[int]],
) -> None:
    """Nothing wraps: outside int64 the nearest end stands."""
    a, b = rows
    assert (ResourceVector(a) + ResourceVector(b)).to_tuple() == tuple(
        cut(x + y) for x, y in zip(a, b, strict=True)
    )
    assert (ResourceVector(a) - ResourceVector(b)).to_tuple() == tuple(
        cut(x - y) for x, y in zip(a, b, strict=True)
    )


@given(st.lists(amount, max_size=5), amount)
def test_a_scaled_vector_is_exact_or_at_the_end_of_int64(row: list[int], factor: int) -> None:
    """Products saturate, for every combination of signs."""
    assert ResourceVector(row).scaled(factor).to_tuple() == tuple(cut(x * factor) for x in row)


@given(pairs())
def test_comparisons_go_resource_by_resource(rows: tuple[list[int], list[int]]) -> None:
    """`fits_in`, `first_exceeding` and `capped` agree with the rows compared in Python."""
    a, b = rows
    over = [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x > y]
    assert ResourceVector(a).fits_in(ResourceVector(b)) == (not over)
    assert ResourceVector(a).first_exceeding(ResourceVector(b)) == (over[0] if over else None)
    assert list(ResourceVector(a).capped(ResourceVector(b))) == [
        min(x, y) for x, y in zip(a, b, strict=True)
    ]


@given(st.lists(amount, max_size=5))
def test_a_vector_is_the_sequence_of_its_amounts(row: list[int]) -> None:
    """Length, index, iteration, floor and the two questions about signs."""
    vector = ResourceVector(row)
    assert (len(vector), list(vector), vector.to_tuple()) == (len(row), row, tuple(row))
    assert [vector[i] for i in range(len(row))] == row
    assert list(vector.floor_at_zero()) == [max(x, 0) for x in row]
    assert vector.is_zero == (not any(row))
    assert vector.has_negative == any(x < 0 for x in row)


@given(pairs())
def test_equal_amounts_are_equal_vectors_with_equal_hashes(
    rows: tuple[list[int], list[int]],
) -> None:
    """Value equality, also through pickle; never equal to a tuple."""
    a, b = rows
    assert (ResourceVector(a) == ResourceVector(b)) == (a == b)
    copy = pickle.loads(pickle.dumps(ResourceVector(a)))  # noqa: S301 - our own bytes
    assert copy == ResourceVector(a)
    assert hash(copy) == hash(ResourceVector(a))
    assert ResourceVector(a) != tuple(a)


def test_vectors_of_different_width_do_not_combine() -> None:
    """Every operation on two vectors raises and names both widths."""
    two, three = ResourceVector([1, 2]), ResourceVector([1, 2, 3])
    for combine in (
        lambda: two + three,
        lambda: two - three,
        lambda: two.capped(three),
        lambda: two.fits_in(three),
        lambda: two.first_exceeding(three),
    ):
        with pytest.raises(ValueError, match="vectors of 2 and 3 resources"):
            combine()
    assert two != three


@pytest.mark.parametrize("outside", [HIGHEST + 1, LOWEST - 1, 2**100])
def test_an_amount_outside_int64_is_refused(outside: int) -> None:
    """OverflowError, never a cut amount."""
    with pytest.raises(OverflowError):
        ResourceVector([outside])
    with pytest.raises(OverflowError):
        ResourceVector([1]).scaled(outside)


def test_amounts_are_whole_numbers() -> None:
    """A float or text is a TypeError: rounding belongs to `ResourceSpec`."""
    for wrong in (1.5, "1", None):
        with pytest.raises(TypeError):
            ResourceVector([wrong])  # type: ignore[list-item]


def test_an_index_outside_is_an_error() -> None:
    """Negative indices too: a resource has a number, not a distance from the end."""
    vector = ResourceVector([1, 2])
    for index in (-1, 2):
        with pytest.raises(IndexError, match=f"resource {index} of 2"):
            vector[index]


def test_zero_has_the_width_that_was_asked_for() -> None:
    """`zero(n)`; a negative width is a ValueError."""
    assert ResourceVector.zero(3).to_tuple() == (0, 0, 0)
    assert ResourceVector.zero(0) == ResourceVector()
    with pytest.raises(ValueError, match="width must not be negative, got -1"):
        ResourceVector.zero(-1)


def test_a_vector_cannot_be_changed() -> None:
    """No item assignment, no attribute."""
    vector = ResourceVector([1])
    with pytest.raises(TypeError):
        vector[0] = 2  # type: ignore[index]
    with pytest.raises(AttributeError):
        vector.amounts = (2,)  # type: ignore[attr-defined]
