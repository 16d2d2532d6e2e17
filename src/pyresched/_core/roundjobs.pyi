from collections.abc import Callable, Iterable, Sequence
from typing import Final, Self, final

from typing_extensions import disjoint_base

from pyresched._core.drf import DominantResourceFairness
from pyresched._core.nodeindex import NodeTable
from pyresched._core.resources import ResourceVector
from pyresched._core.values import Requirements
from pyresched._core.views import Job
from pyresched.ids import NodeId, QueueName

CODES: Final[tuple[str, ...]]

@final
class Records:
    def __new__(cls, jobs: Iterable[Job]) -> Self: ...

@disjoint_base
class RoundJobs:
    def __new__(
        cls,
        table: NodeTable,
        fairness: DominantResourceFairness,
        classes: dict[str, tuple[int, bool]],
        pool: str,
        *,
        now: int = 0,
        lookback: int = 0,
        prefer_large: bool = False,
        avoid_of: Callable[[list[Job]], Sequence[tuple[NodeId, int]]] | None = None,
        values_of: Callable[[str], list[list[int]]] | None = None,
        members_of: Callable[[str, str], Sequence[Job]] | None = None,
        variants_of: Callable[[Requirements], Sequence[tuple[Requirements, int]]] | None = None,
        share: bool = True,
        urgency: bool = True,
        home: bool = True,
        away: bool = True,
        gang_away: bool = True,
    ) -> Self: ...
    @property
    def table(self) -> NodeTable: ...
    @property
    def fairness(self) -> DominantResourceFairness: ...
    @property
    def pool(self) -> str: ...
    def add_queue(
        self, queue: str, weight: float, jobs: Iterable[Job], closed: str | None = None
    ) -> int: ...
    def add_running(self, jobs: Iterable[Job]) -> None: ...
    def standings(
        self,
    ) -> list[tuple[QueueName, float, ResourceVector, ResourceVector, ResourceVector]]: ...
    def demands_by_class(self, queue: str) -> dict[str, ResourceVector]: ...
    def set_share(
        self,
        queue: str,
        protected_share: float,
        budget: float,
        penalty: ResourceVector | None = None,
    ) -> None: ...
