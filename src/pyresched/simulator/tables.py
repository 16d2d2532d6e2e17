"""A result as files for other programs: `jobs.csv`, `runs.csv`, `summary.json`, `skipped.csv`.

Relies on nothing but the records, so the same result gives the same bytes anywhere. Times are
seconds on the axis of the log, exact: a whole number where they are whole.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from pyresched.model import NANOS, Instant
from pyresched.report.records import JobRecord, RunRecord, SimulationResult, SkippedLine, Summary

__all__ = [
    "JOBS_FILE",
    "RUNS_FILE",
    "SKIPPED_FILE",
    "SUMMARY_FILE",
    "seconds_text",
    "summary_json",
    "write_tables",
]

JOBS_FILE: Final = "jobs.csv"
RUNS_FILE: Final = "runs.csv"
SKIPPED_FILE: Final = "skipped.csv"
SUMMARY_FILE: Final = "summary.json"

_JOB_COLUMNS: Final = (
    *("id", "queue", "submitted_s", "started_s", "ended_s", "state", "runs", "reason"),
    *("priority_class", "cores", "pieces", "run_time_s", "reschedules", "restarts"),
)
_RUN_COLUMNS: Final = (
    *("id", "job_id", "node_id", "started_s", "ended_s", "outcome", "reason"),
    *("queue", "cores", "attempt", "piece", "previous_run", "previous_node"),
    *("attempts_used", "eligible_s", "stopped", "restarts"),
)


def write_tables(result: SimulationResult, folder: Path) -> None:
    """Write the tables of *result* to *folder*, which is there."""
    _write_csv(folder / JOBS_FILE, _JOB_COLUMNS, map(_job_row, result.jobs))
    _write_csv(folder / RUNS_FILE, _RUN_COLUMNS, map(_run_row, result.runs))
    if result.skipped_lines:
        _write_csv(
            folder / SKIPPED_FILE, ("file", "line", "reason"), map(_skip_row, result.skipped_lines)
        )
    (folder / SUMMARY_FILE).write_text(summary_json(result.summary), encoding="utf-8")


def summary_json(summary: Summary) -> str:
    """*summary* as JSON for people and programs, with a line end."""
    return msgspec.json.format(msgspec.json.encode(summary), indent=2).decode() + "\n"


def seconds_text(at: Instant | None) -> str:
    """*at* in seconds, exact; nothing for None."""
    if at is None:
        return ""
    sign, rest = ("-", -at) if at < 0 else ("", at)
    whole, part = divmod(rest, NANOS)
    return f"{sign}{whole}.{part:09}".rstrip("0") if part else f"{sign}{whole}"


def _job_row(job: JobRecord) -> Sequence[object]:
    return (
        job.id,
        job.queue,
        seconds_text(job.submitted_at),
        seconds_text(job.started_at),
        seconds_text(job.ended_at),
        job.end.value,
        job.runs,
        job.reason,
        job.priority_class,
        job.cores,
        job.pieces,
        seconds_text(job.run_time),
        job.reschedules,
        job.restarts,
    )


def _run_row(run: RunRecord) -> Sequence[object]:
    return (
        run.id,
        run.job_id,
        run.node_id,
        seconds_text(run.started_at),
        seconds_text(run.ended_at),
        run.outcome,
        run.reason,
        run.queue,
        run.cores,
        run.attempt,
        run.piece,
        run.previous_run,
        run.previous_node,
        run.attempts_used,
        seconds_text(run.eligible_at),
        run.stopped,
        run.restarts,
    )


def _skip_row(line: SkippedLine) -> Sequence[object]:
    return (line.file, line.number, line.reason)


def _write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
