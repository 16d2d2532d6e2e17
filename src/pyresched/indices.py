"""The persistent structures by themselves: id -> integer, and order key -> integer.

Both have one writer, transactions, snapshots that never change and differences of two versions;
the job store is built of the same ones. Keep INV-N1 to INV-N8: docs/hamt.md.

    ids = IdIndex()
    with ids.write() as txn:
        txn.set_many(["01J0000000000000000000000A", "any string"], [1, 2])
    before = ids.snapshot()
    ids.set("any string", 3)
    changed, added, removed = ids.snapshot().diff(before)
"""

from pyresched._core import (
    IdIndex,
    IdSnapshot,
    IdTxn,
    OrderedIndex,
    OrderedSnapshot,
    OrderedTxn,
)

__all__ = ["IdIndex", "IdSnapshot", "IdTxn", "OrderedIndex", "OrderedSnapshot", "OrderedTxn"]
