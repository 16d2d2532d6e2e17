"""What must hold of any simulation, worked out from its tables alone.

Independent of the engine: rows are read back from the files that users get.
"""

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

__all__ = ["breaches", "log_text", "read_tables"]

Row = dict[str, str]
ENDS = ("succeeded", "failed", "cancelled", "refused", "unfinished")


def log_text(*jobs: dict[int, object], header: str = "; Queue: 2 preemptible\n") -> str:
    """A workload log of *jobs*: fields by number on top of one core for a minute at 0 s."""
    lines = [header]
    for number, fields in enumerate(jobs, start=1):
        plain: dict[int, object] = {1: number, 2: 0, 4: 60, 8: 1, 11: 1, 12: 7, 15: 1}
        plain |= fields
        lines.append(" ".join(str(plain.get(field, -1)) for field in range(1, 19)) + "\n")
    return "".join(lines)


def read_tables(folder: Path) -> tuple[list[Row], list[Row], dict[str, Any]]:
    """Jobs, runs and summary of the result in *folder*."""
    tables = []
    for name in ("jobs.csv", "runs.csv"):
        with (folder / name).open(newline="", encoding="utf-8") as file:
            tables.append(list(csv.DictReader(file)))
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return tables[0], tables[1], summary


def breaches(folder: Path, *, cores: dict[str, int]) -> list[str]:
    """Each thing that does not hold of the result in *folder* on nodes of *cores*, as a sentence."""
    jobs, runs, summary = read_tables(folder)
    return [
        *_overfull(runs, cores),
        *_split_gangs(jobs, runs),
        *_odd_times(jobs, runs),
        *_odd_counts(jobs, runs, summary),
    ]


def _overfull(runs: list[Row], cores: dict[str, int]) -> Iterator[str]:
    """A node holds more than it has; what ends at an instant has made room for what starts."""
    changes: defaultdict[str, list[tuple[Decimal, int]]] = defaultdict(list)
    for run in runs:
        if run["started_s"] == run["ended_s"]:
            continue
        changes[run["node_id"]].append((Decimal(run["started_s"]), int(run["cores"])))
        if run["ended_s"]:
            changes[run["node_id"]].append((Decimal(run["ended_s"]), -int(run["cores"])))
    for node, steps in sorted(changes.items()):
        held = 0
        for at, step in sorted(steps):
            held += step
            if held > cores[node]:
                yield f"node {node} holds {held} of {cores[node]} cores at {at} s"
                break


def _split_gangs(jobs: list[Row], runs: list[Row]) -> Iterator[str]:
    """An attempt at a job has all its pieces at once, from one instant on."""
    attempts: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for run in runs:
        attempts[run["job_id"], run["attempt"]].append(run)
    pieces = {job["id"]: int(job["pieces"]) for job in jobs}
    widths = {job["id"]: int(job["cores"]) for job in jobs}
    for (job, attempt), rows in sorted(attempts.items()):
        name = f"attempt {attempt} of job {job}"
        if sorted(int(row["piece"]) for row in rows) != list(range(pieces[job])):
            yield f"{name} has pieces {[row['piece'] for row in rows]} of {pieces[job]}"
        if sum(int(row["cores"]) for row in rows) != widths[job]:
            yield f"{name} has {sum(int(row['cores']) for row in rows)} cores of {widths[job]}"
        for column in ("started_s", "ended_s"):
            if len({row[column] for row in rows}) > 1:
                yield f"{name}: its pieces differ in {column}"


def _odd_times(jobs: list[Row], runs: list[Row]) -> Iterator[str]:
    """Time goes forward: submit, start, end; one attempt after the other; a full run lasts."""
    job_of = {job["id"]: job for job in jobs}
    last_end: dict[tuple[str, str], Decimal] = {}
    # A process that starts over takes its time anew; the other pieces of its gang go on meanwhile.
    restarts: Counter[tuple[str, str]] = Counter()
    for run in runs:
        restarts[run["job_id"], run["attempt"]] += int(run["restarts"])
    for job in jobs:
        times = [Decimal(job[c]) for c in ("submitted_s", "started_s", "ended_s") if job[c]]
        if times != sorted(times):
            yield f"job {job['id']}: times {times}"
        if (job["state"] == "unfinished") == bool(job["ended_s"]):
            yield f"job {job['id']} is {job['state']} and ended at {job['ended_s']!r}"
    for run in runs:
        key = (run["job_id"], run["piece"])
        start = Decimal(run["started_s"])
        if start < last_end.get(key, start):
            yield f"run {run['id']} starts before the one before it ends"
        if run["ended_s"]:
            last_end[key] = Decimal(run["ended_s"])
            lasted = Decimal(run["ended_s"]) - start
            again = restarts[run["job_id"], run["attempt"]]
            wanted = Decimal(job_of[run["job_id"]]["run_time_s"]) * (1 + again)
            odd = lasted <= wanted if again else lasted != wanted
            if run["outcome"] in ("succeeded", "failed") and odd:
                yield f"run {run['id']} {run['outcome']} after {lasted} of {wanted} s"
            if again:  # how long it waited between is for its policy to say
                continue
            # The log of a job that was cancelled before it ran has no run time.
            if lasted > wanted and job_of[run["job_id"]]["state"] != "cancelled":
                yield f"run {run['id']} lasted {lasted} s, more than the {wanted} s of its job"


def _odd_counts(jobs: list[Row], runs: list[Row], summary: dict[str, Any]) -> Iterator[str]:
    """The summary counts what the tables hold."""
    counted = {end: sum(job["state"] == end for job in jobs) for end in ENDS}
    if summary["jobs"] != counted | {"total": len(jobs)}:
        yield f"the summary has jobs {summary['jobs']}, the table {counted}"
    for key, count in (
        ("runs", len(runs)),
        ("attempts", sum(int(job["runs"]) for job in jobs)),
        ("runs_lost", sum(run["outcome"] == "lost" for run in runs)),
        ("runs_failed", sum(run["outcome"] == "failed" for run in runs)),
    ):
        if summary[key] != count:
            yield f"the summary has {key} {summary[key]}, the tables {count}"
    attempts = {(run["job_id"], run["attempt"]) for run in runs}
    if len(attempts) != summary["attempts"]:
        yield f"{len(attempts)} attempts have runs, the summary has {summary['attempts']}"
    for job in jobs:
        if (job["state"] == "refused") and (job["started_s"] or not job["reason"]):
            yield f"job {job['id']} was refused but started, or for no reason"
