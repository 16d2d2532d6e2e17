"""Whole lives of jobs through the scheduler: submitted, leased, run, succeeded, forgotten.

The figure of a job is the time over the number of jobs; large batches show what a job costs,
small ones what a commit does.
"""

from itertools import count

import pytest

from pyresched.config import SchedulingConfig
from pyresched.model import EventKind
from pyresched.outcomes import Report, ReportKind
from pyresched.scheduler import Scheduler
from pyresched.store import MemoryJournal
from workloads import jobs, nodes

CONFIG = SchedulingConfig()
JOBS = 2_000


def started() -> Scheduler:
    """A scheduler with room for every batch, over a journal that forgets ended jobs."""
    numbers = count()
    made = Scheduler(CONFIG, MemoryJournal(keep_ended=False), ids=lambda: f"run-{next(numbers)}")
    made.join_nodes(nodes(200, config=CONFIG), 0)
    return made


def live(made: Scheduler, batches: list[list]) -> int:
    """Take each batch from its submit to its end. How many runs there were."""
    runs = 0
    journal = made.journal
    for now, batch in enumerate(batches):
        made.submit(batch, now)
        made.step(now)
        events, cursor = journal.events_since(journal.end() - len(batch))
        leased = [event for event in events if event.kind is EventKind.LEASED]
        for kind in (ReportKind.RUNNING, ReportKind.SUCCEEDED):
            news = [
                Report(run_id=event.run_id, job_id=event.job_id, kind=kind, at=now)
                for event in leased
            ]
            made.report(news, now)
        journal.forget(cursor)
        runs += len(leased)
    return runs


@pytest.mark.benchmark(group=f"scheduler: lives of {JOBS} jobs")
@pytest.mark.parametrize("size", [1_000, 100, 10])
def test_lives(benchmark, size):
    """In batches of *size*."""
    new = jobs(JOBS, in_queues=10, config=CONFIG)
    batches = [new[at : at + size] for at in range(0, JOBS, size)]
    ran = benchmark.pedantic(
        live, setup=lambda: ((started(), batches), {}), rounds=5, warmup_rounds=1
    )
    benchmark.extra_info["us_per_job"] = benchmark.stats.stats.median / JOBS * 1e6
    assert ran == JOBS


@pytest.mark.benchmark(group="scheduler: a step with nothing to do")
def test_idle_step(benchmark):
    """On a cluster that is full, with jobs that wait."""
    made = started()
    made.submit(jobs(20_000, in_queues=10, config=CONFIG), 0)
    made.step(0)
    made.step(0)
    assert benchmark(lambda: made.step(1).results) == {}
