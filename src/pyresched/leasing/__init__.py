"""Leases: granted from a round's decisions (to a journal, or into a job db), ended when nobody renews them."""

from pyresched.leasing.expire import LEASE_ENDED, expire, next_end
from pyresched.leasing.grant import grant
from pyresched.leasing.unplaced import is_due, unplaced
from pyresched.leasing.write import write

__all__ = [
    "LEASE_ENDED",
    "expire",
    "grant",
    "is_due",
    "next_end",
    "unplaced",
    "write",
]
