from typing_extensions import disjoint_base

from pyresched._core.roundjobs import RoundJobs

@disjoint_base
class RoundTurns(RoundJobs): ...
