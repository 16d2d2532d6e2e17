"""`JobDb`: the native store under one configuration.

Owns what a configuration means to the store: classes by name, legal transitions, checks at
each commit when `PYRESCHED_CHECK=all`.
"""

import os

from pyresched._core import JobStore, Reader, Snapshot
from pyresched.config import SchedulingConfig
from pyresched.jobdb.check import breaches
from pyresched.model import NEXT

__all__ = ["JobDb"]


class JobDb(JobStore):
    """Jobs by id, run, gang, queue and state, in versions.

    `with db.write() as txn` changes them, `db.snapshot()` reads them as they are, and
    `db.dry_run()` tries changes that are never seen. *seed* (16 bytes) and *hash_bits* fix the
    hash of the id indices, so that tests can make ids collide; *most_jobs* bounds the store.
    """

    def __init__(
        self,
        config: SchedulingConfig | None = None,
        *,
        seed: bytes | None = None,
        hash_bits: int = 32,
        most_jobs: int | None = None,
    ) -> None:
        self.config = SchedulingConfig() if config is None else config
        super().__init__(
            {each.name: each.priority for each in self.config.priority_classes},
            NEXT,
            seed=seed,
            hash_bits=hash_bits,
            most_jobs=most_jobs,
            after_commit=self._assert_sound if os.environ.get("PYRESCHED_CHECK") == "all" else None,
        )

    def check(self, reader: Reader) -> list[str]:
        """Every breach of INV-1 to INV-9 in *reader*, as sentences; none when all is well."""
        return list(breaches(reader.contents(), self.config))

    def _assert_sound(self, snapshot: Snapshot) -> None:
        found = self.check(snapshot)
        if found:
            raise AssertionError(f"version {snapshot.version}: {'; '.join(found)}")
