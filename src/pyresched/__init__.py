"""A batch scheduler that you import: what runs where, now, and when a failed run is tried again.

The public face: each name is loaded when it is first asked for, so that this import is quick
and needs no extra. Everything here is stable; modules below may move.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyresched.config import (
        SchedulingConfig,
        load_config,
    )
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
    from pyresched.fairness import (
        DominantResourceFairness,
    )
    from pyresched.indices import (
        IdIndex,
        OrderedIndex,
    )
    from pyresched.jobdb import (
        JobDb,
    )
    from pyresched.model import (
        Constraint,
        DisconnectRule,
        Gang,
        GroupRules,
        Job,
        JobState,
        MigrateRule,
        Node,
        Operator,
        Preference,
        PriorityClass,
        Queue,
        Requirements,
        RescheduleBlock,
        RescheduleEvent,
        RescheduleTracker,
        Resource,
        ResourceVector,
        Rounding,
        Run,
        Spread,
        Taint,
        Toleration,
        UpdateRule,
    )
    from pyresched.nodedb import (
        Candidate,
        NodeDb,
        NotFound,
        Victims,
    )
    from pyresched.outcomes import (
        Report,
        ReportKind,
    )
    from pyresched.reschedule import (
        Dialect,
        JobType,
        Outlook,
        Problem,
        ProblemCode,
        Prospect,
        ReschedulePolicy,
        RestartPolicy,
        Severity,
        Step,
        Verdict,
        VerdictReason,
        next_many,
        next_restart,
        outlook,
        timeline,
    )
    from pyresched.scheduler import (
        Scheduler,
    )
    from pyresched.scheduling import (
        RoundState,
        load_round,
        run_round,
        save_round,
    )
    from pyresched.simulator import (
        simulate,
    )
    from pyresched.spec import (
        JobSpec,
        merge_reschedule,
    )
    from pyresched.store import (
        MemoryJournal,
    )

__all__ = [
    "Candidate",
    "ConfigError",
    "Conflict",
    "Constraint",
    "Dialect",
    "DisconnectRule",
    "DominantResourceFairness",
    "DuplicateId",
    "Gang",
    "GroupRules",
    "IdIndex",
    "IllegalBinding",
    "IllegalTransition",
    "InputError",
    "Job",
    "JobDb",
    "JobSpec",
    "JobState",
    "JobType",
    "MemoryJournal",
    "MigrateRule",
    "Node",
    "NodeDb",
    "NotFound",
    "Operator",
    "OrderedIndex",
    "Outlook",
    "Preference",
    "PriorityClass",
    "Problem",
    "ProblemCode",
    "Prospect",
    "PyreschedError",
    "Queue",
    "ReadOnly",
    "Report",
    "ReportKind",
    "Requirements",
    "RescheduleBlock",
    "RescheduleEvent",
    "ReschedulePolicy",
    "RescheduleTracker",
    "Resource",
    "ResourceVector",
    "RestartPolicy",
    "RoundState",
    "Rounding",
    "Run",
    "RunBelongsToOtherJob",
    "Scheduler",
    "SchedulingConfig",
    "Severity",
    "Spread",
    "Step",
    "Taint",
    "Toleration",
    "TooManyJobs",
    "TxnClosed",
    "UnknownNode",
    "UnreadableRound",
    "UpdateRule",
    "Verdict",
    "VerdictReason",
    "Victims",
    "WriterBusy",
    "load_config",
    "load_round",
    "merge_reschedule",
    "next_many",
    "next_restart",
    "outlook",
    "run_round",
    "save_round",
    "simulate",
    "timeline",
]

_HOMES = {
    "Candidate": "nodedb",
    "ConfigError": "errors",
    "Conflict": "errors",
    "Constraint": "model",
    "Dialect": "reschedule",
    "DisconnectRule": "model",
    "DominantResourceFairness": "fairness",
    "DuplicateId": "errors",
    "Gang": "model",
    "GroupRules": "model",
    "IdIndex": "indices",
    "IllegalBinding": "errors",
    "IllegalTransition": "errors",
    "InputError": "errors",
    "Job": "model",
    "JobDb": "jobdb",
    "JobSpec": "spec",
    "JobState": "model",
    "JobType": "reschedule",
    "MemoryJournal": "store",
    "MigrateRule": "model",
    "Node": "model",
    "NodeDb": "nodedb",
    "NotFound": "nodedb",
    "Operator": "model",
    "OrderedIndex": "indices",
    "Outlook": "reschedule",
    "Preference": "model",
    "PriorityClass": "model",
    "Problem": "reschedule",
    "ProblemCode": "reschedule",
    "Prospect": "reschedule",
    "PyreschedError": "errors",
    "Queue": "model",
    "ReadOnly": "errors",
    "Report": "outcomes",
    "ReportKind": "outcomes",
    "Requirements": "model",
    "RescheduleBlock": "model",
    "RescheduleEvent": "model",
    "ReschedulePolicy": "reschedule",
    "RescheduleTracker": "model",
    "Resource": "model",
    "ResourceVector": "model",
    "RestartPolicy": "reschedule",
    "RoundState": "scheduling",
    "Rounding": "model",
    "Run": "model",
    "RunBelongsToOtherJob": "errors",
    "Scheduler": "scheduler",
    "SchedulingConfig": "config",
    "Severity": "reschedule",
    "Spread": "model",
    "Step": "reschedule",
    "Taint": "model",
    "Toleration": "model",
    "TooManyJobs": "errors",
    "TxnClosed": "errors",
    "UnknownNode": "errors",
    "UnreadableRound": "errors",
    "UpdateRule": "model",
    "Verdict": "reschedule",
    "VerdictReason": "reschedule",
    "Victims": "nodedb",
    "WriterBusy": "errors",
    "load_config": "config",
    "load_round": "scheduling",
    "merge_reschedule": "spec",
    "next_many": "reschedule",
    "next_restart": "reschedule",
    "outlook": "reschedule",
    "run_round": "scheduling",
    "save_round": "scheduling",
    "simulate": "simulator",
    "timeline": "reschedule",
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
