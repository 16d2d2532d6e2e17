"""Whether, when and after which delay a failed run is tried again.

Works from the recorded delays of past reschedules, never from their number: pruning makes the
number unknowable, and a reset makes it meaningless. Keeps INV "never more reschedules in a
window than attempts".
"""

from collections.abc import Sequence
from typing import Final

from pyresched._core import RescheduleEvent, RescheduleTracker
from pyresched.durations import saturated
from pyresched.ids import Duration, Instant
from pyresched.reschedule.policy import ReschedulePolicy, Verdict, VerdictReason

__all__ = ["attempted", "next_delay", "next_reschedule"]

# A delay series needs the two newest events at most.
_TWO: Final = 2


def next_reschedule(
    policy: ReschedulePolicy | None, tracker: RescheduleTracker | None, failed_at: Instant
) -> Verdict:
    """What *policy* says of a run that failed at *failed_at* with the history *tracker*.

    A tracker that is None or has no events is no history (rule `empty-tracker`): then the
    delay is not held against the interval. Takes any policy, valid or not.
    """
    events = () if tracker is None else tracker.events
    delay = next_delay(policy, events, failed_at=failed_at)
    used = 0 if policy is None else attempted(policy, events, failed_at=failed_at)
    reason = _reason(policy, events, delay=delay, used=used)
    return Verdict(
        eligible=reason is VerdictReason.ELIGIBLE,
        at=saturated(failed_at + delay),
        delay=delay,
        attempted=used,
        attempts=0 if policy is None else max(policy.attempts, 0),
        reason=reason,
    )


def next_delay(
    policy: ReschedulePolicy | None, events: Sequence[RescheduleEvent], *, failed_at: Instant
) -> Duration:
    """Nanoseconds from *failed_at* until the replacement may start; *events* oldest first.

    `constant` always waits the policy's delay. `exponential` doubles the last recorded delay,
    `fibonacci` adds the last two; what would pass `max_delay` is cut to it, and starts anew
    when the run that failed had outlived `max_delay`. A `max_delay` of 0 is no cap.
    """
    if policy is None:
        return 0
    if not events or policy.delay_function not in ("exponential", "fibonacci"):
        return policy.delay
    last = events[-1]
    doubled = policy.delay_function == "exponential"
    grown = 2 * last.delay if doubled else _fibonacci(policy, events)
    # Shorter delays recorded under an earlier policy do not undercut this one.
    delay = max(grown, policy.delay)
    if 0 < policy.max_delay < delay:
        outlived = failed_at - last.time > policy.max_delay
        delay = policy.delay if outlived else policy.max_delay
    return saturated(delay)


def attempted(
    policy: ReschedulePolicy, events: Sequence[RescheduleEvent], *, failed_at: Instant
) -> int:
    """How many of *events* lie in the window of `interval` that ends with *failed_at*.

    An event exactly `interval` old has left the window; one later than the failure (clocks
    that disagree) is in it; one that was forced by hand is in none. Where the policy counts no
    attempts there are none.
    """
    if policy.attempts <= 0:
        return 0
    return sum(not event.forced and failed_at - event.time < policy.interval for event in events)


def _fibonacci(policy: ReschedulePolicy, events: Sequence[RescheduleEvent]) -> int:
    """The sum of the last two recorded delays; the base delay where the series begins."""
    if len(events) < _TWO:
        return policy.delay
    before, last = events[-2].delay, events[-1].delay
    # The cap followed by the base delay is the mark of a reset: the series begins again, with
    # its second base delay, instead of adding the base to the cap.
    if before == policy.max_delay and last == policy.delay:
        return policy.delay
    return before + last


def _reason(
    policy: ReschedulePolicy | None,
    events: Sequence[RescheduleEvent],
    *,
    delay: Duration,
    used: int,
) -> VerdictReason:
    """Why a replacement follows or not: the first rule that speaks."""
    if policy is None:
        return VerdictReason.NO_POLICY
    if not policy.enabled:
        return VerdictReason.DISABLED
    if policy.attempts > 0 and events:
        # A limit holds even beside `unlimited`, which validation refuses.
        if used >= policy.attempts:
            return VerdictReason.EXHAUSTED
        if delay >= policy.interval:
            return VerdictReason.DELAY_PAST_INTERVAL
    return VerdictReason.ELIGIBLE
