"""Memory that follows the journal: what it works out from rows besides jobs, nodes and queues."""

import pytest

from kit.driving import node, report, run_names, scheduler
from kit.jobs import job, jobs
from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.scheduler import Scheduler, cycle
from pyresched.store import MemoryJournal

MINUTE = 60 * 10**9
TWO_POOLS = SchedulingConfig(
    pools=(
        PoolConfig(name="default", short_job_penalty_cutoff=MINUTE),
        PoolConfig(name="other", short_job_penalty_cutoff=2 * MINUTE),
    )
)


def with_short_runs(journal=None):
    """A scheduler at time 5: `a` of `default` and `o` of `other` have ended, `b` runs."""
    made = scheduler(node(), node("n2", pool="other"), config=TWO_POOLS, journal=journal)
    made.submit([job("a"), job("b"), job("o", pools=("other",))], 0)
    made.step(0)
    report(made, "a", "b", "o", kind="running", now=1)
    report(made, "a", "o", kind="succeeded", now=5)
    return made


def deadlines(of, now):
    """The jobs of the short runs that count at *now*, with how long."""
    return [(each.job_id, each.deadline) for each in of.sync.penalties(now)]


def test_short_runs_count_until_their_pool_has_had_its_time():
    """The first to end comes first; a time later they are forgotten."""
    made = with_short_runs()
    assert deadlines(made, 5) == [("a", 1 + MINUTE), ("o", 1 + 2 * MINUTE)]
    assert deadlines(made, 1 + MINUTE) == [("o", 1 + 2 * MINUTE)]
    assert deadlines(made, 1 + 2 * MINUTE) == []


def test_a_run_reported_twice_counts_once():
    """One entry for a job."""
    made = with_short_runs()
    before = made.snapshot().get("b")
    report(made, "b", kind="succeeded", now=6)
    assert before.active_run is not None
    made.cancel(["b", "a"], 7)
    assert [id for id, _ in deadlines(made, 8)] == ["a", "b", "o"]


def test_a_restart_loses_no_penalty_of_a_job_that_the_journal_still_has():
    """A new scheduler over the same journal charges the same queues."""
    journal = MemoryJournal()
    made = with_short_runs(journal)
    again = Scheduler(TWO_POOLS, journal, ids=run_names("more"))
    assert again.sync.penalties(5) == made.sync.penalties(5) != ()


def test_a_journal_that_forgets_ended_jobs_forgets_no_penalty_while_it_runs():
    """Only a restart does."""
    journal = MemoryJournal(keep_ended=False)
    made = with_short_runs(journal)
    assert [id for id, _ in deadlines(made, 5)] == ["a", "o"]
    again = Scheduler(TWO_POOLS, journal, ids=run_names("more"))
    assert again.sync.penalties(5) == ()


def test_without_a_cut_off_nothing_is_kept():
    """As in the configuration as it stands."""
    made = scheduler(node())
    made.submit([job("a")], 0)
    made.step(0)
    report(made, "a", kind="running", now=1)
    report(made, "a", kind="succeeded", now=2)
    assert made.sync.penalties(2) == ()


@pytest.mark.parametrize("now", [10, 1 + MINUTE])
def test_each_round_is_told_of_the_short_runs_of_its_pool(monkeypatch, now):
    """Of those that still count, in the state that it is given."""
    made = with_short_runs()
    given = {}
    decide = cycle.run_round

    def watched(*arguments):
        *_, pool, _, state, _ = arguments
        given[pool] = [each.job_id for each in state.penalties]
        return decide(*arguments)

    monkeypatch.setattr(cycle, "run_round", watched)
    made.step(now)
    assert given == {"default": ["a"] if now == 10 else [], "other": ["o"]}


def test_a_round_follows_when_a_penalty_ends_while_jobs_wait():
    """Its end may change whose turn it is: the step says when, and has a round then."""
    made = with_short_runs()
    assert made.step(6).next_wake is None, "nobody waits"
    made.submit(jobs(9), 6)
    wake = made.step(7).next_wake
    assert wake == 1 + MINUTE
    assert made.step(8).results  # commits nothing, so that the next has no news
    assert not made.step(wake - 1).results
    assert made.step(wake).results
    assert not made.step(wake + 1).results
