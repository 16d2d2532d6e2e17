from array import array
from collections.abc import Iterable, Sequence
from typing import final, overload

from typing_extensions import Buffer

from pyresched._core.resources import ResourceVector

@final
class DominantResourceFairness:
    def __new__(
        cls, total: ResourceVector, multipliers: Sequence[float]
    ) -> DominantResourceFairness: ...
    @property
    def width(self) -> int: ...
    def unweighted_cost(self, allocation: ResourceVector) -> float: ...
    def weighted_cost(self, allocation: ResourceVector, weight: float) -> float: ...
    @overload
    def unweighted_costs(self, allocations: Buffer) -> array[float]: ...
    @overload
    def unweighted_costs(self, allocations: Iterable[ResourceVector]) -> list[float]: ...
    @overload
    def weighted_costs(
        self, allocations: Buffer, weights: Buffer | Sequence[float]
    ) -> array[float]: ...
    @overload
    def weighted_costs(
        self, allocations: Iterable[ResourceVector], weights: Iterable[float]
    ) -> list[float]: ...

def water_levels(
    weights: list[float], demands: list[float]
) -> tuple[list[float], list[float], list[float]]: ...
