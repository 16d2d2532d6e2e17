"""What the indices do when there is no memory: raise MemoryError and stay as they were."""

import importlib.util
import os

import pytest

from kit.index_keys import GOOD_IDS
from pyresched.indices import IdIndex, OrderedIndex

if os.environ.get("PYRESCHED_DEV") != "1" and not importlib.util.find_spec(
    "pyresched._core.selftest"
):
    pytest.skip(
        "a release build cannot make allocations fail; PYRESCHED_DEV=1 makes a build that can",
        allow_module_level=True,
    )

from pyresched._core import selftest


@pytest.fixture(autouse=True)
def _memory_comes_back():
    yield
    selftest.let_allocations_fail(-1)


def fails_at_every_point(index, change):
    """Run *change* with its first allocation failing, then the second, and so on until none
    does; after each failure *index* is as before. How often it failed.
    """
    failures = 0
    while True:
        before, memory = index.snapshot(), index.memory()
        pinned = index.memory()["waiting"]
        selftest.let_allocations_fail(failures)
        try:
            change()
        except MemoryError:
            selftest.let_allocations_fail(-1)
        else:
            selftest.let_allocations_fail(-1)
            return failures
        after = index.snapshot()
        assert index.version == before.version
        assert list(after.items()) == list(before.items())
        assert after.check() == []
        now = index.memory()
        # A column may keep what it has grown by; nodes, slots and texts go back.
        for name in memory.keys() & {"nodes", "node_bytes", "slots", "texts", "text_bytes"}:
            assert now[name] == memory[name], name
        assert now["waiting"] == pinned
        failures += 1


def fails_in_place(index, change):
    """The same where nobody holds the newest version, so that *change* works in place: after each
    failure it has what it had, soundly.
    """
    failures = 0
    while True:
        before = list(index.snapshot().items())
        selftest.let_allocations_fail(failures)
        try:
            change()
        except MemoryError:
            selftest.let_allocations_fail(-1)
        else:
            selftest.let_allocations_fail(-1)
            return failures
        assert list(index.snapshot().items()) == before
        assert index.snapshot().check() == []
        assert index.version not in index.pinned
        if not index.pinned:
            no_more_than_needed(index)
        failures += 1


def no_more_than_needed(index):
    """What is allocated is what the newest version needs."""
    snapshot = index.snapshot()
    memory, needed = index.memory(), snapshot.memory()
    assert {name: memory[name] for name in needed} == needed
    assert memory.get("slots", len(snapshot)) == len(snapshot)


@pytest.mark.parametrize("held", [False, True])
def test_changes_in_place_without_memory_leave_what_was_there(held):
    """One change a version with no snapshot or an old one only, each allocation failing in turn."""
    ids, tree = IdIndex(bits=9, leaf=3), OrderedIndex(leaf=4, inner=4)
    for n in range(40):
        ids.set(GOOD_IDS[n], n)
        tree.add((n * 7 % 40, n), n)
    old = (ids.snapshot(), tree.snapshot()) if held else ()
    then = [list(each.items()) for each in old]
    ids.set(GOOD_IDS[0], -1)
    tree.add((3, 3), -1)
    failed = 0
    for n, id in enumerate(GOOD_IDS[20:]):
        failed += fails_in_place(ids, lambda id=id, n=n: ids.set(id, n))
        failed += fails_in_place(tree, lambda n=n: tree.add((n % 5, n), n))
    for id in GOOD_IDS[10:30]:
        failed += fails_in_place(ids, lambda id=id: ids.delete(id))
        failed += fails_in_place(tree, tree.pop_first)
    for key in list(tree.snapshot())[5:15]:
        failed += fails_in_place(tree, lambda key=key: tree.remove(key))
    assert failed > 20
    assert [list(each.items()) for each in old] == then
    assert [each.check() for each in old] == [[]] * len(old)
    del old
    no_more_than_needed(ids)
    no_more_than_needed(tree)


@pytest.mark.parametrize(("bits", "leaf"), [(32, 32), (32, 2), (5, 4)])
def test_a_load_without_memory_sets_nothing_and_can_be_repeated(bits, leaf):
    """An empty index is filled at once: what has been made when memory ends goes back, in the same
    transaction, which then takes one id alone.
    """
    failures, failed = 0, True
    while failed:
        index, failed = IdIndex(bits=bits, leaf=leaf), False
        with index.write() as txn:
            selftest.let_allocations_fail(failures)
            try:
                txn.set_many(GOOD_IDS, range(len(GOOD_IDS)))
            except MemoryError:
                failed = True
            selftest.let_allocations_fail(-1)
            assert list(txn) == ([] if failed else sorted(GOOD_IDS, key=str.encode))
            assert txn.check() == []
            txn.set("one more", 1)
        no_more_than_needed(index)
        failures += 1
    assert failures > 5
    assert dict(index.snapshot().items()) == {
        **{id: n for n, id in enumerate(GOOD_IDS)},
        "one more": 1,
    }


@pytest.mark.parametrize(("bits", "leaf"), [(32, 32), (3, 2), (0, 4)])
def test_an_id_index_without_memory_is_as_before(bits, leaf):
    """Every allocation of every way to write, failing in turn."""
    index = IdIndex(bits=bits, leaf=leaf)
    half = len(GOOD_IDS) // 2

    def set_many():
        with index.write() as txn:
            txn.set_many(GOOD_IDS[:half], range(half))

    def delete_many():
        with index.write() as txn:
            txn.delete_many(GOOD_IDS[half // 2 :])

    assert fails_at_every_point(index, set_many) > 8
    for n, id in enumerate(GOOD_IDS[half:]):
        assert fails_at_every_point(index, lambda id=id, n=n: index.set(id, n)) > 0
    assert fails_at_every_point(index, lambda: index.set(GOOD_IDS[0], 99)) > 0
    assert fails_at_every_point(index, lambda: index.delete(GOOD_IDS[1])) > 0
    assert fails_at_every_point(index, delete_many) > 0


@pytest.mark.parametrize("nodes", [4, 5, 32])
def test_an_ordered_index_without_memory_is_as_before(nodes):
    """Every allocation of every way to write, failing in turn."""
    index = OrderedIndex(leaf=nodes, inner=nodes)
    keys = [(n * 7 % 60, n) for n in range(60)]

    def add_many():
        with index.write() as txn:
            txn.add_many(keys, range(60))

    def remove_many():
        with index.write() as txn:
            txn.remove_many(keys[10:])

    assert fails_at_every_point(index, add_many) > 3
    assert fails_at_every_point(index, lambda: index.add((30, -1), 1)) > 0
    assert fails_at_every_point(index, lambda: index.add(keys[3], 99)) > 0
    assert fails_at_every_point(index, lambda: index.remove(keys[4])) > 0
    assert fails_at_every_point(index, index.pop_first) > 0
    assert fails_at_every_point(index, remove_many) > 0


def test_reads_without_memory_raise_and_can_be_repeated():
    """A read that needs room for many answers."""
    index = IdIndex()
    with index.write() as txn:
        txn.set_many(GOOD_IDS, range(len(GOOD_IDS)))
    snapshot, before = index.snapshot(), index.snapshot()
    index.set(GOOD_IDS[0], -1)
    many = GOOD_IDS * 3
    reads = (
        lambda: index.snapshot().get_many(many),
        lambda: list(snapshot),
        lambda: list(snapshot.items()),
        lambda: index.snapshot().diff(before),
    )
    for read in reads:
        failures, expected = 0, read()
        while True:
            selftest.let_allocations_fail(failures)
            try:
                answer = read()
            except MemoryError:
                failures += 1
            else:
                break
            finally:
                selftest.let_allocations_fail(-1)
        assert failures > 0
        assert answer == expected
