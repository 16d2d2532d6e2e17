"""Which nodes a request may use and which of them it likes better, for all nodes of a pool.

Relies on nodes that do not change; `updated` makes the next `Matching` and shares what still
holds. Each condition is asked once for each distinct value of its label. Keeps INV-B8.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain, compress
from typing import Any, Final, NamedTuple

from pyresched.model import (
    Constraint,
    Node,
    NodeId,
    PoolName,
    Preference,
    Requirements,
    Spread,
    Taint,
    TaintEffect,
    Toleration,
)
from pyresched.nodedb.columns import Column, mask_at
from pyresched.nodedb.nodetypes import NodeTypes

__all__ = ["Dynamic", "Masks", "Matching", "Property"]

_BLOCK: Final = 64
_YES: Final = b"\x01"
_WORST_TIER: Final = 255
# Answers kept for distinct requirements, and masks for distinct conditions; then the oldest go.
_MOST_KEPT: Final = 4096
_MOST_MASKS: Final = 1024


class Property(NamedTuple):
    """A label whose values are counted among the jobs of a scope.

    `limit` is the most jobs on the nodes of one value (0: none), `weight` that of a spread (0:
    none). `values` is an int32 for each node: the index of its value, -1 where it has none.
    `desired` is the wanted percent by index, or () for an even spread.
    """

    limit: int
    weight: int
    values: bytes
    desired: tuple[int, ...] = ()


class Dynamic(NamedTuple):
    """What depends on where the other jobs of `scope` are; `host_limit` 0 is no limit."""

    scope: str
    host_limit: int
    properties: tuple[Property, ...]


class Masks(NamedTuple):
    """What a request says of every node.

    `tiers` is a byte for each node, zeros up to whole blocks of 64: 0 may not be used, 1 is
    best, 2 next, ... 255. First come the nodes without a `PreferNoSchedule` taint that is not
    tolerated, then those that score most by preferences; equal nodes share a tier.
    """

    tiers: bytes
    dynamic: Dynamic | None = None


class Asked(NamedTuple):
    """What of `Requirements` matters here: all but the amounts and the class."""

    selector: tuple[tuple[str, str], ...]
    tolerations: tuple[Toleration, ...]
    constraints: tuple[Constraint, ...]
    affinity: tuple[tuple[Constraint, ...], ...]
    preferences: tuple[Preference, ...]
    spread: tuple[Spread, ...]
    scope: str
    nodes: tuple[NodeId, ...]

    @staticmethod
    def of(whole: Requirements) -> "Asked":
        """What matters of *whole*."""
        return Asked(
            *(whole.selector, whole.tolerations, whole.constraints, whole.affinity),
            *(whole.preferences, whole.spread, whole.scope, whole.nodes),
        )

    def labels(self) -> frozenset[str]:
        """The labels on which the answer depends."""
        conditions = chain(
            self.constraints, *self.affinity, *(each.constraints for each in self.preferences)
        )
        return frozenset(
            chain(
                (label for label, _ in self.selector),
                (each.label for each in conditions),
                (each.label for each in self.spread),
            )
        )


class Matching:
    """Answers for `NodeTable.matcher`, and the types of nodes.

    With *home*, nodes of any other pool come after all of that one. Forks share it, whichever
    thread each is used in: what it keeps may be worked out twice, and is then the same.
    """

    def __init__(self, nodes: Iterable[Node], *, home: PoolName | None = None) -> None:
        self.nodes = tuple(nodes)
        self._home = home
        self._length = -(-len(self.nodes) // _BLOCK) * _BLOCK
        self._all = int.from_bytes(_YES * len(self.nodes), "little")
        self._columns: dict[str, Column] = {}
        self._masks: dict[Constraint, int] = {}
        self._known: dict[Asked, tuple[Masks, frozenset[str]]] = {}

    def __call__(self, requirements: Requirements) -> Masks:
        """What *requirements* say of every node; the amounts asked for play no part."""
        asked = Asked.of(requirements)
        known = self._known.get(asked)
        if known is None:
            _make_room(self._known, _MOST_KEPT)
            fresh = Masks(self._tiers(asked), self._dynamic(asked))
            known = self._known[asked] = (fresh, asked.labels())
        return known[0]

    @property
    def types(self) -> bytes:
        """A small number for each node: alike nodes share one, so do others when there are many."""
        return self._types.codes

    @cached_property
    def _types(self) -> NodeTypes:
        return NodeTypes.of(self.nodes)

    def updated(self, changed: Mapping[int, Node]) -> "Matching":
        """The matching in which other nodes stand at the keys of *changed*, with the same ids."""
        nodes = list(self.nodes)
        labels: dict[str, dict[int, str | None]] = {}
        retainted = False
        for i, node in changed.items():
            old, nodes[i] = nodes[i], node
            retainted |= old.taints != node.taints
            if old.labels != node.labels:
                for label in {**old.labels, **node.labels}:
                    if old.labels.get(label) != node.labels.get(label):
                        labels.setdefault(label, {})[i] = node.labels.get(label)
        fresh = Matching(nodes, home=self._home)
        # Copied first: forks in other threads may ask meanwhile, and what they ask is kept.
        for label, column in self._columns.copy().items():
            kept = column.with_changed(labels[label]) if label in labels else column
            if kept is not None:
                fresh._columns[label] = kept
        fresh._masks = {c: mask for c, mask in self._masks.copy().items() if c.label not in labels}
        if not retainted and "taints" in self.__dict__:
            fresh.taints = self.taints
        if not retainted:
            fresh._known = {
                asked: known
                for asked, known in self._known.copy().items()
                if known[1].isdisjoint(labels)
            }
        if "_far" in self.__dict__:
            fresh._far = self._far  # the ids are the same, and a node keeps its pool
        if "_at" in self.__dict__:
            fresh._at = self._at
        if "_types" in self.__dict__:
            fresh._types = self._types.with_changed(changed)
        return fresh

    # --- which nodes ------------------------------------------------------------------------

    def _tiers(self, asked: Asked) -> bytes:
        usable = self.usable(asked)
        soft = self.tainted(asked.tolerations, hard=False) & usable
        if asked.preferences:
            return self._ranked(usable, soft, asked.preferences)
        # Each byte of the sum is 1 for a node, or 2 with a taint that matters; 2 more away.
        tiers = usable + soft if soft != usable else usable
        away = self._far & usable
        if away != usable:
            tiers += 2 * away
        return tiers.to_bytes(self._length, "little")

    def _ranked(self, usable: int, soft: int, preferences: Sequence[Preference]) -> bytes:
        """Tiers by taint and score, of those that *usable* nodes have."""
        above = 2 * sum(abs(each.weight) for each in preferences) + 1
        scores = [0] * self._length
        far = self._far & usable
        for weight, mask in ((-2 * above, far), (-above, soft), *self._weighed(preferences)):
            having = mask.to_bytes(self._length, "little")
            scores = [score + weight * has for score, has in zip(scores, having, strict=True)]
        may = usable.to_bytes(self._length, "little")
        order = sorted(set(compress(scores, may)), reverse=True)
        tiers = {score: min(i, _WORST_TIER) for i, score in enumerate(order, 1)}
        return bytes(
            tiers[score] if usable_ else 0 for score, usable_ in zip(scores, may, strict=True)
        )

    def _weighed(self, preferences: Sequence[Preference]) -> Iterator[tuple[int, int]]:
        for each in preferences:
            yield each.weight, self.meeting(each.constraints) if each.constraints else 0

    def usable(self, asked: Asked) -> int:
        """The mask of the nodes that may be used, whatever is bound where."""
        usable = self.named(asked.nodes) if asked.nodes else self._all
        for label, value in asked.selector:
            usable &= self.column(label).mask_of(value)
        usable &= self.meeting(asked.constraints)
        if asked.affinity:
            usable &= self.affine(asked.affinity)
        return usable & ~self.tainted(asked.tolerations, hard=True)

    def named(self, node_ids: Iterable[NodeId]) -> int:
        """The mask of the nodes with these ids; unknown ones are passed over."""
        at = self._at
        return mask_at((at[node_id] for node_id in node_ids if node_id in at), len(self.nodes))

    def meeting(self, constraints: Iterable[Constraint]) -> int:
        """The mask of the nodes that meet all of *constraints*."""
        meeting = self._all
        for each in constraints:
            if not each.label:  # distinct hosts: asks nothing of a node by itself
                continue
            mask = self._masks.get(each)
            if mask is None:
                _make_room(self._masks, _MOST_MASKS)
                mask = self._masks[each] = self.column(each.label).mask_where(each.accepts)
            meeting &= mask
        return meeting

    def affine(self, terms: Iterable[tuple[Constraint, ...]]) -> int:
        """The mask of the nodes that meet all of one of *terms*; an empty term is met by none."""
        affine = 0
        for term in terms:
            if term:
                affine |= self.meeting(term)
        return affine

    def tainted(self, tolerations: Sequence[Toleration], *, hard: bool) -> int:
        """The mask of the nodes with a taint, *hard* or a preference, that is not tolerated."""
        tainted = 0
        for taints, mask in self.taints.items():
            if refused(taints, tolerations, hard=hard) is not None:
                tainted |= mask
        return tainted

    # --- what depends on other jobs -----------------------------------------------------------

    def _dynamic(self, asked: Asked) -> Dynamic | None:
        distinct = [each for each in asked.constraints if each.distinct]
        if not distinct and not asked.spread:
            return None
        properties = [
            Property(each.limit, 0, self._values_of(each.label)) for each in distinct if each.label
        ]
        properties.extend(
            Property(0, each.weight, self._values_of(each.label), self._desired(each))
            for each in asked.spread
        )
        host_limit = min((each.limit for each in distinct if not each.label), default=0)
        return Dynamic(asked.scope, host_limit, tuple(properties))

    def _values_of(self, label: str) -> bytes:
        return self.column(label).codes.tobytes()

    def _desired(self, spread: Spread) -> tuple[int, ...]:
        if not spread.targets:
            return ()
        return tuple(spread.percent_of(value) for value in self.column(spread.label).values)

    # --- what is kept -------------------------------------------------------------------------

    def column(self, label: str) -> Column:
        """The values of *label*; made when first asked for."""
        column = self._columns.get(label)
        if column is None:
            column = self._columns[label] = Column.of(label, self.nodes)
        return column

    @cached_property
    def taints(self) -> dict[tuple[Taint, ...], int]:
        """The mask of the nodes with each combination of taints, but none."""
        at: dict[tuple[Taint, ...], list[int]] = {}
        for i, node in enumerate(self.nodes):
            if node.taints:
                at.setdefault(node.taints, []).append(i)
        return {taints: mask_at(each, len(self.nodes)) for taints, each in at.items()}

    @cached_property
    def _far(self) -> int:
        """The mask of the nodes of other pools than `home`, if there is one."""
        if self._home is None:
            return 0
        far = (i for i, node in enumerate(self.nodes) if node.pool != self._home)
        return mask_at(far, len(self.nodes))

    @cached_property
    def _at(self) -> dict[NodeId, int]:
        return {node.id: i for i, node in enumerate(self.nodes)}


def _make_room(kept: dict[Any, Any], most: int) -> None:
    """Drop the oldest of *kept* until there is room for one more."""
    while len(kept) >= most:
        # Another thread may drop or add some at the same time.
        with suppress(KeyError, RuntimeError, StopIteration):
            del kept[next(iter(kept))]


def refused(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], *, hard: bool
) -> Taint | None:
    """The first of *taints*, *hard* or a preference, that is not tolerated."""
    for taint in taints:
        if (taint.effect is not TaintEffect.PREFER_NO_SCHEDULE) is hard and not any(
            each.tolerates(taint) for each in tolerations
        ):
            return taint
    return None
