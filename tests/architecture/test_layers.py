"""Imports go down only: the contract of pyproject.toml, and that it sees what it forbids."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kit.repository import ROOT

# Only the interpreter's own finders: that of an editable install would lint the checkout.
LINTER = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if isinstance(finder, type)]
from importlinter.cli import lint_imports_command
lint_imports_command()
"""


def lint(sources):
    """Run the linter on the package under the folder *sources*."""
    return subprocess.run(
        [sys.executable, "-c", LINTER, ROOT / "pyproject.toml", "--no-cache"],
        cwd=sources,
        env={**os.environ, "PYTHONPATH": str(sources), "COLUMNS": "200"},
        capture_output=True,
        check=False,
        text=True,
    )


@pytest.fixture
def sources(tmp_path):
    """A copy of the package's sources."""
    shutil.copytree(
        ROOT / "src" / "pyresched",
        tmp_path / "pyresched",
        ignore=shutil.ignore_patterns("__pycache__", "*.so"),
    )
    return tmp_path


def plant(file: Path, line: str) -> None:
    """Append *line* to *file*, which may be new."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as text:
        text.write(f"\n{line}\n")


def test_the_package_keeps_its_layers(sources):
    """No module imports from its own line or from above."""
    result = lint(sources)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("nodedb/__init__.py", "import pyresched.jobdb", "pyresched.nodedb -> pyresched.jobdb"),
        ("ids.py", "import pyresched.config", "pyresched.ids -> pyresched.config"),
        ("errors.py", "import pyresched._core", "pyresched.errors -> pyresched._core"),
        (
            "report/__init__.py",
            "def late():\n    import pyresched.simulator",
            "pyresched.report -> pyresched.simulator",
        ),
        ("oddments/__init__.py", "", "pyresched.oddments"),
    ],
    ids=["stranger", "upward", "lowest", "late", "unplaced"],
)
def test_a_breach_is_named(sources, file, line, said):
    """Negative control: the linter fails on each kind of breach, and says which it is."""
    plant(sources / "pyresched" / file, line)
    result = lint(sources)
    assert result.returncode != 0
    assert said in result.stdout + result.stderr
