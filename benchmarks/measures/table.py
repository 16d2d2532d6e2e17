"""The table: each reading beside the gates that it must pass, as text for people and as JSON.

A gate counts at one size or at every size. Where it counts at another size than what was
measured, its row is shown and not judged.
"""

import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table

from measures.timing import Reading, Task

__all__ = ["Gate", "Row", "Sense", "Verdict", "amount", "as_json", "failed", "rows", "show"]


class Sense(Enum):
    """What is held against the gate."""

    FASTER = "rival / ours, at least"
    FLAT = "ours / rival, at most"
    GAIN = "ours / rival, at least"
    MOST = "ours, at most"

    def figure(self, ours: float, theirs: float) -> float:
        """The figure of a reading."""
        if self is Sense.MOST:
            return ours
        above, below = (theirs, ours) if self is Sense.FASTER else (ours, theirs)
        return above / below if below else float("inf")

    def passes(self, figure: float, limit: float) -> bool:
        """Whether *figure* is on the right side of *limit*."""
        return figure >= limit if self in {Sense.FASTER, Sense.GAIN} else figure <= limit


class Verdict(Enum):
    """What a row comes to."""

    GOAL = "goal"
    PASSED = "passed"
    MISSED = "MISSED"
    NOT_JUDGED = "not judged"
    NOT_MEASURED = "NOT MEASURED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What *kind* must reach against *rival*: the gate by the build, the goal by its authors.

    *at*: the size at which it counts; None: at every size.
    """

    kind: str
    rival: str
    gate: float
    goal: float
    sense: Sense = Sense.FASTER
    at: int | None = None

    def slackened(self, slack: float) -> "Gate":
        """The same, with a gate that a line passes which is *slack* times worse."""
        upward = self.sense in {Sense.FASTER, Sense.GAIN}
        return replace(self, gate=self.gate / slack if upward else self.gate * slack)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    kind: str
    size: int
    rival: str
    verdict: Verdict
    gate: Gate | None = None
    reading: Reading | None = None
    figure: float | None = None
    figure_collecting: float | None = None


def rows(
    tasks: Sequence[Task], readings: Iterable[Reading], gates: Iterable[Gate], *, whole: bool
) -> list[Row]:
    """Every reading under every gate that it has.

    *whole*: nothing was left out, so a gate that no task measures is a row that fails.
    """
    found = {(each.kind, each.size, each.rival): each for each in readings}
    gates = tuple(gates)
    table = [
        _row(task, rival, gate, found.get((task.kind, task.size, rival)))
        for task in tasks
        for rival in task.rivals
        for gate in _gates_of(gates, task, rival)
    ]
    measured = {(task.kind, rival) for task in tasks for rival in task.rivals}
    lost = [each for each in gates if whole and (each.kind, each.rival) not in measured]
    return table + [
        Row(
            kind=each.kind,
            size=each.at or 0,
            rival=each.rival,
            gate=each,
            verdict=Verdict.NOT_MEASURED,
        )
        for each in lost
    ]


def failed(table: Iterable[Row]) -> bool:
    """Whether a gate was missed, or one that should be there was never measured."""
    return any(row.verdict in {Verdict.MISSED, Verdict.NOT_MEASURED} for row in table)


def _gates_of(gates: Iterable[Gate], task: Task, rival: str) -> list[Gate | None]:
    """For each sense the gate of this size, else that of every size, else that of another."""
    best: dict[Sense, Gate] = {}
    for gate in gates:
        if (gate.kind, gate.rival) == (task.kind, rival):
            known = best.get(gate.sense)
            if known is None or _distance(gate, task) < _distance(known, task):
                best[gate.sense] = gate
    return [*best.values()] or [None]


def _distance(gate: Gate, task: Task) -> int:
    return 0 if gate.at == task.size else 1 if gate.at is None else 2


def _row(task: Task, rival: str, gate: Gate | None, reading: Reading | None) -> Row:
    row = Row(
        kind=task.kind,
        size=task.size,
        rival=rival,
        gate=gate,
        reading=reading,
        verdict=Verdict.NOT_MEASURED,
    )
    if reading is None:
        return row
    sense = gate.sense if gate else Sense.FASTER
    figure, collecting = sense.figure(reading.ours, reading.theirs), None
    if reading.ours_collecting is not None and reading.theirs_collecting is not None:
        collecting = sense.figure(reading.ours_collecting, reading.theirs_collecting)
    if gate is None or _distance(gate, task) > 1:
        verdict = Verdict.NOT_JUDGED
    elif not sense.passes(figure, gate.gate):
        verdict = Verdict.MISSED
    else:
        verdict = Verdict.GOAL if sense.passes(figure, gate.goal) else Verdict.PASSED
    return replace(row, figure=figure, figure_collecting=collecting, verdict=verdict)


def as_json(table: Iterable[Row], *, mode: str) -> dict[str, object]:
    """The rows as plain values: seconds, bytes, ratios."""
    return {
        "mode": mode,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "rows": [
            {
                **{name: getattr(row, name) for name in ("kind", "size", "rival")},
                "verdict": row.verdict.value,
                "figure": row.figure,
                "figure_collecting": row.figure_collecting,
                "sense": row.gate.sense.value if row.gate else Sense.FASTER.value,
                "gate": row.gate and row.gate.gate,
                "goal": row.gate and row.gate.goal,
                "gate_at": row.gate and row.gate.at,
                "reading": row.reading and asdict(row.reading),
            }
            for row in table
        ],
    }


COLUMNS: Final = ("what", "of", "ours", "rival", "its", "ratio", "GC on", "gate", "goal")
STYLES: Final = {
    Verdict.GOAL: "green",
    Verdict.MISSED: "bold red",
    Verdict.NOT_MEASURED: "bold red",
    Verdict.NOT_JUDGED: "dim",
}


def show(table: Iterable[Row], console: Console) -> None:
    """Print the table."""
    shown = Table(box=box.SIMPLE_HEAD)
    left = {"what", "rival", "verdict"}
    for name in (*COLUMNS, "verdict"):
        shown.add_column(name, justify="left" if name in left else "right", no_wrap=True)
    for row in table:
        shown.add_row(*_cells(row), style=STYLES.get(row.verdict))
    console.print(shown)


def _cells(row: Row) -> list[str]:
    reading, gate = row.reading, row.gate
    unit = reading.unit if reading else "s"
    sense = gate.sense if gate else Sense.FASTER
    limit = unit if sense is Sense.MOST else "x"
    mark = "<=" if sense in {Sense.FLAT, Sense.MOST} else ">="
    ratio = Sense.FASTER if sense is Sense.MOST else sense

    def ratio_of(ours: float | None, theirs: float | None) -> str:
        known = ours is not None and theirs is not None
        return amount(ratio.figure(ours, theirs), "x") if known else ""

    return [
        row.kind,
        f"{row.size:,}",
        amount(reading.ours, unit) if reading else "",
        row.rival,
        amount(reading.theirs, unit) if reading else "",
        ratio_of(reading.ours, reading.theirs) if reading else "",
        ratio_of(reading.ours_collecting, reading.theirs_collecting) if reading else "",
        f"{mark} {amount(gate.gate, limit)}" if gate else "",
        amount(gate.goal, limit) if gate else "",
        row.verdict.value,
    ]


def amount(value: float, unit: str) -> str:
    """Three digits with a unit that suits them."""
    scales = {
        "s": ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s")),
        "B": ((1.0, "B"), (2.0**10, "KiB"), (2.0**20, "MiB")),
        "/s": ((1.0, "/s"), (1e3, "k/s"), (1e6, "M/s")),
        "x": ((1.0, "x"),),
        "": ((1.0, ""),),
    }[unit]
    scale, name = max((each for each in scales if abs(value) >= each[0]), default=scales[0])
    scaled = value / scale
    digits = 0 if abs(scaled) >= 100 else 1 if abs(scaled) >= 10 else 2
    return f"{scaled:,.{digits}f}{'' if name in {'x', '/s', ''} else ' '}{name}"
