# cython: language_level=3
# A store that is filled at once.
from libc.stdint cimport uint32_t

from pyresched._core.batch cimport Batch
from pyresched._core.jobindex cimport JobIndex, Roots
from pyresched._core.ordered cimport Tree, Trees
from pyresched._core.records cimport Record
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


cdef class Load:
    cdef JobIndex index
    cdef Batch batch
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

    cdef int take_ids(self, Roots *roots, EditLog *log) except -1
    cdef int sort_out(self, Roots *roots, EditLog *log) except -1
    cdef int note(self, Items *items, Item item) except -1
    cdef int note_queued(self, str queue, object pool, Item item) except -1
    cdef uint32_t lot(self, str queue, object pool) except? 0xFFFFFFFF
    cdef int fill(self, Trees *trees, Tree *tree, EditLog *log, Item *items, size_t count
                  ) except -1
    cdef int fill_lanes(self, Roots *roots, EditLog *log) except -1


# Put all jobs of *batch*, which have passed, into a store that has none. Raises MemoryError: the
# edit is to be aborted then.
cdef int load(JobIndex index, Roots *roots, EditLog *log, Batch batch) except -1
