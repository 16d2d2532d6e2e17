"""Rounds over many seeded clusters: sound, at rest, and the same in any process."""

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from kit.crowded_worlds import crowded_world, limited, odd_world, repriced, wide_world
from kit.deciding import BY_MODEL, Decider
from kit.round_checks import breaches
from pyresched._core import use_portable_scan

TESTS = Path(__file__).parents[1]
SECOND = 1_000_000_000
KINDS = {
    "odd": (odd_world, range(150)),
    "crowded": (crowded_world, range(150, 300)),
    "away": (partial(crowded_world, tainted=0.4), range(300, 400)),
    "repriced": (lambda seed: repriced(crowded_world(seed), seed), range(400, 480)),
}


def test_seeded_rounds_are_sound_and_at_rest():
    """Every invariant, and no further change; every kind of outcome occurs, so none is unseen."""
    seen: Counter[str] = Counter()
    passes: Counter[int] = Counter()
    for make, seeds in KINDS.values():
        for seed in seeds:
            world, decider = make(seed), Decider()
            decided = decider.decide(world)
            assert breaches(world, decided) == [], seed
            assert decided.rested, seed
            world.grant(decided)
            world.now += SECOND
            again = decider.decide(world)
            assert not again, (seed, again)
            passes[decided.passes] += 1
            seen.update(each[3] for each in decided.scheduled)
            seen.update(f"preempted: {each[4]}" for each in decided.preempted)
            seen.update(f"moved: {each[5]}" for each in decided.moved)
            seen.update(decided.refused.values())
    assert set(seen) == {
        *("no_preemption", "fair_share", "urgency", "away"),
        *(f"preempted: {cause}" for cause in ("fair_share", "urgency", "gang", "guest")),
        *(f"moved: {cause}" for cause in ("fair_share", "urgency", "gang")),
        *("insufficient_resources", "exceeds_every_node", "no_matching_node", "nodes_closed"),
        *("gang_does_not_fit", "gang_incomplete", "unknown_queue", "queue_cordoned"),
    }
    assert passes[3] > 0, "no round needs a third pass: rest is too easy to show anything"


def test_seeded_rounds_under_limits_are_sound():
    """Every limit stops something somewhere, and what is done under it is right."""
    seen: Counter[str] = Counter()
    for make, seeds in KINDS.values():
        for seed in seeds[:100]:
            world = limited(make(seed), seed)
            decided = Decider().decide(world)
            assert breaches(world, decided) == [], seed
            seen.update(decided.refused.values())
    assert set(seen) >= {
        *("round_limit", "rate_limit", "gang_exceeds_burst", "gang_rate_limit"),
        *("queue_rate_limit", "gang_exceeds_queue_burst", "gang_queue_rate_limit"),
        *("round_budget", "queue_budget", "class_limit", "past_lookback"),
    }


def digest() -> str:
    """Everything that rounds over some of the clusters decide, in one number."""
    sums = hashlib.sha256()
    for make, seeds in KINDS.values():
        for seed in seeds[:20]:
            world = make(seed)
            if BY_MODEL:
                sums.update(repr(Decider().decide(world)).encode())
            else:
                result = world.round(world.job_db().snapshot())
                sums.update(json.dumps(result.to_dict()).encode())
    return sums.hexdigest()


@pytest.mark.skipif(BY_MODEL, reason="about the engine")
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


@pytest.mark.skipif(BY_MODEL, reason="about the engine")
def test_a_round_gives_the_same_bytes_with_either_search():
    """INV-R7: by the kernel that the machine has and by the portable one, over many nodes."""
    world = wide_world()
    told = set()
    try:
        for portable in (False, True):
            use_portable_scan(portable)
            told.add(json.dumps(world.round().to_dict()))
            told.add(json.dumps(world.round(world.job_db().snapshot()).to_dict()))
    finally:
        use_portable_scan(False)
    assert len(told) == 1
