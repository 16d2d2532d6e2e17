"""Results appear whole or not at all: written aside, then moved into place.

Relies on renames within one folder, which the file system does at once. An interruption
leaves nothing but what was there before.
"""

import gzip
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

from pyresched.errors import InputError

__all__ = ["Existing", "check_target", "new_file", "new_folder"]


class Existing(Enum):
    """What to do about something that is there already."""

    REFUSE = "refuse"
    REPLACE = "replace"


def check_target(path: Path, existing: Existing) -> None:
    """Raise InputError if a folder *path* could not be put there; nothing is written."""
    _check_name(path)
    try:
        if path.is_dir():
            if existing is Existing.REFUSE:
                raise InputError(f"{path}: is there already; choose another folder, or --force")
        elif path.exists() or path.is_symlink():
            raise InputError(f"{path}: is a file; choose a folder")
        parent = _nearest_folder(path)
        with tempfile.TemporaryDirectory(dir=parent, prefix=".pyresched-"):
            pass
    except OSError as refused:
        raise _unwritable(path, refused) from refused


@contextmanager
def new_folder(path: Path, existing: Existing) -> Iterator[Path]:
    """A folder to write into; left normally, its content is at *path*, else nowhere.

    With `Existing.REPLACE` files of the same names in an existing *path* are replaced, one
    rename each; others stay. Raises InputError as `check_target` does.
    """
    check_target(path, existing)
    try:
        parent = _nearest_folder(path)
        aside = Path(tempfile.mkdtemp(dir=parent, prefix=".pyresched-"))
        try:
            yield aside
            aside.chmod(0o777 & ~_umask())
            if path.is_dir():
                for file in sorted(aside.iterdir()):
                    file.replace(path / file.name)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                aside.rename(path)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    except OSError as refused:
        raise _unwritable(path, refused) from refused


def new_file(path: Path, lines: Iterable[str], existing: Existing) -> None:
    """Write *lines*, packed if the name ends in .gz, to the file *path*. Raises InputError."""
    _check_name(path)
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a folder; choose a file")
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: is a device or a pipe; choose a file")
        if path.exists() and existing is Existing.REFUSE:
            raise InputError(f"{path}: is there already; choose another name, or --force")
        content = "".join(lines).encode()
        if path.suffix == ".gz":
            content = gzip.compress(content, mtime=0)
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=".pyresched-", delete=False
        ) as aside:
            try:
                aside.write(content)
                aside.close()
                Path(aside.name).chmod(0o666 & ~_umask())
                Path(aside.name).replace(path)
            except BaseException:
                Path(aside.name).unlink(missing_ok=True)
                raise
    except OSError as refused:
        raise _unwritable(path, refused) from refused


def _check_name(path: Path) -> None:
    if "\0" in str(path):
        raise InputError(f"{str(path)!r}: no file can have this name; choose another")


def _nearest_folder(path: Path) -> Path:
    """The nearest parent of *path* that is there: where a rename to *path* can start."""
    for parent in path.absolute().parents:
        if parent.exists():
            return parent
    raise AssertionError("the root is always there")


def _unwritable(path: Path, refused: OSError) -> InputError:
    reason = (refused.strerror or type(refused).__name__).lower()
    return InputError(f"{path}: {reason}; choose a place that can be written to")


def _umask() -> int:
    """The mask of new files, which temporary ones do not follow."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
