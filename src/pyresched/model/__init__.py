"""Frozen values that every part shares; the native ones are re-exported here."""

from pyresched._core import (
    Gang,
    Job,
    JobState,
    LastReschedule,
    Outcome,
    Requirements,
    RescheduleEvent,
    RescheduleTracker,
    ResourceVector,
    Run,
)
from pyresched.durations import NANOS, format_duration, parse_duration
from pyresched.ids import (
    Duration,
    ExecutorName,
    GangId,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueueName,
    RunId,
)
from pyresched.model.avoid import AvoidRank, avoided_nodes
from pyresched.model.blocks import (
    Block,
    DisconnectBlock,
    MigrateBlock,
    RescheduleBlock,
    RestartBlock,
    UpdateBlock,
)
from pyresched.model.changes import Changes, Event, EventKind, RowKey
from pyresched.model.classes import (
    AwayEntry,
    AwayNodeType,
    PriorityClass,
    ResourceCondition,
    WellKnownNodeType,
)
from pyresched.model.constraints import Constraint, Operator, Preference, Spread
from pyresched.model.drafts import Draft
from pyresched.model.nodes import Intake, Node, Taint, TaintEffect, Toleration
from pyresched.model.placements import METHODS, Method, Placement, Placements
from pyresched.model.queues import Queue
from pyresched.model.readers import JobReader
from pyresched.model.reasons import Ends, Exclusion, ReasonCode, UnschedulableReason
from pyresched.model.resources import Resource, ResourceSpec, Rounding, parse_quantity
from pyresched.model.rounds import (
    Move,
    Preemption,
    PreemptionCause,
    QueueCounts,
    QueueShare,
    RoundResult,
    Termination,
)
from pyresched.model.rules import DisconnectRule, GroupRules, MigrateRule, UpdateRule, rule_faults
from pyresched.model.states import NEXT, next_state
from pyresched.reschedule import JobType, ReschedulePolicy, Verdict, VerdictReason

__all__ = [
    "METHODS",
    "NANOS",
    "NEXT",
    "AvoidRank",
    "AwayEntry",
    "AwayNodeType",
    "Block",
    "Changes",
    "Constraint",
    "DisconnectBlock",
    "DisconnectRule",
    "Draft",
    "Duration",
    "Ends",
    "Event",
    "EventKind",
    "Exclusion",
    "ExecutorName",
    "Gang",
    "GangId",
    "GroupRules",
    "Instant",
    "Intake",
    "Job",
    "JobId",
    "JobReader",
    "JobState",
    "JobType",
    "LastReschedule",
    "Method",
    "MigrateBlock",
    "MigrateRule",
    "Move",
    "Node",
    "NodeId",
    "Operator",
    "Outcome",
    "Placement",
    "Placements",
    "PoolName",
    "Preemption",
    "PreemptionCause",
    "Preference",
    "PriorityClass",
    "Queue",
    "QueueCounts",
    "QueueName",
    "QueueShare",
    "ReasonCode",
    "Requirements",
    "RescheduleBlock",
    "RescheduleEvent",
    "ReschedulePolicy",
    "RescheduleTracker",
    "Resource",
    "ResourceCondition",
    "ResourceSpec",
    "ResourceVector",
    "RestartBlock",
    "RoundResult",
    "Rounding",
    "RowKey",
    "Run",
    "RunId",
    "Spread",
    "Taint",
    "TaintEffect",
    "Termination",
    "Toleration",
    "UnschedulableReason",
    "UpdateBlock",
    "UpdateRule",
    "Verdict",
    "VerdictReason",
    "WellKnownNodeType",
    "avoided_nodes",
    "format_duration",
    "next_state",
    "parse_duration",
    "parse_quantity",
    "rule_faults",
]
