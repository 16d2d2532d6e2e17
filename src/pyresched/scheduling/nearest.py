"""How far a job is from each node once a round is over: what keeps it off, what it lacks there.

Relies on a fork on which the round's decisions are made true. For people who ask about one job,
so it goes over the nodes one by one; a round never does.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct

from pyresched.model import (
    Exclusion,
    Intake,
    Job,
    Node,
    ReasonCode,
    Requirements,
    RoundResult,
    TaintEffect,
    UnschedulableReason,
)
from pyresched.nodedb import EVICTED, NodeDb, NodeFork
from pyresched.scheduling.inputs import RoundInputs
from pyresched.scheduling.remedies import PLACES, asking

__all__ = ["Outlook", "Vicinity"]

_CLOSED: Final = {
    Intake.CORDONED: ReasonCode.NODE_CORDONED,
    Intake.DRAINING: ReasonCode.NODE_DRAINING,
}


class Vicinity(Struct, frozen=True):
    """One node as a job finds it: `faults` keep it off whatever is free, `lacks` is what is not.

    `lacks` counts by resource, in steps, and places under "jobs"; `farness` orders nodes, the
    nearest first: fewest faults, short of the fewest, of the smallest part, then by id.
    """

    node: Node
    faults: tuple[UnschedulableReason, ...]
    lacks: Mapping[str, int]
    farness: tuple[int, int, float, str]


class Outlook:
    """The nodes of a pool after a round, as those see them for whom nothing was found.

    *members* are a job alone or all of a gang that wait here. Of a gang, as many as find room
    are bound, the rest, `left`, want a node together.
    """

    def __init__(
        self, inputs: RoundInputs, nodes: NodeDb, result: RoundResult, members: Sequence[Job]
    ) -> None:
        self.inputs = inputs
        self._fork = _after(inputs, nodes.fork(inputs.pool), result)
        self._value: tuple[str, str] | None = None  # of the label that a gang must share
        self.left = tuple(self._settled(members))
        self.asked: Requirements = (self.left or tuple(members))[0].requirements

    @cached_property
    def wanted(self) -> dict[str, int]:
        """What `left` ask of nodes together, by resource."""
        spec = self.inputs.config.spec
        on_nodes = self.inputs.config.on_nodes
        total = spec.sum(on_nodes(job.requirements.resources) for job in self.left)
        return dict(zip(spec.names, total, strict=True))

    @cached_property
    def nodes(self) -> tuple[Vicinity, ...]:
        """Every node of the pool, the nearest first."""
        every = (self._vicinity(node) for node in self._fork.nodes)
        return tuple(sorted(every, key=lambda each: each.farness))

    @property
    def nearest(self) -> Vicinity | None:
        """The node that is nearest, or None where there is no node."""
        return self.nodes[0] if self.nodes else None

    def free(self, node_id: str) -> dict[str, int]:
        """What a node has left by resource once the round is over, in steps."""
        names = self.inputs.config.spec.names
        return dict(zip(names, self._fork.allocatable(node_id, EVICTED), strict=True))

    def excluded(self, priority: int) -> tuple[Exclusion, ...]:
        """Why not which nodes, each counted once under its first reason; not those with room."""
        asked = self._on_nodes(self.asked)
        every = self._fork.not_found(asked, priority).excluded
        if not self._fork.find(asked, priority):
            return every
        # What is in nobody's way has no reason: it is counted with the closed ones.
        room = sum(
            bool(self._fork.find(asked, priority, only=(node.id,))) for node in self._fork.nodes
        )
        closed = ReasonCode.NODES_CLOSED
        told = [
            each if each.reason.code is not closed else Exclusion(each.reason, each.nodes - room)
            for each in every
        ]
        return tuple(sorted((each for each in told if each.nodes), key=lambda each: each.order))

    def holders(self, node_id: str) -> list[Job]:
        """The jobs that ran on a node before the round and still do, who should end first first.

        The least urgent first, the youngest of them first, then by id.
        """
        found = self.inputs.snapshot.get_many(self._fork.bound(node_id))
        running = [job for job in found if job is not None and job.node_id == node_id]
        return sorted(running, key=_staying)

    # --- inside -----------------------------------------------------------------------------

    def _settled(self, members: Sequence[Job]) -> Iterator[Job]:
        """Bind what finds room, the largest first; the others."""
        gang = members[0].gang
        if gang is None or len(members) == 1:
            yield from members
            return
        ordered = sorted(members, key=_largest)
        if gang.uniformity:
            values = [value for value in self._fork.label_values(gang.uniformity) if value]
            counts = {value: self._count(ordered, gang.uniformity, value) for value in values}
            best = max(values, key=lambda value: counts[value], default="")
            self._value = (gang.uniformity, best)
        yield from self._place(ordered)

    def _count(self, members: Sequence[Job], label: str, value: str) -> int:
        """How many of *members* find room on the nodes with *value*."""
        self._value = (label, value)
        with self._fork.attempt():
            return len(members) - len(self._place(members))

    def _place(self, members: Sequence[Job]) -> list[Job]:
        """Those of *members* that find no room; the others are bound."""
        only = None
        if self._value is not None:
            label, value = self._value
            only = [node.id for node in self._fork.nodes if node.labels.get(label) == value]
        left = []
        for job in members:
            asked = self._on_nodes(job.requirements)
            found = self._fork.find(asked, EVICTED, only=only)
            if found:
                with self._fork.attempt() as attempt:
                    attempt.bind_as(job.id, asked, found.node_id, 0, preemptible=False)
                    attempt.keep()
            else:
                left.append(job)
        return left

    def _on_nodes(self, asked: Requirements) -> Requirements:
        """*asked* without what belongs to the pool."""
        config = self.inputs.config
        return asking(asked, resources=config.on_nodes(asked.resources))

    def _vicinity(self, node: Node) -> Vicinity:
        faults = tuple(_faults(self.asked, node))
        if self._value is not None:
            faults = (*faults, *_mismatch(node, *self._value))
        lacks = self._lacks(node)
        part = max((lacks[name] / max(self._at(name), 1) for name in lacks), default=0.0)
        return Vicinity(node, faults, lacks, (len(faults), len(lacks), part, node.id))

    def _at(self, name: str) -> int:
        return self.wanted.get(name, len(self.left))

    def _lacks(self, node: Node) -> dict[str, int]:
        free = self._fork.allocatable(node.id, EVICTED)
        resources = self.inputs.config.resources
        # A node that holds more than it has takes nothing until that is gone.
        lacks = {
            resource.name: self.wanted[resource.name] - amount
            for resource, amount in zip(resources, free, strict=True)
            if not resource.floating and self.wanted[resource.name] > amount
        }
        if node.max_jobs is not None:
            places = len(self._fork.bound(node.id)) + len(self.left) - node.max_jobs
            if places > 0:
                lacks[PLACES] = places
        return lacks


def _after(inputs: RoundInputs, fork: NodeFork, result: RoundResult) -> NodeFork:
    """*fork* once what *result* says is true."""
    here = {node.id for node in fork.nodes}
    with fork.attempt() as attempt:
        attempt.unbind_many(each.job_id for each in result.preempted)
        attempt.unbind_many(each.job_id for each in result.moved)
        placed = [(each.job_id, each.node_id) for each in result.scheduled]
        placed += [(each.job_id, each.node_id) for each in result.moved]
        jobs = inputs.snapshot.get_many([job_id for job_id, _ in placed])
        for job, (_, node_id) in zip(jobs, placed, strict=True):
            if job is not None and node_id in here:
                attempt.bind_as(job.id, job.requirements, node_id, 0, preemptible=False)
        attempt.keep()
    return fork


def _largest(job: Job) -> tuple[object, ...]:
    return ([-amount for amount in job.requirements.resources], job.submitted_at, job.id)


def _staying(job: Job) -> tuple[int, int, int, str]:
    run = job.runs[-1]
    return (run.priority, -run.leased_at, -job.submitted_at, job.id)


def _faults(asked: Requirements, node: Node) -> Iterator[UnschedulableReason]:
    """Everything that keeps *asked* off *node*, whatever is free there."""
    if asked.nodes and node.id not in asked.nodes:
        yield UnschedulableReason(ReasonCode.NODE_NOT_NAMED)
    if node.intake in _CLOSED:
        yield UnschedulableReason(_CLOSED[node.intake])
    elif node.lost_at is not None:
        yield UnschedulableReason(ReasonCode.NODE_LOST)
    elif node.disconnected_at is not None:
        yield UnschedulableReason(ReasonCode.NODE_DISCONNECTED)
    for taint in node.taints:
        if taint.effect is not TaintEffect.PREFER_NO_SCHEDULE and not any(
            each.tolerates(taint) for each in asked.tolerations
        ):
            subject = f"{taint.key}={taint.value}:{taint.effect.value}"
            yield UnschedulableReason(ReasonCode.UNTOLERATED_TAINT, subject=subject)
    for label, wanted in asked.selector:
        yield from _mismatch(node, label, wanted)
    if asked.affinity and not any(
        term and all(each.accepts(node.labels.get(each.label)) for each in term)
        for term in asked.affinity
    ):
        yield UnschedulableReason(ReasonCode.AFFINITY_NOT_MET)
    for each in asked.constraints:
        if not each.accepts(node.labels.get(each.label)):
            yield UnschedulableReason(ReasonCode.CONSTRAINT_NOT_MET, subject=str(each))


def _mismatch(node: Node, label: str, wanted: str) -> Iterator[UnschedulableReason]:
    found = node.labels.get(label)
    if found is None:
        yield UnschedulableReason(ReasonCode.LABEL_MISSING, subject=label, expected=wanted)
    elif found != wanted:
        yield UnschedulableReason(
            ReasonCode.LABEL_DIFFERS, subject=label, expected=wanted, found=found
        )
