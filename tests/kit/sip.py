"""The keyed hash of the id columns, written again over arrays, to find ids that collide under a
seed one knows. Which words a hash takes in is said in `src/_core/ids.pyx` and `jobindex.pyx`.
"""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_seed", "colliding", "gang_hashes", "id_hashes", "numbered"]

Words = NDArray[np.uint64]
_BATCH = 1 << 18
_WIDTH = 13  # bytes of a numbered text
_INLINE = 16  # an id of so many bytes at most is two words; its kind is this and its length


def _turned(word: Words, by: int) -> Words:
    return word << np.uint64(by) | word >> np.uint64(64 - by)


def _round(v: list[Words]) -> None:
    """One SipRound."""
    v[0] = v[0] + v[1]
    v[2] = v[2] + v[3]
    v[1] = _turned(v[1], 13) ^ v[0]
    v[3] = _turned(v[3], 16) ^ v[2]
    v[0] = _turned(v[0], 32)
    v[2] = v[2] + v[1]
    v[0] = v[0] + v[3]
    v[1] = _turned(v[1], 17) ^ v[2]
    v[3] = _turned(v[3], 21) ^ v[0]
    v[2] = _turned(v[2], 32)


def _sip(seed: tuple[int, int], words: Iterable[Words]) -> Words:
    """SipHash-1-3 of each row of *words*."""
    names = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    v = [np.array([name ^ seed[n % 2]], np.uint64) for n, name in enumerate(names)]
    for word in words:
        v[3] = v[3] ^ word
        _round(v)
        v[0] = v[0] ^ word
    v[2] = v[2] ^ np.uint64(0xFF)
    for _ in range(3):
        _round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def as_seed(seed: tuple[int, int]) -> bytes:
    """*seed* as `JobDb` takes it."""
    return b"".join(word.to_bytes(8, "big") for word in seed)


def numbered(number: int) -> str:
    """A text of 13 bytes, another for each number."""
    return f"id-{number:010}"


def _words(first: int, count: int) -> tuple[Words, Words]:
    """The two words of so many numbered texts."""
    text = np.zeros((count, 16), np.uint8)
    text[:, :3] = list(b"id-")
    numbers = np.arange(first, first + count)
    for place in range(_WIDTH - 1, 2, -1):
        text[:, place] = ord("0") + numbers % 10
        numbers //= 10
    both = text.view(">u8").astype(np.uint64)
    return both[:, 0], both[:, 1]


def id_hashes(seed: tuple[int, int], first: int, count: int) -> Words:
    """What an id column says of the texts from *first* on, all 32 bits of it."""
    kind = _INLINE + _WIDTH
    return _sip((seed[0], seed[1] ^ kind), _words(first, count)) & np.uint64(0xFFFFFFFF)


def gang_hashes(queue: str, bits: int) -> Callable[[tuple[int, int], int, int], Words]:
    """The same of gangs of *queue* (7 bytes or less) with these ids, when hashes have *bits*."""
    name = int.from_bytes(queue.encode().ljust(8, b"\0"), "big")
    mask = np.uint64((1 << 32 | 1) * ((1 << bits) - 1))

    def hashes(seed: tuple[int, int], first: int, count: int) -> Words:
        start = [np.array([word], np.uint64) for word in (len(queue), name, _WIDTH)]
        return _sip(seed, [*start, *_words(first, count)]) & mask

    return hashes


def colliding(
    seed: tuple[int, int],
    count: int,
    bits: int,
    hashes: Callable[[tuple[int, int], int, int], Words] = id_hashes,
) -> list[str]:
    """*count* texts whose hashes under *seed* agree in their low *bits*, found by trying.

    It takes 2**bits tries for each.
    """
    mask = np.uint64((1 << bits) - 1)
    found: list[str] = []
    first, wanted = 0, None
    while len(found) < count:
        low = hashes(seed, first, _BATCH) & mask
        wanted = low[0] if wanted is None else wanted
        found.extend(numbered(first + int(n)) for n in np.flatnonzero(low == wanted))
        first += _BATCH
    return found[:count]
