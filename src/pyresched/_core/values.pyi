from collections.abc import Callable, Iterable, Mapping
from enum import Enum, IntEnum
from typing import TypedDict, Unpack, final, type_check_only

from pyresched._core.resources import ResourceVector
from pyresched.model.ids import (
    Duration,
    GangId,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueueName,
    RunId,
)
from pyresched.model.nodes import Toleration
from pyresched.model.retries import ReschedulePolicy, RescheduleTracker

class JobState(IntEnum):
    QUEUED = 0
    LEASED = 1
    PENDING = 2
    RUNNING = 3
    BACKING_OFF = 4
    SUCCEEDED = 5
    FAILED = 6
    CANCELLED = 7
    @property
    def terminal(self) -> bool: ...
    @property
    def active(self) -> bool: ...

class Outcome(Enum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    PREEMPTED = "preempted"
    RETURNED = "returned"
    LOST = "lost"
    CANCELLED = "cancelled"

@final
class Requirements:
    def __init__(
        self,
        resources: ResourceVector,
        priority_class: str = "default",
        *,
        selector: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        tolerations: tuple[Toleration, ...] = (),
    ) -> None: ...
    @property
    def resources(self) -> ResourceVector: ...
    @property
    def priority_class(self) -> str: ...
    @property
    def selector(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def tolerations(self) -> tuple[Toleration, ...]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Callable[..., Requirements], tuple[object, ...]]: ...

@final
class Gang:
    def __init__(self, id: str, cardinality: int, uniformity: str = "") -> None: ...
    @property
    def id(self) -> GangId: ...
    @property
    def cardinality(self) -> int: ...
    @property
    def uniformity(self) -> str: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[type[Gang], tuple[str, int, str]]: ...

@type_check_only
class _RunFields(TypedDict, total=False):
    id: str
    node_id: str
    pool: str
    priority: int
    leased_at: Instant
    lease_expires_at: Instant | None
    started_at: Instant | None
    ended_at: Instant | None
    outcome: Outcome | None
    reason: str

@final
class Run:
    def __init__(
        self,
        *,
        id: str,
        node_id: str,
        pool: str = "default",
        priority: int = 0,
        leased_at: Instant,
        lease_expires_at: Instant | None = None,
        started_at: Instant | None = None,
        ended_at: Instant | None = None,
        outcome: Outcome | None = None,
        reason: str = "",
    ) -> None: ...
    @property
    def id(self) -> RunId: ...
    @property
    def node_id(self) -> NodeId: ...
    @property
    def pool(self) -> PoolName: ...
    @property
    def priority(self) -> int: ...
    @property
    def leased_at(self) -> Instant: ...
    @property
    def lease_expires_at(self) -> Instant | None: ...
    @property
    def started_at(self) -> Instant | None: ...
    @property
    def ended_at(self) -> Instant | None: ...
    @property
    def active(self) -> bool: ...
    @property
    def outcome(self) -> Outcome | None: ...
    @property
    def reason(self) -> str: ...
    def replace(self, **changes: Unpack[_RunFields]) -> Run: ...
    def as_dict(self) -> dict[str, object]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Callable[..., Run], tuple[object, ...]]: ...

@type_check_only
class _JobFields(TypedDict, total=False):
    id: str
    queue: str
    requirements: Requirements
    submitted_at: Instant
    job_set: str
    priority: int
    pools: tuple[str, ...]
    state: JobState
    validated: bool
    gang: Gang | None
    runs: tuple[Run, ...]
    job_type: str
    policy: ReschedulePolicy | None
    tracker: RescheduleTracker | None
    failed_at: Instant | None
    eligible_at: Instant | None
    retry_delay: Duration | None
    ended_at: Instant | None
    reason: str
    payload: object
    version: int

@final
class Job:
    def __init__(
        self,
        *,
        id: str,
        queue: str,
        requirements: Requirements,
        submitted_at: Instant,
        job_set: str = "",
        priority: int = 0,
        pools: tuple[str, ...] = ("default",),
        state: JobState | int = 0,
        validated: bool = False,
        gang: Gang | None = None,
        runs: tuple[Run, ...] = (),
        job_type: str = "batch",
        policy: ReschedulePolicy | None = None,
        tracker: RescheduleTracker | None = None,
        failed_at: Instant | None = None,
        eligible_at: Instant | None = None,
        retry_delay: Duration | None = None,
        ended_at: Instant | None = None,
        reason: str = "",
        payload: object = None,
        version: int = 1,
    ) -> None: ...
    @property
    def id(self) -> JobId: ...
    @property
    def queue(self) -> QueueName: ...
    @property
    def job_set(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def requirements(self) -> Requirements: ...
    @property
    def pools(self) -> tuple[PoolName, ...]: ...
    @property
    def submitted_at(self) -> Instant: ...
    @property
    def state(self) -> JobState: ...
    @property
    def validated(self) -> bool: ...
    @property
    def gang(self) -> Gang | None: ...
    @property
    def runs(self) -> tuple[Run, ...]: ...
    @property
    def job_type(self) -> str: ...
    @property
    def policy(self) -> ReschedulePolicy | None: ...
    @property
    def tracker(self) -> RescheduleTracker | None: ...
    @property
    def active_run(self) -> Run | None: ...
    @property
    def node_id(self) -> NodeId | None: ...
    @property
    def failed_at(self) -> Instant | None: ...
    @property
    def eligible_at(self) -> Instant | None: ...
    @property
    def retry_delay_ns(self) -> Duration | None: ...
    @property
    def ended_at(self) -> Instant | None: ...
    @property
    def reason(self) -> str: ...
    @property
    def payload(self) -> object: ...
    @property
    def version(self) -> int: ...
    def replace(self, **changes: Unpack[_JobFields]) -> Job: ...
    def as_dict(self) -> dict[str, object]: ...
    def detach(self) -> Job: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Callable[..., Job], tuple[object, ...]]: ...

def requirements_of(
    resources: ResourceVector,
    priority_class: str,
    selector: tuple[tuple[str, str], ...],
    tolerations: tuple[Toleration, ...],
) -> Requirements: ...
def run_of(fields: dict[str, object]) -> Run: ...
def job_of(fields: dict[str, object]) -> Job: ...
