"""Which runs give way to a job that finds no free room: fair, few, young, and gangs whole.

Owns the choice of victims. Relies on the node table for room and on the walk for what queues
hold; called once for each kind of candidate that found no room. Keeps INV-R4, INV-R5, INV-R6.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Final, NamedTuple

from pyresched._core import EVICTED, Job, NodeTable, RoundWalk, Run
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
from pyresched.scheduling.shares import ShareRule

__all__ = ["RoomMaker", "Unit"]

_AGE: Final = attrgetter("age")


class Unit:
    """Runs that give way together: a lone one, or all those of a gang.

    `holds` is what they hold, `holds_on` what of each node, with a place each if *places* count.
    """

    __slots__ = ("age", "gave_way", "holds", "holds_on", "jobs", "priority", "queue")

    def __init__(self, jobs: Iterable[Job], *, places: bool) -> None:
        self.jobs: Final = tuple(sorted(jobs, key=attrgetter("id")))
        runs = [(run_of(job), job) for job in self.jobs]
        self.queue: Final = self.jobs[0].queue
        self.priority: Final = max(run.priority for run, _ in runs)
        # Orders units, the oldest first. A gang is as old as its oldest run.
        self.age: Final = min((run.leased_at, job.submitted_at, job.id) for run, job in runs)
        self.holds_on: Final[dict[NodeId, ResourceVector]] = {}
        for run, job in runs:
            held = self.holds_on.get(run.node_id)
            here = amounts_of(job, places=places)
            self.holds_on[run.node_id] = here if held is None else held + here
        first, *others = (job.requirements.resources for job in self.jobs)
        self.holds: Final = sum(others, start=first)
        self.gave_way = False


class _Victim(NamedTuple):
    """A unit that gives way on a node to a job."""

    unit: Unit
    node_id: NodeId
    for_job: Job


class _Tally:
    """What the units so far would free on one node, and what they would cost their queues."""

    __slots__ = ("held", "room", "taken")

    def __init__(self, room: ResourceVector) -> None:
        self.room = room
        self.held: dict[QueueName, ResourceVector] = {}
        self.taken: list[Unit] = []


def amounts_of(job: Job, *, places: bool) -> ResourceVector:
    """What *job* takes of a node: its request, and one place where the nodes count *places*."""
    wanted = job.requirements.resources
    return ResourceVector((*wanted, 1)) if places else wanted


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
        rule: ShareRule,
        *,
        members_of: Callable[[QueueName, GangId], Iterable[Job]],
    ) -> None:
        self._walk = walk
        self._table: NodeTable = walk.table
        self._places = walk.table.columns > walk.table.width
        self._rule = rule
        self._members_of = members_of
        self._victims: list[_Victim] = []
        self._begun = False
        self._protected: Mapping[QueueName, float] = {}
        self._held: dict[QueueName, ResourceVector] = {}
        self._offered: dict[JobId, Job] = {}

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
        if not self._begun:
            self._begin()
        if not self._offered:
            return None
        lost = len(self._victims)
        mark = self._table.begin()
        placed = []
        for job in jobs:
            found = self._table.find_for(job.requirements, EVICTED, avoid, only)
            if found is not None:
                node_id, method = found[0], Method.NO_PREEMPTION
            else:
                cleared = self._clear_a_node(job, priority, dict(avoid), only)
                if cleared is None:
                    self._table.undo(mark)
                    self._forget(lost)
                    return None
                node_id, method = cleared, Method.FAIR_SHARE
            self._table.bind(job.id, job.requirements, node_id, priority, False)  # noqa: FBT003
            placed.append((node_id, method))
        self._table.keep(mark)
        for victim in self._victims[lost:]:
            self._walk.lose(victim.unit.queue, victim.unit.holds)
        # A gang that gave way later may have made an earlier victim needless.
        self._spare(self._victims[lost:])
        self._withdraw(self._victims[lost:])
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

    def _begin(self) -> None:
        """Work out the shares, and offer the runs of queues that are above theirs."""
        self._begun = True
        standings = self._walk.standings()
        self._protected = self._rule.protected(standings)
        self._held = {queue: held for queue, _, held, *_ in standings}
        self._offered = {
            job.id: job
            for queue, held in self._held.items()
            if self._above(queue, held)
            for job in self._walk.runs_that_may_give_way(queue)
        }
        self._walk.offer(list(self._offered))

    def _above(self, queue: QueueName, held: ResourceVector) -> bool:
        """Whether *held* is more than the protected share of *queue*."""
        return self._rule.is_above(held, self._protected[queue])

    def _withdraw(self, victims: Iterable[_Victim]) -> None:
        """Offer the runs of *victims* no longer, nor those of queues that are now at their share."""
        for victim in victims:
            for job in victim.unit.jobs:
                del self._offered[job.id]
        for queue in {victim.unit.queue for victim in victims}:
            if not self._above(queue, self._held[queue]):
                for job in self._walk.runs_that_may_give_way(queue):
                    self._offered.pop(job.id, None)
        self._walk.offer(list(self._offered))

    @cached_property
    def _line(self) -> list[Unit]:
        """All that was offered at first and may go whole, the youngest first."""
        units = []
        gangs = set()
        for job in self._offered.values():
            jobs = [job]
            if job.gang is not None:
                if (job.queue, job.gang.id) in gangs:
                    continue
                gangs.add((job.queue, job.gang.id))
                members = self._members_of(job.queue, job.gang.id)
                jobs = [member for member in members if member.active_run is not None]
            if all(
                member.id in self._offered and self._table.node_of(member.id) is not None
                for member in jobs
            ):
                units.append(Unit(jobs, places=self._places))
        return sorted(units, key=_AGE, reverse=True)

    # --- victims ----------------------------------------------------------------------------

    def _clear_a_node(
        self, job: Job, priority: int, ranks: Mapping[int, int], only: list[int] | None
    ) -> NodeId | None:
        """Let runs give way to *job* on one node, and return it.

        Of the nodes where that is possible: not one to be avoided if another will do, then
        that whose oldest victim is the youngest, then that with the fewest victims.
        """
        by_rank: dict[int, list[int]] = {}
        for node in self._walk.reach(job.requirements, only):
            by_rank.setdefault(ranks.get(node, 0), []).append(node)
        for _, nodes in sorted(by_rank.items()):
            found = self._first_to_fit(amounts_of(job, places=self._places), priority, nodes)
            if found is not None:
                node_id, units = found
                for unit in units:
                    for member in unit.jobs:
                        self._table.unbind(member.id)
                    unit.gave_way = True
                    self._held[unit.queue] -= unit.holds
                    self._victims.append(_Victim(unit, node_id, job))
                return node_id
        return None

    def _first_to_fit(
        self, wanted: ResourceVector, priority: int, nodes: Iterable[int]
    ) -> tuple[NodeId, list[Unit]] | None:
        """The node where *wanted* fits first if units go one by one, the youngest first.

        With the units that must go there, the youngest first; none of them could be spared.
        """
        tallies = {self._table.node_ids[node]: _Tally(self._table.left(node)) for node in nodes}
        for unit in self._line:
            if unit.gave_way or unit.priority > priority:
                continue
            fitting = []
            for node_id, holds in unit.holds_on.items():
                tally = tallies.get(node_id)
                if tally is None:
                    continue
                held = tally.held.get(unit.queue, self._held[unit.queue])
                if not self._above(unit.queue, held):
                    continue
                tally.held[unit.queue] = held - unit.holds
                tally.room += holds
                tally.taken.append(unit)
                if wanted.fits_in(tally.room):
                    fitting.append((node_id, _needed(wanted, node_id, tally)))
            if fitting:
                return min(fitting, key=lambda found: (len(found[1]), found[0]))
        return None

    def _forget(self, lost: int) -> None:
        """Take back the victims from index *lost* on, as the table has done."""
        for victim in self._victims[lost:]:
            victim.unit.gave_way = False
            self._held[victim.unit.queue] += victim.unit.holds
        del self._victims[lost:]

    def _spare(self, victims: Iterable[_Victim]) -> None:
        """Take back the preemption of each whose room is free, the oldest first."""
        for victim in sorted(victims, key=attrgetter("unit.age")):
            if self._returns(victim.unit):
                self._victims.remove(victim)
                victim.unit.gave_way = False
                self._held[victim.unit.queue] += victim.unit.holds
                self._walk.regain(victim.unit.queue, victim.unit.holds)

    def _returns(self, unit: Unit) -> bool:
        """Bind every run of *unit* where it was, if there is room for all."""
        mark = self._table.begin()
        for job in unit.jobs:
            run = run_of(job)
            room = self._table.left(self._table.node_by_id[run.node_id])
            if not amounts_of(job, places=self._places).fits_in(room):
                self._table.undo(mark)
                return False
            self._table.bind(job.id, job.requirements, run.node_id, run.priority, True)  # noqa: FBT003
        self._table.keep(mark)
        return True


def _needed(wanted: ResourceVector, node_id: NodeId, tally: _Tally) -> list[Unit]:
    """The units of *tally* without those that need not go, where the oldest are spared first."""
    room, needed = tally.room, list(tally.taken)
    for unit in sorted(tally.taken, key=_AGE):
        without = room - unit.holds_on[node_id]
        if wanted.fits_in(without):
            room = without
            needed.remove(unit)
    return needed
