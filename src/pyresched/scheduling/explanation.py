"""Why a job is where it is: its place in the queue, what it lacks where, what would start it.

For people who ask about one job: it runs the round, looks at every node, and runs a round for
each change that it tries. Relies on `trials` for these; any round will do, so it knows none.
"""

from collections import Counter
from enum import StrEnum
from typing import Final

from msgspec import Struct, structs

from pyresched.errors import InputError, did_you_mean
from pyresched.model import (
    Duration,
    Exclusion,
    Instant,
    Job,
    JobId,
    JobState,
    NodeId,
    QueueName,
    ResourceSpec,
    RoundResult,
    UnschedulableReason,
    format_duration,
)
from pyresched.model.system import is_template
from pyresched.nodedb import NodeDb
from pyresched.scheduling.candidates import search
from pyresched.scheduling.inputs import RoundInputs
from pyresched.scheduling.nearest import Outlook, Vicinity
from pyresched.scheduling.remedies import PLACES, Change, mates, readable
from pyresched.scheduling.trials import Runner, Trials

__all__ = [
    "MOST_ROUNDS",
    "Ahead",
    "Explanation",
    "Nearest",
    "Standing",
    "evidence",
    "explain_inputs",
]

MOST_ROUNDS: Final = 60
"""That are run for the changes of one job, unless others are asked for."""
_NEAR_NAMES: Final = 10_000  # of which a mistyped one is looked for


class Standing(StrEnum):
    """What a round makes of a job."""

    PLACED = "placed"  # it gets a node
    MOVED = "moved"  # another node than the one it had
    RUNNING = "running"  # it keeps its node
    PREEMPTED = "preempted"  # it gives way and is queued again
    REFUSED = "refused"  # it is queued here and gets no node
    NOT_HERE = "not_here"  # it is queued or runs in other pools
    BACKING_OFF = "backing_off"  # it failed, and waits for its delay
    TEMPLATE = "template"  # a system job: its jobs, one for each node, are placed in its stead
    ENDED = "ended"


class Ahead(Struct, frozen=True, kw_only=True):
    """The jobs of its queue before it: how many, and what the round made of them."""

    jobs: int
    placed: int
    refused: dict[str, int]


class Nearest(Struct, frozen=True, kw_only=True):
    """The node on which least is missing: `faults` keep the job off, `lacks` is what is not free.

    `lacks` is in units that people use, by resource, and under "jobs" for places.
    """

    node_id: NodeId
    faults: tuple[UnschedulableReason, ...]
    lacks: dict[str, str]

    def sentence(self) -> str:
        """For people. Never compared, never parsed."""
        faults = ", ".join(each.sentence() for each in self.faults)
        lacks = ", ".join(f"{amount} {name}" for name, amount in self.lacks.items())
        missing = "; ".join(part for part in (faults, lacks and f"lacks {lacks}") if part)
        return f"{self.node_id!r}: {missing or 'lacks nothing'}"


class Explanation(Struct, frozen=True, kw_only=True):
    """Why a job is where it is once a round is over.

    `position` in its queue counts from 1 (of a gang: of its last member); `node_id` is where it
    is or goes, `for_job_id` whom it gives way to. `changes` start it, each by itself and each
    seen to in a round of its own, the smallest first (`Change.size`); `rounds` were run for
    them, and `left_out` counts those that were not tried because that was enough. `ended_with` is
    the reason of a job that has ended, `delay` how long one that backs off has yet to wait.
    """

    job_id: JobId
    queue: QueueName
    pool: str
    standing: Standing
    state: str
    spec: ResourceSpec
    node_id: NodeId | None = None
    for_job_id: JobId | None = None
    position: int | None = None
    ahead: Ahead | None = None
    reason: UnschedulableReason | None = None
    nearest: Nearest | None = None
    excluded: tuple[Exclusion, ...] = ()
    changes: tuple[Change, ...] = ()
    rounds: int = 0
    left_out: int = 0
    ended_with: str = ""
    delay: Duration | None = None

    @property
    def smallest(self) -> Change | None:
        """The smallest change that starts it, or None."""
        return self.changes[0] if self.changes else None

    def sentence(self) -> str:
        """For people. Never compared, never parsed."""
        return " ".join(f"{each[0].upper()}{each[1:]}." for each in self._sentences())

    def evidence(self, reason: UnschedulableReason) -> str:
        """The sentence of *reason* with amounts in the units that people use."""
        return evidence(reason, self.spec)

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values, in a fixed order."""
        nearest, ahead = self.nearest, self.ahead
        return {
            "job_id": self.job_id,
            "queue": self.queue,
            "pool": self.pool,
            "standing": self.standing.value,
            "state": self.state,
            "node_id": self.node_id,
            "for_job_id": self.for_job_id,
            "position": self.position,
            "ahead": None
            if ahead is None
            else {"jobs": ahead.jobs, "placed": ahead.placed, "refused": ahead.refused},
            "reason": None if self.reason is None else self.reason.to_dict(),
            "nearest": None
            if nearest is None
            else {
                "node_id": nearest.node_id,
                "faults": [fault.to_dict() for fault in nearest.faults],
                "lacks": nearest.lacks,
            },
            "excluded": [
                {"nodes": each.nodes, "reason": each.reason.to_dict()} for each in self.excluded
            ],
            "changes": [each.to_dict(self.spec) for each in self.changes],
            "rounds": self.rounds,
            "left_out": self.left_out,
            "ended_with": self.ended_with,
            "delay": self.delay,
            "sentence": self.sentence(),
        }

    def _sentences(self) -> list[str]:
        said = [f"job {self.job_id!r} of queue {self.queue!r} {self._where()}"]
        if self.standing is not Standing.REFUSED:
            return said
        if self.ahead is not None:
            jobs = f"{self.ahead.jobs} job{'' if self.ahead.jobs == 1 else 's'}"
            before = f"{jobs} of its queue before it, of which {self.ahead.placed} now start"
            said.append(before if self.ahead.jobs else "it is the first of its queue")
        if self.nearest is not None:
            said.append(f"nearest is node {self.nearest.sentence()}")
        if self.smallest is not None:
            said.append(f"the smallest change that starts it: {self.smallest.sentence(self.spec)}")
        else:
            said.append("no single change of those that were tried starts it")
        return said

    def _where(self) -> str:
        match self.standing:
            case Standing.PLACED:
                return f"starts on node {self.node_id!r}"
            case Standing.RUNNING:
                return f"runs on node {self.node_id!r}"
            case Standing.MOVED:
                return f"moves to node {self.node_id!r} and makes room for {self.for_job_id!r}"
            case Standing.PREEMPTED:
                return f"leaves node {self.node_id!r} to {self.for_job_id!r} and is queued again"
            case Standing.REFUSED:
                assert self.reason is not None
                return f"waits: {self.evidence(self.reason)}"
        return self._elsewhere()

    def _elsewhere(self) -> str:
        match self.standing:
            case Standing.TEMPLATE:
                return f"is a template, never placed itself; ask about {self.job_id + '@NODE'!r}"
            case Standing.ENDED:
                return f"has ended: {': '.join(filter(None, (self.state, self.ended_with)))}"
            case Standing.BACKING_OFF:
                then = "a while" if self.delay is None else format_duration(self.delay)
                return f"failed and is backing off: it is queued again in {then}"
        return f"is {self.state.replace('_', ' ')}, but not in pool {self.pool!r}"


def evidence(reason: UnschedulableReason, spec: ResourceSpec) -> str:
    """The sentence of *reason* with amounts in the units that people use, not in steps of *spec*."""
    resource = next((r for r in spec.resources if r.name == reason.resource), None)
    if resource is None:
        return reason.sentence()
    # The sentence has them in this order: what is wanted, then what there was.
    before, wanted, rest = reason.sentence().partition(f" {reason.wanted}")
    middle, had, end = rest.rpartition(f" {reason.had}")
    if not (wanted and had):
        return reason.sentence()
    shown = [readable(resource, amount) for amount in (reason.wanted, reason.had)]
    return f"{before} {shown[0]}{middle} {shown[1]}{end}"


def explain_inputs(
    job_id: str,
    inputs: RoundInputs,
    run: Runner,
    *,
    result: RoundResult | None = None,
    most_rounds: int = MOST_ROUNDS,
) -> Explanation:
    """The same of inputs, with rounds decided by *run*."""
    job = inputs.snapshot.get(job_id)
    if job is None:
        known = [job.id for job in inputs.snapshot][:_NEAR_NAMES]
        # A log's job 7 is `007` in a simulation, or from `007.0` on if it is a gang.
        padded = [each for each in known if each.lstrip("0").partition(".")[0] == job_id]
        near = did_you_mean(padded[0] if padded else job_id, known)
        raise InputError(f"no job {job_id!r} in this round; {near}")
    nodes = inputs.node_db()
    if result is None:
        taken = inputs.arguments()._replace(nodes=nodes)
        result, _ = run(*taken)
    standing, node_id, for_job_id = _standing(job, result)
    reason = result.refused.get(job.id)
    told = Explanation(
        job_id=job.id,
        queue=job.queue,
        pool=inputs.pool,
        standing=standing,
        state=job.state.name.lower(),
        spec=inputs.config.spec,
        node_id=node_id,
        for_job_id=for_job_id,
        reason=reason,
        ended_with=job.reason if standing is Standing.ENDED else "",
        delay=_delay(job, inputs.now) if standing is Standing.BACKING_OFF else None,
    )
    if reason is None:
        return told
    return _refused(told, job, reason, inputs, nodes, result, run, most_rounds)


def _refused(  # noqa: PLR0917  # what `explain_inputs` has found out
    told: Explanation,
    job: Job,
    reason: UnschedulableReason,
    inputs: RoundInputs,
    nodes: NodeDb,
    result: RoundResult,
    run: Runner,
    most_rounds: int,
) -> Explanation:
    """*told* with what a job that waits wants to know."""
    members = [each for each in mates(inputs, job) if each.id in result.refused] or [job]
    position, ahead = _place_in_queue(members, inputs, result)
    outlook = Outlook(inputs, nodes, result, members)
    trials = Trials(
        inputs=inputs,
        nodes=nodes,
        job=job,
        members=members,
        reason=reason,
        outlook=outlook,
        run=run,
        most=most_rounds,
        position=position,
    )
    search(trials)
    classes = {each.name: each.priority for each in inputs.config.priority_classes}
    priority = classes.get(outlook.asked.priority_class)
    return structs.replace(
        told,
        position=position,
        ahead=ahead,
        nearest=_nearest(outlook.nearest, inputs.config.spec),
        excluded=() if priority is None else outlook.excluded(priority),
        changes=tuple(trials.found),
        rounds=trials.rounds,
        left_out=trials.left_out,
    )


def _delay(job: Job, now: Instant) -> Duration | None:
    """How long a job that backs off has yet to wait, or None if its row does not say."""
    return None if job.eligible_at is None else max(job.eligible_at - now, 0)


def _standing(job: Job, result: RoundResult) -> tuple[Standing, NodeId | None, JobId | None]:
    """What became of it, where it is or was, and for whom it goes."""
    for placed in result.scheduled:
        if placed.job_id == job.id:
            return Standing.PLACED, placed.node_id, None
    for moved in result.moved:
        if moved.job_id == job.id:
            return Standing.MOVED, moved.node_id, moved.for_job_id
    for gone in result.preempted:
        if gone.job_id == job.id:
            return Standing.PREEMPTED, gone.node_id, gone.for_job_id
    if job.id in result.refused:
        return Standing.REFUSED, None, None
    if job.active_run is not None:
        here = job.active_run.pool == result.pool
        return (Standing.RUNNING if here else Standing.NOT_HERE), job.node_id, None
    if job.state.terminal:
        return Standing.ENDED, None, None
    if is_template(job):
        return Standing.TEMPLATE, None, None
    backing_off = job.state is JobState.BACKING_OFF
    return (Standing.BACKING_OFF if backing_off else Standing.NOT_HERE), None, None


def _place_in_queue(
    members: list[Job], inputs: RoundInputs, result: RoundResult
) -> tuple[int, Ahead]:
    """Where the last of *members* stands in the queue, and what became of those before it."""
    ours = {each.id for each in members}
    lane = [job.id for job in inputs.snapshot.queued(members[0].queue, inputs.pool)]
    position = max((n for n, id in enumerate(lane, 1) if id in ours), default=len(lane))
    before = [id for id in lane[:position] if id not in ours]
    placed = {each.job_id for each in result.scheduled}
    codes = Counter(result.refused[id].code.value for id in before if id in result.refused)
    return position, Ahead(
        jobs=len(before),
        placed=sum(id in placed for id in before),
        refused=dict(sorted(codes.items())),
    )


def _nearest(near: Vicinity | None, spec: ResourceSpec) -> Nearest | None:
    if near is None:
        return None
    lacks = {
        resource.name: readable(resource, near.lacks[resource.name])
        for resource in spec.resources
        if resource.name in near.lacks
    }
    if PLACES in near.lacks:
        lacks[PLACES] = str(near.lacks[PLACES])
    return Nearest(node_id=near.node.id, faults=near.faults, lacks=lacks)
