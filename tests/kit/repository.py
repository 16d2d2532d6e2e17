"""The checkout as the architecture tests see it: tracked files, the list of native modules."""

import re
import subprocess
from pathlib import Path

__all__ = ["NATIVE", "ROOT", "SELFTESTS", "native_modules", "read_text", "tracked_files"]

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "src" / "_core"
# In debug builds only, above every other module, named by no door.
SELFTESTS = ("selftest", "selftrees", "selfnodes")


def tracked_files(*patterns: str) -> list[Path]:
    """What git tracks or is about to (added, not ignored), under *patterns*, still on disk."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    paths = sorted({ROOT / name for name in listed.split("\0") if name})
    return [path for path in paths if path.is_file()]


def read_text(path: Path) -> str:
    """The text of *path*, or "" for a file that is not text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def native_modules() -> list[str]:
    """The modules that a release build compiles, lowest first, as CMake lists them."""
    cmake = (NATIVE / "CMakeLists.txt").read_text(encoding="utf-8")
    match = re.search(r"^set\(\s*modules\s+([^)]*)\)", cmake, re.MULTILINE)
    assert match is not None, "src/_core/CMakeLists.txt lists no modules"
    return match[1].split()
