"""The gates judge what they should, on figures that nobody has to measure."""

import ast
import json
import re
from pathlib import Path

import pytest

import gates
from kit.repository import ROOT
from measures.table import Gate, Sense, Verdict, amount, failed, rows
from measures.timing import Reading, Task

TINY = gates.Scale(
    name="tiny",
    ids=(1_000,),
    keys=(1_000,),
    jobs=2_000,
    lookups=512,
    changes=50,
    commits=20,
    asked=2_000,
    placed=500,
    nodes=50,
    many_nodes=80,
    held_nodes=5,
    gang_nodes=3,
    full_nodes=(4,),
    round_jobs=500,
    round_queues=4,
    round_nodes=5,
    round_many_nodes=20,
    round_full_nodes=20,
    round_gangs=5,
    round_compared=200,
    repetitions=1,
)
GATE = Gate(kind="get", rival="dict", gate=2, goal=4)


def task(*ratios, kind="get", rival="dict", size=10):
    """A task that finds the rival slower by each of *ratios*, one after the other."""
    left = list(ratios)

    def measure(_):
        reading = Reading(kind=kind, size=size, rival=rival, ours=1.0, theirs=float(left.pop(0)))
        return [reading]

    return Task(kind=kind, size=size, rivals=(rival,), measure=measure)


def judged(table_gates, *tasks, whole=False):
    """The verdicts on *tasks*, each measured once."""
    readings = [reading for each in tasks for reading in each.measure(1)]
    return [row.verdict for row in rows(tasks, readings, table_gates, whole=whole)]


class Plan:
    """A section of made-up tasks."""

    def __init__(self, *tasks):
        self._tasks = tasks

    def tasks(self):
        return list(self._tasks)


@pytest.fixture(autouse=True)
def _no_checks(monkeypatch):
    """The checkers at each commit would take minutes."""
    monkeypatch.delenv("PYRESCHED_CHECK", raising=False)


@pytest.fixture
def measuring(monkeypatch):
    """Puts made-up tasks in place of the real ones."""

    def measuring(*tasks):
        monkeypatch.setattr(gates, "sections", lambda _: iter([lambda: Plan(*tasks)]))

    return measuring


@pytest.mark.parametrize("outcome", [(1.9, "MISSED", 1), (2.1, "passed", 0), (4.0, "goal", 0)])
def test_a_missed_gate_is_seen_outside(measuring, capsys, tmp_path, outcome):
    """In the status of the program, its table and its JSON."""
    ratio, verdict, status = outcome
    measuring(task(ratio, ratio))
    report = tmp_path / "gates.json"
    assert gates.main(["--json", str(report)], gates=[GATE]) == status
    assert verdict in capsys.readouterr().out
    (row,) = json.loads(report.read_text())["rows"]
    assert (row["verdict"], row["figure"], row["gate"]) == (verdict, ratio, 2)


def test_what_misses_is_measured_once_more(measuring):
    """And no third time."""
    measuring(task(1.0, 3.0))
    assert gates.main([], gates=[GATE]) == 0
    measuring(task(1.0, 1.0, 3.0))
    assert gates.main([], gates=[GATE]) == 1


def test_a_gate_that_nothing_measures_fails(measuring):
    """A line that is lost would pass for ever; one that was left out on purpose does not count."""
    measuring(task(3, kind="put"))
    assert gates.main([], gates=[GATE]) == 1
    measuring(task(3, kind="put"))
    assert gates.main(["--only", "put"], gates=[GATE]) == 0


def test_a_gate_counts_at_its_own_size():
    """The gate of that size goes before that of all; that of another size judges nothing."""
    at = {size: Gate(kind="get", rival="dict", gate=9, goal=9, at=size) for size in (10, 99)}
    assert judged([at[10], GATE], task(3)) == [Verdict.MISSED]
    assert judged([GATE, at[99]], task(3)) == [Verdict.PASSED]
    assert judged([at[99]], task(3)) == [Verdict.NOT_JUDGED]
    assert judged([], task(3)) == [Verdict.NOT_JUDGED]


@pytest.mark.parametrize(
    ("sense", "passing", "failing"),
    [
        (Sense.FASTER, (1.0, 2.0), (1.0, 1.9)),
        (Sense.GAIN, (2.0, 1.0), (1.9, 1.0)),
        (Sense.FLAT, (2.0, 1.0), (2.1, 1.0)),
        (Sense.MOST, (2.0, 0.1), (2.1, 9.0)),
    ],
)
def test_each_sense_has_its_side(sense, passing, failing):
    """Ours and theirs against a gate of two."""
    assert sense.passes(sense.figure(*passing), 2)
    assert not sense.passes(sense.figure(*failing), 2)


def test_a_gate_may_be_two():
    """A ratio and a limit on the same reading are two rows, and either fails."""
    limit = Gate(kind="get", rival="dict", gate=0.5, goal=0.1, sense=Sense.MOST)
    assert judged([GATE, limit], task(5)) == [Verdict.GOAL, Verdict.MISSED]


@pytest.mark.parametrize("scale", [gates.FULL, gates.QUICK], ids=lambda scale: scale.name)
def test_every_gate_has_a_task(scale):
    """Of its kind and rival; in full also of its size."""
    planned = [task for make in gates.sections(scale) for task in make().tasks()]
    found = {(each.kind, rival, each.size) for each in planned for rival in each.rivals}
    pairs = {(kind, rival) for kind, rival, _ in found}
    assert {(gate.kind, gate.rival) for gate in gates.GATES} <= pairs
    if scale is gates.FULL:
        sized = {(gate.kind, gate.rival, gate.at) for gate in gates.GATES if gate.at}
        assert sized <= found


def test_everything_can_be_measured():
    """At a size that says nothing about speed: every line gives a figure above zero."""
    tasks, readings = gates.measured(TINY, lambda _: True, (), lambda _: None)
    table = rows(tasks, readings, gates.GATES, whole=True)
    assert [row.kind for row in table if row.verdict is Verdict.NOT_MEASURED] == []
    assert [each for each in readings if min(each.ours, each.theirs) < 0] == []
    assert [
        each for each in readings if each.unit == "s" and min(each.ours, each.theirs) <= 0
    ] == []


@pytest.mark.parametrize(
    "wrong",
    [
        ["--only", "no such line"],
        ["--only", "("],
        ["--json", "no/such/folder/gates.json"],
        ["--slow"],
        ["gates"],
    ],
)
def test_wrong_arguments_are_one_line(capsys, wrong):
    """With status 2."""
    with pytest.raises(SystemExit) as stopped:
        gates.main(["--quick", *wrong])
    assert stopped.value.code == 2
    captured = capsys.readouterr()
    assert len(captured.err.splitlines()) == 1
    assert wrong[-1].split("/")[0].strip("-") in captured.err
    assert captured.out == ""


def test_gates_ask_what_users_can_ask():
    """No file that the gates are made of, nor the rival, names the native modules."""
    folder = ROOT / "benchmarks"
    files = [
        folder / "gates.py",
        folder / "workloads.py",
        *(folder / "measures").glob("*.py"),
        *(folder / "rivals").glob("*.py"),
    ]
    assert len(files) > 10
    assert {path.name for path in files if native_names(path)} == set()


def native_names(path: Path) -> list[str]:
    """Imports, attributes and texts of a file with `_core` in them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [
        text
        for node in ast.walk(tree)
        for field in ("module", "name", "attr", "id", "value")
        if isinstance(text := getattr(node, field, None), str)
    ]
    return [name for name in names if re.search(r"\b_core\b", name)]


@pytest.mark.parametrize(
    "source",
    [
        "from pyresched._core import JobStore",
        "import pyresched._core.jobs",
        "import pyresched\npyresched._core.JobStore",
        "import_module('pyresched._core')",
        "from pyresched import _core",
    ],
)
def test_a_native_name_is_found(tmp_path, source):
    """Negative control."""
    path = tmp_path / "bench.py"
    path.write_text(source)
    assert native_names(path)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (3.14e-8, "s", "31.4 ns"),
        (0.0000123, "s", "12.3 us"),
        (1.5, "s", "1.50 s"),
        (128, "B", "128 B"),
        (3 * 2**20, "B", "3.00 MiB"),
        (4.5, "x", "4.50x"),
        (2e6, "/s", "2.00 M/s"),
        (0, "", "0.00"),
    ],
)
def test_amounts_are_written_for_people(value, unit, text):
    """Three digits and a unit that suits."""
    assert amount(value, unit) == text


def test_failed_is_about_gates_alone():
    """What has no gate fails nothing; a task of which nothing came fails."""
    assert not failed(rows([task()], task(1).measure(1), [], whole=True))
    assert failed(rows([task()], [], [GATE], whole=True))


@pytest.mark.parametrize(("sense", "figure"), [(Sense.FASTER, 2.1), (Sense.MOST, 3.9)])
def test_slack_lets_a_line_be_so_much_worse(sense: Sense, figure: float) -> None:
    """In the direction in which the line is judged, and no further."""
    gate = Gate(kind="k", rival="r", gate=4 if sense is Sense.FASTER else 2, goal=9, sense=sense)
    assert not sense.passes(figure, gate.gate)
    assert sense.passes(figure, gate.slackened(2).gate)
    assert not sense.passes(figure, gate.slackened(1.5).gate)
