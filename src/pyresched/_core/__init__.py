"""The door to the native core: the only module that names the compiled ones."""

from pyresched._core.resources import ResourceVector
from pyresched._core.values import Gang, Job, JobState, Outcome, Requirements, Run

__all__ = ["Gang", "Job", "JobState", "Outcome", "Requirements", "ResourceVector", "Run"]
