"""Nodes that a user describes: a file of nodes, or a shape such as `100x12`.

Ids of a series are padded with zeros, so that their order as text is their order as numbers.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from pyresched.config.reading import Fault, decode, read_mapping, refuse
from pyresched.config.schema import SchedulingConfig
from pyresched.errors import ConfigError, InputError
from pyresched.model import Node, NodeId, PoolName, ResourceVector, Rounding, Taint

__all__ = ["load_nodes", "nodes_from", "nodes_from_shape"]

_SHAPE: Final = re.compile(r"(?P<count>[0-9]{1,9})[xX](?P<cpu>[0-9]{1,9})")
_MOST_NODES: Final = 1_000_000
_FEWEST_DIGITS: Final = 4


class NodeEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One node, or `count` alike: `id` names one, `prefix` and `count` a series.

    No `pool` is the first configured one.
    """

    resources: dict[str, str | int | float]
    id: str | None = None
    prefix: str | None = None
    count: int | None = None
    pool: str = ""
    node_type: str = ""
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    max_jobs: Annotated[int, Meta(ge=0)] | None = None


class NodeFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A node file: a list of entries."""

    nodes: tuple[NodeEntry, ...]


def load_nodes(path: str | Path, config: SchedulingConfig) -> tuple[Node, ...]:
    """The nodes of a TOML, YAML or JSON file, in its order. Raises InputError."""
    return nodes_from(read_mapping(path), config, source=str(path))


def nodes_from(
    written: Mapping[str, Any], config: SchedulingConfig, *, source: str = ""
) -> tuple[Node, ...]:
    """The nodes of *written*, which has one key `nodes`. Raises InputError."""
    entries = decode(written, NodeFile, source=source).nodes
    faults: list[Fault] = []
    nodes: dict[str, Node] = {}
    for i, entry in enumerate(entries):
        path = f"nodes[{i}]"
        faults.extend(_entry_faults(entry, path, config))
        if faults:
            continue
        try:
            total = config.spec.vector(entry.resources, rounding=Rounding.DOWN)
        except InputError as bad:
            faults.append(Fault(f"{path}.resources", str(bad)))
            continue
        for resource, amount in zip(config.resources, total, strict=True):
            if resource.floating and amount:
                sentence = f"{resource.name} is floating, which no node has"
                right = "write its quantity under the pool in the configuration"
                faults.append(Fault(f"{path}.resources", f"{sentence}; {right}"))
        if len(nodes) + (entry.count or 1) > _MOST_NODES:
            faults.append(Fault(path, f"makes more than {_MOST_NODES} nodes; write fewer"))
            continue
        for node in _nodes_of(entry, total, config):
            if node.id in nodes:
                faults.append(Fault(path, f"node {node.id!r} is there twice; keep one"))
                break
            nodes[node.id] = node
    if not entries:
        faults.append(Fault("nodes", "none is left; write at least one"))
    if faults:
        raise refuse(faults, source=source)
    return tuple(nodes.values())


def nodes_from_shape(shape: str, config: SchedulingConfig) -> tuple[Node, ...]:
    """The nodes of a shape: `100x12` is n0001 to n0100 with 12 cpu each. Raises InputError."""
    match = _SHAPE.fullmatch(shape.strip())
    right = f"write NODESxCPUS from 1x1 to {_MOST_NODES}x999999999, such as 100x12"
    if match is None:
        raise InputError(f"node shape {shape[:64]!r}: {right}")
    count, cpu = int(match["count"]), int(match["cpu"])
    if not count or not cpu:
        raise InputError(f"node shape {shape!r}: {'no nodes' if not count else 'no cpu'}; {right}")
    if count > _MOST_NODES:
        raise InputError(f"node shape {shape!r}: more than {_MOST_NODES} nodes; write fewer")
    if "cpu" not in config.spec.names:
        raise InputError(
            f"node shape {shape!r}: the configuration has no resource 'cpu'; use a node file"
        )
    total = config.spec.vector({"cpu": cpu}, rounding=Rounding.DOWN)
    entry = NodeEntry(resources={}, prefix="n", count=count)
    return tuple(_nodes_of(entry, total, config))


def _nodes_of(entry: NodeEntry, total: ResourceVector, config: SchedulingConfig) -> Iterator[Node]:
    """The nodes of one entry without faults."""
    count = entry.count or 1
    digits = max(_FEWEST_DIGITS, len(str(count)))
    for number in range(1, count + 1):
        name = entry.id if entry.id is not None else f"{entry.prefix}{number:0{digits}d}"
        yield Node(
            id=NodeId(name),
            total=total,
            pool=PoolName(entry.pool) if entry.pool else config.pools[0].name,
            node_type=entry.node_type,
            labels=entry.labels,
            taints=entry.taints,
            max_jobs=entry.max_jobs,
        )


def _entry_faults(entry: NodeEntry, path: str, config: SchedulingConfig) -> Iterator[Fault]:
    if (entry.id is None) == (entry.prefix is None):
        yield Fault(path, "write id for one node, or prefix and count for several")
    elif entry.id is not None:
        if not entry.id:
            yield Fault(f"{path}.id", "is empty; write a name")
        if entry.count is not None:
            yield Fault(f"{path}.count", "goes with prefix; an id names one node")
    elif entry.count is None:
        yield Fault(path, "'count' is missing; write how many nodes the prefix names")
    if entry.count is not None and entry.count < 1:
        yield Fault(f"{path}.count", f"{entry.count} is no count; write 1 or more")
    try:
        if entry.pool:
            config.pool(entry.pool)
    except ConfigError as bad:
        yield Fault(f"{path}.pool", str(bad))
