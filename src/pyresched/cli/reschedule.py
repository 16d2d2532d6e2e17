"""`pyresched reschedule`: what a policy means for a job that fails again and again.

Relies on `spec` for the effective policy and on `pyresched.reschedule` for all that follows from
it. Results on stdout.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from msgspec import Struct, structs
from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table

from pyresched.cli.options import duration
from pyresched.durations import short_duration
from pyresched.errors import InputError
from pyresched.model import JobType, RescheduleBlock, ReschedulePolicy
from pyresched.reschedule import (
    Dialect,
    Outlook,
    Problem,
    Prospect,
    Severity,
    Step,
    outlook,
    problems,
    timeline,
)
from pyresched.spec import Origin, merge_reschedule, parse_block

__all__ = ["app"]

REFUSED: Final = 1
"""The exit code for a policy with an error."""

_NEVER_RESCHEDULED: Final = (JobType.SYSTEM, JobType.SYSBATCH)
_MOST_SHOWN: Final = 16
_LAST_SHOWN: Final = 3

app = typer.Typer(
    name="reschedule",
    help="When a failed run is tried again.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


class Account(Struct, frozen=True, kw_only=True):
    """All that is said of a policy; `--json` prints it, with instants and durations in ns."""

    job_type: JobType
    runtime: int
    policy: ReschedulePolicy | None
    origins: Mapping[str, str]
    steps: list[Step]
    outlook: Outlook
    problems: tuple[Problem, ...]


@app.callback()
def _reschedule() -> None:
    """When a failed run is tried again."""


@app.command("explain")
def explain(
    policy: Annotated[
        str,
        typer.Option(
            help="Fields of the policy, as `attempts=3,interval=1h,delay=30s`; "
            "the job type's defaults fill what is not written.",
            show_default=False,
        ),
    ] = "",
    job_type: Annotated[JobType, typer.Option("--type", help="Type of the job.")] = JobType.BATCH,
    runtime: Annotated[str, typer.Option(help="How long each run lasts before it fails.")] = "0s",
    failures: Annotated[
        int | None, typer.Option(min=1, help="How many runs to follow.", show_default=False)
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(help="Follow the runs that start by then.", show_default=False),
    ] = None,
    dialect: Annotated[
        Dialect,
        typer.Option(help="Whose check of attempts against the interval makes errors."),
    ] = Dialect.NOMAD,
    min_delay: Annotated[str, typer.Option(help="The least delay that is right.")] = "1s",
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw it into this file, .html or .png.", show_default=False),
    ] = None,
) -> None:
    """Say what a reschedule policy means for a job whose runs all fail.

    Shows the policy in effect and where each value comes from, run by run when the next one
    starts, when the job gives up or that it never does, and what is wrong with the policy.
    Each replacement starts when it is due; one that waits in a queue starts later.
    Exit code 1 says that the policy has an error.

    **Examples**

    `pyresched reschedule explain --policy 'attempts=3,interval=1h,delay=30s'`

    `pyresched reschedule explain --type service --runtime 10s --plot service.html`

    `pyresched reschedule explain --policy 'unlimited=true' --json | jq .outlook.prospect`
    """
    if plot is not None and plot.suffix not in (".html", ".png"):
        raise InputError(f"--plot: {plot} is neither .html nor .png; write such a name")
    if plot is not None and not plot.parent.is_dir():
        raise InputError(f"--plot: {plot.parent} is no folder; make it, or name another")
    try:
        block = parse_block(policy)
    except InputError as wrong:
        raise InputError(f"--policy: {wrong}") from wrong
    told = account(
        block,
        job_type,
        runtime=duration(runtime, option="--runtime"),
        failures=failures,
        until=None if until is None else duration(until, option="--until"),
        dialect=dialect,
        min_delay=duration(min_delay, option="--min-delay"),
    )
    if plot is not None:
        _draw(told, plot)
    if json:
        print(msgspec.json.format(msgspec.json.encode(_as_json(told)), indent=2).decode())
    else:
        console = Console(highlight=False)
        console.print(_shown(told))
        if plot is not None:
            console.print(f"drawn: {escape(str(plot))}", soft_wrap=True)
    if any(problem.severity is Severity.ERROR for problem in told.problems):
        raise typer.Exit(REFUSED)


def account(
    block: RescheduleBlock,
    job_type: JobType,
    *,
    runtime: int,
    failures: int | None,
    until: int | None,
    dialect: Dialect,
    min_delay: int,
) -> Account:
    """What there is to say of a job of *job_type* whose group writes *block*."""
    written = block if block.written() else None
    policy, origins = merge_reschedule(None, written, job_type.value)
    whence = {name: _ORIGINS[origin] for name, origin in origins.items()}
    found = problems(
        policy, job_type=job_type.value, min_delay=min_delay, dialect=dialect, origins=whence
    )
    # A type that is never rescheduled has no use for a policy, whatever is written.
    effective = None if job_type in _NEVER_RESCHEDULED else policy
    return Account(
        job_type=job_type,
        runtime=runtime,
        policy=policy,
        origins=whence,
        steps=timeline(effective, runtime=runtime, failures=failures, until=until),
        outlook=outlook(effective, runtime=runtime),
        problems=found,
    )


_ORIGINS: Final[Mapping[Origin, str]] = {
    Origin.GROUP: "written",
    Origin.JOB: "written",
    Origin.DEFAULT: "default of the type",
    Origin.UNUSED: "unused: unlimited",
}


def _as_json(told: Account) -> dict[str, object]:
    """One object; nothing of it is worded but `sentence` and `used`."""
    policy = None if told.policy is None else structs.asdict(told.policy)
    return {
        "job_type": told.job_type.value,
        "policy": policy,
        "origins": told.origins,
        "runtime": told.runtime,
        "timeline": [
            {
                "run": step.number,
                "started": step.started,
                "failed": step.failed,
                **_verdict(step),
            }
            for step in told.steps
        ],
        "outlook": {
            "prospect": told.outlook.prospect.value,
            "runs": told.outlook.runs,
            "after": told.outlook.after,
            "reason": told.outlook.last.reason.value,
            "sentence": _ending(told),
        },
        "problems": told.problems,
    }


def _verdict(step: Step) -> dict[str, object]:
    verdict = step.verdict
    return {
        "eligible": verdict.eligible,
        "next": verdict.at if verdict.eligible else None,
        "delay": verdict.delay if verdict.eligible else None,
        "attempted": verdict.attempted,
        "attempts": verdict.attempts,
        "used": verdict.used,
        "reason": verdict.reason.value,
        "sentence": verdict.sentence(),
    }


def _shown(told: Account) -> Group:
    parts: list[Table | str] = [_policy_table(told)]
    if told.job_type not in _NEVER_RESCHEDULED:
        parts.append(_step_table(told))
    parts.append(escape(_ending(told)))
    parts.extend(
        f"[{'red' if problem.severity is Severity.ERROR else 'yellow'}]"
        f"{problem.severity.value}[/]: {escape(problem.sentence)}"
        for problem in told.problems
    )
    return Group(*parts)


def _policy_table(told: Account) -> Table:
    table = Table(title=f"Policy of a {told.job_type.value} job", title_style="bold")
    table.add_column("field", style="cyan", no_wrap=True)
    table.add_column("value", no_wrap=True)
    table.add_column("where from")
    for name, origin in told.origins.items():
        value = getattr(told.policy, name)
        shown = short_duration(value) if name in ("interval", "delay", "max_delay") else value
        table.add_row(name, escape(str(shown).lower()), escape(origin))
    if told.policy is None:
        table.add_row("none", "", "default of the type")
    return table


def _step_table(told: Account) -> Table:
    lasts = "at once" if not told.runtime else f"{short_duration(told.runtime)} after their start"
    table = Table(title=f"Runs that fail {lasts}", title_style="bold")
    for name in ("run", "starts", "fails", "next after", "used"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what follows")
    for step in _some(told.steps):
        if step is None:
            table.add_row("...", "", "", "", "", f"{len(told.steps) - _MOST_SHOWN:,} runs more")
            continue
        verdict = step.verdict
        table.add_row(
            f"{step.number:,}",
            short_duration(step.started),
            short_duration(step.failed),
            short_duration(verdict.delay) if verdict.eligible else "",
            _used(verdict.used),
            "" if verdict.eligible else escape(verdict.sentence()),
        )
    return table


def _used(text: str) -> str:
    """`2/3` of `2/3 in 1h`, which the table of the policy has too."""
    return re.sub(r" in .*", "", text)


def _some(steps: list[Step]) -> Iterator[Step | None]:
    """The first and the last; None for those between."""
    if len(steps) <= _MOST_SHOWN + 1:
        yield from steps
        return
    yield from steps[: _MOST_SHOWN - _LAST_SHOWN]
    yield None
    yield from steps[-_LAST_SHOWN:]


def _ending(told: Account) -> str:
    """Whether and when it gives up, and why."""
    seen = told.outlook
    if told.job_type in _NEVER_RESCHEDULED:
        return f"A {told.job_type.value} job is never rescheduled: its runs belong to their nodes."
    if seen.prospect is Prospect.NEVER:
        return f"It never gives up{_steady(told.steps)}."
    if seen.runs is None or seen.after is None:
        return "It does not give up within the runs and years that can be followed."
    if seen.runs == 1:
        return f"It gives up with its first run: {seen.last.sentence()}."
    return (
        f"It gives up with run {seen.runs:,}, {short_duration(seen.after)} after the first start "
        f"(later where replacements wait in a queue): {seen.last.sentence()}."
    )


def _steady(steps: list[Step]) -> str:
    """From which run on the delay stays the same, if it does."""
    delays = [step.verdict.delay for step in steps]
    same = next((n for n, delay in enumerate(reversed(delays)) if delay != delays[-1]), len(delays))
    if same < _LAST_SHOWN:
        return ""
    first = steps[-same].number
    return f"; the delay after run {first:,} and all that follow is {short_duration(delays[-1])}"


def _draw(told: Account, path: Path) -> None:
    from pyresched.report import retries  # noqa: PLC0415 - needs an extra

    title = f"A {told.job_type.value} job whose runs all fail"
    subtitle = "no policy" if told.policy is None else str(told.policy)
    try:
        retries.write(told.steps, path, title=title, subtitle=(f"{subtitle}.", _ending(told)))
    except OSError as refused:
        raise InputError(f"--plot: {path} cannot be written: {refused.strerror}") from refused
