"""Nodes as the journal keeps them: what there is, what it may take, whether it is there."""

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import force_setattr

from pyresched._core import ResourceVector
from pyresched.ids import ExecutorName, Instant, NodeId, PoolName

__all__ = ["Intake", "Node", "Taint", "TaintEffect", "Toleration"]


class TaintEffect(Enum):
    """What a taint does to a job that does not tolerate it (Kubernetes semantics)."""

    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"


class Taint(Struct, frozen=True):
    """A refusal that a node shows to jobs that do not tolerate it."""

    key: str
    value: str = ""
    effect: TaintEffect = TaintEffect.NO_SCHEDULE


class Toleration(Struct, frozen=True):
    """A taint that a job accepts. Empty effect: any; empty key with `exists`: every taint."""

    key: str = ""
    value: str = ""
    effect: TaintEffect | None = None
    exists: bool = False

    def tolerates(self, taint: Taint) -> bool:
        """Whether this accepts *taint*."""
        if self.effect is not None and self.effect is not taint.effect:
            return False
        if self.exists:
            return self.key in ("", taint.key)
        return self.key == taint.key and self.value == taint.value


class Intake(Enum):
    """What an operator lets a node take."""

    OPEN = "open"
    CORDONED = "cordoned"  # nothing new
    DRAINING = "draining"  # nothing new, and what is there moves away


class Node(Struct, frozen=True, kw_only=True):
    """A machine that runs jobs. `total` is all that it has; `version` counts its row from 1.

    `unallocatable` is what of it others use, whom we do not manage; None is nothing. `max_jobs`
    limits how many jobs hold the node at once, None: as many as there is room for. `labels` is
    copied: what becomes of the mapping that was given does not change the node.

    It is lost since `lost_at`, or since `disconnected_at` out of reach with runs that may go on;
    never both. While it drains, its runs have until `drain_deadline` to leave, None: for ever;
    those of system jobs are asked to only if `drain_system`.
    """

    id: NodeId
    total: ResourceVector
    pool: PoolName = PoolName("default")
    executor: ExecutorName = ExecutorName("")
    node_type: str = ""
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    intake: Intake = Intake.OPEN
    lost_at: Instant | None = None
    max_jobs: int | None = None
    unallocatable: ResourceVector | None = None
    version: int = 1
    disconnected_at: Instant | None = None
    drain_deadline: Instant | None = None
    drain_system: bool = True

    if TYPE_CHECKING:  # who makes one need not wrap its names

        def __init__(
            self,
            *,
            id: str,
            total: ResourceVector,
            pool: str = "default",
            executor: str = "",
            node_type: str = "",
            labels: Mapping[str, str] = ...,
            taints: tuple[Taint, ...] = (),
            intake: Intake = Intake.OPEN,
            lost_at: Instant | None = None,
            max_jobs: int | None = None,
            unallocatable: ResourceVector | None = None,
            version: int = 1,
            disconnected_at: Instant | None = None,
            drain_deadline: Instant | None = None,
            drain_system: bool = True,
        ) -> None: ...

    def __post_init__(self) -> None:
        if isinstance(self.labels, Mapping):  # else whoever takes the node in says what is wrong
            force_setattr(self, "labels", dict(self.labels))

    @property
    def allocatable(self) -> ResourceVector:
        """What jobs may have of it: `total` less `unallocatable`, nothing below 0."""
        if self.unallocatable is None:
            return self.total
        return (self.total - self.unallocatable).floor_at_zero()

    @property
    def takes_new_runs(self) -> bool:
        """Whether a round may place anything here."""
        return self.in_reach and self.intake is Intake.OPEN

    @property
    def in_reach(self) -> bool:
        """Whether it is neither lost nor disconnected."""
        return self.lost_at is None and self.disconnected_at is None
