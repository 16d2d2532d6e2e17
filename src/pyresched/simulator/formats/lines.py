"""Text files that others wrote: opened whether packed or not, refused when they are not text.

Relies on the magic bytes of gzip, never on the name of a file. Everything that can go wrong
while a file is opened or read becomes one `InputError` that names it.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, cast

from pyresched.errors import InputError

__all__ = ["shown", "text_lines"]

_GZIP_MAGIC: Final = b"\x1f\x8b"
_BOM: Final = "\xef\xbb\xbf"  # of UTF-8, as Latin-1 reads it
_LONGEST_LINE: Final = 1_000_000
_LONGEST_SHOWN: Final = 40


def text_lines(path: Path, *, kind: str) -> Iterator[str]:
    """The lines of the text file *path*, packed by gzip or not, without their line ends.

    LF, CR LF and CR each end a line, even mixed in one file. Bytes above 127 come as Latin-1,
    which reads any file: the fields that matter are ASCII. Raises InputError, naming the file
    as a *kind* ("a log"), when it is missing, a folder, unreadable, empty or not text.
    """
    with _refusals(path, kind=kind):
        if path.is_dir():
            raise InputError(f"{path}: is a folder; name the file of {kind}")
        with path.open("rb") as raw:
            head = raw.read(2)
            if not head:
                raise InputError(f"{path}: is empty; name {kind} with at least one line")
            raw.seek(0)
            source = gzip.GzipFile(fileobj=raw) if head == _GZIP_MAGIC else raw
            yield from _lines(cast("BinaryIO", source), path, kind=kind)


def _lines(source: BinaryIO, path: Path, *, kind: str) -> Iterator[str]:
    with io.TextIOWrapper(source, encoding="latin-1", newline=None) as text:
        number = 0
        while line := text.readline(_LONGEST_LINE):
            number += 1
            if len(line) == _LONGEST_LINE and line[-1] != "\n":
                raise InputError(
                    f"{path}: line {number} has {_LONGEST_LINE} characters or more; "
                    f"name {kind} with shorter lines"
                )
            if "\0" in line:
                raise InputError(f"{path}: line {number} is not text; name {kind} in plain text")
            yield line.removeprefix(_BOM).rstrip("\n") if number == 1 else line.rstrip("\n")


@contextmanager
def _refusals(path: Path, *, kind: str) -> Iterator[None]:
    try:
        yield
    except (gzip.BadGzipFile, zlib.error, EOFError) as broken:
        raise InputError(f"{path}: the packed file is damaged ({broken}); pack it anew") from broken
    except OSError as refused:
        reason = (refused.strerror or type(refused).__name__).lower()
        raise InputError(f"{path}: {reason}; name {kind} that can be read") from refused
    except ValueError as odd:
        if isinstance(odd, InputError):
            raise
        # A name that no file can have, such as one with a NUL in it.
        raise InputError(f"{str(path)!r}: {odd}; name {kind} that can be read") from odd


def shown(text: str) -> str:
    """*text* as one short printable piece of a message."""
    cut = text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."
    return ascii(cut)
