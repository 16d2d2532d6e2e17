"""Runs the cases inside the native core, which a build with PYRESCHED_SELFTEST has.

Those on orders of nodes hold INV-B11, with each of its faults as a control.
"""

import importlib.util
import os

import pytest

DEV = os.environ.get("PYRESCHED_DEV") == "1"

if not DEV and importlib.util.find_spec("pyresched._core.selftest") is None:
    pytest.skip(
        "a release build has no native self-tests; PYRESCHED_DEV=1 makes a build that has them",
        allow_module_level=True,
    )

from pyresched._core import selfnodes, selftest, selftrees  # noqa: E402  above it stands why there may be none

CASES = {
    name: getattr(module, name)
    for module in (selfnodes, selftest, selftrees)
    for name in sorted(dir(module))
    if name.startswith("test_")
}


def test_there_are_cases():
    """An empty module is a failure, not a pass."""
    assert CASES


def test_asserts_are_compiled_in():
    """Without them no case can fail."""
    assert selftest.asserts_are_on()


@pytest.mark.parametrize("case", CASES)
def test_native(case):
    """The case holds."""
    CASES[case]()
