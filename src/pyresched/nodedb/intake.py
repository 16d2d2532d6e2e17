"""What a node must be to be taken in, as the sentence that refuses it; what jobs may have of it.

Relies on nothing that a node says of itself: its fields are as its maker wrote them.
"""

from collections.abc import Mapping
from typing import Any, Final

from pyresched.config import SchedulingConfig
from pyresched.errors import InputError
from pyresched.model import Intake, Node, Resource, ResourceVector, Taint, TaintEffect

__all__ = ["refuse_bad", "room_of"]

_LONGEST_LABEL: Final = 253
_INT64_MAX: Final = 2**63 - 1
# More than is ever bound, and far enough from the largest number to be added to.
_ENDLESS: Final = 2**62
_TEXTS: Final = ("id", "pool", "executor", "node_type")
_INSTANTS: Final = ("lost_at", "disconnected_at", "drain_deadline")


def refuse_bad(node: Node, resources: tuple[Resource, ...]) -> None:
    """Raise InputError for a node that cannot be."""
    if not isinstance(node, Node):
        raise InputError(f"{node!r:.80} is not a node; give a Node")
    for name in _TEXTS:
        if type(getattr(node, name)) is not str:
            raise _wrong(node, name, "a plain text")
    if not node.id:
        raise InputError("a node needs an id that is not empty")
    _check_amounts(node, "total", resources)
    if node.unallocatable is not None:
        _check_amounts(node, "unallocatable", resources)
    _check_state(node)
    most = node.max_jobs
    if most is not None and (type(most) is not int or not 0 <= most < _INT64_MAX):
        raise InputError(f"node {node.id!r}: max_jobs {most!r}; write 0 or more")
    if type(node.taints) is not tuple:
        raise _wrong(node, "taints", "a tuple of Taint")
    for taint in node.taints:
        if not _is_taint(taint):
            raise InputError(
                f"node {node.id!r}: {taint!r:.80} is no taint; write one such as Taint('gpu')"
            )
    _check_labels(node)


def room_of(node: Node, config: SchedulingConfig) -> ResourceVector:
    """What jobs may have of *node*: without end of what floats, which pools count, not nodes."""
    if not config.has_floating:
        return node.allocatable
    return ResourceVector(
        [
            _ENDLESS if resource.floating else amount
            for resource, amount in zip(config.resources, node.allocatable, strict=True)
        ]
    )


def _check_amounts(node: Node, name: str, resources: tuple[Resource, ...]) -> None:
    amounts = getattr(node, name)
    if not isinstance(amounts, ResourceVector):
        raise _wrong(node, name, "a ResourceVector")
    if len(amounts) != len(resources):
        named = ", ".join(resource.name for resource in resources)
        raise InputError(f"node {node.id!r}: {len(amounts)} amounts; the resources are {named}")
    for resource, amount in zip(resources, amounts, strict=True):
        if amount < 0:
            raise InputError(
                f"node {node.id!r}: {resource.name} {amount} is negative; write 0 or more"
            )
        if amount and resource.floating:
            raise InputError(
                f"node {node.id!r}: {resource.name} is floating, which no node has; write 0 here "
                "and its quantity under the pool"
            )


def _check_state(node: Node) -> None:
    if not isinstance(node.intake, Intake):
        raise _wrong(node, "intake", "an Intake")
    for name in _INSTANTS:
        if type(getattr(node, name)) not in {int, type(None)}:
            raise _wrong(node, name, "nanoseconds, or None")
    if not isinstance(node.drain_system, bool):
        raise _wrong(node, "drain_system", "True or False")


def _is_taint(taint: object) -> bool:
    if not isinstance(taint, Taint):
        return False
    texts: tuple[object, ...] = (taint.key, taint.value)
    effect: object = taint.effect
    return all(isinstance(text, str) for text in texts) and isinstance(effect, TaintEffect)


def _check_labels(node: Node) -> None:
    if not isinstance(node.labels, Mapping):
        raise _wrong(node, "labels", "a mapping of texts to texts")
    for text in (part for label in node.labels.items() for part in label):
        if not isinstance(text, str):
            raise InputError(f"node {node.id!r}: label or value {text!r:.80} is no text")
        if len(text) > _LONGEST_LABEL:
            raise InputError(
                f"node {node.id!r}: label {text[:32]!r}... has {len(text)} characters; "
                f"write at most {_LONGEST_LABEL}"
            )


def _wrong(node: Node, name: str, right: str) -> InputError:
    value: Any = getattr(node, name)
    return InputError(f"node {node.id!r:.80}: {name} {value!r:.80}; write {right}")
