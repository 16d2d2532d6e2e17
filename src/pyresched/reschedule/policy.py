"""Values of rescheduling: what was asked for, and what follows for a run that failed.

What happened so far is a native `RescheduleTracker`. Times and delays are integer nanoseconds.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from msgspec import Struct

from pyresched.durations import NANOS
from pyresched.ids import Duration, Instant

__all__ = [
    "DEFAULT_POLICIES",
    "JobType",
    "ReschedulePolicy",
    "Verdict",
    "VerdictReason",
]


class JobType(Enum):
    """How long a job is meant to run, and what an end means."""

    SERVICE = "service"
    BATCH = "batch"
    SYSTEM = "system"
    SYSBATCH = "sysbatch"


class ReschedulePolicy(Struct, frozen=True, kw_only=True):
    """When a failed run is tried again (Nomad's `reschedule` block, field by field).

    Takes any values; `pyresched.reschedule.problems` reports what is wrong with them.
    """

    attempts: int = 0
    interval: Duration = 0
    delay: Duration = 0
    delay_function: str = "constant"
    max_delay: Duration = 0
    unlimited: bool = False

    @property
    def enabled(self) -> bool:
        """Whether it ever allows a reschedule."""
        return self.unlimited or self.attempts > 0

    @staticmethod
    def default(job_type: str) -> "ReschedulePolicy | None":
        """The policy of a job type that writes none. `system` and `sysbatch` have none."""
        return DEFAULT_POLICIES[JobType(job_type)]


DEFAULT_POLICIES: Final[Mapping[JobType, ReschedulePolicy | None]] = {
    JobType.SERVICE: ReschedulePolicy(
        delay=30 * NANOS, delay_function="exponential", max_delay=3600 * NANOS, unlimited=True
    ),
    JobType.BATCH: ReschedulePolicy(attempts=1, interval=24 * 3600 * NANOS, delay=5 * NANOS),
    JobType.SYSTEM: None,
    JobType.SYSBATCH: None,
}


class VerdictReason(Enum):
    """Why a failed run is or is not tried again."""

    ELIGIBLE = "eligible"
    DISABLED = "disabled"
    NO_POLICY = "no_policy"
    EXHAUSTED = "exhausted"
    DELAY_PAST_INTERVAL = "delay_past_interval"
    NOT_APPLICABLE = "not_applicable"  # to system and sysbatch
    PAST_PROGRESS_DEADLINE = "past_progress_deadline"  # of the deployment


class Verdict(Struct, frozen=True, kw_only=True):
    """Whether and when a failed run is tried again.

    `at` is the failure time plus `delay`, also where nothing follows; `attempted` of
    `attempts` reschedules lie in the window that ends with the failure.
    """

    eligible: bool
    at: Instant
    delay: Duration
    attempted: int
    attempts: int
    reason: VerdictReason
