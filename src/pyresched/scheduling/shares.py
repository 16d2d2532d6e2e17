"""What each queue of a round holds, asks for and is entitled to, as shares of the pool.

Decides which demand counts and what is protected; the arithmetic is `fairness`.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from pyresched.fairness import DominantResourceFairness, shares
from pyresched.model import QueueName, QueueShare, ResourceVector

__all__ = ["ShareRule", "Standing"]

Standing = tuple[QueueName, float, ResourceVector, ResourceVector, ResourceVector]
"""Queue, weight, what it held when the round began, what its jobs ask for, what it holds now."""

# Shares are quotients and sums of doubles: one that is exactly at its limit may compute as above.
_EPSILON: Final = 1e-9


class _Entitlements(Struct, frozen=True, gc=False):
    demands: Sequence[float]
    fair: Sequence[float]
    adjusted: Sequence[float]
    uncapped: Sequence[float]
    protected: Sequence[float]


class ShareRule:
    """How shares are counted in one pool of *total*, and which part of them is protected."""

    def __init__(
        self, total: ResourceVector, multipliers: Sequence[float], *, protected_fraction: float
    ) -> None:
        self.fairness: Final = DominantResourceFairness(total, multipliers)
        self._empty = total.is_zero
        self._protected_fraction = protected_fraction

    def is_above(self, held: ResourceVector, share: float) -> bool:
        """Whether *held* costs more than *share*; exactly as much is not above."""
        return self.fairness.unweighted_cost(held) > share + _EPSILON

    def protected(self, standings: Sequence[Standing]) -> Mapping[QueueName, float]:
        """The share up to which each queue loses nothing."""
        protected = self._entitlements(standings).protected
        return {queue: share for (queue, *_), share in zip(standings, protected, strict=True)}

    def figures(self, standings: Sequence[Standing]) -> tuple[QueueShare, ...]:
        """The figures of each queue, in the order of *standings*."""
        entitled = self._entitlements(standings)
        held = self.fairness.unweighted_costs([held for _, _, held, _, _ in standings])
        holds = self.fairness.unweighted_costs([now for *_, now in standings])
        return tuple(
            QueueShare(
                queue=queue,
                weight=weight,
                fair_share=entitled.fair[i],
                adjusted_share=entitled.adjusted[i],
                uncapped_share=entitled.uncapped[i],
                demand_share=entitled.demands[i],
                actual_share=held[i],
                protected_share=entitled.protected[i],
                resulting_share=holds[i],
            )
            for i, (queue, weight, *_) in enumerate(standings)
        )

    def _entitlements(self, standings: Sequence[Standing]) -> _Entitlements:
        weights = [weight for _, weight, *_ in standings]
        # Of a pool that has nothing, everyone wants all.
        demands = (
            [1.0] * len(standings)
            if self._empty
            else self.fairness.unweighted_costs(
                [held + asked for _, _, held, asked, _ in standings]
            )
        )
        fair, adjusted, uncapped = shares(weights, demands)
        # A queue that asks for little is still entitled to its fair share.
        protected = [
            max(own, whole) * self._protected_fraction
            for own, whole in zip(adjusted, fair, strict=True)
        ]
        return _Entitlements(demands, fair, adjusted, uncapped, protected)
