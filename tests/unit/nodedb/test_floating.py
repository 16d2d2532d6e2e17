"""Floating resources: no node has any, and none is ever short of one."""

import pytest

from kit.jobs import job, leased
from pyresched.config import config_from, nodes_from
from pyresched.errors import InputError
from pyresched.jobdb import JobDb
from pyresched.model import Node, Requirements, ResourceVector
from pyresched.nodedb import NodeDb

CONFIG = config_from(
    {
        "resources": [{"name": "cpu"}, {"name": "licence", "floating": True}],
        "pools": [{"name": "default", "floating": {"licence": 3}}],
    }
)


def made(*cpus: int) -> NodeDb:
    """Nodes n0, n1, ... with so much cpu."""
    return NodeDb(
        CONFIG, [Node(id=f"n{i}", total=ResourceVector([cpu, 0])) for i, cpu in enumerate(cpus)]
    )


def test_a_request_for_what_floats_fits_where_the_rest_fits() -> None:
    """The pool counts it; the nodes do not."""
    fork = made(1, 4).fork("default")
    assert fork.find(Requirements(ResourceVector([2, 9])), 0).node_id == "n1"


def test_what_floats_is_in_no_total() -> None:
    """What the nodes have together is what they have."""
    db = made(1, 4)
    assert db.totals("default") == db.capacity("default") == ResourceVector([5, 0])


def test_runs_that_hold_what_floats_leave_their_node_open() -> None:
    """Also when the node changes, is forked or seen bare."""
    jobs, nodes = JobDb(CONFIG), made(4)
    before = jobs.snapshot()
    with jobs.write() as txn:
        txn.upsert_many(
            [leased(job("a", 1, 8), node_id="n0"), leased(job("b", 1, 8), node_id="n0")]
        )
    nodes.advance(jobs.snapshot().diff(before))
    more = Requirements(ResourceVector([2, 8]))
    assert nodes.fork("default").find(more, 0).node_id == "n0"
    nodes.upsert_many([Node(id="n0", total=ResourceVector([5, 0]))])
    assert nodes.fork("default").find(more, 0).node_id == "n0"
    assert nodes.bare("default").find(Requirements(ResourceVector([5, 8])), 0).node_id == "n0"
    assert nodes.check() == nodes.fork("default").check() == []


def test_a_node_that_has_what_floats_is_refused() -> None:
    """By node and resource, made in code or read from a file."""
    with pytest.raises(InputError, match=r"node 'n': licence is floating.*under the pool"):
        NodeDb(CONFIG, [Node(id="n", total=ResourceVector([1, 1]))])
    written = {"nodes": [{"id": "n", "resources": {"cpu": 1, "licence": 1}}]}
    with pytest.raises(InputError, match=r"nodes\[0\].resources: licence is floating"):
        nodes_from(written, CONFIG)
