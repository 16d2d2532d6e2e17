"""Samples over time: bounded in number, never out of order."""

from hypothesis import given
from hypothesis import strategies as st

from pyresched.report.records import Sample
from pyresched.simulator.samples import Samples


def sample(at: int) -> Sample:
    """The state at *at*, where as many jobs are done."""
    return Sample(at=at, allocated={}, capacity={}, queued={}, running=0, done=at)


moments_of_time = st.integers(0, 2000).map(lambda second: 5 + second * 10**9 // 3)


@given(st.sets(moments_of_time, max_size=60), st.integers(4, 8))
def test_samples_are_few_in_order_and_true(moments: set[int], most: int) -> None:
    """Each is a state that was offered, at its time; first and last are kept."""
    samples = Samples(5, most=most)
    asked = 0
    for at in sorted(moments):

        def state(now: int = at) -> Sample:
            nonlocal asked
            asked += 1
            return sample(now)

        samples.offer(at, state)
    last = max(moments, default=5) + 1
    kept = samples.kept(sample(last))
    times = [each.at for each in kept]
    assert times == sorted(set(times))
    assert set(times) <= moments | {last}
    assert len(times) <= most + 1
    assert times[-1] == last
    assert times[0] == min(moments, default=last)
    assert asked <= len(moments)


def test_the_end_is_the_last_sample_even_where_more_was_offered() -> None:
    """The last cycle may come after the last job ended."""
    samples = Samples(0)
    for at in (0, 2 * 10**9, 4 * 10**9):
        samples.offer(at, lambda at=at: sample(at))
    assert [each.at for each in samples.kept(sample(2 * 10**9))] == [0, 2 * 10**9]


def test_few_moments_are_all_kept() -> None:
    """Thinning starts only when there are too many."""
    samples = Samples(0, most=10)
    for second in range(10):
        at = second * 10**9
        samples.offer(at, lambda at=at: sample(at))
        samples.offer(at + 1, lambda at=at: sample(at + 1))
    assert len(samples.kept(sample(10**11))) == 11
