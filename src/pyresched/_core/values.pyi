from collections.abc import Callable, Iterable, Mapping
from enum import Enum, IntEnum
from typing import final

from pyresched._core.resources import ResourceVector
from pyresched.ids import GangId, NodeId
from pyresched.model.constraints import Constraint, Preference, Spread
from pyresched.model.nodes import Toleration

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
    UNKNOWN = "unknown"

class LastReschedule(Enum):
    NONE = ""
    OK = "ok"
    NO_PLACEMENT = "no placement"

@final
class Requirements:
    def __init__(
        self,
        resources: ResourceVector,
        priority_class: str = "default",
        *,
        selector: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        tolerations: tuple[Toleration, ...] = (),
        constraints: tuple[Constraint, ...] = (),
        affinity: tuple[tuple[Constraint, ...], ...] = (),
        preferences: tuple[Preference, ...] = (),
        spread: tuple[Spread, ...] = (),
        scope: str = "",
        nodes: tuple[str, ...] = (),
    ) -> None: ...
    @property
    def resources(self) -> ResourceVector: ...
    @property
    def priority_class(self) -> str: ...
    @property
    def selector(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def tolerations(self) -> tuple[Toleration, ...]: ...
    @property
    def constraints(self) -> tuple[Constraint, ...]: ...
    @property
    def affinity(self) -> tuple[tuple[Constraint, ...], ...]: ...
    @property
    def preferences(self) -> tuple[Preference, ...]: ...
    @property
    def spread(self) -> tuple[Spread, ...]: ...
    @property
    def scope(self) -> str: ...
    @property
    def nodes(self) -> tuple[NodeId, ...]: ...
    @property
    def has_scheduling_key(self) -> bool: ...
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

def requirements_of(
    resources: ResourceVector,
    priority_class: str,
    selector: tuple[tuple[str, str], ...],
    tolerations: tuple[Toleration, ...],
    constraints: tuple[Constraint, ...] = (),
    affinity: tuple[tuple[Constraint, ...], ...] = (),
    preferences: tuple[Preference, ...] = (),
    spread: tuple[Spread, ...] = (),
    scope: str = "",
    nodes: tuple[str, ...] = (),
) -> Requirements: ...
