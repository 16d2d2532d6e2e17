"""Nodes from files and shapes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyresched.config import (
    SchedulingConfig,
    config_from,
    load_nodes,
    nodes_from,
    nodes_from_shape,
)
from pyresched.errors import ConfigError, InputError
from pyresched.model import ResourceVector, Taint, TaintEffect

CONFIG = SchedulingConfig()
CPU = {"resources": {"cpu": 4}}


def test_a_shape_makes_nodes_with_cpus() -> None:
    """`100x12` is a hundred nodes with twelve cpu and nothing else."""
    nodes = nodes_from_shape("100x12", CONFIG)
    assert [node.id for node in nodes][:2] == ["n0001", "n0002"]
    assert nodes[-1].id == "n0100"
    assert len(nodes) == 100
    assert {node.total for node in nodes} == {ResourceVector([12_000, 0])}
    assert {node.pool for node in nodes} == {"default"}


@pytest.mark.parametrize(
    "shape", ["0x12", "3x0", "-1x3", "1x-3", "axb", "", "x", "100", "1x2x3", "1.5x2", "9" * 30 + "x1",
              "1000001x1", "\u0661x\u0662", "1x2\n3"],
)  # fmt: skip
def test_a_shape_that_cannot_be_says_what_would_be_right(shape: str) -> None:
    """Bad shapes are one line with an example."""
    with pytest.raises(InputError, match=r"write") as caught:
        nodes_from_shape(shape, CONFIG)
    assert "\n" not in str(caught.value)
    assert not isinstance(caught.value, ConfigError)


def test_a_shape_needs_a_resource_cpu() -> None:
    """Without one in the configuration it says so."""
    config = SchedulingConfig(resources=(CONFIG.resources[1],))
    with pytest.raises(InputError, match="no resource 'cpu'"):
        nodes_from_shape("1x1", config)


def test_a_series_of_one_is_a_series() -> None:
    """Its id is padded like any other; a node without a pool is in the first."""
    config = config_from({"pools": [{"name": "a"}, {"name": "b"}]})
    (node,) = nodes_from({"nodes": [{**CPU, "prefix": "w", "count": 1}]}, config)
    assert (node.id, node.pool) == ("w0001", "a")
    (node,) = nodes_from({"nodes": [{**CPU, "id": "x", "pool": "b"}]}, config)
    assert (node.id, node.pool) == ("x", "b")
    assert {node.pool for node in nodes_from_shape("2x1", config)} == {"a"}


@given(st.integers(1, 30_000))
def test_ids_of_a_series_sort_as_their_numbers(count: int) -> None:
    """Order as text is order as numbers, at any count."""
    ids = [node.id for node in nodes_from_shape(f"{count}x1", CONFIG)]
    assert ids == sorted(ids)
    assert len(set(ids)) == count


def test_a_file_lists_single_nodes_and_series(tmp_path: Path) -> None:
    """`id` names one node, `prefix` and `count` a series; capacity rounds down."""
    path = tmp_path / "nodes.yaml"
    path.write_text(
        """
nodes:
  - id: head
    resources: {cpu: 1500m, memory: 1.5Mi}
    labels: {zone: a}
    taints: [{key: only, value: head, effect: NoExecute}]
    node_type: small
  - prefix: w
    count: 12
    resources: {cpu: 8, memory: 16Gi}
"""
    )
    head, *workers = load_nodes(path, CONFIG)
    assert head.total == ResourceVector([1500, 1])
    assert head.labels == {"zone": "a"}
    assert head.taints == (Taint("only", "head", TaintEffect.NO_EXECUTE),)
    assert head.node_type == "small"
    assert [node.id for node in workers] == [f"w{i:04d}" for i in range(1, 13)]
    assert {worker.pool for worker in workers} == {"default"}
    assert workers[0].total == ResourceVector([8000, 16 * 1024])


@pytest.mark.parametrize(
    ("entries", "key", "right"),
    [
        ([], "nodes", "at least one"),
        ([CPU], "nodes[0]", "write id for one node, or prefix and count"),
        ([{**CPU, "id": "a", "prefix": "b"}], "nodes[0]", "write id for one node"),
        ([{**CPU, "id": ""}], "nodes[0].id", "write a name"),
        ([{**CPU, "id": "a", "count": 2}], "nodes[0].count", "an id names one node"),
        ([{**CPU, "prefix": "a"}], "nodes[0]", "'count' is missing"),
        ([{**CPU, "prefix": "a", "count": 0}], "nodes[0].count", "write 1 or more"),
        ([{**CPU, "prefix": "a", "count": -1}], "nodes[0].count", "write 1 or more"),
        ([{**CPU, "prefix": "a", "count": 10**7}], "nodes[0]", "write fewer"),
        ([{**CPU, "id": "a", "pool": "defualt"}], "nodes[0].pool", "did you mean 'default'?"),
        ([{"id": "a"}], "nodes[0]", "'resources' is missing"),
        ([{"id": "a", "resources": {"cpus": 1}}], "nodes[0].resources", "'cpu'"),
        ([{"id": "a", "resources": {"cpu": -1}}], "nodes[0].resources", "write 0 or more"),
        ([{"id": "a", "resources": {"cpu": "four"}}], "nodes[0].resources", "a quantity"),
        ([{"id": "a", "resources": {"cpu": "1e99"}}], "nodes[0].resources", "can be counted"),
        ([{**CPU, "id": "a"}, {**CPU, "id": "a"}], "nodes[1]", "keep one"),
        (
            [{**CPU, "prefix": "w", "count": 3}, {**CPU, "id": "w0002"}],
            "nodes[1]",
            "'w0002' is there twice",
        ),
        (
            [{**CPU, "id": "a", "taints": [{"key": "k", "effect": "noschedule"}]}],
            "nodes[0].taints[0].effect",
            "did you mean 'NoSchedule'?",
        ),
        ([{**CPU, "id": "a", "labels": {"x": 1}}], "nodes[0].labels.x", "write text"),
        ([{**CPU, "id": "a", "lables": {}}], "nodes[0].lables", "did you mean 'labels'?"),
    ],
)
def test_a_faulty_entry_is_named_with_what_would_be_right(
    entries: list[object], key: str, right: str
) -> None:
    """One line with the file, the path of the key and the remedy."""
    with pytest.raises(InputError) as caught:
        nodes_from({"nodes": entries}, CONFIG, source="n.yaml")
    assert str(caught.value).startswith(f"n.yaml: {key}: ")
    assert right in str(caught.value)
    assert "\n" not in str(caught.value)
