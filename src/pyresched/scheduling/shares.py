"""What each queue of a round holds, asks for and is entitled to, as shares of the pool.

Decides which queues take part and what demand counts; the arithmetic is `fairness`.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from pyresched.fairness import DominantResourceFairness, shares
from pyresched.model import QueueName, QueueShare, ResourceVector

__all__ = ["Standing", "protected_shares", "queue_shares"]

Standing = tuple[QueueName, float, ResourceVector, ResourceVector, ResourceVector]
"""Queue, weight, what it held when the round began, what its jobs ask for, what it holds now."""


class _Entitlements(Struct, frozen=True, gc=False):
    demands: list[float]
    fair: Sequence[float]
    adjusted: Sequence[float]
    uncapped: Sequence[float]
    protected: list[float]


def _entitlements(
    standings: Sequence[Standing], fairness: DominantResourceFairness, protected_fraction: float
) -> _Entitlements:
    weights = [weight for _, weight, *_ in standings]
    demands = fairness.unweighted_costs([held + asked for _, _, held, asked, _ in standings])
    fair, adjusted, uncapped = shares(weights, demands)
    # A queue that asks for little is still entitled to its fair share.
    protected = [
        max(own, whole) * protected_fraction for own, whole in zip(adjusted, fair, strict=True)
    ]
    return _Entitlements(demands, fair, adjusted, uncapped, protected)


def protected_shares(
    standings: Sequence[Standing], fairness: DominantResourceFairness, protected_fraction: float
) -> Mapping[QueueName, float]:
    """The share up to which each queue loses nothing: the larger of its fair and adjusted one."""
    protected = _entitlements(standings, fairness, protected_fraction).protected
    return {queue: share for (queue, *_), share in zip(standings, protected, strict=True)}


def queue_shares(
    standings: Sequence[Standing], fairness: DominantResourceFairness, protected_fraction: float
) -> tuple[QueueShare, ...]:
    """The figures of each queue of *standings*, in their order."""
    entitled = _entitlements(standings, fairness, protected_fraction)
    held = fairness.unweighted_costs([held for _, _, held, _, _ in standings])
    holds = fairness.unweighted_costs([now for *_, now in standings])
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
