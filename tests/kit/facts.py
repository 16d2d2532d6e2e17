"""Clusters as the facts of rounds tell them: nodes of 32 cores and 256 GiB, jobs of one and 4 GiB.

A job is named after its queue and its place in it, from 0: "A0", "A1". Each round is a second
after the one before.
"""

from collections.abc import Iterable
from typing import Any

from kit.deciding import Decided, Decider
from kit.jobs import gang, job, leased, requirements
from kit.rounds import World
from pyresched.config import SchedulingConfig
from pyresched.model import Node, PriorityClass, Queue, ResourceVector

__all__ = ["CLASSES", "Cluster", "named"]

SECOND = 1_000_000_000
CLASSES = (
    PriorityClass(name="priority-0", priority=0, preemptible=True),
    PriorityClass(name="priority-1", priority=1, preemptible=True),
    PriorityClass(name="priority-2", priority=2, preemptible=True),
    PriorityClass(name="priority-2-non-preemptible", priority=2),
    PriorityClass(name="priority-3", priority=3),
)


def named(queue: str, *places: int | Iterable[int]) -> set[str]:
    """The jobs of *queue* at these places."""
    return {
        f"{queue}{i}" for each in places for i in ([each] if isinstance(each, int) else list(each))
    }


class Cluster:
    """What runs and waits, and the rounds over it."""

    def __init__(self, nodes: int = 1, *, classes: Any = CLASSES, **config: Any) -> None:
        config.setdefault("protected_fraction", 0.0)
        config.setdefault("prefer_large_jobs", True)
        self.world = World(
            SchedulingConfig(
                priority_classes=classes, default_priority_class=classes[0].name, **config
            )
        )
        self.decider = Decider()
        self._submitted: dict[str, int] = {}
        self._time = 0
        for i in range(nodes):
            self.node(f"n{i}")

    def node(self, id: str, cpu: float = 32, memory: int = 256, **fields: Any) -> None:
        """Add a node."""
        total = ResourceVector((int(cpu * 1000), memory * 1024))
        self.world.with_nodes(Node(id=id, total=total, **fields))

    def queue(self, name: str, factor: float = 1, **fields: Any) -> None:
        """Make a queue, whose weight is one over its *factor*."""
        self.world.queues[name] = Queue(name=name, weight=1 / factor, **fields)

    def submit(
        self,
        queue: str,
        count: int = 1,
        priority_class: str = "priority-0",
        *,
        cpu: float = 1,
        memory: int = 4,
        as_gang: bool = False,
        uniformity: str = "",
        on: str = "",
        pool: str = "default",
        more: tuple[int, ...] = (),
        fields: dict[str, Any] | None = None,
        **asked: Any,
    ) -> list[str]:
        """Queue *count* jobs, or let them run *on* a node; each is later than those before."""
        if queue not in self.world.queues and queue != "unknown":
            self.queue(queue)
        shape = requirements(
            int(cpu * 1000), memory * 1024, *more, priority_class=priority_class, **asked
        )
        first = self._submitted.get(queue, 0)
        self._submitted[queue] = first + count
        ids = [f"{queue}{i}" for i in range(first, first + count)]
        rows = []
        members = gang(f"{ids[0]}...", size=count, uniformity=uniformity) if as_gang else []
        for i, id in enumerate(ids):
            self._time += 1
            row = job(
                id, queue=queue, requirements=shape, submitted_at=self._time, **(fields or {})
            )
            if members:
                row = row.replace(gang=members[i].gang)
            if on:
                priority = self.world.config.priority_class(priority_class).priority
                row = leased(row, node_id=on, at=self._time, priority=priority, pool=pool)
            rows.append(row)
        self.world.with_jobs(rows)
        return ids

    def round(self) -> Decided:
        """One round, whose decisions come true."""
        self.world.now += SECOND
        decided = self.decider.decide(self.world)
        self.world.grant(decided)
        return decided

    def rest(self) -> bool:
        """Whether a round changes nothing."""
        decided = self.round()
        return not (decided.scheduled or decided.preempted or decided.moved)

    def running(self, queue: str = "") -> set[str]:
        """The jobs that run now, of one queue or of all."""
        return {
            each.id
            for each in self.world.jobs.values()
            if each.active_run is not None and queue in ("", each.queue)
        }

    def node_of(self, job_id: str) -> str | None:
        """Where a job runs."""
        return self.world.jobs[job_id].node_id

    def finish(self, *job_ids: str) -> None:
        """These jobs succeed."""
        for job_id in job_ids:
            self.world.finish(job_id)
