"""The checks of this project, one session each; `.ci/run` calls them, and so can anyone.

Sessions on the package install the wheel of the sources as they are, which `make wheel`
builds once. `make native` (debug build, native self-tests) and `make test` are in the Makefile.
"""

import re
import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2025.5"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = [
    *("lint", "types", "stubs", "layers"),
    *("threads", "leaks", "bench", "gates", "instructions", "sanitize"),
]

ROOT = Path(__file__).parent
PYPROJECT = nox.project.load_toml("pyproject.toml")
CMAKE_FILES = ("CMakeLists.txt", "src/_core/CMakeLists.txt")
SPREAD = ("--numprocesses=auto", "--maxprocesses=8", "--dist=loadgroup")
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NATIVE_TESTS = (
    "tests/native",
    "tests/unit/_core",
    "tests/unit/jobdb",
    "tests/unit/nodedb",
    "tests/unit/fairness",
    "tests/unit/reschedule",
    "tests/unit/scheduling",
    "tests/properties",
    "tests/scenarios/test_isolation.py",
    "tests/scenarios/test_threads.py",
)


def install_group(session: nox.Session, *names: str) -> None:
    """Install dependency groups of pyproject.toml by name."""
    session.install(*nox.project.dependency_groups(PYPROJECT, *names))


def install_wheel(session: nox.Session, extras: str = "all") -> None:
    """Install the wheel of the sources as they are, building it if they have changed."""
    session.run("make", "--silent", "wheel", external=True)
    (wheel,) = ROOT.glob("build/wheels/pyresched-*.whl")
    session.install("--force-reinstall", "--no-deps", str(wheel))
    session.install(f"{wheel}[{extras}]")


def run_all(session: nox.Session, *commands: list[str]) -> None:
    """Run every command even if one before it failed; then fail if any did."""
    failed = []
    for command in commands:
        try:
            session.run(*command)
        except nox.command.CommandFailed:
            failed.append(" ".join(command[:2]))
    if failed:
        session.error(f"failed: {', '.join(failed)}")


@nox.session
def lint(session: nox.Session) -> None:
    """Style and slips: Python, Cython, CMake, metadata, spelling."""
    install_group(session, "lint")
    # This tool rewrites what it finds, so it gets copies.
    copies = session.create_tmp()
    native = [shutil.copy(path, copies) for path in sorted(ROOT.glob("src/_core/*.p[yx][xd]"))]
    run_all(
        session,
        ["ruff", "check"],
        ["ruff", "format", "--check"],
        ["cython-lint", "src/_core"],
        ["double-quote-cython-strings", *native],
        ["gersemi", "--check", *CMAKE_FILES],
        ["validate-pyproject", "pyproject.toml"],
        ["codespell"],
    )


@nox.session
def types(session: nox.Session) -> None:
    """Strict types of the package and of users' code: tests/typing, examples, blocks of README and docs."""
    install_group(session, "types")
    install_wheel(session)
    session.run("mypy")
    shown = Path(session.create_tmp())
    for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))):
        blocks = PYTHON_BLOCK.findall(page.read_text(encoding="utf-8"))
        if blocks:
            source = shown / f"{page.stem.lower()}_page.py"
            source.write_text("\n".join(blocks), encoding="utf-8")
            session.run("mypy", str(source))


@nox.session
def stubs(session: nox.Session) -> None:
    """The stubs of the native modules say what is there, no more and no less."""
    install_group(session, "types")
    install_wheel(session)
    # Only the native modules have stubs: every other module is its own.
    session.run(
        *("python", "-m", "mypy.stubtest", "pyresched._core"),
        *("--allowlist", "tests/stubtest_allowlist.txt", "--mypy-config-file", "pyproject.toml"),
    )


@nox.session
def layers(session: nox.Session) -> None:
    """Imports go down only."""
    install_group(session, "test")
    session.run("lint-imports", "--no-logo", env={"PYTHONPATH": "src"})


@nox.session(python=["3.11", "3.12", "3.13"])
def tests(session: nox.Session) -> None:
    """`make test` on another Python, in folders of its own."""
    install_group(session, "test")
    session.install(".[all]", env={"SKBUILD_BUILD_DIR": f"build/nox-{session.python}"})
    session.run("pytest", *SPREAD, *session.posargs)


@nox.session
def sanitize(session: nox.Session) -> None:
    """The native tests under address and undefined-behaviour sanitizers."""
    install_group(session, "test")
    session.install(
        ".",
        "--config-settings=cmake.define.PYRESCHED_SANITIZE=ON",
        "--config-settings=build-dir=build/sanitize",
        env={"PYRESCHED_DEV": "1"},
    )
    libraries = " ".join(
        str(session.run("cc", f"-print-file-name={name}", external=True, silent=True)).strip()
        for name in ("libasan.so", "libubsan.so")
    )
    session.run(
        "pytest",
        *SPREAD,
        "--capture=sys",  # the sanitizers write to the descriptor and end the process
        *(session.posargs or NATIVE_TESTS),
        env={
            "LD_PRELOAD": libraries,
            # A build without self-tests is a failure here, not a skip.
            "PYRESCHED_DEV": "1",
            # Each object of its own, so that an overrun is seen; the interpreter's own leaks are not.
            "PYTHONMALLOC": "malloc",
            "ASAN_OPTIONS": "detect_leaks=0",
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "HYPOTHESIS_PROFILE": "dev",
        },
    )


@nox.session
def threads(session: nox.Session) -> None:
    """Eight readers and a writer for 20 s, checked at every commit; the ordinary suite takes 2."""
    install_group(session, "test")
    install_wheel(session)
    session.run(
        "pytest",
        *(session.posargs or ["tests/scenarios/test_threads.py", "-k", "eight_readers"]),
        env={"PYRESCHED_THREADS_S": "20"},
    )


@nox.session
def leaks(session: nox.Session) -> None:
    """Whether anything grows over 100 cycles of each use; the ordinary suite takes 20."""
    install_group(session, "test")
    install_wheel(session)
    session.run(
        *("pytest", "tests/scenarios/test_leaks.py", *session.posargs),
        env={"PYRESCHED_LEAK_CYCLES": "100"},
    )


@nox.session
def bench(session: nox.Session) -> None:
    """A quick pass of the benchmarks beside their rivals, and wide gates on their ratios."""
    install_group(session, "bench")
    install_wheel(session)
    figures = ROOT / "build" / "benchmarks.json"
    session.run(
        *("pytest", "benchmarks", f"--benchmark-json={figures}"),
        *("--benchmark-max-time=0.2", "--benchmark-min-rounds=3", "--benchmark-columns=median,ops"),
        *session.posargs,
    )
    session.run("python", "benchmarks/ratios.py", str(figures))


@nox.session
def gates(session: nox.Session) -> None:
    """What the indices and both dbs must reach beside their rivals, at small sizes."""
    install_group(session, "bench")
    install_wheel(session)
    report = ROOT / "build" / "gates.json"
    session.run(
        *("python", "benchmarks/gates.py"),
        *(session.posargs or ["--quick", "--slack=1.7", f"--json={report}"]),
    )


@nox.session
def instructions(session: nox.Session) -> None:
    """Instruction counts against the committed ones: at most 5 % more."""
    if shutil.which("valgrind") is None:
        session.error("valgrind is missing; install it with the system's package manager")
    session.install("pip")  # builds the base where the toolchain is a new one
    install_wheel(session)
    session.run("python", "benchmarks/instructions.py", *(session.posargs or ["check"]))


@nox.session
def mutation(session: nox.Session) -> None:
    """Whether each mutant of the rescheduling rules is killed, or explained; some 5 minutes."""
    install_group(session, "mutation")
    install_wheel(session)
    session.run("python", "tests/mutation/run.py", str(ROOT / "build" / "mutation"))


@nox.session
def coverage(session: nox.Session) -> None:
    """Which branches of the Python code the tests never take."""
    install_group(session, "coverage")
    install_wheel(session)
    session.run("coverage", "run", "-m", "pytest", *session.posargs)
    session.run("coverage", "combine", success_codes=[0, 1])
    session.run("coverage", "report", "--show-missing", "--skip-covered")
