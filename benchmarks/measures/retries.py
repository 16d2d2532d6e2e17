"""What policies say of many failed runs: columns in one call beside one verdict at a time."""

from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from measures.cluster import Mismatch
from measures.timing import Contender, Task, Work, timed
from pyresched.model import NANOS, ReschedulePolicy, RescheduleTracker, VerdictReason
from pyresched.reschedule import next_many, next_reschedule
from workloads import histories, retry_policies

__all__ = ["Retries"]

ONE_BY_ONE = 20_000  # runs a turn of the rival


@dataclass(frozen=True, slots=True)
class _Failed:
    """What is asked about: a policy, a history and a time for each run."""

    policies: list[ReschedulePolicy]
    trackers: list[RescheduleTracker | None]
    failed_at: "array[int]"


class Retries:
    """*runs* failed runs with up to four reschedules behind them, under three policies in turn."""

    def __init__(self, runs: int) -> None:
        self.runs = runs
        self._few = min(ONE_BY_ONE, runs)

    def tasks(self) -> list[Task]:
        """Both are asked the same, and say the same."""

        def ours() -> Any:
            failed = self._failed
            return next_many(failed.policies, failed.trackers, failed.failed_at)

        def one_by_one() -> Any:
            failed = self._failed
            asked = zip(failed.policies, failed.trackers, failed.failed_at, strict=True)
            return [next_reschedule(*run) for run in islice(asked, self._few)]

        contenders = {"ours": self._as_it_is(ours), "one by one": self._as_it_is(one_by_one)}
        per = {"ours": self.runs, "one by one": self._few}
        return [timed("verdict of a failed run", self.runs, contenders, per=per)]

    @cached_property
    def _failed(self) -> _Failed:
        """Made when first measured. Raises Mismatch if the two do not say the same of it."""
        failed_at = array("q", range(1_000 * NANOS, 1_000 * NANOS + self.runs))
        failed = _Failed(retry_policies(self.runs), histories(self.runs), failed_at)
        columns = next_many(failed.policies, failed.trackers, failed_at)
        reasons = tuple(VerdictReason)
        for run in range(self._few):
            alone = next_reschedule(failed.policies[run], failed.trackers[run], failed_at[run])
            said = (columns["at"][run], columns["attempted"][run], reasons[columns["reason"][run]])
            if said != (alone.at, alone.attempted, alone.reason):
                raise Mismatch(f"run {run}: next_many and next_reschedule disagree")
        return failed

    def _as_it_is(self, once: Callable[[], Any]) -> Contender:
        """The same input each turn: nobody changes it."""

        @contextmanager
        def contender(turn: int) -> Iterator[Work]:
            del turn
            assert self._failed  # made before the clock starts
            yield once

        return contender
