"""The round: what one pass over one pool would do. Decides, never writes."""

from pyresched.model import (
    Method,
    Move,
    Placement,
    Placements,
    Preemption,
    PreemptionCause,
    QueueCounts,
    QueueShare,
    RoundResult,
    Termination,
)
from pyresched.scheduling.check import SubmitCheck, unplaceable
from pyresched.scheduling.round import QueueReader, run_round
from pyresched.scheduling.state import RoundState

__all__ = [
    "Method",
    "Move",
    "Placement",
    "Placements",
    "Preemption",
    "PreemptionCause",
    "QueueCounts",
    "QueueReader",
    "QueueShare",
    "RoundResult",
    "RoundState",
    "SubmitCheck",
    "Termination",
    "run_round",
    "unplaceable",
]
