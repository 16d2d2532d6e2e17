"""A round as a plain function over lists: the oracle of the round's property tests.

Every look-up is a scan and every order a sort over whole values, written from docs/round.md and
sharing no code with `pyresched.scheduling`, the job db or the node db.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kit.round_rows import (
    EPSILON,
    FAIR,
    FREE,
    URGENCY,
    Candidate,
    Held,
    Rows,
    Unit,
    add,
    minus,
)
from kit.round_rules import Rules, rules_of
from pyresched.config import SchedulingConfig
from pyresched.model import Job, Node, PriorityClass, Queue

__all__ = ["MOST_PASSES", "ModelResult", "PlainRound", "model_round"]

MOST_PASSES = 20
MOST_FLIPS = 4
COST = {FREE: 0, FAIR: 1, URGENCY: 2}


@dataclass
class ModelResult:
    """What the model decided, as plain values."""

    scheduled: list[tuple[str, str, int, str]] = field(default_factory=list)
    preempted: list[tuple[str, str, str, str, str]] = field(default_factory=list)
    moved: list[tuple[str, str, str, int, str, str]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    passes: int = 0
    rested: bool = True
    preemption_tokens: int = 0  # how many were used


class PlainRound(Rows):
    """The passes of one round."""

    # -- the round ------------------------------------------------------------------------

    def run(self) -> ModelResult:
        self.open = []
        for queue, lane in sorted(self.lanes.items()):
            why = ""
            if queue not in self.queues:
                why = "unknown_queue"
            elif not 0 < self.weight(queue) < math.inf:
                why = "invalid_weight"
            elif not self.nodes:
                why = "no_nodes"
            elif self.queues[queue].cordoned:
                why = "queue_cordoned"
            else:
                self.open.append(queue)
            if why:
                self.refused.update((job.id, why) for job in lane)
        result = ModelResult()
        self.passes, self.reordered = 0, False
        self.took_room: set[str] = set()  # jobs that sit where others gave way in this round
        self.flips: dict[str, int] = {}  # how often they lost such a place again
        self.last_priority: dict[str, int] = {}  # by queue: of the last placed that may give way
        while True:
            result.passes += 1
            if not self.one_pass():
                break
            if result.passes == MOST_PASSES:
                result.rested = False
                break
        return self.net(result)

    def net(self, result: ModelResult) -> ModelResult:
        """What came of all passes: who is bound now, against who was when the round began."""
        last = {job_id: i for i, job_id in enumerate(self.log_placed)}
        for job_id in sorted(last, key=lambda job_id: last[job_id]):
            held, home = self.at.get(job_id), self.home.get(job_id)
            if held is None:
                continue
            if home is None:
                result.scheduled.append((job_id, held.node_id, held.priority, held.method))
            elif held.node_id != home.node_id:
                nodes = (home.node_id, held.node_id)
                result.moved.append((job_id, *nodes, held.priority, *self.log_fallen[job_id]))
        for job_id in self.log_fallen:
            run = self.by_id[job_id].active_run
            if run is not None and job_id not in self.at:
                result.preempted.append((job_id, run.id, run.node_id, *self.log_fallen[job_id]))
        result.preemption_tokens = self.taken_by_share
        result.refused = {
            j: why for j, why in self.refused.items() if j not in self.at and j not in self.home
        }
        return result

    # -- one pass -------------------------------------------------------------------------

    def one_pass(self) -> bool:
        """Whether it must be repeated."""
        self.over = {n.id for n in self.nodes if min(self.free(n)) < 0}
        self.units = self.running_units()
        self.held = {q: self.holds(q) for q in self.part}
        self.lost = {q: [0] * self.width for q in self.part}
        self.alloc = {q: list(self.held[q]) for q in self.part}
        for unit in self.units:
            unit.waiting = (
                unit.may_go
                and unit.queue in self.part
                and self.cost(self.held[unit.queue]) > self.protected[unit.queue] + EPSILON
            )
        self.line()
        if self.passes == 0:
            self.began_with_units = any(unit.rank >= 0 for unit in self.units)
        self.passes += 1
        for unit in self.units:
            if unit.waiting:
                self.alloc[unit.queue] = minus(self.alloc[unit.queue], self.amounts(unit.jobs))
        self.failed: dict[tuple[Any, ...], str] = {}
        self.over_for: dict[str, str] = {}  # by queue, "" all: why nothing new is tried any more
        self.placed_now: set[str] = set()
        self.took = self.changed = self.went_away = self.went_home = False
        waits = {
            q: sorted((u for u in self.units if u.waiting and u.queue == q), key=self.unit_turn)
            for q in self.part
        }
        queued = {q: self.candidates(q) for q in self.part}
        self.pulled: dict[str, Candidate] = {}
        while True:
            heads = {q: head for q in self.part if (head := self.head(waits[q], queued[q], q))}
            if not heads:
                break
            q = min(heads, key=lambda q: self.order(q, heads[q]))
            self.serve(heads[q], waits[q])
        self.went_home |= self.go_home()
        return self.took or self.went_home or (self.changed and self.stirred())

    def stirred(self) -> bool:
        """Whether what was placed may let somebody take room who found none in this pass.

        By urgency, if something was placed away: in its own pass it gives way to nobody. By fair
        share, if a queue is above its share now and has runs that come back in another order
        than they were placed in: not those that this round placed one after the other.
        """
        if not self.failed:
            return False
        if self.went_away:
            return True
        if not self.began_with_units and not self.reordered:
            return False
        return any(
            self.cost(self.holds(unit.queue)) > self.protected[unit.queue] + EPSILON
            for unit in self.running_units()
            if unit.may_go and unit.queue in self.part
        )

    def running_units(self) -> list[Unit]:
        units = []
        by: dict[tuple[str, str], list[Job]] = {}
        for job in self.jobs:
            if job.id in self.at:
                key = (job.queue, f"job {job.id}" if job.gang is None else f"gang {job.gang.id}")
                by.setdefault(key, []).append(job)
        for jobs in by.values():
            unit = Unit(jobs[0].queue, jobs)
            known = [self.classes.get(j.requirements.priority_class) for j in jobs]
            if all(c is not None and c.preemptible for c in known):
                unit.may_go = all(
                    self.at[j.id].pool == self.pool and self.at[j.id].node_id in self.node
                    for j in jobs
                )
                unit.guest = all(self.at[j.id].pool != self.pool for j in jobs)
            units.append(unit)
        return units

    def run_key(self, job: Job) -> tuple[int, int, str]:
        return (self.at[job.id].leased_at, job.submitted_at, job.id)

    def unit_turn(self, unit: Unit) -> tuple[int, int, tuple[int, int, str]]:
        return (-self.priority(unit.jobs[0]), 0, max(map(self.run_key, unit.jobs)))

    def line(self) -> None:
        """Rank what may go: in the order in which it would come back if all of it were gone."""
        alloc = {q: list(a) for q, a in self.alloc.items()}
        rest: dict[str, list[Unit]] = {}
        for unit in self.units:
            if unit.may_go and unit.queue in self.part:
                alloc[unit.queue] = minus(alloc[unit.queue], self.amounts(unit.jobs))
                rest.setdefault(unit.queue, []).append(unit)
        for each in rest.values():
            each.sort(key=self.unit_turn)
        rank = 0
        while any(rest.values()):
            heads = {q: each[0] for q, each in rest.items() if each}
            q = min(heads, key=lambda q: self.order(q, heads[q], alloc))
            unit = rest[q].pop(0)
            alloc[q] = add(alloc[q], self.amounts(unit.jobs))
            unit.rank, rank = rank, rank + 1
        others = [u for u in self.units if (u.guest or u.may_go) and u.rank < 0]
        for unit in sorted(others, key=lambda u: max(map(self.run_key, u.jobs))):
            unit.rank, rank = rank, rank + 1

    def order(self, queue: str, head: Any, alloc: dict[str, list[int]] | None = None) -> Any:
        """What sorts the heads of the queues."""
        wanted = self.amounts(head.jobs)
        has = (alloc or self.alloc)[queue]
        if queue in self.rules.penalty:
            has = add(has, self.rules.penalty[queue])
        weight = self.weight(queue)
        current = self.cost(has) / weight
        proposed = self.cost(add(has, wanted)) / weight
        size = self.cost(wanted) * weight
        key = (1, proposed, 0.0)
        within = self.cost(add(has, wanted)) <= self.adjusted[queue] + EPSILON
        if self.rules.prefer_large and within:
            key = (0, current, -size)
        return (-self.priority(head.jobs[0]), key, isinstance(head, Candidate), queue)

    def head(self, waits: list[Unit], queued: list[Candidate], queue: str) -> Any:
        """Who is next of a queue; whom it passes over on the way is refused."""
        while waits and waits[0].gone:
            waits.pop(0)
        while queue not in self.pulled and queued:
            for new in [each for each in queued if not self.has_home(each)]:
                is_placed = new.jobs[0].id in self.at  # before, in this round
                if not is_placed and not self.passed_over(new):
                    break
                queued.remove(new)
            head = queued.pop(0) if queued else None
            if head is not None and not (self.has_home(head) and self.passed_over(head)):
                self.pulled[queue] = head
        other = self.pulled.get(queue)
        if not waits or other is None:
            return waits[0] if waits else other
        before = self.priority(waits[0].jobs[0]) >= other.class_.priority
        return waits[0] if before else other

    def passed_over(self, head: Candidate) -> bool:
        """Whether it finds no room, or may not look for it."""
        why = self.hopeless(head) or self.remembered(head)
        if why is not None and self.has_home(head) and self.home_is_free(head.jobs):
            return False
        if why is None and not self.has_home(head):
            why = self.over_for.get("") or self.over_for.get(head.queue)
        if why is not None:
            self.refuse(head, why)
        return why is not None

    def hopeless(self, head: Candidate) -> str | None:
        """Why no open node could hold a member even if it were empty: it takes no turn."""
        for job in head.jobs:
            variants = [()] if self.rules.home else []
            if self.rules.away:
                variants += [more for _, more in self.rules.away_of(job)]
            if not any(
                node.takes_new_runs
                and self.matches(node, job.requirements, more)
                and self.within(self.wants(job), self.room(node))
                for node in self.nodes
                for more in variants
            ):
                return self.why_not(job, self.nodes)
        return None

    def remembered(self, head: Candidate) -> str | None:
        """Why it finds no room, if the like of it has been tried in this pass."""
        alone = (head.signature[0][:1], None)
        alike = len(set(head.signature[0])) == 1 and not head.signature[1]
        return self.failed.get(head.signature) or (self.failed.get(alone) if alike else None)

    def refuse(self, head: Candidate, why: str) -> None:
        self.refused.update((job.id, why) for job in head.jobs)

    def has_home(self, head: Candidate) -> bool:
        return all(job.id in self.home for job in head.jobs)

    def serve(self, head: Any, waits: list[Unit]) -> None:
        """The turn of *head*."""
        if isinstance(head, Unit):
            waits.pop(0)
            self.alloc[head.queue] = add(self.alloc[head.queue], self.amounts(head.jobs))
            head.waiting = False
            return
        del self.pulled[head.queue]
        if self.has_home(head) and self.back_home(head.jobs):
            self.settle(head.jobs)
            self.went_home = True
            return
        why = self.remembered(head) or ""
        if not why and not self.has_home(head) and (self.over_for.keys() & {"", head.queue}):
            self.refuse(head, self.over_for.get("") or self.over_for[head.queue])
            return
        if not why and not self.has_home(head):
            limit, ends = self.limited(head)
            if limit:
                self.refuse(head, limit)
                if ends != "gang":
                    self.over_for["" if ends == "round" else head.queue] = limit
                return
            self.tried.append(head.queue)
        if not why:
            why = self.place(head)
        if why and self.may_take(head.jobs[0]):
            self.failed[head.signature] = why
        if why:
            self.refuse(head, why)

    def settle(self, jobs: list[Job]) -> None:
        self.alloc[jobs[0].queue] = add(self.alloc[jobs[0].queue], self.amounts(jobs))
        self.placed_now.update(job.id for job in jobs)
        self.log_placed.extend(job.id for job in jobs)
        self.changed = True

    def home_is_free(self, jobs: list[Job]) -> bool:
        if not self.back_home(jobs):
            return False
        for job in jobs:
            self.unbind(job)
        return True

    def back_home(self, jobs: list[Job]) -> bool:
        """Bind each where the round found it, if there is free room for all."""
        for i, job in enumerate(jobs):
            home = self.home[job.id]
            node = self.node.get(home.node_id)
            if node is not None and not self.within(self.wants(job), self.free(node)):
                for mate in jobs[:i]:
                    self.unbind(mate)
                return False
            self.bind(job, home)
        self.took_room.difference_update(job.id for job in jobs)
        return True

    def go_home(self) -> bool:
        """Who could be at home by now goes there, who ran first first.

        Asked of those that were moved, and of those that lost their node and that no queue here
        tries again.
        """
        away = []
        for jobs in self.units_at_home():
            if jobs[0].id not in self.at:
                if not (jobs[0].queue in self.part and self.is_here(jobs[0])):
                    away.append(jobs)
            elif any(self.at[j.id].node_id != self.home[j.id].node_id for j in jobs):
                away.append(jobs)
        went = False
        for jobs in sorted(away, key=lambda jobs: max(map(self.home_key, jobs))):
            if any(
                job.id in self.at and self.at[job.id].priority > self.home[job.id].priority
                for job in jobs
            ):
                continue  # at home it would be easier to send off than where it is
            was = [self.unbind(job) for job in jobs if job.id in self.at]
            if self.back_home(jobs):
                went = True
                continue
            for job, held in zip(jobs, was, strict=False):
                self.bind(job, held)
        return went

    def units_at_home(self) -> list[list[Job]]:
        by: dict[tuple[str, str], list[Job]] = {}
        for job in self.jobs:
            if job.id in self.home:
                key = (job.queue, f"job {job.id}" if job.gang is None else f"gang {job.gang.id}")
                by.setdefault(key, []).append(job)
        return list(by.values())

    def home_key(self, job: Job) -> tuple[int, int, str]:
        return (self.home[job.id].leased_at, job.submitted_at, job.id)

    # -- placing --------------------------------------------------------------------------

    def place(self, head: Candidate) -> str:
        """Why it found no room, or nothing when it is placed."""
        sets = self.node_sets(head)
        avoid = _avoid(head.jobs)
        best: tuple[Any, int] | None = None
        reason, most = "no_matching_node", -1
        for i, nodes in enumerate(sets):
            trial = self.attempt(head, avoid, nodes)
            if isinstance(trial, tuple):
                count, why = trial
                if count > most:
                    reason, most = why, count
                continue
            cost = (sum(COST[each[3]] for each in trial), sum(len(each[4]) for each in trial))
            if best is None or cost < best[0]:
                best = (cost, i)
            self.take_back(trial)
            if cost[0] == 0:
                break
        if best is None:
            return reason
        trial = self.attempt(head, avoid, sets[best[1]])
        assert isinstance(trial, list)
        self.took |= any(each[4] for each in trial)
        for unit, *_ in self.undo:
            for job in unit.jobs:
                self.flips[job.id] = self.flips.get(job.id, 0) + (job.id in self.took_room)
                self.took_room.discard(job.id)
        if self.undo:
            self.took_room.update(job.id for job in head.jobs)
        self.went_away |= any(each[5] for each in trial)
        for job, *_ in trial:
            last = self.last_priority.get(job.queue)
            if not head.class_.preemptible:
                # What was placed before it and may give way comes back after it.
                self.reordered |= last is not None
            else:
                self.reordered |= last not in {None, job.priority}
                self.last_priority[job.queue] = job.priority
        self.settle(head.jobs)
        return ""

    def attempt(
        self, head: Candidate, avoid: Mapping[str, int], nodes: list[Node]
    ) -> list[tuple[Job, str, int, str, list[Unit], bool]] | tuple[int, str]:
        """Bind every member, with victims; or leave all as it was and say how far it came."""
        done: list[tuple[Job, str, int, str, list[Unit], bool]] = []
        self.undo: list[tuple[Unit, dict[str, Held], str, dict[str, tuple[str, str]]]] = []
        self.mates = {job.id for job in head.jobs}
        for job in head.jobs:
            found = self.find(job, head.class_, avoid, nodes)
            if found is None:
                why = self.why_not(job, nodes)
                self.take_back(done)
                if done and why == "insufficient_resources":
                    why = "gang_does_not_fit"
                return len(done), why
            node, priority, how, is_away, victims = found
            for unit in victims:
                self.fall(unit, node.id, job.id, how)
            method = "away" if is_away else how
            held = Held(node.id, self.now, priority, self.pool, method)
            home = self.home.get(job.id)
            # Who finds itself where it was has not been touched.
            self.bind(job, home if home is not None and home.node_id == node.id else held)
            done.append((job, node.id, priority, how, victims, is_away))
        return done

    def take_back(self, done: list[Any]) -> None:
        for job, *_ in done:
            self.unbind(job)
        for unit, where, how, before in reversed(self.undo):
            unit.gone = False
            self.taken_by_share -= len(unit.jobs) if how == FAIR else 0
            for job in unit.jobs:
                self.bind(job, where[job.id])
                del self.log_fallen[job.id]
                if job.id in before:
                    self.log_fallen[job.id] = before[job.id]
            if unit.queue in self.part:
                amounts = self.amounts(unit.jobs) if not unit.guest else [0] * self.width
                self.lost[unit.queue] = minus(self.lost[unit.queue], amounts)
                if not unit.waiting:
                    self.alloc[unit.queue] = add(self.alloc[unit.queue], amounts)
        self.undo = []

    def fall(self, unit: Unit, node_id: str, for_job: str, how: str) -> None:
        unit.gone = True
        where = {job.id: self.unbind(job) for job in unit.jobs}
        before = {j.id: self.log_fallen[j.id] for j in unit.jobs if j.id in self.log_fallen}
        self.undo.append((unit, where, how, before))
        self.taken_by_share += len(unit.jobs) if how == FAIR else 0
        for job in sorted(unit.jobs, key=lambda j: j.id):
            cause = how if where[job.id].node_id == node_id else "gang"
            if where[job.id].pool != self.pool:
                cause = "guest"
            self.log_fallen.pop(job.id, None)
            self.log_fallen[job.id] = (for_job, cause)
        if unit.queue in self.part and not unit.guest:
            amounts = self.amounts(unit.jobs)
            self.lost[unit.queue] = add(self.lost[unit.queue], amounts)
            if not unit.waiting:
                self.alloc[unit.queue] = minus(self.alloc[unit.queue], amounts)

    def find(
        self, job: Job, class_: PriorityClass, avoid: Mapping[str, int], nodes: list[Node]
    ) -> tuple[Node, int, str, bool, list[Unit]] | None:
        entries = [(class_.priority, (), False)] if self.rules.home else []
        if self.rules.gangs_away if job.gang is not None else self.rules.away:
            entries += [(*each, True) for each in self.rules.away_of(job)]
        for priority, more, is_away in entries:
            open_ = [n for n in nodes if self.takes(n) and self.matches(n, job.requirements, more)]
            node = self.best(job, more, avoid, [(n, self.free(n)) for n in open_])
            if node is not None:
                return node, priority, FREE, is_away, []
            if self.rules.free_only or not self.may_take(job):
                continue
            if self.rules.fair_share and self.taken_by_share + 1 <= self.rules.preemption_tokens:
                cleared = self.fair_share(job, priority, avoid, open_)
                if cleared is not None:
                    return cleared[0], priority, FAIR, is_away, cleared[1]
            cleared = None
            if self.rules.urgency:
                cleared = self.urgency(job, priority, more, avoid, open_)
            if cleared is not None:
                return cleared[0], priority, URGENCY, is_away, cleared[1]
        return None

    def may_take(self, job: Job) -> bool:
        """Whether others may give way to it: who took room twice and lost it again waits."""
        return self.flips.get(job.id, 0) < MOST_FLIPS

    def best(
        self, job: Job, more: Any, avoid: Mapping[str, int], rooms: list[tuple[Node, list[int]]]
    ) -> Node | None:
        fits = [
            (avoid.get(n.id, 0), self.liked(n, job.requirements, more), room, n.id, n)
            for n, room in rooms
            if self.within(self.wants(job), room)
        ]
        return (
            min(fits, key=lambda each: (*each[:2], each[2][: self.width], each[3]))[4]
            if fits
            else None
        )

    def on(self, unit: Unit, node_id: str) -> list[int]:
        return self.sum(j for j in unit.jobs if self.at[j.id].node_id == node_id)

    def rp(self, unit: Unit) -> int:
        return max(self.at[j.id].priority for j in unit.jobs)

    def above(self, queue: str, taken: Iterable[Unit]) -> bool:
        held = minus(self.held[queue], self.lost[queue])
        for unit in taken:
            if unit.queue == queue:
                held = minus(held, self.amounts(unit.jobs))
        return self.cost(held) > self.protected[queue] + EPSILON

    def fair_share(
        self, job: Job, priority: int, avoid: Mapping[str, int], nodes: list[Node]
    ) -> tuple[Node, list[Unit]] | None:
        for rank in sorted({avoid.get(n.id, 0) for n in nodes}):
            among = {n.id: n for n in nodes if avoid.get(n.id, 0) == rank}
            found = self.walk(job, priority, among)
            if found is not None:
                return found
        return None

    def walk(
        self, job: Job, priority: int, among: Mapping[str, Node]
    ) -> tuple[Node, list[Unit]] | None:
        """Add up what waits, the last in line first, until it fits on a node."""
        taken: dict[str, list[Unit]] = {}
        waiting = [u for u in self.units if u.waiting and not u.gone]
        for unit in sorted(waiting, key=lambda u: -u.rank):
            if self.rp(unit) > priority:
                continue
            fits = []
            for node_id in sorted({self.at[j.id].node_id for j in unit.jobs}):
                if node_id not in among:
                    continue
                here = taken.setdefault(node_id, [])
                if not self.above(unit.queue, here):
                    continue
                here.append(unit)
                if self.would_fit(job, among[node_id], here):
                    victims = self.spare(job, among[node_id], here)
                    fits.append((len(victims), node_id, victims))
            if fits:
                _, node_id, victims = min(fits, key=lambda e: e[:2])
                return among[node_id], victims
        return None

    def would_fit(self, job: Job, node: Node, units: Iterable[Unit]) -> bool:
        room = self.free(node)
        for unit in units:
            room = add(room, self.on(unit, node.id))
        return self.within(self.wants(job), room)

    def spare(self, job: Job, node: Node, units: list[Unit]) -> list[Unit]:
        for unit in sorted(units, key=lambda u: u.rank):
            rest = [u for u in units if u is not unit]
            if self.would_fit(job, node, rest):
                units = rest
        return sorted(units, key=lambda u: -u.rank)

    def urgency(
        self, job: Job, priority: int, more: Any, avoid: Mapping[str, int], nodes: list[Node]
    ) -> tuple[Node, list[Unit]] | None:
        for level in self.levels:
            if level > priority:
                break
            rooms, offered = [], {}
            for node in nodes:
                room = self.free(node)
                offered[node.id] = []
                for unit in self.units:
                    if (
                        not unit.gone
                        and (unit.guest or (unit.may_go and self.rp(unit) < level))
                        and any(self.at[j.id].node_id == node.id for j in unit.jobs)
                    ):
                        offered[node.id].append(unit)
                        room = add(room, self.on(unit, node.id))
                rooms.append((node, room))
            node = self.best(job, more, avoid, rooms)
            if node is None:
                continue
            taken: list[Unit] = []
            for unit in sorted(offered[node.id], key=lambda u: -u.rank):
                taken.append(unit)
                if self.would_fit(job, node, taken):
                    return node, self.spare(job, node, taken)
            raise AssertionError("it fits when all have left")
        return None


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


def model_round(  # noqa: PLR0917  # as `run_round`
    jobs: Iterable[Job],
    nodes: Iterable[Node],
    queues: Mapping[str, Queue],
    pool: str,
    config: SchedulingConfig,
    rules: Rules | None = None,
    now: int = 0,
) -> ModelResult:
    """What a round over *jobs* and *nodes* must decide."""
    rules = rules or rules_of(config, pool, queues)
    jobs, nodes = list(jobs), list(nodes)
    result = PlainRound(jobs, nodes, queues, pool, config, rules, now).run()
    if not result.rested:
        again = replace(rules, free_only=True)
        result = PlainRound(jobs, nodes, queues, pool, config, again, now).run()
        result.rested, result.passes = False, 1
    return result
