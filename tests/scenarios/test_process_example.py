"""The example that runs real processes does what its docstring says."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "run_processes.py"


def test_the_example_runs_its_commands_and_tries_the_broken_one_again() -> None:
    """Twice, as its policy says, and says how each run ended."""
    done = subprocess.run(
        [sys.executable, EXAMPLE], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == [
        "broken: failed exhausted (failed exit_3, failed exit_3, failed exit_3)",
        "hello: succeeded  (succeeded)",
        "slow: succeeded  (succeeded)",
    ]
    assert done.stderr == ""
