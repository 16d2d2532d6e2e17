"""From specs to jobs: instances, gangs, requests, policies."""

import itertools

import pytest
from msgspec import structs

from pyresched.config import SchedulingConfig, config_from
from pyresched.errors import InputError
from pyresched.model import (
    Constraint,
    DisconnectRule,
    Gang,
    GroupRules,
    Job,
    JobState,
    MigrateRule,
    Operator,
    Preference,
    RescheduleBlock,
    ReschedulePolicy,
    ResourceVector,
    Spread,
    UpdateRule,
)
from pyresched.reschedule import RestartPolicy
from pyresched.spec import expand, spec_from

CONFIG = SchedulingConfig()


def jobs_of(
    group: dict[str, object] | None = None, *, config: SchedulingConfig = CONFIG, **fields: object
) -> tuple[Job, ...]:
    """The jobs of a spec with one group, at time 7, with ids i0, i1, ..."""
    numbers = itertools.count()
    written = {"name": "j", "type": "batch", "groups": [{"name": "g", **(group or {})}], **fields}
    return expand(spec_from(written), config, ids=lambda: f"i{next(numbers)}", now=7)


def test_each_instance_is_a_job_of_its_own() -> None:
    """Alike but for the id; queued, unvalidated, at the given time."""
    jobs = jobs_of({"count": 3}, queue="q", priority=5)
    assert [job.id for job in jobs] == ["i0", "i1", "i2"]
    for job in jobs:
        assert (job.queue, job.priority, job.submitted_at, job.version) == ("q", 5, 7, 1)
        assert (job.state, job.validated, job.gang) == (JobState.QUEUED, False, None)
        assert (job.job_set, job.job_type, job.pools) == ("j", "batch", ("default",))


def test_a_gang_has_one_id_for_all_its_members() -> None:
    """The gang's id comes first; each gang of a spec has its own."""
    written = {"name": "g", "count": 2, "gang": {"uniformity": "rack"}}
    jobs = jobs_of(groups=[written, {**written, "name": "h", "count": 3, "gang": True}])
    assert [job.gang for job in jobs] == [Gang("i0", 2, "rack")] * 2 + [Gang("i3", 3, "")] * 3
    assert [job.id for job in jobs] == ["i1", "i2", "i4", "i5", "i6"]


def test_a_gang_of_one_or_none_is_no_gang() -> None:
    """One instance is placed whole anyway; none makes no job."""
    assert [job.gang for job in jobs_of({"count": 1, "gang": True})] == [None]
    assert jobs_of({"count": 0, "gang": True}) == ()


def test_group_and_tasks_ask_together_rounded_up() -> None:
    """Each part rounds up by itself."""
    tasks = [
        {"name": "a", "command": "x", "resources": {"cpu": "1.0001"}},
        {"name": "b", "command": "y", "resources": {"cpu": "1.0001", "memory": "1.5Mi"}},
    ]
    (job,) = jobs_of({"resources": {"memory": "1Mi"}, "tasks": tasks})
    assert job.requirements.resources == ResourceVector([2002, 3])


def test_instances_count_among_those_of_their_group() -> None:
    """One scope for a group of a job in a queue, unless it names one; none if it counts nothing."""
    hosts = [{"label": "", "operator": "distinct_hosts"}]
    spread = [{"label": "zone"}]
    (plain,) = jobs_of({"constraints": [{"label": "zone", "operator": "Exists"}]})
    assert plain.requirements.scope == ""
    for fields in ({"constraints": hosts}, {"spread": spread}):
        jobs = jobs_of({**fields, "count": 2}, queue="q")
        assert [job.requirements.scope for job in jobs] == ["q/j/g", "q/j/g"]
        (named,) = jobs_of({**fields, "scope": "web"})
        assert named.requirements.scope == "web"


def test_every_rule_of_placement_reaches_the_requirements() -> None:
    """As written."""
    zone = {"label": "zone", "operator": "In", "values": ["a"]}
    (job,) = jobs_of(
        {
            "constraints": [zone],
            "affinity": [[zone]],
            "preferences": [{"weight": 3, "constraints": [zone]}],
            "spread": [{"label": "zone"}],
            "nodes": ["n1"],
        }
    )
    made = Constraint("zone", Operator.IN, ("a",))
    asked = job.requirements
    assert (asked.constraints, asked.affinity) == ((made,), ((made,),))
    assert (asked.preferences, asked.spread) == ((Preference(3, (made,)),), (Spread("zone"),))
    assert asked.nodes == ("n1",)


def test_selector_tolerations_and_class_reach_the_requirements() -> None:
    """As written, or the default class."""
    (job,) = jobs_of({"selector": {"zone": "a"}, "tolerations": [{"key": "k"}]})
    assert job.requirements.selector == (("zone", "a"),)
    assert job.requirements.tolerations[0].key == "k"
    assert job.requirements.priority_class == "default"
    (job,) = jobs_of(priority_class="best-effort")
    assert job.requirements.priority_class == "best-effort"


def test_the_payload_is_what_an_executor_starts() -> None:
    """Plain values: tasks with name, command and environment as text."""
    tasks = [{"command": "a | b", "env": {"N": 3}}, {"name": "t", "command": ["c", "d"]}]
    (job,) = jobs_of({"tasks": tasks})
    assert job.payload == {
        "tasks": [
            {"name": "main", "command": ["/bin/sh", "-c", "a | b"], "env": {"N": "3"}},
            {"name": "t", "command": ["c", "d"], "env": {}},
        ]
    }
    assert jobs_of()[0].payload is None


def test_every_job_carries_its_effective_policy() -> None:
    """Group over job over configuration over type."""
    assert jobs_of()[0].policy == ReschedulePolicy.default("batch")
    assert jobs_of(type="service")[0].policy == ReschedulePolicy.default("service")
    config = config_from({"reschedule": {"batch": {"attempts": 4, "delay": 9, "interval": 5}}})
    (job,) = jobs_of(
        {"reschedule": {"delay": 8}}, config=config, reschedule={"interval": "1h", "delay": 7}
    )
    wanted = RescheduleBlock(attempts=4, interval=3600 * 10**9, delay=8)
    assert job.policy == wanted.over(ReschedulePolicy.default("batch"))


def test_pools_are_those_written_or_the_first() -> None:
    """In the order written."""
    config = config_from({"pools": [{"name": "a"}, {"name": "b"}]})
    assert jobs_of(config=config)[0].pools == ("a",)
    assert jobs_of(config=config, pools=["b", "a"])[0].pools == ("b", "a")


@pytest.mark.parametrize(
    ("group", "fields", "message"),
    [
        (
            {"resources": {"cpus": 1}},
            {},
            "job 'j': group 'g': unknown resource 'cpus'; did you mean 'cpu'?",
        ),
        (
            {"resources": {"cpu": -1}},
            {},
            "job 'j': group 'g': cpu: -1 is negative; write 0 or more",
        ),
        (
            {},
            {"priority_class": "best"},
            "job 'j': unknown priority class 'best'; known: default, best-effort",
        ),
        ({}, {"pools": ["defualt"]}, "job 'j': unknown pool 'defualt'; did you mean 'default'?"),
        (
            {"count": 2},
            {"type": "system"},
            "job 'j': group 'g': a system job is one on each node; leave out count and gang",
        ),
    ],
)
def test_what_the_configuration_lacks_is_named(group, fields, message) -> None:
    """Job, group, and what would be right."""
    with pytest.raises(InputError) as caught:
        jobs_of(group, **fields)
    assert str(caught.value) == message


@pytest.mark.parametrize("job_type", ["system", "sysbatch"])
def test_a_group_of_a_system_job_is_one_template_without_a_policy(job_type) -> None:
    """The scheduler makes a job of it for each node."""
    (only,) = jobs_of({}, type=job_type)
    assert (only.job_type, only.policy, only.gang) == (job_type, None, None)


def test_every_job_carries_the_rules_of_its_group() -> None:
    """One object for all of a group; defaults by type, the group's own fields over the job's."""
    written = {
        "count": 2,
        "restart": {"attempts": 1},
        "disconnect": {"lost_after": "1h", "reconcile": "keep_original"},
        "migrate": {"min_healthy_time": "5s"},
        "update": {"progress_deadline": "2m"},
        "tasks": [
            {"command": "a", "kill_timeout": "20s"},
            {"command": "b", "name": "b", "kill_timeout": "3s"},
        ],
    }
    job = {"type": "service", "version": 3, "migrate": {"max_parallel": 2}}
    job["update"] = {"min_healthy_time": "1s", "progress_deadline": "9m"}
    first, second = jobs_of(written, **job)
    assert first.rules is second.rules
    second_ns = 10**9
    assert first.rules == GroupRules(
        group="j/g",
        count=2,
        version=3,
        restart=structs.replace(RestartPolicy.default("service"), attempts=1),
        disconnect=DisconnectRule(lost_after=3600 * second_ns, reconcile="keep_original"),
        migrate=MigrateRule(max_parallel=2, min_healthy_time=5 * second_ns),
        update=UpdateRule(progress_deadline=120 * second_ns, min_healthy_time=second_ns),
        kill_timeout=20 * second_ns,
    )


def test_no_two_groups_have_one_identity() -> None:
    """Whatever slashes and signs are in the names of jobs and groups."""
    names = [("a/b", "c"), ("a", "b/c"), ("a%2Fb", "c"), ("a", "b%2Fc"), ("a", "c")]
    groups = {jobs_of({"name": group}, name=name)[0].rules.group for name, group in names}
    assert len(groups) == len(names)


@pytest.mark.parametrize("job_type", ["service", "batch", "system", "sysbatch"])
def test_a_group_that_writes_nothing_has_the_rules_of_its_type(job_type) -> None:
    """Restarts for each, which the configuration may replace; a service migrates by a rule."""
    (job,) = jobs_of(type=job_type)
    assert job.rules == GroupRules(
        group="j/g",
        restart=RestartPolicy.default(job_type),
        migrate=MigrateRule() if job_type == "service" else None,
    )
    config = config_from({"restart": {job_type: {"attempts": 0}}})
    (job,) = jobs_of(type=job_type, config=config)
    assert job.rules is not None
    assert job.rules.restart is not None
    assert job.rules.restart.attempts == 0


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ({"restart": {"mode": "dealy"}}, "restart: mode 'dealy' is unknown; did you mean 'delay'?"),
        ({"restart": {"attempts": -1}}, "restart.attempts: -1 is not 0 or more"),
        (
            {"disconnect": {"lost_after": "1h", "stop_on_client_after": "1m"}},
            "disconnect: lost_after and stop_on_client_after exclude each other; write one",
        ),
        (
            {"disconnect": {"reconcile": "longest"}},
            "disconnect.reconcile: 'longest' is unknown; did you mean 'longest_running'?",
        ),
        ({"migrate": {"max_parallel": 0}}, "migrate.max_parallel: 0 lets no run leave"),
        (
            {"update": {"progress_deadline": "10s"}},
            "update.progress_deadline: 10s ends before a run is healthy, after 10s; write more",
        ),
    ],
)
def test_rules_that_cannot_be_are_named(group, message) -> None:
    """Job, group, field, and what would be right."""
    with pytest.raises(InputError) as caught:
        jobs_of(group, type="service")
    assert str(caught.value).startswith(f"job 'j': group 'g': {message}")
