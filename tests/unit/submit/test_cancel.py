"""Jobs are taken back whole, once."""

import pytest

from kit.jobs import backing_off, ended, gang, job, leased
from kit.readers import DictReader
from pyresched.model import EventKind, JobState, Outcome
from pyresched.submit import cancel


@pytest.mark.parametrize(
    "row", [job("a"), job("a", validated=False), backing_off(leased(job("a")))]
)
def test_a_job_without_a_run_is_cancelled(row) -> None:
    """Queued, unchecked or waiting: one event, and nothing waits any more."""
    changes = cancel(["a"], DictReader([row]), now=9, reason="changed my mind")
    (after,) = changes.jobs
    assert (after.state, after.ended_at, after.reason) == (JobState.CANCELLED, 9, "changed my mind")
    assert (after.eligible_at, after.retry_delay) == (None, None)
    assert [(event.kind, event.run_id) for event in changes.events] == [(EventKind.CANCELLED, "")]


def test_an_active_run_is_stopped() -> None:
    """The event names the run, so that its executor stops it."""
    row = leased(job("a"), run_id="r", at=3)
    changes = cancel(["a"], DictReader([row]), now=9)
    run = changes.jobs[0].runs[-1]
    assert (run.outcome, run.ended_at) == (Outcome.CANCELLED, 9)
    assert [(event.kind, event.run_id) for event in changes.events] == [(EventKind.CANCELLED, "r")]


def test_a_gang_is_cancelled_as_one() -> None:
    """A part of it could never run again; naming two members ends each once."""
    members = [leased(member) for member in gang("g", size=3)]
    changes = cancel(["g.1", "g.2"], DictReader(members), now=9)
    assert [(row.id, row.state, row.version) for row in changes.jobs] == [
        (f"g.{n}", JobState.CANCELLED, 3) for n in range(3)
    ]
    assert len(changes.events) == 3


def test_what_has_ended_or_is_unknown_stays() -> None:
    """Asking twice is harmless."""
    assert not cancel(["a", "nobody"], DictReader([ended(job("a"))]), now=9)
