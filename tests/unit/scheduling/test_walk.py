"""What the native walk refuses to be given; its work is tested through the round."""

import pytest

from kit.jobs import job
from kit.rounds import World, node
from pyresched._core import RoundWalk
from pyresched.fairness import DominantResourceFairness
from pyresched.model import ResourceVector


def walk(width=2):
    """A walk over one node, for costs of *width* resources."""
    fork = World().with_nodes(node("n1")).node_db().fork("default")
    fairness = DominantResourceFairness(ResourceVector((4000,) * width), (1.0,) * width)
    return RoundWalk(
        fork.table,
        fairness,
        {"default": (1000, False)},
        "default",
        avoid_of=lambda _: (),
        values_of=lambda _: [],
        members_of=lambda *_: [],
        variants_of=lambda *_: (),
    )


def test_costs_of_other_resources_than_the_nodes_have_are_refused():
    """Amounts are read by position."""
    with pytest.raises(ValueError, match="agree"):
        walk(width=3)


def test_queues_come_in_order_of_their_names_once():
    """Their order is that of ties and of refusals."""
    made = walk()
    made.add_queue("b", 1.0, ())
    for name in ("a", "b"):
        with pytest.raises(ValueError, match="ascending"):
            made.add_queue(name, 1.0, ())


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan")])
def test_a_queue_without_a_weight_must_be_closed(weight):
    """Its cost would be no number."""
    with pytest.raises(ValueError, match="closed"):
        walk().add_queue("a", weight, ())
    walk().add_queue("a", weight, (), "invalid_weight")


def test_an_unknown_code_and_rows_that_are_no_jobs_are_refused():
    """Each before anything is read of them."""
    with pytest.raises(ValueError, match="tuple"):
        walk().add_queue("a", 1.0, [job()], "because")
    with pytest.raises(TypeError):
        walk().add_queue("a", 1.0, ["job"])
    with pytest.raises(TypeError):
        walk().add_running(["job"])
