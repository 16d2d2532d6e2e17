"""Values as people type them, turned into what the library takes. Raises InputError."""

import re
from collections.abc import Sequence
from typing import Final

from pyresched.durations import INT64_MAX, parse_duration
from pyresched.errors import InputError
from pyresched.model import NANOS, Duration

__all__ = ["duration", "queue_numbers"]

_SECONDS: Final = re.compile(r"[0-9]+(\.[0-9]{1,9})?")
_NONE: Final = "none"


def duration(text: str, *, option: str) -> Duration:
    """*text* in ns: a duration such as 36h, or plain seconds as logs have them, not below 0."""
    if _SECONDS.fullmatch(text) and text != "0":
        whole, _, part = text.partition(".")
        value = int(whole[:12]) * NANOS + int(part.ljust(9, "0"))
    else:
        try:
            value = parse_duration(text)
        except InputError as wrong:
            raise InputError(f"{option}: {wrong}") from wrong
    if not 0 <= value <= INT64_MAX // 2:
        raise InputError(f"{option}: {text!r} is out of range; write 0 or more, such as 36h")
    return value


def queue_numbers(texts: Sequence[str], *, option: str) -> frozenset[int] | None:
    """Numbers of queues of a log; `none` is none of them; None where nothing was written."""
    if not texts:
        return None
    if list(texts) == [_NONE]:
        return frozenset()
    if _NONE in texts:
        raise InputError(f"{option}: none stands alone; write it once, or numbers only")
    for text in texts:
        if not (text.isascii() and text.isdigit()):
            raise InputError(f"{option}: {text!r} is no queue of a log; write its number, or none")
    return frozenset(int(text[:18]) for text in texts)
