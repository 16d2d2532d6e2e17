"""The persistent ordered index beside `sortedcontainers`, which keeps no versions."""

import pytest
from sortedcontainers import SortedDict

from pyresched.indices import OrderedIndex
from workloads import spread

COUNT = 10_000
# Class rank, job priority, time: few of the first, so that the later fields decide.
KEYS = [(spread(n) % 3, spread(n + COUNT) % 100, n) for n in range(COUNT)]
SORTED = sorted(KEYS)


def ours():
    index = OrderedIndex()
    with index.write() as txn:
        txn.add_many(KEYS, range(COUNT))
    return index


FULL = {"ours": ours, "sortedcontainers": lambda: SortedDict(zip(KEYS, range(COUNT), strict=True))}


@pytest.mark.benchmark(group="ordered: build 10,000")
@pytest.mark.parametrize("who", FULL)
def test_build(benchmark, who):
    """All keys in one go, in no order."""
    assert len(benchmark(FULL[who])) == COUNT


@pytest.mark.benchmark(group="ordered: walk 10,000")
@pytest.mark.parametrize("who", FULL)
def test_walk(benchmark, who):
    """Every key in ascending order."""
    full = FULL[who]()
    assert benchmark(lambda: list(full.snapshot() if who == "ours" else full)) == SORTED


@pytest.mark.benchmark(group="ordered: pop the first and put it back, 1,000 times")
@pytest.mark.parametrize("who", FULL)
def test_pop_first(benchmark, who):
    """Each change of ours is a version of its own."""
    full = FULL[who]()
    pop = full.pop_first if who == "ours" else lambda: full.popitem(0)
    put = full.add if who == "ours" else full.__setitem__

    def run():
        for _ in range(1_000):
            key, value = pop()
            put(key, value)

    benchmark(run)
    assert len(full) == COUNT


@pytest.mark.benchmark(group="ordered: 10 copies to keep")
@pytest.mark.parametrize("who", FULL)
def test_copies(benchmark, who):
    """What a reader needs to see one state while another is made."""
    full = FULL[who]()
    copy = full.snapshot if who == "ours" else full.copy
    assert len(benchmark(lambda: [copy() for _ in range(100)])) == 100
