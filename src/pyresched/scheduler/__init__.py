"""The scheduler: stages in order, the journal's port, and the sync of memory with it."""

from pyresched.scheduler.cycle import Scheduler, StepResult
from pyresched.scheduler.journal import Journal
from pyresched.scheduler.sync import Sync

__all__ = ["Journal", "Scheduler", "StepResult", "Sync"]
