"""Attempts with jobs, one and many: what a class gives a job, all or nothing, bad requests."""

import pytest

from kit.jobs import job, jobs, requirements
from kit.nodes import node, node_config, nodes
from pyresched.errors import ConfigError, IllegalBinding, InputError, TxnClosed, UnknownNode
from pyresched.model import ResourceVector
from pyresched.nodedb import EVICTED, Binding, NodeDb

CONFIG = node_config(0, 5, 10, preemptible=[0, 5])
INT64_MAX = 2**63 - 1


def fork_of(*rows):
    """A fork of the nodes."""
    return NodeDb(CONFIG, rows).fork("default")


def one(id, *amounts, at=0):
    """A queued job of class *at*."""
    return job(id, *(amounts or (1, 1)), priority_class=f"p{at}")


def state(fork):
    """All that can be read of a fork."""
    levels = (EVICTED, *fork.table.levels)
    return (
        [fork.bound(row.id) for row in fork.nodes],
        [[fork.allocatable(row.id, level) for level in levels] for row in fork.nodes],
        {held: fork.binding(held) for held in fork.table.bound_jobs()},
    )


# --- one job --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "priority", "held"),
    [(0, None, (0, True)), (5, None, (5, True)), (10, None, (10, False)), (5, 10, (10, True))],
)
def test_a_job_counts_as_its_class_says(at, priority, held):
    """Its priority, unless another is given, and whether it may be preempted."""
    fork = fork_of(node("a", 4, 4))
    asked = one("j", at=at)
    for way in ("bind", "bind_many", "place"):
        with fork.attempt() as attempt:
            if way == "bind":
                attempt.bind(asked, "a", priority)
            elif way == "bind_many":
                attempt.bind_many([asked], ["a"], priority)
            else:
                assert attempt.place([asked], priority) == ["a"]
            assert fork.binding("j") == Binding("a", asked.requirements, *held, evicted=False)
        assert fork.binding("j") is None


def test_jobs_are_named_by_value_or_id():
    """To evict and to unbind; a job that was evicted takes its room back."""
    fork = fork_of(node("a", 4, 4))
    first, second = one("first"), one("second")
    with fork.attempt() as attempt:
        attempt.bind_many([first, second], ["a", "a"])
        full = state(fork)
        attempt.evict(first)
        attempt.evict("second")
        assert [fork.binding(each.id).evicted for each in (first, second)] == [True, True]
        attempt.bind_many([first, second], ["a", "a"])
        assert state(fork) == full
        attempt.unbind(first)
        attempt.unbind("second")
        assert fork.bound("a") == ()
        for wrong in (7, None, requirements(1, 1)):
            with pytest.raises(InputError, match="is not a job"):
                attempt.evict(wrong)
            with pytest.raises(InputError, match="is not a job"):
                attempt.unbind(wrong)


# --- many jobs ------------------------------------------------------------------------------------


def test_many_are_as_one_by_one():
    """Bound, evicted, bound again, gone: the same at each step."""
    rows = nodes(3, 40, 40)
    many, single = fork_of(*rows), fork_of(*rows)
    every = [one(f"j{n}", 1 + n % 3, 1 + n % 2, at=(0, 5, 10)[n % 3]) for n in range(12)]
    where = [rows[n % 3].id for n in range(12)]
    with many.attempt() as at_once, single.attempt() as in_turn:
        at_once.bind_many(every, where)
        for each, node_id in zip(every, where, strict=True):
            in_turn.bind(each, node_id)
        assert state(many) == state(single)
        at_once.evict_many(every[::2])
        for each in every[::2]:
            in_turn.evict(each)
        assert state(many) == state(single)
        at_once.bind_many(every[:4:2], where[:4:2])
        for each, node_id in zip(every[:4:2], where[:4:2], strict=True):
            in_turn.bind(each, node_id)
        assert state(many) == state(single)
        at_once.unbind_many([*every[3:], "nobody"])
        for each in every[3:]:
            in_turn.unbind(each)
        assert state(many) == state(single)
    assert state(many) == state(fork_of(*rows))


def test_none_is_no_error():
    """Nothing to do is done."""
    fork = fork_of(node("a", 4, 4))
    before = state(fork)
    with fork.attempt() as attempt:
        attempt.bind_many([], [])
        attempt.evict_many([])
        attempt.unbind_many([])
        assert attempt.place([]) == []
        attempt.keep()
    assert state(fork) == before


BAD_BINDINGS = {
    "holds a node": (one("held"), "a", IllegalBinding),
    "stands twice": (one("new-0"), "a", IllegalBinding),
    "unknown node": (one("x"), "nowhere", UnknownNode),
    "unknown class": (job("x", 1, 1, priority_class="nope"), "a", ConfigError),
    "another width": (one("x", 1, 1, 1), "a", InputError),
    "negative": (one("x", 1, -1), "a", InputError),
}


@pytest.mark.parametrize("bad", BAD_BINDINGS)
def test_a_bad_binding_among_many_binds_none(bad):
    """Those before it neither; the attempt goes on."""
    fork = fork_of(node("a", 9, 9), node("b", 9, 9))
    wrong, node_id, error = BAD_BINDINGS[bad]
    with fork.attempt() as attempt:
        attempt.bind(one("held", 2, 2), "a")
        before = state(fork)
        every = [one("new-0"), one("new-1"), wrong, one("new-3")]
        with pytest.raises(error) as raised:
            attempt.bind_many(every, ["a", "b", node_id, "b"])
        assert "\n" not in str(raised.value)
        assert state(fork) == before
        assert fork.check() == []
        attempt.bind_many(every[:2], ["a", "b"])
        assert fork.bound("b") == ("new-1",)


@pytest.mark.parametrize("bad", [bad for bad in BAD_BINDINGS if bad != "unknown node"])
def test_a_bad_job_among_many_places_none(bad):
    """As for binding."""
    fork = fork_of(node("a", 9, 9), node("b", 9, 9))
    wrong, _, error = BAD_BINDINGS[bad]
    with fork.attempt() as attempt:
        attempt.bind(one("held", 2, 2), "a")
        before = state(fork)
        with pytest.raises(error):
            attempt.place([one("new-0"), one("new-1", at=5), wrong, one("new-3", at=10)])
        assert state(fork) == before
        assert fork.check() == []
        assert attempt.place([one("new-0")]) == ["a"]


@pytest.mark.parametrize("length", [1, 3])
def test_as_many_nodes_as_jobs(length):
    """Two lists that do not match bind nothing."""
    fork = fork_of(node("a", 9, 9))
    before = state(fork)
    with fork.attempt() as attempt:
        with pytest.raises(ValueError, match=r"(?i)shorter|longer|as many"):
            attempt.bind_many(jobs(2, 1, 1, priority_class="p0"), ["a"] * length)
        assert state(fork) == before


@pytest.mark.parametrize("bad", ["nobody", "twice"])
def test_a_bad_eviction_among_many_evicts_none(bad):
    """Who holds nothing, and who was evicted a moment ago."""
    fork = fork_of(node("a", 9, 9))
    every = [one("j0"), one("j1", at=5), one("j2")]
    with fork.attempt() as attempt:
        attempt.bind_many(every, ["a"] * 3)
        before = state(fork)
        wrong = one("nobody") if bad == "nobody" else every[0]
        with pytest.raises(IllegalBinding):
            attempt.evict_many([*every[:2], wrong])
        assert state(fork) == before
        attempt.evict_many(every)
        assert {fork.binding(each.id).evicted for each in every} == {True}


def test_jobs_are_placed_in_turn_whatever_their_classes():
    """Find and bind one by one give the same; who finds no room leaves it to the next."""
    rows = [node("a", 6, 6), node("b", 4, 9), node("c", 9, 4)]
    every = [
        one(f"j{n}", 1 + n * 5 % 4, 1 + n * 7 % 5, at=(0, 0, 5, 10)[n * 3 % 4]) for n in range(24)
    ]
    fork, single = fork_of(*rows), fork_of(*rows)
    expected = []
    with fork.attempt() as attempt, single.attempt() as in_turn:
        for each in every:
            at = int(each.requirements.priority_class[1:])
            found = single.find(each.requirements, at)
            expected.append(found.node_id if found else None)
            if found:
                in_turn.bind(each, found.node_id)
        assert None in expected[:-1]
        assert attempt.place(every) == expected
        assert state(fork) == state(single)
        attempt.keep()
    assert [fork.node_of(each.id) for each in every] == expected


def test_an_attempt_that_is_over_or_not_the_innermost_takes_nothing():
    """By any of its calls."""
    fork = fork_of(node("a", 9, 9))
    asked = one("j")

    def refused(attempt):
        for call in (
            lambda: attempt.bind(asked, "a"),
            lambda: attempt.bind_as("j", asked.requirements, "a", 0, True),
            lambda: attempt.bind_many([asked], ["a"]),
            lambda: attempt.evict(asked),
            lambda: attempt.evict_many([asked]),
            lambda: attempt.unbind(asked),
            lambda: attempt.unbind_many([asked]),
            lambda: attempt.place([asked]),
            attempt.keep,
        ):
            with pytest.raises(TxnClosed):
                call()

    before = state(fork)
    refused(fork.attempt())
    with fork.attempt() as outer:
        with fork.attempt() as inner:
            refused(outer)
        refused(inner)
    refused(outer)
    assert state(fork) == before


# --- absurd values --------------------------------------------------------------------------------


def test_sums_past_int64_stop_there_and_come_back():
    """Four jobs of all there can be, bound, evicted and gone in any order."""
    fork = fork_of(node("a", INT64_MAX, 5))
    before = state(fork)
    most = [one(f"j{n}", INT64_MAX, INT64_MAX, at=(0, 5, 10, 0)[n]) for n in range(4)]
    with fork.attempt() as attempt:
        attempt.bind_many(most, ["a"] * 4)
        assert fork.allocatable("a", EVICTED).to_tuple() == (0, 5 - INT64_MAX)
        assert not fork.find(requirements(1, 0), 10)
        assert fork.check() == []
        attempt.evict_many(most[:2])
        assert fork.check() == []
        attempt.unbind_many([most[2], most[0]])
        attempt.bind(most[1], "a")
        attempt.unbind_many(most)
        assert state(fork) == before
        assert attempt.place(most) == [None] * 4


@pytest.mark.parametrize("priority", [-(2**31), -2, 2**31 - 1, 2**31, 2**63, -(2**63) - 1])
def test_absurd_priorities_are_answered_or_refused(priority):
    """Whatever is asked is answered, or an error of one line; nothing is half done."""
    fork = fork_of(node("a", 4, 4))
    before = state(fork)
    with fork.attempt() as attempt:
        try:
            attempt.bind(one("j"), "a", priority)
        except (InputError, OverflowError, ValueError):
            assert state(fork) == before
        else:
            assert fork.binding("j").priority == priority
            assert fork.check() == []
            attempt.unbind("j")
            assert state(fork) == before


def test_no_nodes_at_all():
    """Nothing to find, nothing to fill, nothing wrong."""
    fork = fork_of()
    with fork.attempt() as attempt:
        assert attempt.place([one("j")]) == [None]
        assert fork.place_many(requirements(0, 0), 5, 0) == []
        with pytest.raises(UnknownNode):
            attempt.bind(one("j"), "a")
    assert fork.check() == []


def test_nothing_fits_everywhere_and_all_fit_where_there_is_nothing():
    """A request of nothing on nodes of nothing: as many as are asked for, on the first."""
    fork = fork_of(node("a", 0, 0), node("b", 0, 0))
    assert fork.place_many(requirements(0, 0), 1_000, 0) == [("a", 1_000)]
    with fork.attempt() as attempt:
        assert attempt.place([one(f"j{n}", 0, 0) for n in range(3)]) == ["a"] * 3
        assert not fork.find(requirements(1, 0), 10)
    assert fork.allocatable("a", 0) == ResourceVector((0, 0))


def test_a_batch_past_counting():
    """More than any machine has memory for is a number like another."""
    fork = fork_of(node("a", 9, 9), node("b", 5, 9))
    assert fork.place_many(requirements(2, 1), 2**62, 0) == [("b", 2), ("a", 4)]


def test_what_is_no_job_is_named_and_nothing_placed():
    """Its place and what it is; any iterable of jobs will do."""
    fork = fork_of(node("a", 8, 8))
    with fork.attempt() as attempt:
        assert repr(attempt) == "<Attempt open>"
        with pytest.raises(TypeError, match=r"jobs\[1\] is a Job, got Requirements"):
            attempt.place([one("j"), requirements(1, 1)])
        assert fork.bound("a") == ()
        assert attempt.place(one(f"j{n}") for n in range(2)) == ["a", "a"]
    assert repr(attempt) == "<Attempt closed>"
