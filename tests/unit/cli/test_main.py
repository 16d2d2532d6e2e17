"""Every way out of a command: its exit code, its one line, and what is left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kit.commands import Run
from kit.simulations import log_text


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of two small jobs."""
    path = tmp_path / "log.swf"
    path.write_text(log_text({}, {2: 30, 11: 0}))
    return path


def test_help_names_the_commands_and_gives_examples(run: Run) -> None:
    """Also of each command."""
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    assert "simulate" in out
    assert "generate" in out
    for command in ("simulate", "generate"):
        code, out, _ = run(command, "--help")
        assert code == 0
        assert "Examples" in out
        assert f"pyresched {command}" in out


def test_the_version_is_that_of_the_package(run: Run) -> None:
    """One line."""
    code, out, _ = run("--version")
    assert code == 0
    assert out.startswith("pyresched ")
    assert out.count("\n") == 1


def test_a_simulation_prints_its_figures(run: Run, log: Path) -> None:
    """All that the summary has, for people; quiet on stderr when nothing is to be said."""
    code, out, err = run("simulate", log, "--nodes", "2x4")
    assert (code, err) == (0, "")
    for figure in (
        *("jobs", "makespan", "utilisation", "wait, mean", "wait, median", "wait, 95 %"),
        *("bounded slowdown", "preemptions", "reschedules", "node losses", "Jain index"),
    ):
        assert figure in out


def test_lines_that_cannot_be_used_are_named(run: Run, tmp_path: Path) -> None:
    """The first few on stderr, all of them in a table."""
    log = tmp_path / "log.swf"
    log.write_text(log_text({}) + "".join(f"bad {number}\n" for number in range(9)))
    code, _, err = run("simulate", log, "--nodes", "1x1", "--out", tmp_path / "out")
    assert code == 0
    lines = err.splitlines()
    assert lines[0] == f"pyresched: {log}: line 3 skipped: has 2 fields instead of 18"
    assert "4 more lines skipped" in err
    assert len((tmp_path / "out" / "skipped.csv").read_text().splitlines()) == 10


BAD = {
    "missing log": (["none.swf", "--nodes", "2x4"], ["none.swf", "no such file"]),
    "folder as log": (["folder", "--nodes", "2x4"], ["folder", "is a folder"]),
    "binary log": (["junk", "--nodes", "2x4"], ["junk", "not text"]),
    "empty log": (["empty", "--nodes", "2x4"], ["empty", "is empty"]),
    "no nodes": (["log.swf", "--nodes", "0x12"], ["0x12", "100x12"]),
    "negative nodes": (["log.swf", "--nodes", "-3x12"], ["-3x12", "100x12"]),
    "nodes in words": (["log.swf", "--nodes", "many"], ["many", "100x12"]),
    "too many nodes": (["log.swf", "--nodes", "9999999999x1"], ["1000000x999999999"]),
    "absurd header": (["odd.swf"], ["odd.swf", "MaxNodes", "999999999"]),
    "absurd limit": (
        ["log.swf", "--nodes", "2x4", "--config", "far.toml"],
        ["far.toml", "max_queue_lookback", "2147483647"],
    ),
    "queue and none": (
        ["log.swf", *("--preemptible-queue", "none", "--preemptible-queue", "1")],
        ["none stands alone"],
    ),
    "nodes twice": (["log.swf", "--nodes", "2x4", "--node-file", "nodes.toml"], ["not both"]),
    "node file without nodes": (
        ["log.swf", "--node-file", "nodes.toml"],
        ["nodes.toml: 'nodes' is missing; write a list"],
    ),
    "more than can be counted": (
        ["log.swf", "--node-file", "vast.json"],
        ["vast.json: nodes[0].resources: cpu: 1e16", "write at most 9223372036854775.807 "],
    ),
    "NUL in a config": (
        ["log.swf", "--nodes", "2x4", "--config", "nul.toml"],
        ["nul.toml: line 2 has a NUL character; save it as plain text"],
    ),
    "policy in a config": (
        ["log.swf", "--nodes", "2x4", "--config", "policy.toml"],
        ["policy.toml: reschedule.batch: 100 attempts need an interval of", "yours is 1m"],
    ),
    "negative down time": (
        ["log.swf", "--nodes", "2x4", "--failures", "down.csv"],
        ["down.csv: none of its 1 failures can be used (line 2: Down Time is '-60', not minutes"],
    ),
    "no header": (["log.swf"], ["log.swf", "MaxNodes"]),
    "missing node file": (["log.swf", "--node-file", "none.toml"], ["none.toml"]),
    "negative seed": (["log.swf", "--nodes", "2x4", "--seed", "-1"], ["seed -1"]),
    "seed in words": (["log.swf", "--nodes", "2x4", "--seed", "x"], ["--seed", "integer"]),
    "negative until": (["log.swf", "--nodes", "2x4", "--until", "-5"], ["--until", "-5"]),
    "until in days": (["log.swf", "--nodes", "2x4", "--until", "7d"], ["--until", "168h"]),
    "bad cycle": (["log.swf", "--nodes", "2x4", "--cycle", "soon"], ["--cycle", "soon"]),
    "bad queue": (["log.swf", "--nodes", "2x4", "--preemptible-queue", "a"], ["'a'"]),
    "missing failures": (["log.swf", "--nodes", "2x4", "--failures", "none.csv"], ["none.csv"]),
    "bad failures": (["log.swf", "--nodes", "2x4", "--failures", "log.swf"], ["nodenumz"]),
    "missing config": (["log.swf", "--nodes", "2x4", "--config", "none.toml"], ["none.toml"]),
    "unknown key": (
        ["log.swf", "--nodes", "2x4", "--config", "odd.toml"],
        ["odd.toml", "protected_fracion", "protected_fraction"],
    ),
    "out is there": (["log.swf", "--nodes", "2x4", "--out", "folder"], ["folder", "--force"]),
    "out is a file": (["log.swf", "--nodes", "2x4", "--out", "junk", "--force"], ["junk"]),
    "unknown option": (["log.swf", "--nods", "2x4"], ["--nods", "simulate --help"]),
    "no log": ([], ["'log'", "--help"]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_leaves_nothing(
    name: str, run: Run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the file, line or key and what would be right; exit code 2; no traceback."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "junk").write_bytes(bytes(range(256)))
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "odd.toml").write_text("protected_fracion = 1\n")
    (tmp_path / "far.toml").write_text(f"max_queue_lookback = {2**63 - 1}\n")
    (tmp_path / "odd.swf").write_text(f"; MaxNodes: {'9' * 5000}\n" + log.read_text())
    (tmp_path / "nodes.toml").write_text("")
    (tmp_path / "policy.toml").write_text('[reschedule.batch]\nattempts = 100\ninterval = "1m"\n')
    (tmp_path / "nul.toml").write_text("max_queue_lookback = 3\n\0\n")
    (tmp_path / "vast.json").write_text('{"nodes": [{"id": "a", "resources": {"cpu": "1e16"}}]}')
    (tmp_path / "down.csv").write_text(
        "nodenumz,Prob Started,Prob Fixed,Down Time\n0,1/1/2000 9:00,1/1/2000 10:00,-60\n"
    )
    before = sorted(tmp_path.rglob("*"))
    arguments, parts = BAD[name]
    if "--out" not in arguments:
        arguments = [*arguments, "--out", "result"]
    code, out, err = run("simulate", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("pyresched: ")
    assert err.count("\n") == 1
    for part in parts:
        assert part in err
    assert sorted(tmp_path.rglob("*")) == before
    assert log.exists()


def test_output_that_cannot_be_written_is_one_line(log: Path) -> None:
    """A full disk behind stdout, or no stdout at all, is no traceback."""
    command = [sys.executable, "-m", "pyresched.cli", "simulate", str(log), "--nodes", "2x4"]
    with Path("/dev/full").open("w") as full:
        said = subprocess.run(
            [*command, "--json"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (said.returncode, said.stderr.count("\n")) == (1, 1)
    assert "cannot be written" in said.stderr
    closed = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *command],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert "Traceback" not in closed.stderr


def test_a_pipe_or_device_is_not_replaced_by_a_file(run: Run, tmp_path: Path) -> None:
    """Even with --force, even for root."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code, _, err = run("generate", str(pipe), "--jobs", "5", "--force")
    assert (code, err.count("\n")) == (2, 1)
    assert pipe.is_fifo()


def test_an_existing_folder_is_replaced_by_force(run: Run, log: Path, tmp_path: Path) -> None:
    """Only files of the result; what else lies there stays."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "jobs.csv").write_text("old")
    (out / "notes.txt").write_text("mine")
    assert run("simulate", log, "--nodes", "2x4", "--out", out)[0] == 2
    assert (out / "jobs.csv").read_text() == "old"
    code, printed, _ = run("simulate", log, "--nodes", "2x4", "--out", out, "--force")
    assert code == 0
    assert str(out) in printed
    assert (out / "jobs.csv").read_text().startswith("id,queue,")
    assert (out / "notes.txt").read_text() == "mine"


def test_generate_writes_a_log_and_failures_that_simulate_takes(run: Run, tmp_path: Path) -> None:
    """The log's header says how many nodes there are."""
    log, failures = tmp_path / "made.swf.gz", tmp_path / "failures.csv"
    options = ("--jobs", 40, "--nodes", "4x4", "--load", 0.8)
    losses = ("--failures-out", failures, "--node-mtbf", "48h")
    code, out, _ = run("generate", log, *options, *losses)
    assert code == 0
    assert "40 jobs" in out
    first = log.read_bytes()
    assert run("generate", log, *options)[0] == 2
    assert run("generate", log, *options, "--force")[0] == 0
    assert log.read_bytes() == first
    code, out, _ = run("simulate", log, "--failures", failures, "--check")
    assert code == 0
    assert "4 with 16 cores" in out


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--jobs", "0"], "jobs 0"),
        (["--nodes", "0x4"], "0x4"),
        (["--procs", "-1"], "-1"),
        (["--users", "-2"], "users -2"),
        (["--failure-share", "2"], "failure share 2"),
        (["--load", "nan"], "load nan"),
        (["--seed", "-1"], "seed -1"),
        (["--node-mtbf", "1s", "--failures-out", "f.csv"], "60 s or more"),
        (["--node-mtbf", "48h"], "--node-mtbf: no failures are written; add --failures-out"),
        (["--procs", "4", "--nodes", "2x2"], "--procs 4 and --nodes 2x2 are two machines"),
        (["--failures-out", "made.swf"], "named twice"),
    ],
)
def test_generate_refuses_what_cannot_be_made(
    options: list[str], part: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, exit code 2, no file."""
    monkeypatch.chdir(tmp_path)
    code, out, err = run("generate", "made.swf", *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert part in err
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_leaves_nothing_and_says_so(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a long simulation: exit code 130, no traceback, no folder."""
    log = tmp_path / "log.swf"
    log.write_text(log_text(*({2: 10 * n, 4: 500, 12: n % 9} for n in range(30_000))))
    code = (
        "import sys; from pyresched.cli.__main__ import main; print('ready', flush=True)\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", code, "simulate", log, "--nodes", "10x4"),
            *("--out", tmp_path / "out"),
        ],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(1.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err) == ("", "pyresched: interrupted; nothing was written\n")
    assert [path.name for path in tmp_path.iterdir()] == ["log.swf"]


def test_a_reader_that_goes_away_is_no_error(log: Path) -> None:
    """As when the output goes to head."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = subprocess.run(
        [sys.executable, "-m", "pyresched.cli", "simulate", log, "--nodes", "2x4", "--json"],
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write_end)
    assert process.stderr == ""
    assert process.returncode == 1


def test_a_missing_extra_is_one_line_that_says_what_to_install() -> None:
    """Not a traceback about a module that users never heard of."""
    code = (
        "import sys; sys.modules['typer'] = None\n"
        "from pyresched.cli.__main__ import main; sys.exit(main(['--help']))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert process.returncode == 2
    assert process.stderr == (
        "pyresched: the command line needs typer: pip install 'pyresched[cli]'\n"
    )
