"""INV-B12: the nodes of a pool with those of its away pools, as its round sees them, while rows change."""

import pytest

from kit.jobs import ended, job, leased, requirements
from kit.nodes import Pairs, node
from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.model import (
    Constraint,
    Intake,
    Job,
    Operator,
    Preference,
    PriorityClass,
    ResourceVector,
    Taint,
    TaintEffect,
)
from pyresched.nodedb import CROSS_POOL, EVICTED, NodeDb, NodesAhead

CLASSES = (
    PriorityClass(name="soft", priority=5, preemptible=True),
    PriorityClass(name="firm", priority=5),
)
OTHERS = (PoolConfig(name="b"), PoolConfig(name="c"))


def config(*pools: PoolConfig) -> SchedulingConfig:
    """`p` may use nodes of `b`, and nobody else is a guest, unless *pools* say otherwise."""
    return SchedulingConfig(
        priority_classes=CLASSES,
        default_priority_class="soft",
        pools=pools or (PoolConfig(name="p", away_pools=("b",)), *OTHERS),
    )


def running(id: str, node_id: str, pool: str, size: int = 3, name: str = "soft") -> Job:
    """A run of *pool* on *node_id*."""
    asked = requirements(size, size, priority_class=name)
    return leased(job(id, requirements=asked), node_id=node_id, priority=5, pool=pool)


@pytest.fixture
def db():
    """One node of each pool; checked when its test is over."""
    rows = [node(f"{name}1", 8, 8, pool=name) for name in "pbc"]
    one = NodeDb(config(), rows)
    one.fork("p")
    yield one
    assert one.check() == []


def left(db: NodeDb, pool: str, node_id: str, level: int) -> int:
    """What is left of a node in the round over *pool*."""
    return db.fork(pool).allocatable(node_id, level)[0]


def test_a_round_has_the_nodes_of_its_pool_and_of_its_away_pools(db):
    """And no others; who lends sees no more than its own."""
    assert [each.id for each in db.fork("p").nodes] == ["b1", "p1"]
    assert [each.id for each in db.fork("b").nodes] == ["b1"]
    assert [each.id for each in db.nodes("p")] == ["p1"]


def test_what_others_hold_of_a_lent_node_is_not_for_a_guest_to_free(db):
    """At no level; its own runs there are as at home, and for the owner they come last."""
    db.advance(Pairs.added([running("theirs", "b1", "b"), running("ours", "b1", "p")]))
    assert [left(db, "p", "b1", at) for at in (EVICTED, 5, 6)] == [2, 2, 5]
    assert [left(db, "b", "b1", at) for at in (EVICTED, 5, 6)] == [2, 5, 8]
    assert db.fork("p").binding("theirs")[2:4] == (5, False)
    assert db.fork("p").binding("ours")[2:4] == (5, True)
    assert db.fork("b").binding("ours")[2:4] == (CROSS_POOL, True)


def test_guests_of_a_pool_that_does_not_put_them_last_count_as_they_are():
    """At their own priority, whatever table they are in."""
    pools = (
        PoolConfig(name="p", away_pools=("b",)),
        PoolConfig(name="b", preempt_guests_first=False),
    )
    db = NodeDb(config(*pools), [node("b1", 8, 8, pool="b")])
    db.advance(Pairs.added([running("ours", "b1", "p"), running("stray", "b1", "b", 2)]))
    assert [left(db, "b", "b1", at) for at in (EVICTED, 5, 6)] == [3, 3, 8]
    db.remove_many(["b1"])
    db.upsert_many([node("b1", 8, 8, pool="p")])
    assert db.fork("p").binding("ours")[2:4] == (5, True)
    assert db.fork("p").binding("stray")[2:4] == (CROSS_POOL, True)
    assert db.check() == []


def test_a_round_follows_runs_and_rows(db):
    """What comes, ends, is cordoned, grows, joins and leaves, as if it were built anew."""
    ours, theirs = running("ours", "b1", "p"), running("theirs", "b1", "b")
    db.advance(Pairs.added([ours, theirs]))
    db.advance(Pairs((theirs, ended(theirs))))
    assert left(db, "p", "b1", EVICTED) == 5
    db.upsert_many([node("b1", 8, 8, pool="b", intake=Intake.CORDONED)])
    assert not db.fork("p").takes_new("b1")
    db.upsert_many([node("b1", 9, 9, pool="b", labels={"zone": "z"})])
    asked = requirements(1, 1, priority_class="soft", selector={"zone": "z"})
    assert db.fork("p").find(asked, EVICTED).node_id == "b1"
    db.upsert_many([node("b2", 8, 8, pool="b", max_jobs=1)])
    assert [each.id for each in db.fork("p").nodes] == ["b1", "b2", "p1"]
    db.upsert_many([node("b1", 9, 9, pool="b", max_jobs=1)])
    assert not db.fork("p").find(asked, EVICTED)
    db.remove_many(["b1"])
    assert db.fork("p").binding("ours") is None
    db.upsert_many([node("b1", 8, 8, pool="p")])
    assert left(db, "p", "b1", EVICTED) == 5
    db.upsert_many([node("b1", 8, 8, pool="c")])
    assert [each.id for each in db.fork("p").nodes] == ["b2", "p1"]


def test_places_for_jobs_that_come_later_are_counted_there_too():
    """A limit on one node, where the table of several pools has counted none so far."""
    db = NodeDb(config(), [node("b1", 8, 8, pool="b", max_jobs=2), node("p1", 8, 8, pool="p")])
    db.upsert_many([node("b1", 8, 8, pool="b")])
    db.fork("p")
    db.upsert_many([node("b1", 8, 8, pool="b", max_jobs=0), node("p1", 0, 0, pool="p")])
    assert not db.fork("p").find(requirements(1, 1, priority_class="soft"), EVICTED)
    assert db.check() == []


LIKES_Z = (Preference(50, (Constraint("zone", Operator.EQUAL, ("z",)),)),)


@pytest.mark.parametrize("preferences", [(), LIKES_Z])
def test_nodes_of_its_own_come_first(preferences: tuple[Preference, ...]):
    """However full the others are, whatever it prefers, and even with a taint that only prefers."""
    tainted = (Taint("old", effect=TaintEffect.PREFER_NO_SCHEDULE),)
    rows = [
        node("b1", 4, 4, pool="b", labels={"zone": "z"}),
        node("p1", 8, 8, pool="p", taints=tainted),
    ]
    db = NodeDb(config(), rows)
    asked = requirements(4, 4, priority_class="soft", preferences=preferences)
    assert db.fork("p").find(asked, EVICTED).node_id == "p1"
    assert db.fork("b").find(asked, EVICTED).node_id == "b1"
    db.upsert_many([node("b1", 4, 4, pool="b", labels={"zone": "y"})])
    assert db.fork("p").find(asked, EVICTED).node_id == "p1"
    db.upsert_many([node("p1", 3, 3, pool="p", taints=tainted)])
    assert db.fork("p").find(asked, EVICTED).node_id == "b1"


def test_a_pool_has_what_others_leave_of_the_nodes_it_may_use(db):
    """And all of its own; lost nodes do not count; what it holds itself does."""
    assert db.totals("p") == ResourceVector((16, 16))
    assert db.totals("b") == ResourceVector((8, 8))
    db.advance(Pairs.added([running("ours", "b1", "p"), running("theirs", "b1", "b", 4)]))
    assert db.totals("p") == ResourceVector((12, 12))
    db.upsert_many([node("b1", 8, 8, pool="b", lost_at=1)])
    assert db.totals("p") == ResourceVector((8, 8))


def test_nodes_ahead_have_what_was_decided_and_leave_the_node_db_alone(db):
    """The newest row of a job counts, for each pool; what they come from is changed there."""
    there = running("there", "b1", "b")
    db.advance(Pairs.added([there]))
    placed = running("placed", "b1", "p", 4)
    ahead = NodesAhead(db, [running("placed", "p1", "p", 4), ended(there), placed])
    assert [left(ahead, pool, "b1", EVICTED) for pool in "pb"] == [4, 4]
    assert left(ahead, "p", "p1", EVICTED) == 8
    assert ahead.totals("p") == ResourceVector((16, 16))
    assert [left(db, pool, "b1", EVICTED) for pool in "pb"] == [5, 5]
    for change in (ahead.upsert_many, ahead.remove_many, ahead.advance):
        with pytest.raises(TypeError, match="the node db they come from"):
            change([])


def test_nodes_ahead_close_what_they_fill_too_far(db):
    """As a fork of the node db does."""
    ahead = NodesAhead(db, [running("big", "b1", "p", 9)])
    assert ahead.fork("p").over_allocated("b1")
    assert not ahead.fork("b").takes_new("b1")
