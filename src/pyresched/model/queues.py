"""Owners of jobs and units of fairness, and the classes of urgency across them."""

import sys
from collections.abc import Iterator
from numbers import Real
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from pyresched.errors import InputError
from pyresched.model.ids import QueueName

__all__ = ["PriorityClass", "Queue", "queue_faults"]


class Queue(Struct, frozen=True, kw_only=True):
    """An owner of jobs. `weight` is its claim relative to other queues, above 0 and finite.

    Raises InputError for an empty name or such a weight, TypeError for what is none.
    """

    name: QueueName
    weight: float = 1.0
    cordoned: bool = False
    version: int = 1

    if TYPE_CHECKING:  # who makes one need not wrap its name

        def __init__(
            self, *, name: str, weight: float = 1.0, cordoned: bool = False, version: int = 1
        ) -> None: ...

    def __post_init__(self) -> None:
        name: object = self.name
        weight: object = self.weight
        if not isinstance(name, str):
            raise TypeError(f"the name of a queue is a str, got {name!r}")
        if isinstance(weight, bool) or not isinstance(weight, int | Real):
            raise TypeError(f"queue {name!r}: weight is a number, got {weight!r}")
        number = weight if isinstance(weight, int) else float(weight)
        for field, sentence in queue_faults(self.name, number):
            raise InputError(f"queue {name!r}: {field} {sentence}")
        structs.force_setattr(self, "weight", float(number))  # NumPy's cannot be written down


def queue_faults(name: str, weight: float) -> Iterator[tuple[str, str]]:
    """Each field of such a queue that cannot be used, with a sentence."""
    if not name:
        yield "name", "is empty; write a name"
    if not 0 < weight <= sys.float_info.max:
        yield "weight", f"{weight} is no weight; write a finite number above 0"


class PriorityClass(Struct, frozen=True, kw_only=True):
    """Urgency across queues: the higher `priority` goes first; preemptible or not."""

    name: str
    priority: int = 0
    preemptible: bool = False
