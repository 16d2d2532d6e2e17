"""The sdist and the wheel: what they hold, and that they install where nothing else is."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

import pytest

from kit.repository import ROOT, native_modules, tracked_files

# One process builds and installs for all of these.
pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("package")]


def run(*command, cwd, **environment):
    """Run *command* to success and return what it printed."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYRESCHED_", "PYTHON"))}
    result = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=kept | environment,
        capture_output=True,
        check=False,
        text=True,
    )
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]
    return result.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """An sdist made from the tracked files alone, and a wheel made from that sdist."""
    tree = tmp_path_factory.mktemp("tree")
    for path in tracked_files():
        target = tree / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    # What lies about in a checkout that has been worked in.
    for litter in (
        "dist/pyresched-0.0.1.whl",
        "build/x.o",
        ".venv/bin/python",
        "src/pyresched/x.so",
    ):
        (tree / litter).parent.mkdir(parents=True, exist_ok=True)
        (tree / litter).write_bytes(b"litter")
    out = tmp_path_factory.mktemp("out")
    run(sys.executable, "-m", "build", "--outdir", out, tree, cwd=tree)
    (sdist,) = out.glob("*.tar.gz")
    (wheel,) = out.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The Python of a new environment that has the wheel, its dependencies and no extra."""
    home = tmp_path_factory.mktemp("home")
    run(sys.executable, "-m", "venv", home / "venv", cwd=home)
    python = home / "venv" / "bin" / "python"
    run(
        python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", built[1], cwd=home
    )
    return python


def names_in(sdist):
    """Members of *sdist* without its top folder."""
    with tarfile.open(sdist) as archive:
        return {m.name.split("/", 1)[1] for m in archive.getmembers() if m.isfile()}


def test_the_sdist_holds_tracked_files_only(built):
    """Nothing that lay about; all that a build and its tests need."""
    names = names_in(built[0]) - {"PKG-INFO"}
    tracked = {str(path.relative_to(ROOT)) for path in tracked_files()}
    assert names - tracked == set()
    needed = {n for n in tracked if n.startswith(("src/", "tests/", "examples/", "docs/"))}
    assert needed | {"pyproject.toml", "CMakeLists.txt", "LICENSE", "README.md"} <= names


def test_the_wheel_holds_the_package_and_nothing_else(built):
    """Python sources, stubs, py.typed and one library for each native module."""
    with zipfile.ZipFile(built[1]) as archive:
        names = {n for n in archive.namelist() if not n.endswith("/")}
    package = {n for n in names if ".dist-info/" not in n}
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    sources = {str(p.relative_to(ROOT / "src")) for p in tracked_files("src/pyresched")}
    assert package == sources | {f"pyresched/_core/{m}{suffix}" for m in native_modules()}
    assert {n.rsplit(".", 1)[-1] for n in package} == {"py", "pyi", "so", "typed"}
    told = {n.split(".dist-info/")[1] for n in names - package}
    assert {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"} == told


def test_a_release_library_shows_one_name_and_has_no_asserts(built, tmp_path):
    """Each exports its PyInit alone, and refers to no AssertionError."""
    with zipfile.ZipFile(built[1]) as archive:
        libraries = [archive.extract(n, tmp_path) for n in archive.namelist() if n.endswith(".so")]
    assert libraries
    for library in libraries:
        symbols = run("nm", "--dynamic", library, cwd=tmp_path)
        exported = re.findall(r"^[0-9a-f]+ [A-TV-Z] (\w+)", symbols, re.MULTILINE)
        assert [name for name in exported if not name.startswith("PyInit_")] == [], library
        assert "PyExc_AssertionError" not in symbols, library


def test_the_package_imports_without_extras(installed, tmp_path):
    """Base dependencies are enough for the library, and no extra is loaded if it is there."""
    extras = ("typer", "rich", "yaml", "altair", "vl_convert", "litestar", "uvicorn")
    code = f"import sys, pyresched; print([m for m in {extras} if m in sys.modules])"
    assert run(installed, "-P", "-c", code, cwd=tmp_path).strip() == "[]"
    code = f"import sys; sys.modules.update(dict.fromkeys({extras})); import pyresched"
    run(sys.executable, "-P", "-c", code, cwd=tmp_path)
