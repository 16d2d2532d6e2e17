from collections.abc import Callable

from pyresched._core.nodeindex import NodeTable
from pyresched._core.values import Requirements
from pyresched._core.views import Job
from pyresched.ids import JobId, NodeId, PoolName

def follow(
    changed: list[tuple[Job | None, Job | None]],
    home: dict[NodeId, PoolName],
    tables: dict[PoolName, NodeTable],
    homeless: dict[JobId, tuple[NodeId, Requirements, int, bool, PoolName]],
    is_preemptible: Callable[[Job], bool],
    joint: list[NodeTable],
) -> None: ...
