"""What an operator sets: resources, classes, pools, queues, limits, retries; and node files.

Owns reading of files into typed values, with faults that name file, key and what would be
right. Relies on the model only.
"""

from pyresched.config.nodes import load_nodes, nodes_from, nodes_from_shape
from pyresched.config.pools import PoolConfig
from pyresched.config.schema import SchedulingConfig, config_from, load_config

__all__ = [
    "PoolConfig",
    "SchedulingConfig",
    "config_from",
    "load_config",
    "load_nodes",
    "nodes_from",
    "nodes_from_shape",
]
