"""What the import linter cannot see: imports of native modules, and who names them."""

import ast
import re
import tomllib

import pytest

from kit.repository import NATIVE, ROOT, SELFTESTS, native_modules

DOOR = ROOT / "src" / "pyresched" / "_core"
CORE = "pyresched._core"
IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<origin>[\w.]+)[ \t]+(?:cimport|import)\b|(?:cimport|import)[ \t]+(?P<names>[\w., \t]+))",
    re.MULTILINE,
)


def imported(source):
    """Every module that Cython text *source* imports or cimports, as written."""
    for match in IMPORT.finditer(source):
        if match["origin"]:
            yield match["origin"]
        else:
            yield from (name.split()[0] for name in match["names"].split(",") if name.strip())


def native_breaches(order, sources):
    """Each import in *sources* (file name to text) that does not go down.

    *order* is that of the modules, lowest first. A `.pxd` without `.pyx` is inlined into its
    users and lies below all of them. Of Python modules only `pyresched.errors` lies lower.
    """
    inline = {name[:-4] for name in sources if name.endswith(".pxd")} - set(order) - {*SELFTESTS}
    rank = dict.fromkeys(inline, -1) | {name: at for at, name in enumerate([*order, *SELFTESTS])}
    for file, text in sorted(sources.items()):
        own = file.rsplit(".", 1)[0]
        for module in imported(text):
            if module.startswith("."):
                yield f"{file}: relative import of {module}; write the full name"
            elif module.startswith(f"{CORE}."):
                other = module.removeprefix(f"{CORE}.")
                if other not in rank:
                    yield f"{file}: {module} is not a module of src/_core"
                elif other != own and rank[other] >= rank[own]:
                    yield f"{file}: {module} is not below {own}"
            elif module.split(".")[0] == "pyresched" and module != "pyresched.errors":
                yield f"{file}: {module} lies above the native core"


def test_native_modules_import_from_lower_ones_only():
    """The order in CMakeLists.txt is the order of the layers."""
    sources = {path.name: path.read_text(encoding="utf-8") for path in NATIVE.glob("*.p[yx][xd]")}
    assert list(native_breaches(native_modules(), sources)) == []


@pytest.mark.parametrize(
    "line",
    [
        "from pyresched._core.top cimport Thing",
        "    from pyresched._core.top import Thing",
        "cimport pyresched._core.top as top",
        "import libc, pyresched._core.top",
        "from .bottom cimport Thing",
        "from pyresched._core.gone cimport Thing",
        "from pyresched.model import Node",
        "from pyresched._core import Job",
    ],
)
def test_a_native_import_that_does_not_go_down_is_named(line):
    """Negative control for each way to write one."""
    order = ["bottom", "middle", "top"]
    sources = {f"{name}.pyx": "from libc.stdint cimport int64_t\n" for name in order}
    sources["bits.pxd"] = ""
    sources["middle.pxd"] = (
        "from pyresched._core.bottom cimport Thing\nfrom pyresched._core.bits cimport low\n"
        "from pyresched.errors import InputError\n"
    )
    assert list(native_breaches(order, sources)) == []
    sources["middle.pyx"] += line + "\n"
    assert [text.split(":")[0] for text in native_breaches(order, sources)] == ["middle.pyx"]


def named_core_modules(source):
    """Compiled modules that Python text *source* names in an import."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith(f"{CORE}."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{CORE}."):
            yield node.module
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield "a relative import"


def test_only_the_door_names_compiled_modules():
    """Everything else imports from `pyresched._core`."""
    breaches = [
        f"{path.relative_to(ROOT)}: {module}"
        for path in sorted((ROOT / "src" / "pyresched").rglob("*.py"))
        if path != DOOR / "__init__.py"
        for module in named_core_modules(path.read_text(encoding="utf-8"))
    ]
    assert breaches == []


@pytest.mark.parametrize(
    "line",
    ["import pyresched._core.jobs", "from pyresched._core.jobs import Job", "from . import x"],
)
def test_naming_a_compiled_module_is_seen(line):
    """Negative control."""
    assert list(named_core_modules(f"def late():\n    {line}\n"))


def test_each_native_module_has_source_stub_and_ban():
    """CMake's list, the sources, the stubs beside the door and ruff's bans name the same modules."""
    modules = native_modules()
    assert sorted(path.stem for path in NATIVE.glob("*.pyx")) == sorted([*modules, *SELFTESTS])
    assert sorted(path.stem for path in DOOR.glob("*.pyi")) == sorted(modules)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    banned = settings["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    assert {f"{CORE}.{module}" for module in modules} <= set(banned)
