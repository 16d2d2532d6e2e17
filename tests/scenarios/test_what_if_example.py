"""The what-if example runs as it is written."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "what_if.py"


def test_the_example_tries_a_change_and_publishes_it() -> None:
    """The urgent jobs take the places of as many others, and the dry run is applied."""
    said = subprocess.run(
        [sys.executable, EXAMPLE], capture_output=True, check=True, text=True
    ).stdout.splitlines()
    assert said == [
        "400 jobs would start, 400 with the last 60 urgent:",
        "  60 that had to wait, 60 would wait instead",
        "published as version 2",
    ]
