"""The port to the truth: what a journal must do for a scheduler.

Two implementations satisfy it by shape: `store.MemoryJournal`, and one over SQL. Whatever
holds of a journal is stated here and in docs/invariants.md (INV-J1, J2 and J11).
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from pyresched.model import Changes, Event, RowKey

__all__ = ["Journal"]


class Journal(Protocol):
    """Rows at their newest version, and the log of what happened to them.

    A *serial* counts commits from 0, the empty journal; a *cursor* counts events from 0.
    """

    @property
    def keeps_ended(self) -> bool:
        """Whether rows of ended jobs stay; memory holds what stays."""

    def commit(self, changes: Changes, *, expect: Mapping[RowKey, int]) -> int:
        """Write all of *changes* and return the serial of this commit.

        *expect* gives the version that each row must still have, 0 for a row that must not
        be there. Raises Conflict, and writes nothing, when a row has another version.
        """

    def changes_since(self, serial: int) -> tuple[Changes, int]:
        """The rows that commits after *serial* wrote, each once at its newest, and the serial
        up to which that holds. Events are read by cursor.

        Raises Forgotten when rows that went away since can no longer be told: `load` again.
        """

    def load(self) -> tuple[Changes, int]:
        """Every row, and the serial up to which that holds."""

    def events_since(self, cursor: int, *, limit: int | None = None) -> tuple[Sequence[Event], int]:
        """Events from *cursor* on, at most *limit*, and the cursor after them: no gap, no repeat.

        Raises Forgotten for events that are no longer held, ValueError for a cursor past the end.
        """

    def end(self) -> int:
        """The cursor after the newest event, for a reader that wants to know what follows."""

    def forget(self, cursor: int) -> None:
        """Nobody needs the events before *cursor* any more, nor rows of jobs that ended before
        it where the journal keeps no ended ones.
        """
