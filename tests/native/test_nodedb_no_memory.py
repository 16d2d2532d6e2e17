"""What a node table does when there is no memory: raise MemoryError and stay sound.

Whichever allocation fails, of the table or of the objects around it: what was bound is bound, the
check finds nothing, and asking again gives what would have come at once.
"""

import contextlib
import importlib.util
import os
from collections.abc import Callable, Iterator

import pytest

from kit.jobs import requirements
from kit.nodes import node, node_config
from pyresched._core import NodeTable
from pyresched.model import Constraint, Node, Operator, Spread
from pyresched.nodedb import NodeDb, NodeFork
from pyresched.nodedb.check import breaches
from pyresched.nodedb.matching import Matching

if os.environ.get("PYRESCHED_DEV") != "1" and not importlib.util.find_spec(
    "pyresched._core.selftest"
):
    pytest.skip(
        "a release build cannot make allocations fail; PYRESCHED_DEV=1 makes a build that can",
        allow_module_level=True,
    )

from pyresched._core import selftest

HOSTS = Constraint("", Operator.DISTINCT_HOSTS)
ONE = requirements(1000, 1024)
BIG = requirements(5000, 1024)
APART = requirements(1000, 512, constraints=(HOSTS,), scope="apart")
SPREAD = requirements(1000, 256, spread=(Spread("zone", 50),))
NEW = requirements(1500, 1, constraints=(HOSTS,))
NODES = [node(f"n-{n:03}", labels={"zone": f"z{n % 3}"}) for n in range(150)]
LEVELS = (0, 10, 20, 30, 1000)

# Other nodes: some of those, some before and between them.
OTHERS = sorted(
    [each for n, each in enumerate(NODES) if n % 3] + [node(f"m-{n}") for n in range(60)],
    key=lambda each: each.id,
)
IDS = tuple(each.id for each in OTHERS)
TOTALS = [each.allocatable for each in OTHERS]
LIMITS = [4] * len(IDS)
MATCHING = Matching(OTHERS)

# What is asked of each table at its end.
ASKED = [ONE, BIG, APART, SPREAD, NEW]


def full() -> NodeFork:
    """Jobs of two scopes and of none on most nodes, at three levels; some forgotten again."""
    fork = NodeDb(node_config(*LEVELS), NODES).fork("default")
    table = fork.table
    for each in range(60):
        table.bind(f"low-{each}", ONE, f"n-{each * 7 % 150:03}", 10, preemptible=True)
        table.bind(f"high-{each}", BIG, f"n-{each * 11 % 150:03}", 1000, preemptible=False)
    for name, asked, count in (("apart", APART, 4), ("spread", SPREAD, 8)):
        table.place_each([f"{name}-{n}" for n in range(count)], [asked] * count, 20, True)
    for each in range(0, 60, 3):
        table.drop(f"low-{each}")
    return fork


FULL = full()


def held(table: NodeTable) -> list[object]:
    """All that can be read of a table."""
    return [
        table.node_ids,
        [table.bound_newest_first(i) for i in range(table.count)],
        [(id, table.binding(id)) for id in table.bound_jobs()],
        [table.left(i) for i in range(table.count)],
        [[table.amounts(i, level) for level in LEVELS] for i in range(table.count)],
    ]


def state(table: NodeTable) -> list[object]:
    """The same, and what it would answer."""
    return [
        *held(table),
        [table.find_for(each, level) for each in ASKED for level in LEVELS],
        [table.spread_over(each, 20, 1000) for each in ASKED],
    ]


def moved(table: NodeTable) -> None:
    """Every third node goes, others come before and between, and jobs are counted."""
    table.matcher = MATCHING
    table.set_nodes(IDS, TOTALS, b"\1" * len(IDS), LIMITS)


def searched(table: NodeTable) -> None:
    """Orders are made at two rows, then brought up to date: leaves split, and are joined again."""
    for step in range(8):
        for level in (10, 1000):
            table.find_for(BIG, level)
        for n in range(step % 4 * 30, step % 4 * 30 + 30):
            asked = BIG if step < 4 else ONE
            table.hold(f"again-{n}", asked, f"n-{n:03}", 1000, preemptible=False)


def tried(table: NodeTable) -> None:
    """An attempt with all that it can do, taken back and made again."""
    for _ in range(2):
        mark = table.begin()
        try:
            table.evict("low-1")
            table.unbind("apart-0")
            table.unbind("high-2")
            table.place_each(
                [f"try-{n}" for n in range(70)], [NEW] * 30 + [ONE] * 40, 30, preemptible=True
            )
        finally:
            table.undo(mark)


GONE = [id for id in FULL.table.bound_jobs() if id.startswith(("apart", "low"))]
ALL_OF_IT = requirements(8000, 1)


def tidied(table: NodeTable) -> None:
    """Requirements that nobody has any more are forgotten, their scopes with them."""
    for name in GONE:
        table.drop(name)
    table.drop_unused_shapes()


CHANGES: dict[str, Callable[[NodeTable], object]] = {
    "set_nodes": moved,
    "bind": lambda table: table.bind("new", NEW, "n-001", 25, preemptible=True),
    "hold": lambda table: table.hold("apart-1", NEW, "n-149", 26, preemptible=True),
    "hold within a scope": lambda table: [
        table.hold(f"apart-{n}", APART, f"n-{140 + n}", 27, preemptible=True) for n in range(4)
    ],
    "place": lambda table: table.place_each(
        [f"new-{n}" for n in range(9)], [NEW] * 9, 30, preemptible=True
    ),
    "spread": lambda table: table.spread_over(APART, 30, 1000),
    "fork": lambda table: table.fork(),
    "order": searched,
    "attempt": tried,
    "tidy": tidied,
    "victims": lambda table: table.victims_for(
        ALL_OF_IT, 30, [f"low-{n}" for n in range(60) if n % 3]
    ),
    "shortfall": lambda table: table.shortfall(APART, 1000),
}
# The lists that these answer with are comprehensions, which the Cython of today (3.3.1) lets go of
# twice where one cannot grow; so they are tried without memory of their own only.
WITH_LISTS = {"victims", "shortfall"}
# The first fork of a table makes what its handles are told apart by into something shared.
FIRST = {"fork"}
# What this has bound when it fails is taken back before it is made again.
PARTLY = {"place"}
# Of these, some steps may have been made when one fails.
STEPS = {"hold within a scope", "order", "tidy"}


@contextlib.contextmanager
def native(after: int) -> Iterator[None]:
    """The allocation after *after* others of the table fails, and all that follow."""
    selftest.let_allocations_fail(after)
    try:
        yield
    finally:
        selftest.let_allocations_fail(-1)


@contextlib.contextmanager
def of_objects(after: int) -> Iterator[None]:
    """The allocation after *after* others of an object fails, and it alone."""
    capi = pytest.importorskip("_testcapi")
    capi.set_nomemory(after + 1, after + 2)
    try:
        yield
    finally:
        capi.remove_mem_hooks()


def succeeds(table: NodeTable, change: Callable[[NodeTable], object], failing: object) -> bool:
    """Whether *change* gets the memory that it asks for."""
    with failing:  # type: ignore[attr-defined]
        try:
            change(table)
        except MemoryError:
            return False
        return True


@pytest.mark.parametrize(
    ("name", "failing"),
    [(name, native) for name in CHANGES]
    + [(name, of_objects) for name in CHANGES if name not in WITH_LISTS],
)
def test_a_change_without_memory_leaves_a_sound_table_and_can_be_made_again(
    name: str, failing: Callable[[int], object]
) -> None:
    """The first allocation fails, then the second, and so on until none does."""
    change = CHANGES[name]
    make = full if name in FIRST else FULL.fork
    table = make().table
    change(table)
    expected = state(table)
    failures = 0
    while True:
        table = make().table
        before = held(table)
        mark = table.begin() if name in PARTLY else -1
        if succeeds(table, change, failing(failures)):
            break
        if mark >= 0:
            table.undo(mark)
        assert sound(table) == []
        assert name in STEPS or held(table) == before, failures
        change(table)
        assert state(table) == expected, failures
        assert sound(table) == []
        failures += 1 if failures < 100 else failures // 8
    assert failures > 0


def sound(table: NodeTable) -> list[str]:
    """Breaches."""
    known: dict[str, Node] = {each.id: each for each in NODES}
    return list(breaches(table, [known.get(id) or node(id) for id in table.node_ids]))
