"""System jobs on nodes that come, change, go and return: decided on rows, then through steps."""

import pytest

from kit.driving import node, report, run_names, said, scheduler
from kit.jobs import job, requirements
from kit.readers import DictReader
from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.errors import InputError
from pyresched.fleet import SystemJobs
from pyresched.model import (
    DisconnectRule,
    Gang,
    GroupRules,
    Intake,
    JobState,
    MigrateRule,
    ReschedulePolicy,
    Taint,
    TaintEffect,
    Toleration,
    UpdateRule,
)
from pyresched.model.system import as_template, pinned, pinned_id
from pyresched.scheduler import Scheduler
from pyresched.store import MemoryJournal

SECOND = 10**9
TAINTED = Taint("special", "", TaintEffect.NO_SCHEDULE)


def template(id="log", *amounts, job_type="system", **fields):
    """A template as it stands in the journal."""
    return as_template(job(id, *(amounts or (100, 64)), job_type=job_type, **fields))


def decided(*rows, nodes, config=None, now=5):
    """What (made, called off with their reasons) comes of *rows* on *nodes*."""
    at = {each.id: each for each in nodes}
    changes, _ = SystemJobs(config or SchedulingConfig())(DictReader(rows), at, now)
    made = [each for each in changes.jobs if each.version == 1]
    return (
        [(each.id, each.requirements.nodes) for each in made],
        [(each.id, each.reason) for each in changes.jobs if each.version > 1],
    )


def test_each_node_of_its_pools_gets_one_job_pinned_to_it() -> None:
    """With the place, the class and the payload of the template; validated, as it matches."""
    rows = template(queue="ops", submitted_at=3, payload={"a": 1}, priority=7, job_set="s")
    config = SchedulingConfig(pools=(PoolConfig(name="default"), PoolConfig(name="other")))
    nodes = [node("n1"), node("n2"), node("n3", pool="other")]
    assert decided(rows, nodes=nodes, config=config) == (
        [("log@n1", ("n1",)), ("log@n2", ("n2",))],
        [],
    )
    made = pinned(rows, nodes[0], 1)
    assert (made.queue, made.submitted_at, made.payload) == ("ops", 3, {"a": 1})
    assert (made.priority, made.job_set, made.pools) == (7, "s", ("default",))
    assert made.validated
    assert made.job_type == "system"


def test_a_pinned_job_has_the_rules_of_its_template_but_those_of_a_group() -> None:
    """It is not deployed with the others and waits for none of them to migrate."""
    disconnect = DisconnectRule(lost_after=7)
    rules = GroupRules(disconnect=disconnect, update=UpdateRule(), migrate=MigrateRule())
    made = pinned(template(rules=rules), node("n1"), 1)
    assert made.rules == GroupRules(disconnect=disconnect)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"lost_at": 1}, "node_lost"),
        ({"intake": Intake.DRAINING}, "node_draining"),
        ({"taints": (TAINTED,)}, "untolerated_taint"),
        ({"labels": {"zone": "b"}}, "label_differs"),
        ({"pool": "other"}, "node_moved"),
    ],
)
def test_a_node_that_is_not_eligible_gets_none_and_loses_its_own(fields, reason) -> None:
    """Called off with the reason; whether it is queued, runs or waits."""
    rows = template(requirements=requirements(100, 64, selector={"zone": "a"}))
    good = node("n1", labels={"zone": "a"})
    bad = node("n1", **{"labels": {"zone": "a"}, **fields})
    assert decided(rows, nodes=[bad]) == ([], [])
    assert decided(rows, pinned(rows, good, 1), nodes=[bad]) == ([], [("log@n1", reason)])
    assert decided(rows, pinned(rows, good, 1), nodes=[good]) == ([], [])


def test_a_cordoned_node_keeps_its_job_and_gets_one_that_waits() -> None:
    """Who cordons a node wants nothing new there, not an end of what watches over it."""
    rows = template()
    cordoned = node("n1", intake=Intake.CORDONED)
    assert decided(rows, nodes=[cordoned]) == ([("log@n1", ("n1",))], [])
    assert decided(rows, pinned(rows, cordoned, 1), nodes=[cordoned]) == ([], [])


def test_a_node_too_small_to_ever_hold_one_gets_none() -> None:
    """One that has shrunk keeps what it has."""
    rows = template("log", 5000, 64)
    large, small = node("n1", 8), node("n1", 4)
    assert decided(rows, nodes=[small]) == ([], [])
    assert decided(rows, pinned(rows, large, 1), nodes=[small]) == ([], [])


def test_named_nodes_are_the_only_ones() -> None:
    """The template's own choice goes before."""
    rows = template(requirements=requirements(100, 64, nodes=("n2",)))
    assert decided(rows, nodes=[node("n1"), node("n2")]) == ([("log@n2", ("n2",))], [])


def ended(state, reason="", job_type="system", generation=1):
    """A template and its job on n1, which came to an end."""
    rows = template(job_type=job_type)
    was = pinned(rows, node("n1"), generation)
    return rows, was.replace(state=state, ended_at=2, reason=reason)


@pytest.mark.parametrize(
    ("state", "reason"),
    [(JobState.SUCCEEDED, ""), (JobState.FAILED, "x"), (JobState.CANCELLED, "by hand")],
)
def test_what_ends_comes_back_for_a_system_job_and_not_for_a_sysbatch_job(state, reason) -> None:
    """As the next of its kind on the same node."""
    made, _ = decided(*ended(state, reason), nodes=[node("n1")])
    assert made == [("log@n1#2", ("n1",))]
    assert decided(*ended(state, reason, "sysbatch"), nodes=[node("n1")]) == ([], [])


@pytest.mark.parametrize("job_type", ["system", "sysbatch"])
def test_what_was_called_off_with_its_node_comes_back_with_it(job_type) -> None:
    """It had not had its turn there."""
    rows, was = ended(JobState.CANCELLED, "node_lost", job_type)
    assert decided(rows, was, nodes=[node("n1")]) == ([("log@n1#2", ("n1",))], [])
    again = pinned(rows, node("n1"), 2)
    assert decided(rows, was, again, nodes=[node("n1")]) == ([], [])


def test_a_node_in_another_pool_of_the_template_gets_a_new_job() -> None:
    """The old one is queued in a pool that has no such node; first it is called off."""
    config = SchedulingConfig(pools=(PoolConfig(name="default"), PoolConfig(name="other")))
    rows = template(pools=("default", "other"))
    old = pinned(rows, node("n1"), 1)
    moved = [node("n1", pool="other")]
    assert decided(rows, old, nodes=moved, config=config) == ([], [("log@n1", "node_moved")])
    gone = old.replace(state=JobState.CANCELLED, ended_at=2, reason="node_moved")
    assert decided(rows, gone, nodes=moved, config=config) == ([("log@n1#2", ("n1",))], [])
    made = scheduler(node("n1"), config=config)
    made.submit([log(pools=("default", "other"))], 0)
    made.step(0)
    made.join_nodes(moved, 1)
    made.step(1)
    assert states(made) == {"log": "queued", "log@n1": "cancelled", "log@n1#2": "leased"}


def test_an_id_that_belongs_to_another_job_is_left_alone() -> None:
    """None is made while it lives, the next after it has ended."""
    rows = template()
    theirs = job("log@n1")
    assert decided(rows, theirs, nodes=[node("n1")]) == ([], [])
    gone = theirs.replace(state=JobState.SUCCEEDED, ended_at=1)
    assert decided(rows, gone, nodes=[node("n1")]) == ([("log@n1#2", ("n1",))], [])


def test_no_two_pairs_of_template_and_node_share_an_id() -> None:
    """Whatever signs are in their names, in any generation."""
    names = ["a", "a@", "a@b", "b", "@b", "b#2", "a#2", "%40", "a%40", "%", "#", "a@b#2", "%23"]
    ids = {pinned_id(name, at, n): (name, at, n) for name in names for at in names for n in (1, 2)}
    assert len(ids) == 2 * len(names) ** 2
    made, _ = decided(template("a"), template("a@b"), nodes=[node("b@c"), node("c")])
    assert len(dict(made)) == 4


def test_long_names_make_ids_that_fit() -> None:
    """At most 255 bytes, the same each time, and another for each node and generation."""
    ids = {
        pinned_id(name, at, n)
        for name in ("t" * 200, "t" * 201, "é" * 100)
        for at in ("n" * 54, "n" * 100, "m" * 100)
        for n in (1, 2, 10**6)
    }
    assert len(ids) == 27
    assert max(len(id.encode()) for id in ids) <= 255
    assert pinned_id("t", "n", 1) == "t@n"


def test_templates_are_among_the_guards_where_a_job_is_made() -> None:
    """So that no other scheduler cancels it in between and leaves the job behind."""
    rows = template()
    reader, at = DictReader([rows]), {"n1": node("n1")}
    changes, guards = SystemJobs(SchedulingConfig())(reader, at, 5)
    assert guards == {("job", "log@n1"): 0, ("job", "log"): 1}
    assert [(event.kind.value, event.job_id) for event in changes.events] == [
        ("submitted", "log@n1")
    ]
    assert SystemJobs(SchedulingConfig())(DictReader([job()]), at, 5)[1] == {}


# Through commands and steps


def states(made):
    """The state of each job, by id."""
    return {each.id: each.state.name.lower() for each in made.snapshot()}


def log(**fields):
    """A system job as its user submits it."""
    return job("log", 100, 64, job_type="system", **fields)


def test_a_system_job_is_on_each_node_after_a_step_and_nowhere_itself() -> None:
    """Nodes that join later get theirs in the next step."""
    made = scheduler(node("n1"), node("n2"))
    made.submit([log(), job("other")], 0)
    assert states(made) == {"log": "queued", "other": "queued"}
    made.step(0)
    expected = {"log": "queued", "other": "leased", "log@n1": "leased", "log@n2": "leased"}
    assert states(made) == expected
    assert made.snapshot().get("log@n2").node_id == "n2"
    made.join_nodes([node("n3")], 1)
    made.step(1)
    assert states(made) == {**expected, "log@n3": "leased"}
    assert said(made, "log") == ["submitted"]
    assert made.check() == []


def test_a_step_without_news_makes_nothing() -> None:
    """Nor commits anything."""
    made = scheduler(node("n1"))
    made.submit([log()], 0)
    made.step(0)
    made.step(1)
    serial = made.sync.serial
    made.step(2)
    assert made.sync.serial == serial


def test_a_node_that_is_lost_takes_its_job_along_and_brings_back_another() -> None:
    """No job waits for a node that is not there."""
    made = scheduler(node("n1"), node("n2"))
    made.submit([log()], 0)
    made.step(0)
    made.lose_nodes(["n1"], 1)
    made.step(1)
    assert states(made)["log@n1"] == "cancelled"
    assert made.snapshot().get("log@n1").reason == "node_lost"
    assert said(made, "log@n1") == ["submitted", "leased", "lost", "requeued", "cancelled"]
    made.nodes_back(["n1"], 2)
    made.step(2)
    assert states(made)["log@n1#2"] == "leased"
    assert states(made)["log@n2"] == "leased"
    assert made.check() == []


def test_one_that_fails_is_tried_again_on_its_node_after_a_delay() -> None:
    """As a service is, for ever; one that completes at once."""
    made = scheduler(node("n1"), node("n2"))
    made.submit([log()], 0)
    made.step(0)
    for n in range(6):
        report(made, "log@n1", kind="failed", now=made.snapshot().get("log@n1").runs[-1].leased_at)
        assert states(made)["log@n1"] == "backing_off"
        made.step(made.snapshot().get("log@n1").eligible_at)
        assert len(made.snapshot().get("log@n1").runs) == n + 2
    assert {run.node_id for run in made.snapshot().get("log@n1").runs} == {"n1"}
    now = 10**15
    report(made, "log@n2", kind="succeeded", now=now)
    made.step(now)
    assert states(made)["log@n2"] == "leased"


def test_a_sysbatch_job_is_done_once_on_each_node() -> None:
    """Whether it succeeds or fails; a node that joins later has its turn too."""
    made = scheduler(node("n1"), node("n2"))
    made.submit([job("scan", 100, 64, job_type="sysbatch")], 0)
    made.step(0)
    report(made, "scan@n1", kind="succeeded", now=1)
    report(made, "scan@n2", kind="failed", now=1)
    made.join_nodes([node("n3")], 2)
    made.step(3)
    assert states(made) == {
        "scan": "queued",
        "scan@n1": "succeeded",
        "scan@n2": "failed",
        "scan@n3": "leased",
    }
    made.lose_nodes(["n1", "n2"], 4)
    made.step(4)
    made.nodes_back(["n1", "n2"], 5)
    made.step(5)
    assert len(states(made)) == 4


def test_to_cancel_a_system_job_is_to_cancel_it_everywhere() -> None:
    """In one commit; no step brings it back. One of its jobs alone does come back."""
    made = scheduler(node("n1"), node("n2"))
    made.submit([log()], 0)
    made.step(0)
    made.cancel(["log@n1"], 1)
    made.step(1)
    assert states(made)["log@n1#2"] == "leased"
    serial = made.sync.serial
    made.cancel(["log"], 2, reason="enough")
    assert made.sync.serial == serial + 1
    assert set(states(made).values()) == {"cancelled"}
    made.join_nodes([node("n3")], 3)
    made.step(3)
    assert set(states(made).values()) == {"cancelled"}
    assert made.check() == []


def test_a_taint_that_comes_ends_what_does_not_tolerate_it() -> None:
    """And leaves what does."""
    made = scheduler(node("n1"))
    tolerant = requirements(100, 64, tolerations=(Toleration("special", exists=True),))
    made.submit([log(), job("all", requirements=tolerant, job_type="system")], 0)
    made.step(0)
    made.join_nodes([node("n1", taints=(TAINTED,))], 1)
    made.step(1)
    assert states(made)["log@n1"] == "cancelled"
    assert states(made)["all@n1"] == "leased"


def test_system_jobs_have_neither_gang_nor_policy() -> None:
    """Each fault is named; nothing is admitted."""
    made = scheduler(node("n1"))
    with pytest.raises(InputError, match="job 'log': gang: a system job is one on each node"):
        made.submit([log(gang=Gang("g", 2))], 0)
    with pytest.raises(InputError, match="job 'log': policy: a system job has none"):
        made.submit([log(policy=ReschedulePolicy(attempts=1, interval=1, delay=1))], 0)
    assert states(made) == {}


def test_a_journal_that_forgets_what_ended_refuses_sysbatch_jobs() -> None:
    """It would run them again and again; system jobs come back anyway."""
    made = scheduler(node("n1"), journal=MemoryJournal(keep_ended=False))
    with pytest.raises(InputError, match="job 'scan': job_type sysbatch needs a journal"):
        made.submit([job("scan", job_type="sysbatch")], 0)
    made.submit([log()], 0)
    for now in (1, 3, 5):
        made.step(now)
        made.lose_nodes(["n1"], now)
        made.step(now)
        assert states(made) == {"log": "queued"}
        made.nodes_back(["n1"], now + 1)
    made.step(9)
    assert states(made) == {"log": "queued", "log@n1": "leased"}
    assert made.check() == []


def test_a_restart_neither_loses_nor_doubles_a_job() -> None:
    """All follows from rows."""
    journal = MemoryJournal()
    made = scheduler(node("n1"), node("n2"), journal=journal)
    made.submit([log()], 0)
    made.step(0)
    made.lose_nodes(["n2"], 1)
    again = Scheduler(SchedulingConfig(), journal, ids=run_names("later"))
    again.step(2)
    again.nodes_back(["n2"], 3)
    again.step(4)
    assert states(again) == {
        "log": "queued",
        "log@n1": "leased",
        "log@n2": "cancelled",
        "log@n2#2": "leased",
    }
