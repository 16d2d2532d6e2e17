"""What is known of who gives way to whom, over several rounds: facts 39 to 63.

Each is a fact of Armada, the reference, told in our words; where ours differ, a line says why.
A preempted job is queued again here and ended there: so where the reference ends with nothing
queued, here the victims wait, and must not come back by turns.
"""

import pytest

from kit.facts import CLASSES, Cluster, named
from pyresched.config import PoolConfig
from pyresched.model import (
    AwayEntry,
    Intake,
    PriorityClass,
    Taint,
    Toleration,
    WellKnownNodeType,
)


def test_queues_that_come_later_get_their_part_and_then_nothing_changes():
    """39. A has all 32; B comes and gets half; C comes and gets its third; more changes nothing."""
    cluster = Cluster()
    cluster.submit("A", 32)
    assert len(cluster.round().ins) == 32
    cluster.submit("B", 32)
    decided = cluster.round()
    assert (decided.ins, decided.outs) == (named("B", range(16)), named("A", range(16, 32)))
    cluster.submit("C", 10)
    decided = cluster.round()
    assert decided.ins == named("C", range(10))
    assert decided.outs == named("A", range(11, 16)) | named("B", range(11, 16))
    for queue in "ABC":
        cluster.submit(queue, 1)
    assert cluster.rest()


def test_a_queue_of_twice_the_weight_gets_two_thirds():
    """40. A of factor 2 has 32; B of factor 1 gets 21, and the next round is at rest."""
    cluster = Cluster()
    cluster.queue("A", 2)
    cluster.submit("A", 32, on="n0")
    cluster.submit("B", 32)
    assert cluster.round().ins == named("B", range(21))
    assert len(cluster.running("A")) == 11
    assert cluster.rest()


def test_runs_of_an_unknown_queue_keep_their_room():
    """41. Eight cores are held by jobs of a queue that is gone: 24 for A."""
    cluster = Cluster()
    cluster.submit("unknown", 8, on="n0")
    cluster.submit("A", 32)
    decided = cluster.round()
    assert (len(decided.ins), decided.outs) == (24, set())


@pytest.mark.parametrize(("small", "large"), [("A", "B"), ("B", "A")])
def test_a_large_job_does_not_clear_the_only_node_of_an_equal_queue(small, large):
    """42. With all of one node in small jobs, a job of the whole node waits, whatever the names."""
    cluster = Cluster()
    cluster.submit(small, 32, on="n0")
    cluster.submit(large, 1, cpu=32)
    assert cluster.rest()


def test_a_large_job_clears_one_of_two_nodes():
    """42. Of two full nodes the younger half goes."""
    cluster = Cluster(2)
    cluster.submit("A", 32, on="n0")
    cluster.submit("A", 32, on="n1")
    cluster.submit("B", 1, cpu=32)
    decided = cluster.round()
    assert (decided.ins, decided.outs) == (named("B", 0), named("A", range(32, 64)))
    assert cluster.rest()


def test_two_queues_with_a_node_each_stay():
    """43. B fills the second node after A the first: nobody moves afterwards."""
    cluster = Cluster(2)
    cluster.submit("A", 32)
    cluster.round()
    cluster.submit("B", 32)
    cluster.round()
    cluster.submit("A", 32)
    cluster.submit("B", 32)
    assert cluster.rest()


def test_the_gang_of_the_higher_class_goes_first():
    """44. Gangs of 32 at priority 0 and 1: only the second starts."""
    cluster = Cluster()
    cluster.submit("A", 32, as_gang=True)
    cluster.submit("B", 32, "priority-1", as_gang=True)
    assert cluster.round().ins == named("B", range(32))
    assert cluster.rest()


def test_a_job_of_a_higher_class_takes_the_youngest_run():
    """45. One job at priority 3 against 32 at 2: the last of them goes, and more of them wait."""
    cluster = Cluster()
    cluster.submit("A", 33, "priority-2")
    cluster.round()
    cluster.submit("B", 1, "priority-3")
    decided = cluster.round()
    assert (decided.ins, decided.outs) == (named("B", 0), named("A", 31))
    cluster.submit("A", 1, "priority-2")
    assert cluster.rest()


def test_lower_classes_give_way_first():
    """46. 17 jobs at priority 2: all 16 at 0 go, and one of those at 1."""
    cluster = Cluster()
    cluster.submit("A", 16, on="n0")
    cluster.submit("B", 16, "priority-1", on="n0")
    cluster.submit("C", 17, "priority-2")
    assert cluster.round().outs == named("A", range(16)) | named("B", 15)


def test_classes_give_way_in_order_within_a_queue():
    """47. 24 jobs at priority 3 against ten of each class below: the two lowest and two more."""
    cluster = Cluster()
    for name in ("priority-0", "priority-1", "priority-2"):
        cluster.submit("A", 10, name, on="n0")
    cluster.submit("A", 24, "priority-3")
    assert cluster.round().outs == named("A", range(20), 28, 29)


def test_of_two_nodes_the_one_of_the_lower_class_is_cleared():
    """48. A whole node at priority 1 and one at 0: the second goes."""
    cluster = Cluster(2)
    cluster.submit("A", 1, "priority-1", cpu=32, on="n0")
    cluster.submit("B", 1, "priority-0", cpu=32, on="n1")
    cluster.submit("C", 1, "priority-2", cpu=32)
    decided = cluster.round()
    assert decided.outs == named("B", 0)
    assert cluster.node_of("C0") == "n1"


def test_a_gang_that_loses_a_member_goes_whole_and_its_room_is_used():
    """49. 17 jobs at priority 1 against 16 + 16 lone runs and a gang of 32: the gang goes."""
    cluster = Cluster(2)
    cluster.submit("A", 16, on="n0")
    cluster.submit("B", 16, on="n0")
    cluster.submit("C", 32, as_gang=True, on="n1")
    cluster.submit("A", 17, "priority-1")
    decided = cluster.round()
    assert decided.ins == named("A", range(16, 33))
    assert decided.outs == named("C", range(32))


def test_one_gang_that_goes_takes_no_other_with_it():
    """50. Gangs over nodes 1-2 and 2-3: who takes node 3 sends the second away, not the first."""
    cluster = Cluster(3)
    first = cluster.submit("A", 2, cpu=16, as_gang=True, on="n0")
    second = cluster.submit("B", 2, cpu=16, as_gang=True, on="n1")
    for id, node_id in ((first[1], "n1"), (second[1], "n2")):
        row = cluster.world.jobs[id]
        cluster.world.jobs[id] = row.replace(runs=(row.runs[-1].replace(node_id=node_id),))
    # The rest of nodes 1 and 2 is held by what cannot give way.
    cluster.submit("D", 1, "priority-3", cpu=16, on="n0")
    cluster.submit("C", 1, "priority-1", cpu=32)
    decided = cluster.round()
    assert (decided.ins, decided.outs) == (named("C", 0), set(second))
    assert cluster.node_of("C0") == "n2"


def test_a_rate_fills_up_between_rounds():
    """51. Two a second in bursts of five: five jobs, then two."""
    cluster = Cluster(rate=2.0, burst=5)
    cluster.submit("A", 20)
    assert [len(cluster.round().ins) for _ in range(2)] == [5, 2]


def test_a_gang_above_the_burst_never_runs():
    """51. A burst of four and a gang of six: refused for what cannot pass."""
    cluster = Cluster(rate=2.0, burst=4)
    cluster.submit("A", 6, as_gang=True)
    assert set(cluster.round().refused.values()) == {"gang_exceeds_burst"}


def test_the_look_back_counts_what_waits():
    """52. A look-back of five with two running: five more."""
    cluster = Cluster(max_queue_lookback=5)
    cluster.submit("A", 2, on="n0")
    cluster.submit("A", 20)
    assert len(cluster.round().ins) == 5


def test_each_round_gives_out_its_fraction_anew():
    """52. Five of 32 cores a round: six each."""
    cluster = Cluster(max_fraction_to_schedule={"cpu": 5 / 32})
    cluster.submit("A", 20)
    assert [len(cluster.round().ins) for _ in range(2)] == [6, 6]


def test_who_cannot_give_way_is_left_out():
    """53. One preemptible run among three that are not: the job of the higher class takes that."""
    cluster = Cluster(2)
    cluster.submit("A", 1, "priority-2", cpu=16, on="n0")
    cluster.submit("A", 1, "priority-2-non-preemptible", cpu=16, on="n0")
    cluster.submit("A", 2, "priority-2-non-preemptible", cpu=16, on="n1")
    cluster.submit("B", 1, "priority-3", cpu=16)
    cluster.submit("B", 1, "priority-2-non-preemptible", cpu=16)
    decided = cluster.round()
    assert (decided.ins, decided.outs) == (named("B", 0), named("A", 0))


def test_a_cordoned_node_keeps_its_runs_and_takes_nothing():
    """54. The run on it stays, and the new job waits."""
    cluster = Cluster(0)
    cluster.node("n0", intake=Intake.CORDONED)
    cluster.submit("A", 1, on="n0")
    cluster.submit("B", 1)
    decided = cluster.round()
    assert not decided
    assert decided.refused == {"B0": "nodes_closed"}


def test_a_queue_at_its_protected_share_loses_nothing():
    """55. A with 10 of 32 beside 22 that cannot give way: nothing for C."""
    cluster = Cluster(protected_fraction=1.0)
    cluster.submit("A", 10, on="n0")
    cluster.submit("B", 22, "priority-3", on="n0")
    cluster.submit("C", 1)
    assert cluster.rest()


@pytest.mark.parametrize(("factor", "runs", "outs"), [(0.5, 8, 0), (1, 9, 1)])
def test_half_the_share_is_protected(factor, runs, outs):
    """55. At half of its share exactly A keeps everything; above it the youngest run goes."""
    cluster = Cluster(protected_fraction=0.5)
    cluster.queue("A", factor)
    cluster.submit("A", runs, on="n0")
    cluster.submit("B", 32 - runs, "priority-3", on="n0")
    cluster.submit("C", 1)
    decided = cluster.round()
    assert len(decided.outs) == outs
    assert decided.outs <= named("A", runs - 1)


def test_a_queue_above_its_fair_and_below_its_adjusted_share_is_protected():
    """56. A cannot give way, B has 11, C 3, D 2: one more of D waits."""
    cluster = Cluster(protected_fraction=1.0)
    cluster.submit("A", 16, "priority-3", on="n0")
    cluster.submit("B", 11, on="n0")
    cluster.submit("C", 3, on="n0")
    cluster.submit("D", 2, on="n0")
    cluster.submit("D", 1)
    assert cluster.rest()


def test_shares_are_of_the_dominant_resource():
    """57. A asks for 16 GiB a core, B for 4: ten and 22 jobs."""
    cluster = Cluster()
    cluster.submit("A", 32, memory=16)
    cluster.submit("B", 32, memory=4)
    cluster.round()
    assert (len(cluster.running("A")), len(cluster.running("B"))) == (10, 22)


def test_what_was_refused_once_is_looked_at_again_when_room_is_made():
    """58. Two full nodes; C gets its third of both queues."""
    cluster = Cluster(2)
    cluster.submit("A", 32, on="n0")
    cluster.submit("B", 32, on="n1")
    cluster.submit("C", 32)
    decided = cluster.round()
    assert decided.ins == named("C", range(21))
    outs = named("A", range(22, 32)) | named("B", range(21, 32))
    # The reference lets A keep 22; which of two equal queues does is told by their names alone.
    assert len(decided.outs) == 21
    assert decided.outs <= named("A", range(21, 32)) | named("B", range(21, 32))
    assert decided.outs == outs
    assert cluster.rest()


@pytest.mark.parametrize(("wanted", "a", "b"), [(32, 0, 32), (31, 1, 31)])
def test_who_never_ran_is_not_preempted(wanted, a, b):
    """59. Two classes queued together on an empty node: the higher first, and no preemption."""
    cluster = Cluster()
    cluster.submit("A", 32)
    cluster.submit("B", wanted, "priority-1")
    decided = cluster.round()
    assert decided.outs == set()
    assert (len(cluster.running("A")), len(cluster.running("B"))) == (a, b)


GPU = Taint("gpu", "true")
ANY_GPU = (Toleration("gpu", exists=True),)


def away_from_home() -> Cluster:
    """A node with GPUs, where those who do not tolerate its taint may run away from home."""
    classes = (
        *CLASSES[:1],
        PriorityClass(
            name="priority-1",
            priority=1,
            preemptible=True,
            away=(AwayEntry(priority=0, node_type="gpu"),),
        ),
        *CLASSES[2:],
    )
    node_types = (WellKnownNodeType(name="gpu", taints=(GPU,)),)
    cluster = Cluster(0, classes=classes, node_types=node_types)
    cluster.node("gpu", taints=(GPU,))
    return cluster


def test_who_runs_away_from_home_yields_to_who_is_at_home():
    """60. Away jobs fill a node for GPUs at priority 0; jobs at home there at 1 send them off."""
    cluster = away_from_home()
    cluster.submit("A", 32, "priority-1")
    decided = cluster.round()
    assert {each[2:] for each in decided.scheduled} == {(0, "away")}
    cluster.submit("B", 32, "priority-1", tolerations=ANY_GPU)
    decided = cluster.round()
    assert len(decided.outs) >= 16
    assert decided.ins <= named("B", range(32))
    assert cluster.rest()


def test_who_is_at_home_is_not_sent_off_by_who_is_away():
    """60. Jobs at home hold the node; away jobs of the same class get nothing."""
    cluster = away_from_home()
    cluster.submit("B", 32, "priority-1", tolerations=ANY_GPU, on="gpu")
    cluster.submit("A", 32, "priority-1")
    assert cluster.rest()


def test_guests_give_way_to_any_home_job():
    """60. Five runs of another pool on a full node, five jobs of the lowest class: all five go."""
    pools = (PoolConfig(name="default"), PoolConfig(name="other", away_pools=("default",)))
    cluster = Cluster(0, pools=pools)
    cluster.node("n0", cpu=5)
    cluster.submit("B", 5, "priority-2", on="n0", pool="other", fields={"pools": ("other",)})
    cluster.submit("A", 5)
    decided = cluster.round()
    assert (decided.ins, decided.outs) == (named("A", range(5)), named("B", range(5)))
    assert {each[4] for each in decided.preempted} == {"guest"}


@pytest.mark.parametrize(("incumbents", "outs"), [(5, 1), (4, 0)])
def test_places_for_jobs_are_made_as_room_is(incumbents, outs):
    """62. A node for five jobs: an urgent one takes the place of one, or the free one."""
    cluster = Cluster(0)
    cluster.node("n0", max_jobs=5)
    cluster.submit("A", incumbents, on="n0")
    cluster.submit("B", 1, "priority-3")
    decided = cluster.round()
    assert (decided.ins, len(decided.outs)) == (named("B", 0), outs)


@pytest.mark.parametrize(("places", "incumbents", "ins"), [(3, 0, 0), (5, 5, 5)])
def test_a_gang_needs_a_place_for_each_member(places, incumbents, ins):
    """62. Five members never start where three jobs may; five incumbents make way for five."""
    cluster = Cluster(0)
    cluster.node("n0", max_jobs=places)
    cluster.submit("A", incumbents, on="n0")
    cluster.submit("B", 5, "priority-3", as_gang=True)
    decided = cluster.round()
    assert (len(decided.ins), len(decided.outs)) == (ins, ins)


def test_a_free_place_comes_before_a_victim():
    """62. One node without a place, one with: the second, and nobody goes."""
    cluster = Cluster(0)
    cluster.node("full", max_jobs=5)
    cluster.node("spare", max_jobs=5)
    cluster.submit("A", 5, on="full")
    cluster.submit("B", 1, "priority-3")
    decided = cluster.round()
    assert (cluster.node_of("B0"), decided.outs) == ("spare", set())


def test_urgency_takes_nothing_from_who_cannot_give_way():
    """63. A node full of runs that are not preemptible: the more urgent job waits."""
    cluster = Cluster()
    cluster.submit("A", 32, "priority-2-non-preemptible", on="n0")
    cluster.submit("B", 1, "priority-3")
    assert cluster.rest()
