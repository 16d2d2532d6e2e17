"""A round as a plain function over lists: the oracle of the round's property tests.

Every look-up is a scan and every order a sort over whole values, written from docs/round.md and
sharing no code with `pyresched.scheduling`, the job db or the node db.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyresched.config import SchedulingConfig
from pyresched.model import Job, Node, PriorityClass, Queue, Requirements, TaintEffect

__all__ = ["EPSILON", "ModelResult", "ModelShare", "model_round", "model_shares"]

EPSILON = 1e-9


@dataclass
class ModelResult:
    """What the model decided, as plain values."""

    scheduled: list[tuple[str, str, int, str]] = field(default_factory=list)
    preempted: list[tuple[str, str, str, str, str]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


@dataclass
class Unit:
    """What gives way whole: a run, or all the runs of a gang."""

    queue: str
    jobs: list[Job]

    @property
    def key(self) -> tuple[int, int, str]:
        return min((_run(job).leased_at, job.submitted_at, job.id) for job in self.jobs)

    @property
    def id(self) -> str:
        return min(job.id for job in self.jobs)

    def on(self, node_id: str) -> list[Job]:
        return [job for job in self.jobs if _run(job).node_id == node_id]


@dataclass
class Candidate:
    """A job, or the members of a gang that go together."""

    jobs: list[Job]
    class_: PriorityClass

    @property
    def queue(self) -> str:
        return self.jobs[0].queue

    @property
    def signature(self) -> tuple[Any, ...]:
        """Candidates with one signature fit or fail alike."""
        shapes = sorted(repr(job.requirements) for job in self.jobs)
        gang = self.jobs[0].gang
        return (tuple(shapes), "" if gang is None else gang.uniformity)

    @property
    def lone_signature(self) -> tuple[Any, ...] | None:
        """That of one of several alike that may go anywhere: without room for one, none for all."""
        shapes, uniformity = self.signature
        return (shapes[:1], "") if len(set(shapes)) == 1 and not uniformity else None


def _run(job: Job) -> Any:
    run = job.active_run
    assert run is not None
    return run


def _amounts(jobs: Iterable[Job], width: int) -> list[int]:
    total = [0] * width
    for job in jobs:
        if len(job.requirements.resources) != width or job.requirements.resources.has_negative:
            continue
        for i, amount in enumerate(job.requirements.resources):
            total[i] += amount
    return total


def _water_level(weights: list[float], demands: list[float]) -> list[float]:
    """What each gets when 1.0 is shared by weight and nobody gets more than its demand."""
    got = [0.0] * len(weights)
    open_ = [i for i in range(len(weights)) if demands[i] > 0]
    left = 1.0
    while open_:
        whole = sum(weights[i] for i in open_)
        full = [i for i in open_ if demands[i] <= left * weights[i] / whole]
        if not full:
            for i in open_:
                got[i] = left * weights[i] / whole
            break
        for i in full:
            got[i] = demands[i]
            left -= demands[i]
        open_ = [i for i in open_ if i not in full]
    return got


class _Round:
    def __init__(
        self,
        jobs: Iterable[Job],
        nodes: Iterable[Node],
        queues: Mapping[str, Queue],
        pool: str,
        config: SchedulingConfig,
    ) -> None:
        self.config = config
        self.queues = queues
        self.pool = pool
        self.width = len(config.resources)
        self.multipliers = config.multipliers(pool)
        jobs = list(jobs)
        self.jobs = jobs
        self.nodes = sorted((n for n in nodes if n.pool == pool), key=lambda n: n.id)
        there = [n for n in self.nodes if n.lost_at is None]
        self.total = [sum(n.total[i] for n in there) for i in range(self.width)]
        self.classes = {each.name: each for each in config.priority_classes}
        self.running = [j for j in jobs if j.active_run is not None and _run(j).pool == pool]
        self.at = {j.id: _run(j).node_id for j in jobs if j.active_run is not None}
        self.by_id = {j.id: j for j in jobs}
        self.over = {n.id for n in self.nodes if min(self.free(n)) < 0}
        self.lanes: dict[str, list[Job]] = {}
        for job in sorted(
            (j for j in jobs if j.state.name == "QUEUED" and pool in j.pools),
            key=lambda j: (-self._priority(j), j.priority, j.submitted_at, j.id),
        ):
            self.lanes.setdefault(job.queue, []).append(job)
        self.allocated = {
            q: _amounts((j for j in self.running if j.queue == q), self.width)
            for q in {*queues, *self.lanes, *(j.queue for j in self.running)}
        }
        self.held = {q: list(amounts) for q, amounts in self.allocated.items()}
        self.protected = self._protected()
        self.result = ModelResult()
        self.placed: dict[str, tuple[str, str]] = {}
        self.victims: list[tuple[Unit, str, str]] = []  # unit, job it fell to, for which job
        self.failed: dict[tuple[Any, ...], tuple[int, str]] = {}
        self.epoch = 0

    def _priority(self, job: Job) -> int:
        known = self.classes.get(job.requirements.priority_class)
        return 0 if known is None else known.priority

    # -- shares ---------------------------------------------------------------------------

    def cost(self, amounts: Iterable[int]) -> float:
        shares = [
            amount / total * multiplier
            for amount, total, multiplier in zip(amounts, self.total, self.multipliers, strict=True)
            if total > 0
        ]
        return max([0.0, *shares])

    def _protected(self) -> dict[str, float]:
        parts = sorted(
            q
            for q, queue in self.queues.items()
            if 0 < queue.weight < math.inf and (self.lanes.get(q) or any(self.allocated[q]))
        )
        weights = [self.queues[q].weight for q in parts]
        demands = []
        for q in parts:
            waiting = [] if self.queues[q].cordoned else self.lanes.get(q, [])
            amounts = _amounts(waiting, self.width)
            demand = [a + b for a, b in zip(amounts, self.allocated[q], strict=True)]
            demands.append(self.cost(demand) if any(self.total) else 1.0)
        adjusted = _water_level(weights, demands)
        return {
            q: max(adjusted[i], weights[i] / sum(weights)) * self.config.protected_fraction
            for i, q in enumerate(parts)
        }

    # -- nodes ----------------------------------------------------------------------------

    def free(self, node: Node) -> list[int]:
        used = _amounts(
            (self.by_id[j] for j, node_id in self.at.items() if node_id == node.id), self.width
        )
        return [a - b for a, b in zip(node.total, used, strict=True)]

    @staticmethod
    def matches(node: Node, requirements: Requirements) -> bool:
        if any(node.labels.get(key) != value for key, value in requirements.selector):
            return False
        return all(
            any(t.tolerates(taint) for t in requirements.tolerations)
            for taint in node.taints
            if taint.effect is not TaintEffect.PREFER_NO_SCHEDULE
        )

    def takes(self, node: Node) -> bool:
        """Whether anything new may go there; what held too much at first is closed."""
        return node.takes_new_runs and node.id not in self.over

    @staticmethod
    def prefers(node: Node, requirements: Requirements) -> bool:
        return all(
            any(t.tolerates(taint) for t in requirements.tolerations) for taint in node.taints
        )

    @staticmethod
    def within(requirements: Requirements, amounts: Iterable[int]) -> bool:
        return all(w <= h for w, h in zip(requirements.resources, amounts, strict=True))

    def find(
        self, requirements: Requirements, avoid: Mapping[str, int], nodes: list[Node]
    ) -> Node | None:
        fits = [
            (
                avoid.get(node.id, 0),
                not self.prefers(node, requirements),
                self.free(node),
                node.id,
                node,
            )
            for node in nodes
            if self.takes(node)
            and self.matches(node, requirements)
            and self.within(requirements, self.free(node))
        ]
        return min(fits, key=lambda each: each[:4])[4] if fits else None

    def why_not(self, requirements: Requirements, nodes: list[Node]) -> str:
        fitting = [n for n in nodes if self.matches(n, requirements)]
        if not fitting:
            return "no_matching_node"
        if not any(self.within(requirements, n.total) for n in fitting):
            return "exceeds_every_node"
        if not any(self.takes(n) for n in fitting):
            return "nodes_closed"
        return "insufficient_resources"

    # -- candidates -----------------------------------------------------------------------

    def candidates(self, queue: str) -> list[Candidate | tuple[list[Job], str]]:
        """The queue's candidates, each at the place of its last job; or jobs and why not."""
        lane = self.lanes.get(queue, [])
        limit = self.config.max_queue_lookback or len(lane)
        seen, out = lane[:limit], []
        for job in seen:
            class_ = self.classes.get(job.requirements.priority_class)
            if job.gang is None:
                if class_ is None:
                    out.append(([job], "unknown_priority_class"))
                else:
                    out.append(Candidate([job], class_))
                continue
            mates = [j for j in lane if j.gang is not None and j.gang.id == job.gang.id]
            if job is not [m for m in mates if m in seen][-1]:
                continue
            fault = self._gang_fault(mates, [m for m in mates if m in seen])
            if fault:
                out.append((([m for m in mates if m in seen]), fault))
            elif class_ is None:
                out.append((mates, "unknown_priority_class"))
            else:
                order = sorted(
                    enumerate(mates),
                    key=lambda at: (
                        -self.cost(at[1].requirements.resources),
                        [-a for a in at[1].requirements.resources],
                        at[0],
                    ),
                )
                out.append(Candidate([m for _, m in order], class_))
        if lane[limit:]:
            out.append((lane[limit:], "past_lookback"))
        return out

    def _gang_fault(self, mates: list[Job], seen: list[Job]) -> str:
        first = mates[0]
        assert first.gang is not None
        everyone = (
            mates
            if len(mates) == first.gang.cardinality
            else [
                j
                for j in self.jobs
                if j.queue == first.queue and j.gang is not None and j.gang.id == first.gang.id
            ]
        )
        for mate in everyone:
            if (
                mate.gang != first.gang
                or mate.requirements.priority_class != first.requirements.priority_class
                or mate.pools != first.pools
            ):
                return "gang_malformed"
        if len(everyone) > first.gang.cardinality:
            return "gang_malformed"
        needed = first.gang.cardinality - sum(j.state.terminal for j in everyone)
        if len(mates) < needed:
            return "gang_incomplete"
        return "past_lookback" if len(seen) < len(mates) else ""

    # -- the walk -------------------------------------------------------------------------

    def run(self) -> ModelResult:
        open_queues = []
        for queue in sorted(self.lanes):
            lane = [job.id for job in self.lanes[queue]]
            if queue not in self.queues:
                self.result.refused.update(dict.fromkeys(lane, "unknown_queue"))
            elif not 0 < self.queues[queue].weight < math.inf:
                self.result.refused.update(dict.fromkeys(lane, "invalid_weight"))
            elif not self.nodes:
                self.result.refused.update(dict.fromkeys(lane, "no_nodes"))
            elif self.queues[queue].cordoned:
                self.result.refused.update(dict.fromkeys(lane, "queue_cordoned"))
            else:
                open_queues.append(queue)
        everything = {queue: self.candidates(queue) for queue in open_queues}
        while True:
            epoch = self.epoch
            self._pass(everything)
            if self.epoch == epoch:
                break
        self._take_back([unit for unit, _, _ in self.victims])
        for unit, fallen, for_job in self.victims:
            for job in sorted(unit.jobs, key=lambda j: j.id):
                reason = "fair_share" if _run(job).node_id == fallen else "gang"
                self.result.preempted.append(
                    (job.id, _run(job).id, _run(job).node_id, for_job, reason)
                )
        return self.result

    def _pass(self, everything: Mapping[str, list[Any]]) -> None:
        waiting = {queue: list(each) for queue, each in everything.items()}
        heads: dict[str, Candidate] = {}
        for queue, rest in waiting.items():
            self._pull(queue, rest, heads)
        while heads:
            queue = min(heads, key=lambda q: self._turn(q, heads[q]))
            self._try(heads.pop(queue))
            self._pull(queue, waiting[queue], heads)

    def _turn(self, queue: str, head: Candidate) -> tuple[int, float, str]:
        wanted = _amounts(head.jobs, self.width)
        proposed = [a + b for a, b in zip(self.allocated[queue], wanted, strict=True)]
        weight = self.queues[queue].weight
        return (-head.class_.priority, self.cost(proposed) / weight, queue)

    def _pull(self, queue: str, waiting: list[Any], heads: dict[str, Candidate]) -> None:
        while waiting:
            head = waiting.pop(0)
            if isinstance(head, tuple):
                self.result.refused.update(dict.fromkeys((j.id for j in head[0]), head[1]))
                continue
            if head.jobs[0].id in self.placed:
                continue
            failed = [self.failed.get(each) for each in (head.lone_signature, head.signature)]
            reasons = [each[1] for each in failed if each is not None and each[0] == self.epoch]
            if reasons:
                self.result.refused.update(dict.fromkeys((j.id for j in head.jobs), reasons[0]))
                continue
            heads[queue] = head
            return

    def _node_sets(self, head: Candidate) -> list[list[Node]]:
        gang = head.jobs[0].gang
        if gang is None or not gang.uniformity:
            return [self.nodes]
        label = gang.uniformity
        values = sorted({n.labels[label] for n in self.nodes if n.labels.get(label)})
        return [[n for n in self.nodes if n.labels.get(label) == value] for value in values]

    def _try(self, head: Candidate) -> None:
        avoid = _avoid(head.jobs)
        node_sets = self._node_sets(head)
        reason, most = "no_matching_node", -1
        for nodes in node_sets:
            placed, why, count = self._try_free(head, avoid, nodes)
            if placed:
                self._settle(head, placed)
                return
            if count > most:
                reason, most = why, count
        if not head.class_.preemptible:
            for nodes in node_sets:
                placed = self._try_preempting(head, avoid, nodes)
                if placed:
                    self._settle(head, placed)
                    self.epoch += 1
                    return
        self.failed[head.signature] = (self.epoch, reason)
        self.result.refused.update(dict.fromkeys((j.id for j in head.jobs), reason))

    def _settle(self, head: Candidate, placed: list[tuple[Job, str, str]]) -> None:
        for job, node_id, method in placed:
            self.placed[job.id] = (node_id, method)
            self.result.refused.pop(job.id, None)
            self.result.scheduled.append((job.id, node_id, head.class_.priority, method))
            queue = self.allocated[job.queue]
            for i, amount in enumerate(job.requirements.resources):
                queue[i] += amount

    def _try_free(
        self, head: Candidate, avoid: Mapping[str, int], nodes: list[Node]
    ) -> tuple[list[tuple[Job, str, str]], str, int]:
        placed: list[tuple[Job, str, str]] = []
        for job in head.jobs:
            node = self.find(job.requirements, avoid, nodes)
            if node is None:
                for mate, _, _ in placed:
                    del self.at[mate.id]
                reason = self.why_not(job.requirements, nodes)
                if placed and reason == "insufficient_resources":
                    reason = "gang_does_not_fit"
                return [], reason, len(placed)
            self.at[job.id] = node.id
            placed.append((job, node.id, "no_preemption"))
        return placed, "", len(placed)

    # -- preemption -----------------------------------------------------------------------

    def _units(self) -> list[Unit]:
        """What may give way at all, the youngest first."""
        units: dict[tuple[str, str], Unit] = {}
        gone = {job.id for unit, _, _ in self.victims for job in unit.jobs}
        for job in self.jobs:
            if job.active_run is None or job.id in gone or job.queue not in self.protected:
                continue
            key = (job.queue, f"gang {job.gang.id}" if job.gang else f"job {job.id}")
            units.setdefault(key, Unit(job.queue, [])).jobs.append(job)
        here = {node.id for node in self.nodes}
        whole = [
            unit
            for unit in units.values()
            if all(
                self._gives_way(job) and _run(job).pool == self.pool and _run(job).node_id in here
                for job in unit.jobs
            )
        ]
        return sorted(whole, key=lambda unit: unit.key, reverse=True)

    def _gives_way(self, job: Job) -> bool:
        known = self.classes.get(job.requirements.priority_class)
        return known is not None and known.preemptible

    def _above(self, queue: str, taken: Iterable[Unit]) -> bool:
        lost = _amounts((j for u in taken if u.queue == queue for j in u.jobs), self.width)
        held = [a - b for a, b in zip(self.held[queue], lost, strict=True)]
        return self.cost(held) > self.protected[queue] + EPSILON

    def _victims_on(self, node: Node, requirements: Requirements, priority: int) -> list[Unit]:
        """The fewest that must go, or none when even all of them would not do."""
        free, taken = self.free(node), []

        def fits(units: list[Unit]) -> bool:
            freed = _amounts((j for u in units for j in u.on(node.id)), self.width)
            return self.within(requirements, [a + b for a, b in zip(free, freed, strict=True)])

        for unit in self._units():
            if not unit.on(node.id) or any(_run(j).priority > priority for j in unit.jobs):
                continue
            if not self._above(unit.queue, taken):
                continue
            taken.append(unit)
            if fits(taken):
                for spared in sorted(taken, key=lambda u: u.key):
                    rest = [u for u in taken if u is not spared]
                    if fits(rest):
                        taken = rest
                return taken
        return []

    def _try_preempting(
        self, head: Candidate, avoid: Mapping[str, int], nodes: list[Node]
    ) -> list[tuple[Job, str, str]]:
        before = (dict(self.at), {q: list(a) for q, a in self.held.items()}, list(self.victims))
        allocated = {q: list(a) for q, a in self.allocated.items()}
        placed: list[tuple[Job, str, str]] = []
        for job in head.jobs:
            node, method = self.find(job.requirements, avoid, nodes), "no_preemption"
            if node is None:
                best = None
                for each in nodes:
                    if not (self.takes(each) and self.matches(each, job.requirements)):
                        continue
                    units = self._victims_on(each, job.requirements, head.class_.priority)
                    if units:
                        oldest = min(unit.key for unit in units)
                        rank = avoid.get(each.id, 0)
                        if best is None or (rank, _Later(oldest), len(units), each.id) < best[0]:
                            best = ((rank, _Later(oldest), len(units), each.id), each, units)
                if best is None:
                    self.at, self.held, self.victims = before
                    self.allocated = allocated
                    return []
                _, node, units = best
                method = "fair_share"
                for unit in units:
                    self._fall(unit, node.id, job.id)
            self.at[job.id] = node.id
            placed.append((job, node.id, method))
        self._take_back([u for u, _, _ in self.victims[len(before[2]) :]])
        return placed

    def _fall(self, unit: Unit, node_id: str, for_job: str) -> None:
        self.victims.append((unit, node_id, for_job))
        for job in unit.jobs:
            del self.at[job.id]
            for i, amount in enumerate(job.requirements.resources):
                self.held[job.queue][i] -= amount
                self.allocated[job.queue][i] -= amount

    def _take_back(self, units: list[Unit]) -> None:
        """Victims whose room is still there keep it, the oldest first."""
        by_node = {node.id: node for node in self.nodes}
        for unit in sorted(units, key=lambda u: u.key):
            held = dict(self.at)
            for job in unit.jobs:
                node = by_node[_run(job).node_id]
                if not self.within(job.requirements, self.free(node)):
                    self.at = held
                    break
                self.at[job.id] = node.id
            else:
                self.victims = [each for each in self.victims if each[0] is not unit]
                for job in unit.jobs:
                    for i, amount in enumerate(job.requirements.resources):
                        self.held[job.queue][i] += amount
                        self.allocated[job.queue][i] += amount


class _Later:
    """Orders keys the other way round."""

    def __init__(self, key: tuple[int, int, str]) -> None:
        self.key = key

    def __lt__(self, other: "_Later") -> bool:
        return self.key > other.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Later) and self.key == other.key

    __hash__ = None  # type: ignore[assignment]


def _avoid(jobs: Iterable[Job]) -> dict[str, int]:
    ranks: dict[str, int] = {}
    for job in jobs:
        seen = [(run.node_id, run.outcome) for run in job.runs[-1:]]
        known = {run.id: run.outcome for run in job.runs}
        events = job.tracker.events if job.tracker else ()
        seen.extend((e.previous_node, known.get(e.previous_run, "unknown")) for e in events)
        for node_id, outcome in seen:
            failed = outcome == "unknown" or (outcome is not None and outcome.value == "failed")
            ranks[node_id] = max(ranks.get(node_id, 0), 2 if failed else 1)
    return ranks


def model_round(
    jobs: Iterable[Job],
    nodes: Iterable[Node],
    queues: Mapping[str, Queue],
    pool: str,
    config: SchedulingConfig,
) -> ModelResult:
    """What a round over *jobs* and *nodes* must decide."""
    return _Round(jobs, nodes, queues, pool, config).run()


@dataclass
class ModelShare:
    """What a queue of a round held at first, and up to which share it loses nothing."""

    held: list[int]
    protected: float
    cost: Callable[[Iterable[int]], float]


def model_shares(
    jobs: Iterable[Job],
    nodes: Iterable[Node],
    queues: Mapping[str, Queue],
    pool: str,
    config: SchedulingConfig,
) -> dict[str, ModelShare]:
    """The protected share of each queue that takes part in a round."""
    asked = _Round(jobs, nodes, queues, pool, config)
    return {
        queue: ModelShare(list(asked.held[queue]), share + EPSILON, asked.cost)
        for queue, share in asked.protected.items()
    }
