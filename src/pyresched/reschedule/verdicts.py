"""Whether, when and after which delay a failed run is tried again.

Works from the recorded delays of past reschedules, never from their number: pruning makes the
number unknowable, and a reset makes it meaningless. Keeps INV "never more reschedules in a
window than attempts".
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from pyresched._core import RescheduleEvent, RescheduleTracker
from pyresched.durations import saturated, short_duration
from pyresched.ids import Duration, Instant

if TYPE_CHECKING:
    from pyresched.reschedule.policy import ReschedulePolicy

__all__ = ["Verdict", "VerdictReason", "attempted", "next_delay", "next_reschedule"]

# A delay series needs the two newest events at most.
_TWO: Final = 2


class VerdictReason(Enum):
    """Why a failed run is or is not tried again."""

    ELIGIBLE = "eligible"
    DISABLED = "disabled"
    NO_POLICY = "no_policy"
    EXHAUSTED = "exhausted"
    DELAY_PAST_INTERVAL = "delay_past_interval"
    NOT_APPLICABLE = "not_applicable"  # to system and sysbatch
    PAST_PROGRESS_DEADLINE = "past_progress_deadline"  # of the deployment


_SENTENCES: Final[Mapping[VerdictReason, str]] = MappingProxyType(
    {
        VerdictReason.ELIGIBLE: "tried again after {delay}",
        VerdictReason.DISABLED: "disabled: the policy allows no reschedule",
        VerdictReason.NO_POLICY: "no policy: nothing is tried again",
        VerdictReason.EXHAUSTED: "exhausted: {attempted} of {attempts} in {interval}",
        VerdictReason.DELAY_PAST_INTERVAL: (
            "the delay of {delay} is not shorter than the interval of {interval}"
        ),
        VerdictReason.NOT_APPLICABLE: "not applicable to system and sysbatch jobs",
        VerdictReason.PAST_PROGRESS_DEADLINE: "deployment past its progress deadline",
    }
)


class Verdict(Struct, frozen=True, kw_only=True):
    """Whether and when a failed run is tried again.

    `at` is the failure time plus `delay`, also where nothing follows; `attempted` of
    `attempts` reschedules lie in the window of `interval` that ends with the failure; both are 0
    where the policy counts none. Times are in ns.
    """

    eligible: bool
    at: Instant
    delay: Duration
    attempted: int
    attempts: int
    reason: VerdictReason
    interval: Duration = 0

    @property
    def used(self) -> str:
        """The attempts used, for people: `2/3 in 1h`; "unlimited" or "none" without a limit."""
        if self.attempts > 0:
            return f"{self.attempted}/{self.attempts} in {short_duration(self.interval)}"
        return "unlimited" if self.eligible else "none"

    def sentence(self) -> str:
        """For people. Never compared, never parsed."""
        return _SENTENCES[self.reason].format(
            delay=short_duration(self.delay),
            attempted=self.attempted,
            attempts=self.attempts,
            interval=short_duration(self.interval),
        )


def next_reschedule(
    policy: "ReschedulePolicy | None", tracker: RescheduleTracker | None, failed_at: Instant
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
        interval=0 if policy is None or policy.attempts <= 0 else policy.interval,
    )


def next_delay(
    policy: "ReschedulePolicy | None", events: Sequence[RescheduleEvent], *, failed_at: Instant
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
    policy: "ReschedulePolicy", events: Sequence[RescheduleEvent], *, failed_at: Instant
) -> int:
    """How many of *events* lie in the window of `interval` that ends with *failed_at*.

    An event exactly `interval` old has left the window; one later than the failure (clocks
    that disagree) is in it; one that was forced by hand is in none. Where the policy counts no
    attempts there are none.
    """
    if policy.attempts <= 0:
        return 0
    return sum(not event.forced and failed_at - event.time < policy.interval for event in events)


def _fibonacci(policy: "ReschedulePolicy", events: Sequence[RescheduleEvent]) -> int:
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
    policy: "ReschedulePolicy | None",
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
