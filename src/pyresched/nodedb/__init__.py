"""Nodes, what is bound to them, and where a job fits: kept by diffs, forked to decide on.

`NodeDb(config, nodes).fork(pool)` is a `NodeFork`: `find` a node, `attempt` to place some and take
them back, `victims` to make room, `NotFound` says why not. `examples/place.py` does all of it.
"""

from pyresched._core import CROSS_POOL, EVICTED
from pyresched.nodedb.ahead import NodesAhead
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
    "NodesAhead",
    "NotFound",
    "Victims",
]
