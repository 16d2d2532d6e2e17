"""Rounds in files: the same bytes in, the same decisions out, under pseudonyms too."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random

import pytest

from kit.crowded_worlds import crowded_world, odd_world
from kit.jobs import ended
from kit.random_worlds import random_world
from kit.rounds import POOL, World, replace_node
from pyresched.model import (
    Constraint,
    Job,
    LastReschedule,
    Operator,
    Preference,
    Requirements,
    RescheduleEvent,
    RescheduleTracker,
    RoundResult,
    Spread,
)
from pyresched.nodedb import NodeDb
from pyresched.scheduling import RoundState, load_round, run_round, save_round
from pyresched.scheduling.saved import result_bytes

TESTS = Path(__file__).parents[1]
SEEDS = range(150)
# Values that mean something as text, as a number, as a version and as a list.
VALUES = ["", "a,b", "b", "1.2", "1.10", "2", "10", "v1.3.0"]
ASKED = [
    (),
    (Constraint("size", Operator.GT, ("1",)),),
    (Constraint("size", Operator.LESS_EQUAL, ("1.2",)),),
    (Constraint("size", Operator.VERSION, (">= 1.2, < 2",)),),
    (Constraint("size", Operator.REGEXP, ("^1",)),),
    (Constraint("size", Operator.SET_CONTAINS, ("b",)),),
    (Constraint("size", Operator.NOT_IN, ("b", "2")),),
    (Constraint("size", Operator.NOT_EQUAL, ("",)),),
    (Constraint("size", Operator.IN, ("nowhere",)),),
    (Constraint("size", Operator.IS_NOT_SET),),
    (Constraint("", Operator.DISTINCT_HOSTS),),
    (Constraint("size", Operator.DISTINCT_PROPERTY, ("2",)),),
]


def rich_world(seed: int) -> World:
    """A random world whose jobs ask for more, and have a past."""
    world, draw = random_world(seed), Random(seed)
    for node in list(world.nodes.values()):
        if draw.random() < 0.8:
            labels = {**node.labels, "size": draw.choice(VALUES)}
            world.nodes[node.id] = replace_node(node, labels=labels, node_type="big")
    by_shape: dict[Requirements, Requirements] = {}
    for job in list(world.jobs.values()):
        if job.requirements not in by_shape:
            by_shape[job.requirements] = _asking_more(job.requirements, draw, sorted(world.nodes))
        tracker = job.tracker
        if job.runs and draw.random() < 0.5:
            event = RescheduleEvent(
                time=5,
                previous_run=job.runs[0].id if draw.random() < 0.5 else "forgotten",
                previous_node=draw.choice(sorted(world.nodes)),
                delay=1,
            )
            tracker = RescheduleTracker(events=(event,), last=LastReschedule.OK)
        world.jobs[job.id] = job.replace(
            requirements=by_shape[job.requirements],
            tracker=tracker,
            job_set=draw.choice(["", "nightly"]),
            payload={"secret": job.id},
        )
        if job.gang is not None and draw.random() < 0.2:
            world.jobs[job.id] = ended(world.jobs[job.id])
    return world


def _asking_more(asked: Requirements, draw: Random, node_ids: list[str]) -> Requirements:
    affinity = ()
    if draw.random() < 0.2:
        affinity = (draw.choice(ASKED[1:9]), (Constraint("size", Operator.GREATER, ("b",)),))
    preferences = ()
    if draw.random() < 0.2:
        preferences = (Preference(draw.choice([-5, 7]), draw.choice(ASKED[1:9])),)
    return Requirements(
        asked.resources,
        asked.priority_class,
        selector=asked.selector,
        tolerations=asked.tolerations,
        constraints=draw.choice(ASKED) if draw.random() < 0.3 else (),
        affinity=affinity,
        preferences=preferences,
        spread=(Spread("size", 50, (("b", 40),)),) if draw.random() < 0.15 else (),
        scope=draw.choice(["", "web"]),
        nodes=tuple(draw.sample(node_ids, 1)) if draw.random() < 0.1 else (),
    )


def arguments(world: World) -> tuple:
    """What `run_round` takes, over a job db and a node db."""
    return (
        *(world.job_db().snapshot(), world.node_db(), world.queues),
        *(POOL, world.config, RoundState(), world.now),
    )


def test_a_saved_round_decides_what_it_decided(tmp_path):
    """Also by the digest in its file; and no seed is about nothing."""
    placed = 0
    for seed in SEEDS:
        args = arguments(rich_world(seed))
        result, _ = run_round(*args)
        save_round(tmp_path / "round", *args)
        saved = load_round(tmp_path / "round")
        again, _ = saved.run()
        assert again == result, seed
        assert saved.digest == hashlib.sha256(result_bytes(result)).hexdigest(), seed
        placed += len(result.scheduled)
    assert placed > len(SEEDS) / 2


def test_guests_moves_and_victims_are_kept_too(tmp_path):
    """Where rounds have much to decide; under pseudonyms as many of each."""
    moved = 0
    for make in (odd_world, crowded_world):
        for seed in range(40):
            args = arguments(make(seed))
            result, _ = run_round(*args)
            save_round(tmp_path / "round", *args)
            assert load_round(tmp_path / "round").run()[0] == result, (make.__name__, seed)
            save_round(tmp_path / "round", *args, anonymous=True)
            again, _ = load_round(tmp_path / "round").run()
            assert counts(again) == counts(result), (make.__name__, seed)
            moved += len(result.moved) + len(result.preempted)
    assert moved > 40


def counts(result: RoundResult) -> tuple[object, ...]:
    """How many of each decision, in how many passes."""
    return (
        *(len(result.scheduled), len(result.moved), len(result.preempted), result.passes),
        result.refused_by_code(),
    )


def pseudonyms(names: Iterable[str], found: Iterable[str]) -> dict[str, str]:
    """Which name became which, if the order was kept."""
    names, found = sorted(names), sorted(found)
    assert len(names) == len(found)
    return dict(zip(names, found, strict=True))


def renamed(plain: object, names: Mapping[str, str]) -> object:
    """*plain*, the dict of a result, with each text that is a name replaced."""
    match plain:
        case dict():
            return {names.get(key, key): renamed(value, names) for key, value in plain.items()}
        case list():
            return [renamed(each, names) for each in plain]
        case str():
            return names.get(plain, plain)
    return plain


def test_under_pseudonyms_a_round_decides_the_same(tmp_path):
    """Up to the names, which stand in the order in which they stood; ties are broken alike."""
    for seed in SEEDS:
        world = rich_world(seed)
        args = arguments(world)
        save_round(tmp_path / "round", *args, anonymous=True)
        inputs = load_round(tmp_path / "round").inputs
        jobs = inputs.jobs()
        read = [job for job in world.jobs.values() if job.id in _read_by_a_round(world)]
        names = {
            **pseudonyms((job.id for job in read), jobs),
            **pseudonyms(_run_ids(read), _run_ids(jobs.values())),
            **pseudonyms(world.nodes, (node.id for node in inputs.nodes)),
            **pseudonyms({*world.queues, *(j.queue for j in read)}, _queues(inputs)),
        }
        expected = renamed(run_round(*args)[0].to_dict(), names)
        assert load_round(tmp_path / "round").run()[0].to_dict() == expected, seed


def _read_by_a_round(world: World) -> set[str]:
    snapshot = world.reader()
    waiting = {job.id for queue in snapshot.queues() for job in snapshot.queued(queue, POOL)}
    first = waiting | {job.id for job in snapshot.leased()}
    return {mate.id for id in first for mate in world.mates(id)}


def _run_ids(jobs: Iterable[Job]) -> set[str]:
    return {run.id for job in jobs for run in job.runs}


def _queues(inputs) -> set[str]:
    return {*inputs.queues, *(job.queue for job in inputs.jobs().values())}


@pytest.mark.parametrize("anonymous", [False, True])
def test_no_name_is_left_where_none_was_asked_for(tmp_path, anonymous):
    """Nor a payload in any file; the control is the file with the names."""
    for seed in range(20):
        world = rich_world(seed)
        save_round(tmp_path / "round", *arguments(world), anonymous=anonymous)
        inputs = load_round(tmp_path / "round").inputs
        told = repr((inputs.jobs(), inputs.nodes, dict(inputs.queues), inputs.config))
        names = [*world.nodes, *_read_by_a_round(world), "zone", "east", "nightly", "web", "size"]
        there = [name for name in names if f"'{name}'" in told]
        assert bool(there) is not anonymous, (seed, there)
        assert "secret" not in told


def test_what_nodes_know_better_than_the_jobs_is_kept(tmp_path):
    """Between the pools of a cycle: a run that the nodes have not heard of, one that has ended."""
    for seed in range(60):
        world = rich_world(seed)
        nodes = NodeDb(world.config, world.nodes.values())
        draw = Random(seed)
        heard = [(None, job) for job in world.jobs.values() if draw.random() < 0.7]
        nodes.advance(_Pairs(heard))
        for job in list(world.jobs.values()):
            if job.active_run is not None and job.gang is None and draw.random() < 0.3:
                world.finish(job.id)
        args = (world.job_db().snapshot(), nodes, *arguments(world)[2:])
        for anonymous in (False, True):
            save_round(tmp_path / "round", *args, anonymous=anonymous)
            saved = load_round(tmp_path / "round")
            result, _ = saved.run()
            assert saved.digest == hashlib.sha256(result_bytes(result)).hexdigest(), seed
            counts = run_round(*args)[0].refused_by_code()
            assert result.refused_by_code() == counts, (seed, anonymous)


class _Pairs:
    def __init__(self, pairs) -> None:
        self._pairs = pairs

    def pairs(self):
        return self._pairs


def saved_digests(folder: Path, order: int) -> str:
    """The bytes of many saved rounds, their rows given in an order of their own."""
    sums = hashlib.sha256()
    for seed in range(12):
        world, draw = rich_world(seed), Random(order)
        for rows in (world.jobs, world.nodes, world.queues):
            shuffled = list(rows.items())
            draw.shuffle(shuffled)
            rows.clear()
            rows.update(shuffled)
        for anonymous in (False, True):
            save_round(folder / "round", *arguments(world), anonymous=anonymous)
            sums.update((folder / "round").read_bytes())
            sums.update(json.dumps(load_round(folder / "round").run()[0].to_dict()).encode())
    return sums.hexdigest()


def test_equal_arguments_give_equal_bytes_in_any_process(tmp_path):
    """Twenty processes, each with another hash seed and another order of insertion."""
    script = (
        "import importlib.util, sys, pathlib;"
        f"spec = importlib.util.spec_from_file_location('again', {str(Path(__file__))!r});"
        "again = importlib.util.module_from_spec(spec); spec.loader.exec_module(again);"
        "print(again.saved_digests(pathlib.Path(sys.argv[1]), int(sys.argv[2])))"
    )
    digests = {saved_digests(tmp_path, 0)}
    for seed in range(1, 20):
        done = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path), str(seed)],
            env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(TESTS)},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout.strip())
    assert len(digests) == 1
