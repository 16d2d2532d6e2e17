"""Why a job may not have a policy, whoever made it."""

import pytest

from pyresched.durations import INT64_MAX, INT64_MIN
from pyresched.reschedule import Dialect, ReschedulePolicy, refusals

HASTY = ReschedulePolicy(attempts=2, interval="1m", delay="1s")
ENDLESS = ReschedulePolicy(
    attempts=15, interval="26m30s", delay="30s", delay_function="exponential", max_delay="2m"
)


def told(policy: object, *, min_delay: int = 0, dialect: Dialect = Dialect.NOMAD) -> list[str]:
    """The sentences."""
    return list(refusals(policy, min_delay=min_delay, dialect=dialect))


@pytest.mark.parametrize(
    "policy",
    [
        None,
        ReschedulePolicy(),
        HASTY,
        ENDLESS,
        ReschedulePolicy(delay="1s", unlimited=True),
        ReschedulePolicy(interval=INT64_MIN, delay=INT64_MIN, max_delay=INT64_MAX),
    ],
)
def test_what_may_be_is_not_refused(policy: ReschedulePolicy | None) -> None:
    """No policy, a disabled one whatever it says, and what is only warned of."""
    assert told(policy) == []


@pytest.mark.parametrize(
    ("policy", "sentences"),
    [
        (3, ["3 is no ReschedulePolicy; give one, or None"]),
        (
            ReschedulePolicy(attempts=1.5),
            ["attempts is 1.5; write a whole number, at most 2**63 - 1"],
        ),
        (
            ReschedulePolicy(attempts=INT64_MAX + 1, interval="1h", delay="30s"),
            [f"attempts is {INT64_MAX + 1}; write a whole number, at most 2**63 - 1"],
        ),
        (
            ReschedulePolicy(interval=INT64_MIN - 1, delay=2.5, max_delay=None),
            [
                (
                    f"interval is {INT64_MIN - 1}; "
                    "write whole ns, as of parse_duration(), at most 2**63 - 1"
                ),
                "delay is 2.5; write whole ns, as of parse_duration(), at most 2**63 - 1",
                "max_delay is None; write whole ns, as of parse_duration(), at most 2**63 - 1",
            ],
        ),
        (
            ReschedulePolicy(attempts=10, interval="1h", delay="20m"),
            ["10 attempts need an interval of 3h20m; yours is 1h"],
        ),
    ],
)
def test_each_thing_wrong_is_a_sentence(policy: object, sentences: list[str]) -> None:
    """Kinds and ranges first, and only then what the checks say."""
    assert told(policy) == sentences


def test_who_is_strict_says_so() -> None:
    """By the least delay and the dialect."""
    assert told(HASTY, min_delay=5 * 10**9) == ["delay is 1s; write at least 5s"]
    (sentence,) = told(ENDLESS, dialect=Dialect.EXACT)
    assert sentence.endswith("so a job that always fails may never stop")
