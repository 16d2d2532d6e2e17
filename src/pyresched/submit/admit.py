"""Requests to run jobs, turned into changes: checked as a whole, admitted all or not at all.

Relies on a `Check` for what the nodes can hold, since stages do not know each other. Keeps
INV-J8 (one id is one job).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec import Struct

from pyresched.config import SchedulingConfig
from pyresched.config.reading import Fault, refuse
from pyresched.errors import DuplicateId, InputError, did_you_mean
from pyresched.model import (
    Changes,
    Draft,
    Event,
    EventKind,
    GangId,
    Instant,
    Job,
    JobId,
    JobReader,
    JobState,
    PoolName,
    Queue,
    QueueName,
    UnschedulableReason,
    next_state,
    rule_faults,
)
from pyresched.model.system import SYSTEM_TYPES, as_template
from pyresched.reschedule import refusals

__all__ = ["Check", "admit", "validate"]

Check = Callable[[Sequence[Job]], Mapping[JobId, UnschedulableReason]]
"""Which of some jobs (gangs whole) the nodes could not hold even when empty, and why."""

_NAMED: Final = 5  # ids that a message repeats


def admit(
    jobs: Sequence[Job],
    snapshot: JobReader,
    *,
    queues: Mapping[QueueName, Queue],
    pools: AbstractSet[PoolName],
    check: Check,
    config: SchedulingConfig,
    now: Instant,
    reached: AbstractSet[PoolName] | None = None,
) -> Changes:
    """New rows for *jobs*, which come from users: queued, without runs.

    *pools* are those with known nodes, *reached* (None: the same) those whose jobs may use known
    nodes, of other pools too. A job of none of them, or of a gang that is not complete
    in this request, is checked later, by `validate`. A job that no node could hold ends at
    once, refused. A system job is admitted as a template, whatever the nodes are. An unknown queue is made, with weight 1, where `config.create_queues` says
    so. Raises DuplicateId, or InputError that names job and field of everything wrong.
    """
    _refuse_duplicates(jobs, snapshot)
    faults = [*_job_faults(jobs, queues, config), *_gang_faults(jobs, snapshot)]
    if faults:
        raise refuse(faults, source="")
    made = dict.fromkeys(job.queue for job in jobs if job.queue not in queues)
    events = [Event(kind=EventKind.QUEUE_CHANGED, at=now, queue=name) for name in made]
    to_place = [job for job in jobs if job.job_type not in SYSTEM_TYPES]
    findings = _examine(to_place, pools=pools, reached=reached, check=check)
    rows = []
    for job in jobs:
        events.append(_event(EventKind.SUBMITTED, job, now=now))
        if job.job_type in SYSTEM_TYPES:
            rows.append(as_template(job))
            continue
        reason = findings.refused.get(job.id)
        if reason is not None:
            rows.append(_refused(job, reason, now=now).replace(version=1))
            events.append(_event(EventKind.REFUSED, job, now=now, reason=reason.code.value))
            continue
        passed = job.id in findings.passed
        if job.validated is not passed or job.version != 1:
            rows.append(job.replace(validated=passed, version=1))
        else:
            rows.append(job)
    return Changes(
        jobs=tuple(rows), queues=tuple(Queue(name=name) for name in made), events=tuple(events)
    )


def validate(
    snapshot: JobReader,
    *,
    pools: AbstractSet[PoolName],
    check: Check,
    now: Instant,
    reached: AbstractSet[PoolName] | None = None,
) -> Changes:
    """Check the jobs that nobody could check before: their nodes or the rest of their gang came."""
    jobs = [job for job in snapshot.unvalidated() if job.state is JobState.QUEUED]
    findings = _examine(jobs, pools=pools, reached=reached, check=check)
    draft = Draft(snapshot)
    for job in jobs:
        reason = findings.refused.get(job.id)
        if reason is not None:
            draft.put(_refused(job, reason, now=now))
            draft.emit(EventKind.REFUSED, job, at=now, reason=reason.code.value)
        elif job.id in findings.passed:
            draft.put(job.replace(validated=True))
    return draft.changes()


class _Findings(Struct, frozen=True):
    """What a check said of jobs; one in neither could not be checked yet."""

    passed: AbstractSet[JobId]
    refused: Mapping[JobId, UnschedulableReason]


def _examine(
    jobs: Sequence[Job],
    *,
    pools: AbstractSet[PoolName],
    reached: AbstractSet[PoolName] | None,
    check: Check,
) -> _Findings:
    """Check those of *jobs* that can be checked; a gang passes or is refused as one."""
    near = pools if reached is None else reached
    sizes = Counter((job.queue, job.gang.id) for job in jobs if job.gang is not None)
    ready = [
        job
        for job in jobs
        if not near.isdisjoint(job.pools)
        and (job.gang is None or sizes[job.queue, job.gang.id] == job.gang.cardinality)
    ]
    if not ready:
        return _Findings(frozenset(), {})
    reasons = check(ready)
    if not reasons:
        return _Findings({job.id for job in ready}, {})
    gangs: dict[tuple[QueueName, GangId], UnschedulableReason] = {}
    for job in ready:
        if job.gang is not None and job.id in reasons:
            gangs.setdefault((job.queue, job.gang.id), reasons[job.id])
    passed = set()
    refused = {}
    for job in ready:
        reason = reasons.get(job.id) if job.gang is None else gangs.get((job.queue, job.gang.id))
        if reason is None:
            passed.add(job.id)
        elif pools >= frozenset(job.pools):  # else a pool that is still to come may hold it
            refused[job.id] = reason
    return _Findings(passed, refused)


def _refused(job: Job, reason: UnschedulableReason, *, now: Instant) -> Job:
    """The end of a job that can never run."""
    state = next_state(job.state, JobState.FAILED)
    return job.replace(state=state, ended_at=now, reason=reason.code.value)


def _event(kind: EventKind, job: Job, *, now: Instant, reason: str = "") -> Event:
    return Event(
        kind=kind, at=now, queue=job.queue, job_set=job.job_set, job_id=job.id, reason=reason
    )


def _refuse_duplicates(jobs: Sequence[Job], snapshot: JobReader) -> None:
    """Raise DuplicateId for ids that stand twice in the request or are taken."""
    ids = [job.id for job in jobs]
    if len(set(ids)) < len(ids):
        twice = [id for id, count in Counter(ids).items() if count > 1]
        raise DuplicateId(f"{_some(twice)} twice in one request; send each job once")
    taken = [row.id for row in snapshot.get_many(ids) if row is not None]
    if taken:
        raise DuplicateId(f"{_some(taken)} there already; a new job needs a new id")


def _some(ids: Sequence[JobId]) -> str:
    """`job 'a' is` or `jobs 'a', 'b' and 7 more are`."""
    named = ", ".join(repr(str(id)) for id in ids[:_NAMED])
    if len(ids) == 1:
        return f"job {named} is"
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f"jobs {named}{more} are"


def _job_faults(
    jobs: Iterable[Job], queues: Mapping[QueueName, Queue], config: SchedulingConfig
) -> Iterator[Fault]:
    """What is wrong with each job by itself. Jobs that are alike are looked at once."""
    good = set()
    for job in jobs:
        if job.state is not JobState.QUEUED or job.runs:
            yield Fault(f"job {job.id!r}", "is not new; submit it queued and without runs")
        if job.gang is not None and job.job_type in SYSTEM_TYPES:
            sentence = f"a {job.job_type} job is one on each node; leave out its gang"
            yield Fault(f"job {job.id!r}: gang", sentence)
        alike = (job.queue, job.requirements, job.pools, job.job_type, job.policy, job.rules)
        if alike in good:
            continue
        faults = list(_kind_faults(job, queues, config))
        if faults:
            yield from faults
        else:
            good.add(alike)


def _kind_faults(
    job: Job, queues: Mapping[QueueName, Queue], config: SchedulingConfig
) -> Iterator[Fault]:
    """What is wrong with queue, pools, class, type, policy or amounts of a job."""
    path = f"job {job.id!r}"
    queue = queues.get(job.queue)
    if queue is None and not config.create_queues:
        near = did_you_mean(job.queue, sorted(queues))
        yield Fault(f"{path}: queue", f"unknown queue {job.queue!r}; {near}")
    elif queue is not None and queue.cordoned:
        yield Fault(f"{path}: queue", f"{job.queue!r} is cordoned; it takes no new jobs")
    if not job.pools:
        yield Fault(f"{path}: pools", "none is left; name at least one")
    for pool in job.pools:
        yield from _asked(f"{path}: pools", config.pool, pool)
    yield from _asked(f"{path}: job_type", config.policy_for, job.job_type)
    if job.policy is not None and job.job_type in SYSTEM_TYPES:
        yield Fault(f"{path}: policy", f"a {job.job_type} job has none; leave it out")
    else:
        wrong = refusals(
            job.policy, min_delay=config.reschedule_min_delay, dialect=config.reschedule_dialect
        )
        yield from (Fault(f"{path}: policy", sentence) for sentence in wrong)
    for name, sentence in rule_faults(job.rules):
        yield Fault(f"{path}: rules{name and '.'}{name}", sentence)
    yield from _asked(
        f"{path}: priority_class", config.priority_class, job.requirements.priority_class
    )
    wanted, had = len(job.requirements.resources), len(config.resources)
    if wanted != had:
        names = ", ".join(config.spec.names)
        yield Fault(f"{path}: resources", f"{wanted} amounts; give {had}: {names}")
    elif job.requirements.resources.has_negative:
        yield Fault(f"{path}: resources", "an amount is negative; write 0 or more")


def _asked(path: str, look_up: Callable[[str], object], name: str) -> Iterator[Fault]:
    """The fault of a name that the configuration does not know."""
    try:
        look_up(name)
    except InputError as bad:
        yield Fault(path, str(bad))


def _gang_faults(jobs: Iterable[Job], snapshot: JobReader) -> Iterator[Fault]:
    """What is wrong with gangs: members that disagree, or more of them than the gang has."""
    gangs: dict[tuple[QueueName, GangId], list[Job]] = {}
    for job in jobs:
        if job.gang is not None:
            gangs.setdefault((job.queue, job.gang.id), []).append(job)
    for (queue, gang_id), members in gangs.items():
        path = f"gang {gang_id!r} of queue {queue!r}"
        before = [job for job in snapshot.gang(queue, gang_id) if not job.state.terminal]
        first = (before or members)[0]
        assert first.gang is not None, "members of a gang have one"
        for member in members:
            if _shared(member) != _shared(first):
                yield Fault(
                    path,
                    f"job {member.id!r} differs from job {first.id!r} in size, label, class, pools, "
                    "type or policy; members must agree",
                )
        count = len(before) + len(members)
        if count > first.gang.cardinality:
            yield Fault(path, f"{count} members; its cardinality is {first.gang.cardinality}")


def _shared(member: Job) -> tuple[object, ...]:
    """What all members of a gang have in common."""
    return (
        member.gang,
        member.requirements.priority_class,
        member.pools,
        member.job_type,
        member.policy,
    )
