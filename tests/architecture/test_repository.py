"""What a tracked file may hold."""

import re
import subprocess

import pytest

from kit.repository import ROOT, read_text, tracked_files

# Spelled so that this file does not match itself.
MACHINE_PATH = re.compile(r"(?:^|[^\w.])/(?:work|root|farm|home)/\w|/tmp/[a-z]")
REGISTRY_HOST = re.compile(
    r"pypi[.]org|pythonhos[t]ed|debian[.]org|npm[j]s|proxy[.]golang|crates[.]io|maven[.]org",
    re.IGNORECASE,
)
MOST_BYTES = 1024 * 1024


def lines_with(pattern, text):
    """Numbers and text of the lines of *text* in which *pattern* is found."""
    return [(n, line) for n, line in enumerate(text.splitlines(), 1) if pattern.search(line)]


@pytest.mark.parametrize("pattern", [MACHINE_PATH, REGISTRY_HOST], ids=["path", "registry"])
def test_no_tracked_file_knows_this_machine(pattern):
    """Neither a path of the machine it was written on nor the host of a package registry."""
    found = {
        str(path.relative_to(ROOT)): lines
        for path in tracked_files()
        if (lines := lines_with(pattern, read_text(path)))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (MACHINE_PATH, "open('/" + "work/main/x')"),
        (MACHINE_PATH, "cd /" + "root/src"),
        (MACHINE_PATH, "out=/" + "tmp/out"),
        (REGISTRY_HOST, "https://PyPI" + ".org/simple"),
    ],
)
def test_a_machine_is_recognised(pattern, text):
    """Negative control."""
    assert lines_with(pattern, f"first\n{text}\n") == [(2, text)]


def test_tracked_files_are_small():
    """What is larger is made by a command or lies outside the repository."""
    large = {
        str(path.relative_to(ROOT)): path.stat().st_size
        for path in tracked_files()
        if path.stat().st_size > MOST_BYTES
    }
    assert large == {}


@pytest.mark.parametrize("script", [".ci/run"])
def test_scripts_are_executable(script):
    """In git's index, so that a clone can run them."""
    listed = subprocess.run(
        ["git", "ls-files", "--stage", "--", script],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    assert listed.startswith("100755 ")


def test_no_build_is_for_one_processor():
    """Wheels run on every machine of their architecture."""
    settings = tracked_files("*CMakeLists.txt", "*.cmake", "pyproject.toml")
    assert settings
    assert [path for path in settings if re.search(r"-m(arch|cpu|tune)=", read_text(path))] == []
