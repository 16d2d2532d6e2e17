"""Short runs: who is charged for one, for how long, and what that comes to by queue."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.driving import node as driven_node
from kit.driving import report, scheduler
from kit.jobs import backing_off, ended, job, leased, requeued
from kit.rounds import World, node
from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.model import JobState, Outcome, ResourceVector
from pyresched.scheduling import RoundState, run_round
from pyresched.scheduling.penalties import ShortRun, by_queue, charged, cutoffs, live

SECOND = 10**9
MINUTE = 60 * SECOND
CUTOFFS = {"default": MINUTE}


def started(id="j", *, at=0, pool="default", **fields):
    """A job whose run was leased and started at *at*."""
    made = leased(job(id, **fields), at=at, pool=pool)
    (run,) = made.runs
    return made.replace(state=JobState.RUNNING, runs=(run.replace(started_at=at),))


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED])
def test_a_job_that_ended_half_a_minute_after_its_start_is_charged(state):
    """However it ended: its whole request, until its run would have been a minute old."""
    made = ended(started(at=5), state, at=5 + 30 * SECOND)
    assert charged(made, CUTOFFS) == ShortRun(
        "j", "default", "queue-a", ResourceVector((1000, 1024)), 5 + MINUTE
    )


def test_a_run_as_old_as_the_cut_off_is_long_enough():
    """A nanosecond less is not."""
    assert charged(ended(started(), at=MINUTE), CUTOFFS) is None
    assert charged(ended(started(), at=MINUTE - 1), CUTOFFS) is not None
    assert charged(ended(started(), at=60 * MINUTE), CUTOFFS) is None


def test_who_has_not_ended_is_not_charged():
    """Queued, running, waiting for its delay or queued again after a short run."""
    assert charged(job(), CUTOFFS) is None
    assert charged(started(), CUTOFFS) is None
    assert charged(requeued(started(), Outcome.PREEMPTED, at=2), CUTOFFS) is None
    assert charged(backing_off(started(), at=2), CUTOFFS) is None


def test_what_never_started_is_not_charged():
    """Neither a job without runs nor one whose run was only leased."""
    assert charged(ended(job(), JobState.CANCELLED), CUTOFFS) is None
    assert charged(ended(leased(job()), JobState.FAILED), CUTOFFS) is None


@pytest.mark.parametrize("outcome", [Outcome.PREEMPTED, Outcome.LOST])
def test_a_run_that_was_taken_from_its_queue_is_not_charged(outcome):
    """Also where its user takes the job back while it waits to be placed again."""
    waits = requeued(started(), outcome, at=2)
    assert charged(ended(waits, JobState.CANCELLED, at=3), CUTOFFS) is None


def test_only_the_last_run_counts():
    """A preempted one before it excuses nothing, a long one before it neither."""
    again = leased(requeued(started(), Outcome.PREEMPTED, at=2), at=10)
    run = again.runs[-1].replace(started_at=10)
    again = again.replace(state=JobState.RUNNING, runs=(again.runs[0], run))
    assert charged(ended(again, at=20), CUTOFFS).deadline == 10 + MINUTE


def test_the_pool_of_the_run_says_how_soon_is_too_soon():
    """None where it has no cut-off."""
    config = SchedulingConfig(
        pools=(
            PoolConfig(name="default"),
            PoolConfig(name="short", short_job_penalty_cutoff=10 * SECOND),
        )
    )
    assert cutoffs(config) == {"short": 10 * SECOND}
    assert charged(ended(started(), at=1), cutoffs(config)) is None
    there = charged(ended(started(pool="short"), at=1), cutoffs(config))
    assert (there.pool, there.deadline) == ("short", 10 * SECOND)


def test_a_penalty_ends_at_its_deadline():
    """Exactly at start and cut-off it is gone."""
    entry = charged(ended(started(), at=1), CUTOFFS)
    assert live([entry], MINUTE - 1) == (entry,)
    assert live([entry], MINUTE) == ()
    assert by_queue([entry], MINUTE) == {}


def test_penalties_add_up_by_queue():
    """In the order of the names, whatever the order of the entries."""
    entries = [
        charged(ended(started(id, queue=queue, at=at), at=at + 1), CUTOFFS)
        for id, queue, at in (("a", "z", 0), ("b", "a", 0), ("c", "z", 5))
    ]
    v = ResourceVector
    assert list(by_queue(entries, 1).items()) == [("a", v((1000, 1024))), ("z", v((2000, 2048)))]
    assert by_queue(entries, MINUTE) == {"z": v((1000, 1024))}


times = st.integers(0, 200)


@given(
    st.lists(st.tuples(st.sampled_from("ab"), times, times), max_size=8),
    times,
    st.integers(1, 100),
)
def test_a_queue_is_charged_for_each_short_run_from_its_end_to_its_deadline(runs, now, cutoff):
    """Counted run by run, by the definition."""
    entries, owed = [], {}
    for i, (queue, start, length) in enumerate(runs):
        made = ended(started(f"j{i}", queue=queue, at=start), at=start + length)
        entry = charged(made, {"default": cutoff})
        if entry is not None:
            entries.append(entry)
        if length < cutoff and now < start + cutoff:
            owed[queue] = owed.get(queue, 0) + 1000
    assert {queue: sum_[0] for queue, sum_ in by_queue(entries, now).items()} == owed


def first_of_two(state, now):
    """Whose job a round places where there is room for one, and what it says of `a`."""
    world = World().with_nodes(node("n1", 1000, 1024)).with_queues("a", "b")
    world.with_jobs(job("a1", queue="a"), job("b1", queue="b"))
    result, _ = run_round(
        world.reader(), world.node_db(), world.queues, "default", world.config, state, now
    )
    return [each.job_id for each in result.scheduled], result.shares[0]


def test_a_queue_that_is_charged_has_its_turn_later_and_loses_no_share():
    """Until the deadline, and only in the order of turns."""
    entry = charged(ended(started(queue="a"), at=1), CUTOFFS)
    state = RoundState(penalties=(entry,))
    plain, without = first_of_two(RoundState(), 5)
    later, charged_ = first_of_two(state, 5)
    assert (plain, later) == (["a1"], ["b1"])
    assert first_of_two(state, MINUTE)[0] == ["a1"]
    assert (without.penalty_share, charged_.penalty_share) == (0.0, 1.0)
    assert charged_.protected_share == without.protected_share == 0.5
    assert charged_.demand_share == without.demand_share


def test_a_flood_of_short_jobs_pays_through_the_scheduler():
    """Two queues, one core: who ran for a moment only is not the next one again."""
    config = SchedulingConfig(pools=(PoolConfig(name="default", short_job_penalty_cutoff=MINUTE),))
    made = scheduler(driven_node("n1", 1), config=config)
    made.submit([job(f"a{i}", queue="a", submitted_at=i) for i in range(3)], 0)
    made.step(0)
    made.submit([job("b0", queue="b", submitted_at=9)], 1)
    report(made, "a0", kind="running", now=1)
    report(made, "a0", kind="succeeded", now=2)
    made.step(2)
    assert made.snapshot().get("b0").node_id == "n1"
    assert made.snapshot().get("a1").node_id is None
