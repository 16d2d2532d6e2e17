"""What the plain model of a round reads: who runs where, who waits, what each queue is due.

Every look-up is a scan over whole lists, written from docs/round.md and sharing no code with
`pyresched.scheduling`, the job db or the node db. Who goes where is `kit.round_model`.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from kit.matching import liking, may_use
from kit.round_rules import Rules
from pyresched.config import SchedulingConfig
from pyresched.model import Job, Node, PriorityClass, Queue, Requirements

__all__ = [
    "EPSILON",
    "FAIR",
    "FREE",
    "URGENCY",
    "Candidate",
    "Held",
    "Rows",
    "Unit",
    "add",
    "minus",
]

EPSILON = 1e-9
FREE, FAIR, URGENCY = "no_preemption", "fair_share", "urgency"


@dataclass(frozen=True)
class Held:
    """Where a job is bound, since when, how urgently, and for which pool."""

    node_id: str
    leased_at: int
    priority: int
    pool: str
    method: str = ""


@dataclass(eq=False)
class Unit:
    """What runs and gives way whole: a run, or all the runs of a gang."""

    queue: str
    jobs: list[Job]
    may_go: bool = False  # preemptible, and here
    guest: bool = False  # preemptible, and of another pool
    rank: int = -1  # its place in the line
    waiting: bool = False
    gone: bool = False


@dataclass(eq=False)
class Candidate:
    """What waits: a job, or the members of a gang that go together, the largest first."""

    jobs: list[Job]
    class_: PriorityClass
    key: tuple[int, int, str]

    @property
    def queue(self) -> str:
        return self.jobs[0].queue

    @property
    def signature(self) -> tuple[Any, ...]:
        """Candidates with one signature fit or fail alike."""
        gang = self.jobs[0].gang
        label = None if gang is None else gang.uniformity
        return (tuple(sorted(repr(job.requirements) for job in self.jobs)), label)


def add(a: Iterable[int], b: Iterable[int]) -> list[int]:
    """The sum, amount by amount."""
    return [x + y for x, y in zip(a, b, strict=True)]


def minus(a: Iterable[int], b: Iterable[int]) -> list[int]:
    """The difference, amount by amount."""
    return [x - y for x, y in zip(a, b, strict=True)]


def tolerant(asked: Requirements, more: tuple[Any, ...]) -> Any:
    """A request that tolerates *more*."""
    if not more:
        return asked
    parts = ("nodes", "selector", "affinity", "constraints", "preferences")
    same = {name: getattr(asked, name) for name in parts}
    return SimpleNamespace(tolerations=(*asked.tolerations, *more), **same)


def water_level(weights: list[float], demands: list[float]) -> list[float]:
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


class Rows:
    """The rows of a round as they are now, and what follows from them."""

    def __init__(  # noqa: PLR0917  # as `run_round`
        self,
        jobs: Iterable[Job],
        nodes: Iterable[Node],
        queues: Mapping[str, Queue],
        pool: str,
        config: SchedulingConfig,
        rules: Rules,
        now: int,
    ) -> None:
        self.rules, self.queues, self.pool, self.now = rules, queues, pool, now
        self.width = len(config.resources)
        self.multipliers = config.multipliers(pool)
        self.jobs = list(jobs)
        self.by_id = {job.id: job for job in self.jobs}
        self.nodes = sorted((n for n in nodes if n.pool == pool), key=lambda n: n.id)
        self.node = {n.id: n for n in self.nodes}
        there = [n for n in self.nodes if n.lost_at is None]
        self.floating = [each or 0 for each in rules.floating] or [0] * self.width
        self.total = [
            sum(n.allocatable[i] for n in there) + self.floating[i] for i in range(self.width)
        ]
        self.classes = {each.name: each for each in config.priority_classes}
        self.at: dict[str, Held] = {}
        self.used = {n.id: [0] * (self.width + 1) for n in self.nodes}
        for job in self.jobs:
            run = job.active_run
            if run is not None:
                priority = self.priority(job) if self.is_at_home(job) else run.priority
                self.bind(job, Held(run.node_id, run.leased_at, priority, run.pool))
        self.home = dict(self.at)
        self.over = {n.id for n in self.nodes if min(self.free(n)) < 0}
        self.lanes: dict[str, list[Job]] = {}
        for job in self.jobs:
            if job.state.name == "QUEUED" and pool in job.pools:
                self.lanes.setdefault(job.queue, []).append(job)
        for lane in self.lanes.values():
            lane.sort(key=self.turn)
        self.part = [
            q
            for q in sorted({*queues, *self.lanes, *(j.queue for j in self.jobs)})
            if q in queues
            and 0 < self.weight(q) < math.inf
            and (self.lanes.get(q) or any(self.holds(q)))
        ]
        self.set_shares()
        self.levels = sorted(
            {c.priority for c in config.priority_classes}
            | {away.priority for each in config.priority_classes for away in each.away}
            | {held.priority for held in self.at.values()}
        )
        self.refused: dict[str, str] = {}
        self.tried: list[str] = []  # the queue of each new unit that was tried
        self.taken_by_share = 0
        self.log_placed: list[str] = []
        self.log_fallen: dict[str, tuple[str, str]] = {}

    # -- amounts --------------------------------------------------------------------------

    def turn(self, job: Job) -> tuple[int, int, int, str]:
        return (-self.priority(job), job.priority, job.submitted_at, job.id)

    def priority(self, job: Job) -> int:
        known = self.classes.get(job.requirements.priority_class)
        return 0 if known is None else known.priority

    def is_at_home(self, job: Job) -> bool:
        """Whether it runs where its own tolerations let it: then its class says how urgently."""
        run = job.active_run
        assert run is not None
        return (
            self.rules.home
            and run.pool == self.pool
            and run.node_id in self.node
            and job.requirements.priority_class in self.classes
            and self.matches(self.node[run.node_id], job.requirements)
        )

    def wants(self, job: Job) -> list[int]:
        """What it takes of a node: its request but for floating resources, and one place."""
        asked = self.amounts([job])
        if self.rules.floating:
            asked = [a if f is None else 0 for a, f in zip(asked, self.rules.floating, strict=True)]
        return [*asked, 1]

    def sum(self, jobs: Iterable[Job]) -> list[int]:
        total = [0] * (self.width + 1)
        for job in jobs:
            total = add(total, self.wants(job))
        return total

    def amounts(self, jobs: Iterable[Job]) -> list[int]:
        """What they ask for; nothing of a request of other resources."""
        total = [0] * self.width
        for job in jobs:
            if self.is_valid(job):
                total = add(total, job.requirements.resources)
        return total

    def holds(self, queue: str) -> list[int]:
        return self.amounts(
            self.by_id[j]
            for j, h in self.at.items()
            if h.pool == self.pool and self.by_id[j].queue == queue
        )

    def cost(self, amounts: Iterable[int]) -> float:
        shares = [
            amount / total * multiplier
            for amount, total, multiplier in zip(amounts, self.total, self.multipliers, strict=True)
            if total > 0
        ]
        return max([0.0, *shares])

    def set_shares(self) -> None:
        weights = [self.weight(q) for q in self.part]
        demands = []
        for q in self.part:
            waiting = [] if self.queues[q].cordoned else self.lanes.get(q, [])
            running = [
                self.by_id[j]
                for j, h in self.at.items()
                if h.pool == self.pool and self.by_id[j].queue == q
            ]
            demand = [0] * self.width
            by_class: dict[str, list[Job]] = {}
            for job in (*waiting, *running):
                by_class.setdefault(job.requirements.priority_class, []).append(job)
            for name, jobs in by_class.items():
                limit = self.class_limit(q, name)
                demand = add(demand, map(min, self.amounts(jobs), limit))
            demands.append(self.cost(demand) if any(self.total) else 1.0)
        adjusted = water_level(weights, demands)
        self.adjusted = dict(zip(self.part, adjusted, strict=True))
        self.protected = {}
        for i, q in enumerate(self.part):
            base = max(adjusted[i], weights[i] / sum(weights))
            if self.rules.protect_uncapped:
                base = water_level(weights, [*demands[:i], math.inf, *demands[i + 1 :]])[i]
            self.protected[q] = base * self.rules.protected_fraction

    def of_total(self, fractions: tuple[float, ...]) -> list[float]:
        if not fractions:
            return [math.inf] * self.width
        return [
            t if f == 1 else f if f == math.inf else int(t * f)
            for t, f in zip(self.total, fractions, strict=True)
        ]

    def weight(self, queue: str) -> float:
        return self.rules.weights.get(queue, self.queues[queue].weight)

    def class_limit(self, queue: str, name: str) -> list[float]:
        return self.of_total(self.rules.class_fraction.get((queue, name), ()))

    def new_ones(self) -> list[Job]:
        """What is bound and was not when the round began."""
        return [self.by_id[j] for j in self.at if j not in self.home]

    def limited(self, head: Candidate) -> tuple[str, str]:
        """Why this new unit may not be tried, and how far that reaches; or nothing."""
        rules, q, size = self.rules, head.queue, len(head.jobs)
        new = self.new_ones()
        if self.exceeds(new, self.of_total(rules.round_fraction)):
            return "round_limit", "round"
        left = rules.tokens - len(new)
        own = rules.queue_tokens.get(q, math.inf) - sum(job.queue == q for job in new)
        for wrong, why, ends in (
            (left < 1, "rate_limit", "round"),
            (rules.burst < size, "gang_exceeds_burst", "gang"),
            (left < size, "gang_rate_limit", "gang"),
            (own < 1, "queue_rate_limit", "queue"),
            (rules.queue_burst < size, "gang_exceeds_queue_burst", "gang"),
            (own < size, "gang_queue_rate_limit", "gang"),
            (0 < rules.tries <= len(self.tried), "round_budget", "round"),
            (0 < rules.queue_tries <= self.tried.count(q), "queue_budget", "queue"),
        ):
            if wrong:
                return why, ends
        name = head.class_.name
        mine = [
            self.by_id[j]
            for j, held in self.at.items()
            if held.pool == self.pool
            and self.by_id[j].queue == q
            and self.by_id[j].requirements.priority_class == name
        ]
        if self.exceeds([*mine, *head.jobs], self.class_limit(q, name)):
            return "class_limit", "gang"
        if rules.floating:
            here = [self.by_id[j] for j, held in self.at.items() if held.pool == self.pool]
            most = [math.inf if each is None else each for each in rules.floating]
            asks = [
                a
                for a, f in zip(self.amounts(head.jobs), rules.floating, strict=True)
                if f is not None
            ]
            if any(asks) and self.exceeds([*here, *head.jobs], most):
                return "floating_resources", "gang"
        return "", ""

    def exceeds(self, jobs: Iterable[Job], most: Iterable[float]) -> bool:
        return any(a > b for a, b in zip(self.amounts(jobs), most, strict=True))

    # -- nodes ----------------------------------------------------------------------------

    def bind(self, job: Job, held: Held) -> None:
        self.at[job.id] = held
        if held.node_id in self.used:
            self.used[held.node_id] = add(self.used[held.node_id], self.wants(job))

    def unbind(self, job: Job) -> Held:
        held = self.at.pop(job.id)
        if held.node_id in self.used:
            self.used[held.node_id] = minus(self.used[held.node_id], self.wants(job))
        return held

    def room(self, node: Node) -> list[int]:
        return [*node.allocatable, 10**9 if node.max_jobs is None else node.max_jobs]

    def free(self, node: Node) -> list[int]:
        return minus(self.room(node), self.used[node.id])

    def takes(self, node: Node) -> bool:
        return node.takes_new_runs and node.id not in self.over

    @staticmethod
    def matches(node: Node, asked: Any, more: tuple[Any, ...] = ()) -> bool:
        return may_use(node, tolerant(asked, more))

    @staticmethod
    def liked(node: Node, asked: Any, more: tuple[Any, ...]) -> tuple[bool, int]:
        return liking(node, tolerant(asked, more))

    @staticmethod
    def within(wanted: Iterable[int], amounts: Iterable[int]) -> bool:
        return all(w <= h for w, h in zip(wanted, amounts, strict=True))

    def why_not(self, job: Job, nodes: list[Node]) -> str:
        fitting = [n for n in nodes if self.matches(n, job.requirements)]
        if not fitting:
            return "no_matching_node"
        if not any(self.within(self.wants(job), self.room(n)) for n in fitting):
            return "exceeds_every_node"
        if not any(self.takes(n) for n in fitting):
            return "nodes_closed"
        return "insufficient_resources"

    # -- candidates -----------------------------------------------------------------------

    def candidates(self, queue: str) -> list[Candidate]:
        """What is queued now, each at the place of its last job; what may not go is refused."""
        lane = self.lanes.get(queue, [])
        seen = lane[: self.rules.lookback or len(lane)]
        # Who lost its node in this round is queued again, and looked at in any case.
        back = [
            j
            for j in self.jobs
            if j.queue == queue and j.id in self.home and j.id not in self.at and self.is_here(j)
        ]
        out = []
        for jobs in self.groups(back):
            class_ = self.classes.get(jobs[0].requirements.priority_class)
            assert class_ is not None
            out.append(Candidate(self.largest_first(jobs), class_, max(map(self.turn, jobs))[1:]))
        if queue not in self.open:
            return sorted(out, key=lambda c: (-c.class_.priority, c.key))
        for job in lane:
            if not self.is_valid(job):
                self.refused[job.id] = "invalid_request" if job in seen else "past_lookback"
        for jobs in self.groups(job for job in lane if self.is_valid(job)):
            class_ = self.classes.get(jobs[0].requirements.priority_class)
            mine = [j for j in jobs if j in seen]
            fault = self.gang_fault(jobs, mine) if jobs[0].gang is not None else ""
            if not mine:
                fault = "past_lookback"
            if class_ is None and fault in {"", "past_lookback"}:
                fault = "unknown_priority_class"
            if fault:
                for job in jobs:
                    self.refused[job.id] = fault if job in mine else "past_lookback"
                continue
            assert class_ is not None
            out.append(Candidate(self.largest_first(jobs), class_, max(map(self.turn, jobs))[1:]))
        return sorted(out, key=lambda c: (-c.class_.priority, c.key))

    def is_valid(self, job: Job) -> bool:
        """Whether it asks for what this configuration has."""
        asked = job.requirements.resources
        return len(asked) == self.width and not asked.has_negative

    def is_here(self, job: Job) -> bool:
        """Whether it ran here when the round began."""
        return self.home[job.id].pool == self.pool

    @staticmethod
    def groups(jobs: Iterable[Job]) -> Iterator[list[Job]]:
        by: dict[tuple[str, str], list[Job]] = {}
        for job in jobs:
            key = ("job", job.id) if job.gang is None else ("gang", job.gang.id)
            by.setdefault(key, []).append(job)
        yield from by.values()

    def largest_first(self, jobs: list[Job]) -> list[Job]:
        jobs = sorted(jobs, key=self.turn)
        order = sorted(
            enumerate(jobs),
            key=lambda at: (
                -self.cost(at[1].requirements.resources),
                [-a for a in at[1].requirements.resources],
                at[0],
            ),
        )
        return [job for _, job in order]

    def node_sets(self, head: Candidate) -> list[list[Node]]:
        gang = head.jobs[0].gang
        if gang is None or not gang.uniformity:
            return [self.nodes]
        by: dict[str, list[Node]] = {}
        for node in self.nodes:
            value = node.labels.get(gang.uniformity)
            if value:
                by.setdefault(value, []).append(node)

        def size(nodes: list[Node]) -> float:
            amounts = [0] * self.width
            for node in nodes:
                if node.takes_new_runs:
                    amounts = add(amounts, node.allocatable)
            return self.cost(amounts)

        return [nodes for _, nodes in sorted(by.items(), key=lambda e: (-size(e[1]), e[0]))]

    def gang_fault(self, mates: list[Job], seen: list[Job]) -> str:
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
