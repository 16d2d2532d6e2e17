"""Why each queued job got no node: columns until someone asks for a job's reason."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from pyresched._core import Refused
from pyresched.model import ReasonCode, UnschedulableReason

__all__ = ["Refusals"]


class Refusals(Mapping[str, UnschedulableReason]):
    """The reason by job id, by queue and then in the order of the queue.

    `len` and `by_code` cost nothing for each job but a count; the first look-up makes the map.
    """

    def __init__(self, refused: Refused, resource_names: tuple[str, ...]) -> None:
        self._refused = refused
        self._resource_names = resource_names

    def __getitem__(self, job_id: str) -> UnschedulableReason:
        return self._reasons[self._index_by_job[job_id]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._index_by_job)

    def __len__(self) -> int:
        return len(self._refused)

    def __repr__(self) -> str:
        return f"Refusals({self.by_code()})"

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return dict, (dict(self),)

    def by_code(self) -> dict[str, int]:
        """How many jobs were refused for each kind of reason, by code."""
        counts: Counter[str] = Counter()
        for (code, *_), count in zip(self._refused.reasons, self._refused.counts(), strict=True):
            counts[code] += count
        return {code: count for code, count in sorted(counts.items()) if count}

    @cached_property
    def _index_by_job(self) -> dict[str, int]:
        return dict(self._refused.items())

    @cached_property
    def _reasons(self) -> tuple[UnschedulableReason, ...]:
        return tuple(
            UnschedulableReason(
                code=ReasonCode(code),
                ends=ReasonCode(code).ends,
                resource="" if resource < 0 else self._resource_names[resource],
                wanted=wanted,
                had=had,
            )
            for code, resource, wanted, had in self._refused.reasons
        )
