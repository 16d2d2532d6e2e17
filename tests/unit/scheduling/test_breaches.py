"""Negative controls: each checker of a round sees a round that is wrong in its own way."""

from dataclasses import replace

import pytest

from kit.jobs import gang, job
from kit.rounds import World, breaches, node
from pyresched.model import (
    Intake,
    Placement,
    Preemption,
    ReasonCode,
    RoundResult,
    UnschedulableReason,
)

SPOT = {"priority_class": "spot"}
REFUSED = UnschedulableReason(ReasonCode.INSUFFICIENT_RESOURCES)


def world():
    """Two queues; b holds n1 with a preemptible and a firm run, n2 is closed, n3 is empty."""
    made = World().with_queues("a", "b")
    made.with_nodes(node("n1"), node("n2", intake=Intake.CORDONED), node("n3"))
    made.running(job("spot", 2000, 2048, queue="b", **SPOT), "n1")
    made.running(job("firm", 2000, 2048, queue="b"), "n1")
    return made.with_jobs(job("new", 4000, 8192, queue="a"))


def placed(job_id="new", node_id="n3", priority=1000):
    """A placement of the waiting job."""
    return Placement(job_id, node_id, priority)


def lost(job_id="spot", for_job="new", run=None, node_id="n1"):
    """A preemption of the preemptible run."""
    return Preemption(job_id, run or f"{job_id}/run-1", node_id, for_job)


RIGHT = RoundResult(pool="default", scheduled=(placed(),))


def test_a_right_round_has_no_breach():
    """The control of the controls."""
    assert breaches(world(), RIGHT) == []


@pytest.mark.parametrize(
    ("number", "wrong"),
    [
        ("INV-R1", {"scheduled": (placed(node_id="n2"),)}),
        ("INV-R1", {"scheduled": (placed(node_id="n1"),)}),
        ("INV-R3", {"scheduled": ()}),
        ("INV-R3", {"refused": {"new": REFUSED}}),
        ("INV-R3", {"refused": {"spot": REFUSED}}),
        ("INV-R3", {"preempted": (lost(), lost())}),
        ("INV-R4", {"preempted": (lost("firm"),)}),
        ("INV-R4", {"preempted": (lost(run="other"),)}),
        ("INV-R4", {"preempted": (lost(node_id="n2"),)}),
        ("INV-R6", {"preempted": (lost(),)}),
        ("INV-R6", {"preempted": (lost(for_job="nobody"),)}),
        ("INV-R8", {"scheduled": (), "refused": {"new": REFUSED}}),
    ],
)
def test_a_wrong_round_is_seen(number, wrong):
    """Room, answers, victims, need and progress."""
    found = breaches(world(), replace(RIGHT, **wrong))
    assert any(each.startswith(number) for each in found), found


def test_a_gang_in_parts_is_seen():
    """INV-R2, of placements and of preemptions."""
    made = world().with_jobs(gang("g", 1000, 1024, size=2, queue="a"))
    part = replace(RIGHT, scheduled=(placed("g.0"),), refused={"g.1": REFUSED, "new": REFUSED})
    assert any(each.startswith("INV-R2") for each in breaches(made, part))
    made = world()
    for member in gang("g", 1000, 1024, size=2, queue="b", **SPOT):
        made.running(member, "n3")
    part = replace(RIGHT, preempted=(lost("g.0", node_id="n3"),))
    assert any(each.startswith("INV-R2") for each in breaches(made, part))


def test_a_victim_more_urgent_than_the_winner_is_seen():
    """INV-R4 by priority, and a winner that is itself preemptible."""
    urgent = replace(RIGHT, scheduled=(placed(priority=999),), preempted=(lost(),))
    assert any("more urgent" in each for each in breaches(world(), urgent))
    made = world().with_jobs(job("new", 4000, 8192, queue="a", **SPOT))
    soft = replace(RIGHT, preempted=(lost(),))
    assert any("which is preemptible" in each for each in breaches(made, soft))


def test_a_loss_below_the_protected_share_is_seen():
    """INV-R5: b holds 4 of 8 cores, which is its share."""
    made = world()
    made.nodes["n2"] = node("n2", 1, 1, intake=Intake.CORDONED)
    made.with_jobs(job("other", 4000, 8192, queue="b"))
    assert any(
        each.startswith("INV-R5") for each in breaches(made, replace(RIGHT, preempted=(lost(),)))
    )
