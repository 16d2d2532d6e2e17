"""The persistent map of ids beside its rivals; `dict` is what none of them can be.

Each operation is done by every map in the same run, on the same ids.
"""

import immutables
import pytest
from pyrsistent import pmap
from rpds import HashTrieMap

from pyresched.indices import IdIndex
from workloads import job_ids, spread

COUNT = 10_000
IDS = job_ids(COUNT)
ORDER = sorted(range(COUNT), key=spread)
LOOKED_UP = [IDS[n] for n in ORDER]


def ours():
    index = IdIndex()
    with index.write() as txn:
        txn.set_many(IDS, range(COUNT))
    return index


FULL = {
    "ours": ours,
    "immutables": lambda: immutables.Map(zip(IDS, range(COUNT), strict=True)),
    "rpds": lambda: HashTrieMap(zip(IDS, range(COUNT), strict=True)),
    "pyrsistent": lambda: pmap(dict(zip(IDS, range(COUNT), strict=True))),
    "dict": lambda: dict(zip(IDS, range(COUNT), strict=True)),
}


@pytest.mark.benchmark(group="map: build 10,000")
@pytest.mark.parametrize("who", FULL)
def test_build(benchmark, who):
    """All ids in one go, each map in the way that it does best."""
    assert len(benchmark(FULL[who])) == COUNT


def lookups(who):
    """A function that looks every id up, in an order unlike that of insertion."""
    full = FULL[who]()
    if who == "ours":
        snapshot = full.snapshot()
        return lambda: snapshot.get_many(LOOKED_UP)
    get = full.get if who != "rpds" else full.__getitem__
    return lambda: [get(id) for id in LOOKED_UP]


@pytest.mark.benchmark(group="map: look up 10,000")
@pytest.mark.parametrize("who", FULL)
def test_look_up(benchmark, who):
    """Every id found."""
    assert benchmark(lookups(who)) == ORDER


@pytest.mark.benchmark(group="map: look up 10,000, one at a time")
@pytest.mark.parametrize("who", ["ours", "immutables", "rpds", "pyrsistent", "dict"])
def test_look_up_singly(benchmark, who):
    """The same by one call for each id."""
    full = FULL[who]()
    get = (full.snapshot() if who == "ours" else full).get
    assert benchmark(lambda: [get(id) for id in LOOKED_UP]) == ORDER


def versions(who):
    """A function that makes 1,000 versions of one change each, keeping every tenth alive."""
    full = FULL[who]()
    ids = LOOKED_UP[:1_000]

    def run_ours():
        kept = []
        for n, id in enumerate(ids):
            full.set(id, n)
            if n % 10 == 0:
                kept.append(full.snapshot())
        return kept

    def run_persistent():
        kept, current = [], full
        for n, id in enumerate(ids):
            current = current.insert(id, n) if who == "rpds" else current.set(id, n)
            if n % 10 == 0:
                kept.append(current)
        return kept

    def run_dict():
        kept = []
        for n, id in enumerate(ids):
            full[id] = n
            if n % 10 == 0:
                kept.append(full.copy())
        return kept

    return {"ours": run_ours, "dict": run_dict}.get(who, run_persistent)


@pytest.mark.benchmark(group="map: 1,000 versions, 100 kept")
@pytest.mark.parametrize("who", FULL)
def test_versions(benchmark, who):
    """Change by change, with old versions still readable."""
    assert len(benchmark(versions(who))) == 100
