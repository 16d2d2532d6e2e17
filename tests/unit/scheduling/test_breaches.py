"""Negative controls: each check of a round sees a round that is wrong in its own way."""

from dataclasses import replace

import pytest

from kit.decided import Decided
from kit.jobs import gang, job
from kit.round_checks import breaches
from kit.rounds import World, node
from pyresched.model import Intake

SPOT = {"priority_class": "spot"}


def world():
    """Two queues; b holds n1 with a preemptible and a firm run, n2 is closed, n3 is empty."""
    made = World().with_queues("a", "b")
    made.with_nodes(node("n1"), node("n2", intake=Intake.CORDONED), node("n3"))
    made.running(job("spot", 2000, 2048, queue="b", **SPOT), "n1")
    made.running(job("firm", 2000, 2048, queue="b"), "n1")
    return made.with_jobs(job("new", 4000, 8192, queue="a"))


def placed(job_id="new", node_id="n3", priority=1000):
    """A placement of the waiting job."""
    return (job_id, node_id, priority, "no_preemption")


def lost(job_id="spot", for_job="new", run=None, node_id="n1", cause="fair_share"):
    """A preemption of the preemptible run."""
    return (job_id, run or f"{job_id}/run-1", node_id, for_job, cause)


def moved(job_id="spot", to="n3", cause="fair_share"):
    """That run on another node."""
    return (job_id, "n1", to, 1000, "new", cause)


def found(made, **wrong):
    """What is said of the right round with some of it *wrong*."""
    right = Decided(scheduled=[placed()], passes=2)
    return breaches(made, replace(right, **wrong))


def test_a_right_round_has_no_breach():
    """The control of the controls."""
    assert found(world()) == []


@pytest.mark.parametrize(
    ("number", "wrong"),
    [
        ("INV-R1", {"scheduled": [placed(node_id="n2")]}),
        ("INV-R1", {"scheduled": [placed(node_id="n1")]}),
        ("INV-R1", {"scheduled": [placed(node_id="gone")]}),
        ("INV-R3", {"scheduled": []}),
        ("INV-R3", {"refused": {"new": "insufficient_resources"}}),
        ("INV-R3", {"refused": {"spot": "insufficient_resources"}}),
        ("INV-R3", {"preempted": [lost(), lost()]}),
        ("INV-R3", {"preempted": [lost()], "moved": [moved()]}),
        ("INV-R3", {"preempted": [lost("nobody")]}),
        ("INV-R4", {"preempted": [lost("firm")]}),
        ("INV-R4", {"preempted": [lost(run="other")]}),
        ("INV-R4", {"preempted": [lost(node_id="n2")]}),
        ("INV-R4", {"preempted": [lost(for_job="nobody")]}),
        ("INV-R4", {"preempted": [lost(cause="urgency")]}),
        ("INV-R4", {"preempted": [lost(cause="guest")]}),
        ("INV-R6", {"preempted": [lost()]}),
        ("INV-R6", {"moved": [moved()]}),
        ("INV-R8", {"scheduled": [], "refused": {"new": "insufficient_resources"}}),
    ],
)
def test_a_wrong_round_is_seen(number, wrong):
    """Room, answers, victims, need and progress."""
    assert any(each.startswith(number) for each in found(world(), **wrong)), wrong


def test_a_gang_in_parts_is_seen():
    """INV-R2, of placements and of preemptions."""
    made = world().with_jobs(gang("g", 1000, 1024, size=2, queue="a"))
    refused = dict.fromkeys(["g.1", "new"], "insufficient_resources")
    told = found(made, scheduled=[placed("g.0")], refused=refused)
    assert any(each.startswith("INV-R2") for each in told)
    made = world()
    for member in gang("g", 1000, 1024, size=2, queue="b", **SPOT):
        made.running(member, "n3")
    told = found(made, preempted=[lost("g.0", node_id="n3")])
    assert any(each.startswith("INV-R2") for each in told)


def test_a_gang_that_waits_beside_room_is_seen():
    """INV-R8 of gangs, with a label and without."""
    for label in ("", "zone"):
        made = world().with_nodes(node("n4", labels={"zone": "z"}))
        made.with_jobs(gang("g", 1000, 1024, size=2, queue="a", uniformity=label))
        told = found(made, refused=dict.fromkeys(["g.0", "g.1"], "gang_does_not_fit"))
        assert any(each.startswith("INV-R8") for each in told), label


def test_a_loss_at_the_protected_share_is_seen():
    """INV-R5: b holds 4 of 8 cores, which is its share; and what is lost first counts."""
    made = world()
    made.nodes["n2"] = node("n2", 1, 1, intake=Intake.CORDONED)
    made.with_jobs(job("other", 4000, 8192, queue="b"))
    told = found(made, preempted=[lost()], refused={"other": "insufficient_resources"})
    assert any(each.startswith("INV-R5") for each in told)
