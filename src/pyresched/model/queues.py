"""Owners of jobs and units of fairness, and the classes of urgency across them."""

from msgspec import Struct

from pyresched.model.ids import QueueName

__all__ = ["PriorityClass", "Queue"]


class Queue(Struct, frozen=True, kw_only=True):
    """An owner of jobs. `weight` is its claim relative to other queues, above 0 and finite."""

    name: QueueName
    weight: float = 1.0
    cordoned: bool = False
    version: int = 1


class PriorityClass(Struct, frozen=True, kw_only=True):
    """Urgency across queues: the higher `priority` goes first; preemptible or not."""

    name: str
    priority: int = 0
    preemptible: bool = False
