"""Bad input of every kind to a node db and its forks: an error of one line, nothing half done."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum

import pytest

from kit.jobs import job, leased, requirements
from kit.nodes import Pairs, node, node_config
from pyresched.errors import IllegalBinding, InputError, TxnClosed
from pyresched.model import ReasonCode, Taint
from pyresched.nodedb import CROSS_POOL, EVICTED, NodeDb

CONFIG = node_config(0, 5, preemptible=[0])


def one(id, *amounts, at=0):
    """A queued job of class *at*."""
    return job(id, *(amounts or (1, 1)), priority_class=f"p{at}")


@pytest.fixture
def db():
    """Checked when its test is over."""
    made = NodeDb(CONFIG, [node("a", 8, 8), node("b", 8, 8)])
    yield made
    assert made.check() == []


# --- nodes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"labels": {"zone": 5}},
        {"labels": {"zone": ["a"]}},
        {"labels": {"zone": b"a"}},
        {"labels": {("zone",): "a"}},
        {"labels": {"zone": None}},
        {"labels": None},
        {"labels": [("zone", "a")]},
        {"taints": [Taint("t")]},
        {"taints": (Taint(7),)},
        {"taints": ("t",)},
        {"taints": None},
        {"taints": (Taint(["t"]),)},
        {"taints": (Taint("t", "", "NoSchedule"),)},
        {"intake": "open"},
        {"pool": None},
        {"pool": StrEnum("Pools", "east").east},
        {"pool": 7},
        {"executor": None},
        {"node_type": ["x"]},
        {"lost_at": "yesterday"},
        {"disconnected_at": 1.5},
        {"drain_deadline": True},
        {"drain_system": 1},
        {"max_jobs": 1.5},
        {"max_jobs": "3"},
        {"unallocatable": (0, 0)},
        {"unallocatable": node("x", 1).total},
    ],
)
def test_a_node_with_a_field_that_cannot_be_is_refused(db, fields):
    """By name, in one line, whatever came before it in the batch; and nothing has changed."""
    before = db.nodes(), db.pools()
    with pytest.raises(InputError, match=r"^node 'z': [^\n]*$"):
        db.upsert_many([node("c", 1, 1), node("a", 4, 4), node("z", 8, 8, **fields)])
    assert (db.nodes(), db.pools()) == before
    asked = requirements(5, 5, selector={"zone": "a"})
    assert db.fork("default").find(asked, 5).reason.code is ReasonCode.NO_MATCHING_NODE


@pytest.mark.parametrize("given", [None, "a", {"id": "a"}, ("a", 1)])
def test_what_is_not_a_node_is_refused(db, given):
    """And what came before it is not taken in."""
    with pytest.raises(InputError, match="is not a node; give a Node"):
        db.upsert_many([node("c", 1, 1), given])
    assert db.ids() == ("a", "b")


def test_ids_of_nodes_are_not_letters_of_a_text(db):
    """`remove_many("ab")` means one node of that name, and says so."""
    with pytest.raises(InputError, match="one in a list too"):
        db.remove_many("ab")
    assert db.ids() == ("a", "b")


def test_labels_belong_to_the_node(db):
    """What becomes of the mapping that it was made with changes nothing."""
    labels = {"zone": "a"}
    db.upsert_many([node("a", 8, 8, labels=labels)])
    labels["zone"] = "b"
    assert db.get("a").labels == {"zone": "a"}
    assert db.fork("default").find(requirements(1, 1, selector={"zone": "a"}), 5).node_id == "a"
    db.upsert_many([node("a", 8, 8, labels=labels)])
    assert not db.fork("default").find(requirements(1, 1, selector={"zone": "a"}), 5)
    assert db.fork("default").find(requirements(1, 1, selector={"zone": "b"}), 5).node_id == "a"


@pytest.mark.parametrize("pool", [None, 3, ["default"]])
def test_a_pool_has_a_name(db, pool):
    """And asking for one without leaves nothing behind."""
    for ask in (db.fork, db.bare):
        with pytest.raises(InputError, match="write the name of a pool"):
            ask(pool)


def test_a_fork_is_of_one_moment(db):
    """Whatever another thread does to the nodes meanwhile."""
    rows = [node(f"c{n:04}", 1, 1) for n in range(2_000)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def change():
        for _ in range(10):
            db.upsert_many(rows)
            db.remove_many([row.id for row in rows])

    try:
        with ThreadPoolExecutor(1) as other:
            changing = other.submit(change)
            while not changing.done():
                fork = db.fork("default")
                assert fork.table.node_ids == tuple(row.id for row in fork.nodes)
                assert fork.find(requirements(8, 8), 5).node_id == "a"
            changing.result()
    finally:
        sys.setswitchinterval(interval)


# --- copies -------------------------------------------------------------------------------------


def test_a_copy_of_a_fork_is_a_fork(db):
    """Nothing done to it reaches the original."""
    fork = db.fork("default")
    for other in (copy.copy(fork), copy.deepcopy(fork)):
        with other.attempt() as attempt:
            attempt.bind(one("j"), "a")
            attempt.keep()
        assert fork.node_of("j") is None


def test_a_node_db_is_not_copied_and_nothing_of_it_pickled(db):
    """It says what to do; a copy that shares half would be worse."""
    fork = db.fork("default")
    for ask in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="fork it, or make one of its nodes"):
            ask(db)
        with pytest.raises(TypeError, match="fork it to try something else"):
            ask(fork.attempt())
    with pytest.raises(TypeError, match="pickle the nodes and jobs"):
        pickle.dumps(fork)


# --- attempts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "priority", [EVICTED, CROSS_POOL, 2**63, -(2**63) - 1, 10**400, 1.5, float("inf"), "5", [5]]
)
def test_a_priority_that_no_job_has_is_refused(db, priority):
    """The levels of the evicted and of other pools' runs too: they are no priorities of jobs."""
    fork = db.fork("default")
    with fork.attempt() as attempt:
        for ask in (
            lambda: attempt.bind(one("j"), "a", priority),
            lambda: attempt.bind_as("j", requirements(1, 1), "a", priority, preemptible=True),
            lambda: attempt.bind_many([one("j")], ["a"], priority),
            lambda: attempt.place([one("j")], priority),
        ):
            with pytest.raises(InputError, match="write a whole number from -9223372036854775806"):
                ask()
            assert fork.node_of("j") is None


def test_an_attempt_inside_one_that_has_ended_has_ended_too(db):
    """It is not mistaken for a later one, and to end it again changes nothing."""
    fork = db.fork("default")
    outer = fork.attempt().__enter__()
    inner = fork.attempt().__enter__()
    outer.__exit__(None, None, None)
    with fork.attempt(), fork.attempt() as later:
        later.bind(one("j"), "a")
        for ask in (inner.keep, lambda: inner.bind(one("k"), "a"), lambda: inner.place([])):
            with pytest.raises(TxnClosed, match="has ended"):
                ask()
        inner.__exit__(None, None, None)
        assert fork.bound("a") == ("j",)
    assert fork.bound("a") == ()


def test_unbinding_many_is_all_or_nothing(db):
    """A list that breaks off, or has something else in it, unbinds nothing."""

    def broken():
        yield "j"
        raise OSError("the disk")

    fork = db.fork("default")
    with fork.attempt() as attempt:
        attempt.bind_many([one("j"), one("k")], ["a", "a"])
        with pytest.raises(OSError, match="the disk"):
            attempt.unbind_many(broken())
        with pytest.raises(InputError, match="7 is not a job"):
            attempt.unbind_many(["k", 7])
        assert fork.bound("a") == ("j", "k")
        attempt.unbind_many(iter(["j", "k"]))
        assert fork.bound("a") == ()


def test_one_id_is_not_a_list_of_letters(db):
    """Where several are meant."""
    with db.fork("default").attempt() as attempt:
        attempt.bind(one("j"), "a")
        for ask in (
            lambda: attempt.unbind_many("j"),
            lambda: attempt.evict_many("j"),
            lambda: attempt.bind_many([one("k")], "a"),
        ):
            with pytest.raises(InputError, match="give a list"):
                ask()


def test_jobs_may_come_from_anywhere_but_must_be_jobs(db):
    """A generator does; an id does not."""
    fork = db.fork("default")
    with fork.attempt() as attempt:
        assert attempt.place(one(id) for id in "jk") == ["a", "a"]
        with pytest.raises(TypeError, match=r"jobs\[1\] is a Job, got 'm'"):
            attempt.place([one("l"), "m"])
        for ask in (
            lambda: attempt.bind_many([one("l"), "m"], ["a", "a"]),
            lambda: attempt.bind("m", "a"),
        ):
            with pytest.raises(InputError, match="'m' is not a job; give a Job"):
                ask()
            assert fork.bound("a") == ("j", "k")
        with pytest.raises(IllegalBinding):
            attempt.place([one("l"), one("l")])


# --- why not ------------------------------------------------------------------------------------


def test_an_over_allocated_node_that_was_emptied_has_a_reason(db):
    """It takes nothing in this fork, though it has room; that is what is said of it."""
    db.remove_many(["b"])
    db.advance(Pairs.added([leased(one("j", 5, 5), node_id="a")]))
    db.upsert_many([node("a", 4, 8)])
    fork = db.fork("default")
    with fork.attempt() as attempt:
        attempt.unbind("j")
        refused = fork.find(requirements(1, 1), 5)
        assert refused.reason.code is ReasonCode.NODES_CLOSED
        assert [(each.reason, each.nodes) for each in refused.excluded] == [(refused.reason, 1)]
