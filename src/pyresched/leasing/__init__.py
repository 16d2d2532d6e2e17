"""Leases: granted from a round's decisions, ended when nobody renews them."""

from pyresched.leasing.expire import LEASE_ENDED, expire, next_end
from pyresched.leasing.grant import grant

__all__ = [
    "LEASE_ENDED",
    "expire",
    "grant",
    "next_end",
]
