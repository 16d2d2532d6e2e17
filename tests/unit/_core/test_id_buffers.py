"""Ids in and values out as buffers: the same answers as by str, and other threads run meanwhile."""

import sys
import threading

import numpy as np
import pytest

from kit.index_keys import GOOD_IDS
from pyresched.errors import TxnClosed
from pyresched.indices import IdIndex

ASCII_IDS = [id for id in GOOD_IDS if id.isascii() and not id.endswith("\0")]


def filled(ids):
    """An index in which each of *ids* leads to its place."""
    index = IdIndex()
    with index.write() as txn:
        txn.set_many(ids, range(len(ids)))
    return index


def ulids(count):
    """ULIDs in no order."""
    digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    for n in range(count):
        mixed = n * 0x9E3779B97F4A7C15 % 2**60
        yield "01J00000000000" + "".join(digits[mixed >> shift & 31] for shift in range(55, -5, -5))


def columns(ids):
    """The same ids in every form that is taken."""
    cells = np.array([id.encode() for id in ids])
    twice = np.repeat(cells, 2)
    return [ids, tuple(ids), iter(ids), cells, twice[::2], cells[::-1][::-1]]


@pytest.mark.parametrize("many", [1, 63, 64, 300, 5_000])
def test_values_come_out_as_they_are_whatever_form_the_ids_have(many):
    """Every kind of id, one in three unknown; a snapshot and a transaction with writes of its own."""
    known = [*ASCII_IDS, *ulids(many)]
    index = filled(known)
    asked = [id for pair in zip(known, known, strict=True) for id in pair][:many]
    asked[::3] = [f"unknown {n}" for n in range(len(asked[::3]))]
    snapshot = index.snapshot()
    with index.write() as txn:
        txn.set(known[0], -(2**63))
        for reader in (snapshot, txn):
            expected = [reader.get(id, -7) for id in asked]
            for ids in columns(asked):
                out = np.full(len(asked), 99)
                found = reader.get_into(ids, out, -7)
                assert out.tolist() == expected
                assert found == len(asked) - len(asked[::3])
            for ids in columns(asked):
                assert reader.get_many(ids, -7) == expected


def test_what_is_missing_is_minus_one_unless_said_otherwise():
    """And nothing asked is nothing found."""
    index = IdIndex()
    out = np.zeros(2, np.int64)
    assert index.snapshot().get_into(["a", "b"], out) == 0
    assert out.tolist() == [-1, -1]
    for nothing in ([], np.array([], "S26")):
        assert index.snapshot().get_into(nothing, np.zeros(0, np.int64)) == 0


def test_a_transaction_takes_buffers_of_ids():
    """Set and deleted as if they were str, the last of equal ones counting."""
    index = IdIndex()
    cells = np.array([*(id.encode() for id in ASCII_IDS), b"a"])
    with index.write() as txn:
        txn.set_many(cells, np.arange(len(cells)))
    expected = {id: n for n, id in enumerate(ASCII_IDS)} | {"a": len(ASCII_IDS)}
    assert dict(index.snapshot().items()) == expected
    with index.write() as txn:
        assert txn.delete_many(cells[::2]) == len(cells[::2])
        assert list(txn) == sorted(expected.keys() - {id.decode() for id in cells[::2].tolist()})


@pytest.mark.parametrize("many", [3, 300])
@pytest.mark.parametrize("bad", [b"", "ü".encode(), b"x" * 256])
def test_a_cell_that_is_no_id_is_named_with_its_place(bad, many):
    """And nothing is set."""
    index = filled(ASCII_IDS)
    cells = np.array([b"good"] * many + [bad])
    out = np.zeros(len(cells), np.int64)
    for use in (
        lambda: index.snapshot().get_into(cells, out),
        lambda: index.snapshot().get_many(cells),
    ):
        with pytest.raises(ValueError, match=f"an id in a buffer is ASCII .* at {many}$"):
            use()
    with index.write() as txn:
        for use in (lambda: txn.set_many(cells, out), lambda: txn.delete_many(cells)):
            with pytest.raises(ValueError, match=f"at {many}$"):
                use()
        assert list(txn) == list(index.snapshot())


@pytest.mark.parametrize(
    "ids",
    [b"bytes", np.zeros(5, np.int64), np.array([["a"]], "S1"), np.array(["a"]), np.zeros(3, "V2")],
)
def test_another_buffer_is_no_column_of_ids(ids):
    """The message says what would be."""
    snapshot = IdIndex().snapshot()
    with pytest.raises(TypeError, match="S26"):
        snapshot.get_many(ids)
    with pytest.raises(TypeError, match="S26"):
        snapshot.get_into(ids, np.zeros(5, np.int64))


def test_out_must_be_as_long_and_of_int64_and_writable():
    """Nothing is written otherwise."""
    snapshot = filled(["a", "b"]).snapshot()
    cells = np.array([b"a", b"b"])
    frozen = np.zeros(2, np.int64)
    frozen.flags.writeable = False
    for ids in (["a", "b"], cells):
        for out in (
            np.zeros(3, np.int64),
            np.zeros(2, np.int32),
            np.zeros(2),
            np.zeros((2, 1), np.int64),
            np.zeros(4, np.int64)[::2],
            frozen,
        ):
            with pytest.raises(ValueError, match=r"room|dtype|dimensions|contiguous|read-only"):
                snapshot.get_into(ids, out)
            assert not out.any()
        with pytest.raises(TypeError):
            snapshot.get_into(ids, [0, 0])
        with pytest.raises(OverflowError):
            snapshot.get_into(ids, np.zeros(2, np.int64), 2**63)


def test_an_ended_transaction_gives_nothing():
    """As every other use of it."""
    index = filled(["a"])
    with index.write() as txn:
        pass
    with pytest.raises(TxnClosed):
        txn.get_into(["a"], np.zeros(1, np.int64))


@pytest.mark.parametrize("as_cells", [False, True])
def test_other_threads_run_while_a_snapshot_looks_up(as_cells):
    """No thread is made to give way here, so this one goes on only if the other lets it."""
    ids = list(ulids(200_000))
    snapshot = filled(ids).snapshot()
    asked = np.array([id.encode() for id in ids]) if as_cells else tuple(ids)
    out = np.zeros(len(ids), np.int64)
    before = sys.getswitchinterval()
    seen = False
    sys.setswitchinterval(60)
    try:
        for _ in range(20):
            started, done = threading.Event(), []

            def look(started=started, done=done):
                started.set()
                done.append(snapshot.get_into(asked, out))

            thread = threading.Thread(target=look)
            thread.start()
            started.wait()
            seen = not done
            thread.join()
            if seen:
                break
    finally:
        sys.setswitchinterval(before)
    assert seen
    assert out.tolist() == list(range(len(ids)))


def test_a_snapshot_answers_the_same_while_a_writer_writes():
    """Two threads read one snapshot without the GIL; a third changes every id, over and over."""
    ids = list(ulids(3_000))
    index = filled(ids)
    snapshot = index.snapshot()
    cells = np.array([id.encode() for id in ids])
    stop, wrong = threading.Event(), []

    def read():
        out = np.zeros(len(ids), np.int64)
        while not stop.is_set():
            if snapshot.get_into(cells, out) != len(ids) or (out != np.arange(len(ids))).any():
                wrong.append(out.copy())

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for n in range(60):
        with index.write() as txn:
            txn.set_many(cells, np.arange(len(ids)) + n + 1)
        for id in ids[n::60]:
            index.set(id, -n)
            if n % 2:
                index.delete(id)
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert index.snapshot().check() == []
