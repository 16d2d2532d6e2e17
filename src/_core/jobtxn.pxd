# cython: language_level=3
# Staged changes over one version of the jobs.
from libc.stdint cimport uint32_t, uint64_t

from pyresched._core.ids cimport Key
from pyresched._core.batch cimport Batch
from pyresched._core.jobreader cimport Reader, Snapshot
from pyresched._core.records cimport Record
from pyresched._core.versions cimport Edit


cdef class Txn(Reader):
    cdef Edit edit           # None after the end
    cdef readonly bint dry
    cdef readonly Snapshot base  # of a dry run while it is open
    cdef bint busy           # a change is under way, and may not be changed

    cdef void end(self) noexcept
    cdef void leave_walks(self) noexcept
    cdef int begin_change(self) except -1
    cdef int must_have_room(self, uint64_t jobs) except -1
    cdef int put_all(self, Batch batch) except -1
    cdef int put_each(self, Batch batch) except -1
    cdef int fill(self, Batch batch) except -1
    cdef int vet(self, const Record *job, uint32_t slot, dict new_runs) except -1
    cdef int vet_runs(self, const Record *job, const Record *old, uint32_t slot,
                      dict new_runs) except -1
    cdef int put(self, const Record *job, uint32_t slot, const Key *key) except -1
    cdef int drop(self, const Key *key, uint32_t slot) except -1
