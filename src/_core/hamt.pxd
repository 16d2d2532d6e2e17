# cython: language_level=3
# Persistent hash maps from id to slot: bucket HAMTs over an id column. See docs/hamt.md.
from libc.stdint cimport uint32_t, uint64_t, uintptr_t

from pyresched._core.hamtnode cimport (
    HASH_BITS, LEAF_CELLS, MAX_DEPTH, WAY_BITS, WAYS, Inner,
)
from pyresched._core.ids cimport Column, Key
from pyresched._core.versions cimport EditLog, Meter

# What all versions of one map share.
cdef struct Maps:
    Meter meter
    Column *column        # where slots have their ids
    uint32_t leaf_cells   # at most LEAF_CELLS; tests take less, for deep trees

# One version of one map: copy the struct to keep it. {0, 0} is the empty map.
cdef struct Hamt:
    uintptr_t root        # bit 0: a leaf
    uint64_t count

# A difference: old NOWHERE: added; new NOWHERE: removed; both: the id went to another slot.
cdef struct Change:
    uint32_t old
    uint32_t new

cdef struct Changes:
    Change *items
    size_t count
    size_t capacity

# The way from the root to a leaf or to nothing. Good until the map changes.
cdef struct Path:
    Inner *inner[MAX_DEPTH + 1]
    uint32_t depth            # inner nodes on it
    uintptr_t end             # what is there
    uint32_t cell             # of the id in that leaf, NOWHERE: it has none

cdef void maps_init(Maps *maps, Column *column) noexcept nogil
# The slot of the id, or NOWHERE.
cdef uint32_t hamt_find(const Maps *maps, const Hamt *map_, const Key *key) noexcept nogil
# The same for many, fetching ahead.
cdef void hamt_find_many(const Maps *maps, const Hamt *map_, const Key *keys, uint32_t *slots,
                         size_t count) noexcept nogil
# Let the id lead to *slot*, which holds it. Where it led before, or NOWHERE. Raises MemoryError.
cdef int hamt_put(Maps *maps, Hamt *map_, EditLog *log, const Key *key, uint32_t slot,
                  uint32_t *before) except -1 nogil
# Take the id out. Where it led, or NOWHERE. Raises MemoryError.
cdef int hamt_remove(Maps *maps, Hamt *map_, EditLog *log, const Key *key,
                     uint32_t *before) except -1 nogil
# A look-up that leaves its way in *path*, and the two changes that take it from there: one
# descent instead of two. `hamt_remove_at` is for an id that is there.
cdef uint32_t hamt_seek(const Maps *maps, const Hamt *map_, const Key *key,
                        Path *path) noexcept nogil
cdef int hamt_put_at(Maps *maps, Hamt *map_, EditLog *log, const Key *key, uint32_t slot,
                     Path *path) except -1 nogil
cdef int hamt_remove_at(Maps *maps, Hamt *map_, EditLog *log, const Key *key,
                        Path *path) except -1 nogil
# Fetch ahead what look-ups of *keys* will read.
cdef void hamt_warm(const Maps *maps, const Hamt *map_, const Key *keys,
                    size_t count) noexcept nogil
# All slots, in no order that a user may see, into *slots*, which has room for `map_.count`.
cdef void hamt_slots(const Maps *maps, const Hamt *map_, uint32_t *slots) noexcept nogil
# What differs, in no order that a user may see. Raises MemoryError. Give back with `changes_free`.
cdef int hamt_diff(const Maps *maps, const Hamt *old, const Hamt *new,
                   Changes *changes) except -1 nogil
cdef void changes_free(Changes *changes) noexcept nogil
# Give back every node of this version; its owner ends and nobody reads another.
cdef void hamt_free(Maps *maps, Hamt *map_) noexcept nogil
# How nodes go back: for hamtbuild, which makes some.
cdef void reclaim_inner(void *owner, uint64_t what) noexcept nogil
cdef void reclaim_leaf(void *owner, uint64_t what) noexcept nogil
