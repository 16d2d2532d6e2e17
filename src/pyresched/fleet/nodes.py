"""Nodes that come, change, are lost and return: what each leads to, as changes.

Relies on `model.moves` for what a lost node means to the runs on it. Keeps INV-J5, INV-J6.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import structs

from pyresched.errors import DuplicateId, UnknownNode
from pyresched.model import (
    Changes,
    Draft,
    Event,
    EventKind,
    Instant,
    Intake,
    JobReader,
    Node,
    NodeId,
    Outcome,
)
from pyresched.model.moves import put_back

__all__ = ["NODE_LOST", "back", "cordon", "join", "lose", "uncordon"]

NODE_LOST: Final = "node_lost"
"""Reason of a run whose node was lost."""


def join(nodes: Iterable[Node], known: Mapping[NodeId, Node], *, now: Instant) -> Changes:
    """Take in *nodes*, new ones and known ones that come with other figures.

    A known node keeps its intake, which an operator set; it is back when it was lost. One that
    is as it was known changes nothing. Raises DuplicateId when an id comes with two figures.
    """
    given: dict[NodeId, Node] = {}
    for node in nodes:
        if given.setdefault(node.id, node) != node:
            raise DuplicateId(f"node {node.id!r} comes twice with different figures; send one")
    rows: list[Node] = []
    events: list[Event] = []
    for node in given.values():
        old = known.get(node.id)
        if old is None:
            rows.append(_but(node, version=1, lost_at=None))
            events.append(Event(kind=EventKind.NODE_JOINED, at=now, node_id=node.id))
            continue
        if old.lost_at is not None:
            events.append(Event(kind=EventKind.NODE_BACK, at=now, node_id=node.id))
        row = _but(node, version=old.version, lost_at=None, intake=old.intake)
        if row != _but(old, lost_at=None):
            events.append(Event(kind=EventKind.NODE_CHANGED, at=now, node_id=node.id))
        if row != old:
            rows.append(_but(row, version=old.version + 1))
    return Changes(nodes=tuple(rows), events=tuple(events))


def lose(
    node_ids: Iterable[str],
    known: Mapping[NodeId, Node],
    *,
    jobs: JobReader,
    now: Instant,
) -> Changes:
    """Nodes are out of reach: their runs end `lost`, and are replaced without delay or budget.

    One that is lost already changes nothing. Raises UnknownNode.
    """
    lost = {id: node for id, node in _each(node_ids, known).items() if node.lost_at is None}
    if not lost:
        return Changes()
    draft = Draft(jobs)
    events = [Event(kind=EventKind.NODE_LOST, at=now, node_id=id) for id in lost]
    ended = {job.id: (Outcome.LOST, NODE_LOST) for job in jobs.leased() if job.node_id in lost}
    put_back(draft, ended, at=now)
    changes = draft.changes()
    rows = tuple(_but(node, version=node.version + 1, lost_at=now) for node in lost.values())
    return Changes(jobs=changes.jobs, nodes=rows, events=(*events, *changes.events))


def back(node_ids: Iterable[str], known: Mapping[NodeId, Node], *, now: Instant) -> Changes:
    """Lost nodes are in reach again, empty. One that is not lost changes nothing. Raises UnknownNode."""
    found = [node for node in _each(node_ids, known).values() if node.lost_at is not None]
    return Changes(
        nodes=tuple(_but(node, version=node.version + 1, lost_at=None) for node in found),
        events=tuple(Event(kind=EventKind.NODE_BACK, at=now, node_id=node.id) for node in found),
    )


def cordon(node_ids: Iterable[str], known: Mapping[NodeId, Node], *, now: Instant) -> Changes:
    """Nodes take nothing new; what runs there stays. Raises UnknownNode."""
    return _with_intake(node_ids, known, intake=Intake.CORDONED, now=now)


def uncordon(node_ids: Iterable[str], known: Mapping[NodeId, Node], *, now: Instant) -> Changes:
    """Nodes take runs again. Raises UnknownNode."""
    return _with_intake(node_ids, known, intake=Intake.OPEN, now=now)


def _with_intake(
    node_ids: Iterable[str], known: Mapping[NodeId, Node], *, intake: Intake, now: Instant
) -> Changes:
    found = [node for node in _each(node_ids, known).values() if node.intake is not intake]
    return Changes(
        nodes=tuple(_but(node, version=node.version + 1, intake=intake) for node in found),
        events=tuple(
            Event(kind=EventKind.NODE_CHANGED, at=now, node_id=node.id, reason=intake.value)
            for node in found
        ),
    )


def _each(node_ids: Iterable[str], known: Mapping[NodeId, Node]) -> dict[NodeId, Node]:
    """The node of each id, once each, in the order given. Raises UnknownNode."""
    found: dict[NodeId, Node] = {}
    for id in map(NodeId, node_ids):
        if id not in known:
            raise UnknownNode(id)
        found[id] = known[id]
    return found


def _but(node: Node, **fields: object) -> Node:
    return structs.replace(node, **fields)
