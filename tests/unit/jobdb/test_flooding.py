"""Ids that somebody chose to collide: under the seed that they were chosen for they do, under any
other they are as good as random. By counting nodes and hashes, never by a clock.
"""

import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

from kit.jobs import job, leased
from kit.sip import as_seed, colliding, gang_hashes, numbered
from pyresched.indices import IdIndex
from pyresched.jobdb import JobDb
from pyresched.model import Gang

KNOWN = (0x0123456789ABCDEF, 0xFEDCBA9876543210)
OTHERS = [(1, 2), (KNOWN[0] ^ 1, KNOWN[1]), (KNOWN[0], KNOWN[1] ^ 1), (2**64 - 1, 0)]
COUNT = 1000
BITS = 11


@pytest.fixture(scope="module")
def chosen() -> list[str]:
    """Ids that agree in the low bits of their hash under the known seed."""
    return colliding(KNOWN, COUNT, BITS)


@pytest.fixture(scope="module")
def gangs() -> list[str]:
    """Ids of gangs of queue-a that agree in all of a hash of twice 5 bits."""
    return colliding(KNOWN, 300, 37, gang_hashes("queue-a", 5))


def shape(seed: tuple[int, int], ids: Sequence[str], bits: int) -> tuple[int, int]:
    """How many nodes the map of *ids* has, and their bytes."""
    index = IdIndex(seed=seed, bits=bits)
    with index.write() as txn:
        txn.set_many(ids, range(len(ids)))
    snapshot = index.snapshot()
    assert snapshot.check() == []
    assert snapshot.get_many(ids) == list(range(len(ids)))
    memory = snapshot.memory()
    return memory["nodes"], memory["node_bytes"]


def near(one: int, other: int) -> bool:
    """Within a fifth: as two sets of random ids are."""
    return 0.8 < one / other < 1.25


def test_control_they_do_collide_under_the_seed_they_were_chosen_for(chosen: list[str]) -> None:
    """All in one leaf when hashes have no more bits, deep down in one branch when they have."""
    nodes, _ = shape(KNOWN, chosen, BITS)
    random, _ = shape(KNOWN, [numbered(n) for n in range(COUNT)], BITS)
    assert nodes <= 9  # a path of eight, and the leaf
    assert random > 40


@pytest.mark.parametrize("seed", OTHERS)
@pytest.mark.parametrize("bits", [BITS, 32])
def test_under_another_seed_they_are_as_good_as_random(
    chosen: list[str], seed: tuple[int, int], bits: int
) -> None:
    """The same number of nodes and bytes, so the same depth, even if the seed differs in a bit."""
    (nodes, size), (usual, usual_size) = (
        shape(seed, ids, bits) for ids in (chosen, [numbered(n) for n in range(COUNT)])
    )
    assert near(nodes, usual)
    assert near(size, usual_size)


def sizes(seed: tuple[int, int], ids: Sequence[str], bits: int) -> tuple[int, int]:
    """Bytes of the maps of jobs and of runs, for jobs and runs named so."""
    db = JobDb(seed=as_seed(seed), hash_bits=bits)
    with db.write() as txn:
        txn.upsert_many(leased(job(id), run_id=id) for id in ids)
    snap = db.snapshot()
    assert [each and each.id for each in snap.get_many(ids)] == list(ids)
    assert [each and each.id for each in map(snap.by_run, ids)] == list(ids)
    memory = db.memory()
    return memory["ids"], memory["runs"]


def test_ids_of_jobs_and_runs_are_hashed_under_the_seed(chosen: list[str]) -> None:
    """Chosen ids take one leaf under the known seed; under others what random ones take."""
    usual = sizes(OTHERS[0], [numbered(n) for n in range(COUNT)], BITS)
    under = {seed: sizes(seed, chosen, BITS) for seed in (KNOWN, *OTHERS)}
    for which in (0, 1):
        assert under[KNOWN][which] < 0.8 * usual[which]
        assert all(near(under[seed][which], usual[which]) for seed in OTHERS)


def places(seed: tuple[int, int], gangs: Sequence[str]) -> int:
    """How many places there are in the gang index for gangs named so."""
    db = JobDb(seed=as_seed(seed), hash_bits=5)
    with db.write() as txn:
        txn.upsert_many(job(f"of-{id}", gang=Gang(id, 2)) for id in gangs)
    snap = db.snapshot()
    assert db.check(snap) == []
    assert [len(snap.gang("queue-a", id)) for id in gangs] == [1] * len(gangs)
    return len({key[0] for key, _ in snap.contents()["gangs"]})


def test_gangs_are_hashed_under_the_seed(gangs: list[str]) -> None:
    """Gangs that all stand in one place under the known seed are apart under another."""
    usual = places(OTHERS[0], [numbered(n) for n in range(len(gangs))])
    assert places(KNOWN, gangs) == 1
    assert usual > 100
    assert all(near(places(seed, gangs), usual) for seed in OTHERS)


def test_the_seed_is_drawn_for_each_process() -> None:
    """And is not Python's, which its user can fix: the same ids make maps of other shapes."""
    script = """
from pyresched.indices import IdIndex
index = IdIndex()
with index.write() as txn:
    txn.set_many([f"job-{n}" for n in range(20_000)], range(20_000))
print(index.snapshot().memory())
"""
    shapes = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(4)
    }
    assert len(shapes) > 1
