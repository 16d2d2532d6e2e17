"""Journals: where the truth is kept."""

from pyresched.store.memory import MemoryJournal

__all__ = ["MemoryJournal"]
