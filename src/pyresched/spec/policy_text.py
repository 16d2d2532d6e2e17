"""A reschedule block in one line of text: `attempts=3,interval=1h,delay=30s`.

What people type at a prompt where a file would be too much. Names of fields are those of the
block; what is not written stays unwritten, so that defaults can fill it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pyresched.durations import INT64_MAX, INT64_MIN, parse_duration, short_duration
from pyresched.errors import InputError, did_you_mean
from pyresched.model import RescheduleBlock

__all__ = ["block_text", "parse_block"]

_EXAMPLE: Final = "write name=value pairs, such as attempts=3,interval=1h,delay=30s"
_TRUTHS: Final[Mapping[str, bool]] = MappingProxyType({"true": True, "false": False})
_DIGITS: Final = 19  # of the longest int64


def parse_block(text: str) -> RescheduleBlock:
    """The block that *text* writes; empty text writes nothing.

    Blanks around names and values do not matter. Raises InputError for text that is no list of
    pairs, a name that is no field or comes twice, and a value that its field cannot hold.
    """
    written: dict[str, int | str | bool] = {}
    for pair in text.split(",") if text.strip() else ():
        name, given, value = (part.strip() for part in pair.partition("="))
        if not given or not name:
            raise InputError(f"{pair.strip()!r} is no name=value; {_EXAMPLE}")
        if name not in RescheduleBlock.__struct_fields__:
            near = did_you_mean(name, RescheduleBlock.__struct_fields__)
            raise InputError(f"{name!r} is no field of a reschedule policy; {near}")
        if name in written:
            raise InputError(f"{name} is written twice; write it once")
        try:
            written[name] = _value(name, value)
        except InputError as wrong:
            raise InputError(f"{name}: {wrong}") from wrong
    return RescheduleBlock(**written)  # type: ignore[arg-type]  # by name, checked in `_value`


def block_text(block: RescheduleBlock) -> str:
    """The text that `parse_block` reads back as *block*."""
    return ",".join(f"{name}={_text(name, value)}" for name, value in block.written().items())


def _value(name: str, text: str) -> int | str | bool:
    if name == "delay_function":
        return text
    if name == "unlimited":
        if text not in _TRUTHS:
            raise InputError(f"{text!r} is no truth value; write true or false")
        return _TRUTHS[text]
    if name == "attempts":
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
            raise InputError(f"{text!r} is no whole number; write a count such as 3")
        if not INT64_MIN <= int(text) <= INT64_MAX:
            raise InputError(f"{text} is past what can be counted (2**63 - 1)")
        return int(text)
    return parse_duration(text)


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and name != "attempts":
        return short_duration(value)
    return str(value)
