"""Who should get how much: the cost of allocations, and shares by weight and demand."""

from pyresched._core import DominantResourceFairness
from pyresched.fairness.share import Compat, Shares, fairness_error, shares, theoretical_share

__all__ = [
    "Compat",
    "DominantResourceFairness",
    "Shares",
    "fairness_error",
    "shares",
    "theoretical_share",
]
