"""Which node a request may use, and how much it likes it: asked of one pair at a time.

The oracle of `pyresched.nodedb.matching`, written from the contract: no masks, no columns. What
one condition says of one value is `Constraint.accepts`, which has tables of facts of its own.
"""

from pyresched.model import Constraint, Node, Requirements, TaintEffect

__all__ = ["liking", "may_use", "score"]


def may_use(node: Node, asked: Requirements) -> bool:
    """Whether *asked* may go to *node* at all, whether it takes anything new or not."""
    if asked.nodes and node.id not in asked.nodes:
        return False
    if any(node.labels.get(label) != value for label, value in asked.selector):
        return False
    if _untolerated(node, asked, hard=True):
        return False
    if asked.affinity and not any(len(t) > 0 and _all_meet(node, t) for t in asked.affinity):
        return False
    return _all_meet(node, asked.constraints)


def score(node: Node, asked: Requirements) -> int:
    """The sum of the weights of the preferences that hold."""
    return sum(
        each.weight
        for each in asked.preferences
        if each.constraints and _all_meet(node, each.constraints)
    )


def liking(node: Node, asked: Requirements) -> tuple[bool, int]:
    """What orders the nodes that may be used, least first: taints to be avoided, then score."""
    return _untolerated(node, asked, hard=False), -score(node, asked)


def _all_meet(node: Node, conditions: tuple[Constraint, ...]) -> bool:
    return all(each.accepts(node.labels.get(each.label)) for each in conditions)


def _untolerated(node: Node, asked: Requirements, *, hard: bool) -> bool:
    return any(
        (taint.effect is not TaintEffect.PREFER_NO_SCHEDULE) == hard
        and not any(each.tolerates(taint) for each in asked.tolerations)
        for taint in node.taints
    )
