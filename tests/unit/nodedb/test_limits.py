"""What a node may hold beside its amounts: a number of jobs, and what others use of it."""

import pytest

from kit.jobs import job, leased, requirements
from kit.nodes import Pairs, node, node_config
from pyresched.errors import InputError
from pyresched.model import ReasonCode, ResourceVector
from pyresched.nodedb import EVICTED, NodeDb


def limited(*limits):
    """Nodes `a`, `b`, ... of 8 and 8 that may hold so many jobs each."""
    rows = [node(id, 8, 8, max_jobs=most) for id, most in zip("abcdef", limits, strict=False)]
    return NodeDb(node_config(0, 5, preemptible=[0]), rows)


def running(id, node_id, *amounts):
    """A leased job on *node_id*."""
    return leased(job(id, *amounts, priority_class="p0"), node_id=node_id)


def test_a_node_that_holds_all_the_jobs_it_may_takes_no_more():
    """Room or not; what is limited comes back with the job."""
    fork = limited(2).fork("default")
    table = fork.table
    assert table.place_each(["x", "y", "z"], [requirements(1, 1)] * 3, 5, False) == [*"aa", None]
    refused = fork.find(requirements(1, 1), 5)
    assert [each.resource for each in refused.reasons] == ["jobs"]
    assert [(each.reason.resource, each.nodes) for each in refused.excluded] == [("jobs", 1)]
    table.unbind("x")
    assert fork.find(requirements(1, 1), 5).node_id == "a"


def test_a_limit_of_one_node_leaves_the_others_alone():
    """Those without one take what fits; best fit orders by amounts, not by places."""
    fork = limited(1, None).fork("default")
    assert fork.place_many(requirements(2, 2), 6, 5) == [("a", 1), ("b", 4)]
    assert fork.check() == []


def test_a_limit_may_come_and_go_with_what_is_bound():
    """Columns are counted anew; nothing is lost."""
    db = limited(None, None)
    db.advance(Pairs.added([running("j", "a", 3, 3), running("k", "a", 1, 1)]))
    db.upsert_many([node("a", 8, 8, max_jobs=2)])
    assert db.check() == []
    assert db.fork("default").allocatable("a", EVICTED) == ResourceVector((4, 4))
    assert db.fork("default").find(requirements(1, 1), 5).node_id == "b"
    db.upsert_many([node("a", 8, 8, max_jobs=3)])
    assert db.fork("default").find(requirements(1, 1), 5).node_id == "a"
    db.upsert_many([node("a", 8, 8)])
    assert db.fork("default").find(requirements(1, 1), 5).node_id == "a"
    assert db.check() == []


def test_more_jobs_than_a_node_may_hold_now_over_allocate_it():
    """It keeps them and takes nothing."""
    db = limited(None, None)
    db.advance(Pairs.added([running("j", "a", 1, 1), running("k", "a", 1, 1)]))
    db.upsert_many([node("a", 8, 8, max_jobs=1)])
    fork = db.fork("default")
    assert fork.over_allocated("a")
    assert fork.bound("a") == ("j", "k")
    assert fork.find(requirements(1, 1), 5, only=["a"]).reason.resource == "jobs"


def test_an_evicted_job_gives_its_place_to_those_above_it():
    """Places are counted at each level as amounts are."""
    fork = limited(1).fork("default")
    with fork.attempt() as attempt:
        attempt.bind_as("soft", requirements(1, 1), "a", 0, preemptible=True)
        assert not fork.find(requirements(1, 1), 0)
        assert fork.find(requirements(1, 1), 5).level == 5
        assert fork.victims(requirements(1, 1), 5, ["soft"]).job_ids == ("soft",)


@pytest.mark.parametrize("most", [-1, 2**63])
def test_an_absurd_limit_is_refused(most):
    """And nothing has changed."""
    db = limited(2)
    with pytest.raises(InputError, match=f"max_jobs {most}; write 0 or more"):
        db.upsert_many([node("a", 8, 8, max_jobs=most)])
    assert db.get("a").max_jobs == 2


def test_what_others_use_is_not_there():
    """Neither to place on nor in totals; more than there is leaves nothing."""
    rows = [
        node("a", 8, 8, unallocatable=ResourceVector((5, 0))),
        node("b", 8, 8, unallocatable=ResourceVector((9, 9))),
    ]
    db = NodeDb(node_config(0), rows)
    assert db.totals("default") == ResourceVector((3, 8))
    fork = db.fork("default")
    assert fork.place_many(requirements(1, 1), 9, 0) == [("a", 3)]
    assert fork.find(requirements(4, 1), 0).reason.code is ReasonCode.EXCEEDS_EVERY_NODE
    assert fork.check() == []
