"""The costs of all queues of a pool in one call, from rows of a buffer: ours beside NumPy."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from measures.timing import Contender, Task, Work, timed
from pyresched.fairness import DominantResourceFairness
from pyresched.model import ResourceVector
from workloads import spread

__all__ = ["Costs"]

TOTALS = (64_000_000, 2**48, 4_096, 1_000_000)
CALLS = 20_000  # a turn, for one queue; fewer for more


class Costs:
    """*queues* queues that hold something of each of four resources."""

    def __init__(self, queues: int) -> None:
        self.queues = queues
        width = len(TOTALS)
        self._rows = np.array(
            [
                [spread(queue * width + at) % total for at, total in enumerate(TOTALS)]
                for queue in range(queues)
            ],
            dtype=np.int64,
        )

    def tasks(self) -> list[Task]:
        """Unweighted, since a weight is one division more to both."""
        fairness = DominantResourceFairness(ResourceVector(TOTALS), [1.0] * len(TOTALS))
        totals, multipliers, rows = np.array(TOTALS), np.ones(len(TOTALS)), self._rows

        def ours() -> Any:
            return fairness.unweighted_costs(rows)

        def in_numpy() -> Any:
            return (rows / totals * multipliers).max(axis=1)

        calls = CALLS // self.queues
        contenders = {"ours": _again(ours, calls), "numpy": _again(in_numpy, calls)}
        return [timed("costs of all queues", self.queues, contenders, per=calls)]


def _again(once: Callable[[], Any], calls: int) -> Contender:
    """So many calls, each with the same rows."""

    @contextmanager
    def contender(turn: int) -> Iterator[Work]:
        del turn  # what is asked stays as it is

        def work() -> object:
            for _ in range(calls):
                once()
            return None

        yield work

    return contender
