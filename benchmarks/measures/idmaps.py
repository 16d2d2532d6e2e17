"""The index of ids beside the persistent maps: `immutables`, `rpds`, `pyrsistent`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import immutables
import numpy as np
from pyrsistent import pmap
from rpds import HashTrieMap

from measures.keys import ID_LENGTH, Keys
from measures.timing import Contender, Task, Work, timed
from pyresched.indices import IdIndex

__all__ = ["IdMaps"]

MISSING = object()
BATCH = 256
TXN = 1_000
# So many turns insert other ids each.
POOL = 16


class IdMaps:
    """Maps of *size* ids to integers, made when first asked for, and what is asked of them."""

    def __init__(self, size: int, *, lookups: int, inserts: int, loads: bool) -> None:
        self.size = size
        self.lookups = min(lookups, size) // BATCH * BATCH
        self.inserts = inserts
        self.loads = loads

    def tasks(self) -> list[Task]:
        """Every task at this size."""
        size = self.size
        tasks = [
            timed("get", size, self._gets(), per=self.lookups),
            timed("get_many(256)", size, self._batches(), per=self.lookups),
            timed("get_into(256)", size, self._buffers(), per=self.lookups),
            timed("one insert a version", size, self._inserts(), per=self.inserts),
            timed("transaction of 1,000 upserts", size, self._transactions(), per=TXN),
        ]
        if self.loads:
            loads = {name: self._load(name) for name in ("ours", "immutables", "rpds")}
            tasks.append(timed("bulk load of ids", size, loads, warm=False))
            tasks.append(timed("diff of 1,000 changes", size, self._diffs(), warm=False))
        return tasks

    @cached_property
    def keys(self) -> Keys:
        """The ids, and behind them those that are inserted."""
        return Keys(self.size + POOL * self.inserts)

    @cached_property
    def values(self) -> list[int]:
        """The same integers for everybody."""
        return list(range(self.size + POOL * self.inserts))

    @cached_property
    def full(self) -> dict[str, Any]:
        """Every map with all ids, by name."""
        return {name: self._loader(name)() for name in ("ours", "immutables", "rpds", "pyrsistent")}

    def _loader(self, name: str) -> Work:
        ids, values = self.keys.fresh(range(self.size)), self.values[: self.size]

        def ours() -> object:
            index = IdIndex()
            with index.write() as txn:
                txn.set_many(ids, values)
            return index

        def mutation() -> object:
            with immutables.Map().mutate() as changes:
                for id, value in zip(ids, values, strict=True):
                    changes[id] = value
                return changes.finish()

        return {
            "ours": ours,
            "immutables": mutation,
            "rpds": lambda: HashTrieMap(zip(ids, values, strict=True)),
            "pyrsistent": lambda: pmap(dict(zip(ids, values, strict=True))),
        }[name]

    def _load(self, name: str) -> Contender:
        @contextmanager
        def contender(turn: int) -> Iterator[Work]:
            del turn  # all ids each time
            yield self._loader(name)

        return contender

    def _picked(self, turn: int, size: int) -> list[str]:
        return self.keys.fresh(self.keys.pick(turn, size, below=self.size))

    def _getter(self, name: str) -> Callable[[str], object]:
        full = self.full[name]
        return (full.snapshot() if name == "ours" else full).get

    def _gets(self) -> dict[str, Contender]:
        def of(name: str) -> Contender:
            @contextmanager
            def contender(turn: int) -> Iterator[Work]:
                get, ids = self._getter(name), self._picked(turn, self.lookups)

                def work() -> None:
                    for id in ids:
                        get(id)

                yield work

            return contender

        return {name: of(name) for name in ("ours", "immutables")}

    def _batches(self) -> dict[str, Contender]:
        def batches(turn: int) -> list[list[str]]:
            ids = self._picked(turn, self.lookups)
            return [ids[n : n + BATCH] for n in range(0, len(ids), BATCH)]

        @contextmanager
        def ours(turn: int) -> Iterator[Work]:
            get_many, fresh = self.full["ours"].snapshot().get_many, batches(turn)

            def work() -> None:
                for ids in fresh:
                    get_many(ids)

            yield work

        @contextmanager
        def loop(turn: int) -> Iterator[Work]:
            get, fresh = self._getter("immutables"), batches(turn)

            def work() -> None:
                for ids in fresh:
                    [get(id) for id in ids]

            yield work

        return {"ours": ours, "immutables": loop}

    def _buffers(self) -> dict[str, Contender]:
        """Ids that come as a buffer and values that go into one; the rival cannot use either."""

        @contextmanager
        def ours(turn: int) -> Iterator[Work]:
            get_into, ids = self.full["ours"].snapshot().get_into, self._picked(turn, self.lookups)
            cells = np.array(ids, dtype=f"S{ID_LENGTH}")
            batches = [cells[n : n + BATCH] for n in range(0, len(ids), BATCH)]
            out = np.empty(BATCH, dtype=np.int64)

            def work() -> None:
                for batch in batches:
                    get_into(batch, out)

            yield work

        return {"ours": ours, "immutables": self._batches()["immutables"]}

    def _inserts(self) -> dict[str, Contender]:
        def new(turn: int) -> tuple[list[str], list[int]]:
            first = self.size + turn % POOL * self.inserts
            numbers = range(first, first + self.inserts)
            return self.keys.fresh(numbers), self.values[first : first + self.inserts]

        @contextmanager
        def ours(turn: int) -> Iterator[Work]:
            index, (ids, values) = self.full["ours"], new(turn)

            def work() -> None:
                for id, value in zip(ids, values, strict=True):
                    index.set(id, value)

            yield work
            with index.write() as txn:
                txn.delete_many(ids)

        def of(name: str) -> Contender:
            @contextmanager
            def contender(turn: int) -> Iterator[Work]:
                full, (ids, values) = self.full[name], new(turn)

                def insert() -> None:
                    current = full
                    for id, value in zip(ids, values, strict=True):
                        current = current.insert(id, value)

                def set_() -> None:
                    current = full
                    for id, value in zip(ids, values, strict=True):
                        current = current.set(id, value)

                yield insert if name == "rpds" else set_

            return contender

        return {"ours": ours, **{name: of(name) for name in ("immutables", "rpds", "pyrsistent")}}

    def _transactions(self) -> dict[str, Contender]:
        @contextmanager
        def ours(turn: int) -> Iterator[Work]:
            index, ids, values = self.full["ours"], self._picked(turn, TXN), self.values[:TXN]

            def work() -> None:
                with index.write() as txn:
                    txn.set_many(ids, values)

            yield work

        @contextmanager
        def mutation(turn: int) -> Iterator[Work]:
            full, ids, values = self.full["immutables"], self._picked(turn, TXN), self.values[:TXN]

            def work() -> object:
                with full.mutate() as changes:
                    for id, value in zip(ids, values, strict=True):
                        changes[id] = value
                    return changes.finish()

            yield work

        return {"ours": ours, "immutables": mutation}

    def _diffs(self) -> dict[str, Contender]:
        @contextmanager
        def ours(turn: int) -> Iterator[Work]:
            index, ids = self.full["ours"], self._picked(turn, TXN)
            old = index.snapshot()
            with index.write() as txn:
                txn.set_many(ids, [-1 - turn] * len(ids))
            new = index.snapshot()
            yield lambda: new.diff(old)

        @contextmanager
        def compare(turn: int) -> Iterator[Work]:
            old, ids = self.full["immutables"], self._picked(turn, TXN)
            new = old.update(dict.fromkeys(ids, -1 - turn))
            yield lambda: differences(new, old)

        return {"ours": ours, "immutables": compare}


def differences(
    new: "immutables.Map[str, int]", old: "immutables.Map[str, int]"
) -> tuple[list[str], list[str], list[str]]:
    """Ids changed, added and removed: every entry looked at, as there is no other way."""
    was = old.get
    differ = [(id, was(id, MISSING)) for id, value in new.items() if was(id, MISSING) != value]
    added = [id for id, before in differ if before is MISSING]
    changed = [id for id, before in differ if before is not MISSING]
    alike = len(new) - len(added) == len(old)
    return changed, added, [] if alike else [id for id in old if id not in new]
