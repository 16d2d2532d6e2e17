"""Which nodes a job would rather not run on again: a pure function of its runs and tracker.

The order itself (unused, used, failed on; tried last, never forbidden) is kept by the node db.
"""

from collections.abc import Iterable
from enum import IntEnum

from pyresched._core import Job, Outcome
from pyresched.ids import NodeId

__all__ = ["AvoidRank", "avoided_nodes"]


class AvoidRank(IntEnum):
    """How much a node is to be avoided; a node that is not named has rank 0."""

    USED = 1
    FAILED_ON = 2


def avoided_nodes(members: Iterable[Job]) -> tuple[tuple[NodeId, AvoidRank], ...]:
    """The nodes that *members*, one job or those of one gang, have used, by node id.

    Counted are the node of each event of a tracker and that of each member's last run. A node
    on which a run failed has rank 2, any other 1; an event whose run is no longer known counts
    as a failure, since it is failures that are rescheduled.
    """
    ranks: dict[NodeId, AvoidRank] = {}
    for job in members:
        outcomes = {run.id: run.outcome for run in job.runs}
        if job.runs:
            last = job.runs[-1]
            _raise(ranks, last.node_id, last.outcome)
        if job.tracker is not None:
            for event in job.tracker.events:
                outcome = outcomes.get(event.previous_run, Outcome.FAILED)
                _raise(ranks, event.previous_node, outcome)
    return tuple(sorted(ranks.items()))


def _raise(ranks: dict[NodeId, AvoidRank], node_id: NodeId, outcome: Outcome | None) -> None:
    rank = AvoidRank.FAILED_ON if outcome is Outcome.FAILED else AvoidRank.USED
    if node_id:
        ranks[node_id] = max(rank, ranks.get(node_id, rank))
