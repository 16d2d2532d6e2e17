"""The ordered index beside `sortedcontainers`, which keeps no versions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

from sortedcontainers import SortedDict, SortedList

from measures.timing import Contender, Task, Work, timed
from pyresched.indices import OrderedIndex
from workloads import spread

__all__ = ["Orders"]

Key = tuple[int, int, int]
POOL = 16
NAMES = ("ours", "SortedDict", "SortedList")


class Orders:
    """Ordered structures of *size* keys, made when first asked for, and what is done to them."""

    def __init__(self, size: int, *, changes: int) -> None:
        self.size = size
        self.changes = min(changes, size // 4)

    def tasks(self) -> list[Task]:
        """Every task at this size."""
        kinds = {
            "ordered add": self._add,
            "ordered remove": self._remove,
            "ordered pop of the first": self._pop,
            "pop of the first, one a version": partial(self._pop, versions=True),
        }
        return [
            timed(kind, self.size, {name: of(name) for name in NAMES}, per=self.changes)
            for kind, of in kinds.items()
        ]

    @cached_property
    def full(self) -> dict[str, Any]:
        """Every structure with all keys, by name."""
        keys = order_keys(0, self.size)
        index = OrderedIndex()
        with index.write() as txn:
            txn.add_many(keys, range(self.size))
        return {
            "ours": index,
            "SortedDict": SortedDict(zip(keys, range(self.size), strict=True)),
            "SortedList": SortedList([(*key, n) for n, key in enumerate(keys)]),
        }

    def _new_keys(self, turn: int) -> list[Key]:
        return order_keys(self.size + turn % POOL * self.changes, self.changes)

    def _add(self, name: str) -> Contender:
        @contextmanager
        def contender(turn: int) -> Iterator[Work]:
            yield _adding(name, self.full[name], self._new_keys(turn))
            _removing(name, self.full[name], self._new_keys(turn))()

        return contender

    def _remove(self, name: str) -> Contender:
        @contextmanager
        def contender(turn: int) -> Iterator[Work]:
            _adding(name, self.full[name], self._new_keys(turn))()
            yield _removing(name, self.full[name], self._new_keys(turn))

        return contender

    def _pop(self, name: str, *, versions: bool = False) -> Contender:
        """A queue drained from its head: ours in one transaction, or in a version each."""

        @contextmanager
        def contender(turn: int) -> Iterator[Work]:
            del turn  # the first are the first
            full, popped = self.full[name], []

            def pop_all(pop: Callable[[], object]) -> None:
                popped.extend([pop() for _ in range(self.changes)])

            def drain() -> None:
                with full.write() as txn:
                    pop_all(txn.pop_first)

            yield {
                "ours": lambda: pop_all(full.pop_first) if versions else drain(),
                "SortedDict": lambda: pop_all(partial(full.popitem, 0)),
                "SortedList": lambda: pop_all(partial(full.pop, 0)),
            }[name]
            if name == "ours":
                with full.write() as txn:
                    txn.add_many([key for key, _ in popped], [value for _, value in popped])
            else:
                full.update(popped)

        return contender


def order_keys(first: int, count: int) -> list[Key]:
    """Class rank, job priority, time: few of the first two, so that the last decides."""
    return [(spread(n) % 3, spread(~n) % 100, spread(n) >> 20) for n in range(first, first + count)]


def _adding(name: str, full: Any, keys: list[Key]) -> Work:
    def ours() -> None:
        for n, key in enumerate(keys):
            full.add(key, n)

    def sorted_dict() -> None:
        for n, key in enumerate(keys):
            full[key] = n

    def sorted_list() -> None:
        for entry in entries:
            full.add(entry)

    entries = [(*key, n) for n, key in enumerate(keys)]
    return {"ours": ours, "SortedDict": sorted_dict, "SortedList": sorted_list}[name]


def _removing(name: str, full: Any, keys: list[Key]) -> Work:
    def ours() -> None:
        for key in keys:
            full.remove(key)

    def sorted_dict() -> None:
        for key in keys:
            del full[key]

    def sorted_list() -> None:
        for entry in entries:
            full.remove(entry)

    entries = [(*key, n) for n, key in enumerate(keys)]
    return {"ours": ours, "SortedDict": sorted_dict, "SortedList": sorted_list}[name]
