"""Queues: what none can be is refused when it is made."""

import math

import msgspec
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
        (
            {"name": "q", "max_fraction_by_class": [1]},
            "queue 'q': max_fraction_by_class is a mapping by name, got [1]",
        ),
        (
            {"name": "q", "max_fraction_by_class": {"c": 1}},
            "queue 'q': max_fraction_by_class.c is a mapping by name, got 1",
        ),
        (
            {"name": "q", "max_fraction_by_class": {3: {}}},
            "queue 'q': max_fraction_by_class: a name is a str, got 3",
        ),
        (
            {"name": "q", "max_fraction_by_class_by_pool": {"c": {"p": {"cpu": True}}}},
            "queue 'q': max_fraction_by_class_by_pool.c.p.cpu: a fraction is a number, got True",
        ),
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


@pytest.mark.parametrize("fraction", [-1, -0.1, math.nan, math.inf, 10**400])
def test_a_fraction_that_is_none_is_refused(fraction) -> None:
    """By its path, at whatever depth."""
    for fields, path in (
        ({"max_fraction_by_class": {"c": {"cpu": fraction}}}, "max_fraction_by_class.c.cpu"),
        (
            {"max_fraction_by_class_by_pool": {"c": {"p": {"cpu": fraction}}}},
            "max_fraction_by_class_by_pool.c.p.cpu",
        ),
    ):
        with pytest.raises(InputError) as refused:
            Queue(name="q", **fields)
        assert str(refused.value).startswith(f"queue 'q': {path} {fraction} is no fraction; write")


def test_limits_are_a_copy_in_plain_numbers() -> None:
    """What becomes of the mapping that was given does not change the queue; it can be written."""
    given = {"c": {"cpu": np.float64(0.5)}}
    queue = Queue(name="q", max_fraction_by_class=given)
    given["c"]["cpu"] = np.float64(0.7)
    assert queue.max_fraction_by_class == {"c": {"cpu": 0.5}}
    assert type(queue.max_fraction_by_class["c"]["cpu"]) is float
    assert msgspec.json.decode(msgspec.json.encode(queue), type=Queue) == queue


def test_a_queue_shows_what_differs_from_any() -> None:
    """The rest is left out."""
    assert repr(Queue(name="q")) == "Queue(name='q')"
