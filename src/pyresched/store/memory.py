"""A journal in memory, for embedding and simulation: gone when the program is.

Owns rows and log; relies on nothing but the values. Keeps INV-J1, INV-J2, INV-J11.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Final

from pyresched.errors import Conflict, DuplicateId, Forgotten
from pyresched.model import Changes, Event, Job, JobState, Node, Queue, RowKey

__all__ = ["MemoryJournal"]

_FIRST_ENDED: Final = JobState.SUCCEEDED  # states are numbered so that the ended ones come last


class MemoryJournal:
    """Satisfies `scheduler.journal.Journal`.

    With *keep_ended* False the row of a job that ended can be had from `changes_since` until
    `forget` passes its end, and its id is free again at once.
    """

    def __init__(self, *, keep_ended: bool = True) -> None:
        self._keep_ended = keep_ended
        self._jobs: dict[str, Job] = {}
        self._nodes: dict[str, Node] = {}
        self._queues: dict[str, Queue] = {}
        self._written: dict[RowKey, int] = {}  # the serial at which each row was last written
        self._ended: deque[tuple[int, int, str]] = deque()  # (cursor, serial, job) not kept
        self._serial = 0
        self._last = Changes()
        self._unknown_before = 0  # rows that went before this serial can no longer be told
        self._events: list[Event] = []
        self._first_cursor = 0
        self._lock = Lock()

    @property
    def keeps_ended(self) -> bool:
        """Whether rows of ended jobs stay."""
        return self._keep_ended

    def commit(self, changes: Changes, *, expect: Mapping[RowKey, int]) -> int:
        """Write all of *changes* and return the serial. Raises Conflict, and writes nothing."""
        with self._lock:
            self._check(changes, expect)
            self._serial = serial = self._serial + 1
            written = self._written
            for job in changes.jobs:
                self._jobs[job.id] = job
                written["job", job.id] = serial
            for node in changes.nodes:
                self._nodes[node.id] = node
                written["node", node.id] = serial
            for queue in changes.queues:
                self._queues[queue.name] = queue
                written["queue", queue.name] = serial
            self._events += changes.events
            if not self._keep_ended:
                end = self._first_cursor + len(self._events)
                self._ended += [
                    (end, serial, job.id) for job in changes.jobs if job.state >= _FIRST_ENDED
                ]
            self._last = changes
            return serial

    def changes_since(self, serial: int) -> tuple[Changes, int]:
        """The rows written after *serial*, each once at its newest, and the serial now.

        Raises Forgotten when *serial* is older than what `forget` left.
        """
        with self._lock:
            if serial == self._serial:
                return Changes(), serial
            if serial == self._serial - 1:
                last = self._last
                return Changes(jobs=last.jobs, nodes=last.nodes, queues=last.queues), self._serial
            if not 0 <= serial <= self._serial:
                raise ValueError(f"no commit has serial {serial}; the newest is {self._serial}")
            if serial < self._unknown_before:
                raise Forgotten(
                    f"rows that went after serial {serial} are forgotten; load again, or read "
                    f"from serial {self._unknown_before} on"
                )
            return self._rows(after=serial), self._serial

    def load(self) -> tuple[Changes, int]:
        """Every row that stays, and the serial now."""
        with self._lock:
            rows = self._rows(after=0)
            if not self._keep_ended:
                live = tuple(job for job in rows.jobs if job.state < _FIRST_ENDED)
                rows = Changes(jobs=live, nodes=rows.nodes, queues=rows.queues)
            return rows, self._serial

    def events_since(self, cursor: int, *, limit: int | None = None) -> tuple[Sequence[Event], int]:
        """Events from *cursor* on, at most *limit*, and the cursor after them.

        Raises Forgotten, or ValueError for a cursor past the end.
        """
        with self._lock:
            start = cursor - self._first_cursor
            if start < 0:
                raise Forgotten(
                    f"event {cursor} is forgotten; the first held is {self._first_cursor}"
                )
            if start > len(self._events):
                end = self._first_cursor + len(self._events)
                raise ValueError(f"no event {cursor} yet; the log ends before {end}")
            stop = None if limit is None else start + max(limit, 0)
            events = self._events[start:stop]
            return events, cursor + len(events)

    def end(self) -> int:
        """The cursor after the newest event."""
        with self._lock:
            return self._first_cursor + len(self._events)

    def forget(self, cursor: int) -> None:
        """Let go of the events before *cursor*, and of jobs that ended before it if none stay."""
        with self._lock:
            count = min(cursor - self._first_cursor, len(self._events))
            if count > 0:
                del self._events[:count]
                self._first_cursor += count
            ended = self._ended
            while ended and ended[0][0] <= self._first_cursor:
                _, serial, job_id = ended.popleft()
                # Its id may have been taken again since.
                if self._written.get(("job", job_id)) == serial:
                    del self._jobs[job_id], self._written["job", job_id]
                self._unknown_before = serial

    def _check(self, changes: Changes, expect: Mapping[RowKey, int]) -> None:
        """Raise if *changes* are not well formed or a row is not as expected."""
        moved = [key for key, version in expect.items() if self._version(key) != version]
        if moved:
            raise Conflict(tuple(moved))
        count = 0
        for kind, rows in (
            ("job", [(job.id, job.version) for job in changes.jobs]),
            ("node", [(node.id, node.version) for node in changes.nodes]),
            ("queue", [(queue.name, queue.version) for queue in changes.queues]),
        ):
            count += len(rows)
            for name, version in rows:
                guard = expect.get((kind, name))
                if guard is None or version <= guard:
                    raise ValueError(f"{kind} {name!r} at version {version} has guard {guard}")
        distinct = (
            len({job.id for job in changes.jobs})
            + len({node.id for node in changes.nodes})
            + len({queue.name for queue in changes.queues})
        )
        if distinct != count:
            raise DuplicateId("a row stands twice in one commit; hand out each once")

    def _version(self, key: RowKey) -> int:
        """The version of a row, 0 when there is none."""
        kind, name = key
        if kind == "job":
            job = self._jobs.get(name)
            if job is None or (job.state >= _FIRST_ENDED and not self._keep_ended):
                return 0
            return job.version
        row = self._nodes.get(name) if kind == "node" else self._queues.get(name)
        return 0 if row is None else row.version

    def _rows(self, *, after: int) -> Changes:
        """The rows written after a serial, in the order in which they first came."""
        written = self._written
        return Changes(
            jobs=tuple(job for id, job in self._jobs.items() if written["job", id] > after),
            nodes=tuple(node for id, node in self._nodes.items() if written["node", id] > after),
            queues=tuple(q for name, q in self._queues.items() if written["queue", name] > after),
        )
