from typing import Final

from typing_extensions import disjoint_base

from pyresched._core.roundjobs import RoundJobs

CAUSES: Final[tuple[str, ...]]

@disjoint_base
class RoundLine(RoundJobs): ...
