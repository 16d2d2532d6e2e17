from collections.abc import Iterable

from typing_extensions import disjoint_base

from pyresched._core.resources import ResourceVector
from pyresched._core.roundline import RoundLine

@disjoint_base
class RoundLimits(RoundLine):
    def set_limits(
        self,
        *,
        tokens: float = ...,
        burst: float = ...,
        most: ResourceVector | None = None,
        tries: int = 0,
        queue_tries: int = 0,
        preemption_tokens: float = ...,
        floating: ResourceVector | None = None,
        floats: bytes | None = None,
    ) -> None: ...
    def set_queue_limits(
        self,
        queue: str,
        *,
        tokens: float = ...,
        burst: float = ...,
        classes: dict[str, ResourceVector] | None = None,
    ) -> None: ...
    def close_nodes(self, node_ids: Iterable[str]) -> None: ...
