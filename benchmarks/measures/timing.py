"""Turns of timed work: contenders alternate in one process, each with input nobody has touched.

A figure is the median of at least seven turns. Each task runs twice, without the garbage
collector and with it, because half of what a rival costs may be the collector's time. The clock
is the processor time of this thread: what else the machine does counts for nobody.
"""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from statistics import median
from time import thread_time_ns

__all__ = ["NS", "REPETITIONS", "Contender", "Reading", "Task", "Work", "medians", "timed", "turns"]

REPETITIONS = 7
NS = 1e-9

Work = Callable[[], object]
# Called with the number of the turn, it prepares fresh input, gives the work to be timed, and
# puts things back behind it.
Contender = Callable[[int], AbstractContextManager[Work]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was measured of ours and of one rival; `*_collecting`: with the garbage collector on.

    In seconds for one operation, bytes for one job, or calls a second, as `unit` says.
    """

    kind: str
    size: int
    rival: str
    ours: float
    theirs: float
    ours_collecting: float | None = None
    theirs_collecting: float | None = None
    unit: str = "s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Something to measure at one size: `measure(repetitions)` gives its readings."""

    kind: str
    size: int
    rivals: tuple[str, ...]
    measure: Callable[[int], Sequence[Reading]]


def turns(contenders: Mapping[str, Contender], count: int) -> Iterator[tuple[int, str]]:
    """Who goes when: everybody once a turn, each turn begun by another."""
    names = list(contenders)
    for turn in range(count):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            yield turn, name


def medians(
    contenders: Mapping[str, Contender], *, repetitions: int, collecting: bool, warm: bool = False
) -> dict[str, float]:
    """The median time of each contender in seconds.

    *warm*: each turn follows one of the same contender that is not counted, on other input, so
    that a small structure is as near as it is to a program that works with it all the time, and
    not where the other contenders have left it.
    """
    taken: dict[str, list[int]] = {name: [] for name in contenders}
    # No turn of the second pass repeats the input of the first.
    offset = repetitions if collecting else 0
    with _collector(on=collecting):
        for turn, name in turns(contenders, repetitions):
            if warm:
                with contenders[name](-1 - turn - offset) as work:
                    work()
            with contenders[name](turn + offset) as work:
                began = thread_time_ns()
                result = work()
                taken[name].append(thread_time_ns() - began)
                del result, work
    return {name: median(each) * NS for name, each in taken.items()}


@contextmanager
def _collector(*, on: bool) -> Iterator[None]:
    was = gc.isenabled()
    gc.collect()
    (gc.enable if on else gc.disable)()
    try:
        yield
    finally:
        (gc.enable if was else gc.disable)()


def timed(
    kind: str,
    size: int,
    contenders: Mapping[str, Contender],
    *,
    per: float | Mapping[str, float] = 1,
    warm: bool = True,
) -> Task:
    """A task of which `ours` and each rival do *per* operations a turn; *warm* as in `medians`.

    A rival that takes too long may do fewer: then *per* says how many each does.
    """
    rivals = tuple(name for name in contenders if name != "ours")
    each = per if isinstance(per, Mapping) else dict.fromkeys(contenders, per)

    def measure(repetitions: int) -> list[Reading]:
        off = medians(contenders, repetitions=repetitions, collecting=False, warm=warm)
        on = medians(contenders, repetitions=repetitions, collecting=True, warm=warm)
        return [
            Reading(
                kind=kind,
                size=size,
                rival=rival,
                ours=off["ours"] / each["ours"],
                theirs=off[rival] / each[rival],
                ours_collecting=on["ours"] / each["ours"],
                theirs_collecting=on[rival] / each[rival],
            )
            for rival in rivals
        ]

    return Task(kind=kind, size=size, rivals=rivals, measure=measure)
