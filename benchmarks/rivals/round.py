"""The same round in Python: a heap of queues, a sorted list of nodes, a memo of what failed.

For lone jobs without preemption, labels or a past: what `bench_round.py` compares. It is given
its jobs in order and keeps its nodes sorted between rounds, as ours does.
"""

import heapq
from collections.abc import Mapping, Sequence

from sortedcontainers import SortedList

from pyresched.config import SchedulingConfig
from pyresched.model import Job, Node, Queue

__all__ = ["PythonRound"]


class PythonRound:
    """Rounds over nodes on which *running* jobs, given with their nodes, hold room."""

    def __init__(
        self,
        nodes: Sequence[Node],
        running: Sequence[tuple[Job, str]],
        queues: Mapping[str, Queue],
        config: SchedulingConfig,
    ) -> None:
        left = {node.id: list(node.total) for node in nodes}
        self.allocated = {name: [0] * len(config.resources) for name in queues}
        for job, node_id in running:
            for i, amount in enumerate(job.requirements.resources):
                left[node_id][i] -= amount
                self.allocated[job.queue][i] += amount
        self.nodes = SortedList((*amounts, id) for id, amounts in left.items())
        self.total = [sum(amounts) for amounts in zip(*(n.total for n in nodes), strict=True)]
        self.weights = {name: queue.weight for name, queue in queues.items()}
        self.priorities = {each.name: each.priority for each in config.priority_classes}

    def __call__(self, lanes: Mapping[str, Sequence[Job]]) -> tuple[list[tuple[str, str]], dict]:
        """(job id, node id) of each placement in order, and the refused ids by shape."""
        nodes = self.nodes.copy()
        allocated = {name: list(amounts) for name, amounts in self.allocated.items()}
        placed: list[tuple[str, str]] = []
        refused: dict = {}
        heap = []
        for name in lanes:
            rest = iter(lanes[name])
            self._push(heap, name, rest, refused, allocated)
        while heap:
            _, _, name, job, rest = heapq.heappop(heap)
            wanted = job.requirements.resources.to_tuple()
            found = _best_fit(nodes, wanted)
            if found is None:
                # Another queue may have had its like at its head already.
                refused.setdefault(job.requirements, []).append(job.id)
            else:
                nodes.remove(found)
                after = [a - b for a, b in zip(found, wanted, strict=False)]
                nodes.add((*after, found[-1]))
                held = allocated[name]
                for i, amount in enumerate(wanted):
                    held[i] += amount
                placed.append((job.id, found[-1]))
            self._push(heap, name, rest, refused, allocated)
        return placed, refused

    def _push(self, heap, name, rest, refused, allocated) -> None:
        """Put the queue back with its next job that is not like one that failed."""
        for job in rest:
            alike = refused.get(job.requirements)
            if alike is not None:
                alike.append(job.id)
                continue
            cost = 0.0
            amounts = job.requirements.resources
            for held, amount, total in zip(allocated[name], amounts, self.total, strict=True):
                cost = max(cost, (held + amount) / total)
            priority = self.priorities[job.requirements.priority_class]
            heapq.heappush(heap, (-priority, cost / self.weights[name], name, job, rest))
            return


def _best_fit(nodes, wanted):
    """The first node, in the order of what is left, with room for all of *wanted*."""
    for node in nodes.irange((*wanted, "")):
        for has, want in zip(node, wanted, strict=False):
            if has < want:
                break
        else:
            return node
    return None
