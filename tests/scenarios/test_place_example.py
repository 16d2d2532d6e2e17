"""The placing example runs as it is written."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "place.py"


def test_the_example_places_refuses_and_says_why() -> None:
    """One gang is placed and stays, a larger one is taken back whole; reasons count every node."""
    said = subprocess.run(
        [sys.executable, EXAMPLE], capture_output=True, check=True, text=True
    ).stdout.splitlines()
    assert said == [
        "asked                   answer",
        "2 cores                 n001",
        "2 cores, rather on ssd  n004",
        "2 cores in zone c       n002",
        "2 GPUs, H100            n010",
        "8 GPUs, H100            exceeds every node: gpu: wanted 8, best node had 4",
        "gang of 6               n010, n030, n050, n010, n030, n050",
        "gang of 12              none; 4 alone would fit",
        "                          95 nodes: constraint not met: gpu.model = H100",
        "                          5 nodes: insufficient resources: gpu: wanted 2, best node had 0",
        "6 cores of a full pool  n099, without spare717, spare718, spare719",
        "afterwards              <NodeFork of pool 'default', 100 nodes, 6 jobs>",
    ]
