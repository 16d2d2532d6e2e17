"""Requests of users, turned into changes."""

from pyresched.submit.admit import Check, admit, validate
from pyresched.submit.cancel import cancel

__all__ = ["Check", "admit", "cancel", "validate"]
