"""Which nodes a request may use at all: selector and taints, for all nodes of a pool at once.

Relies on nodes that do not change: other labels or taints make a new `Matching`. Keeps INV-B8.
"""

from collections.abc import Sequence
from typing import Final

from pyresched.model import Node, Requirements, Taint, TaintEffect, Toleration

__all__ = ["Matching"]

_BLOCK: Final = 64
_YES: Final = b"\x01"
# Masks kept for distinct selectors and tolerations; past this the oldest go.
_MOST_KEPT: Final = 4096

Masks = tuple[bytes, bytes | None]


class Matching:
    """Answers for `NodeTable.matcher`: one byte for each node, 1 where the request may go.

    The second mask is of the nodes without a `PreferNoSchedule` taint that the request does
    not tolerate, or None when that is the same.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._length = -(-len(nodes) // _BLOCK) * _BLOCK
        self._all = int.from_bytes((_YES * len(nodes)).ljust(self._length, b"\0"))
        at_label: dict[tuple[str, str], list[int]] = {}
        at_taints: dict[tuple[Taint, ...], list[int]] = {}
        for i, node in enumerate(nodes):
            for label in node.labels.items():
                at_label.setdefault(label, []).append(i)
            if node.taints:
                at_taints.setdefault(node.taints, []).append(i)
        self._labels = at_label
        self._taints = {taints: self._bits(at) for taints, at in at_taints.items()}
        self._label_bits: dict[tuple[str, str], int] = {}
        self._known: dict[tuple[object, ...], Masks] = {}

    def __call__(self, requirements: Requirements) -> Masks:
        """The masks of *requirements*."""
        key = (requirements.selector, requirements.tolerations)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST_KEPT:
                del self._known[next(iter(self._known))]
            known = self._known[key] = self._masks(requirements)
        return known

    def _masks(self, requirements: Requirements) -> Masks:
        fits = self._all
        for label in requirements.selector:
            fits &= self._label(label)
        liked = fits
        for taints, bits in self._taints.items():
            refused = _untolerated(taints, requirements.tolerations)
            if refused - {TaintEffect.PREFER_NO_SCHEDULE}:
                fits &= ~bits
            if refused:
                liked &= ~bits
        mask = fits.to_bytes(self._length)
        return mask, None if liked == fits else liked.to_bytes(self._length)

    def _label(self, label: tuple[str, str]) -> int:
        bits = self._label_bits.get(label)
        if bits is None:
            bits = self._label_bits[label] = self._bits(self._labels.get(label, []))
        return bits

    def _bits(self, positions: list[int]) -> int:
        mask = bytearray(self._length)
        for i in positions:
            mask[i] = 1
        return int.from_bytes(mask)


def _untolerated(
    taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]
) -> frozenset[TaintEffect]:
    return frozenset(
        taint.effect for taint in taints if not any(t.tolerates(taint) for t in tolerations)
    )
