"""Instruction counts of the native paths, held to the committed ones: the timing CI can compare.

    python benchmarks/instructions.py check     at most 5 % above benchmarks/instructions.json
    python benchmarks/instructions.py update    accept the counts of the installed package

Callgrind counts what each scenario of `counted.py` executes. The counts repeat to a fraction
of a percent, however busy the machine is, but differ between compilers, so the file keeps one
table for each toolchain (compiler, Cython, Python, processor family). On a toolchain that it
lacks, the base is built and counted in a folder of its own: the package as it was at the last
commit that changed the file, that is, when counts were last accepted. Either way a rise past
the limit needs a commit that changes the file, where a reader can see it; and many small
rises add up against one base instead of each hiding behind the one before.
"""

import ctypes
import gc
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parent
ACCEPTED = HERE / "instructions.json"
MOST = 1.05
WORTH_ACCEPTING = 0.95

# A library that tells callgrind where a scenario begins and ends.
MARKS = """
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void end(void) { CALLGRIND_DUMP_STATS; CALLGRIND_STOP_INSTRUMENTATION; }
"""


class Count(NamedTuple):
    """Instructions by scenario on a toolchain, and why the scenarios left out did not run."""

    toolchain: str
    counts: dict[str, int]
    left_out: dict[str, str]


def toolchain() -> str:
    """What the counts depend on besides the sources."""
    compiler = subprocess.run(["cc", "--version"], capture_output=True, check=True, text=True)
    cython = [name for name in sys.modules if re.fullmatch(r"_cython_[\d_]+", name)]
    optimised = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    python = f"{platform.python_implementation()} {platform.python_version()}"
    how = f"{'optimised, ' if optimised else ''}{platform.python_compiler()}"
    return ", ".join(
        [
            compiler.stdout.splitlines()[0],
            f"Cython {cython[0].removeprefix('_cython_').replace('_', '.') if cython else '?'}",
            f"{python} ({how})",
            platform.machine(),
        ]
    )


def run_scenarios(marks: str) -> None:
    """In the process that callgrind watches: run each scenario between the marks."""
    from counted import SCENARIOS  # noqa: PLC0415  only this process has the package

    if find_spec("pyresched._core.selftest"):
        sys.exit("this build has asserts and self-tests: count a release build (`make wheel`)")
    library = ctypes.CDLL(marks)
    ran = {}
    for name, prepare in SCENARIOS.items():
        try:
            # Once unwatched: lazy imports, caches and free lists are not what is counted.
            prepare()()
            work = prepare()
        except (ImportError, AttributeError, TypeError) as error:
            # An older package under newer scenarios lacks what they call.
            ran[name] = f"{type(error).__name__}: {error}"
            continue
        gc.collect()
        gc.disable()
        library.begin()
        work()
        library.end()
        gc.enable()
        ran[name] = ""
    print(json.dumps({"toolchain": toolchain(), "ran": ran}))


def count(site: Path | None = None) -> Count:
    """Run every scenario under callgrind, on the package in the folder *site* if given."""
    with tempfile.TemporaryDirectory() as folder:
        marks = Path(folder) / "marks.so"
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", marks],
            input=MARKS,
            check=True,
            text=True,
        )
        watched = subprocess.run(
            [
                "valgrind",
                "--tool=callgrind",
                "--instr-atstart=no",
                f"--callgrind-out-file={folder}/counts",
                sys.executable,
                __file__,
                "run",
                str(marks),
            ],
            env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(site or "")},
            capture_output=True,
            check=False,
            text=True,
        )
        if watched.returncode:
            sys.exit(f"under callgrind: exit code {watched.returncode}\n{watched.stderr[-4000:]}")
        said = json.loads(watched.stdout.splitlines()[-1])
        counts = {}
        names = [name for name, why in said["ran"].items() if not why]
        for at, name in enumerate(names, start=1):
            dump = (Path(folder) / f"counts.{at}").read_text(encoding="utf-8")
            (total,) = re.findall(r"^totals: (\d+)$", dump, re.MULTILINE)
            counts[name] = int(total)
    left_out = {name: why for name, why in said["ran"].items() if why}
    return Count(said["toolchain"], counts, left_out)


def base_counts() -> dict[str, int]:
    """Counts of the package as of the last commit that changed the file of accepted counts."""
    commit = subprocess.run(
        ["git", "log", "-1", "--format=%H", "--", ACCEPTED],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout.strip()
    if not commit:
        sys.exit(f"no commit has {ACCEPTED.name}: run `update` and commit it")
    print(f"no counts for this toolchain: building and counting the base, {commit[:12]}")
    with tempfile.TemporaryDirectory() as folder:
        tree, site = Path(folder, "tree"), Path(folder, "site")
        subprocess.run(["git", "clone", "-q", "-n", "--shared", ROOT, tree], check=True)
        subprocess.run(["git", "checkout", "-q", commit], cwd=tree, check=True)
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", site, tree],
            check=True,
        )
        return count(site).counts


def accepted_tables() -> dict[str, dict[str, int]]:
    """Accepted counts by toolchain and scenario."""
    return json.loads(ACCEPTED.read_text(encoding="utf-8")) if ACCEPTED.exists() else {}


def count_all() -> Count:
    """Every scenario on the installed package; ends the program if one cannot run."""
    now = count()
    if now.left_out:
        sys.exit("\n".join(f"{name} did not run: {why}" for name, why in now.left_out.items()))
    return now


def check() -> int:
    """Compare with the accepted counts; the exit code."""
    chain, counts, _ = count_all()
    print(f"toolchain: {chain}")
    tables = accepted_tables()
    accepted = tables[chain] if chain in tables else base_counts()
    faults = []
    for name, now in counts.items():
        if name not in accepted:
            print(f"{name:32} {now:>14,}  new")
            # On another toolchain the base cannot have it, and there is no table to add it to.
            if chain in tables:
                faults.append(f"{name}: not accepted yet; run `update` and commit")
            continue
        ratio = now / accepted[name]
        lower = "  `update` keeps it so" if ratio < WORTH_ACCEPTING else ""
        print(f"{name:32} {now:>14,}  {ratio - 1:+.2%}{lower}")
        if ratio > MOST:
            faults.append(f"{name}: {ratio - 1:+.2%}, at most {MOST - 1:+.0%} may pass")
    faults += [f"{name}: counted before and no longer" for name in accepted.keys() - counts.keys()]
    print("\n".join(sorted(faults)) or "no scenario rose past the limit")
    return 1 if faults else 0


def update() -> int:
    """Accept the counts of the installed package for this toolchain; the exit code."""
    chain, counts, _ = count_all()
    tables = accepted_tables() | {chain: counts}
    ACCEPTED.write_text(json.dumps(tables, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{len(counts)} counts accepted for {chain}")
    return 0


def main(words: list[str]) -> int:
    """Do what the command line asks; the exit code."""
    match words:
        case ["run", marks]:
            run_scenarios(marks)
            return 0
        case ["check" | "update" as what] if shutil.which("valgrind"):
            return check() if what == "check" else update()
        case ["check" | "update"]:
            print("valgrind is missing: install it with the system's package manager")
        case _:
            print("usage: instructions.py check | update")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
