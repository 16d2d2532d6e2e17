from typing_extensions import disjoint_base

from pyresched._core.roundlimits import RoundLimits

@disjoint_base
class RoundSeats(RoundLimits):
    @property
    def passes(self) -> int: ...
