"""The reference's answers on policies and histories, from its specification alone.

Imports nothing of the package, so that two implementations can be held against each other.
Plain integers in nanoseconds, which wrap as int64 where the reference's do.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

__all__ = [
    "DEFAULTS",
    "Event",
    "Fit",
    "Policy",
    "attempts_label",
    "attempts_used",
    "batches",
    "codes",
    "eligible_by_attempts",
    "error_count",
    "fit_of",
    "group_codes",
    "merged",
    "next_delay",
    "pruned",
    "reschedulable",
    "sentence",
    "until",
    "warnings",
    "wrap",
]

S = 1_000_000_000
FUNCTIONS = ("constant", "exponential", "fibonacci")
MIN_INTERVAL = 15 * S
KEEP = 5


@dataclass(frozen=True)
class Policy:
    """A policy after merging; the fields' values are unrestricted."""

    attempts: int = 0
    interval: int = 0
    delay: int = 0
    function: str = ""
    max_delay: int = 0
    unlimited: bool = False

    @classmethod
    def of(cls, row: dict[str, Any] | None) -> "Policy | None":
        """The policy of a row; no row is no policy."""
        return None if row is None else cls(**{ours: row[name] for ours, name in FIELDS.items()})

    @property
    def enabled(self) -> bool:
        """Spec 1.4."""
        return self.attempts > 0 or self.unlimited


FIELDS = {
    "attempts": "attempts",
    "interval": "interval_ns",
    "delay": "delay_ns",
    "function": "delay_function",
    "max_delay": "max_delay_ns",
    "unlimited": "unlimited",
}

DEFAULTS: dict[str, Policy | None] = {
    "service": Policy(delay=30 * S, function="exponential", max_delay=3600 * S, unlimited=True),
    "batch": Policy(attempts=1, interval=86400 * S, delay=5 * S, function="constant"),
    "system": None,
    "sysbatch": None,
}


@dataclass(frozen=True)
class Event:
    """One reschedule."""

    time: int
    delay: int
    run: str = ""
    node: str = ""


def wrap(value: int) -> int:
    """*value* as an int64 that overflowed holds it."""
    return (value + 2**63) % 2**64 - 2**63


# Merging: spec 1.3.


def merged(
    job: dict[str, Any] | None, group: dict[str, Any] | None, job_type: str | None
) -> Policy | None:
    """The effective policy of blocks as written: a field that is None was not written."""
    default = DEFAULTS.get(job_type or "service", Policy())
    if job is None and group is None:
        return default
    block = dict.fromkeys(FIELDS.values())
    for written in (job, group):
        block |= {name: value for name, value in (written or {}).items() if value is not None}
    rest = default or Policy()
    return replace(
        rest, **{ours: block[name] for ours, name in FIELDS.items() if block[name] is not None}
    )


# Validation: spec 1.5 and 1.6.


@dataclass(frozen=True)
class Fit:
    """Whether the attempts fit the interval, and the two figures of the message."""

    viable: bool
    possible: int
    interval: int


def codes(policy: Policy | None, minimum: int) -> list[str]:
    """What is wrong, in order of evaluation."""
    if policy is None or not policy.enabled:
        return []
    p = policy
    grows = p.function != "constant"
    blocking = [
        (p.delay < minimum, "delay_below_minimum"),
        (p.function not in FUNCTIONS, "unknown_delay_function"),
        (grows and p.max_delay < minimum, "max_delay_below_minimum"),
        (grows and p.max_delay < p.delay, "max_delay_below_delay"),
    ]
    blocked = any(wrong for wrong, _ in blocking)
    rules = [
        (p.attempts > 0 and p.interval <= 0, "attempts_need_interval"),
        (p.attempts > 0 and p.unlimited, "attempts_and_unlimited_ambiguous"),
        *blocking,
        (not p.unlimited and p.interval < MIN_INTERVAL, "interval_below_minimum"),
        (
            not p.unlimited and not blocked and not fit_of(p).viable,
            "attempts_do_not_fit_interval",
        ),
    ]
    return [code for wrong, code in rules if wrong]


def error_count(found: Sequence[str]) -> int:
    """How many messages the codes are."""
    twice = ("attempts_and_unlimited_ambiguous", "attempts_do_not_fit_interval")
    return sum(2 if code in twice else 1 for code in found)


def warnings(policy: Policy, minimum: int) -> list[str]:
    """Spec 1.7: a short delay without a limit, where the minimum allows it."""
    low = policy.unlimited and minimum <= policy.delay < 5 * S
    return ["low_delay_with_unlimited"] if low else []


def group_codes(policy: Policy | None, job_type: str, minimum: int) -> list[str]:
    """The same for a group of a job of a type."""
    if job_type in ("system", "sysbatch"):
        return [] if policy is None else ["system_or_sysbatch_must_not_have_policy"]
    return ["policy_required"] if policy is None else codes(policy, minimum)


def fit_of(policy: Policy) -> Fit:
    """Spec 1.6, with what overflows as it does there. The function is one of the three."""
    ways = {"constant": _constant, "exponential": _exponential, "fibonacci": _fibonacci}
    return ways[policy.function](policy)


def _constant(p: Policy) -> Fit:
    need = wrap(p.attempts * p.delay)
    viable = p.interval >= need
    return Fit(viable, 0 if viable else p.interval // p.delay, need)


def _exponential(p: Policy) -> Fit:
    figure = possible = 0
    for i in range(p.attempts):
        # A power that no longer fits becomes the least int64.
        delay = wrap((2**i if i < 63 else -(2**63)) * p.delay)
        figure = wrap(figure + p.max_delay) if delay > p.max_delay else delay
        possible += figure < p.interval
    return Fit(possible >= p.attempts, possible, figure)


def _fibonacci(p: Policy) -> Fit:
    slots, capped = [p.delay, p.delay], False
    while len(slots) < p.attempts:
        slot = wrap(slots[-1] + (p.max_delay if capped else slots[-2]))
        if not capped and slot > p.max_delay:
            slot, capped = p.max_delay, True
        slots.append(slot)
    if p.interval >= slots[-1]:
        return Fit(viable=True, possible=0, interval=slots[-1])
    first = next(i for i, slot in enumerate(slots) if slot > p.interval)
    return Fit(viable=False, possible=first, interval=slots[-1])


# Delay and eligibility: spec 2 and 3.


def next_delay(policy: Policy | None, events: Sequence[Event], failed_at: int) -> int:
    """Spec 2."""
    if policy is None:
        return 0
    if not events or policy.function not in ("exponential", "fibonacci"):
        return policy.delay
    last = events[-1].delay
    if policy.function == "exponential":
        delay = wrap(2 * last)
    elif len(events) == 1 or (events[-2].delay, last) == (policy.max_delay, policy.delay):
        delay = policy.delay
    else:
        delay = wrap(last + events[-2].delay)
    if 0 < policy.max_delay < delay:
        healthy = failed_at - events[-1].time > policy.max_delay
        return policy.delay if healthy else policy.max_delay
    return delay


def attempts_used(policy: Policy | None, events: Sequence[Event], at: int) -> tuple[int, int]:
    """Used and limit (spec 3.1)."""
    if policy is None or policy.attempts <= 0:
        return 0, 0
    return sum(at - event.time < policy.interval for event in events), policy.attempts


def eligible_by_attempts(policy: Policy | None, events: Sequence[Event], at: int) -> bool:
    """RescheduleEligible of spec 3.2."""
    if policy is None or not policy.enabled:
        return False
    return policy.unlimited or not events or attempts_used(policy, events, at)[0] < policy.attempts


def reschedulable(
    policy: Policy | None, events: Sequence[Event] | None, failed_at: int, *, tracker: bool
) -> tuple[int | None, bool]:
    """Time and eligibility: spec 3.3 steps 1, 5, 6 and 7.

    *events* None with a *tracker* is one whose events are nil.
    """
    if policy is None or (policy.attempts == 0 and not policy.unlimited):
        return None, False
    delay = next_delay(policy, events or (), failed_at)
    eligible = policy.unlimited or (policy.attempts > 0 and not tracker)
    if policy.attempts > 0 and events is not None:
        used, limit = attempts_used(policy, events, failed_at)
        eligible = used < limit and delay < policy.interval
    return wrap(failed_at + delay), eligible


def pruned(policy: Policy | None, events: Sequence[Event], now: int) -> list[Event]:
    """What a history keeps when an event is added (spec 6.2)."""
    if policy is None or policy.attempts <= 0:
        return list(events[-KEEP:])
    return [e for e in events if policy.interval > 0 and now - e.time <= policy.interval]


# Follow-ups and display: spec 4.6 and 9.


def batches(times: Sequence[int], window: int = 5 * S) -> list[tuple[int, int]]:
    """When, and for how many: each anchored on the batch's first."""
    found: list[tuple[int, int]] = []
    for time in sorted(times):
        if found and time - found[-1][0] < window:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((time, 1))
    return found


def attempts_label(policy: Policy, events: Sequence[Event], at: int) -> str | None:
    """The text behind `Reschedule Attempts`, if the line is there."""
    used, limit = attempts_used(policy, events, at)
    return f"{used}/{limit}" if events and limit > 0 else None


def until(time: int, now: int) -> str | None:
    """The text behind `Reschedule Eligibility`: two largest units; whole seconds."""
    if time <= now:
        return None
    hours, minutes, seconds = _clock((time - now) // S)
    parts = [f"{n}{unit}" for n, unit in ((hours, "h"), (minutes, "m"), (seconds, "s")) if n]
    return f"{''.join(parts[:2])} from now"


def sentence(policy: Policy) -> str:
    """The policy in one line. Durations are whole seconds."""
    growth = f"{policy.function} delay, max_delay = {_go(policy.max_delay)}"
    limit = "unlimited" if policy.unlimited else f"{policy.attempts} in {_go(policy.interval)}"
    return f"{limit} with {growth}"


def _go(duration: int) -> str:
    hours, minutes, seconds = _clock(duration // S)
    if hours:
        return f"{hours}h{minutes}m{seconds}s"
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"


def _clock(seconds: int) -> tuple[int, int, int]:
    return seconds // 3600, seconds // 60 % 60, seconds % 60
