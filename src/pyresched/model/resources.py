"""What a resource vector means: names, units and rounding; quantities as people write them."""

import re
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import Final

from msgspec import Struct

from pyresched._core import ResourceVector
from pyresched.errors import InputError, did_you_mean

__all__ = ["Resource", "ResourceSpec", "Rounding", "parse_quantity"]

_INT64_MAX: Final = 2**63 - 1
_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]{1,99}(?:\.[0-9]{0,99})?|\.[0-9]{1,99})(?:[eE][+-]?[0-9]{1,2})?)"
    r"(?P<suffix>n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?"
)
_SUFFIX: Final[Mapping[str | None, Fraction]] = {
    None: Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    **{f"{s}i": Fraction(1024**n) for n, s in enumerate("KMGTPE", start=1)},
}
# Enough for int64 times any unit, and apart from whatever context the caller's thread has.
_PRINTING: Final = Context(prec=200)


@lru_cache(maxsize=1024, typed=True)  # typed: True is not 1 here
def parse_quantity(text: str | float) -> Fraction:
    """The exact value of a Kubernetes quantity: `2`, `500m`, `4Gi`, `1e3`. Raises InputError."""
    match = _QUANTITY.fullmatch(str(text).strip())
    if match is None or isinstance(text, bool):
        shown = repr(text)[:64]
        raise InputError(f"{shown} is not a quantity; write a number such as 2, 500m or 4Gi")
    return Fraction(match["number"]) * _SUFFIX[match["suffix"]]


class Rounding(Enum):
    """Requests round up, capacity rounds down, so that nothing is promised twice."""

    UP = "up"
    DOWN = "down"

    def whole(self, steps: Fraction) -> int:
        """*steps* as a whole number."""
        return ceil(steps) if self is Rounding.UP else floor(steps)


class Resource(Struct, frozen=True):
    """One resource: `unit` is the quantity that one step of its integer amount stands for.

    A *floating* one (licences, say) belongs to pools, not to nodes: it counts in shares and
    limits, and no node has it.
    """

    name: str
    unit: str = "1"
    floating: bool = False


class ResourceSpec(Struct, frozen=True):
    """The resources of a scheduler, in the order of every vector."""

    resources: tuple[Resource, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Resource names in vector order."""
        return tuple(resource.name for resource in self.resources)

    def zero(self) -> ResourceVector:
        """Nothing of any resource."""
        return ResourceVector.zero(len(self.resources))

    def vector(
        self, quantities: Mapping[str, str | float], *, rounding: Rounding
    ) -> ResourceVector:
        """The vector of *quantities* by resource name; a resource that is not named counts 0.

        Raises InputError for an unknown name, a negative or absurd amount, or bad text; TypeError
        for another *rounding*.
        """
        if not isinstance(rounding, Rounding):
            raise TypeError(f"rounding is a Rounding, got {rounding!r}")
        for name in quantities:
            if name not in self.names:
                raise InputError(f"unknown resource {name!r}; {did_you_mean(name, self.names)}")
        return ResourceVector([self._amount(r, quantities, rounding) for r in self.resources])

    def quantities(self, vector: ResourceVector) -> dict[str, str]:
        """Amounts as exact decimal text by resource name, resources of which there is none left out."""
        return {
            resource.name: _decimal_text(amount * parse_quantity(resource.unit))
            for resource, amount in zip(self.resources, vector, strict=True)
            if amount
        }

    def sum(self, vectors: Iterable[ResourceVector]) -> ResourceVector:
        """The saturating sum of *vectors*."""
        total = self.zero()
        for vector in vectors:
            total += vector
        return total

    @staticmethod
    def _amount(
        resource: Resource, quantities: Mapping[str, str | float], rounding: Rounding
    ) -> int:
        if resource.name not in quantities:
            return 0
        written = quantities[resource.name]
        steps = parse_quantity(written) / parse_quantity(resource.unit)
        if steps < 0:
            raise InputError(f"{resource.name}: {written} is negative; write 0 or more")
        amount = rounding.whole(steps)
        if amount > _INT64_MAX:
            most = _decimal_text(_INT64_MAX * parse_quantity(resource.unit))
            raise InputError(
                f"{resource.name}: {written} is past what can be counted; write at most {most} "
                f"(2**63 - 1 times {resource.unit})"
            )
        return amount


def _decimal_text(value: Fraction) -> str:
    """*value*, whose denominator has no factors but 2 and 5, as decimal text."""
    exact = _PRINTING.divide(Decimal(value.numerator), Decimal(value.denominator))
    return format(_PRINTING.normalize(exact), "f")
