"""Nodes as the scheduler hears of them, turned into changes."""

from pyresched.fleet.drains import DRAINED, cleared, migrate, next_drain
from pyresched.fleet.nodes import back, cordon, drain, join, uncordon, undrain
from pyresched.fleet.reach import disconnect, expire, lose, next_expiry
from pyresched.fleet.system import SystemJobs
from pyresched.model.reach import NODE_LOST

__all__ = [
    "DRAINED",
    "NODE_LOST",
    "SystemJobs",
    "back",
    "cleared",
    "cordon",
    "disconnect",
    "drain",
    "expire",
    "join",
    "lose",
    "migrate",
    "next_drain",
    "next_expiry",
    "uncordon",
    "undrain",
]
