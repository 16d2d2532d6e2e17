# cython: language_level=3
# What the public indices have in common: versions, snapshots, transactions.
from pyresched._core.versions cimport Edit, History, Pin


cdef class Index:
    cdef History history
    cdef Edit single       # of what is a version of its own
    cdef Edit spare        # for the next transaction, or None

    cdef int begin_step(self) except -1


cdef class IndexReader:
    cdef Index home
    cdef Pin *pin          # of a snapshot
    cdef Edit edit         # of a transaction
    cdef const int *state  # EDIT_OPEN there: it may be used

    cdef int _check(self) except -1
    cdef int hold(self, Index home) except -1
    cdef int begin(self, Index home, object timeout) except -1
    cdef object commit_all(self)
    cdef object abort_all(self)
    cdef int leave(self, object kind) except -1
    cdef int forsaken(self) except -1
    cdef void publish(self) noexcept
