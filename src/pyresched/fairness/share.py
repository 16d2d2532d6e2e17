"""Fair shares of queues by weight and demand: the exact water level, and the reference's loop.

Relies on the native `water_levels`. Keeps INV-F1 to INV-F4.
"""

from collections.abc import Iterable, Sequence
from math import inf, isfinite
from typing import Final, Literal, NamedTuple, get_args

from pyresched._core import water_levels
from pyresched.errors import InputError, did_you_mean

__all__ = ["Compat", "Shares", "fairness_error", "shares", "theoretical_share"]

Compat = Literal["exact", "armada"]
"""Which figures: the water level, or those of Armada's loop, to compare with its reports."""

_COMPATS: Final = get_args(Compat)
_PASSES: Final = 10
_REST: Final = 0.01


class Shares(NamedTuple):
    """Three shares of each queue, as fractions of the pool, in the order of the queues.

    `fair` is weight over all weights. `adjusted` is what a queue gets when none gets more than
    its demand and what that leaves goes to the others by weight. `uncapped` is what it would
    get if its own demand had no end: at least `adjusted`.
    """

    fair: tuple[float, ...]
    adjusted: tuple[float, ...]
    uncapped: tuple[float, ...]


def shares(
    weights: Iterable[float], demand_shares: Iterable[float], compat: Compat = "exact"
) -> Shares:
    """The shares of queues with these weights and demands (as shares of the pool, 0 or more).

    An infinite demand is fine. With `compat="armada"` the figures of Armada's loop, which stops
    with up to 1 % of the pool in nobody's hands and whose uncapped shares may be too large; then
    bring the queues by name, as it does: sums of doubles have an order. Raises InputError for a
    weight that is not finite and above 0, a demand that is negative or not a number, different
    lengths, or another *compat*.
    """
    if compat not in _COMPATS:
        near = did_you_mean(str(compat), _COMPATS)
        raise InputError(f"compat {compat!r} is not one of them; {near}")
    given_weights, given_demands = list(weights), list(demand_shares)
    fair, adjusted, uncapped = water_levels(given_weights, given_demands)
    if compat == "armada":
        # Sums of the very largest weights leave the range of a double; fair shares do not.
        usable = given_weights if isfinite(2 * sum(given_weights)) else fair
        adjusted, uncapped = _poured(usable, [float(each) for each in given_demands])
    return Shares(tuple(fair), tuple(adjusted), tuple(uncapped))


def theoretical_share(
    weights: Iterable[float],
    demand_shares: Iterable[float],
    *,
    weight: float = 1.0,
    compat: Compat = "exact",
) -> float:
    """What one queue more, of *weight* and with endless demand, would get beside these.

    The share of the pool that a newcomer could count on now. Raises InputError as `shares` does.
    """
    return shares([*weights, weight], [*demand_shares, inf], compat).adjusted[-1]


def fairness_error(adjusted_shares: Iterable[float], actual_shares: Iterable[float]) -> float:
    """How much of the pool queues miss of their adjusted shares; what others have above is no help.

    0 when nobody is below. Raises ValueError for different lengths.
    """
    pairs = zip(adjusted_shares, actual_shares, strict=True)
    return sum((max(0.0, adjusted - actual) for adjusted, actual in pairs), 0.0)


def _poured(weights: Sequence[float], demands: Sequence[float]) -> tuple[list[float], list[float]]:
    """(adjusted, uncapped) as Armada works them out, pass by pass.

    Kept as it is there, where it is wrong too: in each pass after the second the uncapped share
    of a queue that has its demand takes what others left as though they had left it once more.
    """
    queues = range(len(weights))
    adjusted, uncapped, spare = ([0.0 for _ in queues] for _ in range(3))
    has_all = [False for _ in queues]
    free = 1.0
    for _ in range(_PASSES):
        if free <= _REST:
            break
        wanting = sum(weights[i] for i in queues if not has_all[i])
        for i in queues:
            beside = weights[i] if has_all[i] else 0.0
            uncapped[i] += weights[i] / (wanting + beside) * (free - spare[i])
        if not wanting:
            break
        for i in queues:
            if not has_all[i]:
                adjusted[i] += weights[i] / wanting * free
        free = 0.0
        for i in queues:
            spare[i] = max(adjusted[i] - demands[i], 0.0)
            if spare[i]:
                adjusted[i] = demands[i]
                has_all[i] = True
                free += spare[i]
    return adjusted, uncapped
