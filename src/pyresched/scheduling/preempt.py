"""Which runs give way to a job that finds no free room: fair, few, young, and gangs whole.

Owns the choice of victims. Relies on the node table for room and on the walk for what queues
hold; called once for each kind of candidate that found no room. Keeps INV-R4, INV-R5, INV-R6.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Final

from pyresched._core import Job, NodeTable, RoundWalk, Run
from pyresched.fairness import DominantResourceFairness
from pyresched.model import (
    GangId,
    JobId,
    Method,
    NodeId,
    Preemption,
    PreemptionCause,
    QueueName,
    ResourceVector,
)
from pyresched.scheduling.shares import protected_shares

__all__ = ["RoomMaker", "Unit"]

# Shares are sums and quotients of doubles: a queue exactly at its share may compute as just above.
_EPSILON: Final = 1e-9
_AGE: Final = attrgetter("age")


class Unit:
    """Runs that give way together: a lone one, or all those of a gang."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self.jobs: Final = tuple(sorted(jobs, key=attrgetter("id")))
        self.queue: Final = self.jobs[0].queue
        self.priority: Final = max(run_of(job).priority for job in self.jobs)

    @cached_property
    def age(self) -> tuple[int, int, JobId]:
        """Orders units, the oldest first. A gang is as old as its oldest run."""
        return min((run_of(job).leased_at, job.submitted_at, job.id) for job in self.jobs)

    @cached_property
    def holds(self) -> ResourceVector:
        """What all its runs hold."""
        first, *others = (job.requirements.resources for job in self.jobs)
        return sum(others, start=first)

    def holds_on(self, node_id: NodeId) -> ResourceVector:
        """What its runs on one node hold; it has at least one there."""
        first, *others = (
            job.requirements.resources for job in self.jobs if run_of(job).node_id == node_id
        )
        return sum(others, start=first)


class _Victim:
    """A unit that gave way on a node to a job."""

    def __init__(self, unit: Unit, node_id: NodeId, for_job: Job) -> None:
        self.unit = unit
        self.node_id = node_id
        self.for_job = for_job


def run_of(job: Job) -> Run:
    """The active run of a job that has one."""
    run = job.active_run
    assert run is not None, f"job {job.id!r} runs nowhere"
    return run


class RoomMaker:
    """Makes room in one round, on the table of *walk*.

    A unit may be taken while its queue holds more than its protected share, counting what the
    queue held when the round began less what it lost; so no queue loses more than brings it to
    its share, and nothing that was placed in this round is ever taken. Only runs of at most
    the priority of the job that needs the room give way.
    """

    def __init__(
        self,
        walk: RoundWalk,
        fairness: DominantResourceFairness,
        *,
        protected_fraction: float,
        members_of: Callable[[QueueName, GangId], Iterable[Job]],
    ) -> None:
        self._walk = walk
        self._table: NodeTable = walk.table
        self._fairness = fairness
        self._protected_fraction = protected_fraction
        self._members_of = members_of
        self._victims: list[_Victim] = []
        self._offered: dict[JobId, Job] | None = None
        self._units: dict[JobId, Unit | None] = {}

    def __call__(
        self,
        jobs: Sequence[Job],
        priority: int,
        avoid: list[tuple[int, int]],
        only: list[int] | None,
    ) -> list[tuple[NodeId, Method]] | None:
        """Bind *jobs*, one or a gang, with runs giving way: (node, method) of each, or None.

        *avoid* are (node index, rank) pairs, *only* the node indices that may be used at all.
        """
        if self._offered is None:
            self._offer()
        if not self._offered:
            return None
        lost = len(self._victims)
        held = dict(self._held)
        mark = self._table.begin()
        placed = []
        for job in jobs:
            found = self._table.find_for(job.requirements, 0, avoid, only)
            if found is not None:
                node_id, method = found[0], Method.NO_PREEMPTION
            else:
                cleared = self._clear_a_node(job, priority, dict(avoid), only)
                if cleared is None:
                    self._table.undo(mark)
                    self._held = held
                    del self._victims[lost:]
                    return None
                node_id, method = cleared, Method.FAIR_SHARE
            self._table.bind(job.id, job.requirements, node_id, priority, False)  # noqa: FBT003
            placed.append((node_id, method))
        self._table.keep(mark)
        for victim in self._victims[lost:]:
            self._walk.lose(victim.unit.queue, victim.unit.holds)
        # A gang that gave way later may have made an earlier victim needless.
        self._spare(self._victims[lost:])
        self._offer()
        return placed

    def preemptions(self) -> tuple[Preemption, ...]:
        """Every run that gave way, in the order of the decisions, once the round is over.

        A unit whose room is still there, or there again, keeps it.
        """
        self._spare(self._victims)
        return tuple(
            Preemption(
                job.id,
                run_of(job).id,
                run_of(job).node_id,
                victim.for_job.id,
                PreemptionCause.FAIR_SHARE
                if run_of(job).node_id == victim.node_id
                else PreemptionCause.GANG,
            )
            for victim in self._victims
            for job in victim.unit.jobs
        )

    # --- what may give way ------------------------------------------------------------------

    @cached_property
    def _protected(self) -> Mapping[QueueName, float]:
        return protected_shares(self._walk.standings(), self._fairness, self._protected_fraction)

    @cached_property
    def _held(self) -> dict[QueueName, ResourceVector]:
        return {queue: held for queue, _, held, *_ in self._walk.standings()}

    def _above(self, queue: QueueName, held: ResourceVector) -> bool:
        """Whether *queue* holds more than its protected share."""
        return self._fairness.unweighted_cost(held) > self._protected[queue] + _EPSILON

    def _offer(self) -> None:
        """Look up, and tell the walk, which runs could give way from now on."""
        gone = {job.id for victim in self._victims for job in victim.unit.jobs}
        self._offered = {
            job.id: job
            for queue, held in self._held.items()
            if self._above(queue, held)
            for job in self._walk.runs_that_may_give_way(queue)
            if job.id not in gone
        }
        self._walk.offer(list(self._offered))

    def _unit_of(self, job: Job) -> Unit | None:
        """What gives way with *job*, or None if not all of it may."""
        if job.id not in self._units:
            jobs = [job]
            if job.gang is not None:
                members = self._members_of(job.queue, job.gang.id)
                jobs = [member for member in members if member.active_run is not None]
            assert self._offered is not None
            whole = all(
                member.id in self._offered and self._table.node_of(member.id) is not None
                for member in jobs
            )
            unit = Unit(jobs) if whole else None
            self._units.update((member.id, unit) for member in jobs)
        return self._units[job.id]

    # --- victims ----------------------------------------------------------------------------

    def _clear_a_node(
        self, job: Job, priority: int, ranks: Mapping[int, int], only: list[int] | None
    ) -> NodeId | None:
        """Let runs give way to *job* on one node, and return it.

        Of the nodes where that is possible: not one to be avoided if another will do, then
        that whose oldest victim is the youngest, then that with the fewest victims.
        """
        best: tuple[tuple[int, _Youngest, int, int], list[Unit]] | None = None
        for node in self._walk.reach(job.requirements, only):
            units = self._victims_on(node, job.requirements.resources, priority)
            if units:
                oldest = min(unit.age for unit in units)
                order = (ranks.get(node, 0), _Youngest(oldest), len(units), node)
                if best is None or order < best[0]:
                    best = (order, units)
        if best is None:
            return None
        (*_, node), units = best
        node_id = self._table.node_ids[node]
        for unit in units:
            for member in unit.jobs:
                self._table.unbind(member.id)
            self._held[unit.queue] -= unit.holds
            self._victims.append(_Victim(unit, node_id, job))
        return node_id

    def _victims_on(self, node: int, wanted: ResourceVector, priority: int) -> list[Unit]:
        """The units that must go for *wanted* to fit on *node*, the youngest first, or none.

        None of them could be spared.
        """
        assert self._offered is not None
        node_id = self._table.node_ids[node]
        units = {
            unit
            for job_id in self._table.bound(node)
            if job_id in self._offered
            and (unit := self._unit_of(self._offered[job_id])) is not None
            and unit.priority <= priority
        }
        room = self._table.amounts(node, 0)
        taken: list[Unit] = []
        left: dict[QueueName, ResourceVector] = {}
        for unit in sorted(units, key=_AGE, reverse=True):
            held = left.get(unit.queue, self._held[unit.queue])
            if not self._above(unit.queue, held):
                continue
            left[unit.queue] = held - unit.holds
            room += unit.holds_on(node_id)
            taken.append(unit)
            if wanted.fits_in(room):
                break
        else:
            return []
        for unit in sorted(taken, key=_AGE):
            without = room - unit.holds_on(node_id)
            if wanted.fits_in(without):
                room = without
                taken.remove(unit)
        return taken

    def _spare(self, victims: Iterable[_Victim]) -> None:
        """Take back the preemption of each whose room is free, the oldest first."""
        for victim in sorted(victims, key=attrgetter("unit.age")):
            if self._returns(victim.unit):
                self._victims.remove(victim)
                self._held[victim.unit.queue] += victim.unit.holds
                self._walk.regain(victim.unit.queue, victim.unit.holds)

    def _returns(self, unit: Unit) -> bool:
        """Bind every run of *unit* where it was, if there is room for all."""
        mark = self._table.begin()
        for job in unit.jobs:
            run = run_of(job)
            room = self._table.amounts(self._table.node_by_id[run.node_id], 0)
            if not job.requirements.resources.fits_in(room):
                self._table.undo(mark)
                return False
            self._table.bind(job.id, job.requirements, run.node_id, run.priority, True)  # noqa: FBT003
        self._table.keep(mark)
        return True


class _Youngest:
    """An age that comes first when it is the youngest."""

    def __init__(self, age: tuple[int, int, JobId]) -> None:
        self._age = age

    def __lt__(self, other: "_Youngest") -> bool:
        return self._age > other._age

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Youngest) and self._age == other._age

    __hash__ = None  # type: ignore[assignment]
