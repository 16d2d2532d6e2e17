"""Owners of jobs and units of fairness, with what each may hold."""

import sys
from collections.abc import Iterator, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

from pyresched.errors import InputError
from pyresched.ids import QueueName

__all__ = ["Queue", "fraction_faults", "queue_faults"]


class Queue(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """An owner of jobs. `weight` is its claim relative to other queues, above 0 and finite.

    `max_fraction_by_class` says, by class and resource, what part of a pool its jobs of a class
    may hold, in place of what the class says; `max_fraction_by_class_by_pool`, by class, pool
    and resource, goes before that. Raises InputError for an empty name, such a weight or a
    fraction that is none, TypeError for what is of another kind.
    """

    name: QueueName
    weight: float = 1.0
    cordoned: bool = False
    max_fraction_by_class: dict[str, dict[str, float]] = {}
    max_fraction_by_class_by_pool: dict[str, dict[str, dict[str, float]]] = {}
    version: int = 1

    if TYPE_CHECKING:  # who makes one need not wrap its name

        def __init__(
            self,
            *,
            name: str,
            weight: float = 1.0,
            cordoned: bool = False,
            max_fraction_by_class: dict[str, dict[str, float]] = ...,
            max_fraction_by_class_by_pool: dict[str, dict[str, dict[str, float]]] = ...,
            version: int = 1,
        ) -> None: ...

    def __post_init__(self) -> None:
        name: object = self.name
        weight: object = self.weight
        if not isinstance(name, str):
            raise TypeError(f"the name of a queue is a str, got {name!r}")
        if isinstance(weight, bool) or not isinstance(weight, int | Real):
            raise TypeError(f"queue {name!r}: weight is a number, got {weight!r}")
        number = weight if isinstance(weight, int) else float(weight)
        fractions = {
            field: _copied(limits, depth, f"queue {name!r}: {field}")
            for field, depth in _DEPTHS.items()
            if (limits := getattr(self, field)) != {}
        }
        for path, sentence in queue_faults(name, number, **fractions):
            raise InputError(f"queue {name!r}: {'.'.join(path)} {sentence}")
        structs.force_setattr(self, "weight", float(number))  # NumPy's cannot be written down
        for field, limits in fractions.items():
            structs.force_setattr(self, field, limits)


# How many names lead to a fraction.
_DEPTHS: Final = {"max_fraction_by_class": 2, "max_fraction_by_class_by_pool": 3}


def queue_faults(
    name: str,
    weight: float,
    max_fraction_by_class: Mapping[str, Any] = {},
    max_fraction_by_class_by_pool: Mapping[str, Any] = {},
) -> Iterator[tuple[tuple[str, ...], str]]:
    """The path of each value of such a queue that cannot be used, with a sentence."""
    if not name:
        yield ("name",), "is empty; write a name"
    if not 0 < weight <= sys.float_info.max:
        yield ("weight",), f"{weight} is no weight; write a finite number above 0"
    yield from fraction_faults(("max_fraction_by_class",), max_fraction_by_class)
    yield from fraction_faults(("max_fraction_by_class_by_pool",), max_fraction_by_class_by_pool)


def fraction_faults(
    path: tuple[str, ...], fractions: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """The path of each of *fractions*, at whatever depth, that is none, with a sentence."""
    for name, inner in fractions.items():
        if isinstance(inner, Mapping):
            yield from fraction_faults((*path, name), inner)
        elif not 0 <= inner <= sys.float_info.max:
            sentence = f"{inner} is no fraction; write a finite number from 0 (1: the whole pool)"
            yield (*path, name), sentence


def _copied(limits: object, depth: int, where: str) -> dict[str, Any]:
    """*limits* as plain dicts of floats, *depth* deep. Raises TypeError for what is none."""
    if not isinstance(limits, Mapping):
        raise TypeError(f"{where} is a mapping by name, got {limits!r}")
    copied: dict[str, Any] = {}
    for key, inner in limits.items():
        if not isinstance(key, str):
            raise TypeError(f"{where}: a name is a str, got {key!r}")
        if depth > 1:
            copied[key] = _copied(inner, depth - 1, f"{where}.{key}")
        elif isinstance(inner, bool) or not isinstance(inner, int | Real):
            raise TypeError(f"{where}.{key}: a fraction is a number, got {inner!r}")
        else:
            copied[key] = inner if isinstance(inner, int) else float(inner)
    return copied
