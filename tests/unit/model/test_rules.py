"""Rules of groups: what is wrong with them, whoever made them."""

import pytest
from msgspec import structs

from pyresched.durations import INT64_MAX, NANOS
from pyresched.model import DisconnectRule, GroupRules, MigrateRule, UpdateRule, rule_faults
from pyresched.reschedule import RestartPolicy

FINE = GroupRules(
    restart=RestartPolicy(attempts=2, interval="1m", delay="15s"),
    disconnect=DisconnectRule(lost_after=1),
    migrate=MigrateRule(),
    update=UpdateRule(),
)


@pytest.mark.parametrize(
    "rules",
    [
        None,
        GroupRules(),
        FINE,
        GroupRules(count=0, version=INT64_MAX, kill_timeout=0),
        GroupRules(disconnect=DisconnectRule(stop_on_client_after=0)),
        GroupRules(update=UpdateRule(progress_deadline=0)),
        GroupRules(update=UpdateRule(progress_deadline=2, min_healthy_time=1)),
        GroupRules(migrate=MigrateRule(min_healthy_time=0)),
    ],
)
def test_what_can_be_has_no_fault(rules: GroupRules | None) -> None:
    """No rules at all, defaults, and the ends of ranges."""
    assert list(rule_faults(rules)) == []


@pytest.mark.parametrize(
    ("fields", "path", "sentence"),
    [
        ({"count": -1}, "count", "-1 is not 0 or more; write a whole number, ns for times"),
        ({"version": 1.5}, "version", "1.5 is not 0 or more"),
        ({"kill_timeout": "5s"}, "kill_timeout", "'5s' is not 0 or more"),
        ({"kill_timeout": INT64_MAX + 1}, "kill_timeout", "is not 0 or more"),
        ({"count": True}, "count", "True is not 0 or more"),
        ({"restart": "often"}, "restart", "'often' is no RestartPolicy; give one, or None"),
        ({"disconnect": 1}, "disconnect", "1 is no DisconnectRule"),
        ({"restart": RestartPolicy(attempts=1.5)}, "restart.attempts", "1.5 is not 0 or more"),
        ({"restart": RestartPolicy(mode="x")}, "restart", "mode 'x' is unknown"),
        ({"disconnect": DisconnectRule(lost_after=-1)}, "disconnect.lost_after", "-1 is not"),
        (
            {"disconnect": DisconnectRule(stop_on_client_after=-1)},
            "disconnect.stop_on_client_after",
            "-1 is not",
        ),
        (
            {"disconnect": DisconnectRule(lost_after=1, stop_on_client_after=1)},
            "disconnect",
            "exclude each other; write one",
        ),
        (
            {"disconnect": DisconnectRule(lost_after=1, stop_on_client_after=0)},
            "disconnect",
            "exclude each other; write one",
        ),
        ({"disconnect": DisconnectRule(reconcile="")}, "disconnect.reconcile", "known: best_score"),
        ({"migrate": MigrateRule(max_parallel=0)}, "migrate.max_parallel", "write 1 or more"),
        ({"migrate": MigrateRule(max_parallel=-1)}, "migrate.max_parallel", "-1 is not"),
        ({"migrate": MigrateRule(min_healthy_time=-1)}, "migrate.min_healthy_time", "-1 is not"),
        ({"update": UpdateRule(min_healthy_time=-1)}, "update.min_healthy_time", "-1 is not"),
        (
            {"update": UpdateRule(progress_deadline=NANOS, min_healthy_time=NANOS)},
            "update.progress_deadline",
            "1s ends before a run is healthy, after 1s; write more",
        ),
    ],
)
def test_a_fault_names_its_field_and_what_would_be_right(
    fields: dict[str, object], path: str, sentence: str
) -> None:
    """The first of them, of rules that are fine but for *fields*."""
    found = list(rule_faults(structs.replace(FINE, **fields)))
    assert found[0][0] == path
    assert sentence in found[0][1]


def test_what_is_no_rules_is_told() -> None:
    """Nobody looked when the job was made."""
    assert list(rule_faults({"count": 1})) == [
        ("", "{'count': 1} is no GroupRules; give one, or None")
    ]
