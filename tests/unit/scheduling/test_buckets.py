"""Token buckets: what fills them, what empties them, and nothing else."""

import pytest

from pyresched.scheduling.buckets import Bucket, Rate, next_token, rate_of, taken, tokens

SECOND = 10**9
TWO_A_SECOND = Rate(2 * SECOND, 5)


def test_a_bucket_starts_full_and_fills_at_its_rate() -> None:
    """As of each second: what was taken comes back, two a second, up to the burst."""
    left = taken(None, TWO_A_SECOND, 0, 5)
    held = [tokens(left, TWO_A_SECOND, at * SECOND // 2) for at in (0, 1, 2, 3, 9)]
    assert tokens(None, TWO_A_SECOND, 0) == 5
    assert held == [0, 1, 2, 3, 5]


def test_a_bucket_of_which_nothing_is_taken_stays_as_it_is_written() -> None:
    """Until it is full; then it is not written at all."""
    left = taken(None, TWO_A_SECOND, 0, 2)
    assert taken(left, TWO_A_SECOND, SECOND - 1, 0) is left
    assert taken(left, TWO_A_SECOND, SECOND, 0) is None
    assert taken(None, TWO_A_SECOND, SECOND, 0) is None


def test_a_clock_that_goes_back_fills_nothing_and_nothing_twice() -> None:
    """Time that has filled the bucket once does not count again."""
    left = taken(None, TWO_A_SECOND, 10 * SECOND, 4)
    assert tokens(left, TWO_A_SECOND, 0) == 1
    less = taken(left, TWO_A_SECOND, 0, 1)
    assert tokens(less, TWO_A_SECOND, 10 * SECOND) == 0
    assert tokens(less, TWO_A_SECOND, 11 * SECOND) == 2


def test_an_overdrawn_bucket_fills_from_below() -> None:
    """A gang of victims may take more than there is."""
    left = taken(None, TWO_A_SECOND, 0, 8)
    assert tokens(left, TWO_A_SECOND, 0) == -3
    assert tokens(left, TWO_A_SECOND, 2 * SECOND) == 1


def test_a_rate_that_was_changed_fills_what_is_there() -> None:
    """A smaller burst keeps no more than it may."""
    left = taken(None, TWO_A_SECOND, 0, 1)
    assert tokens(left, Rate(2 * SECOND, 3), 0) == 3
    assert tokens(left, Rate(1, 9), SECOND) == 4


@pytest.mark.parametrize(
    ("rate", "nanos"),
    [(0.1, 10**8), (1 / 3, 333_333_333), (1e-9, 1), (1e9, 10**18), (7, 7 * 10**9)],
)
def test_a_rate_is_taken_as_it_is_written(rate, nanos) -> None:
    """In billionths of a token a second, rounded to the nearest."""
    assert rate_of(rate, 3) == Rate(nanos, 3)


def test_no_rate_is_no_limit() -> None:
    """Nothing is counted then."""
    assert rate_of(None, None) is None


@pytest.mark.parametrize("count", [1, 3, 5, 6])
@pytest.mark.parametrize("rate", [Rate(2 * SECOND, 5), Rate(333_333_333, 5), Rate(7, 5)])
def test_the_next_token_is_there_when_it_is_told_and_not_before(count, rate) -> None:
    """To the nanosecond."""
    left = taken(None, rate, 50, count)
    at = next_token(left, rate, 50)
    assert at is not None
    held = tokens(left, rate, 50)
    assert (tokens(left, rate, at - 1), tokens(left, rate, at)) == (held, held + 1)


def test_a_full_bucket_waits_for_nothing() -> None:
    """There will never be more in it."""
    assert next_token(None, TWO_A_SECOND, 0) is None
    assert next_token(Bucket(nanos=5 * SECOND, part=0, at=0), TWO_A_SECOND, 0) is None
