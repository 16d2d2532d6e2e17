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
from pyresched.model import NANOS, Event, EventKind, GroupRules, Job
from pyresched.outcomes import Report, ReportKind
from pyresched.reschedule import RestartPolicy

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


def gated(script: str, gate: Path) -> str:
    """*script*, which waits until its own gate is open: `<gate>0`, after a restart `<gate>1`."""
    return (
        "import os, time\n"
        f"while not os.path.exists({str(gate)!r} + os.environ['PYRESCHED_RESTARTS']):\n"
        "    time.sleep(0.005)\n"
        f"{script}"
    )


def restarting(script: str, gate: Path, *, job_type: str = "batch", **policy: object) -> Job:
    """A leased job that runs *script*, and again by that policy, whose times are of the test."""
    fields = {"attempts": 2, "interval": 1000, "delay": 8, **policy}
    argv = [sys.executable, "-c", gated(script, gate)]
    rules = GroupRules(restart=RestartPolicy(**fields))
    return leased(
        job("a", payload={"argv": argv}, rules=rules, job_type=job_type), run_id="run-of-a"
    )


def open_gate(gate: Path, number: int) -> None:
    """Let the process that was started again *number* times go on."""
    Path(f"{gate}{number}").touch()


def next_restart_of(executor: ProcessExecutor, gate: Path, count: int, now: int) -> None:
    """Let the process end for the *count*-th time, and wait until that is known, at *now*."""
    open_gate(gate, count - 1)

    def ended() -> bool:
        assert executor.poll(now) == []
        return executor.restarts("run-of-a") == count

    until(ended)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """Where the gates of this test's processes are."""
    return tmp_path / "gate"


def test_a_process_that_fails_is_started_again_in_its_run(
    executor: ProcessExecutor, tmp_path: Path, gate: Path
) -> None:
    """After its delay and at most a quarter more; the run fails when the restarts are used up."""
    script = "import os; print(os.environ['PYRESCHED_RESTARTS'], flush=True); raise SystemExit(3)"
    start(executor, restarting(script, gate))
    assert news(executor, 0).kind is ReportKind.RUNNING
    for count, at in ((1, 10), (2, 30)):
        next_restart_of(executor, gate, count, at)
        assert executor.poll(at + 7) == []
        assert "run-of-a" in executor, "a run that waits for its process is still one"
        executor.poll(at + 10)
    open_gate(gate, 2)
    report = news(executor, 50)
    assert (report.kind, report.reason, report.at) == (ReportKind.FAILED, "exit_3", 50)
    assert (tmp_path / "run-of-a.out").read_text().split() == ["0", "1", "2"]
    assert (len(executor), executor.restarts("run-of-a")) == (0, 0)


def test_a_process_that_waits_for_its_restart_is_not_there_yet(
    executor: ProcessExecutor, tmp_path: Path, gate: Path
) -> None:
    """Nothing starts before its time, nor after the run was stopped meanwhile."""
    row = restarting("print('x', flush=True); raise SystemExit(1)", gate)
    start(executor, row)
    assert news(executor, 0).kind is ReportKind.RUNNING
    next_restart_of(executor, gate, 1, 10)
    executor.poll(17)
    assert (tmp_path / "run-of-a.out").read_text().split() == ["x"]
    executor.follow([event("cancelled", row)], DictReader(), 17)
    assert (len(executor), executor.poll(100)) == (0, [])
    assert (tmp_path / "run-of-a.out").read_text().split() == ["x"]


@pytest.mark.parametrize(
    ("job_type", "attempts", "kind"),
    [
        ("batch", 2, ReportKind.SUCCEEDED),
        ("service", 0, ReportKind.FAILED),
    ],
)
def test_what_ends_well_is_done_unless_it_should_last(
    executor: ProcessExecutor, gate: Path, job_type: str, attempts: int, kind: ReportKind
) -> None:
    """A service with a restart policy has failed when its process ends once too often."""
    start(executor, restarting("pass", gate, job_type=job_type, attempts=attempts))
    assert news(executor, 0).kind is ReportKind.RUNNING
    open_gate(gate, 0)
    assert news(executor, 5).kind is kind


def test_a_service_that_ends_well_is_started_again(executor: ProcessExecutor, gate: Path) -> None:
    """As one that failed is."""
    start(executor, restarting("pass", gate, job_type="service", attempts=1))
    assert news(executor, 0).kind is ReportKind.RUNNING
    next_restart_of(executor, gate, 1, 10)
    executor.poll(20)
    open_gate(gate, 1)
    report = news(executor, 30)
    assert (report.kind, report.reason) == (ReportKind.FAILED, "exit_0")


def test_mode_delay_waits_for_the_window(executor: ProcessExecutor, gate: Path) -> None:
    """The run never fails for its process."""
    start(executor, restarting("raise SystemExit(1)", gate, attempts=1, mode="delay", interval=500))
    assert news(executor, 0).kind is ReportKind.RUNNING
    next_restart_of(executor, gate, 1, 10)
    executor.poll(30)
    next_restart_of(executor, gate, 2, 40)
    executor.poll(500)
    assert executor.restarts("run-of-a") == 2
    executor.poll(520)
    next_restart_of(executor, gate, 3, 530)


def test_what_can_no_longer_be_started_has_failed(
    executor: ProcessExecutor, tmp_path: Path, gate: Path
) -> None:
    """Its program has gone: the run began, so this is no failed set-up."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nwhile [ ! -e {gate}0 ]; do sleep 0.01; done\nexit 1\n")
    program.chmod(0o755)
    rules = GroupRules(restart=RestartPolicy(attempts=2, interval=1000, delay=8))
    row = leased(job("a", payload={"argv": [str(program)]}, rules=rules), run_id="run-of-a")
    start(executor, row)
    assert news(executor, 0).kind is ReportKind.RUNNING
    next_restart_of(executor, gate, 1, 10)
    program.unlink()
    report = news(executor, 30)
    assert (report.kind, report.reason) == (ReportKind.FAILED, "no_start_enoent")
    assert len(executor) == 0


def test_the_seed_fixes_how_long_a_restart_waits(gate: Path) -> None:
    """And nothing else does."""

    def waited(seed: int) -> int:
        made = ProcessExecutor(seed=seed)
        row = restarting("raise SystemExit(1)", gate, attempts=1, delay=10**6, interval=10**9)
        start(made, row)
        assert news(made, 0).kind is ReportKind.RUNNING
        next_restart_of(made, gate, 1, 0)
        child = made._children["run-of-a"]
        made.close()
        return child.starts_at

    assert waited(1) == waited(1)
    assert len({waited(seed) for seed in range(4)}) > 1
    assert all(10**6 <= waited(seed) <= 10**6 * 5 // 4 for seed in range(3))
