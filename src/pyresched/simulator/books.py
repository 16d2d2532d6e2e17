"""What became of each job and run of a simulation, kept from the journal's events alone.

Owns the records while they grow. Relies on the order of events: what became of a run, then
what became of its job.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

from pyresched.model import Event, EventKind, Instant, JobId
from pyresched.report.records import JobEnd, JobRecord, Outage, RunRecord
from pyresched.simulator.workload import PlannedJob

__all__ = ["Books", "LiveRun", "Place", "Progress"]

_RUN_ENDS: Final = {
    EventKind.SUCCEEDED: "succeeded",
    EventKind.FAILED: "failed",
    EventKind.PREEMPTED: "preempted",
    EventKind.RETURNED: "returned",
    EventKind.LOST: "lost",
    EventKind.CANCELLED: "cancelled",
    EventKind.UNKNOWN: "unknown",
}


class Place(Enum):
    """Where a job of the log stands."""

    AHEAD = "ahead"  # not submitted yet
    WAITING = "waiting"  # queued or backing off
    RUNNING = "running"
    DONE = "done"


class LiveRun:
    """A run of one piece, as it goes on."""

    __slots__ = (
        "attempt",
        "attempts_used",
        "eligible_at",
        "ended_at",
        "id",
        "node_id",
        "outcome",
        "piece",
        "previous",
        "reason",
        "restarted",
        "restarts",
        "started_at",
        "stopped",
    )

    def __init__(
        self, event: Event, *, piece: int, attempt: int, previous: "LiveRun | None"
    ) -> None:
        self.id = event.run_id
        self.node_id = event.node_id
        self.piece = piece
        self.attempt = attempt
        self.started_at = event.at
        self.ended_at: Instant | None = None
        self.outcome = ""
        self.reason = ""
        self.previous = previous
        self.restarts: tuple[Instant, ...] = ()  # those that still count
        self.restarted = 0
        self.attempts_used = ""
        self.eligible_at: Instant | None = None
        self.stopped = ""  # why nothing follows it


class Progress:
    """How far one job of the log has come. `live` are its active runs by piece."""

    __slots__ = (
        "attempt_at",
        "attempts",
        "end",
        "ended_at",
        "failures",
        "live",
        "place",
        "plan",
        "preempted_at",
        "reason",
        "reschedules",
        "restarts",
        "started_at",
    )

    def __init__(self, plan: PlannedJob) -> None:
        self.plan = plan
        self.place = Place.AHEAD
        self.attempts = 0
        self.attempt_at: Instant | None = None
        self.failures = 0
        self.live: dict[int, LiveRun] = {}
        self.started_at: Instant | None = None
        self.ended_at: Instant | None = None
        self.end: JobEnd | None = None
        self.reason = ""
        self.preempted_at: Instant | None = None  # when a preemption was last counted
        self.reschedules = 0
        self.restarts = 0  # of processes, within runs

    @property
    def whole(self) -> bool:
        """Whether all pieces run."""
        return len(self.live) == len(self.plan.pieces)

    @property
    def active_runs(self) -> Sequence[tuple[JobId, LiveRun]]:
        """Member and run of each piece that runs, in the order of pieces."""
        members = self.plan.member_ids
        return [(members[piece], self.live[piece]) for piece in sorted(self.live)]


class Books:
    """The records of a simulation of *jobs*, fed with every event once and in order."""

    def __init__(self, jobs: Sequence[PlannedJob]) -> None:
        self.progress = [Progress(job) for job in jobs]
        self.allocated_cores = 0
        self.places = Counter({Place.AHEAD: len(jobs)})
        self.waiting: Counter[str] = Counter()
        self.reschedules = 0
        self.preemptions = 0
        self.runs_lost = 0
        self.outages: list[Outage] = []
        self._member: dict[JobId, tuple[Progress, int]] = {}
        self._runs: list[tuple[Progress, LiveRun]] = []
        self._newest: dict[JobId, LiveRun] = {}
        self._unknown: dict[str, LiveRun] = {}  # out of reach, and replaced meanwhile
        self._lost_at: dict[str, int] = {}  # node to its place among the outages
        self._kept: dict[EventKind, Callable[[Event], Progress | None]] = {
            EventKind.LEASED: self._leased,
            EventKind.RESCHEDULED: self._rescheduled,
            EventKind.REFUSED: self._refused,
            EventKind.BACKING_OFF: self._backing_off,
            EventKind.EXHAUSTED: self._exhausted,
            EventKind.RECONNECTED: self._reconnected,
            EventKind.NODE_LOST: self._node_lost,
            EventKind.NODE_BACK: self._node_back,
            **dict.fromkeys(_RUN_ENDS, self._ended),
        }

    @property
    def open_jobs(self) -> int:
        """Jobs that have not ended."""
        return len(self.progress) - self.places[Place.DONE]

    def submitted(self, progress: Progress) -> None:
        """*progress* goes to the scheduler now."""
        for piece, member in enumerate(progress.plan.member_ids):
            self._member[member] = (progress, piece)
        self._move(progress, Place.WAITING)

    def take(self, events: Iterable[Event]) -> list[Progress]:
        """Keep *events*. Returns the jobs that started, each once, in order."""
        started: dict[JobId, Progress] = {}
        for event in events:
            keep = self._kept.get(event.kind)
            if keep is not None and (progress := keep(event)) is not None:
                started[progress.plan.id] = progress
        return list(started.values())

    def job_records(self, waiting_for: Mapping[JobId, str]) -> tuple[JobRecord, ...]:
        """One record a job, in the order of the log.

        *waiting_for* gives the code of why a member waits, for jobs that have not ended.
        """
        return tuple(_job_record(progress, waiting_for) for progress in self.progress)

    def run_records(self) -> tuple[RunRecord, ...]:
        """One record a run of a piece, in the order of their starts."""
        return tuple(_run_record(progress, run) for progress, run in self._runs)

    def _leased(self, event: Event) -> Progress:
        progress, piece = self._member[event.job_id]
        # All pieces start at once; one that starts later was moved, and the rest start over.
        if not progress.live or progress.attempt_at != event.at:
            progress.attempts += 1
            progress.attempt_at = event.at
        if progress.place is Place.WAITING:
            self._move(progress, Place.RUNNING)
        before = self._newest.get(event.job_id)
        run = LiveRun(event, piece=piece, attempt=progress.attempts, previous=before)
        self._newest[event.job_id] = run
        assert piece not in progress.live, f"{event.job_id}: two runs at once"
        progress.live[piece] = run
        self._runs.append((progress, run))
        self.allocated_cores += progress.plan.pieces[piece]
        if progress.started_at is None:
            progress.started_at = event.at
        return progress

    def _ended(self, event: Event) -> None:
        progress, piece = self._member[event.job_id]
        if event.run_id in self._unknown:
            # It was given up before, and its job has another run or none.
            _close(self._unknown.pop(event.run_id), event)
            self._count_end(progress, event)
            return
        if event.run_id:
            run = progress.live.pop(piece)
            assert run.id == event.run_id, f"{event.job_id}: {event.run_id} is not its run"
            _close(run, event)
            self.allocated_cores -= progress.plan.pieces[piece]
            self._count_end(progress, event)
            if event.kind is EventKind.UNKNOWN:
                self._unknown[run.id] = run
        if event.kind is EventKind.SUCCEEDED:
            if not progress.live:
                self._close(progress, JobEnd.SUCCEEDED, event)
        elif event.kind is EventKind.CANCELLED:
            if not progress.live:
                self._close(progress, JobEnd.CANCELLED, event)
        elif not progress.live and progress.place is Place.RUNNING:
            self._move(progress, Place.WAITING)

    def _count_end(self, progress: Progress, event: Event) -> None:
        """A gang counts once, whatever the number of its pieces; lost runs count each."""
        if event.kind is EventKind.LOST:
            self.runs_lost += 1
        elif event.kind is EventKind.PREEMPTED and progress.preempted_at != event.at:
            progress.preempted_at = event.at
            self.preemptions += 1
        elif event.kind is EventKind.FAILED:
            progress.failures += 1

    def _reconnected(self, event: Event) -> None:
        """A run that was out of reach goes on; what had replaced it has ended."""
        progress, piece = self._member[event.job_id]
        run = self._unknown.pop(event.run_id)
        run.ended_at, run.outcome, run.reason = None, "", ""
        progress.live[piece] = self._newest[event.job_id] = run
        self.allocated_cores += progress.plan.pieces[piece]
        if progress.place is Place.WAITING:
            self._move(progress, Place.RUNNING)

    def _rescheduled(self, event: Event) -> None:
        progress, piece = self._member[event.job_id]
        if piece == 0:
            self.reschedules += 1
            progress.reschedules += 1

    def _backing_off(self, event: Event) -> None:
        run = self._newest[event.job_id]
        run.attempts_used, run.eligible_at = event.attempts_used, event.eligible_at

    def _refused(self, event: Event) -> None:
        self._close(self._member[event.job_id][0], JobEnd.REFUSED, event)

    def _exhausted(self, event: Event) -> None:
        run = self._newest[event.job_id]
        run.attempts_used, run.eligible_at, run.stopped = event.attempts_used, None, event.reason
        self._close(self._member[event.job_id][0], JobEnd.FAILED, event)

    def _node_lost(self, event: Event) -> None:
        self._lost_at[event.node_id] = len(self.outages)
        self.outages.append(Outage(node_id=event.node_id, lost_at=event.at))

    def _node_back(self, event: Event) -> None:
        at = self._lost_at.pop(event.node_id, None)
        if at is None:  # it was out of reach only
            return
        lost = self.outages[at]
        self.outages[at] = Outage(node_id=lost.node_id, lost_at=lost.lost_at, back_at=event.at)

    def _close(self, progress: Progress, end: JobEnd, event: Event) -> None:
        """A job has ended; each member of a gang says so, the first one counts."""
        if progress.end is None:
            progress.end = end
            progress.ended_at = max(event.at, progress.plan.log.submitted_at)
            progress.reason = event.reason
            self._move(progress, Place.DONE)

    def _move(self, progress: Progress, place: Place) -> None:
        self.places[progress.place] -= 1
        self.places[place] += 1
        if progress.place is Place.WAITING:
            self.waiting[progress.plan.queue] -= 1
        elif place is Place.WAITING:
            self.waiting[progress.plan.queue] += 1
        progress.place = place


def _close(run: LiveRun, event: Event) -> None:
    """*run* has ended as *event* says."""
    run.ended_at = max(event.at, run.started_at)
    run.outcome = _RUN_ENDS[event.kind]
    run.reason = event.reason


def _job_record(progress: Progress, waiting_for: Mapping[JobId, str]) -> JobRecord:
    plan = progress.plan
    reason = progress.reason
    if progress.end is None:
        member = plan.member_ids[0]
        reason = waiting_for.get(member, "") or progress.place.value
    return JobRecord(
        id=str(plan.log.number),
        queue=plan.queue,
        submitted_at=plan.log.submitted_at,
        started_at=progress.started_at,
        ended_at=progress.ended_at,
        end=JobEnd.UNFINISHED if progress.end is None else progress.end,
        runs=progress.attempts,
        reschedules=progress.reschedules,
        restarts=progress.restarts,
        reason=reason,
        priority_class=plan.priority_class,
        cores=plan.log.cores,
        pieces=len(plan.pieces),
        run_time=plan.log.run_time or 0,
    )


def _run_record(progress: Progress, run: LiveRun) -> RunRecord:
    plan = progress.plan
    return RunRecord(
        id=run.id,
        job_id=str(plan.log.number),
        node_id=run.node_id,
        started_at=run.started_at,
        ended_at=run.ended_at,
        outcome=run.outcome,
        reason=run.reason,
        queue=plan.queue,
        cores=plan.pieces[run.piece],
        attempt=run.attempt,
        piece=run.piece,
        previous_run="" if run.previous is None else run.previous.id,
        previous_node="" if run.previous is None else run.previous.node_id,
        attempts_used=run.attempts_used,
        eligible_at=run.eligible_at,
        stopped=run.stopped,
        restarts=run.restarted,
    )
