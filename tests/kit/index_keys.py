"""Ids and order keys that indices are tried with, good ones of every form and bad ones."""

import uuid

from hypothesis import strategies as st

__all__ = ["BAD_IDS", "BAD_KEYS", "GOOD_IDS", "Worded", "seeds"]


class Worded(str):
    """A str that lies about what it equals; its characters are what counts."""

    __slots__ = ()

    def __eq__(self, other):
        raise RuntimeError("never asked")

    def __hash__(self):
        raise RuntimeError("never asked")


# Few, so that a short run meets each of them again: ULIDs, UUIDs, what nearly is one, short and
# long text, text with a common beginning, text beyond ASCII, and NUL, which orders before nothing.
GOOD_IDS = [
    *(f"01J00000000000000000000{n:03}" for n in range(12)),
    *(str(uuid.UUID(int=n * 2**64 + n)) for n in range(8)),
    "7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
    "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
    "01j00000000000000000000000",
    "01J0000000000000000000000I",
    str(uuid.UUID(int=3)).upper(),
    "00000000-0000-0000-0000-00000000000g",
    "00000000_0000_0000_0000_000000000000",
    *(f"job-{n}" for n in range(12)),
    "a",
    "a\0",
    "a\0\0",
    "\0",
    "sixteen bytes is",
    "sixteen bytes is!",
    *(f"a name with much before its number, so that it lies elsewhere: {n}" for n in range(6)),
    "x" * 255,
    "ü" * 127,
    "é",
    "e\u0301",
    "\U0010ffff",
]

# What each of them raises.
BAD_IDS = [
    (None, TypeError),
    (7, TypeError),
    (b"job-1", TypeError),
    (("job-1",), TypeError),
    ("", ValueError),
    ("x" * 256, ValueError),
    ("ü" * 128, ValueError),
    ("\ud800", UnicodeEncodeError),
    ("job-\udfff", UnicodeEncodeError),
]

BAD_KEYS = [
    (None, TypeError),
    (7, TypeError),
    ([1, 2], TypeError),
    ((1, "2"), TypeError),
    ((1, 2.0), TypeError),
    ((1, None), TypeError),
    ((), ValueError),
    ((1,), ValueError),
    ((1, 2, 3), ValueError),
    ((1, 2, 3, 4), ValueError),
    ((1, 2**63), OverflowError),
    ((-(2**63) - 1, 1), OverflowError),
]

seeds = st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
