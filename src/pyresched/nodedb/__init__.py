"""Nodes, what is bound to them, and where a job fits: kept by diffs, forked to decide on."""

from pyresched._core import CROSS_POOL, EVICTED
from pyresched.nodedb.answers import Candidate, NotFound, Victims
from pyresched.nodedb.attempt import Attempt
from pyresched.nodedb.fork import Binding, NodeFork
from pyresched.nodedb.nodes import NodeDb

__all__ = [
    "CROSS_POOL",
    "EVICTED",
    "Attempt",
    "Binding",
    "Candidate",
    "NodeDb",
    "NodeFork",
    "NotFound",
    "Victims",
]
