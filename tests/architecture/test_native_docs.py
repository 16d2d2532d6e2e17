"""What `help()` says of native names is what the stubs say, and nothing public is silent."""

import ast
from importlib import import_module
from inspect import getattr_static
from types import SimpleNamespace

import pytest

from kit.repository import ROOT
from pyresched import indices, jobdb, model

STUBS = ROOT / "src" / "pyresched" / "_core"
PUBLIC = {name for part in (model, jobdb, indices) for name in part.__all__}


def flowing(text):
    """*text* without its line breaks: where they stand may differ."""
    return " ".join((text or "").split())


def described(body, owner):
    """(stub, class that it is in or None, the native thing) for each public name."""
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_"):
            continue
        if any("type_check_only" in ast.dump(each) for each in node.decorator_list):
            continue
        there = getattr_static(owner, node.name)
        yield node, owner if isinstance(owner, type) else None, there
        if isinstance(node, ast.ClassDef):
            yield from described(node.body, there)


def doc_breaches(stub, module):
    """Each native name of *stub* (text) that says nothing, or something else than the stub.

    An attribute that no code computes has no place for words: its class names it.
    """
    for node, owner, there in described(ast.parse(stub).body, module):
        name = node.name if owner is None else f"{owner.__name__}.{node.name}"
        said, promised = flowing(there.__doc__), flowing(ast.get_docstring(node))
        if said:
            if promised and said != promised:
                yield f"{name}: the stub says {promised!r}, the native name {said!r}"
        elif type(there).__name__ != "getset_descriptor":
            yield f"{name} says nothing"
        elif owner.__name__ in PUBLIC and f"`{node.name}`" not in flowing(owner.__doc__):
            yield f"{name} says nothing, nor does its class of it"


@pytest.mark.parametrize("name", sorted(path.stem for path in STUBS.glob("*.pyi")))
def test_native_names_say_what_their_stubs_say(name):
    """One contract, for editors and for `help()`."""
    stub = (STUBS / f"{name}.pyi").read_text(encoding="utf-8")
    assert list(doc_breaches(stub, import_module(f"pyresched._core.{name}"))) == []


def test_a_native_name_that_is_silent_or_says_another_thing_is_seen():
    """Negative control for each kind."""
    module = SimpleNamespace(Gang=model.Gang, silent=lambda: None, Run=model.Run)
    stub = (
        "class Gang:\n    @property\n    def cardinality(self): ...\n    _own: int\n"
        "def silent(): ...\n"
        'class Run:\n    def replace(self, **changes):\n        """Another thing."""\n'
    )
    assert [line.split()[0] for line in doc_breaches(stub, module)] == ["silent", "Run.replace:"]


def test_an_attribute_that_nobody_explains_is_seen(monkeypatch):
    """Negative control: refusals are the round's own, so nobody need explain what is in them."""
    stub = "class Refused:\n    @property\n    def reasons(self): ...\n"
    module = import_module("pyresched._core.roundanswers")
    assert list(doc_breaches(stub, module)) == []
    monkeypatch.setattr(f"{__name__}.PUBLIC", {"Refused"})
    (breach,) = doc_breaches(stub, module)
    assert breach == "Refused.reasons says nothing, nor does its class of it"
