"""What is due at about one time, together."""

from kit.reschedule_vectors import facts
from pyresched.reschedule import followups
from pyresched.reschedule.followups import last_of_first


def test_batches_are_those_of_nomad() -> None:
    """Anchored at the first of each; exactly a window later begins another."""
    for row in facts("followup_batching"):
        got = followups(row["reschedule_times_ns"], row["window_ns"])
        wanted = [(each["wait_until_ns"], each["alloc_count"]) for each in row["expected"]]
        assert got == wanted, row["id"]


def test_a_batch_begins_at_its_first_time() -> None:
    """In any order; what comes a window after the first begins another, however near the last."""
    assert followups([]) == []
    assert followups([14, 7, 0, 4, 4, 5, 9, 10], 5) == [(0, 3), (5, 3), (10, 2)]
    assert followups([1, 1, 2], 0) == [(1, 1), (1, 1), (2, 1)]


def test_the_last_of_the_first_batch() -> None:
    """With no look at what follows; no window is none."""
    assert last_of_first([]) is None
    assert last_of_first([3]) == 3
    times = iter([0, 4, 5, 6])
    assert last_of_first(times, 5) == 4
    assert list(times) == [6]
    assert last_of_first([1, 1, 2], 0) == 1
    assert last_of_first([10, 12, 16], 5) == 12
