"""Leases that end."""

from kit.jobs import gang, job, leased
from kit.readers import DictReader
from pyresched.leasing import LEASE_ENDED, expire, next_end
from pyresched.model import JobState, Outcome
from pyresched.model.moves import GANG, GANG_DONE


def test_a_lease_that_nobody_renewed_ends_its_run_as_lost() -> None:
    """At the very instant; the job is queued at once, its gang with it."""
    pair = [
        leased(each, lease_expires_at=end) for each, end in zip(gang("g"), [20, 30], strict=True)
    ]
    reader = DictReader([leased(job("a"), lease_expires_at=21), leased(job("endless")), *pair])
    assert not expire(reader, 19)
    changes = expire(reader, 20)
    ends = {row.id: (row.state, row.runs[-1].outcome, row.runs[-1].reason) for row in changes.jobs}
    assert ends == {
        "g.0": (JobState.QUEUED, Outcome.LOST, LEASE_ENDED),
        "g.1": (JobState.QUEUED, Outcome.RETURNED, GANG),
    }
    assert next_end(reader) == 20
    assert next_end(reader.with_changes(changes)) == 21


def test_a_member_that_is_done_needs_no_renewal() -> None:
    """Its executor has nothing left to speak of."""
    first, second = (leased(each, lease_expires_at=20) for each in gang("g"))
    done = first.replace(runs=(first.runs[0].replace(reason=GANG_DONE),))
    alive = second.replace(runs=(second.runs[0].replace(lease_expires_at=90),))
    reader = DictReader([done, alive])
    assert not expire(reader, 50)
    assert next_end(reader) == 90


def test_a_lease_on_a_node_that_is_known_to_be_away_does_not_end() -> None:
    """How long its run is waited for is said by its group."""
    there = leased(job("there"), lease_expires_at=20, node_id="n1")
    here = leased(job("here"), lease_expires_at=30, node_id="n2")
    reader = DictReader([there, here])
    assert not expire(reader, 20, away={"n1"})
    assert next_end(reader, away={"n1"}) == 30
    assert [row.id for row in expire(reader, 30, away={"n1"}).jobs] == ["here"]


def test_leases_without_end_never_end() -> None:
    """Nothing to wake up for."""
    assert next_end(DictReader([leased(job("a")), job("b")])) is None
