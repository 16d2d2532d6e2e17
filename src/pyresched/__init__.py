"""A batch scheduler that you import: what runs where, now, and when a failed run is tried again.

The public face: each name is loaded when it is first asked for, so that this import is quick
and needs no extra. Everything here is stable; modules below may move.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyresched.config import SchedulingConfig, load_config
    from pyresched.errors import (
        ConfigError,
        Conflict,
        DuplicateId,
        IllegalBinding,
        IllegalTransition,
        InputError,
        PyreschedError,
        ReadOnly,
        RunBelongsToOtherJob,
        TooManyJobs,
        TxnClosed,
        UnknownNode,
        UnreadableRound,
        WriterBusy,
    )
    from pyresched.fairness import DominantResourceFairness
    from pyresched.indices import IdIndex, OrderedIndex
    from pyresched.jobdb import JobDb
    from pyresched.model import (
        Constraint,
        Gang,
        Job,
        JobState,
        Node,
        Operator,
        Preference,
        PriorityClass,
        Queue,
        Requirements,
        ReschedulePolicy,
        Resource,
        ResourceVector,
        Rounding,
        Run,
        Spread,
        Taint,
        Toleration,
    )
    from pyresched.nodedb import Candidate, NodeDb, NotFound, Victims
    from pyresched.reschedule import next_many
    from pyresched.scheduler import Scheduler
    from pyresched.scheduling import RoundState, load_round, run_round, save_round
    from pyresched.simulator import simulate
    from pyresched.spec import JobSpec
    from pyresched.store import MemoryJournal

__all__ = [
    "Candidate",
    "ConfigError",
    "Conflict",
    "Constraint",
    "DominantResourceFairness",
    "DuplicateId",
    "Gang",
    "IdIndex",
    "IllegalBinding",
    "IllegalTransition",
    "InputError",
    "Job",
    "JobDb",
    "JobSpec",
    "JobState",
    "MemoryJournal",
    "Node",
    "NodeDb",
    "NotFound",
    "Operator",
    "OrderedIndex",
    "Preference",
    "PriorityClass",
    "PyreschedError",
    "Queue",
    "ReadOnly",
    "Requirements",
    "ReschedulePolicy",
    "Resource",
    "ResourceVector",
    "RoundState",
    "Rounding",
    "Run",
    "RunBelongsToOtherJob",
    "Scheduler",
    "SchedulingConfig",
    "Spread",
    "Taint",
    "Toleration",
    "TooManyJobs",
    "TxnClosed",
    "UnknownNode",
    "UnreadableRound",
    "Victims",
    "WriterBusy",
    "load_config",
    "load_round",
    "next_many",
    "run_round",
    "save_round",
    "simulate",
]

_HOMES = {
    "Candidate": "nodedb",
    "ConfigError": "errors",
    "Conflict": "errors",
    "Constraint": "model",
    "DominantResourceFairness": "fairness",
    "DuplicateId": "errors",
    "Gang": "model",
    "IdIndex": "indices",
    "IllegalBinding": "errors",
    "IllegalTransition": "errors",
    "InputError": "errors",
    "Job": "model",
    "JobDb": "jobdb",
    "JobSpec": "spec",
    "JobState": "model",
    "MemoryJournal": "store",
    "Node": "model",
    "NodeDb": "nodedb",
    "NotFound": "nodedb",
    "Operator": "model",
    "OrderedIndex": "indices",
    "Preference": "model",
    "PriorityClass": "model",
    "PyreschedError": "errors",
    "Queue": "model",
    "ReadOnly": "errors",
    "Requirements": "model",
    "ReschedulePolicy": "model",
    "Resource": "model",
    "ResourceVector": "model",
    "RoundState": "scheduling",
    "Rounding": "model",
    "Run": "model",
    "RunBelongsToOtherJob": "errors",
    "Scheduler": "scheduler",
    "SchedulingConfig": "config",
    "Spread": "model",
    "Taint": "model",
    "Toleration": "model",
    "TooManyJobs": "errors",
    "TxnClosed": "errors",
    "UnknownNode": "errors",
    "UnreadableRound": "errors",
    "Victims": "nodedb",
    "WriterBusy": "errors",
    "load_config": "config",
    "load_round": "scheduling",
    "next_many": "reschedule",
    "run_round": "scheduling",
    "save_round": "scheduling",
    "simulate": "simulator",
}


def __getattr__(name: str) -> object:
    """The public name *name*, loaded now and kept."""
    if name == "__version__":
        value: object = import_module("importlib.metadata").version("pyresched")
    elif name in _HOMES:
        value = getattr(import_module(f"pyresched.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
