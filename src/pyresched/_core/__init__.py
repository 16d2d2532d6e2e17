"""The door to the native core: the only module that names the compiled ones."""

from typing import TYPE_CHECKING

from pyresched._core.drf import DominantResourceFairness, water_levels
from pyresched._core.idindex import IdIndex, IdSnapshot, IdTxn
from pyresched._core.jobids import JobIds
from pyresched._core.jobreader import Diff, Order, Reader, Snapshot
from pyresched._core.jobs import JobStore
from pyresched._core.jobtxn import Txn
from pyresched._core.nodefeed import follow
from pyresched._core.nodeindex import CROSS_POOL, EVICTED, NodeTable
from pyresched._core.nodeorder import use_portable_scan
from pyresched._core.orderedindex import OrderedIndex, OrderedSnapshot, OrderedTxn
from pyresched._core.records import memory as record_memory
from pyresched._core.resources import ResourceVector
from pyresched._core.retries import next_many
from pyresched._core.round import RoundWalk
from pyresched._core.roundanswers import Refused
from pyresched._core.values import Gang, JobState, LastReschedule, Outcome, Requirements
from pyresched._core.views import Job, RescheduleEvent, RescheduleTracker, Run

if TYPE_CHECKING:
    from pyresched._core.jobreader import Contents as Contents

__all__ = [
    "CROSS_POOL",
    "EVICTED",
    "Diff",
    "DominantResourceFairness",
    "Gang",
    "IdIndex",
    "IdSnapshot",
    "IdTxn",
    "Job",
    "JobIds",
    "JobState",
    "JobStore",
    "LastReschedule",
    "NodeTable",
    "Order",
    "OrderedIndex",
    "OrderedSnapshot",
    "OrderedTxn",
    "Outcome",
    "Reader",
    "Refused",
    "Requirements",
    "RescheduleEvent",
    "RescheduleTracker",
    "ResourceVector",
    "RoundWalk",
    "Run",
    "Snapshot",
    "Txn",
    "follow",
    "next_many",
    "record_memory",
    "use_portable_scan",
    "water_levels",
]
