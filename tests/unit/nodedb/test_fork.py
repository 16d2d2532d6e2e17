"""A fork: search order, levels, attempts, victims; and that nobody else sees what it does."""

import pytest

from kit.jobs import job, requirements
from kit.nodes import node, node_config, nodes
from pyresched.errors import ConfigError, IllegalBinding, InputError, TxnClosed, UnknownNode
from pyresched.model import Intake, Requirements, ResourceVector, Taint, TaintEffect, Toleration
from pyresched.nodedb import EVICTED, Binding, Candidate, NodeDb

GI = 1024
SMALL = requirements(1, 4 * GI)
BIG = requirements(32, 256 * GI)


def fork_of(rows, *priorities, preemptible=(), width=2):
    """A fork of pool `default` with these rows and levels."""
    return NodeDb(node_config(*priorities, preemptible=preemptible, width=width), rows).fork(
        "default"
    )


def put(fork, job_id, asked, node_id, priority=1000, *, preemptible=False):
    """Bind for good."""
    with fork.attempt() as attempt:
        attempt.bind_as(job_id, asked, node_id, priority, preemptible)
        attempt.keep()


def fill(fork, asked, count, priority=1000, *, preemptible=False, prefix="fill"):
    """Find and bind up to *count* jobs; how many there was room for."""
    for n in range(count):
        found = fork.find(asked, priority)
        if not found:
            return n
        put(fork, f"{prefix}-{n}", asked, found.node_id, priority, preemptible=preemptible)
    return count


def order_of(fork, asked, priority=1000, avoid=()):
    """All nodes that would do, best first."""
    rest, found = {row.id for row in fork.nodes}, []
    while rest and (best := fork.find(asked, priority, only=sorted(rest), avoid=avoid)):
        found.append(best.node_id)
        rest.discard(best.node_id)
    return found


def state(fork):
    """All that can be read of a fork."""
    return (
        [fork.bound(row.id) for row in fork.nodes],
        [
            [fork.allocatable(row.id, p) for p in (EVICTED, *fork.table.levels)]
            for row in fork.nodes
        ],
        [fork.binding(job) for job in fork.table.bound_jobs()],
    )


# --- best fit -----------------------------------------------------------------------------------


def used(rows, width=2, total=(32, 256)):
    """A fork whose node i has used the amounts of rows[i]."""
    fork = fork_of([node(f"n{i}", *total) for i in range(len(rows))], width=width)
    for i, amounts in enumerate(rows):
        put(fork, f"used-{i}", Requirements(ResourceVector(amounts)), f"n{i}")
    return fork


def test_the_fullest_node_that_still_fits_comes_first():
    """15, 16 and 17 of 32 used, 16 wanted: the node with exactly 16 left, then the one with 17."""
    assert order_of(used([(15, 0), (16, 0), (17, 0)]), requirements(16, 0)) == ["n1", "n0"]


def test_later_resources_decide_among_equals_of_the_first():
    """Lexicographic in vector order; what does not fit is left out wherever it stands."""
    rows = [
        (15, 1),
        (15, 2),
        (15, 129),
        (15, 130),
        (15, 131),
        (16, 130),
        (16, 128),
        (16, 129),
        (17, 0),
    ]
    assert order_of(used(rows), requirements(16, 128)) == ["n6", "n1", "n0"]


def test_three_resources_decide_in_vector_order():
    """Cpu, then memory, then gpu: least left first; nodes short of any are left out."""
    rows = [
        (31, 1, 0), (31, 1, 1), (31, 1, 2), (31, 1, 5), (31, 2, 0), (31, 2, 1),
        (32, 514, 0), (32, 512, 0), (32, 513, 0), (33, 0, 0),
    ]  # fmt: skip
    fork = used(rows, width=3, total=(64, 1024, 8))
    assert order_of(fork, requirements(32, 512, 4)) == ["n7", "n5", "n4", "n2", "n1", "n0"]


def test_the_lower_id_wins_a_tie_wherever_it_was_given():
    """So that a round can be repeated."""
    fork = fork_of([node("c"), node("a"), node("b")])
    assert order_of(fork, requirements(1, 1)) == ["a", "b", "c"]


def test_amounts_are_exact():
    """900 left is enough for 500 and for 900, not for 901: nothing is rounded."""
    fork = fork_of([node("a", 1000, 8)])
    put(fork, "j", requirements(100, 0), "a")
    assert fork.find(requirements(500, 0), 1000)
    assert fork.find(requirements(900, 0), 1000)
    assert not fork.find(requirements(901, 0), 1000)


def test_nodes_that_are_alike_are_all_reachable():
    """Three equal nodes of 32 take 96 jobs of 1."""
    fork = fork_of(nodes(3, 32, 256 * GI))
    assert fill(fork, SMALL, 200) == 96
    assert {len(fork.bound(row.id)) for row in fork.nodes} == {32}


def test_any_resource_may_be_the_one_that_runs_out():
    """Pod slots are one more resource."""
    fork = fork_of([node("a", 10, 10, 1)], width=3)
    one = requirements(1, 1, 1)
    put(fork, "first", one, "a")
    assert fork.find(one, 1000).reason.resource == "gpu"
    with fork.attempt() as attempt:
        attempt.evict("first")
        attempt.unbind("first")
        assert fork.find(one, 1000)


def test_past_a_block_of_nodes_the_best_is_still_found():
    """The best stands alone among many, in any block."""
    for at in (0, 63, 64, 129, 199):
        rows = [node(f"n{i:03}", 9 if i != at else 5, 9) for i in range(200)]
        assert fork_of(rows).find(requirements(5, 1), 1000).node_id == f"n{at:03}"
        rows = [node(f"n{i:03}", 4 if i != at else 5, 9) for i in range(200)]
        assert fork_of(rows).find(requirements(5, 1), 1000).node_id == f"n{at:03}"
        assert not fork_of(rows).find(requirements(6, 1), 1000)


def test_a_later_resource_decides_across_blocks_too():
    """Equal in the first resource, less left of the second, far behind."""
    rows = [node(f"n{i:03}", 5, 9 if i != 170 else 8) for i in range(200)]
    assert fork_of(rows).find(requirements(1, 1), 1000).node_id == "n170"


# --- which nodes --------------------------------------------------------------------------------


def test_taints_and_selectors_are_asked():
    """A tainted node takes who tolerates it, a selector takes who carries the label."""
    rows = [node("plain", 32, 32), node("gpu", 8, 8, taints=(Taint("gpu"),), labels={"x": "y"})]
    fork = fork_of(rows)
    assert order_of(fork, requirements(1, 1)) == ["plain"]
    assert order_of(fork, requirements(1, 1, tolerations=(Toleration("gpu"),))) == ["gpu", "plain"]
    assert order_of(fork, requirements(1, 1, selector={"x": "y"})) == []
    both = requirements(1, 1, selector={"x": "y"}, tolerations=(Toleration("gpu"),))
    assert order_of(fork, both) == ["gpu"]


@pytest.mark.parametrize(
    "closed",
    [
        {"lost_at": 1},
        {"disconnected_at": 1},
        {"intake": Intake.CORDONED},
        {"intake": Intake.DRAINING},
    ],
)
def test_closed_nodes_take_nothing_and_keep_what_they_have(closed):
    """Not even with `only`."""
    fork = fork_of([node("a", **closed)])
    assert not fork.find(SMALL, 1000)
    assert not fork.find(SMALL, 1000, only=["a"])
    assert not fork.takes_new("a")
    put(fork, "j", SMALL, "a")
    assert fork.bound("a") == ("j",)


def test_avoided_nodes_come_last_by_rank_and_are_never_forbidden():
    """Not used, then used, then failed on; best fit only among equals."""
    fork = fork_of([node("a", 1, 9), node("b", 2, 9), node("c", 3, 9), node("d", 4, 9)])
    avoid = [("a", 2), ("b", 1), ("b", 0), ("gone", 2), ("c", 1)]
    assert order_of(fork, requirements(1, 1), avoid=avoid) == ["d", "b", "c", "a"]
    assert fork.find(requirements(1, 1), 1000, avoid=[("b", 1), ("b", 2)]).node_id == "a"
    everything = [(row.id, 2) for row in fork.nodes]
    assert fork.find(requirements(1, 1), 1000, avoid=everything).node_id == "a"
    assert fork.find(requirements(1, 1), 1000).node_id == "a"


def test_a_node_to_avoid_comes_before_preempting_anyone():
    """Free room where it failed beats room that someone holds."""
    fork = fork_of([node("busy", 4, 9), node("failed", 9, 9)], 0, 5, preemptible=[0])
    put(fork, "soft", requirements(4, 1), "busy", 0, preemptible=True)
    found = fork.find(requirements(1, 1), 5, avoid=[("failed", 2)])
    assert found == Candidate("failed", EVICTED)
    fork = fork_of([node("busy", 4, 9), node("full", 1, 9)], 0, 5, preemptible=[0])
    put(fork, "soft", requirements(4, 1), "busy", 0, preemptible=True)
    assert fork.find(requirements(2, 1), 5, avoid=[("full", 2)]) == Candidate("busy", 5)


def test_a_preference_against_a_node_comes_after_avoiding_and_before_best_fit():
    """`PreferNoSchedule` is weaker than a failure there and stronger than a better fit."""
    spot = (Taint("spot", "", TaintEffect.PREFER_NO_SCHEDULE),)
    rows = [node("a", 1, 9, taints=spot), node("b", 5, 9), node("c", 9, 9)]
    fork = fork_of(rows)
    asked = requirements(1, 1)
    assert order_of(fork, asked) == ["b", "c", "a"]
    assert order_of(fork, asked, avoid=[("b", 1), ("c", 1)]) == ["a", "b", "c"]
    assert fork.find(asked, 1000, avoid=[("b", 1), ("c", 1)]).node_id == "a"
    assert fork.find(asked, 1000).node_id == "b"
    assert order_of(fork, requirements(1, 1, tolerations=(Toleration("spot"),))) == ["a", "b", "c"]


# --- levels -------------------------------------------------------------------------------------


def test_what_a_binding_takes_at_each_level():
    """A preemptible job of level 0 and one that is not, on 32 cpu and 256 Gi."""
    levels = (0, 1, 2, 3, 28000, 29000, 30000)
    fork = fork_of([node("a", 32, 256)], *levels, preemptible=levels[:3])
    small = requirements(1, 4)
    put(fork, "soft", small, "a", 0, preemptible=True)
    put(fork, "firm", small, "a", 3)
    seen = {p: fork.allocatable("a", p).to_tuple() for p in (EVICTED, *levels)}
    assert seen == {EVICTED: (30, 248), 0: (30, 248), **dict.fromkeys(levels[1:], (31, 252))}
    with fork.attempt() as attempt:
        attempt.evict("soft")
        attempt.evict("firm")
        seen = {p: fork.allocatable("a", p).to_tuple() for p in (EVICTED, *levels)}
        assert seen == {EVICTED: (30, 248), **dict.fromkeys(levels, (32, 256))}
        assert fork.bound("a") == ("firm", "soft")
    assert fork.allocatable("a", EVICTED).to_tuple() == (30, 248)
    assert fork.check() == []


def test_urgent_jobs_see_the_room_of_preemptible_ones_below_them():
    """32 of class 0 fill a node, 32 of class 1 go over them, and then there is no more for 0."""
    fork = fork_of([node("a", 32, 256 * GI)], 0, 1, preemptible=[0, 1])
    assert fill(fork, SMALL, 33, 0, preemptible=True, prefix="low") == 32
    assert fork.find(SMALL, 0).reason.had == 0
    assert fork.find(SMALL, 1) == Candidate("a", 1)
    assert fill(fork, SMALL, 33, 1, preemptible=True, prefix="high") == 32
    assert not fork.find(SMALL, 0)
    assert not fork.find(SMALL, 1)
    assert fork.oversubscribed() == [("a", 0)]
    assert fork.check() == []


def test_what_is_not_preemptible_is_free_to_nobody():
    """It holds every level, whatever its own."""
    fork = fork_of([node("a", 32, 256)], 0, 1, preemptible=[1])
    put(fork, "firm", requirements(32, 1), "a", 0)
    assert not fork.find(requirements(1, 1), 1)


def test_the_room_of_an_evicted_job_is_offered_from_the_lowest_level_on():
    """Free room is searched first, and the level says that someone would have to go."""
    fork = fork_of([node("a", 8, 8), node("b", 9, 9)], 0, 5, preemptible=[0])
    put(fork, "gone", requirements(8, 1), "a", 0, preemptible=True)
    with fork.attempt() as attempt:
        attempt.evict("gone")
        attempt.keep()
    assert fork.find(requirements(5, 1), 0) == Candidate("b", EVICTED)
    put(fork, "new", requirements(5, 1), "b", 0, preemptible=True)
    assert fork.find(requirements(5, 1), EVICTED).reason.had == 4
    assert fork.find(requirements(5, 1), 0) == Candidate("a", 0)


def test_a_priority_sees_what_is_held_at_it_or_above():
    """What holds at its priority or above is taken, and nothing else."""
    fork = fork_of([node("a", 8, 8)], 0, 5, 9, preemptible=[0, 5])
    put(fork, "zero", requirements(1, 0), "a", 0, preemptible=True)
    put(fork, "five", requirements(2, 0), "a", 5, preemptible=True)
    seen = {p: fork.allocatable("a", p)[0] for p in (EVICTED, -3, 0, 3, 5, 7, 9, 99)}
    assert seen == {EVICTED: 5, -3: 5, 0: 5, 3: 6, 5: 6, 7: 8, 9: 8, 99: 8}
    put(fork, "seven", requirements(1, 0), "a", 7, preemptible=True)
    assert [fork.allocatable("a", p)[0] for p in (EVICTED, 0, 5, 9)] == [4, 4, 5, 8]
    assert fork.check() == []


def test_what_does_not_fit_at_one_level_may_fit_at_a_higher_one():
    """A refusal is remembered for its level and those below, not for those above."""
    fork = fork_of([node("a", 8, 8)], 0, 5, 9, preemptible=[0, 5])
    put(fork, "j", requirements(8, 1), "a", 5, preemptible=True)
    for priority, found in [(5, False), (9, True), (0, False), (9, True), (EVICTED, False)]:
        assert bool(fork.find(requirements(1, 1), priority)) is found


def test_negative_room_is_legal_and_fits_nothing():
    """Not even a request that wants none of the resource that is short."""
    fork = fork_of([node("a", 2, 8)])
    put(fork, "j", requirements(5, 1), "a")
    assert fork.allocatable("a", 1000).to_tuple() == (-3, 7)
    assert not fork.find(requirements(0, 1), 1000)
    assert not fork.over_allocated("a")
    assert fork.check() == []


def test_counting_stops_at_the_end_of_int64_and_comes_back_exactly():
    """Sums past 2**63 - 1 count as that; unbinding brings back what was there before."""
    most = 2**63 - 1
    fork = fork_of([node("a", most, 10)])
    before = state(fork)
    with fork.attempt() as attempt:
        for n in range(3):
            attempt.bind_as(f"j{n}", requirements(most - n, 1), "a", 1000, False)
        assert fork.allocatable("a", 1000).to_tuple() == (0, 7)
        assert fork.check() == []
        copy = fork.fork()
        attempt.unbind("j0")
        assert fork.allocatable("a", 1000).to_tuple() == (0, 8)
        attempt.unbind("j2")
        assert fork.allocatable("a", 1000).to_tuple() == (1, 9)
        assert fork.check() == []
    with copy.attempt() as attempt:
        attempt.unbind("j0")
        attempt.unbind("j2")
        assert copy.allocatable("a", 1000).to_tuple() == (1, 9)
        assert copy.check() == []
    assert state(fork) == before


# --- bind, evict, unbind ------------------------------------------------------------------------


def test_every_way_there_and_back_restores():
    """Unbind after bind, unbind after evict after bind; and to evict and bind again is to bind."""
    fork = fork_of([node("a")], 0, 5, preemptible=[0])
    empty = state(fork)
    with fork.attempt() as attempt:
        attempt.bind_as("j", SMALL, "a", 0, True)
        bound = state(fork)
        attempt.unbind("j")
        assert state(fork) == empty
        attempt.bind_as("j", SMALL, "a", 0, True)
        attempt.evict("j")
        assert fork.bound("a") == ("j",)
        assert fork.binding("j") == Binding("a", SMALL, 0, preemptible=True, evicted=True)
        attempt.unbind("j")
        assert state(fork) == empty
        attempt.bind_as("j", SMALL, "a", 0, True)
        attempt.evict("j")
        attempt.bind_as("j", SMALL, "a", 0, True)
        assert state(fork) == bound


def test_steps_that_make_no_sense_are_refused_and_change_nothing():
    """Twice bound, twice evicted, evicted from nowhere; unbinding nobody is fine."""
    fork = fork_of([node("a"), node("b")])
    with fork.attempt() as attempt:
        attempt.bind_as("j", SMALL, "a", 0, False)
        before = state(fork)
        with pytest.raises(IllegalBinding, match="'j' cannot be bound to 'a': it is bound there"):
            attempt.bind_as("j", SMALL, "a", 0, False)
        with pytest.raises(IllegalBinding, match="it holds node 'a'; unbind it first"):
            attempt.bind_as("j", SMALL, "b", 0, False)
        with pytest.raises(IllegalBinding, match="'k' cannot be evicted: it holds no node"):
            attempt.evict("k")
        attempt.unbind("k")
        assert state(fork) == before
        attempt.evict("j")
        before = state(fork)
        with pytest.raises(IllegalBinding, match="it is evicted already"):
            attempt.evict("j")
        with pytest.raises(IllegalBinding, match="it holds node 'a'; unbind it first"):
            attempt.bind_as("j", SMALL, "b", 0, False)
        with pytest.raises(IllegalBinding, match="with other requirements"):
            attempt.bind_as("j", BIG, "a", 0, False)
        assert state(fork) == before
        attempt.unbind("j")
        with pytest.raises(IllegalBinding, match="it holds no node"):
            attempt.evict("j")


def test_unknown_nodes_and_bad_requests_are_refused():
    """One line that says what would be right; nothing half done."""
    fork = fork_of([node("a")])
    before = state(fork)
    with fork.attempt() as attempt:
        with pytest.raises(UnknownNode, match="no node 'z'"):
            attempt.bind_as("j", SMALL, "z", 0, False)
        with pytest.raises(InputError, match="3 amounts where there are 2 resources"):
            attempt.bind_as("j", requirements(1, 1, 1), "a", 0, False)
        with pytest.raises(InputError, match="amount -1 of resource 1; write 0 or more"):
            attempt.bind_as("j", requirements(1, -1), "a", 0, False)
        assert state(fork) == before
    for call in (fork.node, fork.bound, fork.over_allocated, fork.takes_new):
        with pytest.raises(UnknownNode):
            call("z")
    with pytest.raises(UnknownNode):
        fork.allocatable("z", 0)
    with pytest.raises(UnknownNode):
        fork.find(SMALL, 0, only=["a", "z"])
    for bad in (requirements(-1, 0), requirements(1)):
        with pytest.raises(InputError):
            fork.find(bad, 0)
        with pytest.raises(InputError):
            fork.place_many(bad, 1, 0)
        with pytest.raises(InputError):
            fork.victims(bad, 0, [])
    for rank in (-1, 101):
        with pytest.raises(InputError, match="rank"):
            fork.find(SMALL, 0, avoid=[("a", rank)])
    with pytest.raises(InputError, match="count -1"):
        fork.place_many(SMALL, -1, 0)
    assert not fork.find(requirements(2**63 - 1, 1), 1000)
    assert state(fork) == before


def test_an_evicted_job_may_return_where_there_is_room():
    """Room at its own priority; what came meanwhile may be in the way."""
    fork = fork_of([node("a", 8, 8)], 0, 5, preemptible=[0])
    put(fork, "j", requirements(8, 1), "a", 0, preemptible=True)
    with fork.attempt() as attempt:
        assert not fork.can_return("j")
        attempt.evict("j")
        assert fork.can_return("j")
        assert fork.has_room(requirements(8, 1), "a", priority=0)
        attempt.bind_as("new", requirements(1, 1), "a", 5, False)
        assert not fork.can_return("j")
        assert not fork.has_room(requirements(8, 1), "a", priority=0)
    assert not fork.can_return("nobody")


# --- attempts -----------------------------------------------------------------------------------


def with_a_mistake(fork):
    """An attempt that ends in an exception."""
    with fork.attempt() as attempt:
        attempt.bind_as("j", SMALL, "a", 0, False)
        attempt.bind_as("k", SMALL, "z", 0, False)


def test_an_attempt_is_taken_back_unless_kept():
    """Left normally, by an exception, or kept."""
    fork = fork_of([node("a")])
    before = state(fork)
    with fork.attempt() as attempt:
        attempt.bind_as("j", SMALL, "a", 0, False)
    assert state(fork) == before
    with pytest.raises(UnknownNode):
        with_a_mistake(fork)
    assert state(fork) == before
    with fork.attempt() as attempt:
        attempt.bind_as("j", SMALL, "a", 0, False)
        attempt.keep()
    assert fork.bound("a") == ("j",)


def test_a_kept_attempt_inside_one_that_is_not_goes_with_it():
    """Whatever was kept inside is taken back with what is around it."""
    fork = fork_of([node("a")])
    before = state(fork)
    with fork.attempt() as outer:
        outer.bind_as("j", SMALL, "a", 0, False)
        with fork.attempt() as inner:
            inner.bind_as("k", SMALL, "a", 0, False)
            inner.keep()
        with fork.attempt() as inner:
            inner.unbind("j")
        assert fork.bound("a") == ("j", "k")
        outer.evict("k")
    assert state(fork) == before
    assert not fork.table.in_attempt
    with fork.attempt() as outer:
        with fork.attempt() as inner:
            inner.bind_as("k", SMALL, "a", 0, False)
            inner.keep()
        outer.keep()
    assert fork.bound("a") == ("k",)


def test_attempts_nest_deeper_than_what_is_remembered():
    """Past the stamps that are kept, searches are right all the same."""
    fork = fork_of([node("a", 30, 99)])
    one = requirements(1, 1)
    before = state(fork)
    open_ones = []
    for n in range(30):
        attempt = fork.attempt()
        open_ones.append(attempt.__enter__())
        attempt.bind_as(f"j{n}", one, "a", 0, False)
        assert fork.find(requirements(29 - n, 1), 1000)
        assert not fork.find(requirements(30 - n, 1), 1000)
    for n, attempt in reversed(list(enumerate(open_ones))):
        if n % 2:
            attempt.keep()
        attempt.__exit__(None, None, None)
        assert fork.find(requirements(30 - len(fork.bound("a")), 1), 1000)
        assert fork.check() == []
    assert state(fork) == before


def test_an_attempt_is_used_in_its_own_block_only():
    """Before, after, after keep, and around an open inner one: TxnClosed."""
    fork = fork_of([node("a")])
    attempt = fork.attempt()
    with pytest.raises(TxnClosed):
        attempt.unbind("j")
    with attempt:
        attempt.keep()
        with pytest.raises(TxnClosed):
            attempt.keep()
    with pytest.raises(TxnClosed):
        attempt.bind_as("j", SMALL, "a", 0, False)
    with pytest.raises(TxnClosed, match="one block"), attempt:
        pass
    with fork.attempt() as outer, fork.attempt() as inner:
        with pytest.raises(TxnClosed, match="inside this one"):
            outer.evict("j")
        with pytest.raises(TxnClosed, match="inside this one"):
            outer.keep()
        inner.bind_as("j", SMALL, "a", 0, False)
    assert fork.bound("a") == ()


def test_gangs_are_tried_and_taken_back():
    """32 fit on a node, 33 do not, and after 33 were tried 32 still do."""
    fork = fork_of(nodes(2, 32, 256 * GI))

    def gang(size, name):
        with fork.attempt() as attempt:
            for n in range(size):
                found = fork.find(SMALL, 1000)
                if not found:
                    return False
                attempt.bind_as(f"{name}.{n}", SMALL, found.node_id, 1000, False)
            attempt.keep()
            return True

    assert gang(32, "one")
    assert not gang(33, "two")
    assert gang(32, "three")
    assert not gang(1, "four")


def test_what_did_not_fit_is_found_once_room_is_given_back():
    """The memory of refusals forgets at each release, in attempts and out of them."""
    fork = fork_of([node("a", 8, 8)], 0, 5, preemptible=[0])
    need = requirements(5, 1)
    put(fork, "j", requirements(8, 1), "a", 0, preemptible=True)
    assert not fork.find(need, 0)
    with fork.attempt() as attempt:
        assert not fork.find(need, 0)
        attempt.evict("j")
        assert fork.find(need, 0) == Candidate("a", 0)
        assert not fork.find(need, EVICTED)
        with fork.attempt() as inner:
            inner.unbind("j")
            assert fork.find(need, EVICTED)
            inner.bind_as("k", requirements(8, 1), "a", 5, False)
            assert not fork.find(need, 5)
        assert fork.find(need, 0) == Candidate("a", 0)
        assert not fork.find(need, EVICTED)
        with fork.attempt() as inner:
            inner.unbind("j")
            inner.keep()
        assert fork.find(need, EVICTED)
    assert not fork.find(need, 0)
    assert fork.find(need, 5) == Candidate("a", 5)
    with fork.attempt() as attempt:
        attempt.unbind("j")
        attempt.keep()
    assert fork.find(need, 0) == Candidate("a", EVICTED)


# --- batches ------------------------------------------------------------------------------------


def test_alike_jobs_fill_node_after_node():
    """As one by one; fewer when no more fit; nothing is bound by asking."""
    fork = fork_of([node("a", 3, 99), node("b", 5, 99), node("c", 4, 2)])
    one = requirements(1, 1)
    before = state(fork)
    assert fork.place_many(one, 6, 1000) == [("a", 3), ("c", 2), ("b", 1)]
    assert fork.place_many(one, 99, 1000) == [("a", 3), ("c", 2), ("b", 5)]
    assert fork.place_many(one, 4, 1000, avoid=[("a", 2)]) == [("c", 2), ("b", 2)]
    assert fork.place_many(one, 0, 1000) == []
    assert fork.place_many(requirements(6, 1), 1, 1000) == []
    assert fork.place_many(requirements(0, 0), 7, 1000) == [("a", 7)]
    assert state(fork) == before
    assert fork.check() == []


def test_a_batch_takes_free_room_before_that_of_others():
    """Free everywhere first; then what is below the priority, on nodes already named."""
    fork = fork_of([node("a", 4, 9), node("b", 4, 9)], 0, 5, preemptible=[0])
    put(fork, "soft", requirements(3, 1), "a", 0, preemptible=True)
    one = requirements(1, 1)
    assert fork.place_many(one, 99, 0) == [("a", 1), ("b", 4)]
    assert fork.place_many(one, 99, 5) == [("a", 1), ("b", 4), ("a", 3)]
    assert fork.place_many(one, 99, EVICTED) == [("a", 1), ("b", 4)]


# --- victims ------------------------------------------------------------------------------------


def loaded(*jobs, total=(8, 99), firm=(), high=()):
    """A fork and its candidates: `jobs` are (node, cpu), in the order of being kept."""
    ids = sorted({node_id for node_id, _ in jobs})
    fork = fork_of([node(id, *total) for id in ids], 0, 5, preemptible=[0])
    for n, (node_id, cpu) in enumerate(jobs):
        priority = 5 if n in high else 0
        put(fork, f"j{n}", requirements(cpu, 1), node_id, priority, preemptible=n not in firm)
    return fork, [f"j{n}" for n in range(len(jobs))]


def victims(fork, candidates, cpu, priority=5):
    """Node and victims in one tuple, or None."""
    found = fork.victims(requirements(cpu, 1), priority, candidates)
    return (found.node_id, *found.job_ids) if found else None


def test_the_node_whose_loss_lies_latest_gives_way():
    """Both nodes would do; the one whose dearest victim is later in the order is taken."""
    fork, order = loaded(("a", 8), ("b", 4), ("b", 4))
    assert victims(fork, order, 4) == ("b", "j2")
    assert victims(fork, order, 8) == ("b", "j1", "j2")
    assert victims(fork, ["j1", "j0", "j2"], 8) == ("a", "j0")
    assert victims(fork, order, 9) is None


def test_nobody_gives_way_for_nothing():
    """A small job later in the order is spared when the large one alone suffices."""
    fork, order = loaded(("a", 7), ("a", 1))
    assert victims(fork, order, 7) == ("a", "j0")
    assert victims(fork, order, 1) == ("a", "j1")
    assert victims(fork, order, 8) == ("a", "j0", "j1")


def test_the_fewest_give_way_and_among_equally_few_the_latest():
    """Two rather than three, whichever sum up; then the latest of them."""
    fork, order = loaded(("a", 5), ("a", 4), ("a", 2), ("a", 2), total=(13, 99))
    assert victims(fork, order, 9) == ("a", "j0", "j1")
    fork, order = loaded(("a", 4), ("a", 2), ("a", 2), total=(8, 99))
    assert victims(fork, order, 6) == ("a", "j0", "j2")


def test_no_victim_where_there_is_room():
    """Free room on any node means that nobody has to go."""
    fork, order = loaded(("a", 8), ("b", 2))
    assert victims(fork, order, 6) == ("b",)


def test_who_never_gives_way_is_passed_over():
    """Not preemptible, or of a higher class than the job that comes."""
    fork, order = loaded(("a", 8), ("b", 8), firm=[1])
    assert victims(fork, order, 4) == ("a", "j0")
    fork, order = loaded(("a", 8), ("b", 8), high=[1])
    assert victims(fork, order, 4, priority=0) == ("a", "j0")
    assert victims(fork, order, 4, priority=5) == ("b", "j1")


def test_evicted_and_running_candidates_count_alike():
    """What matters is what the node would have if they were gone."""
    fork, order = loaded(("a", 8), ("b", 8))
    with fork.attempt() as attempt:
        attempt.evict("j1")
        assert victims(fork, order, 4) == ("b", "j1")
        attempt.bind_as("new", requirements(6, 1), "b", 5, False)
        assert victims(fork, order, 4) == ("a", "j0")
        assert victims(fork, order, 2) == ("b", "j1")


def test_a_node_that_takes_nothing_has_no_victims():
    """Cordoned, lost, tainted or over-allocated: nobody is preempted there."""
    rows = [node("a", 8, 8, intake=Intake.CORDONED), node("b", 8, 8, taints=(Taint("x"),))]
    fork = fork_of(rows, 0, 5, preemptible=[0])
    put(fork, "j0", requirements(8, 1), "a", 0, preemptible=True)
    put(fork, "j1", requirements(8, 1), "b", 0, preemptible=True)
    assert victims(fork, ["j0", "j1"], 4) is None
    found = fork.victims(requirements(4, 1, tolerations=(Toleration("x"),)), 5, ["j0", "j1"])
    assert found.job_ids == ("j1",)


def test_candidates_must_hold_a_node():
    """A name that stands twice counts once."""
    fork, order = loaded(("a", 8))
    with pytest.raises(IllegalBinding, match="'x' cannot be a victim: it holds no node"):
        fork.victims(requirements(1, 1), 5, [*order, "x"])
    assert victims(fork, ["j0", "j0"], 4) == ("a", "j0")


def test_a_search_for_the_fewest_that_is_too_long_still_ends_and_spares():
    """Sixty jobs, each with much of one resource or of the other: nobody named can be spared.

    Each frees 300 of both together, so 6,200 take 21; but every 20 look enough by either alone.
    The dearest job alone has the third resource, so that all others are in question.
    """
    amounts = [(0, 0, 1), *((100 + 37 * n % 101, 200 - 37 * n % 101, 0) for n in range(60))]
    wanted = (3100, 3100, 1)
    total = [sum(each[r] for each in amounts) for r in range(3)]
    fork = fork_of([node("a", *total)], 0, 5, preemptible=[0], width=3)
    order = [f"j{n:02}" for n in range(61)]
    for name, each in zip(order, amounts, strict=True):
        put(fork, name, requirements(*each), "a", 0, preemptible=True)
    found = fork.victims(requirements(*wanted), 5, order)

    def enough(names):
        freed = [sum(amounts[int(name[1:])][r] for name in names) for r in range(3)]
        return all(had >= want for had, want in zip(freed, wanted, strict=True))

    assert enough(found.job_ids)
    assert not any(enough(set(found.job_ids) - {name}) for name in found.job_ids)
    assert list(found.job_ids) == sorted(found.job_ids)


# --- copies -------------------------------------------------------------------------------------


def test_forks_are_independent_of_the_db_and_of_each_other():
    """What one does, in an attempt or for good, no other sees."""
    db = NodeDb(node_config(0, 5, preemptible=[0]), nodes(3, 8, 8))
    one, two = db.fork("default"), db.fork("default")
    fresh = state(two)
    put(one, "j", SMALL, "node-0000", 0, preemptible=True)
    with one.attempt() as attempt:
        attempt.evict("j")
        three = one.fork()
        attempt.unbind("j")
        assert three.bound("node-0000") == ("j",)
        assert not three.table.in_attempt
    assert state(two) == fresh == state(db.fork("default"))
    put(three, "k", SMALL, "node-0001")
    assert one.node_of("k") is None
    put(one, "m", SMALL, "node-0002")
    assert one.bound("node-0002") == ("m",)
    assert three.bound("node-0001") == ("k",)
    assert one.binding("j").evicted is False
    assert three.binding("j").evicted is True
    db.remove_many(["node-0000"])
    assert [fork.check() for fork in (one, two, three)] == [[], [], []]
    assert len(one) == 3


def test_a_fork_says_what_its_nodes_are():
    """Rows, values of a label, and what each job holds."""
    rows = [node("b", labels={"rack": "2"}), node("a", labels={"rack": "1"}), node("c")]
    fork = fork_of(rows)
    assert [row.id for row in fork.nodes] == ["a", "b", "c"]
    assert fork.node("b") is rows[0]
    assert fork.label_values("rack") == ("1", "2")
    assert fork.label_values("none") == ()
    assert fork.node_of("j") is None
    assert fork.binding("j") is None


def test_a_search_without_a_priority_asks_at_that_of_the_class():
    """One that is not there is named; so is what is no request, and text where ids are wanted."""
    fork = fork_of([node("a", 8, 8)], 0, 5, preemptible=[0])
    put(fork, "low", requirements(8, 8), "a", 0, preemptible=True)
    urgent = Requirements(ResourceVector((1, 1)), "p5")
    assert fork.find(urgent).level == 5
    assert not fork.find(Requirements(ResourceVector((1, 1)), "p0"))
    assert fork.place_many(urgent, 2) == [("a", 2)]
    assert fork.victims(urgent, 5, [job("low", 8, 8)]).job_ids == ("low",)
    with pytest.raises(ConfigError, match="unknown priority class 'p6'"):
        fork.find(Requirements(ResourceVector((1, 1)), "p6"))
    with pytest.raises(TypeError, match="give those of the job"):
        fork.find(job("j", 1, 1))
    with pytest.raises(InputError, match="give a list of node ids"):
        fork.find(urgent, only="a")


def test_tolerations_are_tolerations():
    """Said when they are given, not when a node is searched."""
    with pytest.raises(TypeError, match="a tuple of Toleration, got 'gpu' in it"):
        Requirements(ResourceVector((1, 1)), tolerations=("gpu",))
