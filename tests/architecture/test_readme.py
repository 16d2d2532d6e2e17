"""What README and docs promise: two commands, and Python that runs as it stands."""

import re
import subprocess
import sys

import pytest

from kit.repository import ROOT

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = {
    str(page.relative_to(ROOT)): BLOCK.findall(page.read_text(encoding="utf-8"))
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
BLOCKS = [(page, n) for page, blocks in PAGES.items() for n in range(len(blocks))]


def test_the_readme_shows_both_commands():
    """`make demo` and `make test` are all that a reader needs."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text


@pytest.mark.parametrize(
    "page",
    ["README.md", "docs/mvcc.md", "docs/placement.md", "docs/reschedule.md", "docs/threads.md"],
)
def test_the_page_has_python(page):
    """Nothing found is a failure, not a pass."""
    assert PAGES[page]


@pytest.mark.parametrize(("page", "number"), BLOCKS)
def test_a_block_of_a_page_runs(page, number, tmp_path):
    """After those before it, in a process and a folder of its own, with warnings as errors."""
    source = "\n".join(PAGES[page][: number + 1])
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", source],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
