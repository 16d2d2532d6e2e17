"""Logs and failures that the project makes itself."""

import math
from collections import Counter

import pytest

from pyresched.errors import InputError
from pyresched.model import NANOS
from pyresched.simulator.formats.failures import parse_failures
from pyresched.simulator.formats.swf import Ending, parse_swf
from pyresched.simulator.generate import (
    FailurePlan,
    GeneratedFailures,
    GeneratedLog,
    WorkloadPlan,
)


def text(plan: WorkloadPlan) -> str:
    """The log of *plan*."""
    return "".join(GeneratedLog.of(plan).lines())


def test_a_log_reads_back_as_it_was_made() -> None:
    """Jobs, failures, users, queues and the size of the machine all come over."""
    plan = WorkloadPlan(jobs=400, nodes=16, cores=8)
    made = GeneratedLog.of(plan)
    log = parse_swf(made.lines(), name="made")
    assert log.skipped == ()
    assert log.header_number("MaxNodes") == 16
    assert log.header_number("MaxProcs") == 128
    assert log.preemptible_queues == {2}
    assert [
        (j.submitted_at, j.run_time, j.cores, j.ending is Ending.FAILED, j.user, j.queue)
        for j in log.jobs
    ] == [
        (j.submit_s * NANOS, j.run_s * NANOS, j.size, j.failed, j.user, j.queue) for j in made.jobs
    ]


def test_the_same_plan_makes_the_same_log_and_another_seed_another() -> None:
    """Seed 0 is a seed like any other."""
    assert text(WorkloadPlan(jobs=50)) == text(WorkloadPlan(jobs=50, seed=0))
    assert text(WorkloadPlan(jobs=50, seed=1)) != text(WorkloadPlan(jobs=50, seed=0))


def test_shares_and_users_are_as_planned() -> None:
    """Users follow Zipf: the first has twice the jobs of the second, k times those of the k-th."""
    plan = WorkloadPlan(jobs=20_000, users=5, failure_share=0.2, preemptible_share=0.3)
    jobs = GeneratedLog.of(plan).jobs
    assert sum(job.failed for job in jobs) / 20_000 == pytest.approx(0.2, abs=0.01)
    assert sum(job.queue == 2 for job in jobs) / 20_000 == pytest.approx(0.3, abs=0.01)
    counts = Counter(job.user for job in jobs)
    assert sorted(counts) == [1, 2, 3, 4, 5]
    for rank in range(2, 6):
        assert counts[1] / counts[rank] == pytest.approx(rank, rel=0.12)


def test_one_share_changes_nothing_else_of_the_log() -> None:
    """Sizes, run times and arrivals have streams of their own."""
    few, many = (
        GeneratedLog.of(WorkloadPlan(jobs=200, failure_share=share)).jobs for share in (0.0, 0.9)
    )
    assert [(j.submit_s, j.run_s, j.size) for j in few] == [
        (j.submit_s, j.run_s, j.size) for j in many
    ]
    assert not any(job.failed for job in few)


@pytest.mark.parametrize("load", [0.5, 1.2])
def test_the_load_is_what_was_asked_for(load: float) -> None:
    """Core seconds asked for, over those of the machine until the last submit."""
    plan = WorkloadPlan(jobs=3000, load=load)
    jobs = GeneratedLog.of(plan).jobs
    offered = sum(job.size * job.run_s for job in jobs) / plan.processors / jobs[-1].submit_s
    assert offered == pytest.approx(load, rel=0.1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"jobs": 0},
        {"jobs": 10**9},
        {"nodes": 0},
        {"cores": -1},
        {"users": 0},
        {"load": 1e-300},
        {"load": 1e300},
        {"failure_share": 1.5},
        {"failure_share": math.nan},
        {"preemptible_share": -0.1},
        {"load": 0.0},
        {"load": math.inf},
        {"seed": -1},
    ],
)
def test_a_plan_that_cannot_be_made_is_refused(wrong: dict[str, float]) -> None:
    """One line that names the number."""
    with pytest.raises(InputError) as refusal:
        WorkloadPlan(**wrong)
    assert str(next(iter(wrong.values()))) in str(refusal.value)


def test_failures_read_back_as_they_were_made() -> None:
    """In the columns that the reader of real records wants."""
    plan = FailurePlan(nodes=20, cores=4, until_s=90 * 86_400.0, mean_s=10 * 86_400.0)
    made = GeneratedFailures.of(plan)
    read = parse_failures(made.lines(), name="made")
    assert read.skipped == ()
    first = made.failures[0][0]
    assert sorted((f.after, f.length, f.node) for f in read.failures) == [
        ((minute - first) * 60 * NANOS, away * 60 * NANOS, node)
        for minute, away, node in made.failures
    ]
    # A renewal process in equilibrium would have 180; Weibull clocks that start new have more.
    assert 150 < len(made.failures) < 260
    assert len({node for _, _, node in made.failures}) >= 18


def test_failures_too_close_together_are_refused() -> None:
    """A node that fails faster than each minute is no node."""
    with pytest.raises(InputError, match="mean time between failures"):
        FailurePlan(nodes=1, cores=1, until_s=1.0, mean_s=0.0)
