"""A scheduler that lives: real processes, real time, and a loop that can be stopped."""

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.driving import node, run_names, said, scheduler
from kit.jobs import gang, job
from pyresched.config import SchedulingConfig
from pyresched.errors import Conflict
from pyresched.executors import ProcessExecutor
from pyresched.model import NANOS, EventKind, JobState, Outcome, ReschedulePolicy
from pyresched.outcomes import Report, ReportKind
from pyresched.scheduler import Scheduler
from pyresched.service import Service
from pyresched.store import MemoryJournal

FOR_EVER = "import time; time.sleep(600)"
PERIOD = NANOS // 100


def python(script: str, *arguments: str) -> dict[str, list[str]]:
    """The payload of a job that runs *script*."""
    return {"argv": [sys.executable, "-c", script, *arguments]}


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[ProcessExecutor]:
    """One that writes to a folder of the test."""
    made = ProcessExecutor(output=tmp_path, grace=0)
    yield made
    made.close()


class Puppet:
    """An executor that says what a test tells it to."""

    def __init__(self) -> None:
        self.news: list[Report] = []
        self.seen: list[EventKind] = []

    def __len__(self) -> int:
        return 0

    def __contains__(self, run_id: object) -> bool:
        return False

    def follow(self, events, jobs, now) -> None:  # noqa: ARG002
        self.seen += [event.kind for event in events]

    def poll(self, now) -> list[Report]:  # noqa: ARG002
        news, self.news = self.news, []
        return news

    def close(self) -> None:
        """Nothing to stop."""


def test_jobs_run_as_processes_until_nothing_is_left(
    executor: ProcessExecutor, tmp_path: Path
) -> None:
    """More than fit at once, one that fails twice and then succeeds, one that never does."""
    made = scheduler(node("n1", 2))
    count = tmp_path / "count"
    flaky = (
        "import pathlib, sys\n"
        "tries = pathlib.Path(sys.argv[1])\n"
        "done = len(tries.read_text()) if tries.exists() else 0\n"
        "tries.write_text('x' * (done + 1))\n"
        "raise SystemExit(done < 2)"
    )
    policy = ReschedulePolicy(attempts=2, interval=600 * NANOS, delay=NANOS // 10)
    service = Service(made, executor, period=PERIOD)
    with service.locked() as locked:
        locked.submit(
            [
                *(job(f"ok-{n}", payload=python("pass")) for n in range(4)),
                job("flaky", policy=policy, payload=python(flaky, str(count))),
                job("hopeless", policy=policy, payload=python("raise SystemExit(7)")),
                *gang("g", payload=python("pass")),
            ],
            service.now(),
        )
    service.run_until_idle()
    states = {row.id: row.state for row in made.snapshot()}
    assert states.pop("hopeless") is JobState.FAILED
    assert set(states.values()) == {JobState.SUCCEEDED}
    assert count.read_text() == "xxx"
    hopeless = made.snapshot().get("hopeless")
    assert [(run.outcome, run.reason) for run in hopeless.runs] == [(Outcome.FAILED, "exit_7")] * 3
    for earlier, later in zip(hopeless.runs, hopeless.runs[1:], strict=False):
        assert later.leased_at - earlier.ended_at >= policy.delay
    assert made.check() == []


def test_a_cancelled_job_is_stopped_and_the_loop_ends_when_told(
    executor: ProcessExecutor,
) -> None:
    """While it runs in a thread of its own."""
    made = scheduler(node())
    service = Service(made, executor, period=PERIOD)
    thread = threading.Thread(target=service.run)
    thread.start()
    try:
        with service.locked() as locked:
            locked.submit([job("a", payload=python(FOR_EVER))], service.now())
        _until(lambda: "running" in said(made, "a"))
        assert len(executor) == 1
        with service.locked() as locked:
            locked.cancel(["a"], service.now())
        _until(lambda: len(executor) == 0)
    finally:
        service.stop()
        thread.join(timeout=20)
    assert not thread.is_alive()
    assert made.snapshot().get("a").state is JobState.CANCELLED


def _until(condition) -> None:
    """Wait for *condition*; fails after ten seconds."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def test_a_lost_node_stops_its_processes_and_another_takes_over(
    executor: ProcessExecutor, tmp_path: Path
) -> None:
    """The replacement is a process of its own."""
    made = scheduler(node("n1", 1), node("n2", 1))
    service = Service(made, executor, period=PERIOD)
    waits = (
        "import pathlib, sys, time\nwhile not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.01)"
    )
    flag = tmp_path / "go"
    with service.locked() as locked:
        locked.submit([job("a", payload=python(waits, str(flag)))], service.now())
    for _ in range(3):
        service.turn()
    with service.locked() as locked:
        locked.lose_nodes([made.snapshot().get("a").node_id], service.now())
    flag.touch()
    service.run_until_idle()
    assert [run.outcome for run in made.snapshot().get("a").runs] == [
        Outcome.LOST,
        Outcome.SUCCEEDED,
    ]
    assert len(executor) == 0


def test_runs_of_an_earlier_program_are_handed_back(executor: ProcessExecutor) -> None:
    """Without blame; they run again here, and only once."""
    journal = MemoryJournal()
    first = scheduler(node(), journal=journal)
    first.submit([job("a", payload=python("pass"))], 0)
    first.step(0)
    again = Scheduler(SchedulingConfig(), journal, ids=run_names("again"))
    Service(again, executor, period=PERIOD).run_until_idle()
    runs = again.snapshot().get("a").runs
    assert [(run.outcome, run.reason) for run in runs] == [
        (Outcome.RETURNED, "restarted"),
        (Outcome.SUCCEEDED, ""),
    ]


def test_closing_hands_back_what_runs(executor: ProcessExecutor) -> None:
    """The journal does not believe in processes that are gone."""
    made = scheduler(node())
    service = Service(made, executor, period=PERIOD)
    with service.locked() as locked:
        locked.submit([job("a", payload=python(FOR_EVER))], service.now())
    service.turn()
    assert len(executor) == 1
    service.close()
    assert len(executor) == 0
    assert made.snapshot().get("a").state is JobState.QUEUED


def test_news_is_kept_until_the_journal_has_it() -> None:
    """A conflict or a fault of the journal loses no report."""

    class Faulty(MemoryJournal):
        faults: list[Exception]

        def commit(self, changes, *, expect):
            if self.faults:
                raise self.faults.pop()
            return super().commit(changes, expect=expect)

    Faulty.faults = []
    made = scheduler(node(), journal=Faulty())
    made.submit([job("a")], 0)
    puppet = Puppet()
    service = Service(made, puppet, clock=lambda: 5)
    assert service.turn(), "what was leased is to be waited for"
    assert puppet.seen == [EventKind.LEASED]
    run = made.snapshot().get("a").active_run
    puppet.news = [Report(run_id=run.id, job_id="a", kind=ReportKind.SUCCEEDED, at=5)]
    Faulty.faults = [Conflict((("job", "a"),)), ConnectionError("gone")]
    with pytest.raises(ConnectionError):
        service.turn()
    assert service.turn(), "after a conflict there is another turn"
    service.turn()
    assert made.snapshot().get("a").state is JobState.SUCCEEDED
    assert not service.turn()
