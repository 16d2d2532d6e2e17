"""What a job asks of the labels of a node: constraints, preferences, spread.

One language for both dialects: the operators of Kubernetes' node affinity and of Nomad's
constraints, each with the meaning it has there. Values are checked when they are made.
"""

import re
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr

from pyresched.errors import InputError, did_you_mean
from pyresched.model.patterns import Pattern
from pyresched.model.versions import VersionRange

__all__ = ["Constraint", "Operator", "Preference", "Spread"]

Number = TypeVar("Number", int, float, str)
_LONGEST: Final = 1024
_HEAVIEST: Final = 100
_ALL_PERCENT: Final = 100
_INT64_MAX: Final = 2**63 - 1
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)


class Operator(StrEnum):
    """How a label is compared. `docs/placement.md` has them in a table."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"
    EQUAL = "="
    NOT_EQUAL = "!="
    GREATER = ">"
    GREATER_EQUAL = ">="
    LESS = "<"
    LESS_EQUAL = "<="
    REGEXP = "regexp"
    VERSION = "version"
    SEMVER = "semver"
    SET_CONTAINS = "set_contains"
    SET_CONTAINS_ANY = "set_contains_any"
    IS_SET = "is_set"
    IS_NOT_SET = "is_not_set"
    DISTINCT_HOSTS = "distinct_hosts"
    DISTINCT_PROPERTY = "distinct_property"

    @classmethod
    def _missing_(cls, value: object) -> "Operator | None":
        """Other spellings of the same operators."""
        return _SPELLINGS.get(value) if isinstance(value, str) else None


_SPELLINGS: Final = {
    "==": Operator.EQUAL,
    "is": Operator.EQUAL,
    "not": Operator.NOT_EQUAL,
    "set_contains_all": Operator.SET_CONTAINS,
}
_DISTINCT: Final = frozenset({Operator.DISTINCT_HOSTS, Operator.DISTINCT_PROPERTY})
_PRESENCE: Final = frozenset(
    {Operator.EXISTS, Operator.DOES_NOT_EXIST, Operator.IS_SET, Operator.IS_NOT_SET}
)
_ANY_NUMBER: Final = frozenset({Operator.IN, Operator.NOT_IN})
_INTEGERS: Final = frozenset({Operator.GT, Operator.LT})
_NEGATIVE: Final = frozenset(
    {Operator.NOT_IN, Operator.DOES_NOT_EXIST, Operator.NOT_EQUAL, Operator.IS_NOT_SET}
)


class Constraint(Struct, frozen=True, order=True, gc=False, forbid_unknown_fields=True):
    """A condition on one label of a node: `Constraint("zone", Operator.IN, ("a", "b"))`.

    In and NotIn take one or more values, Gt and Lt an integer, Exists, DoesNotExist, is_set
    and is_not_set none, the others one. distinct_hosts names no label: no two jobs of a scope
    on one node ("false": no condition). distinct_property: at most so many jobs of a scope on
    the nodes of one value (1 unless a number is given). Values of In and NotIn are sorted.
    """

    label: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises InputError for a constraint that cannot be."""
        if type(self.operator) is not Operator:
            force_setattr(self, "operator", _operator(self.operator))
        if self.operator is Operator.DISTINCT_HOSTS:
            if self.label:
                raise InputError(f"{self.operator} takes no label, got {self.label!r}; drop it")
        else:
            _check_label(self.label, f"constraint {self.operator}")
        if type(self.values) is not tuple:
            raise InputError(f"{self._name}: values is a tuple, got {self.values!r}")
        for value in self.values:
            _check_text(value, self._name)
        self._check_count()
        self._check_values()

    def accepts(self, value: str | None) -> bool:
        """Whether a node whose label has *value* may be used; None is a label that is absent.

        The distinct ones depend on other jobs: of a node by itself distinct_hosts asks nothing,
        distinct_property that it has the label.
        """
        if self.operator is Operator.DISTINCT_HOSTS:
            return True
        if value is None:
            return self.operator in _NEGATIVE and self.values != ("",)
        return _ACCEPTS[self.operator](value, self.values)

    @property
    def distinct(self) -> bool:
        """Whether it counts the other jobs of its scope."""
        return self.operator in _DISTINCT and self.limit > 0

    @property
    def limit(self) -> int:
        """Jobs of a scope on one node or value, if distinct; 0 is no limit."""
        if self.operator is Operator.DISTINCT_HOSTS:
            return 0 if self.values == ("false",) else 1
        if self.operator is Operator.DISTINCT_PROPERTY:
            return int(self.values[0]) if self.values else 1
        return 0

    def __str__(self) -> str:
        return " ".join(
            part for part in (self.label, self.operator.value, ", ".join(self.values)) if part
        )

    @property
    def _name(self) -> str:
        return f"constraint {self.operator} on {self.label!r}" if self.label else self.operator

    def _check_count(self) -> None:
        """Raise InputError unless there are as many values as the operator takes."""
        operator, count = self.operator, len(self.values)
        if operator in _PRESENCE:
            right, takes = count == 0, "none"
        elif operator in _ANY_NUMBER:
            right, takes = count > 0, "at least one"
        elif operator in _DISTINCT:
            right, takes = count <= 1, "at most one"
        else:
            right, takes = count == 1, "exactly one"
        if not right:
            raise InputError(f"{self._name}: {count} values; write {takes}")

    def _check_values(self) -> None:
        """Raise InputError for a value that the operator cannot read."""
        operator, values = self.operator, self.values
        if operator in _ANY_NUMBER:
            force_setattr(self, "values", tuple(sorted(set(values))))
        elif operator in _INTEGERS and _int64(values[0]) is None:
            raise InputError(f"{self._name}: {values[0]!r} is no 64-bit integer; write one like 4")
        elif operator is Operator.DISTINCT_HOSTS:
            if values not in ((), ("",), ("true",), ("false",)):
                raise InputError(f"{self._name}: {values[0]!r}; write true or false")
            if values != ("false",):
                force_setattr(self, "values", ())
        elif operator is Operator.DISTINCT_PROPERTY and values:
            limit = _int64(values[0]) if values[0] else 1
            if limit is None or not 1 <= limit < 2**31:
                raise InputError(f"{self._name}: limit {values[0]!r}; write a number from 1 on")
            force_setattr(self, "values", () if limit == 1 else (str(limit),))
        elif operator in _COMPILED:
            try:
                _COMPILED[operator](values[0])
            except InputError as bad:
                raise InputError(f"{self._name}: {bad}") from None


class Preference(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """Nodes for which all of *constraints* hold are liked by *weight*, or shunned below 0.

    A node scores the weights of the preferences that hold for it. No constraints: holds for
    no node, as in Kubernetes.
    """

    weight: int
    constraints: tuple[Constraint, ...]

    def __post_init__(self) -> None:
        """Raises InputError for a preference that cannot be."""
        weight = self.weight
        if type(weight) is not int or not weight or abs(weight) > _HEAVIEST:
            raise InputError(
                f"preference: weight {weight!r}; write a whole number from -100 to 100, not 0"
            )
        _check_members(self.constraints, Constraint, "preference: constraints")
        for each in self.constraints:
            if each.operator in _DISTINCT:
                raise InputError(
                    f"preference: {each.operator} is no preference; put it under constraints"
                )
        force_setattr(self, "constraints", tuple(sorted(set(self.constraints))))


class Spread(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The jobs of a scope are spread over the values of *label*: evenly, or by *targets*.

    A target is a value and its share in percent; what they leave is the share of each value
    that is not named. *weight* is this spread's beside others.
    """

    label: str
    weight: int = 50
    targets: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        """Raises InputError for a spread that cannot be."""
        _check_label(self.label, "spread")
        name = f"spread over {self.label!r}"
        if type(self.weight) is not int or not 1 <= self.weight <= _HEAVIEST:
            raise InputError(f"{name}: weight {self.weight!r}; write a whole number from 1 to 100")
        if type(self.targets) is not tuple:
            raise InputError(f"{name}: targets is a tuple, got {self.targets!r}")
        for target in self.targets:
            if type(target) is not tuple or len(target) != len(("value", "percent")):
                raise InputError(f"{name}: target {target!r}; write a value and its percent")
            value, percent = target
            _check_text(value, f"{name}: target")
            if type(percent) is not int or not 0 <= percent <= _ALL_PERCENT:
                raise InputError(f"{name}: {percent!r} percent for {value!r}; write 0 to 100")
        values = [value for value, _ in self.targets]
        for i, value in enumerate(values):
            if value in values[:i]:
                raise InputError(f"{name}: target {value!r} is there twice; drop one")
        total = sum(percent for _, percent in self.targets)
        if total > _ALL_PERCENT:
            raise InputError(f"{name}: targets make {total} percent; write at most 100")
        force_setattr(self, "targets", tuple(sorted(self.targets)))

    def percent_of(self, value: str) -> int:
        """The share of *value* in percent, if there are targets."""
        shares = dict(self.targets)
        return shares.get(value, _ALL_PERCENT - sum(shares.values()))


# --- reading ------------------------------------------------------------------------------------


def _operator(written: object) -> Operator:
    try:
        return Operator(str(written))
    except ValueError:
        known = [*(each.value for each in Operator), *_SPELLINGS]
        raise InputError(
            f"operator {written!r} is not known; {did_you_mean(str(written), known)}"
        ) from None


def _check_text(value: object, name: str) -> None:
    if not isinstance(value, str):
        raise InputError(f"{name}: value {value!r} is no text; write it in quotes")
    if len(value) > _LONGEST:
        raise InputError(
            f"{name}: {value[:32]!r}... has {len(value)} characters; write at most {_LONGEST}"
        )


def _check_label(label: object, name: str) -> None:
    if not isinstance(label, str) or not label:
        raise InputError(f"{name}: label {label!r}; write the name of a label of nodes")
    _check_text(label, name)


def _check_members(values: object, cls: type, name: str) -> None:
    if type(values) is not tuple or not all(type(each) is cls for each in values):
        raise InputError(f"{name} is a tuple of {cls.__name__}, got {values!r}")


def _int64(text: str) -> int | None:
    """The 64-bit integer that *text* is, or None."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and -_INT64_MAX - 1 <= number <= _INT64_MAX else None


# --- comparing ----------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _pattern(text: str) -> Pattern:
    return Pattern(text)


@lru_cache(maxsize=1024)
def _version_range(text: str) -> VersionRange:
    return VersionRange(text, strict=False)


@lru_cache(maxsize=1024)
def _semver_range(text: str) -> VersionRange:
    return VersionRange(text, strict=True)


_COMPILED: Final = {
    Operator.REGEXP: _pattern,
    Operator.VERSION: _version_range,
    Operator.SEMVER: _semver_range,
}


def _members(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(","))


def _sign(one: str, other: str) -> int:
    """Below, at or above 0 as *one* is to *other*."""
    if _INTEGER.fullmatch(one) and _INTEGER.fullmatch(other):
        return _compared(int(one), int(other))
    if _DECIMAL.fullmatch(one) and _DECIMAL.fullmatch(other):
        return _compared(float(one), float(other))
    return _compared(one, other)


def _integer_sign(value: str, wanted: tuple[str, ...]) -> int:
    """Below, at or above 0 as *value* is to the integer wanted; 0 if it is none."""
    had = _int64(value)
    return 0 if had is None else _compared(had, int(wanted[0]))


def _compared(one: Number, other: Number) -> int:
    return (one > other) - (one < other)


_ACCEPTS: Final[dict[Operator, Callable[[str, tuple[str, ...]], bool]]] = {
    Operator.IN: lambda value, wanted: value in wanted,
    Operator.NOT_IN: lambda value, unwanted: value not in unwanted,
    Operator.EXISTS: lambda *_: True,
    Operator.DOES_NOT_EXIST: lambda *_: False,
    Operator.GT: lambda value, wanted: _integer_sign(value, wanted) > 0,
    Operator.LT: lambda value, wanted: _integer_sign(value, wanted) < 0,
    Operator.EQUAL: lambda value, wanted: value == wanted[0],
    Operator.NOT_EQUAL: lambda value, unwanted: value != unwanted[0],
    # As integers if both are, else as numbers if both are, else as text.
    Operator.GREATER: lambda value, wanted: _sign(value, wanted[0]) > 0,
    Operator.GREATER_EQUAL: lambda value, wanted: _sign(value, wanted[0]) >= 0,
    Operator.LESS: lambda value, wanted: _sign(value, wanted[0]) < 0,
    Operator.LESS_EQUAL: lambda value, wanted: _sign(value, wanted[0]) <= 0,
    Operator.REGEXP: lambda value, wanted: _pattern(wanted[0]).found_in(value),
    Operator.VERSION: lambda value, wanted: _version_range(wanted[0]).holds(value),
    Operator.SEMVER: lambda value, wanted: _semver_range(wanted[0]).holds(value),
    Operator.SET_CONTAINS: lambda value, wanted: _members(wanted[0]) <= _members(value),
    Operator.SET_CONTAINS_ANY: lambda value, wanted: bool(_members(wanted[0]) & _members(value)),
    Operator.IS_SET: lambda *_: True,
    Operator.IS_NOT_SET: lambda *_: False,
    Operator.DISTINCT_PROPERTY: lambda *_: True,
}
