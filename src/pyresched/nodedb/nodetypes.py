"""Types of nodes: at most 64 numbers, so that a search can pass over nodes that do not match.

Alike nodes (equal taints, equal values of the labels that have few values) share a number; so
do similar ones when there are too many. Only speed follows from them, never an answer.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

from pyresched.model import Node

__all__ = ["NodeTypes"]

_MOST: Final = 64
_MOST_VALUES: Final = 64

Likeness = tuple[str, ...]


class NodeTypes:
    """`codes` has the type of each node, 0 to 63."""

    def __init__(self, labels: tuple[str, ...], kinds: list[Likeness], codes: bytes) -> None:
        self.codes = codes
        self._labels = labels
        self._kinds = kinds  # sorted; neighbours are alike in what has the fewest values

    @staticmethod
    def of(nodes: Sequence[Node]) -> "NodeTypes":
        """The types of *nodes*."""
        counts: dict[str, int] = {}
        for label, _ in set().union(*(node.labels.items() for node in nodes)):
            counts[label] = counts.get(label, 0) + 1
        few = sorted((count, label) for label, count in counts.items() if count <= _MOST_VALUES)
        labels = tuple(label for _, label in few)
        kinds = [_likeness(node, labels) for node in nodes]
        known = sorted(set(kinds))
        code_of = {kind: _code(i, len(known)) for i, kind in enumerate(known)}
        return NodeTypes(labels, known, bytes(map(code_of.__getitem__, kinds)))

    def with_changed(self, changed: Mapping[int, Node]) -> "NodeTypes":
        """The types when other nodes stand at the keys of *changed*."""
        codes = bytearray(self.codes)
        for i, node in changed.items():
            near = bisect_left(self._kinds, _likeness(node, self._labels))
            codes[i] = _code(min(near, len(self._kinds) - 1), len(self._kinds))
        return NodeTypes(self._labels, self._kinds, bytes(codes))


def _likeness(node: Node, labels: tuple[str, ...]) -> Likeness:
    taints = "".join(f"{t.key}={t.value}:{t.effect.value} " for t in node.taints)
    get = node.labels.get
    return (taints, *(get(label, "") for label in labels))


def _code(i: int, count: int) -> int:
    """The number of kind *i* of *count*: its own while there are enough."""
    return i if count <= _MOST else i * _MOST // count
