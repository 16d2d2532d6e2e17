from collections.abc import Callable
from typing import TypedDict, Unpack, final, type_check_only

from pyresched._core.values import Gang, JobState, LastReschedule, Outcome, Requirements
from pyresched.ids import (
    Duration,
    Instant,
    JobId,
    NodeId,
    PoolName,
    QueueName,
    RunId,
)
from pyresched.model.rules import GroupRules
from pyresched.reschedule.policy import ReschedulePolicy

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

@final
class RescheduleEvent:
    def __init__(
        self,
        *,
        time: Instant,
        previous_run: str,
        previous_node: str,
        delay: Duration,
        forced: bool = False,
    ) -> None: ...
    @property
    def time(self) -> Instant: ...
    @property
    def previous_run(self) -> RunId: ...
    @property
    def previous_node(self) -> NodeId: ...
    @property
    def delay(self) -> Duration: ...
    @property
    def forced(self) -> bool: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Callable[..., RescheduleEvent], tuple[object, ...]]: ...

@final
class RescheduleTracker:
    def __init__(
        self,
        *,
        events: tuple[RescheduleEvent, ...] = (),
        last: LastReschedule = ...,
    ) -> None: ...
    @property
    def events(self) -> tuple[RescheduleEvent, ...]: ...
    @property
    def last(self) -> LastReschedule: ...
    def extended(
        self,
        policy: ReschedulePolicy | None,
        *,
        now: Instant,
        previous_run: str,
        previous_node: str,
        delay: Duration,
        forced: bool = False,
    ) -> RescheduleTracker:
        """This history and, on top, the reschedule placed at *now*; *policy* says what is kept.

        A policy that counts attempts keeps the events that are at most `interval` old, every
        other one and None the newest five. All in ns. Raises TypeError and OverflowError by
        field.
        """
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Callable[..., RescheduleTracker], tuple[object, ...]]: ...

def event_of(
    time: Instant,
    previous_run: RunId,
    previous_node: NodeId,
    delay: Duration,
    forced: bool = False,
) -> RescheduleEvent: ...
def tracker_of(events: tuple[RescheduleEvent, ...], last: LastReschedule) -> RescheduleTracker: ...

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
    rules: GroupRules | None
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
        rules: GroupRules | None = None,
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
    def rules(self) -> GroupRules | None: ...
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
    def retry_delay(self) -> Duration | None: ...
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

def run_of(fields: dict[str, object]) -> Run: ...
def job_of(fields: dict[str, object]) -> Job: ...
