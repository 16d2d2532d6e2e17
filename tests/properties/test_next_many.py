"""Many failed runs at once are told what each alone is told, whatever policies and histories say."""

from hypothesis import given
from hypothesis import strategies as st

from kit.policies import INT64, policies, valid_policies
from pyresched.model import (
    RescheduleEvent,
    ReschedulePolicy,
    RescheduleTracker,
    Verdict,
    VerdictReason,
)
from pyresched.reschedule import next_many, next_reschedule

LEAST, MOST = -(2**63), 2**63 - 1
# Small figures meet windows and caps, the ends of int64 whatever could wrap.
FIGURES = (
    st.integers(-50, 400)
    | st.sampled_from([LEAST, LEAST + 1, LEAST // 2, MOST // 2 + 1, MOST - 1, MOST])
    | INT64
)
TRACKERS = st.none() | st.builds(
    RescheduleTracker,
    events=st.lists(
        st.builds(
            RescheduleEvent,
            time=FIGURES,
            previous_run=st.just("r"),
            previous_node=st.just("n"),
            delay=FIGURES,
            forced=st.booleans(),
        ),
        max_size=6,
    ).map(tuple),
)
AT_THE_ENDS = st.builds(
    ReschedulePolicy,
    attempts=st.integers(-1, 6) | FIGURES,
    interval=FIGURES,
    delay=FIGURES,
    delay_function=st.sampled_from(["constant", "exponential", "fibonacci", "linear", ""]),
    max_delay=FIGURES,
    unlimited=st.booleans(),
)
POLICIES = st.none() | valid_policies() | policies() | AT_THE_ENDS


def fields(verdict: Verdict) -> tuple[object, ...]:
    """What columns say of it, too."""
    return (
        verdict.eligible,
        verdict.at,
        verdict.delay,
        verdict.attempted,
        verdict.attempts,
        verdict.reason,
    )


def rows(columns: dict[str, memoryview]) -> list[tuple[object, ...]]:
    """The same of each row."""
    reasons = tuple(VerdictReason)
    names = ("eligible", "at", "delay", "attempted", "attempts")
    by_row = zip(*(columns[name].tolist() for name in names), strict=True)
    return [
        (bool(eligible), *figures, reasons[reason])
        for (eligible, *figures), reason in zip(by_row, columns["reason"].tolist(), strict=True)
    ]


@given(st.lists(st.tuples(POLICIES, TRACKERS, FIGURES), max_size=8))
def test_many_runs_are_told_what_each_alone_is_told(
    runs: list[tuple[ReschedulePolicy | None, RescheduleTracker | None, int]],
) -> None:
    """A policy each; and the first one's for all, at one time for all."""
    answers = next_many(
        [policy for policy, _, _ in runs], [each for _, each, _ in runs], [at for _, _, at in runs]
    )
    assert rows(answers) == [fields(next_reschedule(*run)) for run in runs]
    if runs:
        policy, _, at = runs[0]
        answers = next_many(policy, [each for _, each, _ in runs], at)
        assert rows(answers) == [fields(next_reschedule(policy, each, at)) for _, each, _ in runs]
