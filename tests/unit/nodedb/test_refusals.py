"""Why not which nodes: facts and sentences, counted when somebody asks and not before."""

import pytest

from kit.jobs import requirements
from kit.nodes import node, node_config
from pyresched.model import (
    Constraint,
    Exclusion,
    Intake,
    Operator,
    ReasonCode,
    Taint,
    TaintEffect,
    Toleration,
)
from pyresched.nodedb import NodeDb, NotFound, refusals
from pyresched.nodedb.matching import Matching
from pyresched.nodedb.refusals import excluded, explain

SSD = Constraint("disk", Operator.IN, ("nvme", "ssd"))
HOSTS = Constraint("", Operator.DISTINCT_HOSTS)
RACK = Constraint("rack", Operator.DISTINCT_PROPERTY, ("2",))


@pytest.mark.parametrize(
    ("asked", "fields", "code", "sentence"),
    [
        ({}, {}, None, ""),
        ({"nodes": ("n2",)}, {}, "node_not_named", "not one of the nodes asked for"),
        ({}, {"intake": Intake.CORDONED}, "node_cordoned", "cordoned"),
        ({}, {"intake": Intake.DRAINING}, "node_draining", "draining"),
        ({}, {"lost_at": 3}, "node_lost", "lost"),
        ({}, {"disconnected_at": 3}, "node_disconnected", "out of reach"),
        # Of two reasons the first in the order of the module counts.
        ({}, {"lost_at": 3, "intake": Intake.CORDONED}, "node_cordoned", "cordoned"),
        (
            {},
            {"taints": (Taint("gpu", "yes"),)},
            "untolerated_taint",
            "taint gpu=yes:NoSchedule not tolerated",
        ),
        (
            {"tolerations": (Toleration("gpu", "yes"),)},
            {"taints": (Taint("gpu", "yes"), Taint("old", "", TaintEffect.NO_EXECUTE))},
            "untolerated_taint",
            "taint old=:NoExecute not tolerated",
        ),
        ({}, {"taints": (Taint("a", "", TaintEffect.PREFER_NO_SCHEDULE),)}, None, ""),
        (
            {"selector": {"zone": "a"}},
            {},
            "label_missing",
            "label zone: wanted 'a', not set",
        ),
        (
            {"selector": {"zone": "a"}},
            {"labels": {"zone": "b"}},
            "label_differs",
            "label zone: wanted 'a', had 'b'",
        ),
        (
            {"affinity": ((SSD, Constraint("zone", Operator.EXISTS)), ())},
            {"labels": {"disk": "ssd"}},
            "affinity_not_met",
            "affinity not met: disk In nvme, ssd and zone Exists or nothing",
        ),
        (
            {"constraints": (SSD,)},
            {"labels": {"disk": "hdd"}},
            "constraint_not_met",
            "constraint not met: disk In nvme, ssd",
        ),
        ({"constraints": (SSD, HOSTS)}, {"labels": {"disk": "ssd"}}, None, ""),
        (
            {"constraints": (RACK,)},
            {},
            "constraint_not_met",
            "constraint not met: rack distinct_property 2",
        ),
    ],
)
def test_the_first_reason_of_a_node_says_what_was_wanted_and_what_it_had(
    asked, fields, code, sentence
):
    """In a fixed order; the sentence has the values."""
    reason = explain(requirements(**asked), node("n1", **fields))
    assert (None if reason is None else reason.code.value) == code
    assert ("" if reason is None else reason.sentence()) == sentence


def told(found):
    """Exclusions as people read them."""
    assert isinstance(found, NotFound)
    return [each.sentence() for each in found.excluded]


def test_every_node_of_the_pool_is_counted_once_with_the_most_frequent_first():
    """Static reasons and amounts together; the best of those that are short is told."""
    nodes = [
        *(node(f"far-{i}", labels={"zone": "b"}) for i in range(4)),
        *(node(f"gpu-{i}", labels={"zone": "a"}, taints=(Taint("gpu"),)) for i in range(3)),
        node("shut-0", labels={"zone": "a"}, intake=Intake.CORDONED),
        node("shut-1", labels={"zone": "a"}, lost_at=1),
        node("small-0", 12000, 1, labels={"zone": "a"}),
        node("small-1", 8000, 99999, labels={"zone": "a"}),
        node("wide-0", 16000, 20, labels={"zone": "a"}),
    ]
    fork = NodeDb(node_config(), nodes).fork("default")
    found = fork.find(requirements(16000, 50, selector={"zone": "a"}), 1000)
    assert told(found) == [
        "4 nodes: label zone: wanted 'a', had 'b'",
        "3 nodes: taint gpu=:NoSchedule not tolerated",
        "2 nodes: insufficient resources: cpu: wanted 16000, best node had 12000",
        "1 node: insufficient resources: memory: wanted 50, best node had 20",
        "1 node: cordoned",
        "1 node: lost",
    ]
    assert sum(each.nodes for each in found.excluded) == len(nodes)


def test_nodes_outside_a_list_are_not_named():
    """A search among some nodes says so of the others."""
    fork = NodeDb(node_config(), [node(id, 8, 8) for id in "abc"]).fork("default")
    assert told(fork.find(requirements(9, 1), 1000, only=["b"])) == [
        "2 nodes: not one of the nodes asked for",
        "1 node: insufficient resources: cpu: wanted 9, best node had 8",
    ]


def test_other_jobs_of_the_scope_are_a_reason_of_their_own():
    """Before amounts; of a property with its limit."""
    racks = {"a1": "a", "a2": "a", "b1": "b"}
    nodes = [node(id, 8, 8, labels={"rack": rack}) for id, rack in racks.items()]
    fork = NodeDb(node_config(), nodes).fork("default")
    one = requirements(1, 1, constraints=(HOSTS,), scope="web")
    two = requirements(1, 1, constraints=(RACK,), scope="web")
    with fork.attempt() as attempt:
        for i, id in enumerate(racks):
            attempt.bind_as(f"job-{i}", one, id, 1000, False)
        found = fork.find(one, 1000)
        assert [reason.code for reason in found.reasons] == [ReasonCode.HOST_TAKEN]
        assert told(found) == ["3 nodes: distinct hosts: a job of the same scope is there"]
        assert fork.find(two, 1000).node_id == "b1"
        attempt.bind_as("job-3", requirements(8, 1), "b1", 1000, False)
        found = fork.find(two, 1000)
        assert {reason.code for reason in found.reasons} == {
            ReasonCode.PROPERTY_TAKEN,
            ReasonCode.INSUFFICIENT_RESOURCES,
        }
        assert told(found) == [
            "2 nodes: distinct rack: its value has the 2 jobs of the scope it may have",
            "1 node: insufficient resources: cpu: wanted 1, best node had -1",
        ]
        other = requirements(1, 1, constraints=(RACK,), scope="db")
        assert fork.find(other, 1000).node_id == "a1"


def test_places_for_jobs_run_out_like_a_resource():
    """A node with a maximum of jobs, and room for more."""
    fork = NodeDb(node_config(), [node("a", 8, 8, max_jobs=1)]).fork("default")
    with fork.attempt() as attempt:
        attempt.bind_as("job-1", requirements(1, 1), "a", 1000, False)
        found = fork.find(requirements(1, 1), 1000)
        assert found.reason.code is ReasonCode.INSUFFICIENT_RESOURCES
        assert told(found) == ["1 node: insufficient resources: jobs: wanted 1, best node had 0"]


def test_values_beyond_count_are_told_together():
    """A label such as a host name has a value for each node: one line, not thousands."""
    nodes = [node(f"n{i:03}", labels={"host": f"h{i}"}) for i in range(300)]
    asked = requirements(selector={"host": "h7"})
    (others,) = excluded(Matching(nodes), asked, nodes)
    assert others.nodes == 299
    assert others.reason.sentence() == "label host: wanted 'h7', had one of 299 others"


def test_a_hundred_thousand_refusals_count_nothing_until_somebody_asks(monkeypatch):
    """And the matter is that of the moment of the search."""
    counted = []
    original = refusals._refusals
    monkeypatch.setattr(refusals, "_refusals", lambda *given: counted.append(1) or original(*given))
    fork = NodeDb(node_config(), [node("a", 8, 8), node("b", taints=(Taint("x"),))]).fork("default")
    need = requirements(9, 1)
    with fork.attempt() as attempt:
        attempt.bind_as("job-1", requirements(3, 1), "a", 1000, False)
        found = [fork.find(need, 1000) for _ in range(100_000)]
    assert not counted
    assert found[0].excluded == found[-1].excluded
    assert counted == [1]
    assert [each.reason.code for each in found[0].excluded] == [
        ReasonCode.INSUFFICIENT_RESOURCES,
        ReasonCode.UNTOLERATED_TAINT,
    ]
    assert found[0].excluded[0].reason.had == 5


def test_exclusions_are_values():
    """Equal by what they say."""
    reason = explain(requirements(nodes=("x",)), node("n1"))
    assert Exclusion(reason, 2) == Exclusion(reason, 2) != Exclusion(reason, 3)
