# cython: language_level=3
# Many queued jobs leased at once.
from libc.stdint cimport int64_t, uint8_t, uint32_t

from pyresched._core.batch cimport Batch, Coded, Numbers, Texts
from pyresched._core.hamtbuild cimport Cell
from pyresched._core.ids cimport Key
from pyresched._core.jobindex cimport JobIndex, Roots
from pyresched._core.jobload cimport Load
from pyresched._core.jobids cimport JobIds
from pyresched._core.records cimport Name, Record
from pyresched._core.treenode cimport Item
from pyresched._core.versions cimport EditLog


# A job that is leased, and its row in the columns.
cdef struct Leased:
    uint32_t slot
    uint32_t row


cdef class Leases:
    cdef JobIndex index
    cdef Load load             # what jobs of a kind share, and what leaves which lane
    cdef Batch batch           # the new records, by place in `jobs`
    cdef Leased *jobs          # by slot, ascending
    cdef uint32_t *slots       # the same slots
    cdef Key *runs             # of the new runs, by row
    cdef Name *names           # of the same, each held; unused where they are `counted`
    cdef Name first            # from which they are
    cdef uint32_t *run_slots   # by row
    cdef Cell *cells           # of the new runs; NULL before they are vetted
    cdef bint alike            # too many of their hashes are the same to build of `cells`
    cdef Item *leased
    cdef size_t count
    cdef size_t named
    cdef bint counted          # every run has a ULID
    cdef object ids            # JobIds or Texts
    cdef object texts          # what `runs` borrow from
    cdef Coded nodes
    cdef Numbers priorities
    cdef str pool
    cdef int64_t leased_at
    cdef int64_t expires_at

    cdef int room(self, Py_ssize_t count) except -1
    cdef int name_runs(self, object run_ids) except -1
    cdef int count_runs(self, str first) except -1
    cdef int find(self, Roots *roots) except -1
    cdef int find_jobs(self, Roots *roots) except -1
    cdef int find_records(self, Roots *roots, JobIds ids) except -1
    cdef int seek_records(self, Roots *roots, JobIds ids) except -1
    cdef int find_ids(self, Roots *roots, Texts ids) except -1
    cdef int vet(self, Roots *roots) except -1
    cdef int vet_runs(self, Roots *roots) except -1
    cdef void name_of(self, uint32_t row, Name *name, uint8_t *kind) noexcept
    cdef str run_id(self, uint32_t row)
    cdef int taken(self, Roots *roots, size_t row, uint32_t slot) except -1
    cdef int must_differ(self, Roots *roots) except -1
    cdef const Record *record(self, Roots *roots, uint32_t slot) noexcept
    cdef int make(self, Roots *roots) except -1
    cdef int write(self, Roots *roots, EditLog *log) except -1
    cdef int sort_out(self, Roots *roots) except -1
    cdef int write_runs(self, Roots *roots, EditLog *log) except -1
    cdef int write_leased(self, Roots *roots, EditLog *log) except -1
    cdef int leave_lanes(self, Roots *roots, EditLog *log) except -1


# See `Txn.lease_many`; *ids* are Texts or JobIds.
cdef Leases leases_of(JobIndex index, object ids, object run_ids, object nodes, object pool,
                      object priority, object leased_at, object lease_expires_at)
