"""Types of nodes: at most 64 numbers, so that a search can pass over nodes that do not match.

Nodes share a number if they have equal taints and equal values of the labels with the fewest
values: as many labels as leave a sample of the nodes 64 kinds. Only speed follows from it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pyresched.model import Node

__all__ = ["NodeTypes"]

_MOST: Final = 64
_SAMPLE: Final = 512  # nodes that are looked at to choose the labels

Kind = tuple[str, ...]


class NodeTypes:
    """`codes` has the type of each node, 0 to 63."""

    def __init__(self, labels: tuple[str, ...], kinds: Sequence[Kind], codes: bytes) -> None:
        self.codes = codes
        self._labels = labels  # what tells kinds apart, beside taints
        self._kinds = kinds  # sorted

    @staticmethod
    def of(nodes: Sequence[Node]) -> "NodeTypes":
        """The types of *nodes*."""
        labels = _telling(nodes[:: len(nodes) // _SAMPLE + 1])
        found = [_kind(node, labels) for node in nodes]
        kinds = sorted(set(found))
        code_of = {kind: _code(kinds, kind) for kind in kinds}
        return NodeTypes(labels, kinds, bytes(map(code_of.__getitem__, found)))

    def with_changed(self, changed: Mapping[int, Node]) -> "NodeTypes":
        """The types when other nodes stand at the keys of *changed*."""
        codes = bytearray(self.codes)
        for i, node in changed.items():
            codes[i] = _code(self._kinds, _kind(node, self._labels))
        return NodeTypes(self._labels, self._kinds, bytes(codes))


def _telling(nodes: Sequence[Node]) -> tuple[str, ...]:
    """The labels that tell *nodes* apart without making too many kinds."""
    counts: dict[str, int] = {}
    for label, _ in set().union(*(node.labels.items() for node in nodes)):
        counts[label] = counts.get(label, 0) + 1
    kinds = [_kind(node, ()) for node in nodes]
    labels: list[str] = []
    for count, label in sorted((count, label) for label, count in counts.items()):
        finer = [
            (*kind, node.labels.get(label, "")) for kind, node in zip(kinds, nodes, strict=True)
        ]
        if count <= _MOST and len(set(finer)) <= _MOST:
            kinds = finer
            labels.append(label)
    return tuple(labels)


def _kind(node: Node, labels: Iterable[str]) -> Kind:
    taints = "".join(f"{t.key}={t.value}:{t.effect.value} " for t in node.taints)
    get = node.labels.get
    return (taints, *[get(label, "") for label in labels])


def _code(kinds: Sequence[Kind], kind: Kind) -> int:
    """The number of *kind*, or of one near it if there are too many or it is new."""
    near = min(bisect_left(kinds, kind), len(kinds) - 1)
    return near if len(kinds) <= _MOST else near * _MOST // len(kinds)
