"""Failures of real nodes, in the columns of the Los Alamos records, laid over a cluster.

Owns the reading of the file, the merging of outages that overlap, and the way from node index
to node. Data and columns: Los Alamos National Laboratory, LA-UR-05-7318, 1996-2005; studied in
Schroeder and Gibson, "A large-scale study of failures in high-performance computing systems",
DSN 2006. Times there are local, to the minute, without a zone.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from msgspec import Struct

from pyresched.errors import InputError
from pyresched.model import Duration, Instant, NodeId
from pyresched.report.records import LineCounts, Outage, SkippedLine
from pyresched.simulator.formats.lines import shown, text_lines

__all__ = ["FailureLog", "NodeFailure", "outages", "parse_failures", "read_failures"]

NODE: Final = "nodenumz"  # counts from 0; its neighbour nodenum may count from 1
STARTED: Final = "Prob Started"
FIXED: Final = "Prob Fixed"
DOWN: Final = "Down Time"
TIME_FORMAT: Final = "%m/%d/%Y %H:%M"
_MOST_NODES: Final = 10_000_000


class NodeFailure(Struct, frozen=True, kw_only=True, gc=False):
    """Node *node* (counted from 0) was away for `length` ns, `after` ns past the first failure."""

    node: int
    after: Duration
    length: Duration


class FailureLog(Struct, frozen=True, kw_only=True):
    """Failures in order of their start, then of node; what of the file could not be used."""

    name: str
    failures: tuple[NodeFailure, ...]
    lines_read: int
    skipped: tuple[SkippedLine, ...] = ()

    @property
    def lines(self) -> LineCounts:
        """Lines that stand for a failure, and those of them that could not be used."""
        return LineCounts(read=self.lines_read, skipped=len(self.skipped))


class _Unusable(Exception):
    """Why a line cannot be used."""


def read_failures(path: str | Path) -> FailureLog:
    """The failures in the CSV file *path*, packed by gzip or not.

    Raises InputError for a file that cannot be read, lacks a column or has no usable line.
    """
    path = Path(path)
    return parse_failures(text_lines(path, kind="a CSV of node failures"), name=str(path))


def parse_failures(lines: Iterable[str], *, name: str) -> FailureLog:
    """The failures that *lines* of CSV hold. Raises InputError."""
    rows = _csv_rows(lines, name)
    _, header = next(rows, (0, []))
    columns = [column.strip() for column in header]
    for wanted in (NODE, STARTED, FIXED):
        if wanted not in columns:
            raise InputError(
                f"{name}: line 1 has no column {wanted!r}; "
                f"write the columns {NODE}, {STARTED} and {FIXED}"
            )
    at = tuple(columns.index(wanted) for wanted in (NODE, STARTED, FIXED))
    down_at = columns.index(DOWN) if DOWN in columns else None
    found: list[tuple[datetime, datetime, int]] = []
    skipped: list[SkippedLine] = []
    read = 0
    for number, row in rows:
        if not any(row):
            continue
        read += 1
        try:
            found.append(_failure(row, at, down_at))
        except _Unusable as reason:
            skipped.append(SkippedLine(file=name, number=number, reason=str(reason)))
    if read and not found:
        first = skipped[0]
        raise InputError(
            f"{name}: none of its {read} failures can be used "
            f"(line {first.number}: {first.reason}); write rows as Los Alamos has them"
        )
    found.sort()
    return FailureLog(
        name=name,
        failures=tuple(
            NodeFailure(node=node, after=_ns(start - found[0][0]), length=_ns(fixed - start))
            for start, fixed, node in found
        ),
        lines_read=read,
        skipped=tuple(skipped),
    )


def outages(
    failures: Sequence[NodeFailure], nodes: Sequence[NodeId], *, start: Instant
) -> tuple[Outage, ...]:
    """When each of *nodes* is away, if the first of *failures* begins at *start*.

    Failures of node index i befall node i modulo the number of nodes. Outages of one node
    that overlap or touch are one: the node is back when the last of them ends. In order of
    loss, then of node.
    """
    merged: dict[int, list[tuple[Instant, Instant]]] = {}
    for failure in failures:  # in order of their start
        away = merged.setdefault(failure.node % len(nodes), [])
        lost, back = start + failure.after, start + failure.after + failure.length
        if away and lost <= away[-1][1]:
            lost, back = away[-1][0], max(back, away[-1][1])
            away.pop()
        away.append((lost, back))
    found = sorted((lost, index, back) for index, away in merged.items() for lost, back in away)
    return tuple(
        Outage(node_id=nodes[index], lost_at=lost, back_at=back) for lost, index, back in found
    )


def _csv_rows(lines: Iterable[str], name: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(lines)
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as broken:
        raise InputError(f"{name}: line {reader.line_num}: {broken}; write plain CSV") from broken


def _failure(
    row: list[str], at: tuple[int, ...], down_at: int | None
) -> tuple[datetime, datetime, int]:
    if len(row) <= max(at):
        raise _Unusable(f"has {len(row)} columns instead of at least {max(at) + 1}")
    node, started, fixed = (row[column].strip() for column in at)
    if not (node.isascii() and node.isdigit() and int(node[:18]) < _MOST_NODES):
        raise _Unusable(f"{NODE} is {shown(node)}, not a node counted from 0")
    start, end = _time(started, STARTED), _time(fixed, FIXED)
    if end < start:
        raise _Unusable(f"{FIXED} ({fixed}) is before {STARTED} ({started})")
    down = row[down_at].strip() if down_at is not None and down_at < len(row) else ""
    if down.startswith("-"):  # the times say how long; but they cannot be right if this is so
        raise _Unusable(f"{DOWN} is {shown(down)}, not minutes from 0 on")
    return start, end, int(node)


def _time(text: str, column: str) -> datetime:
    try:
        return datetime.strptime(text, TIME_FORMAT)  # noqa: DTZ007 - the records name no zone
    except ValueError:
        raise _Unusable(f"{column} is {shown(text)}, not a time like 12/31/2001 13:56") from None


def _ns(delta: timedelta) -> Duration:
    return delta // timedelta(microseconds=1) * 1000
