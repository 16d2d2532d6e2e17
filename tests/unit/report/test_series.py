"""What pictures show agrees with the records that they are made from."""

import itertools
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.results import DAY, result
from pyresched.report import series
from pyresched.report.records import SimulationResult

results = st.builds(
    result,
    st.integers(0, 10**6),
    jobs=st.integers(1, 60),
    nodes=st.integers(2, 6),
    cores=st.integers(1, 8),
)


@given(results, st.integers(1, 50))
def test_core_time_in_use_survives_binning(made: SimulationResult, bins: int) -> None:
    """The mean of the bins is the core time of the runs over that of the cluster."""
    rows = series.utilisation_rows(made, bins)
    cores = sum(node.cores for node in made.nodes)
    spent = sum((run.ended_at - run.started_at) * run.cores for run in made.runs)
    mean = sum(row["used"] for row in rows) / len(rows)
    assert mean == pytest.approx(100 * spent / (cores * made.ended_at), abs=0.02)


@given(results, st.integers(1, 50), st.integers(1, 5))
def test_every_waiting_job_is_in_one_row(made: SimulationResult, bins: int, shown: int) -> None:
    """Summed over queues, rows hold the waiting time of all jobs; few queues have a name."""
    rows = series.queue_rows(made, bins, shown)
    names = {row["queue"] for row in rows}
    days = {row["day"] for row in rows}
    width = made.ended_at / len(days) if days else 0
    waited = sum(row["jobs"] for row in rows) * width
    expected = sum(job.started_at - job.submitted_at for job in made.jobs)
    assert waited == pytest.approx(expected, rel=1e-3, abs=len(rows) * width * 1e-3)
    assert len(names) <= shown + 1
    assert len(rows) == len(names) * len(days)


@given(results)
def test_bars_cover_each_run_and_never_each_other(made: SimulationResult) -> None:
    """Bars of a node share no core at any time, and together they have each run's core time."""
    part = series.gantt_slice(made)
    cores = {node.id: node.cores for node in made.nodes}
    area: dict[str, float] = defaultdict(float)
    for bar in part["bars"]:
        area[bar["job"]] += (
            (bar["end"] - bar["start"]) * (bar["top"] - bar["bottom"]) * cores[bar["node"]]
        )
    for run in made.runs:
        spent = (run.ended_at - run.started_at) * run.cores / DAY
        assert area[run.job_id] == pytest.approx(spent, rel=1e-2, abs=1e-4)
    for one, other in itertools.combinations(part["bars"], 2):
        apart_in_time = one["end"] <= other["start"] + 1e-6 or other["end"] <= one["start"] + 1e-6
        apart_in_cores = one["top"] <= other["bottom"] + 1e-3 or (
            other["top"] <= one["bottom"] + 1e-3
        )
        assert apart_in_time or apart_in_cores


def test_a_slice_says_what_it_leaves_out_and_keeps_lost_nodes() -> None:
    """Too many nodes and runs: the title names the part, and the lost node is in it."""
    part = series.gantt_slice(result(3, jobs=300), nodes=2, bars=50)
    assert part["nodes"] == ["n001", "n002"]
    assert part["title"].startswith("What ran where: 2 of 6 nodes, day ")
    assert part["outages"] == [] or part["outages"][0]["node"] == "n002"
    assert all(part["start"] <= bar["start"] < bar["end"] <= part["end"] for bar in part["bars"])


@given(results)
def test_quartiles_are_in_order(made: SimulationResult) -> None:
    """Each queue with a started job has a row, its quartiles never descend."""
    rows = series.wait_rows(made)
    assert {row["queue"] for row in rows} == {job.queue for job in made.jobs}
    assert all(0 <= row["low"] <= row["median"] <= row["high"] <= row["p95"] for row in rows)
    assert sum(row["started"] for row in rows) == len(made.jobs)
