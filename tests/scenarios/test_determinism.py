"""The same commands give the same log and the same rows, whatever the seed of Python's hashes."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from kit.driving import node, report, scheduler
from kit.jobs import gang, job, jobs
from pyresched.model import NANOS, JobState, ReschedulePolicy

TESTS = Path(__file__).resolve().parents[1]


def story() -> str:
    """A digest of log and rows of a busy hour."""
    policy = ReschedulePolicy(attempts=2, interval=3600 * NANOS, delay=5 * NANOS)
    made = scheduler(*(node(f"n{n}") for n in range(4)))
    made.submit(jobs(30, queue="a", priority_class="best-effort", policy=policy), 0)
    for n in range(60):
        now = n * NANOS
        made.step(now)
        if n % 7 == 0:
            made.submit(gang(f"g{n}", 1500, 512, size=3, queue="b", policy=policy), now)
        if n % 11 == 0:
            made.lose_nodes([f"n{n % 4}"], now)
        if n % 11 == 3:
            made.nodes_back([f"n{m}" for m in range(4)], now)
        held = [row.id for row in made.snapshot().leased()]
        report(made, *held[::5], kind="failed", now=now)
        held = [row.id for row in made.snapshot().leased() if row.gang is None]
        report(made, *held[::3], kind="succeeded", now=now)
        made.submit([job(f"late-{n}", queue=f"q{n % 5}")], now)
    assert {row.state for row in made.snapshot()} >= {
        JobState.SUCCEEDED,
        JobState.FAILED,
        JobState.QUEUED,
    }
    events, _ = made.journal.events_since(0)
    told = "\n".join(map(repr, (*events, *made.journal.load()[0].jobs)))
    return hashlib.sha256(told.encode()).hexdigest()


def test_a_story_is_told_the_same_with_any_hash_seed() -> None:
    """To the byte."""
    script = "import test_determinism; print(test_determinism.story())"
    path = os.pathsep.join([str(TESTS), str(Path(__file__).parent)])
    told = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert told == {f"{story()}\n"}
