"""A scheduler that lives: a clock, an executor, and the loop that drives both.

Owns time and the one lock; relies on an executor by shape. The scheduler stays synchronous:
whoever else talks to it does so through `locked`.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event as Flag
from threading import RLock
from typing import Final, Protocol

from pyresched.errors import Conflict
from pyresched.model import NANOS, Duration, Event, Instant, JobReader
from pyresched.outcomes import Report, ReportKind
from pyresched.scheduler import Scheduler

__all__ = ["Executor", "Service"]

RESTARTED: Final = "restarted"
"""Reason of a run that an earlier program started: its process is not ours."""


class Executor(Protocol):
    """Whoever runs what was leased."""

    def __len__(self) -> int:
        """How many runs it has."""

    def __contains__(self, run_id: object, /) -> bool:
        """Whether it has the run."""

    def follow(self, events: Iterable[Event], jobs: JobReader, now: Instant) -> None:
        """Act on events, in order."""

    def poll(self, now: Instant) -> Sequence[Report]:
        """What became of its runs since the last call."""

    def close(self) -> None:
        """Stop everything."""


class Service:
    """Drives *scheduler* and *executor* until it is idle or told to stop.

    *clock* gives nanoseconds. A turn is taken every *period* nanoseconds, and at once after
    `wake`. Runs that the journal says are active but that this executor does not have are
    returned at the start. It reads the log from its end on, and forgets nothing of it.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        executor: Executor,
        *,
        clock: Callable[[], Instant] = time.time_ns,
        period: Duration = NANOS // 10,
    ) -> None:
        self._scheduler = scheduler
        self._executor = executor
        self._clock = clock
        self._period = period
        self._lock = RLock()
        self._awake = Flag()
        self._stopped = Flag()
        self._news: list[Report] = []
        self._return_strangers()
        self._cursor = scheduler.journal.end()

    @contextmanager
    def locked(self) -> Iterator[Scheduler]:
        """The scheduler, while nobody else uses it; the loop takes its next turn at once after."""
        with self._lock:
            yield self._scheduler
        self.wake()

    def now(self) -> Instant:
        """The time of this service."""
        return self._clock()

    def wake(self) -> None:
        """Take the next turn now."""
        self._awake.set()

    def stop(self) -> None:
        """End the loop after the turn that runs, from any thread or signal handler."""
        self._stopped.set()
        self.wake()

    def turn(self) -> bool:
        """News of runs, a step, and what follows from it. Whether there is more to wait for.

        What another writer came in the way of is done again with the next turn.
        """
        with self._lock:
            now = self._clock()
            self._news += self._executor.poll(now)
            try:
                self._scheduler.report(self._news, now)
                self._news = []
                wake = self._scheduler.step(now).next_wake
            except Conflict:
                return True
            events, self._cursor = self._scheduler.journal.events_since(self._cursor)
            self._executor.follow(events, self._scheduler.snapshot(), now)
            return wake is not None or bool(events) or len(self._executor) > 0

    def run_until_idle(self) -> None:
        """Take turns until nothing runs and nothing is to be waited for, or `stop`."""
        while not self._stopped.is_set() and self.turn():
            self._wait()

    def run(self) -> None:
        """Take turns until `stop`."""
        while not self._stopped.is_set():
            self.turn()
            self._wait()

    def close(self) -> None:
        """Stop what runs here, and hand it back: its jobs return to their places in the queue."""
        self._executor.close()
        with self._lock:
            self._return_strangers()

    def _wait(self) -> None:
        self._awake.wait(self._period / NANOS)
        self._awake.clear()

    def _return_strangers(self) -> None:
        """Hand back the active runs that the executor does not have, and go on with the log."""
        now = self._clock()
        news = [
            Report(
                run_id=job.active_run.id,
                job_id=job.id,
                kind=ReportKind.RETURNED,
                at=now,
                reason=RESTARTED,
            )
            for job in self._scheduler.snapshot().leased()
            if job.active_run is not None and job.active_run.id not in self._executor
        ]
        self._scheduler.report(news, now)
