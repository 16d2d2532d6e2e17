"""What indices, both dbs, rounds, retries and fairness must reach beside rivals: measures, prints, judges.

    python benchmarks/gates.py                   a million ids and jobs; half an hour
    python benchmarks/gates.py --quick           what CI runs: smaller, within four minutes
    python benchmarks/gates.py --only get_many   what matches a pattern
    python benchmarks/gates.py --json FILE       the figures as JSON besides

Everything is asked through what users import. Ratios of one run, ours and the rival taking
turns on fresh input, judged with the garbage collector off and shown with it on. 1 if a gate
is missed or two place the same job differently, 2 for arguments that cannot be used and where a
C++ compiler is missing. `ratios.py` judges the pytest benchmarks.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console

from measures.cluster import Mismatch
from measures.costs import Costs
from measures.holding import Gangs, Holding
from measures.idmaps import IdMaps
from measures.jobdbs import GangDbs, JobDbs, JobLoads
from measures.memory import Memory
from measures.orders import Orders
from measures.placing import Placing, PlacingElsewhere
from measures.readers import Readers
from measures.retries import Retries
from measures.rounds import BesidePython, InRacks, NoneFits, OntoEmpty, OverFull
from measures.table import Gate, Sense, amount, as_json, failed, rows, show
from measures.timing import REPETITIONS, Reading, Task
from rivals.ordered_walk import NoCompiler

MILLION = 1_000_000
WIDTH = 160  # where the output is no terminal
US = 1e-6
MS = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much is measured."""

    name: str
    ids: tuple[int, ...]
    keys: tuple[int, ...]
    jobs: int
    lookups: int  # a turn
    changes: int  # a turn
    commits: int  # beside a snapshot that stays
    asked: int  # jobs that a reader asks for in one call
    placed: int  # jobs of the placement lines
    nodes: int  # on which they are placed
    many_nodes: int
    held_nodes: int  # with 32 jobs on each
    gang_nodes: int  # with 32 cores
    full_nodes: tuple[int, ...]  # nearly
    round_jobs: int
    round_queues: int
    round_nodes: int
    round_many_nodes: int
    round_full_nodes: int  # with 32 jobs on each
    round_gangs: int  # of 32, on as many nodes
    round_compared: int  # jobs that Python places too
    queues: tuple[int, ...] = (10, 100, 1_000)
    repetitions: int = REPETITIONS


FULL = Scale(
    name="full",
    ids=(10_000, 100_000, MILLION),
    keys=(1_000, 10_000, 100_000, MILLION),
    jobs=MILLION,
    lookups=20_000,
    changes=1_000,
    commits=10_000,
    asked=2 * MILLION,
    placed=MILLION,
    nodes=10_000,
    many_nodes=100_000,
    held_nodes=10_000,
    gang_nodes=1_000,
    full_nodes=(1_000, 10_000),
    round_jobs=MILLION,
    round_queues=1_000,
    round_nodes=10_000,
    round_many_nodes=100_000,
    round_full_nodes=10_000,
    round_gangs=1_000,
    round_compared=50_000,
)
QUICK = Scale(
    name="quick",
    ids=(10_000, 100_000),
    keys=(1_000, 10_000, 100_000),
    jobs=50_000,
    lookups=10_000,
    changes=1_000,
    commits=10_000,
    asked=500_000,
    placed=100_000,
    nodes=10_000,
    many_nodes=100_000,
    held_nodes=2_000,
    gang_nodes=1_000,
    full_nodes=(1_000, 10_000),
    round_jobs=30_000,
    round_queues=30,
    round_nodes=300,
    round_many_nodes=3_000,
    round_full_nodes=200,
    round_gangs=100,
    round_compared=10_000,
)

Sizes = tuple[tuple[int, float, float], ...]
IDS = (10_000, 100_000, MILLION)


def _at(kind: str, rival: str, *limits: tuple[float, float]) -> list[Gate]:
    """A gate and a goal for each of 1e4, 1e5 and 1e6."""
    return [
        Gate(kind=kind, rival=rival, gate=gate, goal=goal, at=size)
        for size, (gate, goal) in zip(IDS, limits, strict=True)
    ]


INDEX_GATES = (
    Gate(kind="bulk load of ids", rival="immutables", gate=3, goal=5, at=MILLION),
    Gate(kind="bulk load of ids", rival="rpds", gate=2.5, goal=4.5, at=MILLION),
    *_at("get", "immutables", (1.0, 1.6), (1.4, 2.2), (1.0, 1.6)),
    *_at("get_many(256)", "immutables", (2.5, 4), (5, 8), (9, 16)),
    *_at("get_into(256)", "immutables", (2.5, 13), (5, 36), (9, 40)),
    *_at("one insert a version", "immutables", (2, 4), (2, 3.5), (3, 5)),
    Gate(kind="one insert a version", rival="rpds", gate=6, goal=10),
    Gate(kind="one insert a version", rival="pyrsistent", gate=4, goal=8),
    *_at("transaction of 1,000 upserts", "immutables", (2, 3), (2.5, 4), (3.5, 6)),
    Gate(kind="ordered add", rival="SortedDict", gate=4, goal=6),
    Gate(kind="ordered add", rival="SortedList", gate=2.5, goal=4.3),
    Gate(kind="ordered remove", rival="SortedDict", gate=4, goal=6),
    Gate(kind="ordered remove", rival="SortedList", gate=2.5, goal=4.3),
    Gate(kind="ordered pop of the first", rival="SortedDict", gate=4, goal=6.5),
    Gate(kind="ordered pop of the first", rival="SortedList", gate=2, goal=3.3),
    Gate(kind="pop of the first, one a version", rival="SortedDict", gate=2, goal=4),
    Gate(kind="pop of the first, one a version", rival="SortedList", gate=1.2, goal=2),
    Gate(kind="diff of 1,000 changes", rival="immutables", gate=200, goal=1_000, at=MILLION),
)
_flat = partial(Gate, rival="1,000 jobs", sense=Sense.FLAT, gate=2, goal=1.1)
_short = partial(Gate, rival="1,000 jobs", sense=Sense.MOST, gate=2 * US, goal=0.3 * US, at=MILLION)
_small = partial(Gate, rival="python", sense=Sense.MOST, at=MILLION)
EMPTY_COMMITS = ("write() and empty commit", "empty commit, all in gangs of 2")
WALKS = ("walk of a queue in a pool", "walk that reads a field of each")
# Gates of a million jobs; `WIDE` has those of fewer, where a rival waits less for memory.
JOB_GATES = (
    Gate(kind="upsert_many of Job values", rival="python", gate=3, goal=8),
    Gate(kind="upsert from columns", rival="python", gate=6, goal=20, at=MILLION),
    Gate(kind="one-job transaction", rival="python", gate=1.5, goal=4),
    Gate(kind="1,000 state changes a commit", rival="python", gate=3, goal=6),
    Gate(kind="1,000 jobs read, changed, put back", rival="python", gate=3, goal=6),
    Gate(kind="get of a job", rival="python", gate=0.8, goal=1.3),
    Gate(kind="get_many(256) of jobs", rival="python", gate=4, goal=10, at=MILLION),
    *(
        Gate(kind=kind, rival=rival, gate=1.5, goal=3, at=MILLION)
        for kind in WALKS
        for rival in ("python", "python, one lane a queue")
    ),
    *(limit(kind=kind) for kind in ("snapshot()", *EMPTY_COMMITS) for limit in (_flat, _short)),
    _small(kind="memory a job, no runs yet", gate=256, goal=128),
    _small(kind="memory a job, one run and a tracker", gate=450, goal=250),
    Gate(
        kind="tracked objects a job",
        rival="python",
        sense=Sense.MOST,
        gate=0.01,
        goal=0.001,
    ),
    Gate(
        kind="gc.collect() with all jobs",
        rival="no job",
        sense=Sense.FLAT,
        gate=1.5,
        goal=1.05,
    ),
    Gate(
        kind="snapshot held over commits",
        rival="two versions",
        sense=Sense.FLAT,
        gate=1.5,
        goal=1.1,
    ),
    Gate(
        kind="snapshot held, then dropped",
        rival="one version",
        sense=Sense.FLAT,
        gate=1.2,
        goal=1.05,
    ),
    Gate(
        kind="two readers without the lock",
        rival="one reader",
        sense=Sense.GAIN,
        gate=1.6,
        goal=1.9,
        at=MILLION,
    ),
    Gate(
        kind="a reader while a writer commits",
        rival="alone",
        sense=Sense.GAIN,
        gate=0.75,
        goal=0.95,
        at=MILLION,
    ),
)
_most = partial(Gate, sense=Sense.MOST)
_itself = partial(Gate, sense=Sense.FLAT)
NODE_GATES = (
    Gate(kind="placement of 50 shapes", rival="ordered walk", gate=15, goal=40),
    Gate(kind="placement of 50 shapes", rival="SortedList", gate=50, goal=100),
    Gate(kind="placement of 50 shapes", rival="numpy", gate=200, goal=500),
    _most(kind="placement of 50 shapes", rival="ordered walk", gate=1 * US, goal=0.3 * US),
    _itself(kind="placement on many nodes", rival="on fewer", gate=3, goal=1.8),
    _itself(kind="placement, 8 levels in use", rival="1 level", gate=8, goal=5),
    _itself(kind="placement, 50 levels in use", rival="1 level", gate=40, goal=20),
    _itself(kind="placement, 49 levels not in use", rival="1 level", gate=1.3, goal=1.05),
    _itself(kind="placement, cores against memory", rival="balanced", gate=3, goal=1.5),
    _itself(kind="placement, each short of another", rival="balanced", gate=3, goal=1.5),
    Gate(kind="fork, and one placement", rival="anew", gate=20, goal=100),
    Gate(kind="alike jobs in a batch", rival="one by one", gate=5, goal=10),
    _most(
        kind="gang of one-core jobs, taken back",
        rival="ordered walk",
        gate=60 * MS,
        goal=20 * MS,
        at=32_000,
    ),
    _most(
        kind="as many jobs as nearly full nodes",
        rival="ordered walk",
        gate=150 * MS,
        goal=30 * MS,
        at=10_000,
    ),
    _most(kind="build with jobs bound", rival="one by one", gate=1, goal=0.3, at=320_000),
)
ROUND_GATES = (
    _itself(kind="round with a hook a queue", rival="no hook", gate=1.1, goal=1.02),
    _itself(kind="round with a hook a job", rival="no hook", gate=2.5, goal=1.7),
    _most(kind="round, committed", rival="not committed", gate=3, goal=1, at=MILLION),
    _most(
        kind="round on many nodes, committed",
        rival="not committed",
        gate=4,
        goal=1.5,
        at=MILLION,
    ),
    _most(kind="get while a round runs, 99 of 100", rival="alone", gate=5 * MS, goal=0.5 * MS),
    _most(
        kind="round of a full cluster",
        rival="none above its share",
        gate=3,
        goal=1,
        at=320_000,
    ),
    _most(kind="round in which none fits", rival="none queued", gate=0.5, goal=0.1, at=MILLION),
    _most(kind="round of gangs in one rack each", rival="lone jobs", gate=1, goal=0.2, at=32_000),
    Gate(kind="round, for a placed job", rival="python", gate=50, goal=100, at=50_000),
)
_verdict = partial(Gate, kind="verdict of a failed run", rival="one by one")
RETRY_GATES = (
    _verdict(gate=15, goal=40),
    _verdict(sense=Sense.MOST, gate=0.5 * US, goal=0.2 * US, at=MILLION),
)
WIDE = (
    Gate(kind="bulk load of ids", rival="immutables", gate=2, goal=5),
    Gate(kind="bulk load of ids", rival="rpds", gate=1.5, goal=4.5),
    Gate(kind="diff of 1,000 changes", rival="immutables", gate=8, goal=100),
    Gate(kind="upsert from columns", rival="python", gate=3, goal=10),
    Gate(kind="get_many(256) of jobs", rival="python", gate=2, goal=6),
    Gate(kind="walk of a queue in a pool", rival="python", gate=0.4, goal=1.5),
    _most(kind="round, committed", rival="not committed", gate=0.3, goal=0.05),
    _most(kind="round on many nodes, committed", rival="not committed", gate=0.3, goal=0.05),
    _most(kind="round of a full cluster", rival="none above its share", gate=0.3, goal=0.05),
    _most(kind="round in which none fits", rival="none queued", gate=0.05, goal=0.005),
    _most(kind="round of gangs in one rack each", rival="lone jobs", gate=0.2, goal=0.02),
    Gate(kind="round, for a placed job", rival="python", gate=10, goal=40),
    _small(kind="memory a job, no runs yet", gate=450, goal=200, at=None),
    _small(kind="memory a job, one run and a tracker", gate=900, goal=400, at=None),
)
COST_GATES = tuple(
    Gate(kind="costs of all queues", rival="numpy", gate=gate, goal=goal, at=queues)
    for queues, gate, goal in ((10, 2.5, 3.5), (100, 5, 8), (1_000, 10, 18))
)
GATES = (*INDEX_GATES, *JOB_GATES, *NODE_GATES, *ROUND_GATES, *RETRY_GATES, *COST_GATES, *WIDE)


def sections(scale: Scale) -> Iterator[Callable[[], Any]]:
    """What makes things to measure; each is dropped before the next is made."""
    for size in scale.ids:
        yield partial(
            IdMaps,
            size,
            lookups=scale.lookups,
            inserts=scale.changes,
            loads=size == scale.ids[-1],
        )
    for size in scale.keys:
        yield partial(Orders, size, changes=scale.changes)
    yield partial(JobLoads, scale.jobs)
    yield partial(JobDbs, scale.jobs, lookups=scale.lookups, singles=scale.changes)
    yield partial(GangDbs, scale.jobs)
    yield partial(Readers, scale.jobs, asked=scale.asked)
    yield partial(Memory, scale.jobs, commits=scale.commits)
    yield partial(Placing, scale.nodes, scale.placed)
    yield partial(PlacingElsewhere, scale.nodes, scale.placed, many=scale.many_nodes)
    yield partial(Holding, scale.held_nodes)
    yield partial(Gangs, scale.gang_nodes, full=scale.full_nodes, alike=scale.nodes)
    jobs, queues, nodes = scale.round_jobs, scale.round_queues, scale.round_nodes
    many = scale.round_many_nodes
    yield partial(OntoEmpty, jobs, queues=queues, nodes=nodes)
    yield partial(OntoEmpty, jobs, queues=queues, nodes=many, where=" on many nodes")
    yield partial(OverFull, scale.round_full_nodes)
    yield partial(NoneFits, jobs, queues=queues, nodes=nodes)
    yield partial(InRacks, scale.round_gangs, nodes=scale.round_gangs)
    yield partial(BesidePython, scale.round_compared)
    yield partial(Retries, scale.jobs)
    for queues in scale.queues:
        yield partial(Costs, queues)


def measured(
    scale: Scale,
    wanted: Callable[[Task], bool],
    gates: Sequence[Gate],
    say: Callable[[str], object],
) -> tuple[list[Task], list[Reading]]:
    """The wanted tasks in order, and what came of them.

    What misses a gate is measured once more, and the second time counts: a machine that did
    something else for a while should not be what a gate finds.
    """
    tasks, readings = list[Task](), list[Reading]()
    for make in sections(scale):
        for task in filter(wanted, make().tasks()):
            # Without its way to measure, lest it keep all that it measured on.
            tasks.append(replace(task, measure=lambda _: ()))
            say(name_of(task))
            found = task.measure(scale.repetitions)
            if failed(rows([task], found, gates, whole=False)):
                say(f"{name_of(task)}, once more")
                found = task.measure(scale.repetitions)
            # A long run that is stopped has still said what it found.
            for each in found:
                ours, theirs = amount(each.ours, each.unit), amount(each.theirs, each.unit)
                say(f"  ours {ours}, {each.rival} {theirs}")
            readings += found
    return tasks, readings


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Exit with 2."""
        self.exit(2, f"{self.prog}: {message}\n")


def name_of(task: Task) -> str:
    """What `--only` is held against."""
    return f"{task.kind} of {task.size}"


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """What was asked for. Exits with 2 when it cannot be."""
    parser = Parser(prog="gates.py", description="Gates of the indices and both dbs.")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, as CI runs it")
    parser.add_argument("--only", metavar="PATTERN", help="lines whose name matches (a regex)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures here too")
    parser.add_argument(
        "--slack",
        metavar="FACTOR",
        type=float,
        default=1.0,
        help="how much worse than its gate a line may be on a machine that others use too",
    )
    chosen = parser.parse_args(given)
    chosen.scale = QUICK if chosen.quick else FULL
    if not 1 <= chosen.slack <= 10:
        parser.error(f"--slack {chosen.slack} is not from 1 to 10")
    try:
        chosen.pattern = re.compile(chosen.only or "", re.IGNORECASE)
    except re.error as error:
        parser.error(f"--only {chosen.only!r} is no regular expression: {error}")
    plan = [task for make in sections(chosen.scale) for task in make().tasks()]
    if not any(chosen.pattern.search(name_of(task)) for task in plan):
        kinds = ", ".join(dict.fromkeys(task.kind for task in plan))
        parser.error(f"--only {chosen.only!r} matches no line; there are: {kinds}")
    if chosen.json is not None and not chosen.json.parent.is_dir():
        parser.error(f"--json {chosen.json}: there is no folder {chosen.json.parent}")
    return chosen


def main(given: Sequence[str] | None = None, *, gates: Sequence[Gate] = GATES) -> int:
    """Measure, print, judge: 1 if a gate is missed or answers differ, else 0; 2: no compiler."""
    chosen = arguments(given)
    scale: Scale = chosen.scale
    gates = [each.slackened(chosen.slack) for each in gates]
    # Checks at each commit are for tests; here and in the processes that are started they are off.
    os.environ.pop("PYRESCHED_CHECK", None)
    try:
        tasks, readings = measured(
            scale,
            lambda task: bool(chosen.pattern.search(name_of(task))),
            gates,
            lambda line: print(line, file=sys.stderr, flush=True),
        )
    except (Mismatch, NoCompiler) as error:
        print(f"gates.py: {error}", file=sys.stderr)
        return 1 if isinstance(error, Mismatch) else 2
    table = rows(tasks, readings, gates, whole=chosen.only is None)
    print(title_of(scale))
    show(table, Console(width=max(Console().width, WIDTH)))
    if chosen.json is not None:
        report = as_json(table, mode=scale.name)
        chosen.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    missed = failed(table)
    print("a gate is missed" if missed else "no gate is missed")
    return 1 if missed else 0


def title_of(scale: Scale) -> str:
    """What the table is of."""
    judged = "" if scale is FULL else "; gates of a million are wider or not judged"
    return (
        f"{scale.name}: {scale.jobs:,} jobs, up to {scale.ids[-1]:,} ids, {scale.placed:,} placed on"
        f" {scale.nodes:,} nodes, medians of"
        f" {scale.repetitions} turns{judged}"
    )


if __name__ == "__main__":
    sys.exit(main())
