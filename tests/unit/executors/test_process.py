"""Real processes: started, watched, stopped."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kit.jobs import job, leased
from kit.readers import DictReader
from pyresched.errors import InputError
from pyresched.executors import Command, ProcessExecutor, command_of
from pyresched.model import NANOS, Event, EventKind, Job
from pyresched.outcomes import Report, ReportKind

FOR_EVER = "import time; time.sleep(600)"
NEVER = 10**6 * NANOS


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[ProcessExecutor]:
    """One that writes to a folder of the test and gives no grace."""
    made = ProcessExecutor(output=tmp_path, grace=0)
    yield made
    made.close()


def python(script: str, *arguments: str, id: str = "a", **fields: object) -> Job:
    """A leased job that runs *script*."""
    argv = [sys.executable, "-c", script, *arguments]
    return leased(job(id, payload={"argv": argv, **fields}), run_id=f"run-of-{id}")


def event(kind: str, row: Job) -> Event:
    """*kind* happened to the newest run of *row*."""
    run = row.runs[-1]
    return Event(kind=EventKind(kind), at=0, job_id=row.id, run_id=run.id, node_id=run.node_id)


def start(executor: ProcessExecutor, *rows: Job) -> None:
    """Lease the runs of *rows*."""
    executor.follow([event("leased", row) for row in rows], DictReader(rows), 0)


def until(condition: Callable[[], object]) -> object:
    """What *condition* gives once it is true; fails after ten seconds."""
    deadline = time.monotonic() + 10
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
    return value


def falls_silent(executor: ProcessExecutor, now: int) -> bool:
    """Whether no process is left. Fails when there is news of one."""
    assert executor.poll(now) == []
    return len(executor) == 0


def news(executor: ProcessExecutor, now: int = 7) -> Report:
    """The next report, which is the only one."""
    (report,) = until(lambda: executor.poll(now))
    return report


def test_a_run_starts_and_succeeds(executor: ProcessExecutor, tmp_path: Path) -> None:
    """It is told who it is, and what it writes is kept."""
    row = python(
        "import os; print(*(os.environ[f'PYRESCHED_{name}_ID'] for name in ['JOB', 'RUN', 'NODE']))"
    )
    start(executor, row)
    assert news(executor) == Report(run_id="run-of-a", job_id="a", kind=ReportKind.RUNNING, at=0)
    assert news(executor) == Report(run_id="run-of-a", job_id="a", kind=ReportKind.SUCCEEDED, at=7)
    assert (tmp_path / "run-of-a.out").read_text() == "a run-of-a node-1\n"
    assert len(executor) == 0
    assert executor.poll(9) == []


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("raise SystemExit(3)", "exit_3"),
        ("import os; os.kill(os.getpid(), 9)", "signal_9"),
    ],
)
def test_a_run_that_fails_says_how(executor: ProcessExecutor, script: str, reason: str) -> None:
    """Its exit code, or the signal that ended it."""
    start(executor, python(script))
    assert news(executor).kind is ReportKind.RUNNING
    report = news(executor)
    assert (report.kind, report.reason) == (ReportKind.FAILED, reason)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (None, "no_command"),
        ({"argv": []}, "no_command"),
        ({"argv": "true"}, "no_command"),
        ({"argv": ["true"], "user": "root"}, "no_command"),
        ({"argv": ["/nowhere/at-all"]}, "no_start_enoent"),
        ({"argv": [os.devnull]}, "no_start_eacces"),
        ({"argv": ["true"], "directory": "/nowhere"}, "no_start_enoent"),
        ({"argv": ["true"], "env": {"a=b": "c"}}, "no_start"),
        ({"argv": ["\ud800"]}, "no_start"),
    ],
)
def test_a_run_that_cannot_start_fails(executor: ProcessExecutor, payload, reason) -> None:
    """With a code that says why; nothing is left behind."""
    start(executor, leased(job("a", payload=payload)))
    report = news(executor)
    assert (report.kind, report.reason) == (ReportKind.SETUP_FAILED, reason)
    assert len(executor) == 0


@pytest.mark.parametrize("kind", ["preempted", "returned", "lost", "cancelled"])
def test_a_run_that_must_stop_is_stopped_and_has_no_news(
    executor: ProcessExecutor, kind: str
) -> None:
    """What became of it is known already."""
    row = python(FOR_EVER)
    start(executor, row)
    assert news(executor).kind is ReportKind.RUNNING
    executor.follow([event(kind, row)], DictReader(), 5)
    until(lambda: falls_silent(executor, 5))


def test_a_process_that_does_not_stop_is_killed_after_its_grace_with_all_it_started(
    tmp_path: Path,
) -> None:
    """Not before."""
    executor = ProcessExecutor(output=tmp_path, grace=10)
    row = python(
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)"
    )
    start(executor, row)
    child = int(until((tmp_path / "run-of-a.out").read_text))
    executor.poll(0)
    executor.follow([event("cancelled", row)], DictReader(), 5)
    for _ in range(20):
        executor.poll(14)
        time.sleep(0.01)
    assert len(executor) == 1
    until(lambda: falls_silent(executor, 15))
    until(lambda: _is_gone(child))


def _is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_run_that_is_over_by_the_end_of_the_events_is_not_started(
    executor: ProcessExecutor,
) -> None:
    """A reader that lags starts nothing that must stop again."""
    row = python(FOR_EVER)
    executor.follow([event("leased", row), event("cancelled", row)], DictReader([row]), 0)
    again = leased(row.replace(runs=(), version=1), run_id="newer")
    executor.follow([event("leased", row)], DictReader([again]), 0)
    assert (len(executor), executor.poll(1)) == (0, [])


def test_acting_twice_on_an_event_is_harmless(executor: ProcessExecutor) -> None:
    """One run is one process; stopping what is gone is nothing."""
    row = python(FOR_EVER)
    start(executor, row, row)
    start(executor, row)
    assert len(executor) == 1
    assert "run-of-a" in executor
    assert news(executor).kind is ReportKind.RUNNING
    for _ in range(2):
        executor.follow([event("lost", row)], DictReader(), 5)
    until(lambda: falls_silent(executor, 5))
    executor.follow([event("lost", row)], DictReader(), 6)


def test_closing_kills_everything(tmp_path: Path) -> None:
    """And waits for it."""
    executor = ProcessExecutor(output=tmp_path)
    rows = [python(FOR_EVER, id=id) for id in ("a", "b")]
    start(executor, *rows)
    executor.close()
    assert len(executor) == 0


def test_what_a_run_writes_stays_in_its_folder(executor: ProcessExecutor, tmp_path: Path) -> None:
    """Whatever its id is made of."""
    row = leased(job("a", payload={"argv": ["true"]}), run_id="../../x")
    start(executor, row)
    assert [path.name for path in tmp_path.iterdir()] == ["..%2F..%2Fx.out"]


def test_a_command_is_a_value_or_a_mapping() -> None:
    """Both mean the same; what is wrong is named."""
    command = Command(argv=("true",), env={"a": "b"})
    assert command_of(job("a", payload=command)) == command
    assert command_of(job("a", payload={"argv": ["true"], "env": {"a": "b"}})) == command
    with pytest.raises(InputError, match=r"job 'a': payload: no command: .*NUL"):
        command_of(job("a", payload={"argv": ["tr\0ue"]}))


def test_signals_are_sent_to_our_own_processes_only(
    executor: ProcessExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that has ended and was waited for may have lent its number to another."""
    sent = []
    row = python("pass")
    start(executor, row)
    child = executor._children["run-of-a"]
    child.popen.wait()
    monkeypatch.setattr(os, "killpg", lambda *call: sent.append(call))
    executor.follow([event("cancelled", row)], DictReader(), 0)
    executor.poll(NEVER)
    assert sent == []
