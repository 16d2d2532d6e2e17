"""Nodes out of reach: which runs are lost, which are replaced meanwhile, which are waited for.

Relies on `model.outcome_table` for what to do and on a verdict that is given for when. Keeps
INV-J5 (gangs act as one), INV-J6 and INV-J10.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from pyresched.fleet.rows import but, each_of
from pyresched.model import (
    Changes,
    Draft,
    Event,
    EventKind,
    Instant,
    Job,
    JobId,
    JobReader,
    JobState,
    Node,
    NodeId,
    Outcome,
    ReasonCode,
    Run,
    Verdict,
    next_state,
)
from pyresched.model.moves import GANG, end_run, put_back
from pyresched.model.outcome_table import Action, NodeState, RunState, action
from pyresched.model.reach import NODE_LOST, is_late, lose_unknown, lost_at, tolerated, unknown

__all__ = ["Judge", "disconnect", "expire", "lose", "next_expiry"]

Judge = Callable[[Job, Instant], Verdict]
"""What the policy of a job says of a failure at that time."""

_DISCONNECTED: Final = ReasonCode.NODE_DISCONNECTED.value
_LEAST_GRACE: Final = 5 * 10**9  # a node's time to stop a run, however short its kill_timeout
_END: Final = 2**63 - 1


def disconnect(
    node_ids: Iterable[str],
    known: Mapping[NodeId, Node],
    *,
    jobs: JobReader,
    now: Instant,
    verdict: Judge,
) -> Changes:
    """Nodes are out of reach, and runs may go on there as long as their groups allow for that.

    A run that has not started, or whose group allows for nothing, is lost. One that may be
    replaced is unknown from now on, if its policy gives it another (the failure is *now*); any
    other stays as it is, bound and running. A node on which nothing may go on is lost. One that
    is out of reach already changes nothing. Raises UnknownNode.
    """
    gone = {id: node for id, node in each_of(node_ids, known).items() if node.in_reach}
    draft = Draft(jobs)
    for job in _on(jobs, gone):
        _out_of_reach(draft, job, gone, now=now, verdict=verdict)
    held = _held(jobs, draft, gone, ())
    held |= {run.node_id for job in draft.changes().jobs for run in unknown(job)}
    return _with_nodes(draft, gone.values(), held, now=now)


def lose(
    node_ids: Iterable[str],
    known: Mapping[NodeId, Node],
    *,
    jobs: JobReader,
    now: Instant,
    unsettled: Iterable[JobId] = (),
) -> Changes:
    """Nodes are lost: so are their runs, which are replaced without delay or budget.

    But a run whose group wants no replacement (`replace = false`) is waited for: its node is
    disconnected as long as there is one. *unsettled* names the jobs with unknown runs. One that
    is lost already changes nothing. Raises UnknownNode.
    """
    gone = {id: node for id, node in each_of(node_ids, known).items() if node.lost_at is None}
    draft = Draft(jobs)
    for job in _on(jobs, gone):
        _out_of_reach(draft, job, gone, now=now, verdict=None)
    for job, run in _unknown_runs(draft, unsettled):
        if run.node_id in gone:
            lose_unknown(draft, job, run, at=now)
    return _with_nodes(draft, gone.values(), _held(jobs, draft, gone, ()), now=now)


def expire(
    known: Mapping[NodeId, Node],
    *,
    jobs: JobReader,
    now: Instant,
    unsettled: Collection[JobId] = (),
) -> Changes:
    """What has been out of reach for too long at *now* is lost, and replaced without budget.

    So is a node on which nothing may go on any more. *known* has all nodes that are disconnected.
    """
    away = _away(known)
    if not away and not unsettled:
        return Changes()
    draft = Draft(jobs)
    for row in _on(jobs, away):
        job = draft.seen(row)
        run = job.active_run
        since = None if run is None else away[run.node_id].disconnected_at
        if since is not None and is_late(job, since, now):
            _lose(draft, draft.members(job), away, now=now)
    for job, run in _unknown_runs(draft, unsettled):
        if run.ended_at is not None and is_late(job, run.ended_at, now):
            lose_unknown(draft, job, run, at=now)
    return _with_nodes(draft, away.values(), _held(jobs, draft, away, unsettled), now=now)


def next_expiry(
    known: Mapping[NodeId, Node], jobs: JobReader, unsettled: Collection[JobId] = ()
) -> Instant | None:
    """When the next run that is out of reach is lost, or None while none will be.

    *known* has all nodes that are disconnected.
    """
    away = _away(known)
    times: list[Instant | None] = []
    for job in _on(jobs, away):
        run = job.active_run
        since = None if run is None else away[run.node_id].disconnected_at
        times.append(None if since is None else lost_at(job, since))
    times += [
        None if run.ended_at is None else lost_at(job, run.ended_at)
        for job, run in _unknown_runs(Draft(jobs), unsettled)
    ]
    return min((at for at in times if at is not None), default=None)


def _out_of_reach(
    draft: Draft, row: Job, gone: Mapping[NodeId, Node], *, now: Instant, verdict: Judge | None
) -> None:
    """What becomes of a job whose run is on a node that goes, and of its gang. No verdict: the
    node is down.
    """
    job = draft.seen(row)
    if job.active_run is None:
        return
    members = draft.members(job)
    there = [each for each in members if each.node_id in gone]
    actions = {_action(each, down=verdict is None) for each in there}
    if Action.LOSE in actions:
        _lose(draft, members, gone, now=now)
        return
    replaced = [each for each in there if each.rules is not None and _may_be_replaced(each)]
    if verdict is None or Action.DISCONNECT not in actions or not replaced:
        return
    said = verdict(replaced[0], now)
    if said.eligible:
        _replace(draft, members, gone, said, now=now)


def _action(job: Job, *, down: bool) -> Action:
    """What the table says of the run of *job* where its node is out of reach, or *down*."""
    run = RunState.RUNNING if job.state is JobState.RUNNING else RunState.PENDING
    if not tolerated(job):
        return action(job.job_type, run, NodeState.DOWN if down else NodeState.UNREACHABLE)
    if not down:
        return action(job.job_type, run, NodeState.DISCONNECTED)
    replaced = _may_be_replaced(job)
    return action(job.job_type, run, NodeState.DOWN if replaced else NodeState.DOWN_KEPT)


def _may_be_replaced(job: Job) -> bool:
    rule = None if job.rules is None else job.rules.disconnect
    return rule is None or rule.replace


def _lose(
    draft: Draft, members: Sequence[Job], gone: Mapping[NodeId, Node], *, now: Instant
) -> None:
    """The runs of *members* on nodes that are *gone* are lost; all wait until the nodes have
    surely stopped them, where nodes do.
    """
    there = [each for each in members if each.node_id in gone]
    ends = [at for at in (_stopped_at(each, now) for each in there) if at is not None]
    ended = {each.id: (Outcome.LOST, NODE_LOST) for each in there}
    put_back(draft, ended, at=now, until=max(ends, default=None))


def _stopped_at(job: Job, now: Instant) -> Instant | None:
    """Until when the node of the run of *job* stops it by itself; None: it does not."""
    rule = None if job.rules is None else job.rules.disconnect
    if job.rules is None or rule is None or rule.stop_on_client_after is None:
        return None
    grace = max(job.rules.kill_timeout, _LEAST_GRACE)
    return min(now + rule.stop_on_client_after + grace, _END)


def _replace(
    draft: Draft,
    members: Sequence[Job],
    gone: Mapping[NodeId, Node],
    said: Verdict,
    *,
    now: Instant,
) -> None:
    """The runs on nodes that are *gone* are unknown, the others of the gang stopped, and all wait."""
    for member in members:
        if member.active_run is None:
            continue
        if member.node_id in gone:
            outcome, reason = Outcome.UNKNOWN, _DISCONNECTED
        else:
            outcome, reason = Outcome.RETURNED, GANG
        runs = end_run(draft, member, outcome=outcome, at=now, reason=reason)
        draft.put(
            member.replace(
                state=next_state(member.state, JobState.BACKING_OFF),
                runs=runs,
                failed_at=now,
                eligible_at=said.at,
                retry_delay=said.delay,
            )
        )
        draft.emit(
            *(EventKind.BACKING_OFF, member),
            at=now,
            attempts_used=said.used,
            eligible_at=said.at,
        )


def _on(jobs: JobReader, nodes: Mapping[NodeId, Node]) -> Iterator[Job]:
    """The jobs whose active runs are on *nodes*."""
    if nodes:
        yield from (job for job in jobs.leased() if job.node_id in nodes)


def _away(known: Mapping[NodeId, Node]) -> dict[NodeId, Node]:
    return {id: node for id, node in known.items() if node.disconnected_at is not None}


def _unknown_runs(draft: Draft, unsettled: Iterable[JobId]) -> Iterator[tuple[Job, Run]]:
    """The unknown runs of these jobs, each with its job as it is when its turn comes."""
    for job_id in sorted(unsettled):
        row = draft.job(job_id)
        for run in () if row is None else unknown(row):
            job = draft.job(job_id)
            if job is not None:
                yield job, run


def _held(
    jobs: JobReader, draft: Draft, nodes: Mapping[NodeId, Node], unsettled: Iterable[JobId]
) -> set[NodeId]:
    """Those of *nodes* on which, as decided, a run is active or unknown."""
    rows = (draft.seen(job) for job in _on(jobs, nodes))
    held = {job.active_run.node_id for job in rows if job.active_run is not None}
    return held | {run.node_id for _, run in _unknown_runs(draft, unsettled)}


def _with_nodes(draft: Draft, nodes: Iterable[Node], held: set[NodeId], *, now: Instant) -> Changes:
    """What was decided, and *nodes* as it leaves them: disconnected if they are *held*, or lost."""
    rows: list[Node] = []
    events: list[Event] = []
    for node in nodes:
        if node.id not in held:
            rows.append(but(node, version=node.version + 1, lost_at=now, disconnected_at=None))
            events.append(Event(kind=EventKind.NODE_LOST, at=now, node_id=node.id))
        elif node.disconnected_at is None:
            rows.append(but(node, version=node.version + 1, disconnected_at=now))
            events.append(Event(kind=EventKind.NODE_DISCONNECTED, at=now, node_id=node.id))
    changes = draft.changes()
    return Changes(jobs=changes.jobs, nodes=tuple(rows), events=(*events, *changes.events))
