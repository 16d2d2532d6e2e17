"""Hands: what executors do with runs."""

from pyresched.executors.process import Command, ProcessExecutor, command_of

__all__ = ["Command", "ProcessExecutor", "command_of"]
