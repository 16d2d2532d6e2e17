"""Dominant shares of many queues: one native call, one call a queue, NumPy and plain Python."""

from array import array

import numpy as np
import pytest

from pyresched.fairness import DominantResourceFairness
from pyresched.model import ResourceVector
from workloads import spread

TOTAL = (64_000_000, 2**48, 4_096)
MULTIPLIERS = (1.0, 1.0, 1.0)
ALLOCATED = [
    tuple(spread(n * len(TOTAL) + at) % amount for at, amount in enumerate(TOTAL))
    for n in range(1_000)
]


def in_one_call():
    fairness = DominantResourceFairness(ResourceVector(TOTAL), MULTIPLIERS)
    vectors = [ResourceVector(amounts) for amounts in ALLOCATED]
    return lambda: list(fairness.unweighted_costs(vectors))


def over_rows():
    fairness = DominantResourceFairness(ResourceVector(TOTAL), MULTIPLIERS)
    flat = array("q", [amount for amounts in ALLOCATED for amount in amounts])
    rows = memoryview(flat).cast("B").cast("q", shape=(len(ALLOCATED), len(TOTAL)))
    return lambda: fairness.unweighted_costs(rows)


def in_numpy():
    rows = np.array(ALLOCATED, dtype=np.int64)
    total, multiplier = np.array(TOTAL), np.array(MULTIPLIERS)
    return lambda: (rows / total * multiplier).max(axis=1)


def call_by_call():
    fairness = DominantResourceFairness(ResourceVector(TOTAL), MULTIPLIERS)
    vectors = [ResourceVector(amounts) for amounts in ALLOCATED]
    return lambda: [fairness.unweighted_cost(vector) for vector in vectors]


def in_python():
    def cost(amounts):
        return max(
            amount / total * multiplier
            for amount, total, multiplier in zip(amounts, TOTAL, MULTIPLIERS, strict=True)
            if total > 0
        )

    return lambda: [cost(amounts) for amounts in ALLOCATED]


WAYS = {
    "ours": in_one_call,
    "ours on rows": over_rows,
    "ours singly": call_by_call,
    "numpy": in_numpy,
    "python": in_python,
}


@pytest.mark.benchmark(group="fairness: costs of 1,000 queues")
@pytest.mark.parametrize("who", WAYS)
def test_costs(benchmark, who):
    """The same figures by each way."""
    assert list(benchmark(WAYS[who]())) == in_python()()
