"""The commands by name. Needs the extra `cli`."""

from importlib.metadata import version
from typing import Annotated, Protocol

import typer

from pyresched.cli.explain import explain
from pyresched.cli.generate import generate
from pyresched.cli.replay import replay
from pyresched.cli.reschedule import app as reschedule
from pyresched.cli.simulate import simulate

__all__ = ["app", "command"]

app = typer.Typer(
    name="pyresched",
    help="A batch scheduler that you import: what runs where, now, and when a failed run is tried again.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("simulate")(simulate)
app.command("generate")(generate)
app.command("replay")(replay)
app.command("explain")(explain)
app.add_typer(reschedule)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"pyresched {version('pyresched')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    pass


class Command(Protocol):
    """What the door needs of the parser, whichever release it comes from."""

    def main(self, *, args: list[str], prog_name: str, standalone_mode: bool) -> object:
        """Parse *args* and call what they name."""


def command() -> Command:
    """The whole command line as one object."""
    return typer.main.get_command(app)
