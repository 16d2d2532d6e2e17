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
from pyresched.scheduling.explain import explain
from pyresched.scheduling.explanation import Explanation, Standing
from pyresched.scheduling.inputs import Arguments, QueueReader, RoundInputs
from pyresched.scheduling.remedies import Change, ChangeKind
from pyresched.scheduling.round import run_round
from pyresched.scheduling.saved import SavedRound, load_round, save_round
from pyresched.scheduling.state import RoundState

__all__ = [
    "Arguments",
    "Change",
    "ChangeKind",
    "Explanation",
    "Method",
    "Move",
    "Placement",
    "Placements",
    "Preemption",
    "PreemptionCause",
    "QueueCounts",
    "QueueReader",
    "QueueShare",
    "RoundInputs",
    "RoundResult",
    "RoundState",
    "SavedRound",
    "Standing",
    "SubmitCheck",
    "Termination",
    "explain",
    "load_round",
    "run_round",
    "save_round",
    "unplaceable",
]
