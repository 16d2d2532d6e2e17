"""Where tests find the data that lies beside the checkout, if it is there."""

import os
import subprocess
from pathlib import Path

import pytest

__all__ = ["shared_path"]

_CHECKOUT = Path(__file__).resolve().parents[2]


def shared_path(*parts: str) -> Path:
    """The file or folder *parts* of the shared data.

    Skips the calling test when there is no shared data, but fails it under CI=true.
    """
    for folder in _candidates():
        if folder.is_dir():
            path = folder.joinpath(*parts)
            if not path.exists():
                pytest.fail(f"{folder} has no {'/'.join(parts)}")
            return path
    missing = "no folder `shared` beside the checkout"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{missing}, and CI=true wants the tests on it to run")
    pytest.skip(missing)


def _candidates() -> list[Path]:
    """Folders that may be it: beside this checkout, or beside the one it is a worktree of."""
    folders = [_CHECKOUT.parent / "shared"]
    if (_CHECKOUT / ".git").is_file():
        asked = subprocess.run(
            ["git", "rev-parse", "--git-common-dir"],
            cwd=_CHECKOUT,
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.returncode == 0:
            common = (_CHECKOUT / asked.stdout.strip()).resolve()
            folders.append(common.parent.parent / "shared")
    return folders
