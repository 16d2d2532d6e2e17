"""Who should get how much: the cost of allocations, and shares by weight and demand."""

from pyresched._core import DominantResourceFairness
from pyresched.fairness.share import Shares, shares

__all__ = ["DominantResourceFairness", "Shares", "shares"]
