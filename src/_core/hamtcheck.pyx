# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The checker of INV-N6 (the shape of a hash map) and the measure of its nodes.

Reads nodes in the form of hamtnode.pxd, changes none; relies on ids for what the hashes should be.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t, uintptr_t

from pyresched._core.hamt cimport Hamt, Maps
from pyresched._core.hamtnode cimport (
    MAX_DEPTH, WAY_BITS, WAYS, Inner, Leaf, few, hashes_of, inner_of, is_leaf, leaf_of, leaf_size,
    slots_of,
)
from pyresched._core.ids cimport Key, key_of_slot
from pyresched._core.versions cimport Meter


cdef void measure_below(uintptr_t node, Meter *meter) noexcept nogil:
    cdef uint32_t i
    cdef uintptr_t child
    meter.nodes += 1
    if is_leaf(node):
        meter.bytes += leaf_size(leaf_of(node).capacity)
        return
    meter.bytes += sizeof(Inner)
    for i in range(WAYS):
        child = inner_of(node).child[i]
        if child and (not is_leaf(child) or i >> leaf_of(child).bits == 0):
            measure_below(child, meter)


cdef void hamt_measure(const Hamt *map_, Meter *meter) noexcept nogil:
    if map_.root:
        measure_below(map_.root, meter)


cdef int64_t look_below(const Maps *maps, uintptr_t node, uint32_t depth, uint32_t prefix,
                        list breaches) except -1:
    """Note what is wrong below *node*, where hashes begin with *prefix*. How many cells."""
    cdef Leaf *leaf
    cdef Inner *inner
    cdef Key key
    cdef uint32_t i, at, known
    cdef int64_t count = 0
    if is_leaf(node):
        leaf = leaf_of(node)
        if leaf.count == 0:
            breaches.append(f"depth {depth}: an empty leaf")
        if leaf.count > leaf.capacity:
            breaches.append(f"depth {depth}: {leaf.count} cells in a leaf for {leaf.capacity}")
        if leaf.count > maps.leaf_cells and not (depth == MAX_DEPTH and leaf.bits == WAY_BITS):
            breaches.append(f"depth {depth}: {leaf.count} cells in a leaf that could split")
        if depth == 0 and leaf.bits:
            breaches.append(f"a leaf at the root has {leaf.bits} bits")
        known = 0 if depth == 0 else WAY_BITS * (depth - 1) + leaf.bits
        for i in range(leaf.count):
            key_of_slot(maps.column, slots_of(leaf)[i], &key)
            if key.hash != hashes_of(leaf)[i]:
                breaches.append(f"slot {slots_of(leaf)[i]} is kept under another hash")
            if (<uint64_t> (hashes_of(leaf)[i] ^ prefix) & ((<uint64_t> 1 << known) - 1)):
                breaches.append(f"slot {slots_of(leaf)[i]} is in another hash's leaf")
        return leaf.count
    inner = inner_of(node)
    if depth >= MAX_DEPTH:
        breaches.append("an inner node below the last bits of the hash")
        return 0
    for i in range(WAYS):
        if not inner.child[i]:
            continue
        if is_leaf(inner.child[i]):
            leaf = leaf_of(inner.child[i])
            at = i & ((1 << leaf.bits) - 1)
            if inner.child[at] != inner.child[i]:
                breaches.append(f"depth {depth}: a leaf is at {i}, but not at {at}")
            if i != at:
                continue
            while at < WAYS:
                if inner.child[at] != inner.child[i]:
                    breaches.append(f"depth {depth}: a leaf of {i} is not at {at}")
                at += 1 << leaf.bits
        count += look_below(maps, inner.child[i], depth + 1,
                            prefix | (i << (WAY_BITS * depth)), breaches)
    if count != inner.count:
        breaches.append(f"depth {depth}: {count} cells below, the node says {inner.count}")
    if count <= few(maps.leaf_cells):
        breaches.append(f"depth {depth}: {count} cells below an inner node; a leaf would do")
    return count


cdef list hamt_breaches(const Maps *maps, const Hamt *map_):
    cdef list breaches = []
    cdef int64_t count = 0
    if map_.root:
        count = look_below(maps, map_.root, 0, 0, breaches)
    if count != <int64_t> map_.count:
        breaches.append(f"{count} cells, the map says {map_.count}")
    return breaches
