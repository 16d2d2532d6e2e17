"""`pyresched replay`: a saved round again, what it decides, and whether that is what it was.

Relies on `pyresched.scheduling` for all that is decided. Results on stdout.
"""

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pyresched.model import ResourceSpec, RoundResult, UnschedulableReason
from pyresched.scheduling.explanation import evidence
from pyresched.scheduling.saved import SavedRound, load_round, result_bytes
from pyresched.simulator.placing import Existing, new_file

__all__ = ["replay"]

_MOST_SHOWN: Final = 20  # rows of a table, unless all are asked for
_DIFFERENT: Final = 1


def replay(
    file: Annotated[Path, typer.Argument(help="Saved round.", show_default=False)],
    json: Annotated[
        bool, typer.Option("--json", help="Print the whole result as JSON instead.")
    ] = False,
    save_result: Annotated[
        Path | None,
        typer.Option(metavar="OUT.json", help="File for the whole result, as JSON."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Exit with 1 if it does not decide what it did when saved."),
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Show every job, not the first 20 of a table.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file OUT.json.")] = False,
) -> None:
    """Run a saved round again and show what it decides.

    The same file gives the same bytes on any machine. Rounds are saved by `simulate
    --save-round`, by `Scheduler.save_round` and by `pyresched.save_round`.

    **Examples**

    `pyresched replay slow.round`

    `pyresched replay slow.round --check`

    `pyresched replay slow.round --json | jq .refused_by_code`
    """
    saved = load_round(file)
    result, _ = saved.run()
    content = result_bytes(result)
    if save_result is not None:
        existing = Existing.REPLACE if force else Existing.REFUSE
        new_file(save_result, [content.decode()], existing)
    if json:
        print(content.decode(), end="")
    else:
        console = Console(highlight=False)
        for table in _tables(saved, result, most=None if every else _MOST_SHOWN):
            console.print(table)
    if check:
        _compare(saved, hashlib.sha256(content).hexdigest(), str(file))


def _compare(saved: SavedRound, digest: str, name: str) -> None:
    """Say whether the result is the one that was saved; leave with 1 if not."""
    if digest == saved.digest:
        print(f"pyresched: {name}: decides what it did when it was saved", file=sys.stderr)
        return
    print(
        f"pyresched: {name}: decides otherwise than when pyresched {saved.saved_by} saved it: "
        f"SHA-256 of the result {digest[:16]}..., then {saved.digest[:16]}...",
        file=sys.stderr,
    )
    raise typer.Exit(_DIFFERENT)


def _tables(saved: SavedRound, result: RoundResult, *, most: int | None) -> Iterator[Table]:
    """What a person asks of a round: who got what, who gave way to whom, who waits and why."""
    inputs = saved.inputs
    head = Table(
        show_header=False, title=f"round over pool {escape(result.pool)}", title_style="bold"
    )
    head.add_column(style="cyan", no_wrap=True)
    head.add_column(justify="right")
    nodes = sum(node.pool == inputs.pool for node in inputs.nodes)
    for name, value in (
        ("nodes", f"{nodes:,}"),
        ("queues", f"{len(inputs.queues):,}"),
        ("scheduled", f"{len(result.scheduled):,}"),
        ("moved", f"{len(result.moved):,}"),
        ("preempted", f"{len(result.preempted):,}"),
        ("refused", f"{len(result.refused):,}"),
        ("passes", f"{result.passes:,}"),
        ("ended", result.termination.value.replace("_", " ")),
    ):
        head.add_row(name, value)
    yield head
    yield from _table(
        "scheduled",
        ("job", "node", "priority", "method"),
        ((p.job_id, p.node_id, f"{p.priority}", p.method.value) for p in result.scheduled),
        most=most,
    )
    yield from _table(
        "moved",
        ("job", "from", "to", "for", "why"),
        ((m.job_id, m.from_node_id, m.node_id, m.for_job_id, m.reason.value) for m in result.moved),
        most=most,
    )
    yield from _table(
        "preempted",
        ("job", "node", "for", "why"),
        ((p.job_id, p.node_id, p.for_job_id, p.reason.value) for p in result.preempted),
        most=most,
    )
    yield from _table(
        "refused",
        ("reason", "jobs", "such as"),
        _refused(result, inputs.config.spec),
        most=None,
    )
    yield from _table(
        "shares of the pool",
        ("queue", "weight", "fair", "adjusted", "protected", "asks for", "before", "after"),
        _shares(result),
        most=most,
    )


def _refused(result: RoundResult, spec: ResourceSpec) -> Iterator[tuple[str, ...]]:
    """Each kind of reason with its count, and the first job that has it with its own words."""
    first: dict[str, tuple[str, UnschedulableReason]] = {}
    for job_id, reason in result.refused.items():
        first.setdefault(reason.code.value, (job_id, reason))
    counts = sorted(result.refused_by_code().items(), key=lambda each: (-each[1], each[0]))
    for code, count in counts:
        job_id, reason = first[code]
        yield code, f"{count:,}", f"{job_id}: {evidence(reason, spec)}"


def _shares(result: RoundResult) -> Iterator[tuple[str, ...]]:
    for share in result.shares:
        figures = (
            share.fair_share,
            share.adjusted_share,
            share.protected_share,
            share.demand_share,
            share.actual_share,
            share.resulting_share,
        )
        yield (share.queue, f"{share.weight:g}", *(f"{figure:.1%}" for figure in figures))


def _table(
    title: str, names: Sequence[str], rows: Iterable[Sequence[str]], *, most: int | None
) -> Iterator[Table]:
    """The rows under *names*, the first *most* of them; nothing where there is none."""
    every = list(rows)
    if not every:
        return
    shown = every if most is None else every[:most]
    left = len(every) - len(shown)
    table = Table(
        title=title,
        title_style="bold",
        title_justify="left",
        caption=f"and {left:,} more; --all shows them" if left else None,
    )
    for name in names:
        table.add_column(name, overflow="fold")
    for row in shown:
        table.add_row(*map(escape, row))
    yield table
