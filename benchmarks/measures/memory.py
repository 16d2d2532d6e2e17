"""Memory and the garbage collector, each measured in a process of its own.

    python -m measures.memory ours fresh 100000 0

The child prints one line of JSON. Dbs are filled in batches, so that what is left is what they
keep; `malloc_trim` gives back what the allocator holds free. Reads /proc: Linux only.
"""

import ctypes
import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import thread_time_ns
from typing import Any

from measures.jobdbs import LOAD, MAKERS
from measures.jobs import JobColumns, leased, tried_once
from measures.keys import Keys
from measures.timing import NS, Reading, Task

__all__ = ["Memory"]

BENCHMARKS = Path(__file__).parents[1]
COLLECTIONS = 7
NODES = 1_000


class Memory:
    """What a job costs, and what a reader that stays holds back."""

    def __init__(self, count: int, *, commits: int) -> None:
        self.count = count
        self.commits = commits
        self._children: dict[tuple[str, str], dict[str, float]] = {}

    def tasks(self) -> list[Task]:
        """Each starts the processes that it needs and none has started yet."""

        def task(
            kind: str, rival: str, unit: str, figures: Callable[[], tuple[float, float]]
        ) -> Task:
            def measure(repetitions: int) -> list[Reading]:
                del repetitions  # resident pages do not vary as time does
                ours, theirs = figures()
                return [
                    Reading(
                        kind=kind,
                        size=self.count,
                        rival=rival,
                        ours=ours,
                        theirs=theirs,
                        unit=unit,
                    )
                ]

            return Task(kind=kind, size=self.count, rivals=(rival,), measure=measure)

        return [
            task("memory a job, no runs yet", "python", "B", lambda: self._pair("fresh", "bytes")),
            task(
                "memory a job, one run and a tracker",
                "python",
                "B",
                lambda: self._pair("tried", "bytes"),
            ),
            task("tracked objects a job", "python", "", lambda: self._pair("tried", "tracked")),
            task("gc.collect() with all jobs", "no job", "s", self._collections),
            task("snapshot held over commits", "two versions", "B", lambda: self._held(0)),
            task("snapshot held, then dropped", "one version", "B", lambda: self._held(1)),
        ]

    def _pair(self, what: str, figure: str) -> tuple[float, float]:
        return self._child("ours", what)[figure], self._child("python", what)[figure]

    def _collections(self) -> tuple[float, float]:
        child = self._child("ours", "tried")
        return child["after_s"], child["before_s"]

    def _held(self, dropped: int) -> tuple[float, float]:
        figure = "dropped" if dropped else "held"
        return self._child("ours", "singly")[figure], self._child("ours", "at once")[figure]

    def _child(self, who: str, what: str) -> dict[str, float]:
        if (who, what) not in self._children:
            command = [sys.executable, "-m", "measures.memory", who, what, self.count, self.commits]
            run = subprocess.run(
                [str(each) for each in command],
                cwd=BENCHMARKS,
                stdout=subprocess.PIPE,
                check=True,
                text=True,
            )
            self._children[who, what] = json.loads(run.stdout)
        return self._children[who, what]


def resident() -> int:
    """Bytes of this process in memory, once the allocator has given back what is free."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def collection_s() -> float:
    """The median time of a full collection."""
    taken = []
    for _ in range(COLLECTIONS):
        began = thread_time_ns()
        gc.collect()
        taken.append(thread_time_ns() - began)
    return median(taken) * NS


def a_job(who: str, count: int, *, tried: bool) -> dict[str, float]:
    """What each of *count* jobs adds: bytes, tracked objects, time of a collection."""
    columns = JobColumns(count)
    columns.of(who, range(1))
    run_ids = Keys(count) if tried else None
    nodes = [f"node-{n:04}" for n in range(NODES)]
    db = MAKERS[who]()
    before_s, tracked, base = collection_s(), len(gc.get_objects()), resident()
    for first in range(0, count, LOAD):
        numbers = range(first, min(first + LOAD, count))
        jobs = columns.of(who, numbers)
        if run_ids is not None:
            names = [nodes[n % NODES] for n in numbers]
            ids = run_ids.fresh(reversed(numbers))
            jobs = [tried_once(*each) for each in zip(jobs, ids, names, strict=True)]
            del ids, names
        with db.write() as txn:
            txn.upsert_many(jobs)
        del jobs, txn
    bytes_ = (resident() - base) / count
    return {
        "bytes": bytes_,
        "before_s": before_s,
        "after_s": collection_s(),
        "tracked": (len(gc.get_objects()) - tracked) / count,
    }


def held(who: str, count: int, commits: int, *, at_once: bool) -> dict[str, float]:
    """Bytes of a db while a snapshot from before *commits* changes lives, and after its end."""
    columns = JobColumns(count)
    columns.of(who, range(1))
    numbers = columns.keys.pick(0, commits, below=count)
    db = MAKERS[who]()
    base = resident()
    for first in range(0, count, LOAD):
        with db.write() as txn:
            txn.upsert_many(columns.of(who, range(first, min(first + LOAD, count))))
    snapshot = db.snapshot()
    if at_once:
        changes = [leased(job, n) for n, job in enumerate(columns.of(who, numbers))]
        with db.write() as txn:
            txn.upsert_many(changes)
        del changes
    else:
        for turn, n in enumerate(numbers):
            (job,) = columns.of(who, (n,))
            with db.write() as txn:
                txn.upsert(leased(job, turn))
        del job
    del txn
    with_both = resident() - base
    assert snapshot.version < db.version
    del snapshot
    # What was kept for the reader goes with the commit after it.
    db.write().commit()
    return {"held": with_both, "dropped": resident() - base}


def main(who: str, what: str, count: int, commits: int) -> dict[str, float]:
    """What the child reports."""
    gc.disable()  # it would make nothing smaller, and what it takes is measured by itself
    ways: dict[str, Callable[[], Any]] = {
        "fresh": lambda: a_job(who, count, tried=False),
        "tried": lambda: a_job(who, count, tried=True),
        "singly": lambda: held(who, count, commits, at_once=False),
        "at once": lambda: held(who, count, commits, at_once=True),
    }
    return ways[what]()


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
