# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Hash maps made at once of many ids: sorted by hash first, so that each node is written once.

Makes nodes of the form of hamtnode.pxd, as hamt would have: whoever changes the map later cannot
tell. Keeps INV-N6.
"""

from libc.stdint cimport uint32_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memset

from pyresched._core.hamt cimport Hamt, Maps, reclaim_inner, reclaim_leaf
from pyresched._core.hamtnode cimport (
    MAX_DEPTH, WAY_BITS, WAYS, Inner, Leaf, hashes_of, inner_of, is_leaf, leaf_of, leaf_size,
    rounded, slots_of, tagged,
)
from pyresched._core.ids cimport KIND_HEAP, Key
from pyresched._core.versions cimport (
    EditLog, allocation_fails, drop_node, grow_lists, new_node, out_of_memory,
)

cdef enum:
    RADIX_BITS = 11
    RADIX = 2048
    PASSES = 3


cdef inline uint32_t reversed_bits(uint32_t word) noexcept nogil:
    word = (word >> 1 & 0x55555555) | (word & 0x55555555) << 1
    word = (word >> 2 & 0x33333333) | (word & 0x33333333) << 2
    word = (word >> 4 & 0x0F0F0F0F) | (word & 0x0F0F0F0F) << 4
    word = (word >> 8 & 0x00FF00FF) | (word & 0x00FF00FF) << 8
    return word >> 16 | word << 16


cdef inline bint same_id(const Key *one, const Key *other) noexcept nogil:
    if one.hi != other.hi or one.lo != other.lo or one.kind != other.kind:
        return False
    return one.kind != KIND_HEAP or (
        one.size == other.size and memcmp(one.text, other.text, one.size) == 0)


cdef bint some_twice(const Key *keys, const Cell *cells, size_t count) noexcept nogil:
    """Whether an id is there twice; also when so many share a hash that it is not worth a look."""
    cdef size_t i, j
    for i in range(1, count):
        j = i
        while j and cells[j - 1].reversed == cells[i].reversed:
            j -= 1
            if i - j > 64 or same_id(keys + cells[j].number, keys + cells[i].number):
                return True
    return False


cdef Cell *sorted_cells(const Key *keys, size_t count, bint *twice) except NULL nogil:
    cdef uint32_t starts[PASSES][RADIX]
    cdef Cell *cells = NULL
    cdef Cell *other = NULL
    cdef Cell cell
    cdef size_t i
    cdef uint32_t pass_, digit, total, here
    if not allocation_fails():
        cells = <Cell *> malloc(count * sizeof(Cell))
        other = <Cell *> malloc(count * sizeof(Cell))
    if cells == NULL or other == NULL:
        free(cells)
        free(other)
        out_of_memory()
        return NULL
    memset(starts, 0, sizeof(starts))
    for i in range(count):
        cells[i].reversed = reversed_bits(keys[i].hash)
        cells[i].number = <uint32_t> i
        for pass_ in range(PASSES):
            starts[pass_][cells[i].reversed >> RADIX_BITS * pass_ & (RADIX - 1)] += 1
    for pass_ in range(PASSES):
        total = 0
        for digit in range(RADIX):
            here = starts[pass_][digit]
            starts[pass_][digit] = total
            total += here
        for i in range(count):
            cell = cells[i]
            digit = cell.reversed >> RADIX_BITS * pass_ & (RADIX - 1)
            other[starts[pass_][digit]] = cell
            starts[pass_][digit] += 1
        cells, other = other, cells
    free(other)
    twice[0] = some_twice(keys, cells, count)
    return cells


# What one build needs everywhere.
cdef struct Build:
    Maps *maps
    EditLog *log
    const uint32_t *slots


cdef inline int room(EditLog *log) except -1 nogil:
    """For two nodes more."""
    if log.fresh_capacity - log.fresh_count < 2:
        grow_lists(log, 2, 0)
    return 0


cdef uintptr_t build_leaf(Build *build, const Cell *cells, size_t count,
                          uint32_t bits) except 0 nogil:
    cdef uint32_t capacity = rounded(<uint32_t> count), i
    cdef Leaf *leaf
    room(build.log)
    leaf = <Leaf *> new_node(
        build.log, &build.maps.meter, reclaim_leaf, build.maps, leaf_size(capacity))
    if leaf == NULL:
        out_of_memory()
        return 0
    leaf.count = <uint32_t> count
    leaf.capacity = capacity
    leaf.bits = bits
    for i in range(leaf.count):
        hashes_of(leaf)[i] = reversed_bits(cells[i].reversed)
        slots_of(leaf)[i] = build.slots[cells[i].number]
    return tagged(leaf)


cdef int build_inner(Build *build, uintptr_t *place, const Cell *cells, size_t count,
                     uint32_t depth) except -1 nogil:
    """Put a node below so many others at *place*, then fill it: what has been built when memory
    ends hangs together."""
    cdef Inner *inner
    room(build.log)
    inner = <Inner *> new_node(
        build.log, &build.maps.meter, reclaim_inner, build.maps, sizeof(Inner))
    if inner == NULL:
        return out_of_memory()
    inner.count = <uint32_t> count
    memset(inner.child, 0, sizeof(inner.child))
    place[0] = <uintptr_t> inner
    return build_places(build, inner, cells, count, depth, 0, 0)


cdef int build_places(Build *build, Inner *inner, const Cell *cells, size_t count, uint32_t depth,
                      uint32_t bits, uint32_t at) except -1 nogil:
    """Fill the places whose low *bits* are those of *at*; the cells belong there."""
    cdef uint32_t wanted
    cdef size_t low = 0, high = count, middle
    cdef uintptr_t leaf
    if count == 0:
        return 0
    if count <= build.maps.leaf_cells or (bits == WAY_BITS and depth + 1 == MAX_DEPTH):
        leaf = build_leaf(build, cells, count, bits)
        while at < WAYS:
            inner.child[at] = leaf
            at += 1 << bits
        return 0
    if bits == WAY_BITS:
        return build_inner(build, &inner.child[at], cells, count, depth + 1)
    # The first cell with the next bit set.
    wanted = <uint32_t> 1 << (31 - WAY_BITS * depth - bits)
    while low < high:
        middle = (low + high) >> 1
        if cells[middle].reversed & wanted:
            high = middle
        else:
            low = middle + 1
    build_places(build, inner, cells, low, depth, bits + 1, at)
    build_places(build, inner, cells + low, count - low, depth, bits + 1, at | 1 << bits)
    return 0


cdef void give_up(Build *build, uintptr_t node) noexcept nogil:
    cdef uintptr_t child
    cdef int i
    if is_leaf(node):
        drop_node(build.log, reclaim_leaf, build.maps, leaf_of(node))
        return
    for i in range(WAYS - 1, -1, -1):
        # From the end: a leaf goes at the first of its places, when no other is looked at.
        child = inner_of(node).child[i]
        if child and (not is_leaf(child) or i >> leaf_of(child).bits == 0):
            give_up(build, child)
    drop_node(build.log, reclaim_inner, build.maps, inner_of(node))


cdef int hamt_build(Maps *maps, Hamt *map_, EditLog *log, const Cell *cells, size_t count,
                    const uint32_t *slots) except -1:
    cdef Build build
    build.maps = maps
    build.log = log
    build.slots = slots
    assert map_.root == 0, "a map is built once"
    if count == 0:
        return 0
    try:
        if count <= maps.leaf_cells:
            map_.root = build_leaf(&build, cells, count, 0)
        else:
            build_inner(&build, &map_.root, cells, count, 0)
    except MemoryError:
        if map_.root:
            give_up(&build, map_.root)
        map_.root = 0
        raise
    map_.count = count
    return 0
