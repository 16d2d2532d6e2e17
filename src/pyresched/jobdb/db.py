"""`JobDb`: the native store under one configuration.

Owns what a configuration means to the store: classes by name, legal transitions, checks at
each commit when `PYRESCHED_CHECK=all`.
"""

import os
from functools import partial
from typing import TYPE_CHECKING, Final

from pyresched._core import JobStore, Reader, Snapshot, Txn
from pyresched.config import SchedulingConfig
from pyresched.jobdb.check import breaches
from pyresched.jobdb.merge import DryRun
from pyresched.model import NEXT

__all__ = ["JobDb"]

_MOST_JOBS: Final = 2**32 - 1  # slots are numbered in 32 bits


class JobDb(JobStore):
    """Jobs by id, run, gang, queue and state, in versions.

    `with db.write() as txn` changes them, `db.snapshot()` reads them as they are, and
    `db.dry_run()` tries changes that are never seen. *most_jobs* bounds the store. For tests,
    *seed* (16 bytes) and *hash_bits* fix the hash of the id indices, so that ids can be made to
    collide; *leaf* and *fanout* (4 to 32) make nodes small, so that few jobs make deep trees.
    """

    def __init__(
        self,
        config: SchedulingConfig | None = None,
        *,
        seed: bytes | None = None,
        hash_bits: int = 32,
        most_jobs: int | None = None,
        leaf: int = 32,
        fanout: int = 32,
    ) -> None:
        if config is not None and not isinstance(config, SchedulingConfig):
            raise TypeError(
                f"config is a SchedulingConfig, got {config!r}; load_config() reads one from a file"
            )
        if most_jobs is not None:
            most_jobs = _limit(most_jobs)
        self.config = SchedulingConfig() if config is None else config
        super().__init__(
            {each.name: each.priority for each in self.config.priority_classes},
            NEXT,
            seed=seed,
            hash_bits=hash_bits,
            most_jobs=most_jobs,
            leaf=leaf,
            fanout=fanout,
            # Not a method: a store that refers to itself would keep its jobs when it is dropped.
            after_commit=partial(_assert_sound, self.config)
            if os.environ.get("PYRESCHED_CHECK") == "all"
            else None,
        )

    def __repr__(self) -> str:
        if not hasattr(self, "config"):
            return "<JobDb that was never made>"
        shown = repr(self.snapshot()).partition(" ")[2]
        return f"<{type(self).__name__} {shown}"

    if not TYPE_CHECKING:  # for which a name that is missing is an error anyway

        def __getattr__(self, name: str) -> object:
            if not hasattr(Txn, name):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise AttributeError(
                f"a db has no {name!r}: its snapshot() is read, a transaction of its write() is "
                "read and written"
            )

    def dry_run(self) -> DryRun:
        """Changes tried over the current version: any number at a time, beside a writer too.

        However it ends, it publishes nothing. Left normally it keeps what it wrote, for `apply`.
        """
        return DryRun.over(self)

    def apply(self, txn: DryRun, timeout: float | None = None) -> int:
        """Publish what the dry run *txn* wrote as one commit on the current version, which is
        returned: the next one, even if nothing was written.

        A dry run that is still open is left first. Raises Conflict, whose `jobs` names them, when
        a job that it wrote or anything that it depends on is no longer as it was when it began;
        WriterBusy as `write` does; TxnClosed after `abort`, an exception or another `apply`;
        TypeError for what is no dry run, ValueError for one of another db; and what the checks
        of a transaction raise (a run that another job has by now, no slot left). Whatever it
        raises, nothing was published and it may be tried again.
        """
        if not isinstance(txn, DryRun):
            raise TypeError(
                f"only a dry run can be applied, got a {type(txn).__name__}; "
                "a writing transaction is published by its commit()"
            )
        return txn.replay_on(self, timeout)

    def check(self, reader: Reader) -> list[str]:
        """Every breach of INV-D1 to INV-D9 in *reader*, as sentences; none when all is well."""
        if not hasattr(reader, "contents"):
            raise TypeError(
                f"a snapshot or transaction is checked, got {reader!r}; pass a db's snapshot()"
            )
        return list(breaches(reader.contents(), self.config))


def _limit(most_jobs: object) -> int:
    """*most_jobs* as an int that the store can count to."""
    if not hasattr(most_jobs, "__index__"):
        raise TypeError(f"most_jobs is a whole number or None, got {most_jobs!r}")
    limit = int(most_jobs.__index__())
    if not 1 <= limit <= _MOST_JOBS:
        raise ValueError(f"most_jobs must be from 1 to {_MOST_JOBS}, got {limit}")
    return limit


def _assert_sound(config: SchedulingConfig, snapshot: Snapshot) -> None:
    """Raise AssertionError with every breach in *snapshot*, if there is one."""
    found = list(breaches(snapshot.contents(), config))
    if found:
        raise AssertionError(f"version {snapshot.version}: {'; '.join(found)}")
