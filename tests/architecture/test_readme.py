"""What the README promises: two commands, and Python that runs as it stands."""

import re
import subprocess
import sys

import pytest

from kit.repository import ROOT

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))


def test_the_readme_shows_both_commands():
    """`make demo` and `make test` are all that a reader needs."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text


def test_the_readme_has_python():
    """Nothing found is a failure, not a pass."""
    assert BLOCKS


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_of_the_readme_runs(number, tmp_path):
    """After those before it, in a process and a folder of its own, with warnings as errors."""
    source = "\n".join(BLOCKS[: number + 1])
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", source],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
