"""When a scheduler has to look again though nobody tells it anything.

Relies on stages for their own times; no clock. What it costs is in docs/reschedule.md.
"""

from pyresched import fleet, leasing
from pyresched.config import SchedulingConfig
from pyresched.model import Instant, NodeId
from pyresched.reschedule.followups import last_of_first
from pyresched.scheduler.sync import Sync

__all__ = ["away", "next_wake"]


def next_wake(
    sync: Sync, config: SchedulingConfig, now: Instant, *, again_at: Instant | None
) -> Instant | None:
    """When after a step at *now* time brings the next thing to do, as `StepResult` has it.

    *again_at* is when a limit that held jobs back may let one go.
    """
    snapshot, nodes = sync.snapshot, sync.timed_nodes
    waiting = (each.eligible_at for each in snapshot.backing_off())
    due = (at for at in waiting if at is not None)
    times = [last_of_first(due, config.reschedule_window), again_at]
    if config.lease_duration is not None:
        times.append(leasing.next_end(snapshot, away=away(sync)))
    times.append(fleet.next_expiry(nodes, snapshot, sync.unsettled))
    times.append(fleet.next_drain(nodes, jobs=snapshot, now=now))
    if snapshot.queues():  # whom the end of a penalty might help
        times += [each.deadline for each in sync.penalties(now)[:1]]
    return min((each for each in times if each is not None), default=None)


def away(sync: Sync) -> frozenset[NodeId]:
    """The nodes that are out of reach with runs that may go on."""
    nodes = sync.timed_nodes
    return frozenset(id for id, node in nodes.items() if node.disconnected_at is not None)
