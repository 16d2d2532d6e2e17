"""What one commit to the journal writes: rows with version guards, and events."""

from collections.abc import Iterable, Mapping
from enum import Enum

from msgspec import Struct

from pyresched._core import Job
from pyresched.ids import Instant, JobId, NodeId, QueueName, RunId
from pyresched.model.nodes import Node
from pyresched.model.queues import Queue

__all__ = ["Changes", "Event", "EventKind", "RowKey", "composed"]

RowKey = tuple[str, str]
"""("job" | "node" | "queue", id)."""


class EventKind(Enum):
    """What a reader of the log sees happen: to a run, a job, a node or a queue.

    Where one step does several things, each is an event, in this order: what became of the
    run, then what became of its job. docs/decisions/events.md says what follows from each.
    """

    SUBMITTED = "submitted"  # a job is in its queue
    REFUSED = "refused"  # a job can never run; it has failed
    LEASED = "leased"  # a run may start: start it
    RESCHEDULED = "rescheduled"  # the run just leased replaces one that failed
    RUNNING = "running"  # a run has started
    SUCCEEDED = "succeeded"  # a run succeeded, and with it its job unless it is requeued
    FAILED = "failed"  # a run failed
    PREEMPTED = "preempted"  # a run gave way: stop it
    RETURNED = "returned"  # a run ended without blame: stop it
    LOST = "lost"  # a run is out of reach: stop it if you still can
    UNKNOWN = "unknown"  # a run is out of reach and may go on: another takes its place meanwhile
    RECONNECTED = "reconnected"  # a run that was unknown goes on, and its job runs
    CANCELLED = "cancelled"  # a user took back a job: stop its run if it has one
    REQUEUED = "requeued"  # a job is back at its place in its queue
    BACKING_OFF = "backing_off"  # a job waits for its delay after a failure
    EXHAUSTED = "exhausted"  # a job has failed for good
    NODE_JOINED = "node_joined"
    NODE_LOST = "node_lost"
    NODE_DISCONNECTED = "node_disconnected"  # it is out of reach, and runs may go on there
    NODE_BACK = "node_back"
    NODE_CHANGED = "node_changed"
    QUEUE_CHANGED = "queue_changed"  # a queue is new or has other settings


class Event(Struct, frozen=True, kw_only=True):
    """One thing that happened. Fields that do not apply are empty; `reason` is a code.

    `backing_off` and `exhausted` say in `attempts_used` how much of the policy is used up, for
    people (`2/3 in 1h`), and in `eligible_at` until when the job waits.
    """

    kind: EventKind
    at: Instant
    queue: QueueName = QueueName("")
    job_set: str = ""
    job_id: JobId = JobId("")
    run_id: RunId = RunId("")
    node_id: NodeId = NodeId("")
    reason: str = ""
    attempts_used: str = ""
    eligible_at: Instant | None = None


class Changes(Struct, frozen=True, kw_only=True):
    """New rows and events, written whole or not at all.

    Each row is one version above the one that its decision was based on (a new row is
    version 1), so that the row guards follow from the rows.
    """

    jobs: tuple[Job, ...] = ()
    nodes: tuple[Node, ...] = ()
    queues: tuple[Queue, ...] = ()
    events: tuple[Event, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.jobs or self.nodes or self.queues or self.events)

    def expected(self) -> Mapping[RowKey, int]:
        """The version that each row must still have; 0 means that there must be none."""
        guards: dict[RowKey, int] = {("job", job.id): job.version - 1 for job in self.jobs}
        guards.update((("node", node.id), node.version - 1) for node in self.nodes)
        guards.update((("queue", queue.name), queue.version - 1) for queue in self.queues)
        return guards


def composed(parts: Iterable[Changes]) -> tuple[Changes, Mapping[RowKey, int]]:
    """*parts*, each decided on top of those before it, as one commit with its guards.

    A row that several parts hand out is written as the last one has it, against the version
    that the first one read.
    """
    jobs: dict[str, Job] = {}
    nodes: dict[str, Node] = {}
    queues: dict[str, Queue] = {}
    events: list[Event] = []
    guards: dict[RowKey, int] = {}
    for part in parts:
        jobs.update((job.id, job) for job in part.jobs)
        nodes.update((node.id, node) for node in part.nodes)
        queues.update((queue.name, queue) for queue in part.queues)
        events += part.events
        guards = {**part.expected(), **guards}
    changes = Changes(
        jobs=tuple(jobs.values()),
        nodes=tuple(nodes.values()),
        queues=tuple(queues.values()),
        events=tuple(events),
    )
    return changes, guards
