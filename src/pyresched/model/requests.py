"""Requirements like others but for some fields: variants that stages look for or pin down.

The native value has no `replace`, since nothing that runs once for each job needs one.
"""

from typing import Any, Final

from pyresched._core import Requirements

__all__ = ["replaced"]

_FIELDS: Final = (
    "resources",
    "priority_class",
    "selector",
    "tolerations",
    "constraints",
    "affinity",
    "preferences",
    "spread",
    "scope",
    "nodes",
)


def replaced(requirements: Requirements, **changes: object) -> Requirements:
    """*requirements* with *changes*, by the names that `Requirements` takes.

    Raises TypeError for a name that it does not, or a value of another kind.
    """
    fields: dict[str, Any] = {name: getattr(requirements, name) for name in _FIELDS}
    return Requirements(**(fields | changes))
