"""Each checker sees the damage it is for, and nothing on sound facts."""

from collections.abc import Callable

import pytest
from msgspec import structs

from kit.jobs import backing_off, ended, gang, job, leased, requeued
from pyresched.config import SchedulingConfig
from pyresched.model import (
    Changes,
    Job,
    JobState,
    Node,
    Outcome,
    Queue,
    RescheduleEvent,
    ReschedulePolicy,
    RescheduleTracker,
    ResourceVector,
)
from pyresched.model.requests import replaced
from pyresched.model.system import as_template, pinned
from pyresched.scheduler.check import CHECKERS, Facts, breaches

NODE = Node(id="node-1", total=ResourceVector([9000, 9216]))
NODES = {NODE.id: NODE}
QUEUE = Queue(name="queue-a")
POLICY = ReschedulePolicy(attempts=1, interval=100, delay=8)


def tracker(*times: int) -> RescheduleTracker:
    """A history of reschedules at *times*."""
    return RescheduleTracker(
        events=tuple(
            RescheduleEvent(time=time, previous_run="r", previous_node="n", delay=8)
            for time in times
        )
    )


def jobs() -> dict[str, Job]:
    """One job in each kind of state, gangs that run, wait and are incomplete, a system job."""
    rows = [
        job("queued"),
        job("unchecked", validated=False),
        leased(job("leased", policy=POLICY, tracker=tracker(0, 100))),
        backing_off(leased(job("waits"))),
        ended(leased(job("over"))),
        requeued(leased(job("again")), Outcome.FAILED, at=2),
        *(leased(each) for each in gang("runs")),
        *gang("partly", size=3)[:2],
    ]
    first, second = (leased(each, run_id=each.id) for each in gang("waits-whole"))
    rows += [backing_off(first), backing_off(second)]
    watch = as_template(job("watch", job_type="system"))
    rows += [watch, pinned(watch, NODE, 1)]
    rows += [ended(pinned(watch, NODE, 3), JobState.CANCELLED)]
    return {row.id: row for row in rows}


def facts_of(held: dict[str, Job], **changes: object) -> Facts:
    """Memory and nodes as *held* says, and a journal that agrees, but for *changes*."""
    known = Facts(
        config=SchedulingConfig(),
        jobs=tuple(held.values()),
        nodes={NODE.id: NODE},
        queues={QUEUE.name: QUEUE},
        journal=Changes(jobs=tuple(held.values()), nodes=(NODE,), queues=(QUEUE,)),
        bound={row.id: row.node_id for row in held.values() if row.node_id},
    )
    return structs.replace(known, **changes)


def with_job(id: str, **changes: object) -> Facts:
    """Sound facts but for one job."""
    held = jobs()
    held[id] = held[id].replace(**changes)
    return facts_of(held)


def without(id: str) -> Facts:
    """Sound facts but that one job is not there."""
    return facts_of({name: row for name, row in jobs().items() if name != id})


DAMAGE: dict[tuple[str, str], Callable[[], Facts]] = {
    ("INV-J3", "a queue is here alone"): lambda: facts_of(
        jobs(), journal=Changes(jobs=tuple(jobs().values()), nodes=(NODE,), queues=())
    ),
    ("INV-J3", "a job is missing here"): lambda: facts_of(jobs(), jobs=tuple(jobs().values())[1:]),
    ("INV-J3", "a job is here alone"): lambda: facts_of(
        jobs(),
        journal=Changes(jobs=tuple(jobs().values())[1:], nodes=(NODE,), queues=(QUEUE,)),
    ),
    ("INV-J3", "a node differs"): lambda: facts_of(
        jobs(), nodes={NODE.id: structs.replace(NODE, version=2)}
    ),
    ("INV-J5", "a member waits alone"): lambda: with_job("runs.0", state=JobState.QUEUED, runs=()),
    ("INV-J5", "a member is not there"): lambda: facts_of(
        {id: row for id, row in jobs().items() if id != "runs.0"}
    ),
    ("INV-J5", "a member waits longer"): lambda: with_job("waits-whole.1", eligible_at=11),
    ("INV-J5", "a member has its own history"): lambda: with_job("runs.1", tracker=tracker(1)),
    ("INV-J7", "one too many in a window"): lambda: with_job("leased", tracker=tracker(1, 100)),
    ("INV-J7", "out of order"): lambda: with_job("leased", tracker=tracker(300, 100)),
    ("INV-J7", "before its delay"): lambda: with_job(
        "again",
        tracker=RescheduleTracker(
            events=(
                RescheduleEvent(
                    time=9, previous_run="again/run-1", previous_node="node-1", delay=8
                ),
            )
        ),
    ),
    ("INV-J9", "queued with a run"): lambda: with_job("leased", state=JobState.QUEUED),
    ("INV-J9", "leased without a run"): lambda: with_job("queued", state=JobState.LEASED),
    ("INV-J9", "two active runs"): lambda: with_job(
        "leased", runs=(*jobs()["leased"].runs, *jobs()["runs.0"].runs)
    ),
    ("INV-J9", "ended without a time"): lambda: with_job("over", ended_at=None),
    ("INV-J9", "a time but not ended"): lambda: with_job("queued", ended_at=3),
    ("INV-J9", "half of a wait"): lambda: with_job("waits", retry_delay=None),
    ("INV-J9", "waits for nothing"): lambda: with_job(
        "waits", failed_at=None, eligible_at=None, retry_delay=None
    ),
    ("INV-J9", "runs and waits"): lambda: with_job(
        "leased", failed_at=1, eligible_at=2, retry_delay=1
    ),
    ("INV-J9", "queued and half of a wait"): lambda: with_job("queued", eligible_at=3),
    ("INV-J9", "unknown for ever"): lambda: with_job(
        "over", runs=(jobs()["over"].runs[0].replace(outcome=Outcome.UNKNOWN),)
    ),
    ("INV-J9", "ran unchecked"): lambda: with_job("leased", validated=False),
    ("INV-J10", "a run that no node has"): lambda: facts_of(jobs(), bound={}),
    ("INV-J10", "bound without a run"): lambda: facts_of(
        jobs(), bound={**facts_of(jobs()).bound, "queued": "node-1"}
    ),
    ("INV-J10", "on a lost node"): lambda: facts_of(
        jobs(), nodes={NODE.id: structs.replace(NODE, lost_at=1)}
    ),
    ("INV-J10", "on a node that is lost and disconnected"): lambda: facts_of(
        jobs(), nodes={"n": structs.replace(NODE, id="n", lost_at=1, disconnected_at=1), **NODES}
    ),
    ("INV-J10", "not bound on a disconnected node"): lambda: facts_of(
        jobs(), nodes={NODE.id: structs.replace(NODE, disconnected_at=1)}, bound={}
    ),
    ("INV-J12", "the template is gone"): lambda: without("watch"),
    ("INV-J12", "the template has ended"): lambda: with_job(
        "watch", state=JobState.CANCELLED, ended_at=3
    ),
    ("INV-J12", "two on one node"): lambda: facts_of(
        {**jobs(), "watch@node-1#2": jobs()["watch@node-1"].replace(id="watch@node-1#2")}
    ),
    ("INV-J12", "pinned to another node"): lambda: with_job(
        "watch@node-1", requirements=replaced(jobs()["queued"].requirements, nodes=("node-2",))
    ),
}


def test_sound_facts_breach_nothing() -> None:
    """In every kind of state."""
    assert list(breaches(facts_of(jobs()))) == []


@pytest.mark.parametrize(("number", "damage"), DAMAGE, ids=" ".join)
def test_each_checker_sees_its_damage(number: str, damage: str) -> None:
    """Negative control: facts broken in one way are reported under that number."""
    assert list(CHECKERS[number](DAMAGE[number, damage]()))


def test_who_waits_for_a_lost_node_and_who_went_on_after_all_breach_nothing() -> None:
    """The first has no failure to be counted; the run of the second outlived its replacement."""
    held = jobs()
    held["waits"] = held["waits"].replace(failed_at=None, retry_delay=None)
    event = RescheduleEvent(time=30, previous_run="again/run-1", previous_node="node-1", delay=8)
    first = held["again"].runs[0].replace(ended_at=40)
    history = RescheduleTracker(events=(event,))
    held["again"] = held["again"].replace(runs=(first,), tracker=history)
    nodes = {NODE.id: structs.replace(NODE, disconnected_at=1)}
    known = facts_of(held, nodes=nodes)
    journal = structs.replace(known.journal, nodes=tuple(nodes.values()))
    assert list(breaches(structs.replace(known, journal=journal))) == []


def test_every_checker_has_its_negative_control() -> None:
    """A checker that nothing has seen fail is no checker."""
    assert {number for number, _ in DAMAGE} == set(CHECKERS)
