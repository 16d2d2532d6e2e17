"""Nothing grows with use: each way of using the job db and the node db, in an interpreter of its own.

`PYRESCHED_LEAK_CYCLES` says for how many cycles (20; the nox session `leaks` takes 300).
"""

import os
import subprocess
import sys

import pytest

from kit.leaks import CYCLES, can_count

COUNT = int(os.environ.get("PYRESCHED_LEAK_CYCLES", "20"))
# Lists that double and pools that fill up move this much now and then, a leak in every cycle.
MOVES = 8192
A_CYCLE = 8

if not can_count():
    pytest.skip("this C library does not tell what its heap holds", allow_module_level=True)


def told(name: str, count: int) -> list[int]:
    """What `kit.leaks` prints of *name*."""
    done = subprocess.run(
        [sys.executable, "-m", "kit.leaks", name, str(count)],
        env={
            **os.environ,
            "PYTHONMALLOC": "malloc",
            "PYTHONPATH": next(path for path in sys.path if path.endswith("tests")),
            "PYRESCHED_CHECK": "",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [int(number) for number in done.stdout.split()]


@pytest.mark.parametrize("name", [each for each in CYCLES if not each.startswith("control")])
def test_nothing_grows_with_use(name: str) -> None:
    """INV-D11, INV-D15: what a cycle takes it gives back, native memory and objects alike."""
    assert told(name, COUNT)[0] <= MOVES + A_CYCLE * COUNT


@pytest.mark.parametrize("name", [each for each in CYCLES if each.startswith("control")])
def test_control_what_grows_is_seen(name: str) -> None:
    """In one heap or the other."""
    assert told(name, COUNT)[0] > MOVES + A_CYCLE * COUNT


def test_an_old_snapshot_costs_a_second_version_at_most() -> None:
    """After ten thousand commits of one job each, rows and all; and gives it back when it goes."""
    loaded, both, after = told("pinned", 10_000)
    assert loaded < both <= 1.5 * (loaded + after)
    assert after <= loaded + 4000 * 250  # the reason that each row has now
