"""Runs the cases inside the native core. Needs a build with PYRESCHED_SELFTEST."""

import pytest

from pyresched._core import selftest

CASES = sorted(name for name in dir(selftest) if name.startswith("test_"))


def test_there_are_cases():
    """An empty module is a failure, not a pass."""
    assert CASES


def test_asserts_are_compiled_in():
    """Without them no case can fail."""
    assert selftest.asserts_are_on()


@pytest.mark.parametrize("case", CASES)
def test_native(case):
    """The case holds."""
    getattr(selftest, case)()
