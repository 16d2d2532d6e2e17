"""Reports of executors, and what users ask of jobs that ran, turned into changes."""

from pyresched.outcomes.apply import apply, due
from pyresched.outcomes.commands import force, set_policy, stop
from pyresched.outcomes.failures import judge
from pyresched.outcomes.reports import Report, ReportKind

__all__ = ["Report", "ReportKind", "apply", "due", "force", "judge", "set_policy", "stop"]
