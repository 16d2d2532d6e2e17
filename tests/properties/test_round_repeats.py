"""The same round in other processes, and the plain model on many seeded clusters."""

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from kit.random_worlds import random_world
from kit.round_model import model_round
from kit.rounds import POOL, breaches

TESTS = Path(__file__).parents[1]
SEEDS = range(300)


def test_rounds_over_seeded_clusters_are_those_of_the_model_and_sound():
    """Placements, victims, reasons; and every kind of outcome occurs, so nothing passes unseen."""
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        world = random_world(seed)
        result = world.round()
        expected = model_round(
            world.jobs.values(), world.nodes.values(), world.queues, POOL, world.config
        )
        assert breaches(world, result) == [], seed
        assert [
            (each.job_id, each.node_id, each.priority, each.method.value)
            for each in result.scheduled
        ] == expected.scheduled, seed
        assert [
            (each.job_id, each.run_id, each.node_id, each.for_job_id, each.reason.value)
            for each in result.preempted
        ] == expected.preempted, seed
        codes = {id: reason.code.value for id, reason in result.refused.items()}
        assert codes == expected.refused, seed
        seen.update(each.method.value for each in result.scheduled)
        seen.update(f"preempted {each.reason.value}" for each in result.preempted)
        seen.update(result.refused_by_code())
    expected_kinds = {
        "exceeds_every_node",
        "fair_share",
        "gang_does_not_fit",
        "gang_incomplete",
        "insufficient_resources",
        "no_matching_node",
        "no_nodes",
        "no_preemption",
        "nodes_closed",
        "past_lookback",
        "preempted fair_share",
        "preempted gang",
        "unknown_queue",
    }
    assert set(seen) == expected_kinds


def test_rounds_come_to_rest():
    """Without outside change a few rounds are followed by rounds that change nothing."""
    most = 0
    for seed in SEEDS:
        world = random_world(seed)
        result, changing = world.round(), 0
        while result:
            changing += 1
            assert changing <= 10, f"seed {seed} is still changing after ten rounds"
            world.now += 10
            world.grant(result)
            result = world.round()
            assert breaches(world, result) == [], seed
        most = max(most, changing)
    assert most > 1, "no seed needs a second round: the test shows nothing"


def digest() -> str:
    """Everything that rounds over the seeded clusters decide, in one number."""
    sums = hashlib.sha256()
    for seed in range(60):
        world = random_world(seed)
        result = world.round(world.job_db().snapshot())
        sums.update(json.dumps(result.to_dict()).encode())
    return sums.hexdigest()


def test_a_round_gives_the_same_bytes_in_any_process():
    """INV-R7 under other hash seeds, which move sets, dicts of text and the job db's indices."""
    script = (
        "import importlib.util, sys;"
        f"spec = importlib.util.spec_from_file_location('again', {str(Path(__file__))!r});"
        "again = importlib.util.module_from_spec(spec); spec.loader.exec_module(again);"
        "print(again.digest())"
    )
    digests = {digest()}
    for seed in ("0", "1", "4242"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(TESTS)},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout.strip())
    assert len(digests) == 1
