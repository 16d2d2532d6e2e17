"""What was asked for: when a failed run is tried again, by type of job where nobody says.

A policy answers for itself; the answers are worked out in `verdicts` and `validation`. What
happened so far is a native `RescheduleTracker`.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import force_setattr

from pyresched._core import RescheduleTracker
from pyresched.durations import INT64_MAX, INT64_MIN, NANOS, format_duration, parse_duration
from pyresched.errors import InputError, did_you_mean
from pyresched.ids import Duration, Instant
from pyresched.reschedule.validation import MIN_DELAY, Dialect, Problem, Severity, problems
from pyresched.reschedule.verdicts import Verdict, next_reschedule

__all__ = ["DEFAULT_POLICIES", "JobType", "ReschedulePolicy", "refusals"]


class JobType(Enum):
    """How long a job is meant to run, and what an end means."""

    SERVICE = "service"
    BATCH = "batch"
    SYSTEM = "system"
    SYSBATCH = "sysbatch"

    @classmethod
    def of(cls, name: "str | JobType") -> "JobType":
        """The type called *name*. Raises InputError for one that nobody knows."""
        known = [each.value for each in cls]
        if not isinstance(name, cls) and name not in known:
            raise InputError(f"job type {name!r} is unknown; {did_you_mean(str(name), known)}")
        return cls(name)


class ReschedulePolicy(Struct, frozen=True, kw_only=True):
    """When a failed run is tried again (Nomad's `reschedule` block, field by field).

    Durations are nanoseconds; the constructor takes them as Go duration text (`30s`, `1h30m`)
    too. Any values will do: `problems` reports what is wrong with them, nothing raises but text
    that is no duration (InputError).
    """

    attempts: int = 0
    interval: Duration = 0
    delay: Duration = 0
    delay_function: str = "constant"
    max_delay: Duration = 0
    unlimited: bool = False

    if TYPE_CHECKING:  # attributes are nanoseconds, whichever way they were given

        def __init__(
            self,
            *,
            attempts: int = 0,
            interval: Duration | str = 0,
            delay: Duration | str = 0,
            delay_function: str = "constant",
            max_delay: Duration | str = 0,
            unlimited: bool = False,
        ) -> None: ...

    def __post_init__(self) -> None:
        for name in ("interval", "delay", "max_delay"):
            written: object = getattr(self, name)
            if isinstance(written, str):
                force_setattr(self, name, parse_duration(written))

    def __str__(self) -> str:
        """One line, as Nomad prints it: `3 in 1h0m0s with constant delay, max_delay = 0s`."""
        limit = "unlimited"
        if not self.unlimited:
            limit = f"{self.attempts} in {format_duration(self.interval)}"
        longest = format_duration(self.max_delay)
        return f"{limit} with {self.delay_function} delay, max_delay = {longest}"

    @property
    def enabled(self) -> bool:
        """Whether it ever allows a reschedule."""
        return self.unlimited or self.attempts > 0

    @staticmethod
    def default(job_type: str | JobType) -> "ReschedulePolicy | None":
        """The policy of a job type that writes none. `system` and `sysbatch` have none.

        Raises InputError for an unknown type.
        """
        return DEFAULT_POLICIES[JobType.of(job_type)]

    def next(self, tracker: RescheduleTracker | None, *, failed_at: Instant) -> Verdict:
        """Whether and when a run that failed at *failed_at* with this history is tried again."""
        return next_reschedule(self, tracker, failed_at)

    def problems(
        self,
        *,
        min_delay: Duration | str = MIN_DELAY,
        dialect: Dialect | str = Dialect.NOMAD,
        job_type: str | None = None,
    ) -> tuple[Problem, ...]:
        """All that is wrong with it, errors and warnings, in a fixed order.

        *min_delay* moves the least `delay` and `max_delay`; the *dialect* decides which check
        of attempts against the interval makes errors. Raises InputError for a bad *min_delay* and
        an unknown *dialect*.
        """
        return problems(self, job_type=job_type, min_delay=min_delay, dialect=dialect)


DEFAULT_POLICIES: Final[Mapping[JobType, ReschedulePolicy | None]] = {
    JobType.SERVICE: ReschedulePolicy(
        delay=30 * NANOS, delay_function="exponential", max_delay=3600 * NANOS, unlimited=True
    ),
    JobType.BATCH: ReschedulePolicy(attempts=1, interval=24 * 3600 * NANOS, delay=5 * NANOS),
    JobType.SYSTEM: None,
    JobType.SYSBATCH: None,
}


def refusals(policy: object, *, min_delay: Duration, dialect: Dialect) -> Iterator[str]:
    """Why a job may not have *policy*, a sentence each: what is of another kind, else its errors.

    Takes anything, as nobody looked when it was made; None is no policy.
    """
    if policy is None:
        return
    if not isinstance(policy, ReschedulePolicy):
        yield f"{policy!r} is no ReschedulePolicy; give one, or None"
        return
    figures = {name: getattr(policy, name) for name in _FIGURES}
    wrong = [name for name, value in figures.items() if not _in_int64(value)]
    for name in wrong:
        right = "a whole number" if name == "attempts" else "whole ns, as of parse_duration()"
        yield f"{name} is {figures[name]!r}; write {right}, at most 2**63 - 1"
    if not wrong:
        for problem in problems(policy, min_delay=min_delay, dialect=dialect):
            if problem.severity is Severity.ERROR:
                yield problem.sentence


def _in_int64(value: object) -> bool:
    return isinstance(value, int) and INT64_MIN <= value <= INT64_MAX


_FIGURES: Final = ("attempts", "interval", "delay", "max_delay")
