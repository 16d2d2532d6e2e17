"""Restarts within a run: the same run's process is started again on its node.

Owns the policy and its state machine (Nomad's `restart` block). Differs by rule
`restart-window`: the window slides, so that no interval of the policy's length ever holds more
than `attempts` restarts. Integer nanoseconds that saturate; random bits come in as arguments.
"""

from collections.abc import Iterator
from enum import Enum
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import force_setattr

from pyresched.durations import NANOS, parse_duration, saturated, short_duration
from pyresched.errors import did_you_mean
from pyresched.ids import Duration, Instant
from pyresched.reschedule.policy import JobType
from pyresched.reschedule.validation import Problem, ProblemCode, Severity, needs_interval

__all__ = [
    "Exit",
    "RestartAction",
    "RestartPolicy",
    "RestartVerdict",
    "next_restart",
    "restart_bits",
    "restarts_on_success",
]

MODES: Final = ("fail", "delay")
_MIN_INTERVAL: Final = 5 * NANOS
_JITTER: Final = 4  # up to a quarter of the delay on top
_BITS: Final = 64
_MASK: Final = (1 << _BITS) - 1


class RestartPolicy(Struct, frozen=True, kw_only=True):
    """How often, within `interval`, a run's process is started again after `delay`.

    When `attempts` are used up, mode `fail` ends the run as failed and mode `delay` waits until
    the window lets one go. Durations are nanoseconds; the constructor takes Go duration text
    too, and any values otherwise: `problems` reports what is wrong.
    """

    attempts: int = 0
    interval: Duration = 0
    delay: Duration = 0
    mode: str = "fail"

    if TYPE_CHECKING:  # attributes are nanoseconds, whichever way they were given

        def __init__(
            self,
            *,
            attempts: int = 0,
            interval: Duration | str = 0,
            delay: Duration | str = 0,
            mode: str = "fail",
        ) -> None: ...

    def __post_init__(self) -> None:
        for name in ("interval", "delay"):
            written: object = getattr(self, name)
            if isinstance(written, str):
                force_setattr(self, name, parse_duration(written))

    def __str__(self) -> str:
        """One line: `2 in 30m with 15s delay, mode = fail`."""
        within, delay = short_duration(self.interval), short_duration(self.delay)
        return f"{self.attempts} in {within} with {delay} delay, mode = {self.mode}"

    @staticmethod
    def default(job_type: str | JobType) -> "RestartPolicy":
        """The policy of a job type that writes none. Raises InputError for an unknown type."""
        if JobType.of(job_type) in (JobType.SERVICE, JobType.SYSTEM):
            return _LASTING
        return _ENDING

    def problems(self) -> tuple[Problem, ...]:
        """All that is wrong with it, in a fixed order; each is an error."""
        return tuple(_problems(self))


_LASTING: Final = RestartPolicy(attempts=2, interval="30m", delay="15s")
_ENDING: Final = RestartPolicy(attempts=3, interval="24h", delay="15s")


class Exit(Enum):
    """How a process came to its end."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"  # its own failure, or that of its health check
    UNRECOVERABLE = "unrecoverable"  # it could not be started, and never will be
    ASKED = "asked"  # somebody asks for a restart: no policy has a say


class RestartAction(Enum):
    """What follows."""

    RESTART = "restart"
    FAIL = "fail"  # the run has failed
    DONE = "done"  # the run has succeeded


class RestartVerdict(Struct, frozen=True, kw_only=True):
    """What follows the end of a process.

    `at` is when it starts again, `wait` ns after its end; both mean nothing where it does not.
    `history` are the instants of restarts that still count then, this one included: hand it in
    next time. `attempted` of `attempts` are used with this one.
    """

    action: RestartAction
    at: Instant
    wait: Duration
    history: tuple[Instant, ...]
    attempted: int
    attempts: int


def restart_bits(seed: int, run_id: str, number: int) -> int:
    """64 bits for `next_restart` that *seed*, the run and the *number* of its restart decide.

    The same on any machine: BLAKE2 of the three.
    """
    text = f"restart\x1f{seed}\x1f{run_id}\x1f{number}"
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())


def restarts_on_success(job_type: str | JobType, *, hook: str = "", sidecar: bool = False) -> bool:
    """Whether a task that ends well is started again: *hook* is its place in the life of a run.

    Main tasks (no hook) of service and system jobs are; prestart and poststart tasks if they are
    sidecars; poststop tasks never.
    """
    if hook == "poststop":
        return False
    if hook:
        return sidecar
    return JobType.of(job_type) in (JobType.SERVICE, JobType.SYSTEM)


def next_restart(
    policy: RestartPolicy | None,
    history: tuple[Instant, ...],
    ended: Exit,
    *,
    now: Instant,
    on_success: bool,
    bits: int = 0,
    least: Duration = 1,
) -> RestartVerdict:
    """What follows when a process ends at *now* with the restarts *history*, oldest first.

    *on_success* says whether one that ends well is started again (`restarts_on_success`). No
    policy is no restart, except for one that is asked for. *bits*, 64 random ones, add up to a
    quarter of the delay; *least*, above 0, is the shortest wait, so that virtual time goes on.
    """
    attempts = 0 if policy is None else max(policy.attempts, 0)
    if ended is Exit.ASKED:
        return _again(history, now, 0, used=len(history), attempts=attempts)
    if ended is Exit.SUCCEEDED and not on_success:
        return _over(RestartAction.DONE, history, now, attempts)
    if policy is None or attempts == 0 or ended is Exit.UNRECOVERABLE:
        return _over(RestartAction.FAIL, history, now, attempts)
    delay = max(policy.delay, 0)
    wait = max(delay + (delay * (bits & _MASK) >> _BITS) // _JITTER, least)
    at = saturated(now + wait)
    counted = tuple(each for each in history if at - each < policy.interval)
    if len(counted) >= attempts:
        if policy.mode != "delay":
            return _over(RestartAction.FAIL, history, now, attempts)
        at = saturated(max(at, counted[-attempts] + policy.interval))
        counted = tuple(each for each in counted if at - each < policy.interval)
    return _again((*counted, at), now, at - now, used=len(counted) + 1, attempts=attempts)


def _again(
    history: tuple[Instant, ...], now: Instant, wait: Duration, *, used: int, attempts: int
) -> RestartVerdict:
    return RestartVerdict(
        action=RestartAction.RESTART,
        at=saturated(now + wait),
        wait=wait,
        history=history,
        attempted=used,
        attempts=attempts,
    )


def _over(
    action: RestartAction, history: tuple[Instant, ...], now: Instant, attempts: int
) -> RestartVerdict:
    return RestartVerdict(
        action=action, at=now, wait=0, history=history, attempted=len(history), attempts=attempts
    )


def _problems(policy: RestartPolicy) -> Iterator[Problem]:
    if policy.mode not in MODES:
        near = did_you_mean(policy.mode, MODES)
        yield _error(ProblemCode.UNKNOWN_MODE, f"mode {policy.mode!r} is unknown; {near}")
    if policy.attempts == 0 and policy.mode != "fail":
        sentence = "attempts = 0 never restarts, so mode must be fail; write mode, or attempts"
        yield _error(ProblemCode.ZERO_ATTEMPTS_AMBIGUOUS, sentence)
    if policy.interval < _MIN_INTERVAL:
        short, least = short_duration(policy.interval), short_duration(_MIN_INTERVAL)
        sentence = f"interval is {short}; write at least {least}"
        yield _error(ProblemCode.INTERVAL_BELOW_MINIMUM, sentence)
    needed = saturated(policy.attempts * policy.delay)
    if policy.attempts > 0 and policy.delay > 0 and needed > policy.interval:
        sentence = (
            f"{needs_interval(policy.attempts, needed)}; yours is {short_duration(policy.interval)}"
        )
        yield Problem(
            code=ProblemCode.ATTEMPTS_DO_NOT_FIT_INTERVAL,
            severity=Severity.ERROR,
            sentence=sentence,
            possible_attempts=max(policy.interval, 0) // policy.delay,
            recommended_interval=needed,
        )


def _error(code: ProblemCode, sentence: str) -> Problem:
    return Problem(code=code, severity=Severity.ERROR, sentence=sentence)
