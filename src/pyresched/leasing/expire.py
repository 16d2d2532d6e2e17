"""Leases that have ended: an executor that does not renew them is out of reach.

A gang's member whose process has succeeded needs no renewal: it only holds its room.
"""

from collections.abc import Container, Iterator
from typing import Final

from pyresched.model import Changes, Draft, Instant, Job, JobReader, Outcome
from pyresched.model.moves import GANG_DONE, put_back

__all__ = ["LEASE_ENDED", "expire", "next_end"]

LEASE_ENDED: Final = "lease_ended"
"""Reason of a run whose lease ended before it did."""


def expire(snapshot: JobReader, now: Instant, *, away: Container[str] = ()) -> Changes:
    """End, as lost, the runs whose lease ended at *now* or before; their jobs go back at once.

    But not those on nodes that are known to be *away*: how long they are waited for is said there.
    """
    draft = Draft(snapshot)
    ended = {
        job.id: (Outcome.LOST, LEASE_ENDED) for end, job in _ends(snapshot, away) if end <= now
    }
    put_back(draft, ended, at=now)
    return draft.changes()


def next_end(snapshot: JobReader, *, away: Container[str] = ()) -> Instant | None:
    """When the next lease ends, or None while none will; those on nodes *away* do not."""
    return min((end for end, _ in _ends(snapshot, away)), default=None)


def _ends(snapshot: JobReader, away: Container[str]) -> Iterator[tuple[Instant, Job]]:
    """The leases that must be renewed: when each ends, and its job."""
    for job in snapshot.leased():
        run = job.active_run
        if run is None or run.lease_expires_at is None or run.reason == GANG_DONE:
            continue
        if run.node_id not in away:
            yield run.lease_expires_at, job
