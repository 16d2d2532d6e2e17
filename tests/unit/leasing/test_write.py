"""Decisions written into a job db are those that `grant` hands to a journal."""

from array import array
from collections.abc import Callable
from itertools import count

import pytest

from kit.jobs import backing_off, gang, job, jobs, leased
from pyresched._core import JobIds
from pyresched.config import SchedulingConfig
from pyresched.errors import Conflict
from pyresched.jobdb import JobDb
from pyresched.leasing import grant, write
from pyresched.model import (
    JobState,
    Method,
    Move,
    Node,
    Placement,
    Placements,
    Preemption,
    Queue,
    ReschedulePolicy,
    Rounding,
    RoundResult,
)
from pyresched.nodedb import NodeDb
from pyresched.scheduling import RoundState, run_round

CONFIG = SchedulingConfig(lease_duration=100)
POLICY = ReschedulePolicy(attempts=3, interval=1000, delay=8)


def world() -> JobDb:
    """Five queued jobs, one due after a failure, three that run and a gang."""
    db = JobDb(CONFIG)
    with db.write() as txn:
        txn.upsert_many([*jobs(5), *(leased(each) for each in jobs(3, prefix="runs"))])
        txn.upsert_many(leased(each) for each in gang("g"))
        due = backing_off(leased(job("due", policy=POLICY)), eligible_at=10)
        txn.upsert(due.replace(state=JobState.QUEUED))
    return db


def new_ids() -> Callable[[], str]:
    """`new-0`, `new-1`, ..."""
    numbers = count()
    return lambda: f"new-{next(numbers)}"


def decided(job_ids: list[str]) -> RoundResult:
    """Those are placed, one run moves, a gang and another run give way."""
    return RoundResult(
        pool="default",
        scheduled=tuple(
            Placement(id, f"node-{n % 2}", 500 + n, Method.FAIR_SHARE)
            for n, id in enumerate(job_ids)
        ),
        moved=(Move("runs-000000", "runs-000000/run-1", "node-1", "node-9", 7, "due"),),
        preempted=(
            Preemption("g.1", "g.1/run-1", "node-1", "due"),
            Preemption("runs-000001", "runs-000001/run-1", "node-1", "due"),
        ),
    )


def in_columns(db: JobDb, result: RoundResult) -> RoundResult:
    """The same as a round hands it out."""
    columns = Placements(
        JobIds(db.snapshot(), [each.job_id for each in result.scheduled]),
        memoryview(array("i", [n % 2 for n in range(len(result.scheduled))])),
        array("q", [each.priority for each in result.scheduled]),
        bytes([1] * len(result.scheduled)),
        ("node-0", "node-1"),
    )
    assert columns == result.scheduled
    return RoundResult(
        pool="default", scheduled=columns, moved=result.moved, preempted=result.preempted
    )


@pytest.mark.parametrize("by_slot", [False, True])
@pytest.mark.parametrize(
    "placed", [["job-000001", "due", "job-000004", "job-000000"], ["job-000002"], []]
)
def test_what_is_written_is_what_would_be_granted(placed: list[str], by_slot: bool) -> None:
    """But for the ids of runs, which come in another order."""
    db, twin = world(), world()
    result = decided(placed)
    changes = grant(result, twin.snapshot(), 50, new_ids(), CONFIG)
    with twin.write() as txn:
        txn.upsert_many(changes.jobs)
    with db.write() as txn:
        write(
            in_columns(db, result) if by_slot else result,
            txn,
            50,
            new_ids(),
            CONFIG,
        )
    assert [named_alike(each) for each in db.snapshot()] == [
        named_alike(each) for each in twin.snapshot()
    ]
    assert db.check(db.snapshot()) == []


def named_alike(row):
    """*row* with new runs of one name."""
    runs = tuple(run.replace(id="new") if run.id.startswith("new-") else run for run in row.runs)
    return row.replace(runs=runs, version=row.version)


def test_runs_may_be_counted() -> None:
    """One callable call a run that is decided alone, none for the others."""
    db = world()
    with db.write() as txn:
        write(
            in_columns(db, decided(["job-000003", "due", "job-000001"])),
            txn,
            50,
            new_ids(),
            CONFIG,
            first_run_id="01ARZ3NDEKTSV4RRFFQ69G5FAV",
        )
    runs = {each.id: each.active_run.id for each in db.snapshot().leased()}
    assert runs["job-000003"] == "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    assert runs["job-000001"] == "01ARZ3NDEKTSV4RRFFQ69G5FAW"
    assert {runs["runs-000000"], runs["due"]} == {"new-0", "new-1"}


def test_a_job_that_the_round_saw_otherwise_is_not_leased() -> None:
    """Decisions in columns are of one version."""
    db = world()
    result = in_columns(db, decided(["job-000001"]))
    with db.write() as txn:
        txn.upsert(txn["job-000001"].replace(priority=9))
    with db.write() as txn, pytest.raises(Conflict, match="job-000001"):
        write(result, txn, 50, new_ids(), CONFIG)


def test_decisions_over_a_dry_run_are_written_too() -> None:
    """A round over any reader hands out jobs as they were there; its end changes nothing."""
    db = world()
    config, nodes = CONFIG, NodeDb(CONFIG)
    total = config.spec.vector({"cpu": 32, "memory": "256Gi"}, rounding=Rounding.DOWN)
    nodes.upsert_many([Node(id="node-1", total=total)])
    queues = {"queue-a": Queue(name="queue-a")}
    with db.dry_run() as dry:
        result, _ = run_round(dry, nodes, queues, "default", config, RoundState(), 50)
        placed = [each.job_id for each in result.scheduled]
        dry.delete_many(placed)
    assert [each.job_id for each in result.scheduled[1:]] == placed[1:]
    assert len(placed) == 6
    with db.write() as txn:
        write(result, txn, 50, new_ids(), config)
    assert set(placed) <= {each.id for each in db.snapshot().leased()}
    with db.write() as txn, pytest.raises(Conflict, match="job"):
        write(result, txn, 50, new_ids(), config)
