"""The door of the command line: every way out of a command is one exit code and one line.

Relies on `app` for the commands, which it imports late: without the extra `cli` there is
still a sentence that says what to install.
"""

import os
import sys
from collections.abc import Sequence
from typing import Final

from pyresched.errors import InputError, MissingExtra

__all__ = ["main"]

FAILURE: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in *arguments* (those of the program unless given); its exit code."""
    try:
        code = _run(sys.argv[1:] if arguments is None else arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has gone. Python would complain again while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return USAGE
    except OSError as refused:
        # Files are refused where they are opened; what is left is the output itself.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _say(f"the output cannot be written: {refused.strerror}", FAILURE)
    except (InputError, MissingExtra) as refused:
        return _say(str(refused), USAGE)
    # Some releases of the parser turn the interruption into this code themselves.
    return _say("interrupted; nothing was written", code) if code == INTERRUPTED else code


def _run(arguments: Sequence[str]) -> int:
    try:
        from pyresched.cli.app import command  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.split(".")[0] == "pyresched":
            raise
        raise MissingExtra(
            f"the command line needs {missing.name}: pip install 'pyresched[cli]'"
        ) from missing
    try:
        code = command().main(args=list(arguments), prog_name="pyresched", standalone_mode=False)
    except Exception as error:
        # The parser's errors are its own types, which differ from release to release.
        sentence = getattr(error, "format_message", None)
        if sentence is not None:
            return _say(_with_hint(error, sentence()), USAGE)
        if type(error).__name__ == "Abort":
            raise KeyboardInterrupt from error
        raise
    return code if isinstance(code, int) else 0


def _with_hint(error: Exception, sentence: str) -> str:
    context = getattr(error, "ctx", None)
    where = "pyresched" if context is None else context.command_path
    return f"{sentence.rstrip('.')}; see {where} --help"


def _say(text: str, code: int) -> int:
    print(f"pyresched: {' '.join(text.split())}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
