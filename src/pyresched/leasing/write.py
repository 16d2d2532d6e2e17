"""A round's decisions written straight into a job db, for who keeps no journal.

What `grant` decides, with neither an event nor a `Job` for each placement: the store leases them
all at once. Keeps INV-J6 and INV-J7 as `grant` does.
"""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace

from pyresched.config import SchedulingConfig
from pyresched.errors import AwaitsReplacement
from pyresched.jobdb import Txn
from pyresched.leasing.grant import grant
from pyresched.model import METHODS, Instant, Placement, Placements, RoundResult

__all__ = ["write"]


def write(
    result: RoundResult,
    txn: Txn,
    now: Instant,
    ids: Callable[[], str],
    config: SchedulingConfig,
    *,
    first_run_id: str | None = None,
) -> None:
    """Put into *txn* the rows that `grant` would give.

    Every run has an id of *ids*; with *first_run_id*, a ULID, the runs of jobs that no failed run
    delays have it and those that follow it, in the order of the decisions. Raises Conflict for a
    job that is no longer as the round saw it, else as `Txn.lease_many` does.
    """
    ends = None if config.lease_duration is None else now + config.lease_duration

    def lease(columns: Placements, run_ids: str | list[str]) -> None:
        txn.lease_many(
            columns.job_ids,
            run_ids=run_ids,
            nodes=(_codes(columns.nodes), list(columns.node_ids)),
            pool=result.pool,
            priority=_int64(columns.priorities),
            leased_at=now,
            lease_expires_at=ends,
        )

    scheduled = result.scheduled
    columns = scheduled if isinstance(scheduled, Placements) else _columns(scheduled)
    runs = first_run_id or [ids() for _ in range(len(columns))]
    one_by_one: tuple[Placement, ...] = ()
    try:
        lease(columns, runs)
    except AwaitsReplacement as found:
        # These have a history, which is decided job by job; the rest is most of a large round.
        apart = set(found.rows)
        one_by_one = tuple(columns[row] for row in found.rows)
        rest = [row for row in range(len(columns)) if row not in apart]
        if not isinstance(runs, str):
            runs = [runs[row] for row in rest]
        lease(_columns([columns[row] for row in rest]), runs)
    changes = grant(replace(result, scheduled=one_by_one), txn, now, ids, config)
    txn.upsert_many(changes.jobs)


def _columns(placements: Sequence[Placement]) -> Placements:
    """The same in columns."""
    codes: dict[str, int] = {}
    nodes = [codes.setdefault(each.node_id, len(codes)) for each in placements]
    return Placements(
        job_ids=[each.job_id for each in placements],
        nodes=array("q", nodes),
        priorities=array("q", (each.priority for each in placements)),
        methods=bytes(METHODS.index(each.method) for each in placements),
        node_ids=tuple(codes),
    )


def _codes(column: Sequence[int]) -> Sequence[int]:
    """*column* as a buffer, of whatever width."""
    return column if isinstance(column, array | memoryview) else array("q", column)


def _int64(column: Sequence[int]) -> Sequence[int]:
    """*column* in int64, which is how a round hands it out."""
    if isinstance(column, array) and column.typecode == "q":
        return column
    return array("q", column)
