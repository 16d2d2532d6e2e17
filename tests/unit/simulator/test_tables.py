"""Tables for other programs: columns, exact times, the same bytes again."""

import csv
import json
from pathlib import Path

import pytest

from pyresched.report.records import (
    JobCounts,
    JobEnd,
    JobRecord,
    LineCounts,
    RunRecord,
    SimulationResult,
    SkippedLine,
    Summary,
    WaitSeconds,
)
from pyresched.simulator.tables import seconds_text, write_tables

SUMMARY = Summary(
    log="log.swf",
    seed=0,
    jobs=JobCounts(total=1, succeeded=1, failed=0, cancelled=0, refused=0),
    attempts=1,
    runs=1,
    reschedules=0,
    restarts=0,
    preemptions=0,
    nodes=1,
    cores=2,
    nodes_lost=0,
    runs_lost=0,
    runs_failed=0,
    makespan_s=1.5,
    utilisation=0.25,
    wait_s=WaitSeconds(mean=1.0, median=None, p95=2.0),
    slowdown=None,
    slowdown_median=None,
    jain=1.0,
    cycles=3,
    lines=LineCounts(read=2, skipped=1),
)
RESULT = SimulationResult(
    log="log.swf",
    started_at=0,
    ended_at=10,
    resources=("cpu",),
    nodes=(),
    jobs=(
        JobRecord(
            id="7",
            queue='odd "queue", 1',
            submitted_at=1_500_000_000,
            started_at=None,
            ended_at=3_000_000_000,
            end=JobEnd.REFUSED,
            reason="why",
        ),
    ),
    runs=(RunRecord(id="run-1", job_id="7", node_id="n1", started_at=1, queue="q"),),
    outages=(),
    samples=(),
    skipped_lines=(SkippedLine(file="log.swf", number=3, reason="is odd"),),
    summary=SUMMARY,
)


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (None, ""),
        (0, "0"),
        (10 * 10**9, "10"),
        (1_500_000_000, "1.5"),
        (1, "0.000000001"),
        (-1_500_000_000, "-1.5"),
        (2**62, "4611686018.427387904"),
    ],
)
def test_seconds_are_exact(at: int | None, text: str) -> None:
    """No binary fraction, no exponent, no zeros that say nothing."""
    assert seconds_text(at) == text


def test_rows_have_the_columns_that_users_rely_on(tmp_path: Path) -> None:
    """The promised ones first, in their order."""
    write_tables(RESULT, tmp_path)
    with (tmp_path / "jobs.csv").open(newline="") as file:
        (job,) = csv.DictReader(file)
    assert list(job)[:8] == [
        *("id", "queue", "submitted_s", "started_s", "ended_s", "state", "runs", "reason"),
    ]
    assert list(job.values())[:8] == ["7", 'odd "queue", 1', "1.5", "", "3", "refused", "0", "why"]
    with (tmp_path / "runs.csv").open(newline="") as file:
        (run,) = csv.DictReader(file)
    assert list(run)[:7] == [
        *("id", "job_id", "node_id", "started_s", "ended_s", "outcome", "reason"),
    ]
    assert list(run.values())[:7] == ["run-1", "7", "n1", "0.000000001", "", "", ""]
    assert (tmp_path / "skipped.csv").read_text() == "file,line,reason\nlog.swf,3,is odd\n"


def test_the_summary_has_the_promised_keys(tmp_path: Path) -> None:
    """Nested as they were promised, None as null."""
    write_tables(RESULT, tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    ends = ("succeeded", "failed", "cancelled", "refused", "unfinished")
    assert summary["jobs"] == {"total": 1} | dict.fromkeys(ends, 0) | {"succeeded": 1}
    assert summary["wait_s"] == {"mean": 1.0, "median": None, "p95": 2.0}
    assert summary["lines"] == {"read": 2, "skipped": 1}
    assert set(summary) >= {
        *("runs", "reschedules", "preemptions", "nodes_lost", "makespan_s", "utilisation"),
        *("slowdown", "jain"),
    }


def test_the_same_result_gives_the_same_bytes(tmp_path: Path) -> None:
    """In every file, with LF as line end."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_tables(RESULT, tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == ["jobs.csv", "runs.csv", "skipped.csv", "summary.json"]
    for name in files:
        first = (tmp_path / "a" / name).read_bytes()
        assert first == (tmp_path / "b" / name).read_bytes()
        assert b"\r" not in first
