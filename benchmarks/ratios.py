"""Wide gates on ratios: ours beside a rival measured in the same run, from pytest-benchmark's JSON.

    python benchmarks/ratios.py build/benchmarks.json

A ratio of two medians of one run says the same on every machine, within a factor of two or so
where another program takes the processor meanwhile. So each gate stands well above what was
measured: it catches the lost index and the copy where there was none, not a few percent, which
`instructions.py` sees. What the index and the job db must reach at their full size is in
`gates.py`, which measures by itself.
"""

import json
import sys
from pathlib import Path
from typing import NamedTuple


class Gate(NamedTuple):
    """In *group*, `ours` takes at most *most* times as long as *rival*."""

    group: str
    rival: str
    most: float
    ours: str = "ours"


GATES = (
    Gate("fairness: costs of 1,000 queues", "python", 0.1),
    Gate("fairness: costs of 1,000 queues", "python", 0.15, ours="ours singly"),
    Gate("fairness: costs of 1,000 queues", "numpy", 0.4, ours="ours on rows"),
    Gate("map: build 10,000", "immutables", 2.5),
    Gate("map: look up 10,000", "immutables", 2.5),
    Gate("map: look up 10,000, one at a time", "immutables", 3.5),
    Gate("map: 1,000 versions, 100 kept", "immutables", 0.6),
    Gate("map: 1,000 versions, 100 kept", "dict", 0.05),
    Gate("nodes: place 1,000 jobs of 50 shapes on 151", "numpy", 0.2),
    Gate("nodes: place 1,000 jobs of 50 shapes on 151", "python", 0.4, ours="ours singly"),
    Gate("nodes: place 1,000 jobs of 50 shapes on 10,000", "numpy", 0.5),
    Gate("nodes: a copy of 151 with 2,000 bindings", "anew", 0.1),
    Gate("nodes: where 1,000 alike jobs would go", "one by one", 0.6),
    Gate("nodes: 10,000 refusals of 50 shapes by 151 full nodes", "python", 0.4),
    Gate("ordered: build 10,000", "sortedcontainers", 1.0),
    Gate("ordered: walk 10,000", "sortedcontainers", 60.0),
    Gate("ordered: pop the first and put it back, 1,000 times", "sortedcontainers", 1.2),
    Gate("ordered: 10 copies to keep", "sortedcontainers", 0.001),
    Gate("round: 1,000 jobs onto 100 empty nodes", "python", 0.4),
    Gate("round: 10,000 jobs onto 1,000 empty nodes", "python", 0.8),
    Gate("round: 5,000 queued in 84 queues, none fits", "python", 2.0),
    Gate("round: 30,000 jobs of 50 shapes onto 300 empty nodes", "not committed", 8.0),
    Gate("round: 100 gangs of 32 in 20 racks of 5 nodes", "lone jobs", 8.0),
    Gate("transaction: 10,000 new rows", "dict", 80.0),
    Gate("transaction: 10,000 new rows", "python", 0.33),
    Gate("transaction: every job leased, then ended, 1,000 a commit", "python", 0.33),
    Gate("transaction: one changed row", "python", 0.66),
    Gate("transaction: one changed row, a snapshot before each", "python", 0.33),
    Gate("transaction: 1,000 state changes", "python", 0.33),
    Gate("transaction: read 10,000 rows", "dict", 7.0),
    Gate("transaction: read 10,000 rows", "python", 2.5),
    Gate("transaction: read 10,000 rows, one at a time", "python", 2.5),
    Gate("transaction: walk of all queues in order", "python", 15.0),
    Gate("transaction: diff of 100 changes", "python", 0.05),
)


def medians(report: dict) -> dict[tuple[str, str], float]:
    """Seconds by group and who did it."""
    return {
        (each["group"], each["params"]["who"]): each["stats"]["median"]
        for each in report["benchmarks"]
        if "who" in (each["params"] or {})
    }


def main(path: Path) -> int:
    """Print each gate with its ratio; 1 if one is passed or was not measured, else 0."""
    seconds = medians(json.loads(path.read_text(encoding="utf-8")))
    failed = 0
    for gate in GATES:
        ours, rival = seconds.get((gate.group, gate.ours)), seconds.get((gate.group, gate.rival))
        if ours is None or rival is None:
            verdict = "NOT MEASURED"
        else:
            verdict = f"{ours / rival:10.5f} of {gate.most:g}"
            verdict += "  TOO SLOW" if ours / rival > gate.most else ""
        failed += verdict.isupper() or verdict.endswith("SLOW")
        print(f"{gate.group}: {gate.ours} / {gate.rival}: {verdict}")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != len(("ratios.py", "path")):
        sys.exit("usage: ratios.py JSON")
    sys.exit(main(Path(sys.argv[1])))
