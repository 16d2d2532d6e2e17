"""`pyresched simulate`: a log through the scheduler, with a bar while it runs and a table after.

Relies on `pyresched.simulator` for all that is computed. Results on stdout, remarks on stderr.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from pyresched import report
from pyresched.cli.options import duration, queue_numbers
from pyresched.errors import InputError, MissingExtra
from pyresched.model import NANOS
from pyresched.report.records import SimulationResult, SkippedLine, Summary
from pyresched.scheduling import Arguments
from pyresched.scheduling import save_round as write_round
from pyresched.simulator.checks import Checks
from pyresched.simulator.engine import Moment
from pyresched.simulator.placing import Existing, check_target, new_folder
from pyresched.simulator.simulation import simulate as run_simulation
from pyresched.simulator.tables import SKIPPED_FILE, summary_json, write_tables

__all__ = ["simulate"]

_NAMED_LINES: Final = 5
_REDRAW_S: Final = 0.1

Watcher = Callable[[Moment], None]


def simulate(
    log: Annotated[
        Path, typer.Argument(help="Workload log: .swf, or .swf.gz.", show_default=False)
    ],
    nodes: Annotated[
        str | None,
        typer.Option(help="Nodes and cores of each, such as 100x12. [default: the log's header]"),
    ] = None,
    node_file: Annotated[
        Path | None, typer.Option(help="Nodes from a file (TOML, YAML, JSON) instead.")
    ] = None,
    failures: Annotated[
        Path | None,
        typer.Option(help="Node failures: CSV in the columns of the Los Alamos records."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Configuration of the scheduler (TOML, YAML, JSON).")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(help="Stop so long after the first submit: 36h, or seconds."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides what fails again; 0 is a seed.")] = 0,
    cycle: Annotated[str, typer.Option(help="Least time between two scheduling cycles.")] = "10s",
    preemptible_queue: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N",
            help="Queue number of the log whose jobs give way; again for more; or none. "
            "[default: what the log's header says]",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for tables, pictures and report.html.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files of --out.")] = False,
    save_round: Annotated[
        tuple[int, Path] | None,
        typer.Option(
            metavar="N FILE", help="Save the N-th round, for pyresched replay and explain."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Check every invariant after each step (slow).")
    ] = False,
) -> None:
    """Run the log of a real cluster, or a made one, through the scheduler.

    Users of the log are queues, processors are requests; a job wider than a node runs as a gang
    of pieces, all or none. A job that failed in the log fails at its run time and is rescheduled
    as its policy says. The same seed gives the same bytes.

    **Examples**

    `pyresched simulate cluster.swf.gz --nodes 100x12 --out result`

    `pyresched simulate cluster.swf --failures failures.csv --config pyresched.toml --json`

    `pyresched simulate cluster.swf --until 24h --cycle 30s --seed 7`
    """
    existing = Existing.REPLACE if force else Existing.REFUSE
    if out is not None:
        check_target(out, existing)
    saver = None if save_round is None else _Saver(*save_round, existing)
    with _progress() as on_cycle:
        result = run_simulation(
            log,
            nodes=nodes,
            node_file=node_file,
            failures=failures,
            config=config,
            until=None if until is None else duration(until, option="--until"),
            seed=seed,
            cycle=duration(cycle, option="--cycle"),
            preemptible_queues=queue_numbers(preemptible_queue or (), option="--preemptible-queue"),
            checks=Checks.EVERY_STEP if check else Checks.NEVER,
            on_cycle=on_cycle,
            on_round=saver,
        )
    for line in _remarks(result, out):
        print(f"pyresched: {line}", file=sys.stderr)
    if out is not None:
        _write(result, out, existing)
    if json:
        print(summary_json(result.summary), end="")
    else:
        Console(highlight=False).print(_table(result.summary))
        if out is not None:
            print(f"Results: {out}")
    if saver is not None:
        saver.check_reached()


class _Saver:
    """Saves the round with one number, counted from 1."""

    def __init__(self, number: int, path: Path, existing: Existing) -> None:
        """Raises InputError for what could not be saved."""
        if number < 1:
            raise InputError(f"--save-round: no round has the number {number}; the first is 1")
        if existing is Existing.REFUSE and path.exists():
            raise InputError(f"{path}: is there already; choose another name, or --force")
        self._number = number
        self._path = path
        self._seen = 0

    def __call__(self, arguments: Arguments) -> None:
        """Take note of a round that is about to run."""
        self._seen += 1
        if self._seen == self._number:
            write_round(self._path, *arguments)

    def check_reached(self) -> None:
        """Raise InputError when there were fewer rounds."""
        if self._seen < self._number:
            raise InputError(
                f"--save-round: the simulation had {self._seen:,} rounds; write {self._seen} or less"
            )


def _write(result: SimulationResult, out: Path, existing: Existing) -> None:
    """Tables always; pictures where the extra that draws them is installed."""
    with new_folder(out, existing) as aside:
        write_tables(result, aside)
        try:
            report.write(result, aside)
        except MissingExtra as missing:
            print(f"pyresched: {missing}", file=sys.stderr)


@contextmanager
def _progress() -> Iterator[Watcher | None]:
    """A bar on stderr, where that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        with nullcontext():
            yield None
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("done, {task.fields[waiting]} queued, {task.fields[running]} running"),
        console=console,
        transient=True,
        auto_refresh=False,
    )
    task = bar.add_task("reading", total=None, waiting=0, running=0)
    drawn_at = 0.0

    def watch(moment: Moment) -> None:
        nonlocal drawn_at
        now = time.monotonic()
        if now - drawn_at >= _REDRAW_S:
            drawn_at = now
            bar.update(
                task,
                description=_clock(moment.now - moment.start),
                completed=moment.done,
                total=moment.total,
                waiting=moment.waiting,
                running=moment.running,
                refresh=True,
            )

    with bar:
        yield watch


def _clock(after: int) -> str:
    """Simulated time since the first submit."""
    minutes = after // NANOS // 60
    days, minutes = divmod(minutes, 24 * 60)
    return f"day {days + 1} {minutes // 60:02}:{minutes % 60:02}"


def _remarks(result: SimulationResult, out: Path | None) -> Iterator[str]:
    """What was left out or taken for granted: nothing of a log is dropped silently."""
    yield from result.notes
    by_file: dict[str, list[SkippedLine]] = {}
    for line in result.skipped_lines:
        by_file.setdefault(line.file, []).append(line)
    for file, lines in by_file.items():
        for line in lines[:_NAMED_LINES]:
            yield f"{file}: line {line.number} skipped: {line.reason}"
        if (rest := len(lines) - _NAMED_LINES) > 0:
            where = f"all in {out / SKIPPED_FILE}" if out else f"--out lists them in {SKIPPED_FILE}"
            yield f"{file}: {rest} more lines skipped; {where}"


def _table(summary: Summary) -> Table:
    """The figures that a person looks at first."""
    jobs, wait = summary.jobs, summary.wait_s
    ends = ("succeeded", "failed", "cancelled", "refused", "unfinished")
    counts = ", ".join(
        f"{count:,} {end}" for end in ends if (count := getattr(jobs, end)) or end == "succeeded"
    )
    lost = f"{summary.nodes_lost:,} ({summary.runs_lost:,} runs lost)"
    table = Table(
        show_header=False, title=f"{summary.log}, seed {summary.seed}", title_style="bold"
    )
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(justify="right")
    for name, value in (
        ("jobs", f"{jobs.total:,}: {counts}"),
        ("nodes", f"{summary.nodes:,} with {summary.cores:,} cores"),
        (
            "runs",
            f"{summary.runs:,} in {summary.attempts:,} attempts, {summary.runs_failed:,} failed",
        ),
        ("reschedules", f"{summary.reschedules:,}"),
        *([("restarts", f"{summary.restarts:,}")] if summary.restarts else []),
        ("preemptions", f"{summary.preemptions:,}"),
        ("node losses", lost),
        ("makespan", _span(summary.makespan_s)),
        ("utilisation", f"{summary.utilisation:.1%}"),
        ("wait, mean", _span(wait.mean)),
        ("wait, median", _span(wait.median)),
        ("wait, 95 %", _span(wait.p95)),
        ("bounded slowdown, mean", _number(summary.slowdown)),
        ("bounded slowdown, median", _number(summary.slowdown_median)),
        ("Jain index of service", _number(summary.jain)),
        ("scheduling cycles", f"{summary.cycles:,}"),
        ("lines of the log", f"{summary.lines.read:,} read, {summary.lines.skipped:,} skipped"),
    ):
        table.add_row(name, value)
    return table


def _span(seconds: float | None) -> str:
    """Seconds in the unit that people would use."""
    if seconds is None:
        return "-"
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.1f} s"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.3f}"
