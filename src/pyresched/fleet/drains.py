"""Nodes that drain: which runs leave now, and when to look again.

Relies on `model.outcome_table` for who has to leave. Keeps INV-J5 (gangs leave as one) and
INV-J6: whoever leaves is back at its place, without delay or budget.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pyresched.model import (
    Changes,
    Draft,
    Instant,
    Intake,
    Job,
    JobReader,
    JobState,
    Node,
    NodeId,
    Outcome,
)
from pyresched.model.moves import put_back
from pyresched.model.outcome_table import Action, NodeState, RunState, action
from pyresched.model.system import SYSTEM_TYPES

__all__ = ["DRAINED", "cleared", "migrate", "next_drain"]

DRAINED: Final = "drained"
"""Reason of a run that had to leave its node."""

_END: Final = 2**63 - 1
_Group = tuple[str, str]


def migrate(known: Mapping[NodeId, Node], *, jobs: JobReader, now: Instant) -> Changes:
    """Jobs that leave draining nodes at *now* go back to their places.

    At the deadline of its node's drain each has to. Before it services do, of a group no more
    than leave it `max_parallel` short of healthy runs; one without a rule goes by itself. Batch
    jobs are left to their end, system jobs to `SystemJobs`. *known* has all nodes that drain or
    are disconnected.
    """
    draining = _draining(known)
    draft = Draft(jobs)
    paced: dict[_Group, list[tuple[Instant, Instant, Job]]] = {}
    for row in _on(jobs, draining):
        job = draft.seen(row)
        if job.node_id not in draining or not _leaves(job, draining, now):
            continue
        node, group = draining[job.node_id], _group(job)
        if group is None or _is_over(node, now):
            _send_away(draft, job, now=now)
        else:
            paced.setdefault(group, []).append((_deadline(node), job.submitted_at, job))
    if paced:
        healthy = _healthy(jobs, draft, known, paced, now=now)
        for group, waiting in paced.items():
            first = [job for *_, job in sorted(waiting, key=lambda each: (*each[:2], each[2].id))]
            _send_some(draft, first, healthy[group], now=now)
    return draft.changes()


def cleared(known: Mapping[NodeId, Node], *, jobs: JobReader) -> frozenset[NodeId]:
    """The draining nodes whose system jobs leave: all others have left, at the deadline at last.

    None of those whose drain goes round system jobs.
    """
    draining = {id: node for id, node in _draining(known).items() if node.drain_system}
    left = {job.node_id for job in _on(jobs, draining) if job.job_type not in SYSTEM_TYPES}
    return frozenset(id for id in draining if id not in left)


def next_drain(known: Mapping[NodeId, Node], *, jobs: JobReader, now: Instant) -> Instant | None:
    """When after *now* a drain is over, or a run becomes healthy that others wait for to leave."""
    draining = _draining(known)
    times: list[Instant] = []
    waiting: set[_Group] = set()
    for job in _on(jobs, draining):
        assert job.node_id is not None, "it is on one of them"
        node = draining[job.node_id]
        if node.drain_system or job.job_type not in SYSTEM_TYPES:
            times.append(_deadline(node))
        group = _group(job)
        if group is not None and _leaves(job, draining, now):
            waiting.add(group)
    if waiting:
        rows = (job for job in jobs.leased() if _group(job) in waiting)
        times += [_healthy_from(job) for job in rows]
    return min((at for at in times if now < at < _END), default=None)


def _send_some(draft: Draft, jobs: Iterable[Job], healthy: int, *, now: Instant) -> None:
    """Let go of as many of *jobs*, all of one group, as its *healthy* runs allow; gangs whole."""
    allowed: int | None = None
    for row in jobs:
        job = draft.seen(row)
        rules = job.rules
        if job.active_run is None or rules is None or rules.migrate is None:
            continue
        if allowed is None:
            allowed = healthy - (rules.count - rules.migrate.max_parallel)
        if allowed <= 0:
            return
        allowed -= _send_away(draft, job, now=now)


def _send_away(draft: Draft, job: Job, *, now: Instant) -> int:
    """End the run of *job*, and those of its gang; how many those were."""
    members = [each for each in draft.members(job) if each.active_run is not None]
    put_back(draft, {each.id: (Outcome.RETURNED, DRAINED) for each in members}, at=now)
    return len(members)


def _leaves(job: Job, draining: Mapping[NodeId, Node], now: Instant) -> bool:
    """Whether the table asks the run of *job* to go from the draining node that it is on."""
    run = RunState.RUNNING if job.state is JobState.RUNNING else RunState.PENDING
    over = job.node_id is not None and _is_over(draining[job.node_id], now)
    node = NodeState.DRAIN_OVER if over else NodeState.DRAINING
    return action(job.job_type, run, node) is Action.MIGRATE


def _healthy(
    jobs: JobReader,
    draft: Draft,
    known: Mapping[NodeId, Node],
    groups: Iterable[_Group],
    *,
    now: Instant,
) -> Mapping[_Group, int]:
    """How many runs of each of *groups* are in reach and have run for long enough."""
    counts = dict.fromkeys(groups, 0)
    for row in jobs.leased():
        group = _group(row)
        job = draft.seen(row)
        if group not in counts or job.node_id is None:
            continue
        node = known.get(job.node_id)
        in_reach = node is None or node.in_reach
        counts[group] += in_reach and _healthy_from(job) <= now
    return counts


def _healthy_from(job: Job) -> Instant:
    """When the active run of *job* counts as healthy, or the end of time."""
    run, rules = job.active_run, job.rules
    if run is None or run.started_at is None or rules is None or rules.migrate is None:
        return _END
    return min(run.started_at + rules.migrate.min_healthy_time, _END)


def _group(job: Job) -> _Group | None:
    """The group in whose pace *job* migrates; None: by itself."""
    rules = job.rules
    if rules is None or rules.migrate is None:
        return None
    return job.queue, rules.group


def _draining(known: Mapping[NodeId, Node]) -> dict[NodeId, Node]:
    """The nodes that drain and are in reach: what is out of reach is not asked to leave."""
    return {
        id: node for id, node in known.items() if node.intake is Intake.DRAINING and node.in_reach
    }


def _on(jobs: JobReader, nodes: Mapping[NodeId, Node]) -> Iterator[Job]:
    """The jobs whose active runs are on *nodes*."""
    if nodes:
        yield from (job for job in jobs.leased() if job.node_id in nodes)


def _deadline(node: Node) -> Instant:
    return _END if node.drain_deadline is None else node.drain_deadline


def _is_over(node: Node, now: Instant) -> bool:
    return _deadline(node) <= now
