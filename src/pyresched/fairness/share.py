"""Fair shares of queues by weight and demand: the exact water level, not an iteration.

Relies on the native `water_levels`. Keeps INV-F1 to INV-F4.
"""

from collections.abc import Iterable
from typing import NamedTuple

from pyresched._core import water_levels

__all__ = ["Shares", "shares"]


class Shares(NamedTuple):
    """Three shares of each queue, as fractions of the pool, in the order of the queues.

    `fair` is weight over all weights. `adjusted` is what a queue gets when none gets more than
    its demand and what that leaves goes to the others by weight. `uncapped` is what it would
    get if its own demand had no end: at least `adjusted`.
    """

    fair: tuple[float, ...]
    adjusted: tuple[float, ...]
    uncapped: tuple[float, ...]


def shares(weights: Iterable[float], demand_shares: Iterable[float]) -> Shares:
    """The shares of queues with these weights and demands (as shares of the pool, 0 or more).

    An infinite demand is fine. Raises InputError for a weight that is not finite and above 0,
    a demand that is negative or not a number, or different lengths.
    """
    fair, adjusted, uncapped = water_levels(list(weights), list(demand_shares))
    return Shares(tuple(fair), tuple(adjusted), tuple(uncapped))
