"""Checkers of what journal, memory and nodes must agree on: each reports every breach.

Owns the slow second opinion on INV-J3, J5, J7, J9, J10 and J12, from plain facts alone; the stores
have checkers of their own.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from pyresched.config import SchedulingConfig
from pyresched.model import (
    Changes,
    GangId,
    Job,
    JobId,
    JobState,
    Node,
    NodeId,
    Outcome,
    Queue,
    QueueName,
)
from pyresched.model.reach import tolerated
from pyresched.model.system import is_pinned, is_template, pinned_id
from pyresched.scheduler.journal import Journal
from pyresched.scheduler.sync import Sync

__all__ = ["CHECKERS", "Facts", "breaches", "facts"]

_Id = TypeVar("_Id", bound=str)


class Facts(Struct, frozen=True, kw_only=True):
    """What memory holds, what the journal holds, and what is bound where."""

    config: SchedulingConfig
    jobs: Sequence[Job]
    nodes: Mapping[NodeId, Node]
    queues: Mapping[QueueName, Queue]
    journal: Changes
    bound: Mapping[JobId, NodeId]


def facts(config: SchedulingConfig, sync: Sync, journal: Journal) -> Facts:
    """The facts as they are now."""
    rows, _ = journal.load()
    bound: dict[JobId, NodeId] = {}
    for pool in config.pools:
        fork = sync.nodes.fork(pool.name)
        for node in sync.node_rows.values():
            if node.pool == pool.name:
                bound.update((job_id, node.id) for job_id in fork.bound(node.id))
    return Facts(
        config=config,
        jobs=tuple(sync.snapshot),
        nodes=sync.node_rows,
        queues=sync.queue_rows,
        journal=rows,
        bound=bound,
    )


def breaches(known: Facts) -> Iterator[str]:
    """Every breach of every invariant, each as `INV-Jn: sentence`."""
    for number, checker in CHECKERS.items():
        for sentence in checker(known):
            yield f"{number}: {sentence}"


def inv_j3_memory(known: Facts) -> Iterator[str]:
    """INV-J3. Memory holds the rows of the journal, at their newest version, and no others."""
    rows = known.journal
    yield from _differences(
        "job", {job.id: job for job in rows.jobs}, {job.id: job for job in known.jobs}
    )
    yield from _differences("node", {node.id: node for node in rows.nodes}, known.nodes)
    yield from _differences("queue", {queue.name: queue for queue in rows.queues}, known.queues)


def inv_j5_gangs(known: Facts) -> Iterator[str]:
    """INV-J5. The members of a gang that have not ended hold room, wait or are queued together.

    Those that wait or have waited have one delay and one history.
    """
    gangs: dict[tuple[QueueName, GangId], list[Job]] = {}
    for job in known.jobs:
        if job.gang is not None and not job.state.terminal:
            gangs.setdefault((job.queue, job.gang.id), []).append(job)
    for (queue, gang_id), members in gangs.items():
        title = f"gang {gang_id!r} of queue {queue!r}"
        stands = {"active" if job.state.active else job.state.name.lower() for job in members}
        if len(stands) > 1:
            yield f"{title}: members are {', '.join(sorted(stands))}"
        if members[0].state.active and members[0].gang is not None:
            cardinality = members[0].gang.cardinality
            if len(members) != cardinality:
                yield f"{title}: {len(members)} members hold room, it has {cardinality}"
        if len({(job.failed_at, job.eligible_at, job.retry_delay) for job in members}) > 1:
            yield f"{title}: members wait differently"
        if any(job.tracker != members[0].tracker for job in members):
            yield f"{title}: members have different histories"


def inv_j7_windows(known: Facts) -> Iterator[str]:
    """INV-J7. No window of a policy's interval has more reschedules than its attempts.

    And none came before its delay was over.
    """
    for job in known.jobs:
        yield from _early_breaches(job)
        policy = job.policy or known.config.policy_for(job.job_type)
        if job.tracker is None or policy is None or policy.unlimited or policy.attempts <= 0:
            continue
        times = [event.time for event in job.tracker.events if not event.forced]
        if times != sorted(times):
            yield f"job {job.id!r}: its history is not in order of time"
        for end in times:
            count = sum(end - policy.interval < time <= end for time in times)
            if count > policy.attempts:
                yield (
                    f"job {job.id!r}: {count} reschedules in the window that ends at {end}, its "
                    f"policy allows {policy.attempts}"
                )


def inv_j9_fields(known: Facts) -> Iterator[str]:
    """INV-J9. State and fields of a job say the same."""
    for job in known.jobs:
        title = f"job {job.id!r}, {job.state.name.lower()}"
        if job.state.active is not (job.active_run is not None):
            yield f"{title}: active run {job.active_run and job.active_run.id}"
        if any(run.active for run in job.runs[:-1]):
            yield f"{title}: an older run is active"
        if (job.ended_at is not None) is not job.state.terminal:
            yield f"{title}: ended at {job.ended_at}"
        waits = {job.failed_at is None, job.eligible_at is None, job.retry_delay is None}
        # Who waits for a lost node to stop its run was not blamed.
        unblamed = job.state is JobState.BACKING_OFF and job.failed_at is job.retry_delay is None
        if len(waits) > 1 and not unblamed:
            yield f"{title}: half of what it waits for is set"
        for run in job.runs:
            if run.outcome is Outcome.UNKNOWN and job.state.terminal:
                yield f"{title}: its run {run.id!r} is unknown for ever"
        if job.state is JobState.BACKING_OFF and job.eligible_at is None:
            yield f"{title}: waits for nothing"
        if job.eligible_at is not None and job.state not in {
            JobState.BACKING_OFF,
            JobState.QUEUED,
        }:
            yield f"{title}: waits until {job.eligible_at}"
        if job.runs and not job.validated:
            yield f"{title}: has runs but was never validated"


def inv_j10_bound(known: Facts) -> Iterator[str]:
    """INV-J10. The active runs are what is bound on nodes, and none is on a lost node.

    Those on a disconnected one stay bound, and no node is both.
    """
    for node in known.nodes.values():
        if node.lost_at is not None and node.disconnected_at is not None:
            yield f"node {node.id!r} is lost and disconnected"
    active = {job.id: job.active_run for job in known.jobs}
    wanted = {job_id: run.node_id for job_id, run in active.items() if run is not None}
    for job_id in sorted({*wanted, *known.bound}):
        if wanted.get(job_id) != known.bound.get(job_id):
            yield (
                f"job {job_id!r} runs on {wanted.get(job_id)}, is bound on "
                f"{known.bound.get(job_id)}"
            )
    for job_id, node_id in wanted.items():
        there = known.nodes.get(node_id)
        if there is None or there.lost_at is not None:
            yield f"job {job_id!r} runs on {node_id!r}, which is not there"


def inv_j12_system(known: Facts) -> Iterator[str]:
    """INV-J12. A pinned job that has not ended is the only one of its template on its node.

    And its template has not ended either.
    """
    templates = [job.id for job in known.jobs if is_template(job) and not job.state.terminal]
    owners = {
        pinned_id(id, node_id, 1): (id, node_id) for id in templates for node_id in known.nodes
    }
    seen: dict[tuple[JobId, NodeId], JobId] = {}
    for job in known.jobs:
        if not is_pinned(job) or job.state.terminal:
            continue
        owner = owners.get(JobId(_GENERATION.sub("", job.id)))
        if owner is None or job.requirements.nodes != owner[1:]:
            yield f"job {job.id!r} is pinned to {job.requirements.nodes}, and no template wants it"
        elif seen.setdefault(owner, job.id) != job.id:
            yield f"job {job.id!r} and job {seen[owner]!r} are both of {owner[0]!r} on {owner[1]!r}"


_GENERATION: Final = re.compile(r"#\d+\Z")


CHECKERS: Final[Mapping[str, Callable[[Facts], Iterator[str]]]] = {
    "INV-J3": inv_j3_memory,
    "INV-J5": inv_j5_gangs,
    "INV-J7": inv_j7_windows,
    "INV-J9": inv_j9_fields,
    "INV-J10": inv_j10_bound,
    "INV-J12": inv_j12_system,
}


def _early_breaches(job: Job) -> Iterator[str]:
    """The reschedules in the history of *job* that did not wait; a gang waits for one member."""
    if job.tracker is None or job.gang is not None:
        return
    ends = {run.id: run.ended_at for run in job.runs}
    for event in job.tracker.events:
        ended_at = ends.get(event.previous_run)
        if event.forced or ended_at is None:
            continue
        if ended_at > event.time or (ended_at == event.time and tolerated(job)):
            continue  # it was out of reach, was replaced, and went on after all
        if event.time < ended_at + event.delay:
            yield (
                f"job {job.id!r}: rescheduled at {event.time}, {event.time - ended_at} after its "
                f"run {event.previous_run!r} ended; the delay was {event.delay}"
            )


def _differences(
    kind: str, rows: Mapping[_Id, object], held: Mapping[_Id, object]
) -> Iterator[str]:
    """The rows of the journal that are not held as they are, and what is held without a row."""
    for name in sorted({*rows, *held}):
        row, here = rows.get(name), held.get(name)
        if row is None:
            yield f"{kind} {name!r} is here, not in the journal"
        elif here is None:
            yield f"{kind} {name!r} is in the journal, not here"
        elif row != here:
            yield f"{kind} {name!r} is {here} here, {row} in the journal"
