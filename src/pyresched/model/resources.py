"""What a resource vector means: names, units and rounding; quantities as people write them."""

import re
from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from enum import Enum
from typing import Final

from msgspec import Struct

from pyresched._core import ResourceVector
from pyresched.errors import InputError

__all__ = ["Resource", "ResourceSpec", "Rounding", "parse_quantity"]

_INT64_MAX: Final = 2**63 - 1
_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)"
    r"(?P<suffix>n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?"
)
_SUFFIX: Final[Mapping[str | None, Decimal]] = {
    None: Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    **{f"{s}i": Decimal(1024**n) for n, s in enumerate("KMGTPE", start=1)},
}


def parse_quantity(text: str | float) -> Decimal:
    """The exact value of a Kubernetes quantity: `2`, `500m`, `4Gi`, `1e3`. Raises InputError."""
    match = _QUANTITY.fullmatch(str(text).strip())
    if match is None or isinstance(text, bool):
        raise InputError(f"{text!r} is not a quantity; write a number such as 2, 500m or 4Gi")
    return Decimal(match["number"]) * _SUFFIX[match["suffix"]]


class Rounding(Enum):
    """Requests round up, capacity rounds down, so that nothing is promised twice."""

    UP = ROUND_CEILING
    DOWN = ROUND_FLOOR


class Resource(Struct, frozen=True):
    """One resource: `unit` is the quantity that one step of its integer amount stands for."""

    name: str
    unit: str = "1"


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

        Raises InputError for an unknown name, a negative or absurd amount, or bad text.
        """
        unknown = sorted(set(quantities) - set(self.names))
        if unknown:
            raise InputError(f"unknown resource {unknown[0]!r}; known: {', '.join(self.names)}")
        return ResourceVector([self._amount(r, quantities, rounding) for r in self.resources])

    def quantities(self, vector: ResourceVector) -> dict[str, str]:
        """Amounts as exact decimal text by resource name, resources of which there is none left out."""
        return {
            resource.name: format(
                (Decimal(amount) * parse_quantity(resource.unit)).normalize(), "f"
            )
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
        amount = int(steps.to_integral_value(rounding.value))
        if amount < 0:
            raise InputError(f"{resource.name}: {written} is negative; write 0 or more")
        if amount > _INT64_MAX:
            raise InputError(f"{resource.name}: {written} is past what can be counted (2**63 - 1)")
        return amount
