"""`pyresched explain`: why a job of a saved round waits, and what would start it.

Relies on `pyresched.scheduling` for all that is found out. Results on stdout.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pyresched.model import format_duration
from pyresched.scheduling import Explanation, load_round

__all__ = ["explain"]

_MOST_SHOWN: Final = 5


def explain(
    file: Annotated[Path, typer.Argument(help="Saved round.", show_default=False)],
    job: Annotated[str, typer.Argument(help="Id of the job.", show_default=False)],
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    rounds: Annotated[
        int, typer.Option(min=0, help="Rounds that may be run to find what would start it.")
    ] = 60,
) -> None:
    """Say why a job of a saved round is where it is, and what would start it.

    Each change that is shown was made and the round run again: with it, the job starts.

    **Examples**

    `pyresched explain slow.round job-17`

    `pyresched explain slow.round job-17 --json | jq .changes[0].sentence`
    """
    told = load_round(file).explain(job, most_rounds=rounds)
    if json:
        print(msgspec.json.format(msgspec.json.encode(told.to_dict()), indent=2).decode())
        return
    console = Console(highlight=False)
    console.print(_table(told))


def _table(told: Explanation) -> Table:
    table = Table(
        show_header=False,
        title=f"{escape(told.job_id)}: {told.standing.value.replace('_', ' ')}",
        title_style="bold",
    )
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _rows(told):
        table.add_row(name, escape(value))
    return table


def _rows(told: Explanation) -> Iterator[tuple[str, str]]:
    """What is known, most wanted first."""
    yield "queue", told.queue if told.position is None else f"{told.queue}, {_place(told)}"
    if told.node_id is not None:
        yield "node", told.node_id
    if told.for_job_id is not None:
        yield "for", told.for_job_id
    if told.delay is not None:
        yield "queued again", f"in {format_duration(told.delay)}"
    if told.reason is None:
        return
    yield "waits", told.evidence(told.reason)
    if told.nearest is not None:
        yield "nearest node", told.nearest.sentence()
    for n, each in enumerate(told.excluded[:_MOST_SHOWN]):
        nodes = f"{each.nodes:,} node{'' if each.nodes == 1 else 's'}"
        yield "" if n else "why not", f"{nodes}: {told.evidence(each.reason)}"
    if (left := len(told.excluded) - _MOST_SHOWN) > 0:
        yield "", f"and {left:,} more; --json has all"
    for n, change in enumerate(told.changes):
        yield "" if n else "starts with", change.sentence(told.spec)
    if not told.changes:
        tried = f"none of the single changes that were tried ({_rounds(told.rounds)})"
        yield "starts with", tried if told.rounds else "no change was tried"
    if told.left_out:
        yield "", f"{told.left_out:,} more were not tried; --rounds allows it"


def _rounds(count: int) -> str:
    return f"{count:,} round{'' if count == 1 else 's'}"


def _place(told: Explanation) -> str:
    """Where in its queue, and what became of those before it."""
    ahead = told.ahead
    if ahead is None or not ahead.jobs:
        return "the first"
    jobs = f"{ahead.jobs:,} job{'' if ahead.jobs == 1 else 's'} before it"
    refused = ", ".join(f"{count:,} {code}" for code, count in ahead.refused.items())
    return f"{jobs}: {ahead.placed:,} start" + (f", {refused}" if refused else "")
