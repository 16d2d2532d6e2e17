"""How users' code is typed. Checked by mypy, never run."""

from typing import assert_type

from pyresched.model import JobId, JobState, ResourceVector, next_state


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
