"""Which classes, and which ways away from home, cannot be used.

Relies on the values of `model.classes`, which say nothing of each other.
"""

from collections.abc import Iterator, Sequence
from typing import Final, get_args, get_type_hints

from pyresched.config.faults import INT32_MAX, fraction_faults, fraction_table_faults, name_faults
from pyresched.config.reading import Fault
from pyresched.errors import InputError, did_you_mean
from pyresched.model import (
    AwayEntry,
    PriorityClass,
    ResourceCondition,
    WellKnownNodeType,
    parse_quantity,
)

__all__ = ["class_faults", "node_type_faults"]

_OPERATORS: Final[tuple[str, ...]] = get_args(get_type_hints(ResourceCondition)["operator"])


def class_faults(
    classes: Sequence[PriorityClass],
    node_types: Sequence[WellKnownNodeType],
    pools: Sequence[str],
    resources: Sequence[str],
) -> Iterator[Fault]:
    """Each value of *classes* that cannot be used with the other parts."""
    if not classes:
        yield Fault("priority_classes", "none is left; write at least one")
    yield from name_faults("priority_classes", (each.name for each in classes))
    for i, each in enumerate(classes):
        path = f"priority_classes[{i}]"
        if not 0 <= each.priority <= INT32_MAX:
            sentence = f"{each.priority} is out of range; write 0 to {INT32_MAX}"
            yield Fault(f"{path}.priority", sentence)
        yield from fraction_faults(
            f"{path}.max_fraction_per_queue", each.max_fraction_per_queue, resources
        )
        yield from fraction_table_faults(
            f"{path}.max_fraction_per_queue_by_pool",
            "pool",
            each.max_fraction_per_queue_by_pool,
            pools,
            resources,
        )
        if each.away and not each.preemptible:
            sentence = (
                "what runs away from home must be able to give way; make the class preemptible"
            )
            yield Fault(f"{path}.away", f"{sentence}, or drop it")
        known = [node_type.name for node_type in node_types]
        for k, entry in enumerate(each.away):
            yield from _entry_faults(f"{path}.away[{k}]", entry, each, known, resources)


def node_type_faults(
    node_types: Sequence[WellKnownNodeType], resources: Sequence[str]
) -> Iterator[Fault]:
    """Each value of *node_types* that cannot be used."""
    yield from name_faults("node_types", (each.name for each in node_types))
    for i, each in enumerate(node_types):
        path = f"node_types[{i}]"
        if not each.taints:
            yield Fault(f"{path}.taints", "none is left; write the taints that mark such nodes")
        yield from _condition_faults(f"{path}.when", each.when, resources)


def _entry_faults(
    path: str,
    entry: AwayEntry,
    owner: PriorityClass,
    known: Sequence[str],
    resources: Sequence[str],
) -> Iterator[Fault]:
    if not 0 <= entry.priority < owner.priority:
        sentence = f"{entry.priority} is not below the class's {owner.priority}"
        right = f"write 0 to {owner.priority - 1}" if owner.priority > 0 else "raise the class's"
        yield Fault(f"{path}.priority", f"{sentence}; {right}")
    if not entry.node_type and not entry.node_types:
        yield Fault(path, "leads nowhere; name a node_type, or several under node_types")
    named = [("node_type", entry.node_type)] if entry.node_type else []
    named += [(f"node_types[{i}].name", each.name) for i, each in enumerate(entry.node_types)]
    for key, name in named:
        if name not in known:
            sentence = f"unknown node type {name!r}; {did_you_mean(name, known)}"
            yield Fault(f"{path}.{key}", sentence)
    for i, each in enumerate(entry.node_types):
        yield from _condition_faults(f"{path}.node_types[{i}].when", each.when, resources)


def _condition_faults(
    path: str, conditions: Sequence[ResourceCondition], resources: Sequence[str]
) -> Iterator[Fault]:
    for i, each in enumerate(conditions):
        own = f"{path}[{i}]"
        if each.resource not in resources:
            sentence = f"unknown resource {each.resource!r}"
            yield Fault(f"{own}.resource", f"{sentence}; {did_you_mean(each.resource, resources)}")
        if each.operator not in _OPERATORS:
            sentence = f"{each.operator!r} is not one of them"
            yield Fault(f"{own}.operator", f"{sentence}; write {', '.join(_OPERATORS)}")
        try:
            if parse_quantity(each.value) < 0:
                sentence = f"{each.value} is negative, which no job asks for; write 0 or more"
                yield Fault(f"{own}.value", sentence)
        except InputError as bad:
            yield Fault(f"{own}.value", str(bad))
