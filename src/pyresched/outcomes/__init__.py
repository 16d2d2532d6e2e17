"""Reports of executors, turned into changes."""

from pyresched.outcomes.apply import apply, due
from pyresched.outcomes.reports import Report, ReportKind

__all__ = ["Report", "ReportKind", "apply", "due"]
