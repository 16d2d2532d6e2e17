"""The reference's answers on restarts in place, from its specification alone (8)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kit.reschedule_oracle import S

__all__ = ["Restart", "classes", "restart_codes"]

MIN_INTERVAL = 5 * S
DELAYS, NEXT, AT_ONCE = "restarting", "restarting_next_interval", "restarting_immediately"
FAILED, ENDED = "not_restarting", "terminated"


@dataclass(frozen=True)
class Restart:
    """A restart policy."""

    attempts: int
    interval: int
    delay: int
    mode: str

    @classmethod
    def of(cls, row: dict[str, Any]) -> "Restart":
        """The policy of a row."""
        return cls(row["attempts"], row["interval_ns"], row["delay_ns"], row["mode"])


def restart_codes(policy: Restart) -> list[str]:
    """What is wrong, in order of evaluation."""
    rules = [
        (policy.mode not in ("fail", "delay"), "unknown_mode"),
        (policy.attempts == 0 and policy.mode != "fail", "zero_attempts_ambiguous"),
        (policy.interval < MIN_INTERVAL, "interval_below_minimum"),
        (policy.attempts * policy.delay > policy.interval, "attempts_do_not_fit_interval"),
    ]
    return [code for wrong, code in rules if wrong]


def classes(
    policy: Restart, exits: Sequence[int | str], *, job_type: str, lifecycle: dict[str, Any] | None
) -> list[str]:
    """What follows each exit code or signal, all at the start of the window."""
    again = _on_success(job_type, lifecycle)
    found, count = [], 0
    for end in exits:
        succeeded = end == 0
        if end == "restart_signal":
            found.append(AT_ONCE)
            continue
        if policy.attempts == 0:
            found.append(ENDED if succeeded and not again else FAILED)
            continue
        count += 1
        if end == "start_error_unrecoverable":
            found.append(FAILED)
        elif succeeded and not again:
            found.append(ENDED)
        elif count > policy.attempts:
            found.append(NEXT if policy.mode == "delay" else FAILED)
        else:
            found.append(DELAYS)
    return found


def _on_success(job_type: str, lifecycle: dict[str, Any] | None) -> bool:
    """Whether a task that ended well starts again."""
    if lifecycle is not None:
        return lifecycle["hook"] != "poststop" and bool(lifecycle["sidecar"])
    return job_type in ("service", "system")
