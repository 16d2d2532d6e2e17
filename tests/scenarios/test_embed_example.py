"""The embedding example runs as it is written, and stays short."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "embed.py"


def test_the_example_places_its_jobs_and_stays_short() -> None:
    """Services, a whole gang and a sweep get nodes; the program is under 40 lines."""
    said = subprocess.run(
        [sys.executable, EXAMPLE], capture_output=True, check=True, text=True
    ).stdout.splitlines()
    assert said[-1] == "29 jobs leased on 15 nodes with 264 cores"
    nodes = [line.split()[-1] for line in said[:-1]]
    assert len(nodes) == 29
    assert sorted(node for node in nodes if node.startswith("gpu")) == ["gpu0001", "gpu0002"]
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 40
