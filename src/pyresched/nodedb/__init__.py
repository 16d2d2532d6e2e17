"""Nodes, what is bound to them, and where a job fits: kept by diffs, forked to decide on."""

from pyresched._core import EVICTED
from pyresched.nodedb.answers import Candidate, NotFound, Victims
from pyresched.nodedb.fork import Attempt, Binding, NodeFork
from pyresched.nodedb.nodes import NodeDb

__all__ = [
    "EVICTED",
    "Attempt",
    "Binding",
    "Candidate",
    "NodeDb",
    "NodeFork",
    "NotFound",
    "Victims",
]
