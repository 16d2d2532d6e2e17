"""Which single changes start a job: each is made and the round run again before it is believed.

Owns the search for the smallest change of a kind; what to try is `candidates`. Relies on the
round as a function (`Runner`), so it knows no rule of it. Costs a round for each trial.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from pyresched.model import Job, RoundResult, UnschedulableReason
from pyresched.nodedb import NodeDb
from pyresched.scheduling.inputs import RoundInputs
from pyresched.scheduling.nearest import Outlook
from pyresched.scheduling.remedies import Change, ChangeKind, made
from pyresched.scheduling.state import RoundState

__all__ = ["Runner", "Trials", "is_placed"]

Runner = Callable[..., tuple[RoundResult, RoundState]]
"""`run_round`, or what decides like it."""

# Kinds that change nodes or what they hold: these need a node db of their own.
_ON_NODES: Final = frozenset(
    {
        *(ChangeKind.OPEN_NODE, ChangeKind.ADD_LABEL, ChangeKind.MORE_ROOM),
        *(ChangeKind.NEW_NODE, ChangeKind.END_JOB, ChangeKind.COMPLETE_GANG),
    }
)


def is_placed(job_id: str, result: RoundResult) -> bool:
    """Whether *result* gives the job a node that it did not have."""
    return any(each.job_id == job_id for each in result.scheduled)


@dataclass
class Trials:
    """The search for one job that was refused; `found` grows with each change that starts it.

    *members* are the job, or those of its gang that wait here, and *position* is where the last
    of them stands in its queue, from 1. At most *most* rounds are run; `left_out` counts the
    changes that were not tried for that.
    """

    inputs: RoundInputs
    nodes: NodeDb
    job: Job
    members: list[Job]
    reason: UnschedulableReason
    outlook: Outlook
    run: Runner
    most: int
    position: int
    found: list[Change] = field(default_factory=list)
    rounds: int = 0
    left_out: int = 0

    @property
    def is_over(self) -> bool:
        """Whether as many rounds were run as may be."""
        return self.rounds >= self.most

    def try_each(self, changes: Iterable[Change]) -> None:
        """Keep those of *changes* that start the job."""
        for change in changes:
            if self.is_over:
                self.left_out += 1
            elif self.starts(change):
                self.found.append(change)

    def starts(self, change: Change) -> bool:
        """Whether the job is placed in the round with *change* made; not, when all is used up."""
        if self.is_over:
            return False
        self.rounds += 1
        after = made(change, self.inputs, self.job)
        nodes = after.node_db() if change.kind in _ON_NODES else self.nodes
        result, _ = self.run(
            *(after.snapshot, nodes, after.queues, after.pool, after.config, after.state, after.now)
        )
        return is_placed(self.job.id, result)

    def least(self, change: Callable[[int], Change], low: int, high: int) -> None:
        """Keep the change of the smallest number above *low* that starts the job, if *high* does.

        Right if all numbers above one that starts it do; what is kept was tried in any case.
        """
        if high <= low:
            return
        if self.is_over:
            self.left_out += 1
            return
        if not self.starts(change(high)):
            return
        while high - low > 1 and not self.is_over:
            middle = (low + high) // 2
            if change(middle) == change(high) or self.starts(
                change(middle)
            ):  # the same once it is rounded
                high = middle
            else:
                low = middle
        self.found.append(change(high))
