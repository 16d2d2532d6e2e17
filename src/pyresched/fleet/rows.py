"""Rows of nodes as commands name and change them; what the parts of `fleet` share."""

from collections.abc import Iterable, Mapping

from msgspec import structs

from pyresched.errors import UnknownNode
from pyresched.model import Node, NodeId

__all__ = ["but", "each_of"]


def each_of(node_ids: Iterable[str], known: Mapping[NodeId, Node]) -> dict[NodeId, Node]:
    """The node of each id, once each, in the order given. Raises UnknownNode."""
    found: dict[NodeId, Node] = {}
    for id in map(NodeId, node_ids):
        if id not in known:
            raise UnknownNode(id)
        found[id] = known[id]
    return found


def but(node: Node, **fields: object) -> Node:
    """*node* with other *fields*."""
    return structs.replace(node, **fields)
