"""What a test of commands is given: `run`, of tests/unit/cli/conftest.py."""

from collections.abc import Callable

__all__ = ["Run"]

Run = Callable[..., tuple[int, str, str]]
"""Runs a command: its exit code and what it printed on stdout and stderr."""
