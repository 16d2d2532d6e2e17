"""What is tried again and finds no place is marked, once, and not counted."""

from kit.driving import node, report, scheduler
from kit.jobs import gang, job
from pyresched.config import SchedulingConfig
from pyresched.model import NANOS, JobState, LastReschedule, ReschedulePolicy
from pyresched.scheduler import Scheduler

SECOND = NANOS
POLICY = ReschedulePolicy(attempts=1, interval=3600 * SECOND, delay=5 * SECOND)


def test_a_due_job_without_a_place_says_so_until_it_has_one() -> None:
    """Through a restart of the program, written once; a gang as one; its budget is left."""
    made = scheduler(node())
    made.submit(gang("g", 2000, 1024, policy=POLICY), 0)
    made.step(0)
    report(made, "g.0", kind="failed", now=SECOND)
    made.submit([job("other", 4000, 1024)], SECOND)
    made.step(SECOND)
    made.step(6 * SECOND)
    for id in ("g.0", "g.1"):
        row = made.snapshot().get(id)
        assert row.state is JobState.QUEUED
        assert (row.tracker.events, row.tracker.last) == ((), LastReschedule.NO_PLACEMENT)
    serial = made.sync.serial
    made.step(7 * SECOND)
    assert made.sync.serial == serial, "said once"
    made = Scheduler(SchedulingConfig(), made.journal, ids=iter(["x", "y", "z"]).__next__)
    made.step(8 * SECOND)
    assert made.sync.serial == serial
    report(made, "other", kind="succeeded", now=9 * SECOND)
    made.step(9 * SECOND)
    for id in ("g.0", "g.1"):
        row = made.snapshot().get(id)
        assert (len(row.tracker.events), row.tracker.last) == (1, LastReschedule.OK)
    assert made.check() == []


def test_a_restart_between_the_delay_and_the_round_forgets_nothing() -> None:
    """The next step marks what was due before."""
    made = scheduler(node())
    made.submit([job("a", 4000, 1024, policy=POLICY), job("b", 4000, 1024)], 0)
    made.step(0)
    report(made, "a", kind="failed", now=SECOND)
    made.step(SECOND)
    made.force(["a"], 2 * SECOND)
    made = Scheduler(SchedulingConfig(), made.journal, ids=iter(["x"]).__next__)
    made.step(2 * SECOND)
    row = made.snapshot().get("a")
    assert (row.tracker.last, row.reason) == (LastReschedule.NO_PLACEMENT, "forced")
    report(made, "b", kind="succeeded", now=3 * SECOND)
    made.step(3 * SECOND)
    assert [event.forced for event in made.snapshot().get("a").tracker.events] == [True]
