"""What becomes of a job when something becomes of its run or its node: one table.

It is plain data, so that `outcomes` and `fleet`, which do not know each other, read the same rows;
what never varies (who is returned, preempted or lost is back at its place) they do without asking.
A test holds each cell against the scheduler. docs/reschedule.md has it in words.
"""

from collections.abc import Iterator
from enum import Enum
from itertools import product
from typing import Final, NamedTuple

from pyresched.reschedule import JobType

__all__ = ["ROWS", "Action", "NodeState", "Row", "RunState", "action"]


class RunState(Enum):
    """What is known of a run, or asked of it."""

    PENDING = "pending"  # leased; its process has not begun
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SETUP_FAILED = "setup_failed"  # it could not be started
    RETURNED = "returned"  # its executor gives it back without blame
    PREEMPTED = "preempted"
    LOST = "lost"  # nobody renewed its lease
    STOPPED = "stopped"  # its user stops it
    UNKNOWN = "unknown"  # out of reach, and not for too long
    EXPIRED = "expired"  # out of reach for too long
    RECONNECTED = "reconnected"  # was out of reach, is back and goes on
    BACK_FAILED = "back_failed"  # was out of reach, is back and has failed


class NodeState(Enum):
    """Where the run is, as far as its group tolerates it."""

    READY = "ready"
    DRAINING = "draining"  # its runs are asked to leave
    DRAIN_OVER = "drain_over"  # the deadline of the drain has passed
    DISCONNECTED = "disconnected"  # out of reach, and the group allows for that (`lost_after`)
    UNREACHABLE = "unreachable"  # out of reach, and the group does not
    DOWN = "down"  # lost
    DOWN_KEPT = "down_kept"  # lost, and the group wants no replacement (`replace = false`)
    GONE = "gone"  # removed


class Action(Enum):
    """What to do."""

    KEEP = "keep"  # nothing: the run goes on, or what it waits for has not come
    DONE = "done"  # the job has succeeded
    RENEW = "renew"  # back to the queue as new: its history is over
    REQUEUE = "requeue"  # back to its place at once: no blame, no delay, history kept
    BACK_OFF = "back_off"  # as the policy says: wait, or fail for good
    FAIL = "fail"  # the job has failed, whatever a policy would say
    STOP_BY_POLICY = "stop_by_policy"  # stop it; the policy says when another follows, if any
    LOSE = "lose"  # the run is lost; its job is back at its place at once
    DISCONNECT = "disconnect"  # the run is unknown; the policy may replace it meanwhile
    AWAIT = "await"  # the run is unknown; nothing takes its place
    MIGRATE = "migrate"  # stop it and place it elsewhere: no delay, no budget
    CALL_OFF = "call_off"  # stop it; nothing follows here
    RECONNECT = "reconnect"  # choose which goes on, it or its replacement


class Row(NamedTuple):
    """For these job types, runs and nodes: that action. An empty set stands for all."""

    types: frozenset[JobType]
    runs: frozenset[RunState]
    nodes: frozenset[NodeState]
    action: Action


_ALL_TYPES: Final[frozenset[JobType]] = frozenset()
_ANYWHERE: Final[frozenset[NodeState]] = frozenset()
_PLACED: Final = frozenset({JobType.SERVICE, JobType.BATCH})
_SYSTEM: Final = frozenset({JobType.SYSTEM, JobType.SYSBATCH})
_FOREVER: Final = frozenset({JobType.SERVICE, JobType.SYSTEM})
_TO_AN_END: Final = frozenset({JobType.BATCH, JobType.SYSBATCH})
_SERVICE: Final = frozenset({JobType.SERVICE})
_BATCH: Final = frozenset({JobType.BATCH})
_SYSBATCH: Final = frozenset({JobType.SYSBATCH})
_FAILURES: Final = frozenset({RunState.FAILED, RunState.SETUP_FAILED, RunState.BACK_FAILED})
_STARTED: Final = frozenset({RunState.RUNNING, RunState.RECONNECTED})
_LIVE: Final = _STARTED | {RunState.PENDING}
_HERE: Final = frozenset({NodeState.READY, NodeState.DRAINING, NodeState.DRAIN_OVER})
_BEYOND: Final = frozenset(
    {NodeState.UNREACHABLE, NodeState.DOWN, NodeState.DOWN_KEPT, NodeState.GONE}
)
_KEPT: Final = frozenset({NodeState.DISCONNECTED, NodeState.DOWN_KEPT})


def _row(
    types: frozenset[JobType],
    runs: frozenset[RunState] | RunState,
    nodes: frozenset[NodeState] | NodeState,
    then: Action,
) -> Row:
    return Row(
        types,
        frozenset({runs}) if isinstance(runs, RunState) else runs,
        frozenset({nodes}) if isinstance(nodes, NodeState) else nodes,
        then,
    )


ROWS: Final[tuple[Row, ...]] = (
    # A run that has ended is what it is, wherever its node has gone since.
    _row(_FOREVER, RunState.SUCCEEDED, _ANYWHERE, Action.RENEW),
    _row(_TO_AN_END, RunState.SUCCEEDED, _ANYWHERE, Action.DONE),
    # A system job has no policy of its own; its template paces it on its node as a service.
    _row(_PLACED | _FOREVER, _FAILURES, _ANYWHERE, Action.BACK_OFF),
    _row(_SYSBATCH, _FAILURES, _ANYWHERE, Action.FAIL),
    _row(_ALL_TYPES, RunState.RETURNED, _ANYWHERE, Action.REQUEUE),
    _row(_ALL_TYPES, RunState.PREEMPTED, _ANYWHERE, Action.REQUEUE),
    _row(_ALL_TYPES, RunState.LOST, _ANYWHERE, Action.LOSE),
    # Users stop runs, not jobs: what is meant to run for ever starts anew at once.
    _row(_FOREVER, RunState.STOPPED, _ANYWHERE, Action.REQUEUE),
    _row(_BATCH, RunState.STOPPED, _ANYWHERE, Action.STOP_BY_POLICY),
    _row(_SYSBATCH, RunState.STOPPED, _ANYWHERE, Action.CALL_OFF),
    # Out of reach for too long is lost, before anything that the node says.
    _row(_ALL_TYPES, RunState.EXPIRED, _ANYWHERE, Action.LOSE),
    _row(_ALL_TYPES, RunState.UNKNOWN, _KEPT, Action.KEEP),
    _row(_ALL_TYPES, RunState.UNKNOWN, _BEYOND, Action.LOSE),
    _row(_ALL_TYPES, RunState.UNKNOWN, _HERE, Action.KEEP),  # until its executor reports
    # What has not begun is not waited for.
    _row(_ALL_TYPES, RunState.PENDING, NodeState.DISCONNECTED, Action.LOSE),
    _row(_PLACED, _STARTED, NodeState.DISCONNECTED, Action.DISCONNECT),
    _row(_SYSTEM, _STARTED, NodeState.DISCONNECTED, Action.AWAIT),
    _row(_PLACED, _STARTED, NodeState.DOWN_KEPT, Action.AWAIT),
    _row(_ALL_TYPES, _LIVE, _BEYOND, Action.LOSE),
    # A drain asks services to go, lets batch end until its deadline, and goes round system jobs
    # until the others have left.
    _row(_SERVICE, _LIVE, NodeState.DRAINING, Action.MIGRATE),
    _row(_BATCH | _SYSTEM, _LIVE - {RunState.RECONNECTED}, NodeState.DRAINING, Action.KEEP),
    _row(_PLACED, _LIVE, NodeState.DRAIN_OVER, Action.MIGRATE),
    _row(_SYSTEM, _LIVE, NodeState.DRAIN_OVER, Action.CALL_OFF),
    _row(_ALL_TYPES, RunState.RECONNECTED, _HERE, Action.RECONNECT),
    _row(_ALL_TYPES, _LIVE, NodeState.READY, Action.KEEP),
)
"""Of the rows that fit the first one counts: what has ended, expiry, disconnection, drain,
return, and then the node."""


def action(job_type: str | JobType, run: RunState, node: NodeState = NodeState.READY) -> Action:
    """What becomes of a job of *job_type* with its *run* in that state on a *node* in that state.

    Total: each combination has an action. Raises ValueError for an unknown job type.
    """
    return _TABLE[JobType(job_type), run, node]


def _first(job_type: JobType, run: RunState, node: NodeState) -> Action:
    return next(_fitting(job_type, run, node))


def _fitting(job_type: JobType, run: RunState, node: NodeState) -> Iterator[Action]:
    """The actions of the rows that fit, in order."""
    for row in ROWS:
        if (
            (not row.types or job_type in row.types)
            and run in row.runs
            and (not row.nodes or node in row.nodes)
        ):
            yield row.action


_TABLE: Final = {
    each: _first(*each) for each in product(tuple(JobType), tuple(RunState), tuple(NodeState))
}
