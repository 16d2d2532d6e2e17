"""Away from home: which taints a class adds for which jobs, at which priority."""

import pytest

from pyresched.config import SchedulingConfig, config_from
from pyresched.model import (
    Constraint,
    Operator,
    Requirements,
    ResourceVector,
    TaintEffect,
    Toleration,
)
from pyresched.scheduling.away import away_variants

CONFIG = {
    "resources": [{"name": "cpu", "unit": "1m"}, {"name": "gpu"}],
    "node_types": [
        {"name": "gpu", "taints": [{"key": "gpu", "value": "*"}]},
        {"name": "big", "taints": [{"key": "size", "value": "big", "effect": "NoExecute"}]},
    ],
}


def configured(*entries: dict[str, object]) -> SchedulingConfig:
    """A configuration whose one class has these away entries."""
    spare = {"name": "default", "priority": 9, "preemptible": True, "away": list(entries)}
    return config_from(CONFIG | {"priority_classes": [spare]})


def variants(config: SchedulingConfig, requirements: Requirements):
    """Those of the one class."""
    return away_variants(requirements, config.priority_class("default"), config)


def when(resource: str, operator: str, value: str | int) -> dict[str, object]:
    """A condition as a file writes it."""
    return {"resource": resource, "operator": operator, "value": value}


def tolerated(config: SchedulingConfig, cpu: int, gpu: int = 0) -> list[tuple[list[str], int]]:
    """Keys of the taints tolerated in each variant of a job of so many thousandths and gpus."""
    found = variants(config, Requirements(ResourceVector([cpu, gpu])))
    return [([each.key for each in way.tolerations], at) for way, at in found]


def test_entries_are_tried_in_order_each_at_its_priority() -> None:
    """A variant for each entry."""
    config = configured({"priority": 3, "node_type": "big"}, {"priority": 5, "node_type": "gpu"})
    assert tolerated(config, 1) == [(["size"], 3), (["gpu"], 5)]


def test_all_the_rest_of_the_requirements_stays() -> None:
    """A variant tolerates more and asks for the same; a taint of `*` is tolerated at any value."""
    asked = Requirements(
        ResourceVector([7, 1]),
        "default",
        selector={"zone": "a"},
        tolerations=(Toleration("own", "x"),),
        constraints=(Constraint("arch", Operator.IN, ("arm",)),),
        scope="s",
        nodes=("n1",),
    )
    ((way, _),) = variants(configured({"priority": 3, "node_type": "gpu"}), asked)
    for field in ("resources", "priority_class", "selector", "constraints", "affinity"):
        assert getattr(way, field) == getattr(asked, field)
    for field in ("preferences", "spread", "scope", "nodes"):
        assert getattr(way, field) == getattr(asked, field)
    effect = TaintEffect.NO_SCHEDULE
    added = Toleration("gpu", effect=effect, exists=True)
    assert set(way.tolerations) == {Toleration("own", "x"), added}


@pytest.mark.parametrize(
    ("conditions", "holds"),
    [
        ([when("cpu", ">", "1")], True),
        ([when("cpu", ">", "1500m")], False),
        ([when("cpu", "<", 2)], True),
        ([when("cpu", "==", "1.5")], True),
        ([when("cpu", ">", 1), when("gpu", "==", 0)], True),
        ([when("cpu", ">", 1), when("gpu", ">", 0)], False),
        ([when("gpu", ">", 0), when("cpu", ">", 1)], False),
    ],
)
@pytest.mark.parametrize("place", ["entry", "type"])
def test_every_condition_counts(conditions, holds, place) -> None:
    """Not only the first, wherever they are written; quantities are compared, not steps."""
    spare: dict[str, object] = {"name": "big"}
    top = dict(CONFIG)
    if place == "entry":
        spare["when"] = conditions
    else:
        top["node_types"] = [
            CONFIG["node_types"][0],
            CONFIG["node_types"][1] | {"when": conditions},
        ]
    classes = [
        {
            "name": "default",
            "priority": 9,
            "preemptible": True,
            "away": [{"priority": 0, "node_types": [spare]}],
        }
    ]
    config = config_from(top | {"priority_classes": classes})
    assert tolerated(config, 1500) == ([(["size"], 0)] if holds else [])


def test_node_types_of_an_entry_add_up() -> None:
    """Those whose conditions hold, beside the one named alone."""
    config = configured(
        {
            "priority": 1,
            "node_type": "big",
            "node_types": [{"name": "gpu", "when": [when("gpu", ">", 0)]}],
        }
    )
    assert tolerated(config, 1, gpu=1) == [(["gpu", "size"], 1)]
    assert tolerated(config, 1) == [(["size"], 1)]


def test_a_taint_tolerated_already_is_not_added_again() -> None:
    """So that equal requirements stay equal."""
    config = configured({"priority": 3, "node_type": "big"})
    ((once, _),) = variants(config, Requirements(ResourceVector([1, 0])))
    ((twice, _),) = variants(config, once)
    assert twice == once
