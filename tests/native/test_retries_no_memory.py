"""Verdicts of many runs without memory: MemoryError, and nothing of it stays."""

import importlib.util
import os
from collections.abc import Iterator

import pytest

from kit.policies import history
from pyresched.model import ReschedulePolicy
from pyresched.reschedule import next_many

if os.environ.get("PYRESCHED_DEV") != "1" and not importlib.util.find_spec(
    "pyresched._core.selftest"
):
    pytest.skip(
        "a release build cannot make allocations fail; PYRESCHED_DEV=1 makes a build that can",
        allow_module_level=True,
    )

from pyresched._core import selftest


@pytest.fixture(autouse=True)
def _memory_comes_back() -> Iterator[None]:
    yield
    selftest.let_allocations_fail(-1)


def test_whichever_allocation_fails_the_next_call_answers() -> None:
    """With so many policies that their table grows a few times."""
    policies = [ReschedulePolicy(delay=n, unlimited=True) for n in range(40)]
    trackers = [history((1, 5))] * 40
    failures = 0
    while True:
        selftest.let_allocations_fail(failures)
        try:
            columns = next_many(policies, trackers, 7)
        except MemoryError:
            failures += 1
        else:
            break
        finally:
            selftest.let_allocations_fail(-1)
    assert failures > 8
    assert columns["delay"].tolist() == list(range(40))


def test_a_history_that_cannot_be_extended_stays() -> None:
    """The only allocation fails."""
    tracker = history((1, 5))
    selftest.let_allocations_fail(0)
    with pytest.raises(MemoryError):
        tracker.extended(None, now=2, previous_run="r", previous_node="n", delay=1)
    selftest.let_allocations_fail(-1)
    assert tracker == history((1, 5))
