"""Filling an empty `IdIndex` at once gives the map that grows id by id."""

import pytest

from kit.index_keys import GOOD_IDS
from pyresched.indices import IdIndex


def loaded(ids, values, **how):
    """An index filled in one call."""
    index = IdIndex(seed=(1, 2), **how)
    with index.write() as txn:
        txn.set_many(ids, values)
    return index


@pytest.mark.parametrize("leaf", [1, 2, 7, 32])
@pytest.mark.parametrize("bits", [0, 1, 5, 9, 32])
def test_a_loaded_map_is_sound_and_goes_on_as_any(bits, leaf):
    """Every number of ids around the size of a leaf, and more; hashes cut so that many are the same.

    Every id is found, none besides; the shape is what the checker wants, before and after changes.
    """
    for count in (*range(20), 31, 32, 33, 34, 64, 65, 66, 67, 130, 700):
        ids = [*(f"id {n}" for n in range(count - len(GOOD_IDS))), *GOOD_IDS][:count]
        index = loaded(ids, range(count), bits=bits, leaf=leaf)
        snapshot = index.snapshot()
        assert snapshot.check() == []
        assert dict(snapshot.items()) == {id: n for n, id in enumerate(ids)}
        assert snapshot.get_many([*ids, "another"]) == [*range(count), None]
        with index.write() as txn:
            txn.set("another", -1)
            assert txn.delete_many(ids[::2]) == len(ids[::2])
            assert txn.check() == []
            assert txn.get_many(ids[1::2]) == [*range(count)][1::2]
        del snapshot
        assert index.memory()["slots"] == len(index)
        assert index.memory()["nodes"] == index.snapshot().memory()["nodes"]


@pytest.mark.parametrize("bits", [0, 32])
@pytest.mark.parametrize(
    "id", ["01J0000000000000000000000A", "x", "a name that is longer than sixteen"]
)
def test_of_equal_ids_in_a_load_the_last_one_counts(id, bits):
    """However far apart they are, and if there is nothing else."""
    others = [f"id {n}" for n in range(100)]
    for ids in ([id, *others, id], [*others[:50], id, id, *others[50:]], [id] * 200):
        index = loaded(ids, range(len(ids)), bits=bits)
        assert index.snapshot().check() == []
        assert dict(index.snapshot().items()) == {each: n for n, each in enumerate(ids)}
        assert index.memory()["slots"] == len(set(ids))


def test_a_load_that_does_not_fit_sets_nothing():
    """As many slots as there may be are taken, then no more."""
    index = IdIndex(limit=50)
    with index.write() as txn:
        with pytest.raises(Exception, match="all 50 slots are taken"):
            txn.set_many([f"id {n}" for n in range(60)], range(60))
        assert list(txn) == []
    assert index.memory()["slots"] == 0
    with index.write() as txn:
        txn.set_many([f"id {n}" for n in range(50)], range(50))
    assert len(index) == 50


def test_a_loaded_map_weighs_no_more_than_one_that_grew():
    """Sixteen bytes an id are what the nodes may take at most."""
    for count in (1_000, 3_000, 10_000, 30_000):
        index = loaded([f"id {n}" for n in range(count)], range(count))
        assert index.memory()["node_bytes"] <= 16 * count
