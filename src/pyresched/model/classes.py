"""Classes of urgency across queues, and the node types on which a class may run away from home.

Values as an operator writes them; `config` says which of them cannot be used together.
"""

from typing import Literal

from msgspec import Struct

from pyresched.model.nodes import Taint

__all__ = [
    "AwayEntry",
    "AwayNodeType",
    "PriorityClass",
    "ResourceCondition",
    "WellKnownNodeType",
]


class ResourceCondition(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a job asks of *resource* is more than, less than or exactly *value* (a quantity)."""

    resource: str
    operator: Literal[">", "<", "=="]
    value: str | int


class WellKnownNodeType(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nodes that are known by their *taints*; a taint of value `*` is one of any value.

    A job goes there away from home only if all of the conditions *when* hold for it.
    """

    name: str
    taints: tuple[Taint, ...] = ()
    when: tuple[ResourceCondition, ...] = ()


class AwayNodeType(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A well-known node type that an entry adds for jobs for which all of *when* hold."""

    name: str
    when: tuple[ResourceCondition, ...] = ()


class AwayEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where jobs of a class may also run, and at which lower *priority*.

    They tolerate the taints of the well-known *node_type* ("" is none), and of those among
    *node_types* whose conditions hold.
    """

    priority: int
    node_type: str = ""
    node_types: tuple[AwayNodeType, ...] = ()


class PriorityClass(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, repr_omit_defaults=True
):
    """Urgency across queues: the higher `priority` goes first; preemptible or not.

    `max_fraction_per_queue` limits, by resource, what part of a pool the jobs of one queue in
    this class may hold; that of a pool goes before it. `away` is tried in order, after home.
    """

    name: str
    priority: int = 0
    preemptible: bool = False
    max_fraction_per_queue: dict[str, float] = {}
    max_fraction_per_queue_by_pool: dict[str, dict[str, float]] = {}
    away: tuple[AwayEntry, ...] = ()
