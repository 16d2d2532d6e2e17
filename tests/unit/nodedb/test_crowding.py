"""Requests that count their neighbours: distinct hosts, distinct values, spread."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kit.nodes import node, node_config
from pyresched.model import Constraint, Operator, ReasonCode, Requirements, ResourceVector, Spread
from pyresched.nodedb import NodeDb

HOSTS = Constraint("", Operator.DISTINCT_HOSTS)


def zones(*zones_):
    """Nodes `n0`, `n1`, ... of 8 and 8 in these zones; None has no label."""
    rows = [
        node(f"n{i}", 8, 8, labels={} if zone is None else {"zone": zone})
        for i, zone in enumerate(zones_)
    ]
    return NodeDb(node_config(0, 5), rows).fork("default")


def ask(*constraints, amount=1, **more):
    """A request for *amount* of each."""
    return Requirements(ResourceVector((amount, amount)), "p0", constraints=constraints, **more)


def place(fork, requirements, *names):
    """The node of each job, found and bound in turn."""
    return fork.table.place_each(list(names), [requirements] * len(names), 0, False)


def test_distinct_hosts_take_a_node_each():
    """However much room there is; and the reason says so."""
    fork = zones("a", "a", "b")
    one = ask(HOSTS)
    assert place(fork, one, *"wxyz") == ["n0", "n1", "n2", None]
    refused = fork.find(one, 0)
    assert refused.reason.code is ReasonCode.HOST_TAKEN
    assert [(each.reason.code, each.nodes) for each in refused.excluded] == [
        (ReasonCode.HOST_TAKEN, 3)
    ]


def test_a_scope_counts_all_of_its_jobs_and_no_others():
    """Whatever else they ask for."""
    fork = zones("a", "a", "a")
    assert place(fork, ask(scope="web"), "plain") == ["n0"]
    assert place(fork, ask(HOSTS, scope="web"), "one") == ["n1"]
    assert place(fork, ask(HOSTS, amount=2, scope="web"), "two") == ["n2"]
    assert place(fork, ask(HOSTS, scope="web"), "three") == [None]
    assert place(fork, ask(HOSTS, scope="db"), "four") == ["n2"]
    assert place(fork, ask(HOSTS), "five") == ["n2"]


def test_what_leaves_makes_room_for_another():
    """Unbound, undone, or gone with its node."""
    fork = zones("a")
    one = ask(HOSTS)
    with fork.attempt():
        assert place(fork, one, "x") == ["n0"]
        assert not fork.find(one, 0)
    assert place(fork, one, "y") == ["n0"]
    with fork.attempt() as attempt:
        attempt.unbind("y")
        assert fork.find(one, 0)
    assert not fork.find(one, 0)
    fork.table.unbind("y")
    assert fork.find(one, 0)


def test_distinct_values_take_so_many_jobs_each():
    """A node without the label is never used."""
    fork = zones("a", "a", "b", None)
    one = ask(Constraint("zone", Operator.DISTINCT_PROPERTY, ("2",)))
    placed = place(fork, one, *"uvwxyz")
    assert Counter({"n0": "a", "n1": "a", "n2": "b"}.get(id) for id in placed) == {
        "a": 2,
        "b": 2,
        None: 2,
    }
    refused = fork.find(one, 0)
    assert {each.reason.code: each.nodes for each in refused.excluded} == {
        ReasonCode.PROPERTY_TAKEN: 3,
        ReasonCode.CONSTRAINT_NOT_MET: 1,
    }


def test_an_even_spread_fills_values_alike():
    """Before best fit, after avoidance."""
    fork = zones("a", "a", "b", "c", None)
    one = ask(spread=(Spread("zone", 50),))
    placed = place(fork, one, *[f"j{i}" for i in range(9)])
    zone = {"n0": "a", "n1": "a", "n2": "b", "n3": "c"}
    assert Counter(zone[id] for id in placed) == {"a": 3, "b": 3, "c": 3}


def test_a_spread_follows_its_targets():
    """70 to 30, at each step as near as whole jobs allow."""
    fork = zones("a", "b")
    one = ask(amount=0, spread=(Spread("zone", 100, (("a", 70), ("b", 30))),))
    placed = place(fork, one, *[f"j{i}" for i in range(10)])
    assert Counter(placed) == {"n0": 7, "n1": 3}


@given(st.lists(st.sampled_from(["a", "b", None]), min_size=1, max_size=5), st.data())
def test_batches_and_forks_count_as_one_by_one(labels, data):
    """`place_many` says what placing in turn does, also on a fork of what is bound."""
    one = ask(
        *data.draw(
            st.sampled_from(
                [(HOSTS,), (Constraint("zone", Operator.DISTINCT_PROPERTY, ("2",)),), ()]
            )
        ),
        spread=data.draw(st.sampled_from([(), (Spread("zone", 10),)])),
        scope=data.draw(st.sampled_from(["", "web"])),
        amount=data.draw(st.integers(1, 4)),
    )
    fork = zones(*labels)
    place(fork, one, "early")
    twin = fork.fork()
    batch = [id for id, count in fork.place_many(one, 6, 0) for _ in range(count)]
    names = [f"j{i}" for i in range(6)]
    assert [id for id in place(twin, one, *names) if id is not None] == batch
    assert [id for id in place(fork, one, *names) if id is not None] == batch
