"""What the HTTP API shows and takes: plain fields, quantities as people write them.

Instants are integer nanoseconds. Owns the mapping between jobs and JSON, nothing else.
"""

from collections.abc import Mapping

from msgspec import Struct

from pyresched.config import SchedulingConfig
from pyresched.errors import InputError
from pyresched.model import (
    Constraint,
    Duration,
    Gang,
    Instant,
    Job,
    JobState,
    Node,
    Preference,
    Queue,
    Requirements,
    ReschedulePolicy,
    Rounding,
    Run,
    Spread,
    Toleration,
)
from pyresched.reschedule import next_reschedule
from pyresched.spec import parse_block

__all__ = [
    "GangView",
    "JobRequest",
    "JobView",
    "NodeView",
    "PolicyRequest",
    "QueueView",
    "RunView",
]


class GangView(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Jobs placed all or none."""

    id: str
    cardinality: int
    uniformity: str = ""


class JobRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job as a user asks for it. `payload` goes to the executor as it is.

    No `scope` is the job set: among its jobs `spread` and distinct constraints count.
    """

    id: str
    queue: str
    resources: dict[str, str | int | float]
    priority_class: str | None = None
    priority: int = 0
    job_set: str = ""
    job_type: str = "batch"
    pools: tuple[str, ...] = ("default",)
    selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    affinity: tuple[tuple[Constraint, ...], ...] = ()
    preferences: tuple[Preference, ...] = ()
    spread: tuple[Spread, ...] = ()
    scope: str = ""
    nodes: tuple[str, ...] = ()
    gang: GangView | None = None
    payload: object = None

    def job(self, config: SchedulingConfig, *, now: Instant) -> Job:
        """The job, submitted at *now*. Raises InputError that names the job."""
        try:
            gang = self.gang
            return Job(
                id=self.id,
                queue=self.queue,
                requirements=Requirements(
                    config.spec.vector(self.resources, rounding=Rounding.UP),
                    self.priority_class or config.default_priority_class,
                    selector=self.selector,
                    tolerations=self.tolerations,
                    constraints=self.constraints,
                    affinity=self.affinity,
                    preferences=self.preferences,
                    spread=self.spread,
                    scope=self._scope(),
                    nodes=self.nodes,
                ),
                submitted_at=now,
                job_set=self.job_set,
                priority=self.priority,
                pools=self.pools,
                job_type=self.job_type,
                gang=None if gang is None else Gang(gang.id, gang.cardinality, gang.uniformity),
                payload=self.payload,
            )
        except (ValueError, OverflowError) as bad:
            raise InputError(f"job {self.id!r}: {bad}") from None

    def _scope(self) -> str:
        """As asked; else the job set, if it counts anything."""
        counts = self.spread or any(each.distinct for each in self.constraints)
        return self.scope or (f"{self.queue}/{self.job_set}" if counts else "")


class PolicyRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another reschedule policy: `attempts=3,interval=1h,...`; nothing written is the type's."""

    policy: str = ""

    def policy_for(self, job_type: str, config: SchedulingConfig) -> ReschedulePolicy | None:
        """The policy that is meant for a job of *job_type*; None is that of its type.

        Raises InputError for text that is no policy, and for a type that has none.
        """
        block = parse_block(self.policy)
        if not block.written():
            return None
        default = config.policy_for(job_type)
        if default is None:
            raise InputError(f"policy: a {job_type} job is never rescheduled; it has none")
        return block.over(default)


class RunView(Struct, frozen=True, kw_only=True):
    """One attempt at a job on a node."""

    id: str
    node_id: str
    pool: str
    leased_at: Instant
    started_at: Instant | None
    ended_at: Instant | None
    outcome: str | None
    reason: str

    @staticmethod
    def of(run: Run) -> "RunView":
        """What is shown of *run*."""
        return RunView(
            id=run.id,
            node_id=run.node_id,
            pool=run.pool,
            leased_at=run.leased_at,
            started_at=run.started_at,
            ended_at=run.ended_at,
            outcome=None if run.outcome is None else run.outcome.value,
            reason=run.reason,
        )


class JobView(Struct, frozen=True, kw_only=True):
    """A job with its runs, oldest first."""

    id: str
    queue: str
    job_set: str
    state: str
    reason: str
    validated: bool
    job_type: str
    priority_class: str
    priority: int
    resources: Mapping[str, str]
    pools: tuple[str, ...]
    gang: GangView | None
    submitted_at: Instant
    eligible_at: Instant | None
    ended_at: Instant | None
    failed_at: Instant | None
    retry_delay: Duration | None
    policy: str
    reschedules: int
    attempts_used: str
    runs: tuple[RunView, ...]

    @staticmethod
    def of(job: Job, config: SchedulingConfig) -> "JobView":
        """What is shown of *job*; `reschedules` counts those that its history keeps.

        `attempts_used` is how much of its policy is used up (`2/3 in 1h`): as of its last failure,
        or of its last reschedule where it runs again.
        """
        gang = job.gang
        policy = job.policy if job.policy is not None else config.policy_for(job.job_type)
        return JobView(
            id=job.id,
            queue=job.queue,
            job_set=job.job_set,
            state=job.state.name.lower(),
            reason=job.reason,
            validated=job.validated,
            job_type=job.job_type,
            priority_class=job.requirements.priority_class,
            priority=job.priority,
            resources=config.spec.quantities(job.requirements.resources),
            pools=job.pools,
            gang=None
            if gang is None
            else GangView(id=gang.id, cardinality=gang.cardinality, uniformity=gang.uniformity),
            submitted_at=job.submitted_at,
            eligible_at=job.eligible_at,
            ended_at=job.ended_at,
            failed_at=job.failed_at,
            retry_delay=job.retry_delay,
            policy="none" if policy is None else str(policy),
            reschedules=0 if job.tracker is None else len(job.tracker.events),
            attempts_used=_used(job, policy),
            runs=tuple(RunView.of(run) for run in job.runs),
        )


def _used(job: Job, policy: ReschedulePolicy | None) -> str:
    events = () if job.tracker is None else job.tracker.events
    newest = events[-1].time if events else job.submitted_at
    at = job.failed_at
    if at is None:
        failed = job.state is JobState.FAILED and job.ended_at is not None
        at = job.ended_at if failed and job.ended_at is not None else newest
    return next_reschedule(policy, job.tracker, at).used


class NodeView(Struct, frozen=True, kw_only=True):
    """A node and the jobs whose runs are on it."""

    id: str
    pool: str
    intake: str
    lost_at: Instant | None
    disconnected_at: Instant | None
    drain_deadline: Instant | None
    drain_system: bool
    total: Mapping[str, str]
    labels: Mapping[str, str]
    jobs: tuple[str, ...]

    @staticmethod
    def of(node: Node, jobs: tuple[str, ...], config: SchedulingConfig) -> "NodeView":
        """What is shown of *node*, on which *jobs* run."""
        return NodeView(
            id=node.id,
            pool=node.pool,
            intake=node.intake.value,
            lost_at=node.lost_at,
            disconnected_at=node.disconnected_at,
            drain_deadline=node.drain_deadline,
            drain_system=node.drain_system,
            total=config.spec.quantities(node.total),
            labels=node.labels,
            jobs=jobs,
        )


class QueueView(Struct, frozen=True, kw_only=True):
    """A queue, and how many of its jobs are in which state."""

    name: str
    weight: float
    cordoned: bool
    jobs: Mapping[str, int]

    @staticmethod
    def of(queue: Queue, jobs: Mapping[str, int]) -> "QueueView":
        """What is shown of *queue*, which has so many *jobs* by state."""
        return QueueView(name=queue.name, weight=queue.weight, cordoned=queue.cordoned, jobs=jobs)
