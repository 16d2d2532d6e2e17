"""A scheduler over a journal in memory, and words to drive it in tests."""

from collections.abc import Callable, Iterable
from itertools import count

from pyresched.config import SchedulingConfig
from pyresched.model import Changes, Instant, Job, Node, ResourceVector
from pyresched.outcomes import Report, ReportKind
from pyresched.scheduler import Journal, Scheduler
from pyresched.store import MemoryJournal

__all__ = ["node", "report", "run_names", "said", "scheduler"]


def run_names(prefix: str = "run") -> Callable[[], str]:
    """Ids `run-1`, `run-2`, ..."""
    numbers = count(1)
    return lambda: f"{prefix}-{next(numbers)}"


def node(id: str = "node-1", cores: int = 4, **fields) -> Node:
    """A node of four cores and as many GiB, in pool `default`."""
    return Node(id=id, total=ResourceVector([1000 * cores, 1024 * cores]), **fields)


def scheduler(
    *nodes: Node, config: SchedulingConfig | None = None, journal: Journal | None = None
) -> Scheduler:
    """A scheduler on which *nodes* have joined at 0."""
    made = Scheduler(config or SchedulingConfig(), journal or MemoryJournal(), ids=run_names())
    made.join_nodes(nodes, 0)
    return made


def report(to: Scheduler, *job_ids: str, kind: str, now: Instant, reason: str = "") -> Changes:
    """Tell *to* what became of the active runs of jobs, in one batch."""
    jobs: Iterable[Job] = (to.snapshot().get(job_id) for job_id in job_ids)
    news = [
        Report(
            run_id=job.active_run.id, job_id=job.id, kind=ReportKind(kind), at=now, reason=reason
        )
        for job in jobs
    ]
    return to.report(news, now)


def said(by: Scheduler, job_id: str | None = None) -> list[str]:
    """The kinds of events so far, of one job or of all, in order."""
    events, _ = by.journal.events_since(0)
    return [event.kind.value for event in events if job_id in (None, event.job_id)]
