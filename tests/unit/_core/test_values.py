"""Jobs, runs, gangs and requirements: frozen, hashable, picklable, compared by value."""

import gc
import pickle
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.jobs import job, leased, requirements, run
from pyresched.model import (
    Constraint,
    Gang,
    GroupRules,
    Job,
    JobState,
    Operator,
    Outcome,
    Preference,
    Requirements,
    RescheduleEvent,
    ReschedulePolicy,
    RescheduleTracker,
    ResourceVector,
    Run,
    Spread,
    Toleration,
)

# Another value for each field of a job; `version` is apart, `replace` moves it.
OTHER_JOB: dict[str, Any] = {
    "id": "job-2",
    "queue": "queue-b",
    "requirements": requirements(1),
    "submitted_at": 5,
    "job_set": "set",
    "priority": 7,
    "pools": ("gpu",),
    "state": JobState.RUNNING,
    "validated": False,
    "gang": Gang("gang-1", 2),
    "runs": (run(),),
    "job_type": "service",
    "policy": ReschedulePolicy(attempts=1),
    "rules": GroupRules(group="job/web", count=2),
    "tracker": RescheduleTracker(),
    "failed_at": 1,
    "eligible_at": 2,
    "retry_delay": 3,
    "ended_at": 4,
    "reason": "exhausted",
    "payload": {"image": "x"},
}
OTHER_RUN: dict[str, Any] = {
    "id": "run-2",
    "node_id": "node-2",
    "pool": "gpu",
    "priority": 3,
    "leased_at": 1,
    "lease_expires_at": 2,
    "started_at": 3,
    "reason": "lost contact",
}


def test_every_field_of_a_job_has_another_value_here() -> None:
    """A field that is added is covered by the tests below, or this fails."""
    assert {*OTHER_JOB, "version"} == set(job().as_dict())
    assert {*OTHER_RUN, "ended_at", "outcome"} == set(run().as_dict())


@pytest.mark.parametrize("field", sorted(OTHER_JOB))
def test_a_replaced_field_makes_the_next_version_and_leaves_the_job_as_it_was(field: str) -> None:
    """Fact 38: a change is a new value; only that field and the version differ."""
    before = job()
    fields = before.as_dict()
    after = before.replace(**{field: OTHER_JOB[field]})
    assert before.as_dict() == fields
    assert after.as_dict() == {**fields, field: OTHER_JOB[field], "version": 2}
    assert after != before


@pytest.mark.parametrize("field", [*sorted(OTHER_JOB), "version"])
def test_jobs_that_differ_in_one_field_are_unequal(field: str) -> None:
    """At the same version too: equality is by every value."""
    fields = job().as_dict()
    other = Job(**{**fields, field: OTHER_JOB.get(field, 2)})
    assert other != job()
    assert Job(**fields) == job()  # type: ignore[arg-type]
    assert hash(Job(**fields)) == hash(job())  # type: ignore[arg-type]


@pytest.mark.parametrize("field", sorted(OTHER_RUN))
def test_runs_that_differ_in_one_field_are_unequal(field: str) -> None:
    """And `replace` leaves the run as it was."""
    before = run()
    after = before.replace(**{field: OTHER_RUN[field]})
    assert after != before
    assert after.as_dict() == {**before.as_dict(), field: OTHER_RUN[field]}
    assert before == run()
    assert hash(before) == hash(run())


def test_a_payload_that_cannot_compare_is_equal_to_itself() -> None:
    """All versions share it; an array, say, has no truth value to give."""

    class Payload:
        def __eq__(self, other: object) -> bool:
            raise AssertionError("compared")

        __hash__ = None  # type: ignore[assignment]

    payload = Payload()
    assert job(payload=payload) == job(payload=payload)
    assert job(payload=payload, priority=1) != job(payload=payload)
    with pytest.raises(AssertionError, match="compared"):
        job(payload=payload) == job(payload=Payload())  # noqa: B015


def test_a_version_can_be_given() -> None:
    """`replace(version=...)` sets it; nothing else makes a version stay."""
    assert job().replace(version=9).version == 9
    assert job().replace().version == 2


@given(
    at=st.integers(-(2**63) + 1, 2**63 - 1) | st.none(),
    priority=st.integers(0, 2**32 - 1),
    version=st.integers(0, 2**32 - 1),
)
def test_integers_come_back_as_they_went_in(at: int | None, priority: int, version: int) -> None:
    """Instants over all of int64 but its lowest value, which stands for None inside."""
    made = job(
        failed_at=at,
        eligible_at=at,
        ended_at=at,
        retry_delay=at,
        priority=priority,
        version=version,
    )
    assert (made.failed_at, made.eligible_at, made.ended_at, made.retry_delay) == (at,) * 4
    assert (made.priority, made.version) == (priority, version)


def test_values_come_back_from_pickle() -> None:
    """With every field set, payload included."""
    full = Job(id="j", **{k: v for k, v in OTHER_JOB.items() if k != "id"}, version=3)
    for value in (
        full,
        full.runs[0],
        full.gang,
        full.requirements,
        run(ended_at=1, outcome=Outcome.LOST),
    ):
        copy = pickle.loads(pickle.dumps(value))  # noqa: S301 - our own bytes
        assert copy == value
        assert hash(copy) == hash(value)


def test_values_cannot_be_changed() -> None:
    """Every field of every value is read-only and none can be added."""
    made = leased(job(gang=Gang("gang-1", 2)))
    for value, fields in (
        (made, made.as_dict()),
        (made.runs[0], made.runs[0].as_dict()),
        (made.gang, {"id": "", "cardinality": 2, "uniformity": ""}),
        (
            made.requirements,
            {"resources": None, "priority_class": "", "selector": (), "tolerations": ()},
        ),
    ):
        for field, old in [*fields.items(), ("colour", "red")]:
            with pytest.raises(AttributeError):
                setattr(value, field, old)


def test_an_unknown_field_is_refused() -> None:
    """By `replace` and by the constructors."""
    with pytest.raises(TypeError, match="no field 'colour'"):
        job().replace(colour="red")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        run().replace(colour="red")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        job(colour="red")


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"id": ""}, ValueError, "needs an id"),
        ({"queue": ""}, ValueError, "'job-1' needs a queue"),
        ({"priority": -1}, ValueError, "from 0 to 4294967295, got -1"),
        ({"priority": 2**32}, ValueError, "got 4294967296"),
        ({"state": 8}, ValueError, "no such state 8"),
        ({"state": -1}, ValueError, "no such state -1"),
        ({"id": None}, TypeError, "id"),
        ({"id": b"job"}, TypeError, "id"),
        ({"queue": 7}, TypeError, "queue"),
        ({"requirements": None}, TypeError, "requirements"),
        ({"pools": ["default"]}, TypeError, "pools"),
        ({"runs": [run()]}, TypeError, "runs"),
        ({"submitted_at": 1.5}, TypeError, "submitted_at is a whole number, got 1.5"),
        ({"priority": 1.0}, TypeError, "priority is a whole number"),
        ({"state": 0.0}, TypeError, "state is a whole number"),
        ({"eligible_at": 1e9}, TypeError, "eligible_at is a whole number"),
        ({"version": "1"}, TypeError, "version is a whole number, got '1'"),
        ({"submitted_at": 2**63}, OverflowError, "submitted_at must be from"),
        ({"gang": "gang-1"}, TypeError, "gang"),
        ({"reason": None}, TypeError, "reason"),
        ({"job_set": 1}, TypeError, "job_set"),
        ({"job_type": 1}, TypeError, "job_type"),
    ],
)
def test_a_job_that_cannot_be_is_refused(
    fields: dict[str, Any], error: type[Exception], message: str
) -> None:
    """At once and by name, so that no store has to ask again; by `replace` as well."""
    with pytest.raises(error, match=message):
        job(**fields)
    before = job()
    with pytest.raises(error):
        before.replace(**fields)
    assert before == job()


def test_a_gang_has_an_id_and_at_least_two_members() -> None:
    """Fact 22, as far as it is about values."""
    assert Gang("gang-1", 2) == Gang("gang-1", 2, "")
    assert Gang("gang-1", 2, "rack") != Gang("gang-1", 2)
    assert Gang("gang-1", 3) != Gang("gang-1", 2)
    for cardinality in (-1, 0, 1):
        with pytest.raises(ValueError, match=f"at least 2, got {cardinality}"):
            Gang("gang-1", cardinality)
    with pytest.raises(ValueError, match="not empty"):
        Gang("", 2)


def test_a_run_has_an_end_exactly_when_it_has_an_outcome() -> None:
    """One without the other is refused, in both directions."""
    assert run().active
    assert not run(ended_at=3, outcome=Outcome.FAILED).active
    with pytest.raises(ValueError, match="ended_at and outcome go together"):
        run(ended_at=3)
    with pytest.raises(ValueError, match="ended_at and outcome go together"):
        run(outcome=Outcome.FAILED)
    with pytest.raises(ValueError, match="ended_at and outcome go together"):
        run().replace(ended_at=3)
    with pytest.raises(ValueError, match="ended_at and outcome go together"):
        run(ended_at=3, outcome=Outcome.FAILED).replace(outcome=None)


@pytest.mark.parametrize("field", ["id", "node_id", "pool", "reason", "priority", "leased_at"])
def test_a_run_that_cannot_be_is_refused(field: str) -> None:
    """By the constructor and by `replace`."""
    wrong: dict[str, Any] = {field: 1.5}
    with pytest.raises(TypeError):
        run(**wrong)
    with pytest.raises(TypeError):
        run().replace(**wrong)


def test_the_active_run_is_the_newest_while_it_has_not_ended() -> None:
    """Fact 43: an older run never counts, whatever it says."""
    ended = run("run-1", ended_at=3, outcome=Outcome.LOST)
    assert job().active_run is None
    assert job().node_id is None
    assert job(runs=(ended,)).active_run is None
    assert job(runs=(ended, run("run-2", node_id="node-2"))).node_id == "node-2"
    assert job(runs=(run("run-0"), ended)).active_run is None


def test_states_know_what_ends_and_what_holds_a_node() -> None:
    """Fact 39: succeeded, failed and cancelled are terminal, nothing else."""
    assert [s.name for s in JobState if s.terminal] == ["SUCCEEDED", "FAILED", "CANCELLED"]
    assert [s.name for s in JobState if s.active] == ["LEASED", "PENDING", "RUNNING"]
    assert [job(state=state).state for state in JobState] == list(JobState)


def test_requirements_are_equal_however_their_selector_was_written() -> None:
    """Fact 24: the scheduling key does not depend on the order of a mapping."""
    a = requirements(selector={"zone": "a", "arch": "x86"})
    b = requirements(selector=[("arch", "x86"), ("zone", "a")])
    assert a == b
    assert hash(a) == hash(b)
    assert a.selector == (("arch", "x86"), ("zone", "a"))


@pytest.mark.parametrize(
    "other",
    [
        requirements(1),
        requirements(priority_class="high"),
        requirements(selector={"zone": "a"}),
        requirements(selector={"zone": "b"}),
        requirements(selector={"rack": "a"}),
        requirements(tolerations=(Toleration(key="gpu"),)),
        requirements(tolerations=(Toleration(key="gpu", value="x"),)),
        requirements(tolerations=(Toleration(key="gpu", exists=True),)),
    ],
)
def test_requirements_that_differ_are_unequal(other: Requirements) -> None:
    """Fact 25: every part counts for the scheduling key."""
    assert other != requirements()
    assert other == Requirements(
        other.resources,
        other.priority_class,
        selector=other.selector,
        tolerations=other.tolerations,
    )


ZONE = Constraint("zone", Operator.IN, ("a", "b"))
RACK = Constraint("rack", Operator.DISTINCT_PROPERTY)
RACK_IS = Constraint("rack", Operator.EXISTS)
# Another value for each part of the language.
RULES: dict[str, Any] = {
    "constraints": (ZONE,),
    "affinity": ((ZONE,),),
    "preferences": (Preference(5, (ZONE,)),),
    "spread": (Spread("zone"),),
    "scope": "all",
    "nodes": ("node-1",),
}


@pytest.mark.parametrize("field", sorted(RULES))
def test_each_rule_of_placement_counts_for_the_key(field: str) -> None:
    """Fact 25: what is asked of nodes is part of equality, hash, repr and pickle."""
    other = requirements(**{field: RULES[field]})
    assert other != requirements()
    assert getattr(other, field) == RULES[field]
    assert other == requirements(**{field: RULES[field]})
    assert hash(other) == hash(requirements(**{field: RULES[field]}))
    assert f"{field}={RULES[field]!r}" in repr(other)
    assert pickle.loads(pickle.dumps(other)) == other  # noqa: S301 - our own bytes
    with pytest.raises(AttributeError):
        setattr(other, field, RULES[field])


@pytest.mark.parametrize(
    "other",
    [
        {"constraints": (Constraint("zone", Operator.IN, ("a",)),)},
        {"constraints": (Constraint("zone", Operator.NOT_IN, ("a", "b")),)},
        {"constraints": (Constraint("rack", Operator.IN, ("a", "b")),)},
        {"constraints": (ZONE, RACK)},
        {"affinity": ((ZONE,), (RACK_IS,))},
        {"nodes": ("node-1", "node-2")},
    ],
    ids=["value", "operator", "label", "one more", "another term", "another node"],
)
def test_rules_that_differ_in_one_part_are_unequal(other: dict[str, Any]) -> None:
    """Fact 25, of each part of a rule."""
    assert requirements(**other) != requirements(**{name: RULES[name] for name in other})


def test_rules_are_equal_however_they_were_written() -> None:
    """Fact 24: conditions that all must hold, and nodes of which any will do, have no order."""
    host = Constraint("", Operator.DISTINCT_HOSTS)
    one = requirements(constraints=(ZONE, host), affinity=((ZONE, RACK_IS),), nodes=("b", "a"))
    other = requirements(
        constraints=(host, ZONE, ZONE), affinity=((RACK_IS, ZONE),) * 2, nodes=("a", "b", "a")
    )
    assert one == other
    assert hash(one) == hash(other)
    assert requirements(constraints=()) == requirements()
    taints = (Toleration("a"), Toleration("b", exists=True))
    assert requirements(tolerations=taints) == requirements(tolerations=(*taints[::-1], taints[0]))


@pytest.mark.parametrize(
    ("rules", "has"),
    [
        ({}, True),
        ({"constraints": (ZONE,), "affinity": ((ZONE,),), "spread": (Spread("zone"),)}, True),
        ({"constraints": (Constraint("", Operator.DISTINCT_HOSTS, ("false",)),)}, True),
        ({"constraints": (Constraint("", Operator.DISTINCT_HOSTS),)}, False),
        ({"constraints": (ZONE, RACK)}, False),
        ({"nodes": ("node-1",)}, False),
    ],
    ids=["plain", "labels", "switched off", "distinct hosts", "distinct property", "fixed nodes"],
)
def test_what_counts_other_jobs_or_names_nodes_has_no_scheduling_key(
    rules: dict[str, Any], has: bool
) -> None:
    """Of jobs with equal requirements one may fit where the next does not."""
    assert requirements(**rules).has_scheduling_key is has


@pytest.mark.parametrize(
    ("rules", "error", "message"),
    [
        ({"constraints": [ZONE]}, TypeError, "constraints is a tuple"),
        ({"constraints": ("zone",)}, TypeError, "constraints is a tuple of Constraint"),
        ({"affinity": (ZONE,)}, TypeError, "a term of affinity is a tuple"),
        ({"affinity": ((RACK,),)}, ValueError, "affinity: distinct_property counts other jobs"),
        ({"preferences": (ZONE,)}, TypeError, "preferences is a tuple of Preference"),
        ({"spread": ("zone",)}, TypeError, "spread is a tuple of Spread"),
        ({"scope": None}, TypeError, "scope is a str"),
        ({"nodes": "node-1"}, TypeError, "nodes is a tuple"),
        ({"nodes": (1,)}, TypeError, "an id in nodes is a str"),
    ],
)
def test_rules_that_cannot_be_are_refused(
    rules: dict[str, Any], error: type[Exception], message: str
) -> None:
    """The field and its value are named."""
    with pytest.raises(error, match=message):
        requirements(**rules)


def test_plain_requirements_carry_no_rules() -> None:
    """A million distinct ones cost one pointer each for what they do not ask."""
    assert sys.getsizeof(requirements()) <= 64


def test_no_value_is_tracked_by_the_collector() -> None:
    """A million jobs must not slow `gc.collect`."""
    made = leased(job(gang=Gang("gang-1", 2)))
    values = (made, made.runs[0], made.gang, made.requirements, made.requirements.resources)
    assert not any(map(gc.is_tracked, values))


def test_a_detached_job_is_equal() -> None:
    """`detach` gives the same value off any store."""
    assert job().detach() == job()


def test_repr_names_every_field() -> None:
    """A failing test shows the whole value."""
    text = repr(leased(job()))
    for field in (*job().as_dict(), *run().as_dict()):
        assert f"{field}=" in text
    assert repr(Gang("g", 2)) == "Gang('g', 2, '')"
    assert repr(ResourceVector([1, 2])) == "ResourceVector((1, 2))"
    assert isinstance(run(), Run)


def test_jobs_of_a_group_share_one_set_of_rules() -> None:
    """As with a policy: equal rules are one object, however often they were made."""
    one, other = (job(f"job-{n}", rules=GroupRules(group="job/web")) for n in range(2))
    assert one.rules is other.rules
    assert job().rules is None
    assert one.replace(rules=None) == job("job-0", version=2)


def test_rules_that_can_be_changed_are_refused() -> None:
    """They are shared, so they are hashable."""
    with pytest.raises(TypeError, match="unhashable"):
        job(rules={})


def event(**changes: Any) -> RescheduleEvent:
    """An event with *changes*."""
    fields = {"time": 1, "previous_run": "run-1", "previous_node": "node-1", "delay": 2}
    return RescheduleEvent(**{**fields, **changes})


def test_a_forced_reschedule_is_another_value_and_travels() -> None:
    """In events alone and in trackers: equality, hash, words and pickle."""
    plain, forced = event(), event(forced=True)
    assert (plain.forced, forced.forced) == (False, True)
    assert plain != forced
    assert plain == event(forced=False)
    assert hash(plain) == hash(event(forced=False))
    assert "forced=True" in repr(forced)
    history = RescheduleTracker(events=(plain, forced))
    assert history != RescheduleTracker(events=(plain, plain))
    assert history.events == (plain, forced)
    for value in (forced, history, job(tracker=history)):
        assert pickle.loads(pickle.dumps(value)) == value  # noqa: S301


@pytest.mark.parametrize("forced", [1, None, "yes"])
def test_forced_is_true_or_false(forced: object) -> None:
    """Nothing that is merely like it."""
    with pytest.raises(TypeError, match="forced is True or False"):
        event(forced=forced)


def test_a_run_may_be_out_of_reach() -> None:
    """Such a run has ended for now, and is a value like any other."""
    lost = run(ended_at=5, outcome=Outcome.UNKNOWN)
    assert lost.outcome is Outcome.UNKNOWN
    assert not lost.active
    assert pickle.loads(pickle.dumps(lost)) == lost  # noqa: S301
    assert lost.replace(ended_at=None, outcome=None) == run()
