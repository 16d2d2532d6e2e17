"""Job specs: what a file may say, and how a fault in it is named."""

import re
from pathlib import Path

import pytest

from pyresched.errors import ConfigError, InputError
from pyresched.model import (
    Constraint,
    JobType,
    Operator,
    Preference,
    RescheduleBlock,
    Spread,
    Toleration,
)
from pyresched.spec import GangBlock, GroupSpec, JobSpec, TaskSpec, load_spec, spec_from

GROUP = {"name": "g"}
YAML = """
name: j
type: batch
reschedule: {attempts: 3, interval: 1h}
groups:
  - name: g
    count: 2
    gang: {uniformity: rack}
    tolerations: [{key: gpu, exists: true}]
    tasks:
      - command: [sleep, "1"]
        env: {A: 1}
"""
TOML = """
name = "j"
type = "batch"
reschedule = { attempts = 3, interval = "1h" }
[[groups]]
name = "g"
count = 2
gang = { uniformity = "rack" }
tolerations = [{ key = "gpu", exists = true }]
[[groups.tasks]]
command = ["sleep", "1"]
env = { A = 1 }
"""
SPEC = JobSpec(
    name="j",
    type=JobType.BATCH,
    reschedule=RescheduleBlock(attempts=3, interval=3600 * 10**9),
    groups=(
        GroupSpec(
            name="g",
            count=2,
            gang=GangBlock(uniformity="rack"),
            tolerations=(Toleration(key="gpu", exists=True),),
            tasks=(TaskSpec(command=("sleep", "1"), env={"A": 1}),),
        ),
    ),
)


@pytest.mark.parametrize(("name", "text"), [("j.yaml", YAML), ("j.toml", TOML)])
def test_a_file_of_either_syntax_gives_the_same_model(tmp_path: Path, name: str, text: str) -> None:
    """YAML and TOML say the same thing."""
    path = tmp_path / name
    path.write_text(text)
    assert load_spec(path) == SPEC


def test_a_fault_in_a_file_names_the_file(tmp_path: Path) -> None:
    """And is an InputError, not one of the configuration."""
    path = tmp_path / "j.yaml"
    path.write_text("name: j\ngroups: [{name: g, cuont: 3}]\n")
    with pytest.raises(InputError) as caught:
        load_spec(path)
    assert str(caught.value) == f"{path}: groups[0].cuont: unknown key; did you mean 'count'?"
    assert not isinstance(caught.value, ConfigError)


@pytest.mark.parametrize(
    ("fields", "key", "right"),
    [
        ({"name": ""}, "name", "write a name"),
        ({"queue": ""}, "queue", "write a name"),
        ({"name": 3}, "name", "write text"),
        ({"type": "bacth"}, "type", "did you mean 'batch'?"),
        ({"priority": -1}, "priority", "write 0 to 4294967295"),
        ({"priority": 2**32}, "priority", "write 0 to 4294967295"),
        ({"grups": []}, "grups", "did you mean 'groups'?"),
        ({"groups": []}, "groups", "at least one"),
        ({"groups": [GROUP, GROUP]}, "groups[1].name", "rename one"),
        ({"groups": [{"name": ""}]}, "groups[0].name", "write a name"),
        ({"groups": [{}]}, "groups[0]", "'name' is missing"),
        ({"groups": [{**GROUP, "count": -1}]}, "groups[0].count", "write 0 to"),
        ({"groups": [{**GROUP, "count": 10**7}]}, "groups[0].count", "write 0 to"),
        ({"groups": [{**GROUP, "count": "3"}]}, "groups[0].count", "a whole number"),
        ({"groups": [{**GROUP, "gang": "yes"}]}, "groups[0].gang", "write true or false or"),
        (
            {"groups": [{**GROUP, "gang": {"uniform": "x"}}]},
            "groups[0].gang.uniform",
            "did you mean 'uniformity'?",
        ),
        ({"groups": [{**GROUP, "tasks": [{}]}]}, "groups[0].tasks[0]", "'command' is missing"),
        (
            {"groups": [{**GROUP, "tasks": [{"command": ""}]}]},
            "groups[0].tasks[0].command",
            "start",
        ),
        (
            {"groups": [{**GROUP, "tasks": [{"command": []}]}]},
            "groups[0].tasks[0].command",
            "start",
        ),
        (
            {"groups": [{**GROUP, "tasks": [{"command": [""]}]}]},
            "groups[0].tasks[0].command",
            "start",
        ),
        (
            {"groups": [{**GROUP, "tasks": [{"command": "a"}, {"command": "b"}]}]},
            "groups[0].tasks[1].name",
            "rename one",
        ),
        (
            {"groups": [{**GROUP, "tasks": [{"command": "a", "name": ""}]}]},
            "groups[0].tasks[0].name",
            "write a name",
        ),
        (
            {"groups": [{**GROUP, "tasks": [{"command": "a", "env": {"A=B": "c"}}]}]},
            "groups[0].tasks[0].env",
            "use letters",
        ),
        (
            {"groups": [{**GROUP, "tasks": [{"command": "a", "env": {"A": 1.5}}]}]},
            "groups[0].tasks[0].env.A",
            "write text or a whole number",
        ),
        ({"reschedule": {"delay": "1d"}}, "reschedule.delay", "write 24h"),
        ({"reschedule": {"atempts": 1}}, "reschedule.atempts", "did you mean 'attempts'?"),
        ({"type": "system", "reschedule": {}}, "reschedule", "drop the block"),
        (
            {"type": "sysbatch", "groups": [{**GROUP, "reschedule": {}}]},
            "groups[0].reschedule",
            "drop the block",
        ),
        ({"meta": {"a": 1}}, "meta.a", "write text"),
        ({"version": -1}, "version", "write 0 or more"),
        ({"type": "batch", "update": {}}, "update", "has no deployments; drop the block"),
        ({"type": "system", "groups": [{**GROUP, "update": {}}]}, "groups[0].update", "drop"),
        ({"type": "sysbatch", "migrate": {}}, "migrate", "drop the block"),
        ({"type": "batch", "groups": [{**GROUP, "migrate": {}}]}, "groups[0].migrate", "drop"),
        ({"update": {"canary": 1}}, "update.canary", "canaries, promotion and reverting are not"),
        (
            {"groups": [{**GROUP, "update": {"auto_promote": True}}]},
            "groups[0].update.auto_promote",
            "leave it out",
        ),
        ({"update": {"auto_revert": True}}, "update.auto_revert", "leave it out"),
        ({"restart": {}}, "restart", "unknown key"),
        ({"groups": [{**GROUP, "restart": {"mod": "fail"}}]}, "groups[0].restart.mod", "'mode'?"),
        (
            {"type": "system", "groups": [{**GROUP, "disconnect": {"stop_on_client_after": 1}}]},
            "groups[0].disconnect.stop_on_client_after",
            "leave it out",
        ),
        (
            {"groups": [{**GROUP, "tasks": [{"command": "a", "kill_timeout": "-1s"}]}]},
            "groups[0].tasks[0].kill_timeout",
            "-1s is negative",
        ),
    ],
)
def test_a_fault_names_its_key_and_what_would_be_right(fields, key, right) -> None:
    """One line that starts with the source and the path of the key."""
    with pytest.raises(InputError) as caught:
        spec_from({"name": "j", "groups": [GROUP], **fields}, source="j.yaml")
    message = str(caught.value)
    assert message.startswith(f"j.yaml: {key}: ")
    assert right in message
    assert "\n" not in message


@pytest.mark.parametrize("fields", [{"priority": 2**32 - 1}, {"groups": [{**GROUP, "count": 0}]},
                                    {"groups": [{**GROUP, "count": 1_000_000}]}])  # fmt: skip
def test_the_ends_of_a_range_belong_to_it(fields) -> None:
    """What an error recommends is accepted."""
    assert spec_from({"name": "j", "groups": [GROUP], **fields})


def test_what_is_left_out_has_a_default() -> None:
    """A service of one instance in the default queue."""
    spec = spec_from({"name": "j", "groups": [GROUP]})
    assert (spec.type, spec.queue, spec.priority) == (JobType.SERVICE, "default", 0)
    assert spec.groups == (GroupSpec(name="g", count=1, gang=False),)


def test_text_is_run_by_a_shell_and_a_list_is_not() -> None:
    """The two ways to write a command."""
    assert TaskSpec(command="a | b").words == ("/bin/sh", "-c", "a | b")
    assert TaskSpec(command=("a", "|", "b")).words == ("a", "|", "b")


PLACED = """
name: j
groups:
  - name: g
    constraints:
      - {label: zone, operator: In, values: [a, b]}
      - {label: "", operator: distinct_hosts}
      - {label: kernel, operator: version, values: [">= 5.4"]}
    affinity:
      - [{label: disk, operator: "==", values: [ssd]}]
      - [{label: memory, operator: Gt, values: ["64"]}]
    preferences: [{weight: -20, constraints: [{label: spot, operator: is_set}]}]
    spread: [{label: zone, weight: 70, targets: [[a, 60], [b, 40]]}]
    scope: web
    nodes: [n1, n2]
"""


def test_a_file_says_which_nodes_and_which_it_likes(tmp_path: Path) -> None:
    """The whole language, as values of the model."""
    path = tmp_path / "j.yaml"
    path.write_text(PLACED)
    (group,) = load_spec(path).groups
    assert group == GroupSpec(
        name="g",
        constraints=(
            Constraint("zone", Operator.IN, ("a", "b")),
            Constraint("", Operator.DISTINCT_HOSTS),
            Constraint("kernel", Operator.VERSION, (">= 5.4",)),
        ),
        affinity=(
            (Constraint("disk", Operator.EQUAL, ("ssd",)),),
            (Constraint("memory", Operator.GT, ("64",)),),
        ),
        preferences=(Preference(-20, (Constraint("spot", Operator.IS_SET),)),),
        spread=(Spread("zone", 70, (("a", 60), ("b", 40))),),
        scope="web",
        nodes=("n1", "n2"),
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"constraints": [{"label": "x", "operator": "Inn", "values": ["a"]}]},
            "groups[0].constraints[0].operator: 'Inn' is not one of them; did you mean 'In'?",
        ),
        (
            {"constraints": [{"label": "x", "operator": "Gt", "values": ["four"]}]},
            (
                "groups[0].constraints[0]: constraint Gt on 'x': 'four' is no 64-bit integer; "
                "write one like 4"
            ),
        ),
        (
            {"constraints": [{"label": "x", "operator": "In", "values": [1]}]},
            "groups[0].constraints[0].values[0]: 1 is not right here; write text",
        ),
        (
            {"preferences": [{"weight": 500, "constraints": []}]},
            (
                "groups[0].preferences[0]: preference: weight 500; "
                "write a whole number from -100 to 100, not 0"
            ),
        ),
        (
            {"spread": [{"label": "x", "targets": [["a", 60, 1]]}]},
            (
                "groups[0].spread[0].targets[0]: this is a list; "
                "write a list of 2: text, a whole number"
            ),
        ),
        (
            {"spread": [{"label": "x", "targets": [["a", "60"]]}]},
            "groups[0].spread[0].targets[0][1]: '60' is not right here; write a whole number",
        ),
    ],
)
def test_a_fault_of_placement_is_named_with_its_place(
    fields: dict[str, object], message: str
) -> None:
    """Which constraint of which group, and what would be right."""
    with pytest.raises(InputError) as caught:
        spec_from({"name": "j", "groups": [{**GROUP, **fields}]})
    assert str(caught.value) == message


def test_the_example_of_the_documentation_is_a_job(tmp_path: Path) -> None:
    """`docs/placement.md` shows what can be written."""
    page = (Path(__file__).parents[3] / "docs" / "placement.md").read_text()
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    path = tmp_path / "j.yaml"
    path.write_text(f"name: j\n{example}")
    (group,) = load_spec(path).groups
    assert all((group.constraints, group.affinity, group.preferences, group.spread))


def test_every_operator_is_in_the_table_of_the_documentation() -> None:
    """One that is added is documented."""
    page = (Path(__file__).parents[3] / "docs" / "placement.md").read_text()
    assert [each for each in Operator if f"`{each.value}`" not in page] == []
