"""The invariants that a simulation may be asked to hold after every step, and their breaches.

Relies on the checkers of job db and node db, and adds what only shows across both: no node
above its total, gangs whole.
"""

from collections import Counter
from collections.abc import Iterator
from enum import Enum

from pyresched.model import GangId, NodeId, QueueName, ResourceVector
from pyresched.scheduler import Scheduler

__all__ = ["Checks", "breaches"]


class Checks(Enum):
    """When invariants are checked."""

    NEVER = "never"
    EVERY_STEP = "every_step"


def breaches(scheduler: Scheduler) -> list[str]:
    """Each breach of an invariant in the state of *scheduler*, as a sentence."""
    return [
        *scheduler.sync.db.check(scheduler.snapshot()),
        *scheduler.nodes.check(),
        *_overfull_nodes(scheduler),
        *_split_gangs(scheduler),
    ]


def _overfull_nodes(scheduler: Scheduler) -> Iterator[str]:
    held: dict[NodeId, ResourceVector] = {}
    for job in scheduler.snapshot().leased():
        assert job.node_id is not None
        node_id = NodeId(job.node_id)
        before = held.get(node_id)
        asked = job.requirements.resources
        held[node_id] = asked if before is None else before + asked
    for node_id in sorted(held):
        node = scheduler.nodes.get(node_id)
        if node is None or node.lost_at is not None:
            yield f"node {node_id} has runs but is not there"
        elif not held[node_id].fits_in(node.total):
            yield f"node {node_id}: runs hold {held[node_id]}, it has {node.total}"


def _split_gangs(scheduler: Scheduler) -> Iterator[str]:
    running: Counter[tuple[QueueName, GangId]] = Counter()
    size: dict[tuple[QueueName, GangId], int] = {}
    for job in scheduler.snapshot().leased():
        if job.gang is not None:
            gang = (QueueName(job.queue), GangId(job.gang.id))
            running[gang] += 1
            size[gang] = job.gang.cardinality
    for queue, gang_id in sorted(running):
        count, whole = running[queue, gang_id], size[queue, gang_id]
        if count != whole:
            yield f"gang {gang_id} of queue {queue}: {count} of {whole} members run"
