# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Persistent hash maps from id to slot: 16-way nodes above buckets of {hash, slot}.

Owns its nodes through the edit that made them (see versions); ids stay in the column, so a node
holds no Python object and a path is copied by memcpy. Every step of a change leaves a valid map.
Keeps INV-N6; docs/hamt.md works one hash through.
"""

from libc.stdint cimport uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, qsort, realloc
from libc.string cimport memcpy, memset

from pyresched._core.bits cimport lowest, matches, prefetch
from pyresched._core.hamtnode cimport (
    LEAF_CELLS, MAX_DEPTH, WAY_BITS, WAYS, Inner, Leaf, few, hashes_of, inner_of, is_leaf, leaf_of,
    leaf_size, rounded, slots_of, tagged, way,
)
from pyresched._core.ids cimport NOWHERE, Column, Key, entry_at, holds, key_of_slot
from pyresched._core.versions cimport (
    EditLog, allocation_fails, drop_node, make_room, new_node, out_of_memory, owns,
    release,
)


cdef void reclaim_inner(void *owner, uint64_t what) noexcept nogil:
    release(&(<Maps *> owner).meter, <void *> <size_t> what, sizeof(Inner))


cdef void reclaim_leaf(void *owner, uint64_t what) noexcept nogil:
    cdef Leaf *leaf = <Leaf *> <size_t> what
    release(&(<Maps *> owner).meter, leaf, leaf_size(leaf.capacity))


cdef void maps_init(Maps *maps, Column *column) noexcept nogil:
    memset(maps, 0, sizeof(Maps))
    maps.column = column
    maps.leaf_cells = LEAF_CELLS


cdef inline void fetch_leaf(uintptr_t node) noexcept nogil:
    """Ask memory for the lines behind the first of what may be a leaf, all at once."""
    prefetch(<char *> node + 64)
    prefetch(<char *> node + 128)
    prefetch(<char *> node + 192)


cdef inline uint32_t cell_of(const Maps *maps, const Leaf *leaf, const Key *key) noexcept nogil:
    cdef uint32_t *hashes = hashes_of(leaf)
    cdef uint32_t at = 0, found, i
    # An ordinary leaf is one block.
    while at < leaf.count:
        found = matches(hashes + at, min(<uint32_t> LEAF_CELLS, leaf.count - at), key.hash)
        while found:
            i = at + lowest(found)
            if holds(maps.column, slots_of(leaf)[i], key):
                return i
            found &= found - 1
        at += LEAF_CELLS
    return NOWHERE


cdef uint32_t hamt_find(const Maps *maps, const Hamt *map_, const Key *key) noexcept nogil:
    cdef uintptr_t node = map_.root
    cdef uint32_t rest = key.hash, cell
    while node and not is_leaf(node):
        node = inner_of(node).child[rest & (WAYS - 1)]
        rest >>= WAY_BITS
    if not node:
        return NOWHERE
    fetch_leaf(node)
    cell = cell_of(maps, leaf_of(node), key)
    return NOWHERE if cell == NOWHERE else slots_of(leaf_of(node))[cell]


cdef enum:
    GROUP = 32


cdef inline void warm_group(const Maps *maps, const Hamt *map_, const Key *keys, uintptr_t *end,
                            uint32_t *slots, uint32_t count) noexcept nogil:
    """For up to GROUP keys: where the way of each ends, and the first slot there under its hash,
    or NOWHERE. Each stage asks memory for what the next one reads."""
    cdef uintptr_t node
    cdef const Leaf *leaf
    cdef uint32_t rest, i, found
    for i in range(count):
        node = map_.root
        rest = keys[i].hash
        while node and not is_leaf(node):
            node = inner_of(node).child[rest & (WAYS - 1)]
            rest >>= WAY_BITS
        end[i] = node
        if node:
            prefetch(<void *> node)
            fetch_leaf(node)
    for i in range(count):
        slots[i] = NOWHERE
        if end[i]:
            leaf = leaf_of(end[i])
            found = matches(hashes_of(leaf), min(<uint32_t> LEAF_CELLS, leaf.count),
                            keys[i].hash)
            if found:
                slots[i] = slots_of(leaf)[lowest(found)]
                prefetch(entry_at(maps.column, slots[i]))


cdef void hamt_find_many(const Maps *maps, const Hamt *map_, const Key *keys, uint32_t *slots,
                         size_t count) noexcept nogil:
    cdef uintptr_t end[GROUP]
    cdef uint32_t i, group, cell
    while count:
        group = <uint32_t> min(<size_t> GROUP, count)
        warm_group(maps, map_, keys, end, slots, group)
        for i in range(group):
            # Seldom: another id with the same hash, or a leaf of more than one block.
            if end[i] and not (slots[i] != NOWHERE and holds(maps.column, slots[i], &keys[i])):
                cell = cell_of(maps, leaf_of(end[i]), &keys[i])
                slots[i] = NOWHERE if cell == NOWHERE else slots_of(leaf_of(end[i]))[cell]
        keys += group
        slots += group
        count -= group


cdef void hamt_warm(const Maps *maps, const Hamt *map_, const Key *keys,
                    size_t count) noexcept nogil:
    cdef uintptr_t end[GROUP]
    cdef uint32_t slots[GROUP]
    cdef uint32_t group
    while count:
        group = <uint32_t> min(<size_t> GROUP, count)
        warm_group(maps, map_, keys, end, slots, group)
        keys += group
        count -= group


cdef uint32_t hamt_seek(const Maps *maps, const Hamt *map_, const Key *key,
                        Path *path) noexcept nogil:
    cdef uintptr_t node = map_.root
    cdef uint32_t rest = key.hash
    path.depth = 0
    while node and not is_leaf(node):
        path.inner[path.depth] = inner_of(node)
        path.depth += 1
        node = inner_of(node).child[rest & (WAYS - 1)]
        rest >>= WAY_BITS
    path.end = node
    if node:
        fetch_leaf(node)
    path.cell = NOWHERE if not node else cell_of(maps, leaf_of(node), key)
    return NOWHERE if path.cell == NOWHERE else slots_of(leaf_of(node))[path.cell]


cdef Leaf *new_leaf(Maps *maps, EditLog *log, uint32_t capacity, uint32_t bits) except NULL nogil:
    cdef Leaf *leaf
    capacity = rounded(capacity)
    leaf = <Leaf *> new_node(log, &maps.meter, reclaim_leaf, maps, leaf_size(capacity))
    if leaf == NULL:
        out_of_memory()
        return NULL
    leaf.count = 0
    leaf.capacity = capacity
    leaf.bits = bits
    return leaf


cdef inline void add_cell(Leaf *leaf, uint32_t hash_, uint32_t slot) noexcept nogil:
    hashes_of(leaf)[leaf.count] = hash_
    slots_of(leaf)[leaf.count] = slot
    leaf.count += 1


cdef inline void add_cells(Leaf *leaf, const Leaf *other) noexcept nogil:
    memcpy(hashes_of(leaf) + leaf.count, hashes_of(other), other.count * sizeof(uint32_t))
    memcpy(slots_of(leaf) + leaf.count, slots_of(other), other.count * sizeof(uint32_t))
    leaf.count += other.count


cdef int own_path(Maps *maps, Hamt *map_, EditLog *log, const Key *key, Path *path,
                  uint32_t depth) except -1 nogil:
    """Make the first *depth* inner nodes of the path the edit's own."""
    cdef uintptr_t *place = &map_.root
    cdef Inner *old
    cdef Inner *own
    cdef uint32_t i
    for i in range(depth):
        old = path.inner[i]
        if not owns(log, old.stamp):
            own = <Inner *> new_node(log, &maps.meter, reclaim_inner, maps, sizeof(Inner))
            if own == NULL:
                return out_of_memory()
            own.count = old.count
            memcpy(own.child, old.child, sizeof(own.child))
            drop_node(log, reclaim_inner, maps, old)
            place[0] = <uintptr_t> own
            path.inner[i] = own
        place = &path.inner[i].child[way(key.hash, i)]
    return 0


cdef inline void place_leaf(Hamt *map_, Path *path, uint32_t hash_, uint32_t bits,
                            uintptr_t child) noexcept nogil:
    """Let *child*, a leaf with *bits* or nothing, stand at the end of the path, at all its
    places."""
    cdef uint32_t at
    cdef Inner *parent
    if path.depth == 0:
        map_.root = child
    else:
        parent = path.inner[path.depth - 1]
        at = way(hash_, path.depth - 1) & ((1 << bits) - 1)
        while at < WAYS:
            parent.child[at] = child
            at += 1 << bits
    path.end = child


cdef Leaf *own_leaf(Maps *maps, Hamt *map_, EditLog *log, const Key *key, Path *path,
                    uint32_t room) except NULL nogil:
    """The leaf at the end of the path, the edit's own and with room for *room* cells; the inner
    nodes already are."""
    cdef Leaf *old = leaf_of(path.end)
    cdef Leaf *own
    if owns(log, old.stamp):
        if old.capacity >= room:
            return old
        # A leaf that has grown will grow again.
        room += 4
    own = new_leaf(maps, log, max(room, old.count), old.bits)
    add_cells(own, old)
    drop_node(log, reclaim_leaf, maps, old)
    place_leaf(map_, path, key.hash, own.bits, tagged(own))
    return own


cdef inline uint32_t bits_for_nothing(const Inner *parent, uint32_t at) noexcept nogil:
    """How many bits a new leaf needs so that it stands where nothing is."""
    cdef uint32_t bits, other
    cdef bint clear
    for bits in range(WAY_BITS):
        clear = True
        other = at & ((1 << bits) - 1)
        while other < WAYS:
            if parent.child[other]:
                clear = False
                break
            other += 1 << bits
        if clear:
            return bits
    return WAY_BITS


cdef int split_leaf(Maps *maps, Hamt *map_, EditLog *log, const Key *key,
                    Path *path) except -1 nogil:
    """Make the full leaf at the end of the path two, below a new inner node when it has no bits
    left. The path then ends at the half where the key belongs, which may be as full, or empty."""
    cdef Leaf *old = leaf_of(path.end)
    cdef Leaf *half[2]
    cdef Leaf *lower
    cdef Inner *inner
    cdef uint32_t i, shift, count = 0, bits
    if path.depth == 0 or old.bits == WAY_BITS:
        lower = new_leaf(maps, log, old.count, 0)
        inner = <Inner *> new_node(log, &maps.meter, reclaim_inner, maps, sizeof(Inner))
        if inner == NULL:
            # The leaf goes with the edit's other garbage if not at once.
            drop_node(log, reclaim_leaf, maps, lower)
            return out_of_memory()
        add_cells(lower, old)
        inner.count = old.count
        for i in range(WAYS):
            inner.child[i] = tagged(lower)
        place_leaf(map_, path, key.hash, old.bits if path.depth else 0, <uintptr_t> inner)
        drop_node(log, reclaim_leaf, maps, old)
        path.inner[path.depth] = inner
        path.depth += 1
        path.end = tagged(lower)
        return 0
    bits = old.bits + 1
    shift = WAY_BITS * (path.depth - 1) + old.bits
    for i in range(old.count):
        count += (hashes_of(old)[i] >> shift) & 1
    half[0] = half[1] = NULL
    if count < old.count:
        half[0] = new_leaf(maps, log, old.count - count + 2, bits)
    if count:
        half[1] = <Leaf *> new_node(
            log, &maps.meter, reclaim_leaf, maps, leaf_size(rounded(count + 2)))
        if half[1] == NULL:
            if half[0] != NULL:
                drop_node(log, reclaim_leaf, maps, half[0])
            return out_of_memory()
        half[1].count = 0
        half[1].capacity = rounded(count + 2)
        half[1].bits = bits
    for i in range(old.count):
        add_cell(half[(hashes_of(old)[i] >> shift) & 1], hashes_of(old)[i], slots_of(old)[i])
    # First the half where the key does not belong, so that the path ends at the other one.
    i = (key.hash >> shift) & 1
    place_leaf(map_, path, key.hash ^ (<uint32_t> 1 << shift), bits,
               0 if half[1 - i] == NULL else tagged(half[1 - i]))
    place_leaf(map_, path, key.hash, bits, 0 if half[i] == NULL else tagged(half[i]))
    drop_node(log, reclaim_leaf, maps, old)
    return 0


cdef int hamt_put(Maps *maps, Hamt *map_, EditLog *log, const Key *key, uint32_t slot,
                  uint32_t *before) except -1 nogil:
    cdef Path path
    before[0] = hamt_seek(maps, map_, key, &path)
    return hamt_put_at(maps, map_, log, key, slot, &path)


cdef int hamt_put_at(Maps *maps, Hamt *map_, EditLog *log, const Key *key, uint32_t slot,
                     Path *path) except -1 nogil:
    cdef Leaf *leaf
    cdef uint32_t i
    make_room(log, 96)
    if path.cell != NOWHERE:
        if slots_of(leaf_of(path.end))[path.cell] != slot:
            own_path(maps, map_, log, key, path, path.depth)
            leaf = own_leaf(maps, map_, log, key, path, 0)
            slots_of(leaf)[path.cell] = slot
        return 0
    own_path(maps, map_, log, key, path, path.depth)
    while (path.end and leaf_of(path.end).count >= maps.leaf_cells
            and not (path.depth == MAX_DEPTH and leaf_of(path.end).bits == WAY_BITS)):
        split_leaf(maps, map_, log, key, path)
    if path.end:
        leaf = own_leaf(maps, map_, log, key, path, leaf_of(path.end).count + 1)
    else:
        i = 0
        if path.depth:
            i = bits_for_nothing(path.inner[path.depth - 1], way(key.hash, path.depth - 1))
        leaf = new_leaf(maps, log, 2, i)
        place_leaf(map_, path, key.hash, i, tagged(leaf))
    add_cell(leaf, key.hash, slot)
    for i in range(path.depth):
        path.inner[i].count += 1
    map_.count += 1
    return 0


cdef void gather(Maps *maps, EditLog *log, uintptr_t node, Leaf *into) noexcept nogil:
    """Move all cells below *node* into a leaf and drop the nodes."""
    cdef Inner *inner
    cdef uint32_t i
    if is_leaf(node):
        add_cells(into, leaf_of(node))
        drop_node(log, reclaim_leaf, maps, leaf_of(node))
        return
    inner = inner_of(node)
    for i in range(WAYS - 1, -1, -1):
        # From the end: a leaf goes at the first of its places, when no other is looked at.
        if inner.child[i] and (not is_leaf(inner.child[i])
                               or i >> leaf_of(inner.child[i]).bits == 0):
            gather(maps, log, inner.child[i], into)
    drop_node(log, reclaim_inner, maps, inner)


cdef int hamt_remove(Maps *maps, Hamt *map_, EditLog *log, const Key *key,
                     uint32_t *before) except -1 nogil:
    cdef Path path
    before[0] = hamt_seek(maps, map_, key, &path)
    return 0 if before[0] == NOWHERE else hamt_remove_at(maps, map_, log, key, &path)


cdef int hamt_remove_at(Maps *maps, Hamt *map_, EditLog *log, const Key *key,
                        Path *path) except -1 nogil:
    cdef Leaf *leaf
    cdef uint32_t depth, i
    make_room(log, 96)
    depth = path.depth
    while depth and path.inner[depth - 1].count - 1 <= few(maps.leaf_cells):
        depth -= 1
    own_path(maps, map_, log, key, path, depth)
    if depth < path.depth:
        # The uppermost inner node that gets too empty becomes a leaf.
        leaf = new_leaf(maps, log, path.inner[depth].count, WAY_BITS if depth else 0)
        gather(maps, log, <uintptr_t> path.inner[depth], leaf)
        path.depth = depth
        place_leaf(map_, path, key.hash, leaf.bits, tagged(leaf))
        path.cell = cell_of(maps, leaf, key)
        take_out(leaf, path.cell)
    elif leaf_of(path.end).count == 1:
        leaf = leaf_of(path.end)
        place_leaf(map_, path, key.hash, leaf.bits, 0)
        drop_node(log, reclaim_leaf, maps, leaf)
    else:
        leaf = own_leaf(maps, map_, log, key, path, 0)
        take_out(leaf, path.cell)
        if leaf.count <= maps.leaf_cells >> 2:
            join(maps, map_, log, key, path)
    for i in range(path.depth):
        path.inner[i].count -= 1
    map_.count -= 1
    return 0


cdef inline void take_out(Leaf *leaf, uint32_t cell) noexcept nogil:
    leaf.count -= 1
    hashes_of(leaf)[cell] = hashes_of(leaf)[leaf.count]
    slots_of(leaf)[cell] = slots_of(leaf)[leaf.count]


cdef inline uintptr_t neighbour(const Inner *parent, uint32_t at, uint32_t bits) noexcept nogil:
    """What stands at the places that share the low *bits* of *at*; 0: nothing at all of them."""
    at &= (<uint32_t> 1 << bits) - 1
    while at < WAYS:
        if parent.child[at]:
            return parent.child[at]
        at += <uint32_t> 1 << bits
    return 0


cdef void join(Maps *maps, Hamt *map_, EditLog *log, const Key *key, Path *path) noexcept nogil:
    """Make the leaf at the end of the path one with the leaf that differs in its last bit, if
    both are rather empty. Does nothing without memory: the map is good either way."""
    cdef Leaf *leaf = leaf_of(path.end)
    cdef Leaf *both
    cdef uintptr_t other
    cdef uint32_t bits, size
    while path.depth and leaf.bits:
        bits = leaf.bits - 1
        other = neighbour(path.inner[path.depth - 1],
                          way(key.hash, path.depth - 1) ^ (<uint32_t> 1 << bits), leaf.bits)
        if other == 0:
            leaf.bits = bits
            place_leaf(map_, path, key.hash, bits, tagged(leaf))
            continue
        if (not is_leaf(other) or leaf_of(other).bits != leaf.bits
                or leaf.count + leaf_of(other).count > maps.leaf_cells >> 1):
            return
        size = rounded(leaf.count + leaf_of(other).count)
        both = <Leaf *> new_node(log, &maps.meter, reclaim_leaf, maps, leaf_size(size))
        if both == NULL:
            return
        both.count = 0
        both.capacity = size
        both.bits = bits
        add_cells(both, leaf)
        add_cells(both, leaf_of(other))
        place_leaf(map_, path, key.hash, bits, tagged(both))
        drop_node(log, reclaim_leaf, maps, leaf)
        drop_node(log, reclaim_leaf, maps, leaf_of(other))
        leaf = both


cdef uint32_t *slots_below(uintptr_t node, uint32_t *into) noexcept nogil:
    cdef uint32_t i
    cdef uintptr_t child
    if is_leaf(node):
        memcpy(into, slots_of(leaf_of(node)), leaf_of(node).count * sizeof(uint32_t))
        return into + leaf_of(node).count
    for i in range(WAYS):
        child = inner_of(node).child[i]
        if child and (not is_leaf(child) or i >> leaf_of(child).bits == 0):
            into = slots_below(child, into)
    return into


cdef void hamt_slots(const Maps *maps, const Hamt *map_, uint32_t *slots) noexcept nogil:
    if map_.root:
        slots_below(map_.root, slots)


# --- differences -----------------------------------------------------------------------------

cdef struct Cell:
    uint32_t hash
    uint32_t slot

cdef struct Cells:
    Cell *items
    size_t count
    size_t capacity


cdef int more_cells(Cells *cells, size_t count) except -1 nogil:
    cdef size_t wanted
    cdef void *grown
    if cells.capacity - cells.count < count:
        wanted = max(<size_t> 64, cells.capacity * 2, cells.count + count)
        grown = NULL if allocation_fails() else realloc(cells.items, wanted * sizeof(Cell))
        if grown == NULL:
            return out_of_memory()
        cells.items = <Cell *> grown
        cells.capacity = wanted
    return 0


cdef int note(Changes *changes, uint32_t old, uint32_t new) except -1 nogil:
    cdef size_t wanted
    cdef void *grown
    if changes.count == changes.capacity:
        wanted = max(<size_t> 64, changes.capacity * 2)
        grown = NULL if allocation_fails() else realloc(changes.items, wanted * sizeof(Change))
        if grown == NULL:
            return out_of_memory()
        changes.items = <Change *> grown
        changes.capacity = wanted
    changes.items[changes.count].old = old
    changes.items[changes.count].new = new
    changes.count += 1
    return 0


cdef int cells_below(uintptr_t node, Cells *cells) except -1 nogil:
    cdef Leaf *leaf
    cdef uintptr_t child
    cdef uint32_t i
    if not node:
        return 0
    if is_leaf(node):
        leaf = leaf_of(node)
        more_cells(cells, leaf.count)
        for i in range(leaf.count):
            cells.items[cells.count].hash = hashes_of(leaf)[i]
            cells.items[cells.count].slot = slots_of(leaf)[i]
            cells.count += 1
        return 0
    for i in range(WAYS):
        child = inner_of(node).child[i]
        if child and (not is_leaf(child) or i >> leaf_of(child).bits == 0):
            cells_below(child, cells)
    return 0


cdef int by_hash(const void *a, const void *b) noexcept nogil:
    cdef const Cell *one = <const Cell *> a
    cdef const Cell *other = <const Cell *> b
    if one.hash != other.hash:
        return -1 if one.hash < other.hash else 1
    return (one.slot > other.slot) - (one.slot < other.slot)


cdef struct Walk:
    const Maps *maps
    Changes *changes
    Cells old
    Cells new


cdef int compare_cells(Walk *walk) except -1 nogil:
    """Note how the two gathered sets of cells differ, and empty them."""
    cdef Cell *old = walk.old.items
    cdef Cell *new = walk.new.items
    cdef size_t i = 0, j = 0, first, k, old_count = walk.old.count, new_count = walk.new.count
    cdef int way_
    cdef Key key
    walk.old.count = 0
    walk.new.count = 0
    if old_count > 1:
        qsort(old, old_count, sizeof(Cell), by_hash)
    if new_count > 1:
        qsort(new, new_count, sizeof(Cell), by_hash)
    # What both have goes out; NOWHERE marks a new cell that an old one has been paired with.
    first = 0
    k = 0
    while i < old_count and j < new_count:
        way_ = by_hash(&old[i], &new[j])
        if way_ == 0:
            i += 1
            j += 1
        elif way_ < 0:
            old[first] = old[i]
            first += 1
            i += 1
        else:
            new[k] = new[j]
            k += 1
            j += 1
    while i < old_count:
        old[first] = old[i]
        first += 1
        i += 1
    while j < new_count:
        new[k] = new[j]
        k += 1
        j += 1
    old_count = first
    new_count = k
    first = 0
    for i in range(old_count):
        while first < new_count and new[first].hash < old[i].hash:
            first += 1
        key_of_slot(walk.maps.column, old[i].slot, &key)
        j = first
        while j < new_count and new[j].hash == old[i].hash:
            if new[j].slot != NOWHERE and holds(walk.maps.column, new[j].slot, &key):
                break
            j += 1
        if j < new_count and new[j].hash == old[i].hash:
            note(walk.changes, old[i].slot, new[j].slot)
            new[j].slot = NOWHERE
        else:
            note(walk.changes, old[i].slot, NOWHERE)
    for j in range(new_count):
        if new[j].slot != NOWHERE:
            note(walk.changes, NOWHERE, new[j].slot)
    return 0


cdef inline uint32_t bits_of(uintptr_t child) noexcept nogil:
    """How many low bits of a place tell *child* from its neighbours."""
    return leaf_of(child).bits if is_leaf(child) else WAY_BITS


cdef int diff_below(Walk *walk, uintptr_t old, uintptr_t new) except -1 nogil:
    cdef Inner *before
    cdef Inner *after
    cdef uint32_t i, at, bits
    if old == new:
        return 0
    if not (old and new) or is_leaf(old) or is_leaf(new):
        cells_below(old, &walk.old)
        cells_below(new, &walk.new)
        return compare_cells(walk)
    before = inner_of(old)
    after = inner_of(new)
    for i in range(WAYS):
        if before.child[i] == after.child[i]:
            continue
        # The places that the wider of the two leaves covers are taken together, once.
        bits = min(bits_of(before.child[i]), bits_of(after.child[i]))
        if i >> bits:
            continue
        if bits == WAY_BITS:
            diff_below(walk, before.child[i], after.child[i])
            continue
        at = i
        while at < WAYS:
            if before.child[at] != after.child[at]:
                if bits_of(before.child[at]) == WAY_BITS or at >> bits_of(before.child[at]) == 0:
                    cells_below(before.child[at], &walk.old)
                if bits_of(after.child[at]) == WAY_BITS or at >> bits_of(after.child[at]) == 0:
                    cells_below(after.child[at], &walk.new)
            at += 1 << bits
        compare_cells(walk)
    return 0


cdef int hamt_diff(const Maps *maps, const Hamt *old, const Hamt *new,
                   Changes *changes) except -1 nogil:
    cdef Walk walk
    cdef bint whole = False
    memset(&walk, 0, sizeof(Walk))
    memset(changes, 0, sizeof(Changes))
    walk.maps = maps
    walk.changes = changes
    try:
        diff_below(&walk, old.root, new.root)
        whole = True
    finally:
        free(walk.old.items)
        free(walk.new.items)
        if not whole:
            changes_free(changes)
    return 0


cdef void changes_free(Changes *changes) noexcept nogil:
    free(changes.items)
    memset(changes, 0, sizeof(Changes))


cdef void free_below(Maps *maps, uintptr_t node) noexcept nogil:
    cdef uint32_t i
    cdef uintptr_t child
    if is_leaf(node):
        reclaim_leaf(maps, <uint64_t> <size_t> leaf_of(node))
        return
    for i in range(WAYS - 1, -1, -1):
        # From the end: a leaf goes at the first of its places, when no other is looked at.
        child = inner_of(node).child[i]
        if child and (not is_leaf(child) or i >> leaf_of(child).bits == 0):
            free_below(maps, child)
    reclaim_inner(maps, <uint64_t> node)


cdef void hamt_free(Maps *maps, Hamt *map_) noexcept nogil:
    if map_.root:
        free_below(maps, map_.root)
    map_.root = 0
    map_.count = 0
