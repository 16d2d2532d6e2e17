"""Reports of executors, and what users ask of jobs that ran, turned into changes."""

from pyresched.outcomes.apply import apply, awaits_deployment, due, past_deadline
from pyresched.outcomes.commands import force, set_policy, stop
from pyresched.outcomes.failures import judge
from pyresched.outcomes.reports import Report, ReportKind

__all__ = [
    "Report",
    "ReportKind",
    "apply",
    "awaits_deployment",
    "due",
    "force",
    "judge",
    "past_deadline",
    "set_policy",
    "stop",
]
