"""What one commit to the journal writes: rows with version guards, and events."""

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct

from pyresched._core import Job
from pyresched.model.ids import Instant, JobId, NodeId, QueueName, RunId
from pyresched.model.nodes import Node
from pyresched.model.queues import Queue

__all__ = ["Changes", "Event", "EventKind", "RowKey"]

RowKey = tuple[str, str]
"""("job" | "node" | "queue", id)."""


class EventKind(Enum):
    """What a reader of the log sees happen."""

    SUBMITTED = "submitted"
    REFUSED = "refused"
    LEASED = "leased"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # a run failed
    BACKING_OFF = "backing_off"  # its job waits for its delay
    RESCHEDULED = "rescheduled"  # a new run replaces a failed one
    EXHAUSTED = "exhausted"  # its job failed for good
    PREEMPTED = "preempted"
    RETURNED = "returned"
    LOST = "lost"
    CANCELLED = "cancelled"
    NODE_JOINED = "node_joined"
    NODE_LOST = "node_lost"
    NODE_BACK = "node_back"
    NODE_CHANGED = "node_changed"


class Event(Struct, frozen=True, kw_only=True):
    """One thing that happened. Fields that do not apply are empty; `reason` is a code."""

    kind: EventKind
    at: Instant
    queue: QueueName = QueueName("")
    job_set: str = ""
    job_id: JobId = JobId("")
    run_id: RunId = RunId("")
    node_id: NodeId = NodeId("")
    reason: str = ""


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
