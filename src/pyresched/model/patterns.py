"""Regular expressions over labels, in time linear in the label, whatever the expression.

The syntax is that of RE2 where both can be: no references back, no looking around. A pattern is
a program of few instructions; a search keeps the set of those that it may stand at, so nobody
can write an expression that hangs the scheduler, as one can with a search that goes back.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from pyresched.errors import InputError

__all__ = ["Pattern"]

_MOST_STEPS: Final = 500
_MOST_KNOWN: Final = 10_000  # moves that a pattern remembers
_MOST_REPEATS: Final = 1_000
_DEEPEST: Final = 50
_DIGITS: Final = frozenset("0123456789")
_WORD: Final = _DIGITS | frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_SPACE: Final = frozenset("\t\n\f\r ")
_CLASSES: Final = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_CONTROLS: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_REPEAT: Final = re.compile(r"\{([0-9]{1,6})(,([0-9]{0,6}))?\}", re.ASCII)

Test = Callable[[str], bool]
# What stands before a place in the text: nothing, no letter of a word, or one.
_FIRST, _OTHER, _LETTER = range(3)


class _Char(NamedTuple):
    """Goes on to the next step if the next character passes."""

    passes: Test


class _Place(NamedTuple):
    """Goes on to the next step if *holds* of what is before and of the next character, "" at the end."""

    holds: Callable[[int, str], bool]


class _Go(NamedTuple):
    """Goes on to each of these steps, counted from here."""

    ahead: tuple[int, ...]


Step = _Char | _Place | _Go


class Pattern:
    """A regular expression, searched for anywhere in a value."""

    def __init__(self, text: str) -> None:
        """Raises InputError for what is no regular expression, or one of no linear time."""
        self._steps = _Parser(text).whole()
        self._known: dict[tuple[frozenset[int], int, str], frozenset[int] | None] = {}

    def found_in(self, value: str) -> bool:
        """Whether some part of *value* matches."""
        at: frozenset[int] = frozenset()
        before = _FIRST
        for char in (*value, ""):
            key = (at, before, char)
            if key not in self._known:
                if len(self._known) >= _MOST_KNOWN:
                    self._known.clear()
                self._known[key] = self._next(*key)
            after = self._known[key]
            if after is None:
                return True
            at = after
            before = _LETTER if char in _WORD else _OTHER
        return False

    def _next(self, at: frozenset[int], before: int, char: str) -> frozenset[int] | None:
        """The steps to stand at after *char*, coming from *at* or from the first; None: found."""
        reached: set[int] = set()
        after: set[int] = set()
        waiting = [0, *at]
        while waiting:
            i = waiting.pop()
            if i == len(self._steps):
                return None
            if i in reached:
                continue
            reached.add(i)
            match self._steps[i]:
                case _Go(ahead):
                    waiting.extend(i + steps for steps in ahead)
                case _Place(holds) if holds(before, char):
                    waiting.append(i + 1)
                case _Char(passes) if char and passes(char):
                    after.add(i + 1)
        return frozenset(after)


def _on_edge(before: int, char: str) -> bool:
    """Whether a word begins or ends here."""
    return (before == _LETTER) != (char in _WORD)


_START: Final = _Place(lambda before, _: before == _FIRST)
_END: Final = _Place(lambda _, char: not char)
_PLACES: Final = {
    "A": _START,
    "z": _END,
    "b": _Place(_on_edge),
    "B": _Place(lambda before, char: not _on_edge(before, char)),
}


class _Parser:
    """From text to steps; each part is a list of steps that only refers to places within it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._folded = False

    def whole(self) -> list[Step]:
        steps = self._either()
        if self._at < len(self._text):
            raise self._bad("has a ) too many; write \\) for a bracket")
        return steps

    def _bad(self, why: str) -> InputError:
        return InputError(f"{self._text[:64]!r} is no regular expression: it {why}")

    def _peek(self, count: int = 1) -> str:
        return self._text[self._at : self._at + count]

    def _take(self, count: int = 1) -> str:
        taken = self._peek(count)
        self._at += count
        return taken

    def _either(self) -> list[Step]:
        """Parts between bars, of which one matches."""
        ways = [self._sequence()]
        while self._peek() == "|":
            self._take()
            ways.append(self._sequence())
        steps = ways.pop()
        for way in reversed(ways):
            # go to this way, or past it; after it, past all the others.
            steps = [_Go((1, len(way) + 2)), *way, _Go((len(steps) + 1,)), *steps]
        return steps

    def _sequence(self) -> list[Step]:
        """Pieces one after another."""
        steps: list[Step] = []
        while self._peek() not in ("", "|", ")"):
            steps += self._repeated(self._piece())
            if len(steps) > _MOST_STEPS:
                raise self._bad("is too large; repeat less")
        return steps

    def _repeated(self, piece: list[Step]) -> list[Step]:
        """*piece* as often as the sign after it says."""
        least, most = self._times()
        if (least, most) == (1, 1):
            return piece
        if len(piece) * max(least, most or 1, 1) > _MOST_STEPS:
            raise self._bad("is too large; repeat less")
        steps = piece * least
        if most is None:
            loop: list[Step] = [_Go((1, len(piece) + 2)), *piece, _Go((-len(piece) - 1,))]
            return steps + loop
        optional: list[Step] = []
        for _ in range(most - least):
            optional = [*piece, *optional]
            optional = [_Go((1, len(optional) + 1)), *optional]
        return steps + optional

    def _times(self) -> tuple[int, int | None]:
        """How often, at least and at most (None: any number); a lazy sign finds the same."""
        signs = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        sign = self._peek()
        found = _REPEAT.match(self._text, self._at)
        times: tuple[int, int | None] = (1, 1)
        if sign in signs:
            self._take()
            times = signs[sign]
        elif found is not None:
            self._at = found.end()
            least = int(found[1])
            most = least if found[2] is None else int(found[3]) if found[3] else None
            if max(least, most or 0) > _MOST_REPEATS or (most is not None and most < least):
                raise self._bad(f"repeats {found[0]}; write up to {_MOST_REPEATS}, the least first")
            times = least, most
        else:
            return times
        if self._peek() == "?":
            self._take()
        if self._peek() in ("*", "+", "?") and self._peek():
            raise self._bad("repeats a repetition; put it in (?: )")
        return times

    def _piece(self) -> list[Step]:
        """One character, class, place or group."""
        char = self._take()
        match char:
            case "(":
                return self._group()
            case "[":
                return [_Char(self._class())]
            case ".":
                return [_Char(lambda c: c != "\n")]
            case "^":
                return [_START]
            case "$":
                return [_END]
            case "*" | "+" | "?":
                raise self._bad(f"repeats nothing; write \\{char} for the sign")
            case "\\":
                return [self._escape()]
        return [_Char(self._exactly(char))]

    def _exactly(self, char: str) -> Test:
        if self._folded:
            return frozenset({char, char.lower(), char.upper()}).__contains__
        return char.__eq__

    def _group(self) -> list[Step]:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._bad("is nested too deeply; a few levels are enough")
        folded = self._folded
        if self._peek() == "?":
            self._take()
            if not self._opening():
                self._depth -= 1
                return []
        steps = self._either()
        if self._take() != ")":
            raise self._bad("lacks a )")
        self._folded = folded
        self._depth -= 1
        return steps

    def _opening(self) -> bool:
        """Read what stands after `(?`; whether a group begins. `(?i)` holds from here on."""
        if self._peek() == "<" or self._peek(2) == "P<":
            end = self._text.find(">", self._at)
            name = self._text[self._at : end].removeprefix("P").removeprefix("<")
            if end < 0 or not name.isidentifier():
                raise self._bad("has a group without a name, or looks behind; write (?: )")
            self._at = end + 1
            return True
        if self._peek() == "i":
            self._take()
            self._folded = True
        sign = self._take()
        if sign == ":":
            return True
        if sign == ")" and self._folded:
            return False
        raise self._bad(f"has (?{sign}; write (?: ) for a group, (?i) to ignore case")

    def _escape(self) -> Step:
        char = self._take()
        if char in _PLACES:
            return _PLACES[char]
        return _Char(self._escaped(char))

    def _escaped(self, char: str) -> Test:
        """What a character after a backslash stands for."""
        if not char:
            raise self._bad("ends in a backslash; write two for one")
        if char.lower() in _CLASSES:
            members = _CLASSES[char.lower()]
            return members.__contains__ if char.islower() else lambda c: c not in members
        if char in _CONTROLS:
            return _CONTROLS[char].__eq__
        if char.isalnum():
            raise self._bad(f"has \\{char}, which is not known or takes no linear time")
        return char.__eq__

    def _class(self) -> Test:
        """`[a-z]`, after the bracket."""
        negated = self._peek() == "^"
        if negated:
            self._take()
        tests: list[Test] = []
        first = True
        while first or self._peek() != "]":
            first = False
            if not self._peek():
                raise self._bad("lacks a ]")
            tests.append(self._member())
        self._take()
        return lambda c: any(test(c) for test in tests) is not negated

    def _member(self) -> Test:
        """A character, a range or a class within brackets."""
        low = self._take()
        if self._text.startswith("[:", self._at - 1):
            raise self._bad("has a [: :] class; write \\d, \\w or \\s")
        if low == "\\":
            char = self._take()
            if (char.isalnum() and char not in _CONTROLS) or not char:
                return self._escaped(char)
            low = _CONTROLS.get(char, char)
        high = low
        if self._peek() == "-" and self._peek(2) not in ("-", "-]"):
            self._take()
            high = self._take()
            if high == "\\":
                char = self._take()
                high = _CONTROLS.get(char, char)
            if not high or high < low:
                raise self._bad(f"has the range {low}-{high}; write the lower end first")
        if self._folded:
            return lambda c: any(low <= each <= high for each in (c, c.lower(), c.upper()))
        return lambda c: low <= c <= high
