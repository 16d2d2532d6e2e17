"""What a history keeps: enough to count a window and to go on with a delay series, no more."""

from collections.abc import Sequence
from typing import Final

from pyresched._core import LastReschedule, RescheduleEvent, RescheduleTracker
from pyresched.ids import Duration, Instant, NodeId, RunId
from pyresched.reschedule.policy import ReschedulePolicy

__all__ = ["extended"]

# Without a window to count, the newest few serve people and the choice of a node.
_KEPT_WITHOUT_WINDOW: Final = 5


def extended(
    tracker: RescheduleTracker | None,
    policy: ReschedulePolicy | None,
    *,
    now: Instant,
    previous_run: RunId,
    previous_node: NodeId,
    delay: Duration,
) -> RescheduleTracker:
    """*tracker* with the reschedule placed at *now*, older events pruned by *policy*.

    A policy that counts attempts keeps the events that are at most `interval` old, every other
    one the newest five; the new event comes on top.
    """
    events = () if tracker is None else tracker.events
    event = RescheduleEvent(
        time=now, previous_run=previous_run, previous_node=previous_node, delay=delay
    )
    kept = _kept(events, policy, now=now)
    return RescheduleTracker(events=(*kept, event), last=LastReschedule.OK)


def _kept(
    events: Sequence[RescheduleEvent], policy: ReschedulePolicy | None, *, now: Instant
) -> Sequence[RescheduleEvent]:
    if policy is None or policy.attempts <= 0:
        return events[-_KEPT_WITHOUT_WINDOW:]
    if policy.interval <= 0:
        return ()
    # Counting leaves out what is exactly `interval` old; keeping it costs nothing and lets the
    # delay series go on.
    return [event for event in events if now - event.time <= policy.interval]
