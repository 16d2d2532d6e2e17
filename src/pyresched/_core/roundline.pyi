from typing import Final

from typing_extensions import disjoint_base

from pyresched._core.roundturns import RoundTurns

CAUSES: Final[tuple[str, ...]]

@disjoint_base
class RoundLine(RoundTurns): ...
