"""The scheduler: stages in order, the journal's port, and the sync of memory with it."""

from pyresched.scheduler.journal import Journal

__all__ = ["Journal"]
