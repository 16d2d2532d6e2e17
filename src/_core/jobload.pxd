# cython: language_level=3
# A store that is filled at once.
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t

from pyresched._core.batch cimport Batch
from pyresched._core.hamtbuild cimport Cell
from pyresched._core.jobindex cimport JobIndex, Roots
from pyresched._core.ordered cimport Tree, Trees
from pyresched._core.records cimport Kind
from pyresched._core.treenode cimport Item
from pyresched._core.versions cimport EditLog


# Items on their way into a tree.
cdef struct Items:
    Item *items
    size_t count


# The lane of a queue and a pool, and how many jobs go there.
cdef struct Lot:
    size_t count
    size_t next_

# What jobs of one kind share: the rank of their class, and the lots that they go to, `count` from
# `first` on.
cdef struct Shared:
    PyObject *kind         # NULL: an open place
    int64_t rank
    uint32_t first
    uint32_t count


cdef class Load:
    cdef JobIndex index
    cdef Batch batch
    cdef size_t expected       # so many items, more or less
    cdef uint32_t *slots       # by place in the batch
    cdef Items unvalidated
    cdef Items leased
    cdef Items backing_off
    cdef Items gangs
    cdef Items queued          # of all lanes, as they come
    cdef uint32_t *lot_of      # by place in `queued`
    cdef size_t queued_room
    cdef list lanes            # number of a lot -> (queue, pool)
    cdef dict numbers          # queue -> pool -> number of the lot
    cdef Lot *lots
    cdef size_t lot_room
    cdef Shared *kinds         # a table by the address of the kind
    cdef size_t kind_mask
    cdef size_t kind_count
    cdef uint32_t *ways        # lots of kinds
    cdef size_t way_count
    cdef size_t way_room
    cdef uint32_t *dealt       # numbers of queued items, lot by lot
    cdef Item *lot_items       # room for the largest lot
    cdef Item *spare           # room for sorting
    cdef size_t spare_room

    cdef int begin(self, JobIndex index, size_t expected) except -1
    cdef int take_ids(self, Roots *roots, EditLog *log, const Cell *cells) except -1
    cdef int sort_out(self, Roots *roots, EditLog *log) except -1
    cdef int note(self, Items *items, Item item) except -1
    cdef int note_queued(self, const Shared *shared, Item item) except -1
    cdef const Shared *shared_by(self, Kind kind) except NULL
    cdef Shared *place(self, PyObject *kind) noexcept
    cdef int more_kinds(self) except -1
    cdef int add_way(self, str queue, object pool) except -1
    cdef uint32_t lot(self, str queue, object pool) except? 0xFFFFFFFF
    cdef Item *ascending(self, Trees *trees, Item *items, size_t count) except NULL
    cdef int deal(self) except -1
    cdef Item *items_of(self, const Lot *lot) noexcept
    cdef int fill(self, Trees *trees, Tree *tree, EditLog *log, Item *items, size_t count
                  ) except -1
    cdef int fill_lanes(self, Roots *roots, EditLog *log) except -1


# Put all jobs of *batch*, which have passed, into a store that has none. *cells*: those of its
# keys as hamtbuild sorts them, or NULL. Raises MemoryError: the edit is to be aborted then.
cdef int load(JobIndex index, Roots *roots, EditLog *log, Batch batch, const Cell *cells) except -1
