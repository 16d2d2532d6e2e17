"""The public face: quick to import, complete, and without any extra."""

import subprocess
import sys

import pytest

import pyresched

EXTRAS = ("typer", "rich", "yaml", "altair", "vl_convert", "litestar", "sqlalchemy", "pyarrow")


def test_importing_the_package_loads_none_of_its_parts() -> None:
    """A name is loaded when it is first asked for."""
    code = (
        "import sys, pyresched\n"
        "loaded = [m for m in sys.modules if m.startswith('pyresched.')]\n"
        "assert loaded == [], loaded\n"
        "pyresched.InputError\n"
        "assert 'pyresched.errors' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_public_name_needs_an_extra() -> None:
    """Base dependencies are enough for all of the library."""
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({EXTRAS!r}))\n"
        "import pyresched\n"
        "for name in pyresched.__all__: getattr(pyresched, name)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", pyresched.__all__)
def test_each_public_name_is_there_and_documented(name: str) -> None:
    """Also in dir(), for completion."""
    value = getattr(pyresched, name)
    assert value.__doc__
    assert name in dir(pyresched)


def test_the_list_of_names_and_that_of_their_homes_agree() -> None:
    """One does not grow without the other."""
    assert sorted(pyresched._HOMES) == sorted(pyresched.__all__) == list(pyresched.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = pyresched.nothing
    assert pyresched.__version__
