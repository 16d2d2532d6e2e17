"""A reader of the log that knows nothing else: what docs/decisions/events.md promises it."""

from collections.abc import Iterable

from pyresched.model import Event, EventKind, JobId, JobState, NodeId, RunId

__all__ = ["Replay"]

_JOB_IS = {
    EventKind.SUBMITTED: JobState.QUEUED,
    EventKind.REFUSED: JobState.FAILED,
    EventKind.LEASED: JobState.LEASED,
    EventKind.RUNNING: JobState.RUNNING,
    EventKind.RECONNECTED: JobState.RUNNING,
    EventKind.SUCCEEDED: JobState.SUCCEEDED,
    EventKind.CANCELLED: JobState.CANCELLED,
    EventKind.REQUEUED: JobState.QUEUED,
    EventKind.BACKING_OFF: JobState.BACKING_OFF,
    EventKind.EXHAUSTED: JobState.FAILED,
}
# A service is queued again; force, or another policy, brings back what failed.
_AFTER = {
    JobState.SUCCEEDED: {EventKind.REQUEUED},
    JobState.FAILED: {EventKind.REQUEUED, EventKind.BACKING_OFF},
}
_RUN_ENDS = {
    EventKind.SUCCEEDED,
    EventKind.FAILED,
    EventKind.PREEMPTED,
    EventKind.RETURNED,
    EventKind.LOST,
    EventKind.CANCELLED,
}


class Replay:
    """States of jobs, active and unknown runs and nodes out of reach, from events alone."""

    def __init__(self) -> None:
        self.states: dict[JobId, JobState] = {}
        self.runs: dict[RunId, tuple[JobId, NodeId]] = {}
        self.started: set[RunId] = set()
        self.unknown: dict[RunId, tuple[JobId, NodeId]] = {}
        self.lost: set[NodeId] = set()
        self.disconnected: set[NodeId] = set()
        self.rescheduled: dict[JobId, list[int]] = {}

    def read(self, events: Iterable[Event]) -> None:
        """Follow *events*. Fails when one cannot follow from those before it."""
        for event in events:
            self._node(event)
            if not event.job_id:
                continue
            state = None
            if event.kind is EventKind.SUBMITTED:
                before = self.states.get(event.job_id)
                assert before is None or before.terminal, event
            else:
                state = self.states[event.job_id]
                late = event.kind in _AFTER.get(state, ()) or event.run_id in self.unknown
                assert not state.terminal or late, event
            if event.kind is EventKind.REQUEUED and state is JobState.SUCCEEDED:
                self.rescheduled.pop(event.job_id, None)  # a service starts anew
            if event.kind is EventKind.LEASED:
                assert event.run_id not in self.started, "a run id is used once"
                assert event.job_id not in {job for job, _ in self.runs.values()}, event
                self.started.add(event.run_id)
                self.runs[event.run_id] = (event.job_id, event.node_id)
            elif event.kind is EventKind.RESCHEDULED:
                assert event.run_id in self.runs, event
                self.rescheduled.setdefault(event.job_id, []).append(event.at)
            elif event.kind is EventKind.UNKNOWN:
                self.unknown[event.run_id] = self.runs.pop(event.run_id)
            elif event.kind is EventKind.RECONNECTED:
                assert event.job_id not in {job for job, _ in self.runs.values()}, event
                self.runs[event.run_id] = self.unknown.pop(event.run_id)
            elif event.kind in _RUN_ENDS and event.run_id in self.unknown:
                assert self.unknown.pop(event.run_id) == (event.job_id, event.node_id), event
            elif event.kind in _RUN_ENDS and event.run_id:
                assert self.runs.pop(event.run_id) == (event.job_id, event.node_id), event
            if event.kind in _JOB_IS:
                self.states[event.job_id] = _JOB_IS[event.kind]

    def _node(self, event: Event) -> None:
        if event.kind is EventKind.NODE_LOST:
            assert event.node_id not in self.lost, event
            self.lost.add(event.node_id)
            self.disconnected.discard(event.node_id)
        elif event.kind is EventKind.NODE_DISCONNECTED:
            assert event.node_id not in self.lost | self.disconnected, event
            self.disconnected.add(event.node_id)
        elif event.kind is EventKind.NODE_BACK:
            (self.lost if event.node_id in self.lost else self.disconnected).remove(event.node_id)
