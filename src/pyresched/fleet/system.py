"""System jobs follow the nodes: one job of each template on each node that is there and matches.

Relies on ids that follow from template and node, so that what exists is looked up, and nothing
needs to be remembered. Keeps INV-J12.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from msgspec import structs

from pyresched.config import SchedulingConfig
from pyresched.fleet.drains import cleared
from pyresched.model import (
    Changes,
    Draft,
    EventKind,
    Instant,
    Intake,
    Job,
    JobId,
    JobReader,
    JobState,
    JobType,
    Node,
    NodeId,
    ReasonCode,
    RowKey,
)
from pyresched.model.moves import call_off
from pyresched.model.system import is_pinned, is_template, pinned, pinned_id, pools_of
from pyresched.nodedb.refusals import explain

__all__ = ["NODE_MOVED", "SystemJobs"]

NODE_MOVED: Final = "node_moved"
"""Reason of a pinned job that was called off because its node is in another pool now."""

_DRAINING: Final = ReasonCode.NODE_DRAINING.value
_CALLED_OFF: Final = frozenset({NODE_MOVED, *(code.value for code in ReasonCode)})
"""Reasons of pinned jobs that ended because of their node: they come back with it."""


class _Last(NamedTuple):
    """The last job of a template on a node, and the how many-eth it is; 0: there never was one."""

    node_id: NodeId
    job: Job | None
    generation: int


class SystemJobs:
    """What the templates of a snapshot lead to on nodes; remembers which nodes match."""

    def __init__(self, config: SchedulingConfig) -> None:
        self._config = config
        # By template and node: the row that was looked at, and why not.
        self._known: dict[JobId, dict[NodeId, tuple[Node, str]]] = {}

    def __call__(
        self,
        snapshot: JobReader,
        nodes: Mapping[NodeId, Node],
        now: Instant,
        *,
        leaving: frozenset[NodeId] | None = None,
    ) -> tuple[Changes, Mapping[RowKey, int]]:
        """Jobs to make and to call off at *now*, and the versions that rows must still have.

        A job is made for each node of the template's pools that matches, could hold it, and is
        neither lost nor draining; on one that is cordoned or disconnected it waits. It is called
        off when its node goes, no longer matches, or drains and the others have left (not at all
        if the drain goes round system jobs), and made anew when it does again: but only once
        that is committed, so ask until there is nothing left to change. *leaving* is what
        `fleet.cleared` says of the nodes, for who knows. One of a
        `system` job that has ended comes back; one of a `sysbatch` job only if its node was to
        blame. Templates are among the guards, so that none is cancelled meanwhile.
        """
        draft = Draft(snapshot)
        if leaving is None:
            leaving = cleared(nodes, jobs=snapshot)
        templates = [job for job in snapshot.unvalidated() if is_template(job)]
        self._known = {each.id: self._known.get(each.id, {}) for each in templates}
        guards: dict[RowKey, int] = {}
        for template in templates:
            if self._tend(draft, template, nodes, leaving, now):
                guards["job", template.id] = template.version
        changes = draft.changes()
        return changes, {**changes.expected(), **guards}

    def of(self, template: Job, snapshot: JobReader, node_ids: Iterable[NodeId]) -> Iterator[JobId]:
        """The jobs of *template* on these nodes that have not ended."""
        for last in _last_jobs(template, snapshot, node_ids):
            if last.job is not None and not last.job.state.terminal:
                yield last.job.id

    def _tend(
        self,
        draft: Draft,
        template: Job,
        nodes: Mapping[NodeId, Node],
        leaving: frozenset[NodeId],
        now: Instant,
    ) -> bool:
        """Decide for one template; whether a job was made."""
        made = False
        for last in _last_jobs(template, draft.reader, nodes):
            node, job = nodes[last.node_id], last.job
            why_not = self._why_not(template, node)
            if job is not None and not job.state.terminal:
                stays = not why_not or (why_not == _DRAINING and node.id not in leaving)
                if stays and job.pools == (node.pool,):
                    continue
                call_off(draft, job, at=now, reason=why_not or NODE_MOVED)
            elif not why_not and _comes_back(job) and self._could_hold(node, template):
                new = draft.put(pinned(template, node, last.generation + 1))
                draft.emit(EventKind.SUBMITTED, new, at=now)
                made = True
        return made

    def _why_not(self, template: Job, node: Node) -> str:
        """Why no job of *template* belongs on *node*, as a code; "" if one does."""
        known = self._known[template.id]
        row, why_not = known.get(node.id, (None, ""))
        if row is not node:
            why_not = _refusal(template, node)
            known[node.id] = (node, why_not)
        return why_not

    def _could_hold(self, node: Node, template: Job) -> bool:
        """Whether *node* has what a job asks for when nothing else is there."""
        wanted = self._config.on_nodes(template.requirements.resources)
        return wanted.fits_in(node.allocatable)


def _refusal(template: Job, node: Node) -> str:
    if node.lost_at is not None:
        return ReasonCode.NODE_LOST.value
    if node.pool not in pools_of(template):
        return NODE_MOVED
    as_open = structs.replace(node, intake=Intake.OPEN, disconnected_at=None)
    refused = explain(template.requirements, as_open)
    if refused is not None:
        return refused.code.value
    return _DRAINING if node.intake is Intake.DRAINING else ""


def _comes_back(job: Job | None) -> bool:
    """Whether there is a next one after *job*, which has ended or never was."""
    if job is None or job.job_type == JobType.SYSTEM.value:
        return True
    return job.state is JobState.CANCELLED and job.reason in _CALLED_OFF


def _last_jobs(template: Job, snapshot: JobReader, node_ids: Iterable[NodeId]) -> Iterator[_Last]:
    """The last job of *template* on each node, but where another's job has the id of the next."""
    last = {id: _Last(id, None, 0) for id in node_ids}
    asked, generation = list(last), 0
    while asked:
        generation += 1
        rows = snapshot.get_many([pinned_id(template.id, id, generation) for id in asked])
        ended = []
        for id, row in zip(asked, rows, strict=True):
            if row is None:
                continue
            if is_pinned(row) and row.requirements.nodes == (id,):
                last[id] = _Last(id, row, generation)
            elif row.state.terminal:
                last[id] = last[id]._replace(generation=generation)
            else:
                del last[id]
            if row.state.terminal:
                ended.append(id)
        asked = ended
    yield from last.values()
