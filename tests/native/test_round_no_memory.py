"""What a round does when there is no memory: raise MemoryError and leave all as it was.

Whichever allocation of the native part fails: the nodes are as before, and the round that is asked
for again decides what it would have decided at once.
"""

import contextlib
import importlib.util
import json
import os
from collections.abc import Iterator

import pytest

from kit.crowded_worlds import crowded_world, limited, odd_world, wide_world
from pyresched.model import RoundResult

if os.environ.get("PYRESCHED_DEV") != "1" and not importlib.util.find_spec(
    "pyresched._core.selftest"
):
    pytest.skip(
        "a release build cannot make allocations fail; PYRESCHED_DEV=1 makes a build that can",
        allow_module_level=True,
    )

from pyresched._core import selftest

WORLDS = {
    "wide": wide_world(),
    **{f"odd {seed}": limited(odd_world(seed), seed) for seed in (3, 11)},
    **{f"crowded {seed}": crowded_world(seed) for seed in (151, 163, 170)},
}


@contextlib.contextmanager
def failing(after: int) -> Iterator[None]:
    """The allocation after *after* others fails, and all that follow."""
    selftest.let_allocations_fail(after)
    try:
        yield
    finally:
        selftest.let_allocations_fail(-1)


def as_bytes(result: RoundResult) -> str:
    """All that it decided."""
    return json.dumps(result.to_dict())


@pytest.mark.parametrize("name", WORLDS)
def test_a_round_without_memory_changes_nothing_and_can_be_asked_for_again(name: str) -> None:
    """The first allocation fails, then the second, and so on until none does."""
    world = WORLDS[name]
    nodes, snapshot = world.node_db(), world.job_db().snapshot()
    expected = as_bytes(world.round(snapshot, nodes))
    failures = 0
    while True:
        with failing(failures):
            try:
                decided = world.round(snapshot, nodes)
            except MemoryError:
                decided = None
        if decided is not None:
            break
        if failures % 10 == 0:
            assert as_bytes(world.round(snapshot, nodes)) == expected, failures
            assert nodes.check() == []
        failures += 1
    assert as_bytes(decided) == expected
    assert failures > 60
