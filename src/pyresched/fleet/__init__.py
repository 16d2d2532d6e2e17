"""Nodes as the scheduler hears of them, turned into changes."""

from pyresched.fleet.nodes import NODE_LOST, back, cordon, join, lose, uncordon
from pyresched.fleet.system import SystemJobs

__all__ = ["NODE_LOST", "SystemJobs", "back", "cordon", "join", "lose", "uncordon"]
