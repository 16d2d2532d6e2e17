"""The configuration: its defaults, its limits, and how faults are named."""

import pytest
from msgspec import structs

from pyresched.config import SchedulingConfig, config_from
from pyresched.errors import ConfigError, InputError
from pyresched.model import (
    AwayEntry,
    PriorityClass,
    ReschedulePolicy,
    ResourceCondition,
    Taint,
    WellKnownNodeType,
)
from pyresched.reschedule import RestartPolicy


def test_the_defaults_work_as_they_stand() -> None:
    """A configuration of nothing has resources, classes and a pool."""
    config = SchedulingConfig()
    assert config.spec.names == ("cpu", "memory")
    assert config.levels == (0, 1000)
    assert not config.priority_class("default").preemptible
    assert config.priority_class("best-effort").preemptible
    assert config.multipliers("default") == (1.0, 1.0)
    assert config.policy_for("batch") == ReschedulePolicy.default("batch")
    assert config.policy_for("system") is None
    assert (config.max_queue_lookback, config.lease_duration, config.create_queues) == (
        0,
        None,
        True,
    )


@pytest.mark.parametrize(
    "written",
    [
        {"protected_fraction": 0},
        {"lease_duration": 1},
        {"max_queue_lookback": 0},
        {"queues": [{"name": "a", "weight": 5e-324}]},
        {"priority_classes": [{"name": "default", "priority": 2**31 - 1}]},
        {"priority_classes": [{"name": "default", "priority": 0}]},
        {"fairness_resources": {"cpu": 0, "memory": 1}},
        {"reschedule": {"batch": {"delay": 0, "attempts": 0}}},
    ],
)
def test_the_ends_of_a_range_belong_to_it(written: dict[str, object]) -> None:
    """What is just right is accepted."""
    assert config_from(written)


def test_a_tuple_in_code_is_a_list() -> None:
    """A mapping need not come from a file."""
    assert config_from({"pools": ({"name": "a"},)}) == config_from({"pools": [{"name": "a"}]})


def test_nothing_written_is_the_default() -> None:
    """An empty file is the configuration without arguments."""
    assert config_from({}) == SchedulingConfig()


SPARE = {"name": "default", "priority": 5, "preemptible": True}
GPU_TYPE = {"name": "gpu", "taints": [{"key": "gpu"}]}
LICENCES = {"resources": [{"name": "cpu"}, {"name": "licence", "floating": True}]}


def away(entry: dict[str, object], **more: object) -> dict[str, object]:
    """A configuration whose one class has an *entry*."""
    classes = [SPARE | {"away": [{"priority": 1, "node_type": "gpu"} | entry]} | more]
    return {"node_types": [GPU_TYPE], "priority_classes": classes}


def when(**condition: object) -> dict[str, object]:
    """An entry with one condition."""
    written = {"resource": "cpu", "operator": ">", "value": 1} | condition
    return away({"node_types": [{"name": "gpu", "when": [written]}]})


def pool(**keys: object) -> dict[str, object]:
    """A configuration of one pool with *keys*."""
    return {"pools": [{"name": "a"} | keys]}


def queue(**keys: object) -> dict[str, object]:
    """A configuration of one queue with *keys*."""
    return {"queues": [{"name": "q"} | keys]}


CLASS = "priority_classes[0]"
CONDITION = f"{CLASS}.away[0].node_types[0].when[0]"
LIMITS: list[tuple[dict[str, object], str, str]] = [
    ({"rate": 0, "burst": 1}, "rate", "a number each second from"),
    ({"rate": -1, "burst": 1}, "rate", "a number each second from"),
    ({"rate": 1e-10, "burst": 1}, "rate", "a number each second from"),
    ({"rate": 1, "burst": 0}, "burst", "nothing could ever start; write 1 to"),
    ({"rate": 1}, "burst", "missing beside rate"),
    ({"queue_burst": 1}, "queue_rate", "missing beside queue_burst"),
    ({"rate_scope": "pools"}, "rate_scope", "did you mean 'pool'?"),
    ({"max_tries_per_round": -1}, "max_tries_per_round", "0 (no limit) or more"),
    ({"max_tries_per_queue": 2**31}, "max_tries_per_queue", "write less"),
    ({"max_unacknowledged_runs": -1}, "max_unacknowledged_runs", "0 (no limit) or more"),
    ({"max_fraction_to_schedule": {"cpu": -0.5}}, "max_fraction_to_schedule.cpu", "from 0"),
    ({"max_fraction_to_schedule": {"cpus": 1}}, "max_fraction_to_schedule.cpus", "mean 'cpu'?"),
    (pool(max_fraction_to_schedule={"gp": 1}), "pools[0].max_fraction_to_schedule.gp", "known"),
    (pool(protected_fraction=-1), "pools[0].protected_fraction", "from 0"),
    (pool(short_job_penalty_cutoff="0s"), "pools[0].short_job_penalty_cutoff", "above 0"),
    (pool(preemption_rate=1), "pools[0].preemption_burst", "missing beside preemption_rate"),
    (pool(queue_weights={"q": 0}), "pools[0].queue_weights.q", "above 0"),
    (pool(away_pools=["a"]), "pools[0].away_pools[0]", "is the pool itself"),
    (pool(away_pools=["b"]), "pools[0].away_pools[0]", "unknown pool 'b'"),
    (
        {
            "pools": [
                {"name": "a", "away_pools": ["b"]},
                {"name": "b", "away_pools": ["c"]},
                {"name": "c", "away_pools": ["a"]},
            ]
        },
        "pools[0].away_pools[0]",
        "'b' leads back here by away pools of its own; drop one of them",
    ),
    (
        {"pools": [{"name": "a", "away_pools": ["b", "b"]}, {"name": "b"}]},
        "pools[0].away_pools[1]",
        "keep one",
    ),
    (pool(floating={"cpu": 1}), "pools[0].floating.cpu", "make it floating under resources"),
    (LICENCES | pool(floating={"licences": 1}), "pools[0].floating.licences", "'licence'?"),
    (LICENCES | pool(floating={"licence": "x"}), "pools[0].floating.licence", "a quantity"),
    (LICENCES | pool(floating={"licence": -1}), "pools[0].floating.licence", "0 or more"),
    ({"resources": [{"name": "x", "floating": True}]}, "resources", "one that is not floating"),
    (pool(place_home=False, place_away=False), "pools[0].place_home", "leave it or place_away on"),
    ({"node_types": [{"name": "gpu"}]}, "node_types[0].taints", "write the taints"),
    ({"node_types": [GPU_TYPE, GPU_TYPE]}, "node_types[1].name", "keep one"),
    (away({}, preemptible=False), f"{CLASS}.away", "make the class preemptible"),
    (away({"priority": 5}), f"{CLASS}.away[0].priority", "write 0 to 4"),
    (away({"priority": -1}), f"{CLASS}.away[0].priority", "write 0 to 4"),
    (away({"priority": 0}, priority=0), f"{CLASS}.away[0].priority", "raise the class's"),
    (away({"node_type": "gup"}), f"{CLASS}.away[0].node_type", "did you mean 'gpu'?"),
    (away({"node_type": ""}), f"{CLASS}.away[0]", "leads nowhere"),
    (when(resource="cpus"), f"{CONDITION}.resource", "did you mean 'cpu'?"),
    (when(operator=">="), f"{CONDITION}.operator", "did you mean '>'?"),
    (when(value="1Gb"), f"{CONDITION}.value", "a quantity"),
    (when(value=-1), f"{CONDITION}.value", "0 or more"),
    (
        {"priority_classes": [SPARE | {"max_fraction_per_queue": {"cpu": -1}}]},
        f"{CLASS}.max_fraction_per_queue.cpu",
        "from 0",
    ),
    (
        {"priority_classes": [SPARE | {"max_fraction_per_queue_by_pool": {"b": {"cpu": 1}}}]},
        f"{CLASS}.max_fraction_per_queue_by_pool.b",
        "unknown pool",
    ),
    (
        queue(max_fraction_by_class={"default": {"cpu": -1}}),
        "queues[0].max_fraction_by_class.default.cpu",
        "from 0",
    ),
    (
        queue(max_fraction_by_class={"defualt": {"cpu": 1}}),
        "queues[0].max_fraction_by_class.defualt",
        "unknown class; did you mean 'default'?",
    ),
    (pool(name=""), "pools[0].name", "write a name"),
    (
        queue(max_fraction_by_class_by_pool={"defualt": {"default": {"cpu": 1}}}),
        "queues[0].max_fraction_by_class_by_pool.defualt",
        "unknown class; did you mean 'default'?",
    ),
    (
        queue(max_fraction_by_class_by_pool={"default": {"b": {"cpu": 1}}}),
        "queues[0].max_fraction_by_class_by_pool.default.b",
        "unknown pool; known: default",
    ),
]


@pytest.mark.parametrize(
    ("written", "key", "right"),
    [
        ({"protectd_fraction": 1}, "protectd_fraction", "did you mean 'protected_fraction'?"),
        ({"protected_fraction": float("nan")}, "protected_fraction", "finite number"),
        ({"protected_fraction": float("inf")}, "protected_fraction", "finite number"),
        ({"protected_fraction": -0.5}, "protected_fraction", "finite number from 0"),
        ({"protected_fraction": "1"}, "protected_fraction", "a finite number"),
        ({"max_queue_lookback": -1}, "max_queue_lookback", "0 (no limit) or more"),
        ({"max_queue_lookback": True}, "max_queue_lookback", "a whole number"),
        ({"max_queue_lookback": 2.5}, "max_queue_lookback", "a whole number"),
        ({"lease_duration": "1d"}, "lease_duration", "write 24h"),
        ({"lease_duration": "-1s"}, "lease_duration", "above 0"),
        ({"lease_duration": 0}, "lease_duration", "above 0"),
        ({"queues": [{"name": "a", "weight": 0}]}, "queues[0].weight", "above 0"),
        ({"queues": [{"name": "a", "weight": -1}]}, "queues[0].weight", "above 0"),
        ({"queues": [{"name": "a", "weight": float("nan")}]}, "queues[0].weight", "finite"),
        ({"queues": [{"name": "a", "weight": float("inf")}]}, "queues[0].weight", "finite"),
        ({"queues": [{"name": "a"}, {"name": "a"}]}, "queues[1].name", "keep one"),
        ({"queues": [{"name": ""}]}, "queues[0].name", "write a name"),
        ({"queues": [{"weight": 1}]}, "queues[0]", "'name' is missing"),
        ({"queues": [{"name": "a", "version": 3}]}, "queues[0].version", "unknown key"),
        ({"queues": {"name": "a"}}, "queues", "write a list"),
        ({"queues": ["a"]}, "queues[0]", "a table with keys such as name"),
        ({"resources": []}, "resources", "at least one"),
        ({"resources": [{"name": "cpu"}, {"name": "cpu"}]}, "resources[1].name", "keep one"),
        ({"resources": [{"name": "cpu", "unit": "0"}]}, "resources[0].unit", "above 0"),
        ({"resources": [{"name": "cpu", "unit": "x"}]}, "resources[0].unit", "a quantity"),
        ({"pools": []}, "pools", "at least one"),
        ({"pools": [{"name": "a"}, {"name": "a"}]}, "pools[1].name", "keep one"),
        ({"priority_classes": []}, "priority_classes", "at least one"),
        (
            {"priority_classes": [{"name": "default"}, {"name": "default"}]},
            "priority_classes[1].name",
            "keep one",
        ),
        (
            {"priority_classes": [{"name": "default", "priority": -1}]},
            "priority_classes[0].priority",
            "write 0 to",
        ),
        ({"default_priority_class": "defualt"}, "default_priority_class", "mean 'default'?"),
        ({"fairness_resources": {"cpus": 1}}, "fairness_resources.cpus", "mean 'cpu'?"),
        ({"fairness_resources": {"cpu": -1}}, "fairness_resources.cpu", "number from 0"),
        ({"fairness_resources": {"cpu": 0}}, "fairness_resources", "above 0"),
        (
            {"pools": [{"name": "a", "fairness_resources": {}}]},
            "pools[0].fairness_resources",
            "leave it out or name a resource",
        ),
        (
            {"priority_classes": [{"name": "default", "priority": 2**31}]},
            "priority_classes[0].priority",
            "write 0 to 2147483647",
        ),
        (
            {"pools": [{"name": "a", "fairness_resources": {"gpu": 1}}]},
            "pools[0].fairness_resources.gpu",
            "did you mean 'cpu'?",
        ),
        *LIMITS,
        ({"reschedule": {"bach": {}}}, "reschedule.bach", "did you mean 'batch'?"),
        ({"reschedule": {"system": {}}}, "reschedule.system", "leave it out"),
        ({"reschedule": {"batch": {"delay": "-3s"}}}, "reschedule.batch.delay", "0 or more"),
        ({"reschedule": {"batch": {"attempts": -1}}}, "reschedule.batch.attempts", "0 or more"),
        ({"reschedule": {"batch": {"dealy": "3s"}}}, "reschedule.batch.dealy", "mean 'delay'?"),
        (
            {"reschedule": {"batch": {"delay_function": "Constant"}}},
            "reschedule.batch.delay_function",
            "did you mean 'constant'?",
        ),
        ({"reschedule_min_delay": "-1s"}, "reschedule_min_delay", "write 0 for none"),
        ({"reschedule_dialect": "exactly"}, "reschedule_dialect", "did you mean 'exact'?"),
        ({"restart": {"bach": {}}}, "restart.bach", "did you mean 'batch'?"),
        ({"restart": {"batch": {"delay": -1}}}, "restart.batch.delay", "0 or more"),
        ({"restart": {"batch": {"mode": "dealy"}}}, "restart.batch", "did you mean 'delay'?"),
        ({"restart": {"system": {"interval": "1s"}}}, "restart.system", "write at least 5s"),
    ],
)
def test_a_fault_names_file_key_and_what_would_be_right(
    written: dict[str, object], key: str, right: str
) -> None:
    """Each bad value is one line that starts with the file and the path of the key."""
    with pytest.raises(ConfigError) as caught:
        config_from(written, source="pyresched.toml")
    message = str(caught.value)
    assert message.startswith(f"pyresched.toml: {key}: ")
    assert right in message
    assert "\n" not in message


def test_every_fault_is_named_at_once() -> None:
    """The first fault comes in full, the others by key."""
    with pytest.raises(ConfigError, match=r"\(and 2 more: polls, queues\[0\].wieght\)$"):
        config_from({"lease_duratoin": 1, "polls": [], "queues": [{"name": "a", "wieght": 1}]})


def test_a_configuration_made_in_code_is_checked_as_well() -> None:
    """The constructor raises the same error, without a file."""
    with pytest.raises(ConfigError, match=r"^max_queue_lookback: "):
        SchedulingConfig(max_queue_lookback=-1)
    with pytest.raises(ConfigError, match=r"^rate_scope: .*did you mean 'pool'\?$"):
        SchedulingConfig(rate_scope="pools")  # type: ignore[arg-type]
    odd = ResourceCondition(resource="cpu", operator=">=", value=1)  # type: ignore[arg-type]
    gpu = WellKnownNodeType(name="gpu", taints=(Taint("gpu"),), when=(odd,))
    with pytest.raises(ConfigError, match=r"^node_types\[0\].when\[0\].operator: .*write >, <, =="):
        SchedulingConfig(node_types=(gpu,))


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    """Look-ups by name raise ConfigError and suggest."""
    config = SchedulingConfig()
    with pytest.raises(ConfigError, match="'best-effort'"):
        config.priority_class("besteffort")
    with pytest.raises(ConfigError, match="'default'"):
        config.pool("defualt")
    with pytest.raises(ConfigError, match="'batch'"):
        config.policy_for("Batch")


def test_written_retry_fields_replace_those_of_the_type() -> None:
    """What a job type's block does not write stays the default of the type."""
    config = config_from({"reschedule": {"batch": {"attempts": 3, "delay": "10s"}}})
    policy = config.policy_for("batch")
    assert policy is not None
    assert (policy.attempts, policy.delay) == (3, 10 * 10**9)
    assert policy.interval == 24 * 3600 * 10**9
    assert config.policy_for("service") == ReschedulePolicy.default("service")


def test_written_restart_fields_replace_those_of_the_type() -> None:
    """For job files; what is not written stays the default of the type."""
    config = config_from({"restart": {"batch": {"attempts": 0}, "system": {"mode": "delay"}}})
    default = RestartPolicy.default("batch")
    assert config.restart_for("batch") == structs.replace(default, attempts=0)
    assert config.restart_for("system").mode == "delay"
    assert config.restart_for("sysbatch") == default
    with pytest.raises(InputError, match="did you mean 'batch'"):
        config.restart_for("bach")


def test_a_pool_may_count_resources_its_own_way() -> None:
    """Multipliers of a pool replace all of the general ones."""
    config = config_from({"pools": [{"name": "a", "fairness_resources": {"memory": 2}}]})
    assert config.multipliers("a") == (0.0, 2.0)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"pools": ("a",)}, "pools[0] is a PoolConfig, got 'a'"),
        (
            {"node_types": (WellKnownNodeType(name="g", taints=("gpu",)),)},
            "node_types[0].taints[0] is a Taint, got 'gpu'",
        ),
        (
            {"priority_classes": (PriorityClass(name="default", away=("gpu",)),)},
            "priority_classes[0].away[0] is an AwayEntry, got 'gpu'",
        ),
        (
            {
                "priority_classes": (
                    PriorityClass(
                        name="default",
                        away=(AwayEntry(priority=0, node_types=({"name": "gpu"},)),),
                    ),
                )
            },
            "priority_classes[0].away[0].node_types[0] is an AwayNodeType, got {'name': 'gpu'}",
        ),
    ],
)
def test_a_part_of_another_kind_is_named(fields, told) -> None:
    """A name in place of what has that name, at whatever depth."""
    with pytest.raises(TypeError) as refused:
        SchedulingConfig(**fields)
    assert str(refused.value) == told
