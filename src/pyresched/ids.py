"""A type for each kind of id, so that one is never taken for another."""

from typing import NewType

__all__ = [
    "Duration",
    "ExecutorName",
    "GangId",
    "Instant",
    "JobId",
    "NodeId",
    "PoolName",
    "QueueName",
    "RunId",
]

JobId = NewType("JobId", str)
RunId = NewType("RunId", str)
NodeId = NewType("NodeId", str)
GangId = NewType("GangId", str)
QueueName = NewType("QueueName", str)
PoolName = NewType("PoolName", str)
ExecutorName = NewType("ExecutorName", str)

Instant = int
"""Nanoseconds since an epoch that the caller chooses (Unix for live programs)."""
Duration = int
"""Nanoseconds."""
