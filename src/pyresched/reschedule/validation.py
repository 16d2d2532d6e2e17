"""What is wrong with a reschedule policy, as typed problems with a sentence for people.

Reported, never raised: an engine takes every policy as it is. Codes and their order are those
of docs/reschedule.md.
"""

from collections.abc import Iterator, Mapping
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from pyresched.durations import NANOS, parse_duration, short_duration
from pyresched.errors import InputError, did_you_mean
from pyresched.ids import Duration
from pyresched.reschedule.fit import DELAY_FUNCTIONS, exact_fit, nomad_fit

if TYPE_CHECKING:
    from pyresched.reschedule.policy import ReschedulePolicy

__all__ = ["MIN_DELAY", "Dialect", "Problem", "ProblemCode", "Severity", "problems"]

MIN_DELAY: Final = "1s"
_MIN_INTERVAL: Final = 15 * NANOS
# Under this, a job that always fails and may for ever is a burden on all others.
_LOW_DELAY: Final = 5 * NANOS


class Dialect(StrEnum):
    """Who decides whether attempts fit their interval: Nomad's check or the true figure."""

    NOMAD = "nomad"
    EXACT = "exact"


class Severity(Enum):
    """An error makes a policy invalid, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


class ProblemCode(Enum):
    """The kinds of problem. Tests and programs use these, never a sentence."""

    ATTEMPTS_NEED_INTERVAL = "attempts_need_interval"
    ATTEMPTS_AND_UNLIMITED_AMBIGUOUS = "attempts_and_unlimited_ambiguous"
    DELAY_BELOW_MINIMUM = "delay_below_minimum"
    UNKNOWN_DELAY_FUNCTION = "unknown_delay_function"
    MAX_DELAY_BELOW_MINIMUM = "max_delay_below_minimum"
    MAX_DELAY_BELOW_DELAY = "max_delay_below_delay"
    INTERVAL_BELOW_MINIMUM = "interval_below_minimum"
    ATTEMPTS_DO_NOT_FIT_INTERVAL = "attempts_do_not_fit_interval"
    ATTEMPTS_NEVER_EXHAUSTED = "attempts_never_exhausted"
    LOW_DELAY_WITH_UNLIMITED = "low_delay_with_unlimited"
    SYSTEM_OR_SYSBATCH_MUST_NOT_HAVE_POLICY = "system_or_sysbatch_must_not_have_policy"
    POLICY_REQUIRED = "policy_required"
    UNKNOWN_MODE = "unknown_mode"  # of a restart policy, as the next one
    ZERO_ATTEMPTS_AMBIGUOUS = "zero_attempts_ambiguous"


class Problem(Struct, frozen=True, kw_only=True):
    """One thing wrong with a policy.

    Where attempts and interval do not go together, `possible_attempts` and
    `recommended_interval` (ns, unrounded) are the figures of the check that says so.
    """

    code: ProblemCode
    severity: Severity
    sentence: str
    possible_attempts: int | None = None
    recommended_interval: Duration | None = None


def problems(
    policy: "ReschedulePolicy | None",
    *,
    job_type: str | None = None,
    min_delay: str | Duration = MIN_DELAY,
    dialect: str = Dialect.NOMAD,
    origins: Mapping[str, str] | None = None,
) -> tuple[Problem, ...]:
    """All that is wrong with *policy*, in a fixed order; a disabled one has no problem.

    With *job_type* it is also told whether such a job has a policy at all. *min_delay* moves
    the least `delay` and `max_delay` together. *origins* says where fields come from, for
    sentences that need it. Raises InputError for a bad *min_delay* and an unknown *dialect*.
    """
    checked = _dialect(dialect)
    if job_type in ("system", "sysbatch"):
        return tuple(_not_for(job_type, policy))
    if policy is None:
        return tuple(_required(job_type))
    if not policy.enabled:
        return ()
    found = list(_of_fields(policy, origins or {}, least=parse_duration(min_delay)))
    if policy.unlimited:
        found.extend(_of_haste(policy, found))
        return tuple(found)
    blocked = any(problem.code in _BLOCKS_FIT for problem in found)
    if policy.interval < _MIN_INTERVAL:
        text = f"interval is {_text(policy.interval)}; write at least {_text(_MIN_INTERVAL)}"
        found.append(_error(ProblemCode.INTERVAL_BELOW_MINIMUM, text))
    if not blocked:
        found.extend(_of_fit(policy, checked))
    return tuple(found)


_BLOCKS_FIT: Final = frozenset(
    {
        ProblemCode.DELAY_BELOW_MINIMUM,
        ProblemCode.UNKNOWN_DELAY_FUNCTION,
        ProblemCode.MAX_DELAY_BELOW_MINIMUM,
        ProblemCode.MAX_DELAY_BELOW_DELAY,
    }
)


def _dialect(name: str | Dialect) -> Dialect:
    known = [each.value for each in Dialect]
    if not isinstance(name, Dialect) and name not in known:
        raise InputError(f"dialect {name!r} is unknown; {did_you_mean(name, known)}")
    return Dialect(name)


def _error(code: ProblemCode, sentence: str) -> Problem:
    return Problem(code=code, severity=Severity.ERROR, sentence=sentence)


def _text(nanoseconds: int) -> str:
    return short_duration(nanoseconds)


def _origin(origins: Mapping[str, str], name: str) -> str:
    return f" ({origins[name]})" if name in origins else ""


def _not_for(job_type: str, policy: "ReschedulePolicy | None") -> Iterator[Problem]:
    if policy is not None:
        sentence = f"a {job_type} job is never rescheduled; drop the reschedule block"
        yield _error(ProblemCode.SYSTEM_OR_SYSBATCH_MUST_NOT_HAVE_POLICY, sentence)


def _required(job_type: str | None) -> Iterator[Problem]:
    if job_type is not None:
        sentence = f"a {job_type} job needs a reschedule policy; merge it with its defaults"
        yield _error(ProblemCode.POLICY_REQUIRED, sentence)


def _of_fields(
    policy: "ReschedulePolicy", origins: Mapping[str, str], *, least: Duration
) -> Iterator[Problem]:
    """The problems of single fields and of two that exclude each other."""
    if policy.attempts > 0 and policy.interval <= 0:
        sentence = f"attempts = {policy.attempts} need an interval; write at least 15s"
        yield _error(ProblemCode.ATTEMPTS_NEED_INTERVAL, sentence)
    if policy.attempts > 0 and policy.unlimited:
        attempts, unlimited = (_origin(origins, name) for name in ("attempts", "unlimited"))
        sentence = (
            f"attempts = {policy.attempts}{attempts} beside unlimited = true{unlimited}; "
            "drop attempts, or write unlimited = false"
        )
        yield _error(ProblemCode.ATTEMPTS_AND_UNLIMITED_AMBIGUOUS, sentence)
    if policy.delay < least:
        sentence = f"delay is {_text(policy.delay)}; write at least {_text(least)}"
        yield _error(ProblemCode.DELAY_BELOW_MINIMUM, sentence)
    if policy.delay_function not in DELAY_FUNCTIONS:
        near = did_you_mean(policy.delay_function, DELAY_FUNCTIONS)
        sentence = f"delay_function {policy.delay_function!r} is unknown; {near}"
        yield _error(ProblemCode.UNKNOWN_DELAY_FUNCTION, sentence)
    if policy.delay_function == "constant":
        return
    longest = _text(policy.max_delay)
    if policy.max_delay < least:
        sentence = f"max_delay is {longest}; write at least {_text(least)}"
        yield _error(ProblemCode.MAX_DELAY_BELOW_MINIMUM, sentence)
    if policy.max_delay < policy.delay:
        delay = _text(policy.delay)
        sentence = f"max_delay {longest} is below delay {delay}; write at least {delay}"
        yield _error(ProblemCode.MAX_DELAY_BELOW_DELAY, sentence)


def _of_haste(policy: "ReschedulePolicy", found: list[Problem]) -> Iterator[Problem]:
    """The warning about a job that may fail for ever, every few moments."""
    too_low = any(problem.code is ProblemCode.DELAY_BELOW_MINIMUM for problem in found)
    if policy.delay < _LOW_DELAY and not too_low:
        sentence = (
            f"delay is {_text(policy.delay)} with unlimited = true; "
            f"write at least {_text(_LOW_DELAY)}, or limit the attempts"
        )
        yield Problem(
            code=ProblemCode.LOW_DELAY_WITH_UNLIMITED,
            severity=Severity.WARNING,
            sentence=sentence,
        )


def _of_fit(policy: "ReschedulePolicy", dialect: Dialect) -> Iterator[Problem]:
    """Whether the attempts fit the interval, by the check that *dialect* trusts."""
    nomad, exact = nomad_fit(policy), exact_fit(policy)
    # What is recommended to people passes both checks and the least interval.
    enough = _rounded_up(max(nomad.sufficient, exact.sufficient, _MIN_INTERVAL))
    wanted = needs_interval(policy.attempts, enough)
    if not nomad.fits:
        yield Problem(
            code=ProblemCode.ATTEMPTS_DO_NOT_FIT_INTERVAL,
            severity=Severity.ERROR if dialect is Dialect.NOMAD else Severity.WARNING,
            sentence=f"{wanted}; yours is {_text(policy.interval)}",
            possible_attempts=nomad.possible,
            recommended_interval=nomad.interval,
        )
    if not exact.fits and (nomad.fits or dialect is Dialect.EXACT):
        yield Problem(
            code=ProblemCode.ATTEMPTS_NEVER_EXHAUSTED,
            severity=Severity.ERROR if dialect is Dialect.EXACT else Severity.WARNING,
            sentence=(
                f"{wanted} to be used up; yours is {_text(policy.interval)}, "
                "so a job that always fails may never stop"
            ),
            possible_attempts=exact.possible,
            recommended_interval=exact.interval,
        )


def needs_interval(attempts: int, interval: Duration) -> str:
    """`3 attempts need an interval of 1h`, the beginning of a sentence."""
    who = "1 attempt needs" if attempts == 1 else f"{attempts} attempts need"
    return f"{who} an interval of {_text(interval)}"


def _rounded_up(nanoseconds: int) -> int:
    """*nanoseconds* as whole seconds, up; the longest duration stays itself."""
    whole = -(-nanoseconds // NANOS) * NANOS
    return whole if whole <= 2**63 - 1 else nanoseconds
