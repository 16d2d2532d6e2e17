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
from pyresched.model import NANOS, Event, EventKind, Instant, Job, JobReader, RunId
from pyresched.outcomes import Report, ReportKind
from pyresched.reschedule import (
    Exit,
    RestartAction,
    RestartPolicy,
    next_restart,
    restart_bits,
    restarts_on_success,
)

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
    """A run of ours: its process, or until when the next one waits.

    `kill_at` is when it is killed if it does not stop by itself; `restarts` are those that still
    count against its policy, of `restarted` in all.
    """

    event: Event
    command: Command
    policy: RestartPolicy | None
    on_success: bool
    popen: "subprocess.Popen[bytes] | None" = None
    starts_at: Instant | None = None
    kill_at: Instant | None = None
    restarts: tuple[Instant, ...] = ()
    restarted: int = 0


class ProcessExecutor:
    """Processes by run. *grace* nanoseconds lie between the word to stop and the kill.

    What a run writes goes to `<run id>.out` in the folder *output*, or nowhere. A process leads
    its own session, so that what it started is stopped with it. One that fails is started again
    in its place as the rules of its job allow (`GroupRules.restart`), after a wait whose share of
    chance *seed* fixes; the run goes on meanwhile, and only its end is reported.
    """

    def __init__(
        self, *, output: Path | None = None, grace: int = 5 * NANOS, seed: int = 0
    ) -> None:
        self._output = output
        self._grace = grace
        self._seed = seed
        self._children: dict[RunId, _Child] = {}
        self._news: list[Report] = []

    def __len__(self) -> int:
        """How many runs there are, those included that were told to stop or wait for a restart."""
        return len(self._children)

    def __contains__(self, run_id: object) -> bool:
        return run_id in self._children

    def restarts(self, run_id: str) -> int:
        """How often the process of a run that is here was started again; 0 for any other."""
        child = self._children.get(RunId(run_id))
        return 0 if child is None else child.restarted

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
            if child.popen is None:
                assert child.starts_at is not None, "a run without a process waits for one"
                if child.starts_at <= now:
                    self._begin(child, now)
                continue
            code = child.popen.poll()
            if code is None:
                if child.kill_at is not None and child.kill_at <= now:
                    _signal(child.popen, signal.SIGKILL)
            elif child.kill_at is not None:
                del self._children[run_id]
            else:
                self._ended(child, code, now)
        news, self._news = self._news, []
        return news

    def close(self) -> None:
        """Kill every process and wait for it. Nothing is said of their runs."""
        processes = [child.popen for child in self._children.values() if child.popen is not None]
        for popen in processes:
            _signal(popen, signal.SIGKILL)
        for popen in processes:
            popen.wait()
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
        policy = None if job.rules is None else job.rules.restart
        lasts = restarts_on_success(job.job_type)
        child = _Child(event=event, command=command, policy=policy, on_success=lasts)
        self._children[event.run_id] = child
        if self._begin(child, now):
            self._say(event, ReportKind.RUNNING, now)

    def _begin(self, child: _Child, now: Instant) -> bool:
        """Start the process of *child*; if that cannot be, its run is over, and False."""
        try:
            child.popen = self._open(child)
        except OSError as bad:
            reason = f"no_start_{errno.errorcode.get(bad.errno or 0, 'unknown').lower()}"
        except ValueError:  # a name or argument that no program can be given
            reason = "no_start"
        else:
            child.starts_at = None
            return True
        del self._children[child.event.run_id]
        kind = ReportKind.FAILED if child.restarted else ReportKind.SETUP_FAILED
        self._say(child.event, kind, now, reason=reason)
        return False

    def _ended(self, child: _Child, code: int, now: Instant) -> None:
        """The process of *child* ended by itself: it is started again later, or the run is over."""
        run_id = child.event.run_id
        verdict = next_restart(
            child.policy,
            child.restarts,
            Exit.FAILED if code else Exit.SUCCEEDED,
            now=now,
            on_success=child.on_success and child.policy is not None,
            bits=restart_bits(self._seed, run_id, child.restarted),
        )
        if verdict.action is RestartAction.RESTART:
            child.popen, child.starts_at = None, verdict.at
            child.restarts = verdict.history
            child.restarted += 1
            return
        del self._children[run_id]
        # A service whose process ends once too often has failed, however it ended.
        if verdict.action is RestartAction.DONE:
            self._say(child.event, ReportKind.SUCCEEDED, now)
        else:
            reason = f"exit_{code}" if code >= 0 else f"signal_{-code}"
            self._say(child.event, ReportKind.FAILED, now, reason=reason)

    def _open(self, child: _Child) -> "subprocess.Popen[bytes]":
        """The process of a run; what it writes goes behind what the one before it wrote.

        Raises OSError and ValueError.
        """
        event, command = child.event, child.command
        env = {
            **os.environ,
            "PYRESCHED_JOB_ID": event.job_id,
            "PYRESCHED_RUN_ID": event.run_id,
            "PYRESCHED_NODE_ID": event.node_id,
            "PYRESCHED_RESTARTS": str(child.restarted),
            **command.env,
        }
        if self._output is None:
            return _popen(command, env, subprocess.DEVNULL)
        name = quote(event.run_id, safe=" ")  # an id may hold a slash
        with (self._output / f"{name}.out").open("ab" if child.restarted else "wb") as out:
            return _popen(command, env, out.fileno())

    def _tell_to_stop(self, run_id: RunId, now: Instant) -> None:
        child = self._children.get(run_id)
        if child is None or child.kill_at is not None:
            return
        if child.popen is None:  # it waits for its next process, which never comes
            del self._children[run_id]
            return
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


def _signal(popen: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    """Send to the process and all that it started. It may be gone already."""
    if popen.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(popen.pid, number)
