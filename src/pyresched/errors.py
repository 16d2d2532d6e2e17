"""Every exception that callers may want to catch.

The lowest layer: it imports nothing of the package. A message is one line that says what is
wrong, where, and what would be right; the command line prints it and exits with code 2.
"""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "ConfigError",
    "Conflict",
    "DuplicateId",
    "Forgotten",
    "IllegalTransition",
    "InputError",
    "MissingExtra",
    "PyreschedError",
    "ReadOnly",
    "RunBelongsToOtherJob",
    "TooManyJobs",
    "TxnClosed",
    "UnknownNode",
    "UnreadableRound",
    "WriterBusy",
    "did_you_mean",
]

_NAMED = 5  # rows that the message of a conflict names
_KNOWN = 20  # words that are listed where none is near


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """What to write in place of *word*: the nearest of *known*, or the first of them."""
    choices = list(known)
    folded = {choice.lower(): choice for choice in reversed(choices)}
    near = get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    if near:
        return f"did you mean {folded[near[0]]!r}?"
    if not choices:
        return "none is known"
    more = f" and {len(choices) - _KNOWN:,} more" if len(choices) > _KNOWN else ""
    return f"known: {', '.join(choices[:_KNOWN])}{more}"


class PyreschedError(Exception):
    """Base of all errors of this package."""


class InputError(PyreschedError, ValueError):
    """A file, option or request that cannot be used: names it and what would be right."""


class ConfigError(InputError):
    """A configuration that cannot be used: names the key and what would be right."""


class UnreadableRound(InputError):
    """A file that holds no saved round, or not all of it: names the file and what is wrong."""


class MissingExtra(PyreschedError, ImportError):
    """A feature needs an optional dependency that is not installed: names what to install."""


class TxnClosed(PyreschedError):
    """A transaction was used after its commit or abort."""


class ReadOnly(PyreschedError):
    """A write was asked of something that can only be read."""


class WriterBusy(PyreschedError, TimeoutError):
    """Another transaction is writing: names its thread and since when."""


class Conflict(PyreschedError):
    """Rows changed since they were read. `rows` are the (kind, id) pairs that did."""

    def __init__(self, rows: tuple[tuple[str, str], ...]) -> None:
        self.rows = rows
        named = ", ".join(f"{kind} {name!r}" for kind, name in rows[:_NAMED])
        more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
        super().__init__(f"changed meanwhile: {named}{more}; read again and retry")

    @property
    def jobs(self) -> tuple[str, ...]:
        """The ids of the jobs among the rows, in their order."""
        return tuple(name for kind, name in self.rows if kind == "job")


class DuplicateId(InputError):
    """One id stands twice in a batch with different content."""


class Forgotten(PyreschedError, LookupError):
    """A part of the log that the journal no longer holds: names where what it holds begins."""


class AwaitsReplacement(InputError):
    """Jobs of a batch whose next run replaces one that failed. `rows` are their places in it."""

    def __init__(self, rows: tuple[int, ...]) -> None:
        super().__init__(rows)
        self.rows = rows

    def __str__(self) -> str:
        return (
            f"jobs in {len(self.rows)} rows of the batch, the first in row {self.rows[0]}, await "
            "the replacement of a failed run; leasing.grant() keeps their history"
        )


class RunBelongsToOtherJob(InputError):
    """A run id that another job already has."""


class IllegalTransition(PyreschedError, ValueError):
    """A job cannot move between these two states."""


class IllegalBinding(PyreschedError, ValueError):
    """A job cannot be bound, evicted or tried like this: it says what the job holds."""


class TooManyJobs(PyreschedError):
    """The store has no slot left."""


class UnknownNode(PyreschedError, KeyError):
    """No node has this id."""

    def __str__(self) -> str:
        return f"no node {self.args[0]!r}" if self.args else "no such node"
