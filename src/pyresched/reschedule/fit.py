"""Do the attempts of a policy fit into its interval: Nomad's figure, and the true one.

Nomad holds the latest delay, not the sum of delays, against the interval, so its check passes
policies whose window refills before the attempts are used up, and refuses some that work. All
sums saturate at int64, and no work grows with the number of attempts.
"""

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from pyresched.durations import saturated
from pyresched.ids import Duration

if TYPE_CHECKING:
    from pyresched.reschedule.policy import ReschedulePolicy

__all__ = ["DELAY_FUNCTIONS", "Fit", "exact_fit", "nomad_fit"]

DELAY_FUNCTIONS: Final = ("constant", "exponential", "fibonacci")
# After so many steps each series has passed any cap that int64 holds, or stays 0.
_STEPS: Final = 100
_WORD: Final = 64


class Fit(Struct, frozen=True, kw_only=True):
    """Whether the attempts fit the interval.

    `possible` counts the attempts that do (in Nomad's figures 0 for a constant or fibonacci
    policy that fits); `interval` is the one that the check recommends, in ns; `sufficient` is
    the smallest that passes it.
    """

    fits: bool
    possible: int
    interval: Duration
    sufficient: Duration


def nomad_fit(policy: "ReschedulePolicy") -> Fit:
    """Nomad's check, with saturating arithmetic (rule `saturate`). Any known delay function."""
    if policy.delay_function == "constant":
        return _constant(policy)
    if policy.delay_function == "exponential":
        return _exponential(policy)
    return _fibonacci(policy)


def exact_fit(policy: "ReschedulePolicy") -> Fit:
    """The true figure (rule `exact-fit`): the smallest interval that uses up the attempts.

    It is meant for a job that fails at once every time and is replaced when due, and for a
    policy without other faults. With one attempt, any interval will do.
    """
    series = _Series.of(policy)
    possible = bisect_right(
        range(1, policy.attempts + 1), policy.interval, key=series.exhausting_interval
    )
    needed = series.exhausting_interval(policy.attempts)
    return Fit(
        fits=policy.interval >= needed, possible=possible, interval=needed, sufficient=needed
    )


class _Series(Struct, frozen=True):
    """The delays of a job that fails at once every time: some that grow, then one for ever."""

    growing: tuple[int, ...]
    steady: int

    @staticmethod
    def of(policy: "ReschedulePolicy") -> "_Series":
        """The delays under *policy*, whose cap is not below its delay."""
        if policy.delay_function == "constant":
            return _Series((), policy.delay)
        growing = [policy.delay]
        following = 2 * policy.delay if policy.delay_function == "exponential" else policy.delay
        while following < policy.max_delay and len(growing) < _STEPS:
            growing.append(following)
            before = growing[-1] if policy.delay_function == "exponential" else growing[-2]
            following = growing[-1] + before
        return _Series(tuple(growing), policy.max_delay)

    def delay(self, number: int) -> int:
        """The delay before reschedule *number*, from 1."""
        return self.growing[number - 1] if number <= len(self.growing) else self.steady

    def exhausting_interval(self, attempts: int) -> int:
        """The smallest interval with which, and with every longer one, *attempts* are used up.

        Each delay must be shorter than the interval; and in the end either the window still
        holds every attempt, or the next delay no longer fits.
        """
        if attempts <= 1:
            return 0
        growing = self.growing[1:attempts]
        waited = sum(growing) + self.steady * (attempts - 1 - len(growing))
        stopped_by_delay = self.delay(attempts + 1) >= waited
        return saturated(1 + (self.delay(attempts) if stopped_by_delay else waited))


def _constant(policy: "ReschedulePolicy") -> Fit:
    needed = saturated(policy.attempts * policy.delay)
    fits = policy.interval >= needed
    possible = max(policy.interval, 0) // policy.delay if not fits and policy.delay > 0 else 0
    return Fit(fits=fits, possible=possible, interval=needed, sufficient=needed)


def _exponential(policy: "ReschedulePolicy") -> Fit:
    """Below the cap the figure is the latest delay; above it each attempt adds the cap."""
    latest = possible = 0
    left, step = policy.attempts, 0
    # One shift more than int64 has bits: any delay but 0 has passed any cap by then.
    for doublings in range(min(policy.attempts, _WORD)):
        delay = policy.delay << doublings
        if delay > policy.max_delay:
            step = policy.max_delay
            break
        latest = delay
        possible += latest < policy.interval
        left -= 1
    if step > 0:
        possible += max(0, min(left, (policy.interval - latest - 1) // step))
    elif latest < policy.interval:
        possible += left
    latest = saturated(latest + left * step)
    return Fit(
        fits=possible >= policy.attempts,
        possible=possible,
        interval=latest,
        # This check is strict, so what it recommends never passes it.
        sufficient=saturated(latest + 1),
    )


def _fibonacci(policy: "ReschedulePolicy") -> Fit:
    """Slots as Nomad sums them: the series below the cap, above it the cap added each time."""
    slots = [policy.delay, policy.delay]
    count = max(policy.attempts, len(slots))
    capped = False
    while len(slots) < count and not capped and len(slots) < _STEPS:
        following = slots[-1] + slots[-2]
        capped = following > policy.max_delay
        slots.append(policy.max_delay if capped else following)
    left = count - len(slots)
    step = policy.max_delay if capped else 0
    last = saturated(slots[-1] + left * step)
    fits = policy.interval >= last
    possible = 0
    if not fits:
        # The index of the first slot past the interval; where none of these is, one of those
        # that follow, a cap apart.
        behind = len(slots) + (policy.interval - slots[-1]) // max(step, 1)
        possible = next((i for i, slot in enumerate(slots) if slot > policy.interval), behind)
    return Fit(fits=fits, possible=possible, interval=last, sufficient=last)
