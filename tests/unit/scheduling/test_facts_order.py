"""Facts of whose turn it is, told by who starts first; and of nodes that hold too much."""

import pytest

from kit.facts import Cluster, named
from pyresched.model import Intake

# Three queues of equal weight on 15 cores should get 5 each.
CORES = 15


def first_turns(held: dict[str, int], sizes: dict[str, int], *, cpu: int = CORES) -> list[str]:
    """The queues by their first start, where each holds so much and its head asks for so much."""
    cluster = Cluster(0)
    cluster.node("n0", cpu=cpu)
    for queue, cores in held.items():
        if cores:
            cluster.submit(queue, 1, "priority-2-non-preemptible", cpu=cores, on="n0")
    for queue, cores in sizes.items():
        cluster.submit(queue, 1, "priority-2-non-preemptible", cpu=cores)
        # So that each asks for its whole share.
        cluster.submit(queue, 20, "priority-2-non-preemptible", cpu=0.5)
    order = [each[0][0] for each in cluster.round().scheduled]
    return list(dict.fromkeys(order))


def test_of_queues_that_hold_the_same_the_larger_job_goes_first():
    """27. Nothing is held: the jobs of 3, 2 and 1 cores in that order."""
    assert first_turns({}, {"A": 2, "B": 3, "C": 1}) == ["B", "A", "C"]


def test_the_poorer_queue_goes_first_and_then_the_larger_job():
    """27. C holds less; of A and B, which hold the same, A has the larger job."""
    assert first_turns({"A": 2, "B": 2, "C": 1}, {"A": 3, "B": 2, "C": 2}) == ["C", "A", "B"]


def test_above_their_shares_the_queue_that_would_have_least_goes_first():
    """27. All would be above 5 of 15 cores: the one that would be at 7."""
    held = {"A": 5, "B": 4, "C": 3}
    assert first_turns(held, {"A": 3, "B": 3, "C": 4})[0] == "B"


def test_a_queue_within_its_share_goes_before_those_above():
    """27. A would stay within; B would be above with less than A holds then."""
    assert first_turns({"A": 1, "B": 5}, {"A": 4, "B": 1})[0] == "A"


def test_at_equal_cost_the_lower_name_goes_first():
    """27. Queues that are alike in all."""
    assert first_turns({}, {"C": 2, "B": 2, "A": 2}) == ["A", "B", "C"]


def test_runs_on_a_closed_node_that_holds_too_much_stay():
    """78. 33 jobs on a node of 32 cores that takes nothing new: none gives way, none starts."""
    cluster = Cluster(0)
    cluster.node("n0", intake=Intake.CORDONED)
    cluster.submit("A", 33, on="n0")
    cluster.submit("B", 3)
    decided = cluster.round()
    assert (decided.ins, decided.outs, decided.moved) == (set(), set(), [])


@pytest.mark.parametrize("nodes", [1, 2])
def test_factors_of_100_and_300_share_three_to_one(nodes):
    """78. However large the factors are."""
    cluster = Cluster(nodes)
    cluster.queue("A", 100)
    cluster.queue("B", 300)
    for queue in "AB":
        cluster.submit(queue, 32 * nodes)
    assert cluster.round().ins == named("A", range(24 * nodes)) | named("B", range(8 * nodes))
