"""What a history keeps: enough to count a window and to go on with a delay series, no more."""

from pyresched._core import RescheduleTracker
from pyresched.ids import Duration, Instant, NodeId, RunId
from pyresched.reschedule.policy import ReschedulePolicy

__all__ = ["extended"]


def extended(
    tracker: RescheduleTracker | None,
    policy: ReschedulePolicy | None,
    *,
    now: Instant,
    previous_run: RunId,
    previous_node: NodeId,
    delay: Duration,
    forced: bool = False,
) -> RescheduleTracker:
    """`RescheduleTracker.extended`, also of no history yet."""
    return (tracker or RescheduleTracker()).extended(
        policy,
        now=now,
        previous_run=previous_run,
        previous_node=previous_node,
        delay=delay,
        forced=forced,
    )
