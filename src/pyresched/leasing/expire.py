"""Leases that have ended: an executor that does not renew them is out of reach.

A gang's member whose process has succeeded needs no renewal: it only holds its room.
"""

from collections.abc import Iterator
from typing import Final

from pyresched.model import Changes, Draft, Instant, Job, JobReader, Outcome
from pyresched.model.moves import GANG_DONE, put_back

__all__ = ["LEASE_ENDED", "expire", "next_end"]

LEASE_ENDED: Final = "lease_ended"
"""Reason of a run whose lease ended before it did."""


def expire(snapshot: JobReader, now: Instant) -> Changes:
    """End, as lost, the runs whose lease ended at *now* or before; their jobs go back at once."""
    draft = Draft(snapshot)
    ended = {job.id: (Outcome.LOST, LEASE_ENDED) for end, job in _ends(snapshot) if end <= now}
    put_back(draft, ended, at=now)
    return draft.changes()


def next_end(snapshot: JobReader) -> Instant | None:
    """When the next lease ends, or None while none will."""
    return min((end for end, _ in _ends(snapshot)), default=None)


def _ends(snapshot: JobReader) -> Iterator[tuple[Instant, Job]]:
    """The leases that must be renewed: when each ends, and its job."""
    for job in snapshot.leased():
        run = job.active_run
        if run is not None and run.lease_expires_at is not None and run.reason != GANG_DONE:
            yield run.lease_expires_at, job
