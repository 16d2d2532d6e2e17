# cython: language_level=3
# One version of the jobs, its walks and diffs.
from libc.stdint cimport int64_t, uint32_t, uint64_t

from pyresched._core.batch cimport Texts
from pyresched._core.jobindex cimport JobIndex, Roots
from pyresched._core.ordered cimport Cursor, Item, Tree, Trees
from pyresched._core.records cimport Record, RecordRow
from pyresched._core.versions cimport Pin
from pyresched._core.views cimport Job, Lent

cdef enum:
    AHEAD = 16         # jobs that a walk fetches at a time

# Where a walk is in one tree.
cdef struct Head:
    Cursor cursor      # behind the item
    Item item
    bint there         # False: the tree is at its end


cdef class Reader:
    cdef JobIndex index
    cdef Pin *pin            # NULL: a writer's
    cdef Roots roots
    cdef bint changing       # a transaction: walks are to be told before it changes
    cdef void *walks         # the first of a transaction's own that are under way

    cdef int must_be_open(self) except -1
    cdef const Record *record(self, uint32_t slot) noexcept
    cdef Job row(self, uint32_t slot)
    cdef const Tree *lane(self, object queue, object pool) except? NULL
    cdef dict filled(self, tuple names, dict fields, Texts texts)
    cdef dict everything(self)
    cdef Walk walk(self, const Trees *trees, const Tree *tree)


cdef class Snapshot(Reader):
    pass


cdef class Walk:
    cdef Reader reader
    cdef Head *heads         # one a tree, merged
    cdef Py_ssize_t trees
    cdef int64_t last        # the walk ends above this first key
    cdef uint32_t *slots     # instead of trees: what to walk, owned
    cdef Py_ssize_t slot_at
    cdef Py_ssize_t slot_count
    # Jobs on their way from memory, a batch each at its own distance; all borrowed.
    cdef const RecordRow *coming[AHEAD]  # rows that were asked for
    cdef const Record *ahead[AHEAD]      # records that were asked for: the next to be given
    cdef uint32_t coming_slots[AHEAD]
    cdef uint32_t ahead_slots[AHEAD]
    cdef uint32_t coming_count
    cdef uint32_t ahead_at
    cdef uint32_t ahead_count
    cdef bint lends          # it holds the version that the records are of, so views can be lent
    cdef Lent lent
    cdef list rest           # what was left when the transaction wrote, last first
    cdef bint listed
    cdef void *before        # the chain of `Reader.walks`; borrowed
    cdef void *after

    cdef int start(self, Py_ssize_t trees) except -1
    cdef void add(self, const Trees *trees, const Tree *tree) noexcept
    cdef int sort_for_market(self, uint64_t count) except -1
    cdef bint fetch(self) noexcept
    cdef uint32_t next_slots(self, uint32_t *slots) noexcept
    cdef bint merged(self, uint32_t *slot) noexcept
    cdef const Record *step(self) noexcept
    cdef uint32_t slot(self) noexcept
    cdef int detach(self) except -1
    cdef void leave(self) noexcept


cdef class Diff:
    cdef tuple differences   # (old | None, new | None)


# For whoever takes several ids. Raises TypeError.
cdef list several(ids)
# A number and its noun.
cdef str several_of(Py_ssize_t count, str noun)
