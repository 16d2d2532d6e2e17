"""Forks of one node db, each used in a thread of its own: as if one were used after the other."""

import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from random import Random

import pytest

from kit.jobs import requirements
from kit.nodes import node, node_config
from pyresched.model import Constraint, Node, Operator, Spread
from pyresched.nodedb import NodeDb, NodeFork, matching
from pyresched.nodedb.matching import Matching

HOSTS = Constraint("", Operator.DISTINCT_HOSTS)
CLASSES = 30
# What is asked of labels here makes more entries than are kept, so that they go while others come.
KEPT = 4


@pytest.fixture(autouse=True)
def _threads_take_turns_often(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(matching, "_MOST_KEPT", KEPT)
    monkeypatch.setattr(matching, "_MOST_MASKS", KEPT)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def row(n: int, turn: int = 0) -> Node:
    """A node of a zone, a rack and a number."""
    labels = {"zone": f"z{n % 3}", "rack": f"r{(n + turn) % 7}", "number": f"{n % CLASSES}"}
    return node(f"n-{n:03}", labels=labels)


def full() -> NodeDb:
    """Three hundred nodes that are told apart by labels."""
    return NodeDb(node_config(0, 10, 1000), map(row, range(300)))


def decide(fork: NodeFork, seed: int) -> list[object]:
    """Places for jobs of many kinds, most of them taken back; all that was answered."""
    random = Random(seed)
    told: list[object] = []
    table = fork.table
    for step in range(120):
        kind = str(random.randrange(CLASSES))
        asked = requirements(
            random.randrange(1, 6) * 500,
            random.randrange(1, 6) * 300,
            constraints=(Constraint("number", Operator.NOT_IN, (kind,)), *[HOSTS] * (step % 2)),
            spread=(Spread("rack", 50),) if step % 3 else (),
            scope=f"s{step % 5}",
        )
        with fork.attempt() as attempt:
            names = [f"j-{step}-{n}" for n in range(6)]
            priority = random.choice([0, 10, 1000])
            told.append(table.place_each(names, [asked] * 6, priority, preemptible=True))
            attempt.evict(names[0])
            told.append(fork.find(asked, priority))
            if step % 2:
                attempt.keep()
    return [*told, [fork.bound(each.id) for each in fork.nodes], fork.check()]


def at_once(*calls: Callable[[], object]) -> list[object]:
    """What each call gives, or the error that ended it, each in a thread of its own."""
    answers: list[object] = [None] * len(calls)
    ready = threading.Barrier(len(calls))

    def run(n: int, call: Callable[[], object]) -> None:
        ready.wait()
        try:
            answers[n] = call()
        except Exception as error:  # noqa: BLE001 - shown by the comparison
            answers[n] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_forks_in_two_threads_answer_as_one_after_the_other() -> None:
    """They share what nodes match, and nothing that depends on what is bound."""
    db = full()
    expected = [decide(db.fork("default"), seed) for seed in (1, 2)]
    for _ in range(3):
        forks = [full().fork("default")]
        forks.append(forks[0].fork())
        assert at_once(*(partial(decide, *each) for each in zip(forks, (1, 2), strict=True))) == (
            expected
        )
    assert expected[0][-1] == expected[1][-1] == []


def test_a_fork_answers_as_before_while_the_db_takes_in_nodes() -> None:
    """Their labels change in one thread, a fork from before is searched in another."""
    expected = decide(full().fork("default"), 3)
    for _ in range(3):
        db = full()

        def change(db: NodeDb = db) -> list[str]:
            for turn in range(60):
                db.upsert_many([row(n, turn) for n in range(turn % 5, 300, 50)])
            return db.check()

        assert at_once(partial(decide, db.fork("default"), 3), change) == [expected, []]


def test_what_nodes_match_is_asked_by_many_threads_at_once() -> None:
    """Little of it is kept here: some drop what others look up, one makes the next matching."""
    shared = Matching(map(row, range(300)))
    kinds = [
        requirements(1, 1, constraints=(Constraint("number", Operator.IN, (str(n), "0")),))
        for n in range(CLASSES)
    ]
    expected = [shared(each) for each in kinds]

    def ask(start: int) -> bool:
        return all(
            shared(kinds[n % CLASSES]) == expected[n % CLASSES] for n in range(start, start + 2000)
        )

    def update() -> bool:
        later = [shared.updated({7: row(7, turn)}) for turn in range(500)]
        return all(each(kinds[0]) == expected[0] for each in later)

    assert at_once(update, *(partial(ask, 7 * n) for n in range(4))) == [True] * 5
