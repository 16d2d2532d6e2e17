"""Queues: what none can be is refused when it is made."""

import math

import numpy as np
import pytest

from pyresched.errors import InputError
from pyresched.model import Queue


@pytest.mark.parametrize("weight", [0, -1, -0.5, math.nan, math.inf, -math.inf, 10**400])
def test_a_weight_that_is_no_claim_is_refused(weight) -> None:
    """One line names the queue, the weight and what would be right."""
    with pytest.raises(InputError) as refused:
        Queue(name="q", weight=weight)
    text = str(refused.value)
    assert text == f"queue 'q': weight {weight} is no weight; write a finite number above 0"


def test_a_queue_without_a_name_is_refused() -> None:
    """Nobody could submit to it."""
    with pytest.raises(InputError, match="name is empty; write a name"):
        Queue(name="")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"name": 3}, "the name of a queue is a str, got 3"),
        ({"name": "q", "weight": "2"}, "queue 'q': weight is a number, got '2'"),
        ({"name": "q", "weight": True}, "queue 'q': weight is a number, got True"),
        ({"name": "q", "weight": None}, "queue 'q': weight is a number, got None"),
    ],
)
def test_a_field_of_another_type_is_named(fields, told) -> None:
    """With what was given."""
    with pytest.raises(TypeError) as refused:
        Queue(**fields)
    assert str(refused.value) == told


@pytest.mark.parametrize("weight", [2, 2.0, np.float32(2), np.float64(2), np.int64(2)], ids=type)
def test_a_weight_is_a_plain_float(weight) -> None:
    """So that it can be written down, whoever counted it."""
    assert type(Queue(name="q", weight=weight).weight) is float
    assert Queue(name="q", weight=weight) == Queue(name="q", weight=2.0)
