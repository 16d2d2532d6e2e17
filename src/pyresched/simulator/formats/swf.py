"""Standard Workload Format: logs of real clusters, one job a line, to jobs that can be replayed.

Owns every trap of the format: missing values (-1), floats, headers with mixed line ends, jobs
cancelled or run in parts. A line that cannot be used is kept with its number, never fatal.
Format: Feitelson, Tsafrir, Krakov, "Experience with using the Parallel Workloads Archive",
J. Parallel Distrib. Comput. 74(10), 2014, and the archive's page of the format (version 2.2).

    1 job  2 submit s  3 wait s  4 run s  5 processors allocated  6 mean cpu s  7 kB used
    8 processors requested  9 requested s  10 requested kB per processor  11 status
    12 user  13 group  14 executable  15 queue  16 partition  17 preceding job  18 think s
"""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pyresched.errors import InputError
from pyresched.model import NANOS, Duration, Instant
from pyresched.report.records import SkippedLine
from pyresched.simulator.formats.lines import shown, text_lines

__all__ = ["Ending", "LogJob", "WorkloadLog", "parse_swf", "read_swf"]

FIELD_COUNT: Final = 18
_MISSING: Final = -1
# Past these no arithmetic in int64 nanoseconds is safe: 126 years after the start of the log
# (room for Unix time), 31 years of run time.
_LATEST_S: Final = 4_000_000_000
_LONGEST_S: Final = 1_000_000_000
_MOST_CORES: Final = 1_000_000_000
_LARGEST: Final = 10**18
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?")
_HEADER: Final = re.compile(r";\s*(?P<key>[A-Za-z][A-Za-z ]*?)\s*:\s*(?P<value>.*?)\s*")
_HEADER_NUMBER: Final = re.compile(r"0*[1-9][0-9]{0,8}")
_QUEUE_LINE: Final = re.compile(r"(?P<queue>[0-9]+)\b(?P<text>.*)")
_PREEMPTIBLE: Final = re.compile(
    r"best-?effort|(?<!not )(?<!non-)\bpreemptible|be preempted", re.IGNORECASE
)


class Ending(Enum):
    """How a job ended by its log."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class _Status(Enum):
    """Field 11. -1 is what logs write that do not know: the job is taken to have completed."""

    UNKNOWN = -1
    FAILED = 0
    COMPLETED = 1
    PART = 2  # ran in parts: this one was to be continued
    LAST_PART_COMPLETED = 3
    LAST_PART_FAILED = 4
    CANCELLED = 5


_ENDING: Final[Mapping[_Status, Ending]] = {
    _Status.UNKNOWN: Ending.COMPLETED,
    _Status.FAILED: Ending.FAILED,
    _Status.COMPLETED: Ending.COMPLETED,
    _Status.PART: Ending.COMPLETED,
    _Status.LAST_PART_COMPLETED: Ending.COMPLETED,
    _Status.LAST_PART_FAILED: Ending.FAILED,
    _Status.CANCELLED: Ending.CANCELLED,
}
_PARTS: Final = frozenset({_Status.PART, _Status.LAST_PART_COMPLETED, _Status.LAST_PART_FAILED})


class LogJob(Struct, frozen=True, kw_only=True, gc=False):
    """One job of a log. Times in ns on the log's axis; `memory_kb` is for each core.

    `run_time` None: it was cancelled before it ran, `wait` after its submit. `user`,
    `queue` and `memory_kb` are None where the log does not say.
    """

    number: int
    line: int
    submitted_at: Instant
    wait: Duration = 0
    run_time: Duration | None
    cores: int
    memory_kb: int | None = None
    ending: Ending = Ending.COMPLETED
    user: int | None = None
    queue: int | None = None


class WorkloadLog(Struct, frozen=True, kw_only=True):
    """A log as read: `jobs` by submit time, then by line; what its header says; what was skipped.

    `lines_read` counts the lines that stand for a job, usable or not. `preemptible_queues` are
    the queue numbers whose header line says that their jobs give way to others.
    """

    name: str
    jobs: tuple[LogJob, ...]
    lines_read: int
    skipped: tuple[SkippedLine, ...] = ()
    header: Mapping[str, str] = {}
    preemptible_queues: frozenset[int] = frozenset()

    @property
    def first_submit(self) -> Instant:
        """When its first job came."""
        return self.jobs[0].submitted_at

    def header_number(self, key: str) -> int | None:
        """The whole number above 0 that the header gives under *key*, or None if it gives none.

        Raises InputError for anything else that stands there.
        """
        text = self.header.get(key.lower(), "").partition(" ")[0]
        if not text or text in ("-1", "0"):
            return None
        if not _HEADER_NUMBER.fullmatch(text):
            raise InputError(
                f"{self.name}: its header says {key}: {shown(text)}; write a whole number from 1 "
                "to 999999999, or give nodes such as 100x12"
            )
        return int(text)


class _Unusable(Exception):
    """Why a line cannot be used."""


class _Row(NamedTuple):
    """A line whose numbers make sense by themselves."""

    job: LogJob
    status: _Status


def read_swf(path: str | Path) -> WorkloadLog:
    """The log in the file *path* (`.swf`, packed by gzip or not).

    Raises InputError for a file that is missing, a folder, empty, not text or damaged, and for
    one in which no line can be used.
    """
    path = Path(path)
    return parse_swf(text_lines(path, kind="a workload log"), name=str(path))


def parse_swf(lines: Iterable[str], *, name: str) -> WorkloadLog:
    """The log that *lines* hold; *name* stands for it in messages. Raises InputError."""
    header: dict[str, str] = {}
    preemptible: set[int] = set()
    skipped: list[SkippedLine] = []
    rows: dict[int, _Row] = {}
    read = 0
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if text.startswith(";"):
            _take_header(text, header, preemptible)
        elif text:
            read += 1
            try:
                row = _row(text, number)
                before = rows.get(row.job.number)
                rows[row.job.number] = row if before is None else _joined(before, row)
            except _Unusable as reason:
                skipped.append(SkippedLine(file=name, number=number, reason=str(reason)))
    if not rows:
        raise InputError(_nothing_usable(name, skipped))
    jobs = sorted((row.job for row in rows.values()), key=lambda job: (job.submitted_at, job.line))
    return WorkloadLog(
        name=name,
        jobs=tuple(jobs),
        lines_read=read,
        skipped=tuple(skipped),
        header=header,
        preemptible_queues=frozenset(preemptible),
    )


def _nothing_usable(name: str, skipped: list[SkippedLine]) -> str:
    if not skipped:
        return f"{name}: holds no job; name a log in Standard Workload Format"
    first = skipped[0]
    return (
        f"{name}: none of its {len(skipped)} lines can be used (line {first.number}: "
        f"{first.reason}); name a log in Standard Workload Format"
    )


def _take_header(text: str, header: dict[str, str], preemptible: set[int]) -> None:
    match = _HEADER.fullmatch(text)
    if match is None:
        return
    key = match["key"].lower()
    header.setdefault(key, match["value"])
    queue = _QUEUE_LINE.fullmatch(match["value"]) if key == "queue" else None
    if queue is not None and _PREEMPTIBLE.search(queue["text"]):
        preemptible.add(int(queue["queue"][:9]))


def _row(text: str, line: int) -> _Row:
    fields = text.split()
    if len(fields) != FIELD_COUNT:
        raise _Unusable(f"has {len(fields)} fields instead of {FIELD_COUNT}")
    status = _status(fields[10])
    run_time = _seconds(fields, 4, "run time", most=_LONGEST_S)
    wait = _seconds(fields, 3, "wait time", most=_LATEST_S)
    if run_time is None and status is not _Status.CANCELLED:
        raise _Unusable("run time (field 4) is missing")
    if status is _Status.CANCELLED and run_time == 0:
        run_time = None
    submitted = _seconds(fields, 2, "submit time", most=_LATEST_S)
    if submitted is None:
        raise _Unusable("submit time (field 2) is missing")
    # What a job asked for; what it got is the next best guess at that.
    cores = _whole(fields, 8, "processors requested") or _whole(fields, 5, "processors allocated")
    if not cores:
        raise _Unusable("processors requested and allocated (fields 8 and 5) are both missing")
    if cores > _MOST_CORES:
        raise _Unusable(f"processors {cores} are more than {_MOST_CORES}")
    number = _whole(fields, 1, "job number")
    if number is None:
        raise _Unusable("job number (field 1) is missing")
    job = LogJob(
        number=number,
        line=line,
        submitted_at=submitted,
        wait=wait or 0,
        run_time=run_time,
        cores=cores,
        memory_kb=_whole(fields, 10, "requested memory") or None,
        ending=_ENDING[status],
        user=_whole(fields, 12, "user"),
        queue=_whole(fields, 15, "queue"),
    )
    return _Row(job, status)


def _joined(before: _Row, row: _Row) -> _Row:
    """What two lines of one job number say together; `before` stands for the earlier ones.

    A job that ran in parts has a line for each of them, and often one before them for the whole.
    """
    job, first = row.job, before.job
    if row.status in _PARTS and before.status in _PARTS:
        if before.status is not _Status.PART:
            raise _Unusable(f"job {job.number} has its last part in line {first.line} already")
        run_time = (first.run_time or 0) + (job.run_time or 0)
        if run_time > _LONGEST_S * NANOS:
            raise _Unusable(f"the parts of job {job.number} run longer than {_LONGEST_S} s")
        return _Row(replace(first, run_time=run_time, ending=job.ending), row.status)
    if row.status in _PARTS:
        raise _Unusable(f"is a part of job {job.number}, which line {first.line} has as a whole")
    raise _Unusable(f"job number {job.number} stands in line {first.line} already")


def _status(text: str) -> _Status:
    value = _decimal(text, 11, "status")
    try:
        return _Status(int(value) if value == value.to_integral_value() else value)
    except ValueError:
        raise _Unusable(f"status (field 11) is {shown(text)}, not one of -1 to 5") from None


def _decimal(text: str, field: int, name: str) -> Decimal:
    if _NUMBER.fullmatch(text) is None:
        raise _Unusable(f"{name} (field {field}) is {shown(text)}, not a number")
    try:
        return Decimal(text)
    except InvalidOperation:  # pragma: no cover - the pattern lets nothing of that kind through
        raise _Unusable(f"{name} (field {field}) is {shown(text)}, not a number") from None


def _scaled(fields: list[str], field: int, name: str, *, factor: int) -> Decimal | int | None:
    """The value of a field times *factor*, None where it is missing."""
    text = fields[field - 1]
    # Nearly all fields are plain whole numbers; `isdigit` alone would take other scripts' digits.
    if text.isascii() and text.isdigit() and len(text) < 19:  # noqa: PLR2004 - digits of an int64
        return int(text) * factor
    value = _decimal(text, field, name)
    if value == _MISSING:
        return None
    if value < 0:
        raise _Unusable(f"{name} (field {field}) is {shown(text)}, below 0")
    return value * factor


def _seconds(fields: list[str], field: int, name: str, *, most: int) -> Duration | None:
    value = _scaled(fields, field, name, factor=NANOS)
    if value is None:
        return None
    if value > most * NANOS:
        raise _Unusable(f"{name} (field {field}) is past {most} s")
    return value if isinstance(value, int) else round(value)


def _whole(fields: list[str], field: int, name: str) -> int | None:
    value = _scaled(fields, field, name, factor=1)
    if isinstance(value, Decimal):
        written = shown(fields[field - 1])
        if value > _LARGEST:
            raise _Unusable(f"{name} (field {field}) is {written}, past {_LARGEST}")
        if value != value.to_integral_value():
            raise _Unusable(f"{name} (field {field}) is {written}, not a whole number")
        return int(value)
    return value
