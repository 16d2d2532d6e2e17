"""Readers in threads: two beside each other, and one beside a writer that commits all the time.

A reader has a snapshot of its own and asks for columns of many jobs a call, which runs without
the interpreter's lock; figures are jobs read in a second by the clock on the wall.
"""

import gc
import threading
from collections.abc import Callable
from functools import cached_property
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from measures.jobdbs import TXN, loaded
from measures.jobs import JobColumns, leased
from measures.keys import ID_LENGTH
from measures.timing import Reading, Task

__all__ = ["Readers"]

NAMES = ("state", "priority", "submitted_at")
CHANGES_A_COMMIT = 100
CALLS = 3


class Readers:
    """Ours with *count* jobs; a call reads *asked* of them, in random order."""

    def __init__(self, count: int, *, asked: int) -> None:
        self.count = count
        self.asked = asked

    def tasks(self) -> list[Task]:
        """What threads get out of a second core."""
        kinds = {
            "two readers without the lock": ("one reader", self._two),
            "a reader while a writer commits": ("alone", self._beside_a_writer),
        }
        return [
            Task(
                kind=kind,
                size=self.count,
                rivals=(rival,),
                measure=self._measure(kind, rival, ways),
            )
            for kind, (rival, ways) in kinds.items()
        ]

    @cached_property
    def db(self) -> Any:
        """With every job."""
        return loaded("ours", self.columns)

    @cached_property
    def columns(self) -> JobColumns:
        """The jobs."""
        return JobColumns(self.count)

    def _measure(
        self, kind: str, rival: str, way: Callable[[], float]
    ) -> Callable[[int], list[Reading]]:
        """Alternates *way* with a reader alone."""

        def measure(repetitions: int) -> list[Reading]:
            self._read(self._ids(), 1)  # makes the db, wakes the core
            gc.collect()
            rates: tuple[list[float], list[float]] = ([], [])
            for turn in range(repetitions):
                for which in (0, 1) if turn % 2 else (1, 0):
                    rates[which].append((way, self._alone)[which]())
            ours, theirs = map(median, rates)
            return [
                Reading(
                    kind=kind,
                    size=self.count,
                    rival=rival,
                    ours=ours,
                    theirs=theirs,
                    unit="/s",
                )
            ]

        return measure

    def _ids(self) -> Any:
        """A buffer of *asked* ids in random order that nobody has read yet."""
        ids = np.array(self.columns.keys.fresh(range(self.count)), dtype=f"S{ID_LENGTH}")
        order = np.random.default_rng(self.asked).permutation(max(self.asked, self.count))
        return ids[order[: self.asked] % self.count]

    def _read(self, ids: Any, calls: int) -> None:
        snapshot = self.db.snapshot()
        for _ in range(calls):
            snapshot.columns(*NAMES, ids=ids)

    def _alone(self) -> float:
        return self._rate(1)

    def _two(self) -> float:
        return self._rate(2)

    def _rate(self, readers: int) -> float:
        """Jobs read a second by *readers* threads that start together."""
        gate = threading.Barrier(readers + 1)

        def run(ids: Any) -> None:
            gate.wait()
            self._read(ids, CALLS)

        threads = [threading.Thread(target=run, args=(self._ids(),)) for _ in range(readers)]
        for thread in threads:
            thread.start()
        gate.wait()
        began = perf_counter()
        for thread in threads:
            thread.join()
        return readers * CALLS * self.asked / (perf_counter() - began)

    def _beside_a_writer(self) -> float:
        """Jobs read a second while another thread leases 100 jobs a commit and takes them back."""
        stop = threading.Event()
        was = self.columns.of("ours", range(min(self.count, 10 * TXN)))
        there = [leased(job, n) for n, job in enumerate(was)]
        batches = [
            jobs[n : n + CHANGES_A_COMMIT]
            for n in range(0, len(was), CHANGES_A_COMMIT)
            for jobs in (there, was)
        ]

        def write() -> None:
            while not stop.is_set():
                for jobs in batches:
                    with self.db.write() as txn:
                        txn.upsert_many(jobs)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            return self._rate(1)
        finally:
            stop.set()
            writer.join()
