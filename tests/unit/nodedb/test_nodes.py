"""The node db: nodes that come, change and go; jobs that follow the job db; pools."""

import pytest

from kit.jobs import backing_off, ended, job, leased, requeued, requirements, run
from kit.nodes import Pairs, node, node_config, nodes
from pyresched.config import SchedulingConfig
from pyresched.errors import ConfigError, DuplicateId, InputError, UnknownNode
from pyresched.model import Intake, JobState, Outcome, ResourceVector, Taint
from pyresched.nodedb import EVICTED, NodeDb

CONFIG = node_config(0, 5, preemptible=[0])


def state(db):
    """All that a node db says."""
    out = []
    for pool in db.pools():
        fork = db.fork(pool)
        out.append((pool, fork.nodes, [fork.bound(row.id) for row in fork.nodes]))
        out.append([fork.allocatable(r.id, p) for r in fork.nodes for p in (EVICTED, 0, 5)])
        out.append([(fork.takes_new(row.id), fork.over_allocated(row.id)) for row in fork.nodes])
    return out


def running(id="j", node_id="a", *amounts, priority=0, name="p0", **fields):
    """A leased job on *node_id*."""
    queued = job(id, *(amounts or (4, 4)), priority_class=name)
    return leased(queued, node_id=node_id, priority=priority, **fields)


@pytest.fixture
def db():
    """Checked when its test is over."""
    one = NodeDb(CONFIG, [node("b", 8, 8), node("a", 8, 8)])
    yield one
    assert one.check() == []


# --- nodes --------------------------------------------------------------------------------------


def test_it_works_with_the_default_configuration():
    """Cores in thousandths, memory in MiB."""
    db = NodeDb(SchedulingConfig(), [node("a")])
    assert db.fork("default").find(requirements(), 1000).node_id == "a"


def test_what_is_given_in_the_wrong_place_is_named():
    """In one short line, however many nodes there are."""
    with pytest.raises(TypeError, match="NodeDb got a list; give a SchedulingConfig") as error:
        NodeDb([node(f"n{i}") for i in range(50)])
    assert len(str(error.value)) < 100


def test_a_pool_that_is_nowhere_cannot_be_forked(db):
    """A typing mistake is not an empty pool."""
    with pytest.raises(ConfigError, match="unknown pool 'defualt'; did you mean 'default'"):
        db.fork("defualt")
    assert len(NodeDb(CONFIG).fork("default")) == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"labels": {"zone": 1}}, "node 'a': label or value 1 is no text"),
        ({"taints": ("gpu",)}, "node 'a': 'gpu' is no taint"),
        ({"taints": (Taint("gpu", "", "NoSchedul"),)}, "node 'a': Taint.*NoSchedul.*is no taint"),
    ],
)
def test_labels_and_taints_of_another_kind_are_named(fields, message):
    """Before anything has changed."""
    db = NodeDb(CONFIG)
    with pytest.raises(InputError, match=message):
        db.upsert_many([node("b", 8, 8), node("a", 8, 8, **fields)])
    assert len(db) == 0


def test_what_it_shows_can_be_read(db):
    """One pool is one, and a candidate that touches nobody does not show a 19-digit level."""
    assert repr(db) == "<NodeDb 2 nodes in 1 pool, 0 jobs on them>"
    found = db.fork("default").find(requirements(1, 1), 5)
    assert repr(found) == "Candidate(node_id='a', level=EVICTED)"


def test_nodes_are_known_by_id(db):
    """In id order, however they came."""
    assert len(db) == 2
    assert db.ids() == ("a", "b")
    assert [row.id for row in db] == ["a", "b"]
    assert db.get("a") == node("a", 8, 8)
    assert db.get("z") is None
    assert "a" in db
    assert "z" not in db
    assert db.pools() == ("default",)


def test_no_nodes_are_no_error():
    """An empty db answers everything with nothing."""
    db = NodeDb(CONFIG)
    assert (len(db), db.ids(), db.pools(), db.nodes(), db.check()) == (0, (), (), (), [])
    assert db.totals("default") == db.capacity("default") == ResourceVector((0, 0))
    assert not db.fork("default").find(requirements(1, 1), 5)
    assert not db.bare("default").find(requirements(1, 1), 5)
    db.upsert_many([])
    db.remove_many([])
    db.advance(Pairs())
    assert db.ids() == ()


def test_totals_are_of_the_nodes_that_are_there_and_capacity_of_all():
    """Lost nodes count for capacity only; cordoned ones for both; each pool for itself."""
    db = NodeDb(
        CONFIG,
        [
            node("a", 2, 3),
            node("b", 4, 5, lost_at=9),
            node("c", 8, 8, intake=Intake.CORDONED),
            node("d", 100, 100, pool="other"),
        ],
    )
    assert db.totals("default") == ResourceVector((10, 11))
    assert db.capacity("default") == ResourceVector((14, 16))
    assert db.totals("other") == ResourceVector((100, 100))
    assert db.totals("none") == ResourceVector((0, 0))
    most = 2**63 - 1
    db.upsert_many([node("e", most, 1), node("f", most, 1)])
    assert db.totals("default") == ResourceVector((most, 13))


def test_a_node_that_changes_is_searched_as_it_is_now(db):
    """Capacity, labels, taints, intake: no rebuild, no leftovers, in either direction."""
    asked = requirements(1, 1, selector={"x": "y"})
    assert not db.fork("default").find(asked, 0)
    db.upsert_many([node("a", 8, 8, labels={"x": "y"})])
    assert db.fork("default").find(asked, 0).node_id == "a"
    db.upsert_many([node("a", 8, 8, labels={"x": "y"}, taints=(Taint("t"),))])
    assert not db.fork("default").find(asked, 0)
    db.upsert_many([node("a", 8, 8, labels={"x": "z"})])
    assert not db.fork("default").find(asked, 0)
    for row, best in [
        (node("a", 8, 8, intake=Intake.CORDONED), "b"),
        (node("a", 8, 8, intake=Intake.CORDONED), "b"),
        (node("a", 8, 8), "a"),
        (node("a", 8, 8, lost_at=3), "b"),
        (node("a", 8, 8), "a"),
        (node("a", 9, 8), "b"),
        (node("a", 7, 8), "a"),
    ]:
        db.upsert_many([row])
        assert db.fork("default").find(requirements(1, 1), 0).node_id == best


def test_nodes_that_come_and_go_leave_the_others_as_they_were(db):
    """What is bound elsewhere stays bound, whatever happens to the order of nodes."""
    db.advance(Pairs.added([running("j", "b")]))
    before = state(db)
    db.upsert_many(nodes(3, 8, 8, prefix="aa"))
    assert db.fork("default").bound("b") == ("j",)
    assert db.fork("default").allocatable("b", 0) == ResourceVector((4, 4))
    db.remove_many(["aa-0000", "aa-0002", "aa-0001", "aa-0001"])
    assert state(db) == before


def test_a_node_that_comes_back_finds_what_is_bound_to_it(db):
    """The job db alone says what holds a node; it may also say so before the node is known."""
    db.advance(Pairs.added([running("j", "a"), running("k", "late")]))
    before = state(db)
    db.remove_many(["a"])
    assert db.check() == []
    db.upsert_many([node("a", 8, 8)])
    assert state(db) == before
    db.upsert_many([node("late", 8, 8)])
    assert db.fork("default").bound("late") == ("k",)
    db.remove_many(["late"])
    old = running("k", "late")
    db.advance(Pairs((old, requeued(old))))
    db.upsert_many([node("late", 8, 8)])
    assert db.fork("default").bound("late") == ()


def test_a_node_may_move_to_another_pool_with_what_is_bound_to_it(db):
    """Its jobs count where it is."""
    db.advance(Pairs.added([running("j", "a")]))
    db.upsert_many([node("a", 8, 8, pool="other")])
    assert db.pools() == ("default", "other")
    assert db.fork("other").bound("a") == ("j",)
    with pytest.raises(UnknownNode):
        db.fork("default").bound("a")
    assert db.fork("default").node_of("j") is None
    db.upsert_many([node("a", 8, 8)])
    assert db.pools() == ("default",)
    assert db.fork("default").bound("a") == ("j",)


def test_lost_nodes_take_nothing_and_keep_what_the_job_db_says(db):
    """Bindings go when the runs do, not when the node does."""
    old = running("j", "a")
    db.advance(Pairs.added([old]))
    db.upsert_many([node("a", 8, 8, lost_at=3)])
    fork = db.fork("default")
    assert fork.bound("a") == ("j",)
    assert order(fork) == ["b"]
    db.advance(Pairs((old, requeued(old))))
    assert db.fork("default").bound("a") == ()
    assert db.fork("default").allocatable("a", EVICTED) == ResourceVector((8, 8))


def test_a_disconnected_node_takes_nothing_new_and_is_bound_again_by_whom_it_kept(db):
    """A run that is unknown is unbound, and bound once more when it is taken back."""
    kept, given_up = running("kept", "a"), running("given-up", "a")
    db.advance(Pairs.added([kept, given_up]))
    db.upsert_many([node("a", 8, 8, disconnected_at=3)])
    unknown = requeued(given_up, Outcome.UNKNOWN)
    db.advance(Pairs((given_up, unknown)))
    fork = db.fork("default")
    assert (fork.bound("a"), order(fork)) == (("kept",), ["b"])
    db.upsert_many([node("a", 8, 8)])
    db.advance(Pairs((unknown, given_up.replace(version=unknown.version + 1))))
    assert db.fork("default").bound("a") == ("given-up", "kept")
    assert db.check() == []


def order(fork, *amounts):
    """Every node that would take one."""
    asked = requirements(*(amounts or (1, 1)))
    return [row.id for row in fork.nodes if fork.find(asked, 5, only=[row.id])]


# --- over-allocated -----------------------------------------------------------------------------


@pytest.mark.parametrize("reported", [(3, 8), (0, 0), (8, 3)])
def test_a_capacity_below_what_is_allocated_takes_nothing_and_evicts_nobody(db, reported):
    """A moment's wrong report of zero preempts nothing, and the right one heals it."""
    db.advance(Pairs.added([running("j", "a"), running("k", "b", 1, 1)]))
    before = state(db)
    db.upsert_many([node("a", *reported)])
    fork = db.fork("default")
    assert fork.over_allocated("a")
    assert not fork.over_allocated("b")
    assert not fork.takes_new("a")
    assert order(fork, 0, 0) == ["b"]
    assert fork.bound("a") == ("j",)
    assert fork.oversubscribed() == []
    with fork.attempt() as attempt:
        attempt.evict("j")
        assert fork.can_return("j")
        assert order(fork, 0, 0) == ["b"]
        attempt.unbind("j")
        assert order(fork, 0, 0) == ["b"]
    assert fork.check() == []
    db.upsert_many([node("a", 8, 8)])
    assert state(db) == before


def test_exactly_full_is_not_over_allocated(db):
    """Nothing left is not less than nothing."""
    db.advance(Pairs.added([running("j", "a", 8, 8)]))
    fork = db.fork("default")
    assert not fork.over_allocated("a")
    assert fork.takes_new("a")


# --- jobs ---------------------------------------------------------------------------------------


def test_a_job_holds_room_from_its_lease_to_the_end_of_its_run(db):
    """Whatever else changes about it."""
    queued = job("j", 4, 4, priority_class="p0")
    held = leased(queued, node_id="a")
    started = held.replace(state=JobState.RUNNING)
    for old, new, bound in [
        (None, queued, ()),
        (queued, held, ("j",)),
        (held, started, ("j",)),
        (started, backing_off(started), ()),
        (backing_off(started), leased(requeued(held), node_id="a"), ("j",)),
        (held, ended(held), ()),
        (held, None, ()),
    ]:
        db.advance(Pairs((old, new)))
        assert db.fork("default").bound("a") == bound
        left = ResourceVector((4, 4) if bound else (8, 8))
        assert db.fork("default").allocatable("a", 0) == left


def test_a_run_counts_at_the_priority_it_was_placed_at(db):
    """And at every level if its class is not preemptible."""
    db.advance(
        Pairs.added([running("soft", "a", 1, 0), running("firm", "a", 2, 0, name="p5", priority=0)])
    )
    fork = db.fork("default")
    assert [fork.allocatable("a", p)[0] for p in (EVICTED, 0, 5)] == [5, 5, 6]
    assert fork.binding("soft")[2:] == (0, True, False)
    assert fork.binding("firm")[2:] == (0, False, False)


def test_a_new_run_on_the_same_node_counts_as_that_run_was_placed(db):
    """Same job, node and request, another priority."""
    first = running("j", "a", priority=0)
    db.advance(Pairs.added([first]))
    assert [db.fork("default").allocatable("a", p)[0] for p in (0, 5)] == [4, 8]
    again = leased(requeued(first), node_id="a", priority=5)
    db.advance(Pairs((first, again)))
    assert [db.fork("default").allocatable("a", p)[0] for p in (0, 5)] == [4, 4]


def test_a_job_that_moves_is_on_its_new_node_only(db):
    """A run on another node, with another request, in one step; across pools too."""
    first = running("j", "a")
    db.advance(Pairs.added([first]))
    moved = leased(requeued(first), node_id="b").replace(
        requirements=requirements(2, 2, priority_class="p0")
    )
    db.advance(Pairs((first, moved)))
    fork = db.fork("default")
    assert (fork.bound("a"), fork.bound("b")) == ((), ("j",))
    assert fork.allocatable("a", 0) == ResourceVector((8, 8))
    assert fork.allocatable("b", 0) == ResourceVector((6, 6))
    db.upsert_many([node("c", 8, 8, pool="other")])
    db.advance(Pairs((moved, leased(requeued(moved), node_id="c"))))
    assert db.fork("other").bound("c") == ("j",)
    assert db.fork("default").bound("b") == ()


def test_the_same_diff_twice_is_as_once(db):
    """And a diff from further back as well."""
    first = running("j", "a")
    diff = Pairs((None, first), (job("k"), running("k", "b", 1, 1)))
    db.advance(diff)
    once = state(db)
    db.advance(diff)
    assert state(db) == once


@pytest.mark.parametrize(
    ("bad", "error", "says"),
    [
        (running("x", "b", name="unheard"), ConfigError, "unknown priority class 'unheard'"),
        (running("x", "b", 1, 1, 1), InputError, "job 'x': request (1, 1, 1)"),
        (running("x", "b", 1, -1), InputError, "write an amount of 0 or more for each of cpu, m"),
    ],
    ids=["class", "width", "negative"],
)
def test_a_diff_with_a_bad_job_changes_nothing(db, bad, error, says):
    """The good jobs before it are not bound either."""
    before = state(db)
    with pytest.raises(error) as raised:
        db.advance(Pairs.added([running("j", "a"), bad]))
    assert says in str(raised.value)
    assert state(db) == before


def test_requirements_that_nothing_has_any_more_are_dropped(db):
    """A long life with ever new requests does not grow; what is bound keeps its own."""
    kept = running("kept", "b", 2, 3)
    early = [running(f"early-{n}", "a", n, 7) for n in range(3)]
    db.advance(Pairs.added([*early, kept]))
    db.advance(Pairs(*((one, None) for one in early)))
    table = db._pools["default"].table
    for n in range(1_100):
        one = running("j", "a", 1 + n % 7, n)
        db.advance(Pairs((None, one)))
        db.advance(Pairs((one, None)))
    assert table.shapes < 100
    assert db.fork("default").binding("kept").requirements == kept.requirements
    assert db.fork("default").allocatable("b", EVICTED) == ResourceVector((6, 5))
    assert db.fork("default").find(requirements(1, 1), 0).node_id == "b"


# --- bad nodes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (node("x", 1, 1, 1), "node 'x': 3 amounts; the resources are cpu, memory"),
        (node("x", 1, -1), "node 'x': memory -1 is negative; write 0 or more"),
        (node("", 1, 1), "a node needs an id"),
        (node("x", 1, 1, labels={"k": "v" * 300}), "has 300 characters; write at most 253"),
        (node("x", 1, 1, labels={"k" * 300: "v"}), "has 300 characters; write at most 253"),
    ],
    ids=["width", "negative", "no id", "long value", "long label"],
)
def test_a_bad_node_changes_nothing(db, bad, says):
    """One line that names it; the good ones with it are not taken in either."""
    before = state(db)
    with pytest.raises(InputError) as raised:
        db.upsert_many([node("a", 1, 1), node("c", 1, 1), bad])
    assert says in str(raised.value)
    assert state(db) == before
    with pytest.raises(InputError):
        NodeDb(CONFIG, [bad])


def test_one_id_with_two_contents_is_refused(db):
    """Twice the same is once."""
    before = state(db)
    with pytest.raises(DuplicateId, match="node 'c' comes twice"):
        db.upsert_many([node("c", 1, 1), node("c", 2, 2)])
    assert state(db) == before
    db.upsert_many([node("c", 1, 1), node("c", 1, 1)])
    assert db.ids() == ("a", "b", "c")


def test_an_unknown_node_is_not_removed(db):
    """Nor are the known ones named with it."""
    with pytest.raises(UnknownNode, match="no node 'z'"):
        db.remove_many(["a", "z"])
    assert db.ids() == ("a", "b")


def test_a_node_with_nothing_takes_who_wants_nothing(db):
    """A total of zero is legal."""
    db.upsert_many([node("0", 0, 0)])
    assert db.fork("default").find(requirements(0, 0), 0).node_id == "0"
    assert db.fork("default").find(requirements(1, 0), 0).node_id == "a"


# --- bare ---------------------------------------------------------------------------------------


def test_the_bare_pool_is_empty_open_and_whole(db):
    """Lost, cordoned and busy nodes count as there; labels and taints still decide."""
    db.advance(Pairs.added([running("j", "a", 8, 8)]))
    db.upsert_many(
        [
            node("b", 9, 9, lost_at=1),
            node("c", 10, 10, intake=Intake.DRAINING),
            node("d", 99, 99, taints=(Taint("t"),)),
        ]
    )
    bare = db.bare("default")
    assert order(bare, 8, 8) == ["a", "b", "c"]
    assert bare.find(requirements(11, 1), 0).reason.had == 10
    assert bare.check() == []
    with bare.attempt() as attempt:
        attempt.bind_as("j", requirements(1, 1), "a", 0, False)
        attempt.keep()
    assert db.bare("default").bound("a") == ()


def test_a_run_without_end_of_a_job_that_is_not_active_holds_nothing(db):
    """The state of the job decides."""
    odd = job("j", 4, 4, priority_class="p0").replace(runs=(run(node_id="a"),))
    db.advance(Pairs.added([odd]))
    assert db.fork("default").bound("a") == ()


def test_handles_of_jobs_that_are_gone_are_given_back(db):
    """A long life with ever new jobs does not grow, forked or not in between."""
    table = db._pools["default"].table
    kept = running("kept", "b", 1, 1)
    db.advance(Pairs.added([kept]))
    for turn in range(6):
        some = [running(f"{turn}-{n}", "a", 0, 0) for n in range(1_500)]
        db.advance(Pairs.added(some))
        aside = db.fork("default")
        db.advance(Pairs(*((one, None) for one in some)))
        assert aside.bound("a") == tuple(sorted(one.id for one in some))
        assert aside.check() == []
    assert table.held == 1
    assert table.handles < 4_000
    assert db.fork("default").bound("b") == ("kept",)


def test_levels_that_nobody_uses_any_more_go(db):
    """However many priorities came by; what is bound stays exactly as it was."""
    table = db._pools["default"].table
    kept = running("kept", "b", 3, 3, priority=5)
    db.advance(Pairs.added([kept]))
    for priority in range(40):
        one = running("j", "a", 1, 1, priority=priority)
        db.advance(Pairs((None, one)))
        assert db.check() == []
        db.advance(Pairs((one, None)))
    assert table.rows <= 4 + len(db.levels)
    assert db.check() == []
    fork = db.fork("default")
    assert fork.allocatable("b", 5) == ResourceVector((5, 5))
    assert fork.allocatable("b", 6) == ResourceVector((8, 8))


def test_a_run_of_no_pool_is_at_home_nowhere_and_a_guest_nowhere(db):
    """Wherever its node goes, it counts as if built anew."""
    one = running("j", "a", priority=0, pool="")
    db.advance(Pairs.added([one]))
    db.upsert_many([node("a", 8, 8, pool="other")])
    assert db.fork("other").binding("j").priority == 0
    assert db.check() == []
