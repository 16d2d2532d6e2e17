# cython: language_level=3
# How the nodes of a hash map lie in memory. See docs/hamt.md.
#
# There is no hamtnode.pyx: hamt.pyx, which owns the nodes, and hamtcheck.pyx get inline copies.
# Nothing here allocates.
from libc.stdint cimport uint32_t, uint64_t, uintptr_t

cdef enum:
    WAY_BITS = 4
    WAYS = 16
    LEAF_CELLS = 32
    HASH_BITS = 32

cdef struct Inner:
    uint64_t stamp
    uint32_t fresh
    uint32_t count            # cells below
    uintptr_t child[WAYS]

cdef enum:
    MAX_DEPTH = 8             # HASH_BITS / WAY_BITS: leaves this deep grow without limit

# A child is 0 (nothing), the address of an Inner, or the address of a Leaf plus 1.
#
# A leaf under an inner node stands at every place whose low `bits` bits are its own, so at
# 16 >> bits places: a full leaf splits into two, not into sixteen, and stays half full.
# One with all 4 bits splits below a new inner node. At the root: bits 0.
# Followed by `capacity` hashes, then as many slots.
cdef struct Leaf:
    uint64_t stamp
    uint32_t fresh
    uint32_t count
    uint32_t capacity
    uint32_t bits


cdef inline bint is_leaf(uintptr_t child) noexcept nogil:
    return child & 1


cdef inline Leaf *leaf_of(uintptr_t child) noexcept nogil:
    return <Leaf *> (child - 1)


cdef inline uintptr_t tagged(Leaf *leaf) noexcept nogil:
    return <uintptr_t> leaf + 1


cdef inline Inner *inner_of(uintptr_t child) noexcept nogil:
    return <Inner *> child


cdef inline uint32_t *hashes_of(const Leaf *leaf) noexcept nogil:
    return <uint32_t *> (<char *> leaf + sizeof(Leaf))


cdef inline uint32_t *slots_of(const Leaf *leaf) noexcept nogil:
    return hashes_of(leaf) + leaf.capacity


cdef inline uint32_t way(uint32_t hash_, uint32_t depth) noexcept nogil:
    """The place of a hash in an inner node with so many above it."""
    return (hash_ >> (WAY_BITS * depth)) & (WAYS - 1)


cdef enum:
    # Cells for which the smallest leaf has room: a search reads hashes by blocks of 16, the slots
    # behind them too.
    LEAST_CELLS = 8


cdef inline uint32_t rounded(uint32_t cells) noexcept nogil:
    """The capacity of a leaf that is to hold so many."""
    return max(<uint32_t> LEAST_CELLS, (cells + 1) & ~<uint32_t> 1)


cdef inline size_t leaf_size(uint32_t capacity) noexcept nogil:
    return sizeof(Leaf) + 2 * <size_t> capacity * sizeof(uint32_t)


cdef inline uint32_t few(uint32_t leaf_cells) noexcept nogil:
    """An inner node with no more cells below becomes a leaf."""
    return max(<uint32_t> 1, leaf_cells >> 1)
