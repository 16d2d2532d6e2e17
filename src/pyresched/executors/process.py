"""Runs as processes of this machine: starts what was leased, stops what must stop, says what became of it.

Owns the processes that it started and nothing else; a reader of the log like any other. It
has no clock and no thread: a program calls `follow` and `poll`.
"""

import errno
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from pyresched.errors import InputError
from pyresched.model import NANOS, Event, EventKind, Instant, Job, JobId, JobReader, RunId
from pyresched.outcomes import Report, ReportKind

__all__ = ["Command", "ProcessExecutor", "command_of"]

_STOPS: Final = frozenset(
    {EventKind.PREEMPTED, EventKind.RETURNED, EventKind.LOST, EventKind.CANCELLED}
)


class Command(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run of a job executes: `argv`, without a shell; `env` on top of this program's."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = {}
    directory: str | None = None

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise ValueError("argv is empty; write a program and its arguments")
        for text in (*self.argv, *self.env, *self.env.values(), self.directory or ""):
            if "\0" in text:
                raise ValueError(f"{text!r} has a NUL character; no program can be given one")


def command_of(job: Job) -> Command:
    """The command in the payload of *job*: a `Command`, or a mapping with its fields.

    Raises InputError.
    """
    try:
        return msgspec.convert(job.payload, Command, from_attributes=True)
    except (msgspec.ValidationError, ValueError) as bad:
        raise InputError(f"job {job.id!r}: payload: no command: {bad}") from None


class _Child(Struct):
    """A process of ours, and when it is killed if it does not stop by itself."""

    job_id: JobId
    popen: "subprocess.Popen[bytes]"
    kill_at: Instant | None = None


class ProcessExecutor:
    """Processes by run. *grace* nanoseconds lie between the word to stop and the kill.

    What a run writes goes to `<run id>.out` in the folder *output*, or nowhere. A process leads
    its own session, so that what it started is stopped with it.
    """

    def __init__(self, *, output: Path | None = None, grace: int = 5 * NANOS) -> None:
        self._output = output
        self._grace = grace
        self._children: dict[RunId, _Child] = {}
        self._news: list[Report] = []

    def __len__(self) -> int:
        """How many processes there are, those included that were told to stop."""
        return len(self._children)

    def __contains__(self, run_id: object) -> bool:
        return run_id in self._children

    def follow(self, events: Iterable[Event], jobs: JobReader, now: Instant) -> None:
        """Act on *events*, in order. Acting twice on one is harmless while its process is there.

        A run that is over by the end of *events* is not started. *jobs* gives the commands.
        """
        starts: dict[RunId, Event] = {}
        for event in events:
            if event.kind is EventKind.LEASED:
                starts[event.run_id] = event
            elif event.kind in _STOPS and event.run_id:
                starts.pop(event.run_id, None)
                self._tell_to_stop(event.run_id, now)
        for event in starts.values():
            if event.run_id not in self._children:
                self._start(event, jobs.get(event.job_id), now)

    def poll(self, now: Instant) -> list[Report]:
        """What became of the runs since the last call; a run that was told to stop has no news."""
        for run_id, child in list(self._children.items()):
            code = child.popen.poll()
            if code is not None:
                del self._children[run_id]
                if child.kill_at is None:
                    self._news.append(_ended(run_id, child.job_id, code, now))
            elif child.kill_at is not None and child.kill_at <= now:
                _signal(child.popen, signal.SIGKILL)
        news, self._news = self._news, []
        return news

    def close(self) -> None:
        """Kill every process and wait for it. Nothing is said of their runs."""
        for child in self._children.values():
            _signal(child.popen, signal.SIGKILL)
        for child in self._children.values():
            child.popen.wait()
        self._children.clear()

    def _start(self, event: Event, job: Job | None, now: Instant) -> None:
        """Start the run of *event*, or say why it cannot be."""
        if job is None or job.active_run is None or job.active_run.id != event.run_id:
            return
        try:
            command = command_of(job)
        except InputError:
            self._say(event, ReportKind.SETUP_FAILED, now, reason="no_command")
            return
        try:
            popen = self._open(command, event)
        except OSError as bad:
            code = errno.errorcode.get(bad.errno or 0, "unknown").lower()
            self._say(event, ReportKind.SETUP_FAILED, now, reason=f"no_start_{code}")
            return
        except ValueError:  # a name or argument that no program can be given
            self._say(event, ReportKind.SETUP_FAILED, now, reason="no_start")
            return
        self._children[event.run_id] = _Child(job_id=event.job_id, popen=popen)
        self._say(event, ReportKind.RUNNING, now)

    def _open(self, command: Command, event: Event) -> "subprocess.Popen[bytes]":
        """The process of a run. Raises OSError."""
        env = {
            **os.environ,
            "PYRESCHED_JOB_ID": event.job_id,
            "PYRESCHED_RUN_ID": event.run_id,
            "PYRESCHED_NODE_ID": event.node_id,
            **command.env,
        }
        if self._output is None:
            return _popen(command, env, subprocess.DEVNULL)
        name = quote(event.run_id, safe=" ")  # an id may hold a slash
        with (self._output / f"{name}.out").open("wb") as out:
            return _popen(command, env, out.fileno())

    def _tell_to_stop(self, run_id: RunId, now: Instant) -> None:
        child = self._children.get(run_id)
        if child is not None and child.kill_at is None:
            child.kill_at = now + self._grace
            _signal(child.popen, signal.SIGTERM)

    def _say(self, event: Event, kind: ReportKind, now: Instant, *, reason: str = "") -> None:
        self._news.append(
            Report(run_id=event.run_id, job_id=event.job_id, kind=kind, at=now, reason=reason)
        )


def _popen(command: Command, env: Mapping[str, str], out: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603  # running what users submit is what this is for
        command.argv,
        env=env,
        cwd=command.directory,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _ended(run_id: RunId, job_id: JobId, code: int, now: Instant) -> Report:
    """The report of a process that ended by itself."""
    if code == 0:
        return Report(run_id=run_id, job_id=job_id, kind=ReportKind.SUCCEEDED, at=now)
    reason = f"exit_{code}" if code > 0 else f"signal_{-code}"
    return Report(run_id=run_id, job_id=job_id, kind=ReportKind.FAILED, at=now, reason=reason)


def _signal(popen: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    """Send to the process and all that it started. It may be gone already."""
    if popen.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(popen.pid, number)
