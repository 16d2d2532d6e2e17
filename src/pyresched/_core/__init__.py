"""The door to the native core: the only module that names the compiled ones."""

from pyresched._core.drf import DominantResourceFairness, water_levels
from pyresched._core.nodeindex import EVICTED, NodeTable
from pyresched._core.resources import ResourceVector
from pyresched._core.round import Refused, RoundWalk
from pyresched._core.values import Gang, Job, JobState, Outcome, Requirements, Run

__all__ = [
    "EVICTED",
    "DominantResourceFairness",
    "Gang",
    "Job",
    "JobState",
    "NodeTable",
    "Outcome",
    "Refused",
    "Requirements",
    "ResourceVector",
    "RoundWalk",
    "Run",
    "water_levels",
]
