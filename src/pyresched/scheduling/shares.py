"""What each queue of a round holds, asks for and is entitled to, as shares of the pool.

Decides which demand counts and what is protected; the arithmetic is `fairness`. No figure is
ever NaN: a queue whose weight cannot be used is entitled to nothing, and takes from nobody.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from pyresched.config import SchedulingConfig
from pyresched.fairness import DominantResourceFairness, shares
from pyresched.model import QueueName, QueueShare, ResourceVector

__all__ = ["ShareRule", "Standing", "constrained_demand"]


class Standing(NamedTuple):
    """Where a queue stands in a round; a plain tuple that begins like this will do.

    `held` is what its runs had when the round began, `asked` what its queued jobs ask for, `now`
    what its runs have. `constrained` is what counts of held and asked (None: all), `penalty`
    what runs that ended too soon still count for. `raw_weight` is the weight before any
    override (None: there is none).
    """

    queue: QueueName
    weight: float
    held: ResourceVector
    asked: ResourceVector
    now: ResourceVector
    constrained: ResourceVector | None = None
    penalty: ResourceVector | None = None
    raw_weight: float | None = None


class _Entitlements(Struct, frozen=True, gc=False):
    """By place in the standings; all 0 for a queue that takes no part."""

    demands: Sequence[float]
    constrained: Sequence[float]
    fair: Sequence[float]
    adjusted: Sequence[float]
    uncapped: Sequence[float]
    protected: Sequence[float]


class ShareRule:
    """How shares are counted in one pool of *total*, and which part of them is protected.

    *total* is what the nodes have and the pool's floating quantities. Protected is a fraction of
    the larger of fair and adjusted share, with *protect_uncapped* of the uncapped share.
    """

    def __init__(
        self,
        total: ResourceVector,
        multipliers: Sequence[float],
        *,
        protected_fraction: float,
        protect_uncapped: bool = False,
    ) -> None:
        self.fairness: Final = DominantResourceFairness(total, multipliers)
        self._empty = total.is_zero
        self._protected_fraction = protected_fraction
        self._protect_uncapped = protect_uncapped

    @classmethod
    def of(cls, config: SchedulingConfig, pool: str, on_nodes: ResourceVector) -> "ShareRule":
        """The rule of *pool*, whose nodes have *on_nodes* in total, as *config* says."""
        return cls(
            on_nodes + config.floating_total(pool),
            config.multipliers(pool),
            protected_fraction=config.protected_fraction_of(pool),
            protect_uncapped=config.pool(pool).protect_uncapped,
        )

    def claims(
        self, standings: Sequence[Standing] | Sequence[tuple[object, ...]]
    ) -> list[tuple[QueueName, float, float]]:
        """(queue, protected share, adjusted share) of each queue, in the order of *standings*."""
        given = [_standing(each) for each in standings]
        entitled = self._entitlements(given)
        return [
            (each.queue, protected, adjusted)
            for each, protected, adjusted in zip(
                given, entitled.protected, entitled.adjusted, strict=True
            )
        ]

    def figures(
        self, standings: Sequence[Standing] | Sequence[tuple[object, ...]]
    ) -> tuple[QueueShare, ...]:
        """The figures of each queue, in the order of *standings*."""
        given = [_standing(each) for each in standings]
        entitled = self._entitlements(given)
        held = self._costs([each.held for each in given])
        holds = self._costs([each.now for each in given])
        return tuple(
            QueueShare(
                queue=each.queue,
                weight=_usable(each.weight),
                raw_weight=_usable(each.weight if each.raw_weight is None else each.raw_weight),
                fair_share=entitled.fair[i],
                adjusted_share=entitled.adjusted[i],
                uncapped_share=entitled.uncapped[i],
                demand_share=entitled.demands[i],
                constrained_demand_share=entitled.constrained[i],
                penalty_share=(
                    0.0 if each.penalty is None else self.fairness.unweighted_cost(each.penalty)
                ),
                actual_share=held[i],
                protected_share=entitled.protected[i],
                resulting_share=holds[i],
            )
            for i, each in enumerate(given)
        )

    def _entitlements(self, given: Sequence[Standing]) -> _Entitlements:
        demands: Sequence[float] = [1.0] * len(given)  # of a pool that has nothing, all of it
        constrained = demands
        if not self._empty:
            demands = self._costs([each.held + each.asked for each in given])
            constrained = self._costs(
                [
                    each.held + each.asked if each.constrained is None else each.constrained
                    for each in given
                ]
            )
        part = [i for i, each in enumerate(given) if _usable(each.weight)]
        found = shares([given[i].weight for i in part], [constrained[i] for i in part])
        fair, adjusted, uncapped, protected = ([0.0] * len(given) for _ in range(4))
        for k, i in enumerate(part):
            fair[i], adjusted[i], uncapped[i] = found.fair[k], found.adjusted[k], found.uncapped[k]
            # A queue that asks for little is still entitled to its fair share.
            whole = uncapped[i] if self._protect_uncapped else max(adjusted[i], fair[i])
            protected[i] = whole * self._protected_fraction
        return _Entitlements(demands, constrained, fair, adjusted, uncapped, protected)

    def _costs(self, allocations: Sequence[ResourceVector]) -> Sequence[float]:
        return self.fairness.unweighted_costs(allocations)


def constrained_demand(
    by_class: Mapping[str, ResourceVector],
    limits: Mapping[str, ResourceVector],
    nothing: ResourceVector,
) -> ResourceVector:
    """The sum of what is asked for in each class, cut to the limit of the class where it has one.

    *nothing* is the vector of no amounts: the answer without classes.
    """
    counted = nothing
    for name, demand in by_class.items():
        limit = limits.get(name)
        counted += demand if limit is None else demand.capped(limit)
    return counted


def _standing(given: Standing | tuple[object, ...]) -> Standing:
    return given if isinstance(given, Standing) else Standing(*given)  # type: ignore[arg-type]


def _usable(weight: float) -> float:
    """*weight*, or 0 for one that cannot be used: such a queue takes no part."""
    return weight if math.isfinite(weight) and weight > 0 else 0.0
