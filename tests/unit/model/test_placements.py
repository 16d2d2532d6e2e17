"""Placements in columns, against the same placements as values."""

import pickle
from array import array

import pytest

from pyresched.model import METHODS, Method, Placement, Placements

VALUES = (
    Placement("j1", "n1", 1000),
    Placement("j2", "n0", 5, Method.URGENCY),
    Placement("j3", "n1", 1000, Method.AWAY),
)


def columns() -> Placements:
    """`VALUES`, each column of the kind that a round hands out."""
    return Placements(
        job_ids=["j1", "j2", "j3"],
        nodes=memoryview(array("i", [1, 0, 1])),
        priorities=array("q", [1000, 5, 1000]),
        methods=bytes([0, 2, 3]),
        node_ids=("n0", "n1"),
    )


def test_columns_read_as_the_values_do() -> None:
    """By place, from the end, by slice, in a walk, and backwards."""
    made = columns()
    assert len(made) == 3
    assert tuple(made) == VALUES
    assert [made[i] for i in range(-3, 3)] == [*VALUES, *VALUES]
    assert tuple(made[1:]) == VALUES[1:]
    assert tuple(made[::-1]) == tuple(reversed(made)) == VALUES[::-1]
    assert VALUES[1] in made
    assert made.index(VALUES[2]) == 2
    with pytest.raises(IndexError):
        made[3]


def test_columns_equal_the_same_placements_in_any_form() -> None:
    """And nothing that differs in length, order or one field."""
    made = columns()
    assert made == columns() == VALUES
    assert list(VALUES) == made
    assert made != VALUES[:2]
    assert made != VALUES[::-1]
    assert made[:0] == ()
    assert made != "placements"


def test_a_copy_stands_alone() -> None:
    """Its columns hold no memory of the round."""
    copy = pickle.loads(pickle.dumps(columns()[1:]))  # noqa: S301 - our own bytes
    assert copy == VALUES[1:]
    assert type(copy.nodes) is array


def test_columns_of_different_lengths_are_named() -> None:
    """The message says which is how long."""
    with pytest.raises(ValueError, match="2 job_ids, 1 nodes, 2 priorities, 2 methods"):
        Placements(["a", "b"], [0], [1, 1], [0, 0], ["n"])


def test_codes_of_methods_stay_what_they_are() -> None:
    """Native code writes them; a new one goes last."""
    assert [each.value for each in METHODS] == ["no_preemption", "fair_share", "urgency", "away"]
