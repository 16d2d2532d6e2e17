"""How users' code is typed. Checked by mypy, never run."""

from typing import assert_type

from pyresched.config import SchedulingConfig
from pyresched.jobdb import Snapshot, Txn
from pyresched.model import (
    JobId,
    JobState,
    Placement,
    PoolName,
    ResourceVector,
    UnschedulableReason,
    next_state,
)
from pyresched.nodedb import NodeDb
from pyresched.scheduling import RoundState, run_round, unplaceable


def vectors(one: ResourceVector, other: ResourceVector) -> None:
    """Arithmetic stays in the type; an amount is an int."""
    assert_type(one + other, ResourceVector)
    assert_type(one[0], int)
    assert_type(one.first_exceeding(other), int | None)


def states(state: JobState) -> None:
    """A move gives a state."""
    assert_type(next_state(state, JobState.LEASED), JobState)


def ids() -> None:
    """A bare string is not an id."""
    job: JobId = "j1"  # type: ignore[assignment]
    assert_type(job, JobId)


def a_round(snapshot: Snapshot, dry: Txn, nodes: NodeDb, config: SchedulingConfig) -> None:
    """Every reader of the job db will do; the state goes in and comes out."""
    pool = PoolName("default")
    result, state = run_round(snapshot, nodes, {}, pool, config, RoundState(), 0)
    result, state = run_round(dry, nodes, {}, pool, config, state, 1)
    assert_type(state, RoundState)
    assert_type(result.scheduled, tuple[Placement, ...])
    assert_type(result.refused[JobId("j1")], UnschedulableReason)


def a_submit_check(snapshot: Snapshot, nodes: NodeDb, config: SchedulingConfig) -> None:
    """Jobs in, reasons out."""
    found = unplaceable(snapshot, nodes, config)
    assert_type(found.get(JobId("j1")), UnschedulableReason | None)
