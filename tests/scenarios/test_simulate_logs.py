"""Real logs end to end: what the project promises of them, and figures that must stay true."""

from pathlib import Path

import pytest

from kit.shared import shared_path
from kit.simulations import breaches, read_tables
from pyresched.cli.__main__ import main


def simulated(out: Path, log: str, *options: str) -> dict:
    """Run the command on a log of the shared data and return the summary."""
    path = shared_path("data", "swf", log)
    assert main(["simulate", str(path), "--out", str(out), *options]) == 0
    return read_tables(out)[2]


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result of the busiest week of Gaia with the failures of a real system."""
    out = tmp_path_factory.mktemp("week") / "out"
    failures = shared_path("data", "lanl_failures", "system20.csv")
    simulated(
        *(out, "UniLu-Gaia-2014-2.week8.swf", "--nodes", "100x12", "--failures", str(failures))
    )
    return out


def test_a_week_of_gaia_ends_and_is_accounted_for(week: Path) -> None:
    """All 2,264 jobs end in a terminal state, and each kind of trouble happened."""
    jobs, runs, summary = read_tables(week)
    assert summary["jobs"]["total"] == len(jobs) == 2264
    assert summary["jobs"]["unfinished"] == 0
    assert {job["state"] for job in jobs} <= {"succeeded", "failed", "cancelled", "refused"}
    for count in ("reschedules", "preemptions", "runs_lost"):
        assert summary[count] > 0
    assert summary["jobs"]["failed"] > 0
    # 17 outages begin before the last submit; failures go on while the last jobs run.
    assert summary["nodes_lost"] >= 17
    assert len({job["queue"] for job in jobs}) == 43
    lost = {run["node_id"] for run in runs if run["outcome"] == "lost"}
    assert 0 < len(lost) <= summary["nodes_lost"]


def test_no_node_of_the_week_is_overfull_and_no_gang_part_placed(week: Path) -> None:
    """From the tables alone, at every instant."""
    assert breaches(week, cores={f"n{number:04}": 12 for number in range(1, 101)}) == []
