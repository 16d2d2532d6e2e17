"""From a file to plain values, and from plain values to structs, with every fault named.

Owns the syntax (TOML, YAML, JSON) and the sentence of each fault; what values mean belongs to
the structs. Nothing here raises anything but `InputError` for what a user wrote.
"""

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import reduce
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import msgspec.inspect as shapes

from pyresched.errors import InputError, MissingExtra, did_you_mean
from pyresched.model import parse_duration

__all__ = ["Fault", "decode", "key_path", "read_mapping", "refuse"]

T = TypeVar("T")
# Aliases let a few lines of YAML stand for billions of values; no real file comes near.
_MOST_VALUES: Final = 1_000_000
_SHOWN: Final = 64  # characters of a bad value that a message repeats
_ALSO: Final = 5  # further faults that a message names
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


class Fault(msgspec.Struct, frozen=True):
    """One thing wrong: the path of its key, and a sentence that says what would be right."""

    path: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.path}: {self.sentence}" if self.path else self.sentence


Check = Callable[[Mapping[str, Any]], Iterator[tuple[tuple[str, ...], str]]]
"""Of the fields as written, the path of each value that cannot be used, with a sentence."""


def refuse(faults: list[Fault], *, source: str, error: type[InputError] = InputError) -> InputError:
    """The error for *faults* (at least one) of *source*: one line, the first in full."""
    first, *others = faults
    text = f"{source}: {first}" if source else str(first)
    if others:
        named = ", ".join(fault.path or "the file" for fault in others[:_ALSO])
        text += f" (and {len(others)} more: {named}{', ...' if len(others) > _ALSO else ''})"
    return error(text)


def read_mapping(path: str | Path, *, error: type[InputError] = InputError) -> dict[str, Any]:
    """The top level of a TOML, YAML or JSON file, by the ending of its name.

    Raises *error* for a file that is missing, unreadable, broken, or not a table.
    """
    path = Path(path)
    syntax = _SYNTAX.get(path.suffix.lower())
    if syntax is None:
        known = ", ".join(_SYNTAX)
        raise error(f"{path}: cannot tell its format; name it with one of {known}")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as bad:
        raise error(f"{path}: byte {bad.start} is not UTF-8 text; save it as UTF-8") from None
    except OSError as bad:
        reason = bad.strerror or type(bad).__name__
        raise error(f"{path}: {reason}; name a file that can be read") from None
    except ValueError:  # a NUL in the name
        raise error(f"{str(path)!r}: not a file name; name a file that can be read") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise error(f"{path}: line {line} has a NUL character; save it as plain text")
    try:
        top = syntax(text)
    except RecursionError:
        raise error(f"{path}: nested too deeply; a few levels are enough") from None
    except ValueError as bad:
        raise error(f"{path}: {_first_line(bad)}") from None
    if top is None:
        top = {}
    if not isinstance(top, dict):
        raise error(f"{path}: {_named(top)} at the top; write keys with values")
    return top


def decode(
    written: Mapping[str, Any],
    cls: type[T],
    *,
    source: str = "",
    error: type[InputError] = InputError,
    hidden: Mapping[type, frozenset[str]] = {},
    checks: Mapping[type, Check] = {},
) -> T:
    """*written* as a *cls* (a msgspec struct). Raises *error*, which names every fault.

    *hidden* lists, for a struct, fields that a file may not write; *checks* has, for a struct,
    what finds the fields whose values it could not be made of.
    """
    walk = _Walk(hidden, checks)
    try:
        prepared = walk.value(dict(written), shapes.type_info(cls), "")
    except RecursionError:
        nested = Fault("", "nested too deeply; a few levels are enough")
        raise refuse([nested], source=source, error=error) from None
    if walk.faults:
        raise refuse(walk.faults, source=source, error=error)
    try:
        return msgspec.convert(prepared, cls)
    except msgspec.ValidationError as bad:
        cause = bad.__cause__
        sentence = str(cause if isinstance(cause, InputError) else bad)
        raise refuse([Fault("", sentence)], source=source, error=error) from None


class _Walk:
    """One pass over what was written, against the shape of the struct that it is meant for."""

    def __init__(self, hidden: Mapping[type, frozenset[str]], checks: Mapping[type, Check]) -> None:
        self.faults: list[Fault] = []
        self._hidden = hidden
        self._checks = checks
        self._seen = 0

    def value(self, written: object, shape: shapes.Type, path: str) -> object:
        """*written* with durations as numbers; what does not fit *shape* becomes a fault."""
        self._seen += 1
        if self._seen > _MOST_VALUES:
            if self._seen == _MOST_VALUES + 1:
                self._fault("", f"more than {_MOST_VALUES} values; split it")
            return None
        match shape:
            case shapes.Metadata():
                return self._annotated(written, shape, path)
            case shapes.UnionType(types=types):
                return self._union(written, types, path)
            case shapes.EnumType(cls=cls):
                return self._member(written, cls, path)
            case shapes.LiteralType(values=values):
                return self._choice(written, [str(value) for value in values], path)
        return self._plain(written, shape, path)

    def _plain(self, written: Any, shape: shapes.Type, path: str) -> object:  # noqa: ANN401 - checked here
        """A value of one kind, with what it contains."""
        if not _fits(written, shape):
            self._fault(path, f"{_named(written)}; write {_wanted(shape)}")
            return None
        match shape:
            case shapes.StructType():
                return self._struct(written, shape, path)
            case shapes.VarTupleType(item_type=item) | shapes.ListType(item_type=item):
                return [self.value(each, item, f"{path}[{i}]") for i, each in enumerate(written)]
            case shapes.TupleType(item_types=items):
                pairs = enumerate(zip(written, items, strict=True))
                return [self.value(each, item, f"{path}[{i}]") for i, (each, item) in pairs]
            case shapes.DictType(value_type=each):
                return {
                    name: self.value(inner, each, _join(path, name))
                    for name, inner in self._text_keys(written, path)
                }
            case _:
                return written

    def _fault(self, path: str, sentence: str) -> None:
        self.faults.append(Fault(path, sentence))

    def _annotated(self, written: object, shape: shapes.Metadata, path: str) -> object:
        if not _is_duration(shape):
            return self.value(written, shape.type, path)
        try:
            return parse_duration(written)  # type: ignore[arg-type]  # other types are a fault
        except InputError as bad:
            self._fault(path, str(bad))
            return 0

    def _choice(self, written: object, names: list[str], path: str) -> object:
        if written not in names:
            shown = f"{_shown(written)} is not one of them"
            self._fault(path, f"{shown}; {did_you_mean(str(written)[:_SHOWN], names)}")
        return written

    def _member(self, written: object, cls: type[Enum], path: str) -> object:
        """A member of an enum by its value, or by another spelling that the enum knows."""
        try:
            return cls(written).value
        except ValueError:
            return self._choice(written, [str(member.value) for member in cls], path)

    def _union(self, written: object, types: tuple[shapes.Type, ...], path: str) -> object:
        plain = [each for each in types if not isinstance(each, shapes.NoneType)]
        if written is None and len(plain) < len(types):
            return None
        if len(plain) == 1:
            return self.value(written, plain[0], path)
        for each in plain:
            if _fits(written, each):
                return self.value(written, each, path)
        wanted = " or ".join(_wanted(each) for each in plain)
        self._fault(path, f"{_named(written)}; write {wanted}")
        return None

    def _struct(self, written: dict[Any, Any], shape: shapes.StructType, path: str) -> object:
        hidden = self._hidden.get(shape.cls, frozenset())
        fields = {f.encode_name: f for f in shape.fields if f.encode_name not in hidden}
        prepared = {}
        before = len(self.faults)
        for name, value in self._text_keys(written, path):
            if name not in fields:
                self._fault(_join(path, name), f"unknown key; {did_you_mean(name, fields)}")
            else:
                prepared[name] = self.value(value, fields[name].type, _join(path, name))
        for name, field in fields.items():
            if field.required and name not in written:
                self._fault(path, f"{name!r} is missing; write {_wanted(field.type)}")
        check = self._checks.get(shape.cls)
        if check is not None and len(self.faults) == before:
            for names, sentence in check(prepared):
                self._fault(key_path(path, *names), sentence)
        if hasattr(shape.cls, "__post_init__") and len(self.faults) == before:
            try:
                msgspec.convert(prepared, shape.cls)
            except msgspec.ValidationError as bad:
                self._fault(path, str(bad.__cause__ or bad))
        return prepared

    def _text_keys(self, written: dict[Any, Any], path: str) -> Iterator[tuple[str, Any]]:
        for name, value in written.items():
            if isinstance(name, str):
                yield name, value
            else:
                self._fault(path, f"key {_shown(name)} is not text; put it in quotes")


_KINDS: Final[Mapping[type, tuple[type, ...]]] = {
    shapes.BoolType: (bool,),
    shapes.IntType: (int,),
    shapes.FloatType: (int, float),
    shapes.StrType: (str,),
    shapes.StructType: (dict,),
    shapes.DictType: (dict,),
    shapes.ListType: (list, tuple),
    shapes.VarTupleType: (list, tuple),
    shapes.AnyType: (object,),
    shapes.CustomType: (object,),
}
_WORDS: Final[Mapping[type, str]] = {
    shapes.BoolType: "true or false",
    shapes.IntType: "a whole number",
    shapes.FloatType: "a finite number",
    shapes.StrType: "text",
    shapes.DictType: "a table of names with values",
}


def _is_duration(shape: shapes.Metadata) -> bool:
    return shape.extra == {"written": "duration"}


def _fits(written: object, shape: shapes.Type) -> bool:
    """Whether *written* is of the kind that *shape* wants, whatever it contains."""
    if isinstance(shape, shapes.Metadata):
        return _fits(written, shape.type)
    if isinstance(written, bool) and not isinstance(shape, shapes.BoolType):
        return False
    if isinstance(written, float) and not math.isfinite(written):
        return False
    if isinstance(shape, shapes.TupleType) and isinstance(written, list | tuple):
        return len(written) == len(shape.item_types)
    return isinstance(written, _KINDS.get(type(shape), ()))


def _wanted(shape: shapes.Type) -> str:
    """What to write for *shape*, in words."""
    match shape:
        case shapes.Metadata(type=inner):
            return "a duration such as 30s" if _is_duration(shape) else _wanted(inner)
        case shapes.UnionType(types=types):
            plain = (each for each in types if not isinstance(each, shapes.NoneType))
            wanted = " or ".join(_wanted(each) for each in plain)
        case shapes.StructType(fields=fields):
            needed = [f.encode_name for f in fields if f.required]
            some = needed or [f.encode_name for f in fields]
            wanted = f"a table with keys such as {', '.join(some[:4])}"
        case shapes.VarTupleType(item_type=item) | shapes.ListType(item_type=item):
            wanted = f"a list, each item {_wanted(item)}"
        case shapes.TupleType(item_types=items):
            wanted = f"a list of {len(items)}: {', '.join(map(_wanted, items))}"
        case shapes.EnumType(cls=cls):
            wanted = " or ".join(str(member.value) for member in cls)
        case _:
            wanted = _WORDS.get(type(shape), "another value")
    return wanted


def _named(written: object) -> str:
    """The kind and, where short, the value of something that is not wanted."""
    match written:
        case None:
            return "nothing is written"
        case dict():
            return "this is a table"
        case list() | tuple():
            return "this is a list"
        case bool():
            return f"{str(written).lower()} is not right here"
        case _:
            return f"{_shown(written)} is not right here"


def _shown(written: object) -> str:
    text = repr(written)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def key_path(path: str, *names: str) -> str:
    """The path of the key that *names* lead to from *path*, as a fault shows it."""
    return reduce(_join, names, path)


def _join(path: str, name: str) -> str:
    shown = name if _PLAIN_KEY.fullmatch(name) else json.dumps(name[:_SHOWN])
    return f"{path}.{shown}" if path else shown


def _first_line(bad: ValueError) -> str:
    return str(bad).splitlines()[0] if str(bad) else type(bad).__name__


def _parse_json(text: str) -> object:
    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        table = dict(pairs)
        if len(table) < len(pairs):
            seen: set[str] = set()
            for name, _ in pairs:
                if name in seen:
                    raise ValueError(f"key {name!r} is written twice; keep one")
                seen.add(name)
        return table

    def no_constant(name: str) -> object:
        raise ValueError(f"{name} is not a number in JSON; write a finite number")

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=no_constant)
    except json.JSONDecodeError as bad:
        raise ValueError(f"line {bad.lineno}, column {bad.colno}: {bad.msg}") from None


def _parse_yaml(text: str) -> object:
    try:
        from pyresched.config.yaml_text import parse  # noqa: PLC0415 - an optional part
    except ImportError:
        raise MissingExtra(
            "reading YAML needs pyyaml; install pyresched[cli], or write TOML or JSON"
        ) from None
    return parse(text)


_SYNTAX: Final[Mapping[str, Callable[[str], object]]] = {
    ".toml": tomllib.loads,
    ".yaml": _parse_yaml,
    ".yml": _parse_yaml,
    ".json": _parse_json,
}
