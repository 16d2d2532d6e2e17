"""Policies and histories for property tests, in a world where a nanosecond is long."""

from collections.abc import Iterable

from hypothesis import strategies as st

from pyresched.model import NodeId, RescheduleEvent, ReschedulePolicy, RescheduleTracker, RunId
from pyresched.reschedule import extended, next_reschedule

__all__ = ["INT64", "always_failing", "history", "policies", "valid_policies"]

INT64 = st.integers(-(2**63), 2**63 - 1)
FUNCTIONS = st.sampled_from(["constant", "exponential", "fibonacci"])


@st.composite
def valid_policies(draw: st.DrawFn, *, limited: bool | None = None) -> ReschedulePolicy:
    """Policies whose fields go together; small figures, so that windows and caps are met."""
    delay = draw(st.integers(1, 40))
    unlimited = draw(st.booleans()) if limited is None else not limited
    return ReschedulePolicy(
        attempts=0 if unlimited else draw(st.integers(1, 8)),
        interval=0 if unlimited else draw(st.integers(1, 400)),
        delay=delay,
        delay_function=draw(FUNCTIONS),
        max_delay=delay + draw(st.integers(0, 200)),
        unlimited=unlimited,
    )


def policies() -> st.SearchStrategy[ReschedulePolicy]:
    """Any policies, with any figures that int64 holds."""
    return st.builds(
        ReschedulePolicy,
        attempts=INT64,
        interval=INT64,
        delay=INT64,
        delay_function=st.sampled_from(["constant", "exponential", "fibonacci", "", "linear"]),
        max_delay=INT64,
        unlimited=st.booleans(),
    )


def history(*events: tuple[int, int]) -> RescheduleTracker:
    """A tracker of (time, delay) pairs, oldest first."""
    return RescheduleTracker(
        events=tuple(
            RescheduleEvent(
                time=time, previous_run=RunId(f"r{i}"), previous_node=NodeId("n"), delay=delay
            )
            for i, (time, delay) in enumerate(events)
        )
    )


def always_failing(
    policy: ReschedulePolicy, *, runs: Iterable[int] = (), most: int = 100
) -> list[int]:
    """Delays of a job whose runs last *runs* (then 0) and that is replaced when due, until it stops.

    Gives up after *most* reschedules.
    """
    lengths = iter(runs)
    tracker, now, delays = None, 0, []
    while len(delays) < most:
        failed_at = now + next(lengths, 0)
        verdict = next_reschedule(policy, tracker, failed_at)
        if not verdict.eligible:
            break
        now = verdict.at
        tracker = extended(
            tracker,
            policy,
            now=now,
            previous_run=RunId("r"),
            previous_node=NodeId("n"),
            delay=verdict.delay,
        )
        delays.append(verdict.delay)
    return delays
