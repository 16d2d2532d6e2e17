"""Nodes that come, change and return, and what operators let them take: as changes.

Relies on `fleet.reach` for those that go. Keeps INV-J10.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from pyresched.errors import DuplicateId, InputError
from pyresched.fleet.rows import but, each_of
from pyresched.model import (
    Changes,
    Draft,
    Duration,
    Event,
    EventKind,
    Instant,
    Intake,
    JobReader,
    Node,
    NodeId,
)
from pyresched.model.moves import with_run

__all__ = ["back", "cordon", "drain", "join", "uncordon", "undrain"]

_END: Final = 2**63 - 1


def join(
    nodes: Iterable[Node],
    known: Mapping[NodeId, Node],
    *,
    now: Instant,
    jobs: JobReader | None = None,
    lease: Duration | None = None,
) -> Changes:
    """Take in *nodes*, new ones and known ones that come with other figures.

    A known node keeps what an operator set; it is back when it was out of reach, with what
    `back` does for its runs. One that is as it was known changes nothing. Raises DuplicateId
    when an id comes with two figures.
    """
    given: dict[NodeId, Node] = {}
    for node in nodes:
        if given.setdefault(node.id, node) != node:
            raise DuplicateId(f"node {node.id!r} comes twice with different figures; send one")
    rows: list[Node] = []
    events: list[Event] = []
    renewed: set[NodeId] = set()
    for node in given.values():
        old = known.get(node.id)
        if old is None:
            rows.append(but(node, version=1, lost_at=None, disconnected_at=None))
            events.append(Event(kind=EventKind.NODE_JOINED, at=now, node_id=node.id))
            continue
        if not old.in_reach:
            events.append(Event(kind=EventKind.NODE_BACK, at=now, node_id=node.id))
        if old.disconnected_at is not None:
            renewed.add(node.id)
        row = but(
            node,
            version=old.version,
            lost_at=None,
            disconnected_at=None,
            intake=old.intake,
            drain_deadline=old.drain_deadline,
            drain_system=old.drain_system,
        )
        if row != but(old, lost_at=None, disconnected_at=None):
            events.append(Event(kind=EventKind.NODE_CHANGED, at=now, node_id=node.id))
        if row != old:
            rows.append(but(row, version=old.version + 1))
    kept = _renewed(renewed, jobs, now=now, lease=lease)
    return Changes(jobs=kept.jobs, nodes=tuple(rows), events=tuple(events))


def back(
    node_ids: Iterable[str],
    known: Mapping[NodeId, Node],
    *,
    now: Instant,
    jobs: JobReader | None = None,
    lease: Duration | None = None,
) -> Changes:
    """Nodes are in reach again: lost ones empty, disconnected ones with the runs that they kept.

    Those have a whole *lease* again, since nobody could renew it. One that is in reach changes
    nothing. Raises UnknownNode.
    """
    found = [node for node in each_of(node_ids, known).values() if not node.in_reach]
    renewed = {node.id for node in found if node.disconnected_at is not None}
    kept = _renewed(renewed, jobs, now=now, lease=lease)
    return Changes(
        jobs=kept.jobs,
        nodes=tuple(
            but(node, version=node.version + 1, lost_at=None, disconnected_at=None)
            for node in found
        ),
        events=tuple(Event(kind=EventKind.NODE_BACK, at=now, node_id=node.id) for node in found),
    )


def _renewed(
    node_ids: set[NodeId], jobs: JobReader | None, *, now: Instant, lease: Duration | None
) -> Changes:
    """The jobs on these nodes with leases that begin now."""
    if not node_ids or jobs is None or lease is None:
        return Changes()
    draft = Draft(jobs)
    for job in jobs.leased():
        run = job.active_run
        if run is not None and run.node_id in node_ids:
            draft.put(job.replace(runs=with_run(job, run.replace(lease_expires_at=now + lease))))
    return draft.changes()


def cordon(node_ids: Iterable[str], known: Mapping[NodeId, Node], *, now: Instant) -> Changes:
    """Nodes take nothing new; what runs there stays. Raises UnknownNode."""
    nodes = each_of(node_ids, known).values()
    return _as_set(nodes, intake=Intake.CORDONED, now=now)


def uncordon(node_ids: Iterable[str], known: Mapping[NodeId, Node], *, now: Instant) -> Changes:
    """Nodes take runs again. Raises UnknownNode."""
    return _as_set(each_of(node_ids, known).values(), intake=Intake.OPEN, now=now)


def drain(
    node_ids: Iterable[str],
    known: Mapping[NodeId, Node],
    *,
    now: Instant,
    deadline: Duration | None = None,
    ignore_system: bool = False,
) -> Changes:
    """Nodes take nothing new, and what runs there leaves as `fleet.drains` says.

    Whatever is left after *deadline* nanoseconds has to go; None leaves batch jobs to their end.
    With *ignore_system* system jobs stay. Drained again, a node has the new deadline. Raises
    UnknownNode, or InputError for a deadline that is no time.
    """
    if deadline is not None and (type(deadline) is not int or deadline < 0):
        raise InputError(f"deadline {deadline!r}: write nanoseconds, 0 or more; or None")
    until = None if deadline is None else min(now + deadline, _END)
    return _as_set(
        each_of(node_ids, known).values(),
        intake=Intake.DRAINING,
        now=now,
        drain_deadline=until,
        drain_system=not ignore_system,
    )


def undrain(node_ids: Iterable[str], known: Mapping[NodeId, Node], *, now: Instant) -> Changes:
    """Nodes that drain take runs again; others stay as they are. Raises UnknownNode."""
    nodes = each_of(node_ids, known).values()
    draining = [node for node in nodes if node.intake is Intake.DRAINING]
    return _as_set(draining, intake=Intake.OPEN, now=now)


def _as_set(
    nodes: Iterable[Node],
    *,
    intake: Intake,
    now: Instant,
    drain_deadline: Instant | None = None,
    drain_system: bool = True,
) -> Changes:
    """Those of *nodes* that are not so yet."""
    wanted = [
        (
            node,
            but(node, intake=intake, drain_deadline=drain_deadline, drain_system=drain_system),
        )
        for node in nodes
    ]
    changed = [row for node, row in wanted if row != node]
    return Changes(
        nodes=tuple(but(row, version=row.version + 1) for row in changed),
        events=tuple(
            Event(kind=EventKind.NODE_CHANGED, at=now, node_id=row.id, reason=intake.value)
            for row in changed
        ),
    )
