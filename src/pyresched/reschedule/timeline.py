"""What becomes of a job that fails again and again: run by run, and whether it ever gives up.

Follows the verdicts themselves; each run lasts equally long and each replacement starts when it
is due, so a queue makes it later, never earlier. Integer nanoseconds that saturate.
"""

from collections import deque
from collections.abc import Iterator
from enum import Enum
from itertools import count, islice
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from pyresched._core import RescheduleEvent, RescheduleTracker
from pyresched.durations import INT64_MAX, parse_duration, saturated
from pyresched.ids import Duration, Instant, NodeId, RunId
from pyresched.reschedule.history import extended
from pyresched.reschedule.verdicts import Verdict, next_delay, next_reschedule

if TYPE_CHECKING:
    from pyresched.reschedule.policy import ReschedulePolicy

__all__ = ["Outlook", "Prospect", "Step", "outlook", "timeline"]

_SHOWN: Final = 100
"""Steps of a timeline that nothing else ends."""
_FOLLOWED: Final = 200_000
"""Failures after which `outlook` stops looking, and a timeline that only time ends."""


class Step(Struct, frozen=True, kw_only=True):
    """Run number `number`, from 1: it started, failed, and the verdict says what follows.

    Instants are ns from the start of the first run.
    """

    number: int
    started: Instant
    failed: Instant
    verdict: Verdict


def timeline(
    policy: "ReschedulePolicy | None",
    *,
    runtime: Duration | str = 0,
    failures: int | None = None,
    until: Instant | str | None = None,
) -> list[Step]:
    """The runs of a job each of which fails *runtime* after its start, ns or duration text.

    The list ends when nothing follows any more, after *failures* runs, with the last run that
    starts by *until* (but after 200,000 runs at the latest, since a delay may be 0), or, if
    neither is given, after 100 runs.
    """
    runtime = parse_duration(runtime)
    until = None if until is None else parse_duration(until)
    most = failures
    if most is None:
        most = _SHOWN if until is None else _FOLLOWED
    found: list[Step] = []
    for step in islice(_runs(policy, max(runtime, 0)), max(most, 0)):
        if until is not None and step.started > until:
            break
        found.append(step)
    return found


def _runs(policy: "ReschedulePolicy | None", runtime: Duration) -> Iterator[Step]:
    """One run after the other, while another follows and time goes on."""
    tracker: RescheduleTracker | None = None
    started: Instant = 0
    for number in count(1):
        failed = saturated(started + runtime)
        verdict = next_reschedule(policy, tracker, failed)
        yield Step(number=number, started=started, failed=failed, verdict=verdict)
        if not verdict.eligible or verdict.at >= INT64_MAX:
            return
        started = max(verdict.at, failed)  # a negative delay never leads back
        tracker = extended(
            tracker,
            policy,
            now=started,
            previous_run=RunId(f"run-{number}"),
            previous_node=NodeId(""),
            delay=verdict.delay,
        )


class Prospect(Enum):
    """Whether a job that always fails gives up."""

    GIVES_UP = "gives_up"
    NEVER = "never"
    UNKNOWN = "unknown"  # not within the 200,000 failures, or the 292 years, that are followed


class Outlook(Struct, frozen=True, kw_only=True):
    """How a job that always fails ends: after `runs` runs, `after` ns from its first start.

    `last` is the verdict on the last run that was looked at; `runs` and `after` are None where
    there is no end, or none is known.
    """

    prospect: Prospect
    last: Verdict
    runs: int | None = None
    after: Duration | None = None


def outlook(policy: "ReschedulePolicy | None", *, runtime: Duration | str = 0) -> Outlook:
    """Whether, and when, a job gives up whose runs all fail *runtime* (ns or text) after their start.

    Each replacement starts when it is due; one that starts later leaves the window emptier, so
    that the limit may then never be reached.
    """
    runtime = max(parse_duration(runtime), 0)
    first = next_reschedule(policy, None, runtime)
    if policy is None or not first.eligible:
        return Outlook(prospect=Prospect.GIVES_UP, last=first, runs=1, after=runtime)
    if policy.attempts <= 0:
        return Outlook(prospect=Prospect.NEVER, last=first)
    return _followed(policy, runtime)


def _followed(policy: "ReschedulePolicy", runtime: Duration) -> Outlook:
    """The outlook of a policy that counts, in constant time for each failure.

    A delay follows from the two newest events, so the delays run in a circle once such a pair
    comes back; when the window has lain in the circle for one whole turn, nothing new comes.
    """
    newest: deque[RescheduleEvent] = deque(maxlen=2)  # of those that a history would keep
    window: deque[RescheduleEvent] = deque()  # those that still count
    seen: dict[tuple[Duration, ...], Instant] = {}
    settled: Instant | None = None  # from when on nothing new comes
    failed = runtime
    for runs in range(1, _FOLLOWED + 1):
        while window and failed - window[0].time >= policy.interval:
            window.popleft()
        delay = next_delay(policy, newest, failed_at=failed)
        if newest and (len(window) >= policy.attempts or delay >= policy.interval):
            last = _verdict(policy, newest, window, failed)
            return Outlook(prospect=Prospect.GIVES_UP, last=last, runs=runs, after=failed)
        if settled is None:
            before = seen.setdefault(tuple(event.delay for event in newest), failed)
            if before != failed:
                settled = failed + policy.interval
        elif failed > settled:
            last = _verdict(policy, newest, window, failed)
            return Outlook(prospect=Prospect.NEVER, last=last)
        placed = max(failed + delay, failed)
        if placed + runtime > INT64_MAX:
            break
        while newest and placed - newest[0].time > policy.interval:
            newest.popleft()
        event = RescheduleEvent(time=placed, previous_run="", previous_node="", delay=delay)
        newest.append(event)
        window.append(event)
        failed = placed + runtime
    return Outlook(prospect=Prospect.UNKNOWN, last=_verdict(policy, newest, window, failed))


def _verdict(
    policy: "ReschedulePolicy",
    newest: deque[RescheduleEvent],
    window: deque[RescheduleEvent],
    failed_at: Instant,
) -> Verdict:
    """The policy's own answer; both end with the same event, so the longer one holds the other."""
    events = tuple(window if len(window) > len(newest) else newest)
    return next_reschedule(policy, RescheduleTracker(events=events), failed_at)
