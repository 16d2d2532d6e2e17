"""The production scheduler under a virtual clock: a heap of events that drives `Scheduler`.

Owns time and nothing else of scheduling: what starts, stops and waits is learnt from the
journal's events. Relies on `Books` for the records. No cycle is closer to the one before than
asked for, and events reach the scheduler in the order of their times.
"""

import heapq
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import partial
from typing import Any, Final

from msgspec import Struct

from pyresched.config import SchedulingConfig
from pyresched.durations import INT64_MAX
from pyresched.errors import InputError
from pyresched.model import (
    NANOS,
    Duration,
    Instant,
    Job,
    JobId,
    Node,
    PoolName,
    Queue,
    RoundResult,
    RunId,
)
from pyresched.outcomes import Report, ReportKind
from pyresched.report.records import Outage, Sample
from pyresched.reschedule import Exit, RestartAction, next_restart, restart_bits
from pyresched.scheduler import Scheduler
from pyresched.scheduling import Arguments
from pyresched.simulator.books import Books, LiveRun, Place, Progress
from pyresched.simulator.formats.swf import Ending
from pyresched.simulator.samples import Samples
from pyresched.simulator.workload import CPU, Workload, cores_of
from pyresched.store import MemoryJournal

__all__ = ["EXIT", "CheckFailed", "Engine", "Moment"]

EXIT: Final = "exit_status"
"""Reason of a run whose process failed, as its log says or as its seed drew."""
_LEAST_WAIT: Final = NANOS // 1000
"""What a restart takes at the least, so that no run starts over for ever at one instant."""


class _Kind(IntEnum):
    """Order of events of one instant: what ends makes room before what comes asks for it."""

    RUN_ENDS = 0
    NODE_LOST = 1
    NODE_BACK = 2
    CANCEL = 3
    SUBMIT = 4
    RENEW = 5
    WAKE = 6


class Moment(Struct, frozen=True, kw_only=True, gc=False):
    """Where a simulation stands after a cycle; counts are of jobs of the log."""

    now: Instant
    start: Instant
    done: int
    waiting: int
    running: int
    total: int


class CheckFailed(AssertionError):
    """An invariant does not hold: a defect of the scheduler, never of the log."""


class Engine:
    """One simulation of *workload* on *nodes*: `run` once.

    A run starts when it is leased and is left alone until its time is over, its node is lost,
    or the scheduler stops it. *cycle* is the least time between two cycles, *until* an instant
    after which nothing happens. *checks* is called after each cycle and yields breaches,
    *on_round* with what each round takes before it runs.
    """

    def __init__(
        self,
        workload: Workload,
        *,
        nodes: Sequence[Node],
        queues: Sequence[Queue],
        outages: Sequence[Outage],
        config: SchedulingConfig,
        cycle: Duration,
        until: Instant | None,
        on_cycle: Callable[[Moment], None] | None,
        checks: Callable[[Scheduler], list[str]] | None,
        on_round: Callable[[Arguments], None] | None = None,
    ) -> None:
        self._workload = workload
        self._until = until
        self._cycle = cycle
        self._on_cycle = on_cycle
        self._checks = checks
        self._on_round = on_round
        self._run_count = 0
        lease = config.lease_duration
        self._renewal = None if lease is None else max(lease // 3, 1)
        self._journal = MemoryJournal(keep_ended=False)
        self._scheduler = Scheduler(config, self._journal, ids=self._next_run_id)
        self._cursor = 0
        self._cores = {node.id: cores_of(node.total, config) for node in nodes}
        self._capacity = sum(self._cores.values())
        self.start: Instant = workload.jobs[0].log.submitted_at
        self.end: Instant = self.start
        self.cycles = 0
        self.books = Books(workload.jobs)
        self._samples = Samples(self.start)
        self._heap: list[tuple[Instant, _Kind, int, Any]] = []
        self._pushed = 0
        self._wake_at: Instant | None = None
        self._rounds: dict[PoolName, RoundResult] = {}
        self._reports: list[Report] = []
        self._arrived: list[Job] = []
        for progress in self.books.progress:
            self._push(progress.plan.log.submitted_at, _Kind.SUBMIT, progress)
        for outage in outages:
            self._push(outage.lost_at, _Kind.NODE_LOST, outage.node_id)
            if outage.back_at is not None:
                self._push(outage.back_at, _Kind.NODE_BACK, outage.node_id)
        self._scheduler.put_queues(queues, self.start)
        self._scheduler.join_nodes(nodes, self.start)
        self._learn()

    def run(self) -> None:
        """Until every job has ended, nothing more can happen, or *until*."""
        earliest = self.start
        while self._heap and self.books.open_jobs:
            now = max(self._heap[0][0], earliest)
            if self._until is not None and now > self._until:
                self._deliver(self._until)
                break
            self._deliver(now)
            result = self._scheduler.step(now, on_round=self._on_round)
            # A cycle without news has no round; what the last one found still holds.
            self._rounds.update(result.results)
            self.cycles += 1
            self._start(self._learn(), now)
            if result.next_wake is not None:
                self._wake(result.next_wake, after=now)
            if self._checks is not None and (breaches := self._checks(self._scheduler)):
                raise CheckFailed(f"at {now} ns: {'; '.join(breaches[:5])}")
            self._samples.offer(now, partial(self._sample, now))
            if self._on_cycle is not None:
                self._on_cycle(self._moment(now))
            earliest = now + max(self._cycle, 1)
        if self._until is not None and self.books.open_jobs:
            self.end = max(self._until, self.start)
        else:
            ends = (job.ended_at for job in self.books.progress if job.ended_at is not None)
            self.end = max(ends, default=self.start)

    def samples(self) -> tuple[Sample, ...]:
        """The state over time, `end` included."""
        return self._samples.kept(self._sample(self.end))

    def waiting_reasons(self) -> dict[JobId, str]:
        """Why each job that waits was not placed in the last cycle, as a code."""
        return {
            JobId(job_id): reason.code.value
            for result in self._rounds.values()
            for job_id, reason in result.refused.items()
        }

    # Toward the scheduler

    def _deliver(self, now: Instant) -> None:
        """Tell the scheduler, in order, all that happened up to *now*."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            at, kind, _, what = heapq.heappop(heap)
            if kind is _Kind.RUN_ENDS:
                self._run_ends(at, *what)
            elif kind is _Kind.SUBMIT:
                self._submit(at, what)
            elif kind is _Kind.WAKE:
                self._wake_at = None
            elif kind is _Kind.CANCEL:
                self._cancel(at, *what)
            elif kind is _Kind.RENEW:
                self._renew(now, *what)
            else:
                self._hand_over(at)
                if kind is _Kind.NODE_LOST:
                    self._capacity -= self._cores[what]
                    self._scheduler.lose_nodes([what], at)
                else:
                    self._capacity += self._cores[what]
                    self._scheduler.nodes_back([what], at)
                self._learn()
        self._hand_over(now)
        self._learn()

    def _hand_over(self, now: Instant) -> None:
        """Reports and new jobs go over in two calls, whatever their number."""
        if self._reports:
            self._scheduler.report(self._reports, now)
            self._reports = []
        if self._arrived:
            self._scheduler.submit(self._arrived, now)
            self._arrived = []

    def _submit(self, at: Instant, progress: Progress) -> None:
        self.books.submitted(progress)
        self._arrived += self._workload.rows(progress.plan)
        log = progress.plan.log
        if log.run_time is None:
            self._push(at + log.wait, _Kind.CANCEL, (progress, 0))

    def _run_ends(self, at: Instant, progress: Progress, attempt: int) -> None:
        """The process of an attempt ends, if nothing stopped it before."""
        if not progress.live or progress.attempts != attempt:
            return
        plan = progress.plan
        failures = progress.failures + progress.restarts
        runs = progress.active_runs
        if self._workload.fails(plan, failures=failures):
            member, run = runs[self._workload.failing_piece(plan, failures=failures)]
            again = self._restart(progress, run, at)
            if again is None:
                self._report(member, run.id, ReportKind.FAILED, at, reason=EXIT)
            else:
                assert plan.log.run_time is not None, "what is taken back has no end of its own"
                self._push(again + plan.log.run_time, _Kind.RUN_ENDS, (progress, attempt))
        else:
            for member, run in runs:
                self._report(member, run.id, ReportKind.SUCCEEDED, at)

    def _restart(self, progress: Progress, run: LiveRun, at: Instant) -> Instant | None:
        """When the process of *run*, which failed, is started again in its place; None if not."""
        verdict = next_restart(
            self._workload.restart,
            run.restarts,
            Exit.FAILED,
            now=at,
            on_success=False,
            bits=restart_bits(self._workload.seed, run.id, run.restarted),
            least=_LEAST_WAIT,
        )
        if verdict.action is not RestartAction.RESTART:
            return None
        run.restarts = verdict.history
        run.restarted += 1
        progress.restarts += 1
        return verdict.at

    def _cancel(self, at: Instant, progress: Progress, attempt: int) -> None:
        """Its user takes the job back: at all events (attempt 0), or when that attempt still runs."""
        if progress.end is not None or attempt not in (0, progress.attempts):
            return
        self._hand_over(at)
        self._scheduler.cancel(list(progress.plan.member_ids), at)
        self._learn()

    def _renew(self, now: Instant, progress: Progress, attempt: int) -> None:
        """Say that an attempt is still there, so that its lease goes on."""
        if progress.live and progress.attempts == attempt:
            for member, run in progress.active_runs:
                self._report(member, run.id, ReportKind.RUNNING, now)
            assert self._renewal is not None
            self._push(now + self._renewal, _Kind.RENEW, (progress, attempt))

    # From the scheduler

    def _learn(self) -> list[Progress]:
        """Keep the events since the last time. Returns the jobs that started."""
        events, self._cursor = self._journal.events_since(self._cursor)
        started = self.books.take(events)
        self._journal.forget(self._cursor)
        return started

    def _start(self, started: Sequence[Progress], now: Instant) -> None:
        """Begin the processes of what was leased, and plan their ends."""
        for progress in started:
            if not progress.live:
                continue
            if not progress.whole:
                raise CheckFailed(f"gang {progress.plan.id} is part-placed at {now} ns")
            log, attempt = progress.plan.log, progress.attempts
            for member, run in progress.active_runs:
                self._report(member, run.id, ReportKind.RUNNING, now)
            if log.run_time is not None:
                cancelled = log.ending is Ending.CANCELLED
                ends = _Kind.CANCEL if cancelled else _Kind.RUN_ENDS
                self._push(now + log.run_time, ends, (progress, attempt))
            if self._renewal is not None:
                self._push(now + self._renewal, _Kind.RENEW, (progress, attempt))

    def _report(
        self, member: JobId, run_id: RunId, kind: ReportKind, at: Instant, *, reason: str = ""
    ) -> None:
        self._reports.append(Report(run_id=run_id, job_id=member, kind=kind, at=at, reason=reason))

    # Time

    def _push(self, at: Instant, kind: _Kind, what: object) -> None:
        """Let *what* happen at *at*; of one instant and kind, what was pushed first comes first."""
        if at > INT64_MAX:
            raise InputError(
                f"the simulation runs past {INT64_MAX // NANOS} s of its log; "
                "its jobs run too long, or there are too few nodes for them"
            )
        self._pushed += 1
        heapq.heappush(self._heap, (at, kind, self._pushed, what))

    def _wake(self, at: Instant, *, after: Instant) -> None:
        """Let there be a cycle at *at*, or an earlier one."""
        at = max(at, after + 1)
        if self._wake_at is None or at < self._wake_at:
            self._wake_at = at
            self._push(at, _Kind.WAKE, None)

    # What others see

    def _sample(self, now: Instant) -> Sample:
        waiting = self.books.waiting
        return Sample(
            at=now,
            allocated={CPU: self.books.allocated_cores},
            capacity={CPU: self._capacity},
            queued={queue: waiting[queue] for queue in sorted(waiting) if waiting[queue]},
            running=self.books.places[Place.RUNNING],
            done=self.books.places[Place.DONE],
        )

    def _moment(self, now: Instant) -> Moment:
        places = self.books.places
        return Moment(
            now=now,
            start=self.start,
            done=places[Place.DONE],
            waiting=places[Place.WAITING],
            running=places[Place.RUNNING],
            total=len(self.books.progress),
        )

    def _next_run_id(self) -> str:
        self._run_count += 1
        return f"run-{self._run_count:07}"
