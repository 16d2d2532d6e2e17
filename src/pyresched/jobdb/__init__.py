"""The jobs in memory: one writer, snapshots for nothing, every index kept at every commit.

Owns the store's rules (docs/invariants.md, INV-D1 to INV-D18); relies on the native store. In a
program the journal is the truth and `scheduler.sync` the only writer.
"""

from pyresched._core import Diff, Order, Reader, Snapshot, Txn, record_memory
from pyresched.jobdb.check import CHECKERS, breaches
from pyresched.jobdb.db import JobDb
from pyresched.jobdb.merge import DryRun

__all__ = [
    "CHECKERS",
    "Diff",
    "DryRun",
    "JobDb",
    "Order",
    "Reader",
    "Snapshot",
    "Txn",
    "breaches",
    "record_memory",
]
