"""Job dbs that break one invariant each: what the state machine of the job db must find.

`StandIn` breaks none; every subclass says which, where no checker of one version can see it.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pyresched.errors import Conflict, TxnClosed
from pyresched.jobdb import JobDb
from pyresched.model import Job

__all__ = ["Stand", "StandIn"]


class Stand:
    """A reader or transaction through which all calls go, so that a control may bend one."""

    def __init__(self, reader: Any) -> None:
        self.reader = reader

    def __getattr__(self, name: str) -> Any:
        return getattr(self.reader, name)

    def __len__(self) -> int:
        return len(self.reader)

    def __iter__(self) -> Iterator[Job]:
        return iter(self.reader)

    def __contains__(self, id: object) -> bool:
        return id in self.reader

    def diff(self, older: "Stand") -> Any:
        return self.reader.diff(older.reader)


class StandIn:
    """A job db that does all that one does; each control overrides what it breaks."""

    def __init__(self, **how: Any) -> None:
        self.db = JobDb(**how)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.db, name)

    def snapshot(self) -> Any:
        return Stand(self.db.snapshot())

    def write(self) -> Any:
        return Stand(self.db.write())

    def dry_run(self) -> Any:
        return Stand(self.db.dry_run())

    def apply(self, trial: Stand) -> int:
        return self.db.apply(trial.reader)


class Moving(StandIn):
    """INV-D10: its snapshots are always of now."""

    def snapshot(self) -> Any:
        db = self.db

        class Newest(Stand):
            reader = property(lambda _: db.snapshot(), lambda *_: None)

        return Newest(None)


class Stubborn(StandIn):
    """INV-D11: what was aborted is there."""

    def write(self) -> Any:
        stand = Stand(self.db.write())
        stand.abort = stand.reader.commit
        return stand


class Lingering(StandIn):
    """INV-D11, INV-D15: a reader of each tenth version is never let go."""

    def write(self) -> Any:
        if self.db.version % 10 == 0:
            self.kept = self.db.snapshot()
        return super().write()


class Leaky(StandIn):
    """INV-D12: what is staged is seen by who comes meanwhile."""

    def write(self) -> Any:
        self.writer = super().write()
        return self.writer

    def snapshot(self) -> Any:
        writer = getattr(self, "writer", None)
        return super().snapshot() if writer is None or writer.closed else Stand(writer.reader)


class Piecemeal(StandIn):
    """INV-D13: of a batch that is refused, what came before is in."""

    def write(self) -> Any:
        stand = super().write()
        stand.upsert_many = lambda batch: [stand.upsert(each) for each in batch] and None
        return stand


class Shuffled(StandIn):
    """INV-D14: jobs of one submit time come in another order than that of their ids."""

    def snapshot(self) -> Any:
        class Backwards(Stand):
            def __iter__(self) -> Iterator[Job]:
                return iter(sorted(self.reader, key=lambda one: (one.submitted_at, one.id[::-1])))

        return Backwards(self.db.snapshot())


class Blind(StandIn):
    """INV-D16: a dry run that was overtaken is applied all the same."""

    def apply(self, trial: Stand) -> int:
        try:
            return super().apply(trial)
        except Conflict:
            with self.db.write():
                pass
            return self.db.version


class Twice(StandIn):
    """INV-D17: a dry run may be applied again."""

    def apply(self, trial: Stand) -> int:
        with suppress(TxnClosed):
            return super().apply(trial)
        return self.db.version


class Hoarding(StandIn):
    """INV-D18: it counts every queue and pool that it ever saw."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.lanes: set[tuple[str, str | None]] = set()

    def snapshot(self) -> Any:
        stand = super().snapshot()
        self.lanes.update(stand.contents()["lanes"])
        return stand

    def memory(self) -> dict[str, object]:
        return {**self.db.memory(), "lane_slots": len(self.lanes)}
