"""A node db as plain arrays: the oracle for clusters too large for `ModelNodes`.

Every answer looks at all nodes and sorts those that fit, as the contract has it; nothing is kept
between two questions but what is left. Shares no code with `pyresched.nodedb`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pyresched.model import Intake, Node, Requirements, TaintEffect

__all__ = ["WideHold", "WideModel"]


class WideHold(NamedTuple):
    """What a job holds."""

    node: int
    requirements: Requirements
    priority: int
    preemptible: bool
    evicted: bool = False


class WideModel:
    """*nodes* of one pool, which may come in any order, and what is bound to them.

    Amounts stay far from the ends of int64. `levels` are class priorities, ascending.
    """

    def __init__(self, nodes: Iterable[Node], levels: Sequence[int]) -> None:
        self.nodes = sorted(nodes, key=lambda node: node.id)
        self.ids = [node.id for node in self.nodes]
        self.levels = tuple(levels)
        total = np.array([node.total.to_tuple() for node in self.nodes], dtype=np.int64)
        # Row 0 is the evicted level.
        self.left = np.stack([total] * (1 + len(self.levels)))
        self.open = np.array(
            [node.intake is Intake.OPEN and node.lost_at is None for node in self.nodes], dtype=bool
        )
        self.held: dict[str, WideHold] = {}
        self._matching: dict[object, tuple[np.ndarray, np.ndarray]] = {}

    def copy(self) -> "WideModel":
        """A model that shares nothing that either changes."""
        other = object.__new__(WideModel)
        other.__dict__.update(self.__dict__)
        other.left, other.held = self.left.copy(), dict(self.held)
        return other

    def close_over_allocated(self) -> None:
        """What a fork does: nodes that hold more than they have take nothing."""
        self.open = self.open & (self.left[0] >= 0).all(axis=1)

    # --- change -----------------------------------------------------------------------------

    def bind(
        self, job_id: str, node: int, asked: Requirements, priority: int, *, preemptible: bool
    ) -> None:
        """A job takes room, or takes back what it gave up."""
        if job_id in self.held:
            assert self.held[job_id].evicted
            self.unbind(job_id)
        self._hold(job_id, WideHold(node, asked, priority, preemptible))

    def evict(self, job_id: str) -> None:
        """A job's room is free but at the lowest level."""
        hold = self.held[job_id]
        assert not hold.evicted
        self.unbind(job_id)
        self._hold(job_id, hold._replace(evicted=True))

    def unbind(self, job_id: str) -> None:
        """A job goes, if it is there."""
        hold = self.held.pop(job_id, None)
        if hold is not None:
            self._count(hold, 1)

    def _hold(self, job_id: str, hold: WideHold) -> None:
        self.held[job_id] = hold
        self._count(hold, -1)

    def _count(self, hold: WideHold, sign: int) -> None:
        for row, level in enumerate((None, *self.levels)):
            if level is None or _counts(hold, level):
                self.left[row, hold.node] += sign * np.array(hold.requirements.resources.to_tuple())

    # --- questions --------------------------------------------------------------------------

    def find(
        self,
        asked: Requirements,
        priority: int | None,
        *,
        avoid: Mapping[str, int] | None = None,
        only: Iterable[str] | None = None,
    ) -> tuple[str, int | None] | None:
        """(node id, level) of the best node at the lowest level that has one; None is evicted."""
        fits, disliked = self._match(asked)
        fits = fits & self.open
        if only is not None:
            among = set(only)
            fits = fits & np.array([id in among for id in self.ids], dtype=bool)
        rank = np.zeros(len(self.ids), dtype=np.int64)
        for node_id, worst in (avoid or {}).items():
            if node_id in self.ids:
                rank[self.ids.index(node_id)] = worst
        wanted = np.array(asked.resources.to_tuple())
        up_to = () if priority is None else {priority, *(at for at in self.levels if at < priority)}
        for level in (None, *sorted(up_to)):
            left = self._left_at(level)
            room = np.flatnonzero(fits & (left >= wanted).all(axis=1))
            if len(room):
                columns = left[room].T
                # The last key of lexsort is the first to count.
                order = np.lexsort((room, *columns[::-1], disliked[room], rank[room]))
                return self.ids[room[order[0]]], level
        return None

    def _left_at(self, level: int | None) -> np.ndarray:
        if level is None:
            return self.left[0]
        if level in self.levels:
            return self.left[1 + self.levels.index(level)]
        # Between two levels: all that is held, less what does not count there.
        left = self.left[0].copy()
        for hold in self.held.values():
            if not _counts(hold, level):
                left[hold.node] += np.array(hold.requirements.resources.to_tuple())
        return left

    def _match(self, asked: Requirements) -> tuple[np.ndarray, np.ndarray]:
        key = (asked.selector, asked.tolerations)
        if key not in self._matching:
            rows = [_accepts(node, asked) for node in self.nodes]
            fits = np.array([row[0] for row in rows], dtype=bool)
            self._matching[key] = (fits, np.array([row[1] for row in rows], dtype=bool))
        return self._matching[key]


def _counts(hold: WideHold, level: int) -> bool:
    return not hold.evicted and (not hold.preemptible or hold.priority >= level)


def _accepts(node: Node, asked: Requirements) -> tuple[bool, bool]:
    """Whether it may go there, and whether the node would rather not."""
    refused = {
        taint.effect
        for taint in node.taints
        if not any(each.tolerates(taint) for each in asked.tolerations)
    }
    labels = all(node.labels.get(key) == value for key, value in asked.selector)
    return labels and refused <= {TaintEffect.PREFER_NO_SCHEDULE}, bool(refused)
