"""What the native walk refuses to be given; its work is tested through the round."""

import pytest

from kit.jobs import gang, job
from kit.rounds import World, node
from pyresched._core import RoundWalk
from pyresched.fairness import DominantResourceFairness
from pyresched.model import ResourceVector

POOL = "default"


def walk(width=2, values_of=lambda _: []):
    """A walk over one node, for costs of *width* resources."""
    fork = World().with_nodes(node("n1")).node_db().fork(POOL)
    fairness = DominantResourceFairness(ResourceVector((4000,) * width), (1.0,) * width)
    return RoundWalk(
        fork.table,
        fairness,
        {"default": (1000, False)},
        POOL,
        lookback=0,
        avoid_of=lambda _: (),
        values_of=values_of,
    )


def test_costs_of_other_resources_than_the_nodes_have_are_refused():
    """Amounts are read by position."""
    with pytest.raises(ValueError, match="agree"):
        walk(width=3)


def test_queues_come_in_order_of_their_names_once():
    """Their order is that of ties and of refusals."""
    made = walk()
    made.add_queue("b", 1.0, [])
    for name in ("a", "b"):
        with pytest.raises(ValueError, match="ascending"):
            made.add_queue(name, 1.0, [])


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan")])
def test_a_queue_without_a_weight_must_be_closed(weight):
    """Its cost would be no number."""
    made = walk()
    with pytest.raises(ValueError, match="closed"):
        made.add_queue("a", weight, [])
    made.add_queue("a", weight, [job()], "invalid_weight")
    assert made.refused().reasons == (("invalid_weight", -1, 0, 0),)
    assert made.standings() == []


def test_an_unknown_code_and_rows_that_are_no_jobs_are_refused():
    """Each before anything is read of them."""
    with pytest.raises(ValueError, match="tuple"):
        walk().add_queue("a", 1.0, [], "because")
    with pytest.raises(TypeError):
        walk().add_queue("a", 1.0, ["job"])
    with pytest.raises(TypeError):
        walk().add_running(["job"])


@pytest.mark.parametrize("index", [1, -1])
def test_nodes_that_are_not_there_are_refused(index):
    """An index from outside is never followed unchecked."""
    made = walk(values_of=lambda _: [[index]])
    made.add_queue("a", 1.0, gang("g", size=2, uniformity="rack"))
    with pytest.raises(IndexError):
        made.decide(most_passes=1)


def test_limits_are_of_queues_and_classes_that_are_there():
    """And of as many resources as the nodes have."""
    made = walk()
    made.add_queue("a", 1.0, [])
    with pytest.raises(KeyError):
        made.set_queue_limits("b")
    with pytest.raises(KeyError):
        made.set_queue_limits("a", classes={"other": ResourceVector((1, 2))})
    for amounts in (ResourceVector((1,)), ResourceVector((1, 2, 3))):
        with pytest.raises(ValueError, match="resources"):
            made.set_queue_limits("a", classes={"default": amounts})
        with pytest.raises(ValueError, match="resources"):
            made.set_limits(most=amounts)
        with pytest.raises(ValueError, match="resources"):
            made.set_limits(floating=amounts, floats=b"\0\0")
        with pytest.raises(ValueError, match="resources"):
            made.set_share("a", 0.5, 0.5, amounts)
    with pytest.raises(ValueError, match="byte"):
        made.set_limits(floating=ResourceVector((1, 2)), floats=b"\0")
