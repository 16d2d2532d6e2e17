"""Versions and what is asked of them, as the `version` and `semver` operators compare them.

`version` is loose (`1.2`, `v1.2.3`, `1.2beta`) and keeps pre-releases out of ranges that name
none; `semver` orders pre-releases as Semantic Versioning 2.0 says and knows no `~>`.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from pyresched.errors import InputError

__all__ = ["Version", "VersionRange"]

_FIELDS: Final = r"[0-9A-Za-z~-]+(?:\.[0-9A-Za-z~-]+)*"
_NUMBERS: Final = r"v?(?P<numbers>[0-9]+(?:\.[0-9]+)*)"
_BUILD: Final = rf"(?:\+{_FIELDS})?"
_LOOSE: Final = re.compile(rf"{_NUMBERS}(?:(?:-|(?=[A-Za-z~-]))(?P<pre>{_FIELDS}))?{_BUILD}")
_STRICT: Final = re.compile(rf"{_NUMBERS}(?:-(?P<pre>{_FIELDS}))?{_BUILD}")
_PART: Final = re.compile(r"\s*(?P<sign>!=|>=|<=|~>|=|>|<|)\s*(?P<version>\S+)\s*", re.ASCII)
_FEWEST_NUMBERS: Final = 3


class Version(NamedTuple):
    """A version: its numbers, at least three, and the fields of its pre-release."""

    numbers: tuple[int, ...]
    pre: tuple[str, ...] = ()
    written: int = _FEWEST_NUMBERS  # how many numbers were written

    @staticmethod
    def parse(text: str, *, strict: bool) -> "Version | None":
        """The version that *text* is, or None; *strict* wants `-` before a pre-release."""
        found = (_STRICT if strict else _LOOSE).fullmatch(text)
        if found is None:
            return None
        numbers = tuple(int(number) for number in found["numbers"].split("."))
        padded = numbers + (0,) * (_FEWEST_NUMBERS - len(numbers))
        pre = found["pre"]
        return Version(padded, tuple(pre.split(".")) if pre else (), len(numbers))

    @property
    def base(self) -> tuple[int, ...]:
        """The numbers without zeros at the end: equal for 1.2 and 1.2.0."""
        numbers = self.numbers
        while numbers and not numbers[-1]:
            numbers = numbers[:-1]
        return numbers

    @property
    def key(self) -> tuple[object, ...]:
        """What orders versions; a release comes after all of its pre-releases."""
        # Fields of digits are below words and compare as numbers; fewer fields are less.
        fields = tuple((0, int(f), "") if f.isdigit() else (1, 0, f) for f in self.pre)
        return self.base, not self.pre, fields


def _pessimistic(version: Version, wanted: Version) -> bool:
    """Whether `~>` takes it: at least *wanted*, and only its last written number may grow."""
    if wanted.pre and not version.pre:
        return False
    if len(wanted.numbers) > len(version.numbers) or version.key < wanted.key:
        return False
    fixed = wanted.written - 1
    return (
        version.numbers[:fixed] == wanted.numbers[:fixed]
        and version.numbers[len(wanted.numbers) - 1] >= wanted.numbers[-1]
    )


_SIGNS: Final[dict[str, Callable[[Version, Version], bool]]] = {
    "": lambda version, wanted: version.key == wanted.key,
    "=": lambda version, wanted: version.key == wanted.key,
    "!=": lambda version, wanted: version.key != wanted.key,
    ">": lambda version, wanted: version.key > wanted.key,
    ">=": lambda version, wanted: version.key >= wanted.key,
    "<": lambda version, wanted: version.key < wanted.key,
    "<=": lambda version, wanted: version.key <= wanted.key,
    "~>": _pessimistic,
}
_EXACT: Final = ("", "=", "!=")


class VersionRange:
    """What is asked of a version: `>= 1.2, < 2`, all parts of it."""

    def __init__(self, text: str, *, strict: bool) -> None:
        """Raises InputError for a part that is no comparison with a version."""
        self._strict = strict
        self._parts = [self._part(part, text) for part in text.split(",")]

    def _part(self, part: str, text: str) -> tuple[str, Version]:
        found = _PART.fullmatch(part)
        wanted = None if found is None else Version.parse(found["version"], strict=self._strict)
        if found is None or wanted is None or (self._strict and found["sign"] == "~>"):
            example = ">= 1.2.0, < 2.0.0" if self._strict else ">= 1.2, < 2"
            raise InputError(
                f"{part.strip()!r} of {text!r} is no comparison with a version; "
                f"write something like {example!r}"
            )
        return found["sign"], wanted

    def holds(self, text: str) -> bool:
        """Whether *text* is a version for which every part holds."""
        version = Version.parse(text, strict=self._strict)
        return version is not None and all(
            (self._strict or sign in _EXACT or _comparable(version, wanted))
            and _SIGNS[sign](version, wanted)
            for sign, wanted in self._parts
        )


def _comparable(version: Version, wanted: Version) -> bool:
    """A pre-release is only in ranges that name a pre-release of the same numbers."""
    return not version.pre or (bool(wanted.pre) and version.base == wanted.base)
