"""Why a node may not be used, whatever is bound where: for one node, and counted over a pool.

Both ask in the same order: named, cordoned, draining, lost, out of reach, taints, selector,
affinity, constraints. Reads a `Matching`; worked out when somebody asks, never in a search.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pyresched.model import (
    Constraint,
    Exclusion,
    Intake,
    Node,
    NodeId,
    ReasonCode,
    Requirements,
    Taint,
    UnschedulableReason,
)
from pyresched.nodedb.columns import Column
from pyresched.nodedb.matching import Asked, Matching, refused

__all__ = ["excluded", "explain"]

_CLOSED: Final = {
    Intake.CORDONED: ReasonCode.NODE_CORDONED,
    Intake.DRAINING: ReasonCode.NODE_DRAINING,
}
_MOST_TOLD: Final = 64  # values of a label that are told apart


def explain(requirements: Requirements, node: Node) -> UnschedulableReason | None:
    """The first reason why *requirements* may not use *node*; None if it is not the node's fault."""
    if requirements.nodes and node.id not in requirements.nodes:
        return UnschedulableReason(ReasonCode.NODE_NOT_NAMED)
    closed = _closed(node)
    if closed is not None:
        return UnschedulableReason(closed)
    taint = refused(node.taints, requirements.tolerations, hard=True)
    if taint is not None:
        return _untolerated(taint)
    for label, wanted in requirements.selector:
        found = node.labels.get(label)
        if found != wanted:
            return _mismatch(label, wanted, found)
    terms = requirements.affinity
    if terms and not any(term and _meets(node, term) for term in terms):
        return _not_affine(terms)
    for each in requirements.constraints:
        if not each.accepts(node.labels.get(each.label)):
            return UnschedulableReason(ReasonCode.CONSTRAINT_NOT_MET, subject=str(each))
    return None


def excluded(
    matching: Matching,
    requirements: Requirements,
    nodes: Sequence[Node],
    only: Sequence[int] | None = None,
) -> tuple[Exclusion, ...]:
    """How many of *nodes* are out for which reason: each once, most nodes first.

    *nodes* are those of *matching*, as open, cordoned or lost as they were at the search; with
    *only*, the others count as not named.
    """
    left = matching.named(node.id for node in nodes)
    counted: dict[UnschedulableReason, int] = {}
    for reason, mask in _refusals(matching, Asked.of(requirements), nodes, only):
        count = (left & mask).bit_count()
        if count:
            counted[reason] = counted.get(reason, 0) + count
            left &= ~mask
    found = [Exclusion(reason, count) for reason, count in counted.items()]
    return tuple(sorted(found, key=lambda each: each.order))


def _refusals(
    matching: Matching, asked: Asked, nodes: Sequence[Node], only: Sequence[int] | None
) -> Iterator[tuple[UnschedulableReason, int]]:
    """Each reason with the mask of the nodes that it is about, in the order of `explain`."""
    everything = matching.meeting(())
    if asked.nodes:
        yield (
            UnschedulableReason(ReasonCode.NODE_NOT_NAMED),
            everything & ~matching.named(asked.nodes),
        )
    if only is not None:
        listed = matching.named(nodes[i].id for i in only)
        yield UnschedulableReason(ReasonCode.NODE_NOT_NAMED), everything & ~listed
    closed: dict[ReasonCode, list[NodeId]] = {}
    for node in nodes:
        code = _closed(node)
        if code is not None:
            closed.setdefault(code, []).append(node.id)
    for code, ids in closed.items():
        yield UnschedulableReason(code), matching.named(ids)
    for taints, mask in matching.taints.items():
        taint = refused(taints, asked.tolerations, hard=True)
        if taint is not None:
            yield _untolerated(taint), mask
    for label, wanted in asked.selector:
        yield from _mismatches(matching.column(label), label, wanted, everything)
    if asked.affinity:
        yield _not_affine(asked.affinity), everything & ~matching.affine(asked.affinity)
    for each in asked.constraints:
        reason = UnschedulableReason(ReasonCode.CONSTRAINT_NOT_MET, subject=str(each))
        yield reason, everything & ~matching.meeting((each,))


def _mismatches(
    column: Column, label: str, wanted: str, everything: int
) -> Iterator[tuple[UnschedulableReason, int]]:
    """Each value but *wanted*; all in one when there are too many to tell."""
    yield _mismatch(label, wanted, None), column.mask_of(None)
    others = [value for value in column.values if value != wanted]
    if len(others) <= _MOST_TOLD:
        for value in others:
            yield _mismatch(label, wanted, value), column.mask_of(value)
        return
    reason = UnschedulableReason(
        ReasonCode.LABEL_DIFFERS, subject=label, expected=wanted, had=len(others)
    )
    yield reason, everything & ~column.mask_of(wanted)


def _closed(node: Node) -> ReasonCode | None:
    if node.intake in _CLOSED:
        return _CLOSED[node.intake]
    if node.lost_at is not None:
        return ReasonCode.NODE_LOST
    return None if node.in_reach else ReasonCode.NODE_DISCONNECTED


def _meets(node: Node, term: Sequence[Constraint]) -> bool:
    return all(each.accepts(node.labels.get(each.label)) for each in term)


def _untolerated(taint: Taint) -> UnschedulableReason:
    subject = f"{taint.key}={taint.value}:{taint.effect.value}"
    return UnschedulableReason(ReasonCode.UNTOLERATED_TAINT, subject=subject)


def _mismatch(label: str, wanted: str, found: str | None) -> UnschedulableReason:
    if found is None:
        return UnschedulableReason(ReasonCode.LABEL_MISSING, subject=label, expected=wanted)
    return UnschedulableReason(
        ReasonCode.LABEL_DIFFERS, subject=label, expected=wanted, found=found
    )


def _not_affine(terms: Sequence[Sequence[Constraint]]) -> UnschedulableReason:
    subject = " or ".join(" and ".join(map(str, term)) or "nothing" for term in terms)
    return UnschedulableReason(ReasonCode.AFFINITY_NOT_MET, subject=subject)
