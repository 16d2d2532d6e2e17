"""Regular expressions over labels."""

import re

from pyresched.errors import InputError

__all__ = ["Pattern"]


class Pattern:
    """A regular expression, searched for anywhere in a value."""

    def __init__(self, text: str) -> None:
        """Raises InputError for what is no regular expression."""
        try:
            self._compiled = re.compile(text, re.ASCII)
        except re.error as bad:
            raise InputError(f"{text!r} is no regular expression: {bad}") from None

    def found_in(self, value: str) -> bool:
        """Whether some part of *value* matches."""
        return self._compiled.search(value) is not None
