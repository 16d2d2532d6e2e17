"""Mutation tests of the rescheduling rules: every mutant is killed, or explained in a list.

Runs `mutmut` over a copy of the installed package, native modules included, in a folder of its
own. Ends with 1 if a mutant survives that `survivors.txt` does not explain, or if that list
explains one that no longer survives.
"""

import argparse
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
TESTS = HERE.parent
MUTATED = ("src/pyresched/reschedule/*.py", "src/pyresched/spec/defaults.py")
KILLERS = ("tests/unit/reschedule", "tests/unit/spec")
IGNORED = shutil.ignore_patterns("__pycache__", ".hypothesis")
CONFIG = """
[tool.pytest.ini_options]
addopts = "--import-mode=importlib -p no:randomly"
pythonpath = ["tests"]

[tool.mutmut]
source_paths = ["src"]
only_mutate = {mutated}
also_copy = ["docs"]
pytest_add_cli_args_test_selection = {killers}
"""

Mutant = tuple[str, tuple[str, ...]]  # the function, and the changed lines with - and +


def main() -> int:
    """Mutate, test, and hold what survived against the list."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path, help="where to work; emptied first")
    options.add_argument("--children", type=int, default=2, help="tests that run at once")
    given = options.parse_args()
    prepare(given.folder)
    command = (sys.executable, "-m", "mutmut")
    run = (*command, "run", f"--max-children={given.children}")
    done = subprocess.run(run, cwd=given.folder, capture_output=True, text=True, check=False)
    counts = re.findall(r"\d+/\d+ .*", done.stdout.replace("\r", "\n"))
    if done.returncode or not counts:
        print(done.stdout[-4000:], done.stderr[-4000:], file=sys.stderr)
        return 1
    results = ask(given.folder, *command, "results")
    names = re.findall(r"^\s*(\S+): (?:survived|no tests)$", results, re.MULTILINE)
    survived = {mutant(name, ask(given.folder, *command, "show", name)) for name in names}
    explained = listed((HERE / "survivors.txt").read_text())
    for what, found in (
        ("survives, unexplained", survived - explained.keys()),
        ("is explained, but does not survive", explained.keys() - survived),
    ):
        for function, lines in sorted(found):
            print(f"{function}: {what}", *lines, sep="\n    ")
    print(f"{counts[-1]}; {len(survived)} survive, {len(explained)} explained")
    return int(survived != explained.keys())


def prepare(folder: Path) -> None:
    """A project of the package as installed, its tests, and the settings of mutmut."""
    if folder.exists():
        shutil.rmtree(folder)
    spec = find_spec("pyresched")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("pyresched is not installed; run `nox -s mutation`")
    (package,) = spec.submodule_search_locations
    shutil.copytree(package, folder / "src" / "pyresched", ignore=IGNORED)
    shutil.copytree(TESTS, folder / "tests", ignore=IGNORED)
    shutil.copytree(TESTS.parent / "docs", folder / "docs")
    config = CONFIG.format(mutated=list(MUTATED), killers=list(KILLERS))
    (folder / "pyproject.toml").write_text(config)


def ask(folder: Path, *command: str) -> str:
    """What *command* prints."""
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def mutant(name: str, diff: str) -> Mutant:
    """The mutant called *name* by what its *diff* changes: numbers in names come and go."""
    place = re.sub(r"x_|__mutmut_\d+$", "", name.replace("xǁ", "").replace("ǁ", "."))
    lines = [line for line in diff.splitlines() if re.match(r"[-+](?![-+]{2})", line)]
    return place, tuple(f"{line[0]} {line[1:].strip()}" for line in lines)


def listed(text: str) -> dict[Mutant, str]:
    """The explained survivors: blocks of a function, changed lines, and `=` with the reason."""
    found = {}
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if not lines:
            continue
        place, *changed = lines
        reason = " ".join(line[1:].strip() for line in changed if line.startswith("="))
        if not reason:
            sys.exit(f"survivors.txt: {place} has no line with = and a reason")
        found[place, tuple(line for line in changed if not line.startswith("="))] = reason
    return found


if __name__ == "__main__":
    sys.exit(main())
