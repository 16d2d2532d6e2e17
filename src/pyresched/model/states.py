"""Which moves between job states are legal: one table, nothing else decides."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pyresched._core import JobState
from pyresched.errors import IllegalTransition

__all__ = ["NEXT", "next_state"]

_ENDED: Final = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})
# A run that is preempted, returned or lost puts its job back to queued; one that fails makes
# it wait; a service that completes is queued again; one that a round moves has another run at once.
# Another policy makes the verdict anew, so that a job that was due may wait again and one that
# failed may come back, as it also does by force.
# A run that was out of reach and is back goes on, or has succeeded, while its job waits.
_IF_BACK: Final = frozenset({JobState.RUNNING, JobState.SUCCEEDED})
_FROM_RUN: Final = _ENDED | {JobState.QUEUED, JobState.BACKING_OFF}

NEXT: Final[Mapping[JobState, frozenset[JobState]]] = MappingProxyType(
    {
        JobState.QUEUED: frozenset(
            {*_IF_BACK, JobState.LEASED, JobState.BACKING_OFF, JobState.FAILED, JobState.CANCELLED}
        ),
        JobState.LEASED: _FROM_RUN | {JobState.PENDING, JobState.RUNNING},
        JobState.PENDING: _FROM_RUN | {JobState.LEASED, JobState.RUNNING},
        JobState.RUNNING: _FROM_RUN | {JobState.LEASED},
        JobState.BACKING_OFF: frozenset(
            {*_IF_BACK, JobState.QUEUED, JobState.FAILED, JobState.CANCELLED}
        ),
        JobState.SUCCEEDED: frozenset(),
        JobState.FAILED: frozenset({JobState.QUEUED, JobState.BACKING_OFF}),
        JobState.CANCELLED: frozenset(),
    }
)


def next_state(state: JobState, wanted: JobState) -> JobState:
    """*wanted*, if a job in *state* may go there or is there already. Raises IllegalTransition."""
    if wanted is not state and wanted not in NEXT[state]:
        legal = ", ".join(sorted(s.name.lower() for s in NEXT[state])) or "nothing: it has ended"
        raise IllegalTransition(
            f"a job that is {state.name.lower()} cannot become {wanted.name.lower()}; legal: {legal}"
        )
    return wanted
