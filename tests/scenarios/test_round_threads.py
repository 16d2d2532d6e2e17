"""Rounds on several threads at once, over one node db and one snapshot, beside who commits.

A round keeps the interpreter to itself for no longer than a small part of a millisecond at a time.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from kit.crowded_worlds import crowded_world, limited, odd_world, wide_world
from kit.jobs import jobs, requirements
from kit.rounds import CONFIG, POOL, World, node
from pyresched._core import DominantResourceFairness, RoundWalk
from pyresched.jobdb import JobDb
from pyresched.model import RoundResult

WORLDS = [crowded_world(151), crowded_world(163), limited(odd_world(3), 3), wide_world()]
COUNT = 400_000


@pytest.fixture(autouse=True)
def _threads_take_short_turns() -> Iterator[None]:
    """So that they meet in as many places as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(2e-5)
    yield
    sys.setswitchinterval(before)


def as_bytes(result: RoundResult) -> str:
    """All that it decided."""
    return json.dumps(result.to_dict())


@pytest.mark.parametrize("world", WORLDS)
def test_rounds_at_once_decide_what_they_decide_one_by_one(world: World) -> None:
    """INV-R7: over one node db and one snapshot, while another thread commits what is newer."""
    db, nodes = world.job_db(), world.node_db()
    snapshot = db.snapshot()
    expected = as_bytes(world.round(snapshot, nodes))
    stop = threading.Event()

    def commit() -> None:
        first = list(db.snapshot())
        while not stop.is_set():
            with db.write() as txn:
                txn.delete_many([each.id for each in txn])
            with db.write() as txn:
                txn.upsert_many(first)
                txn.upsert_many(jobs(50, queue="a"))

    writer = threading.Thread(target=commit)
    writer.start()
    try:
        with ThreadPoolExecutor(4) as threads:
            told = set(threads.map(lambda _: as_bytes(world.round(snapshot, nodes)), range(60)))
    finally:
        stop.set()
        writer.join()
    assert told == {expected}
    assert nodes.check() == []
    assert db.check(snapshot) == []


def turns_of_another_while(work: Callable[[], object]) -> int:
    """How often another thread has its turn while this one works."""
    turns, stop = [0], threading.Event()

    def take_turns() -> None:
        while not stop.is_set():
            turns[0] += 1
            time.sleep(0)

    other = threading.Thread(target=take_turns)
    other.start()
    try:
        while not turns[0]:
            time.sleep(0)
        before = turns[0]
        work()
        return turns[0] - before
    finally:
        stop.set()
        other.join()


@pytest.fixture(scope="module")
def long_queue() -> JobDb:
    """A db of one queue that is longer than all others."""
    db = JobDb(CONFIG)
    with db.write() as txn:
        ids = [f"job-{n:07}" for n in range(COUNT)]
        txn.upsert_columns(
            ids=ids, submitted_at=0, queue="a", requirements=requirements(), pools=(POOL,)
        )
    return db


def test_a_long_queue_is_read_while_others_go_on(long_queue: JobDb) -> None:
    """Its jobs are many milliseconds of native work; others have their turns all along."""
    world = World().with_nodes(node("n"))
    fork = world.node_db().fork(POOL)
    fairness = DominantResourceFairness(node("n").total, [1, 1])
    classes = {each.name: (each.priority, each.preemptible) for each in CONFIG.priority_classes}

    def turns() -> int:
        walk = RoundWalk(fork.table, fairness, classes, POOL)
        queued = long_queue.snapshot().queued("a", POOL)
        return turns_of_another_while(lambda: walk.add_queue("a", 1.0, queued))

    # One that asks in vain has a single turn. On a busy machine it may not be let run, whoever
    # has the lock, so a few tries.
    assert any(turns() > 5 for _ in range(10))
