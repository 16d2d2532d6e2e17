"""Where a job may run away from home: what it tolerates there, and at which priority.

Decides which of the taints of well-known node types a class adds; a round tries the variants.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final

from pyresched.config import SchedulingConfig
from pyresched.model import (
    AwayEntry,
    PriorityClass,
    Requirements,
    ResourceCondition,
    ResourceVector,
    Taint,
    Toleration,
    parse_quantity,
)
from pyresched.model.requests import replaced

__all__ = ["away_variants"]

_ANY_VALUE: Final = "*"
_COMPARED: Final[Mapping[str, Callable[[Fraction, Fraction], bool]]] = {
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
}


def away_variants(
    requirements: Requirements, priority_class: PriorityClass, config: SchedulingConfig
) -> tuple[tuple[Requirements, int], ...]:
    """What to look for away from home, and at which priority, in the order of the class.

    Each variant is *requirements* with tolerations of the node types of an entry; an entry none
    of whose node types holds for the job has none. Raises ConfigError for a node type that is
    not configured.
    """
    variants = []
    for entry in priority_class.away:
        taints = tuple(_taints(entry, requirements.resources, config))
        if taints:
            variants.append((_tolerant(requirements, taints), entry.priority))
    return tuple(variants)


def _taints(entry: AwayEntry, request: ResourceVector, config: SchedulingConfig) -> Iterator[Taint]:
    """The taints of the node types of *entry* for whose conditions *request* is right."""
    named = [(entry.node_type, ())] if entry.node_type else []
    for name, when in [*named, *((each.name, each.when) for each in entry.node_types)]:
        node_type = config.node_type(name)
        if _all_hold((*node_type.when, *when), request, config):
            yield from node_type.taints


def _all_hold(
    conditions: Sequence[ResourceCondition], request: ResourceVector, config: SchedulingConfig
) -> bool:
    """Whether *request*, as it was rounded, meets every one of *conditions*."""
    for each in conditions:
        at = config.spec.names.index(each.resource)
        asked = request[at] * parse_quantity(config.resources[at].unit)
        if not _COMPARED[each.operator](asked, parse_quantity(each.value)):
            return False
    return True


def _tolerant(requirements: Requirements, taints: Sequence[Taint]) -> Requirements:
    """*requirements* that tolerate *taints* too."""
    added = [
        Toleration(taint.key, effect=taint.effect, exists=True)
        if taint.value == _ANY_VALUE
        else Toleration(taint.key, taint.value, taint.effect)
        for taint in taints
    ]
    return replaced(requirements, tolerations=(*requirements.tolerations, *added))
