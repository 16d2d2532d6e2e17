# cython: language_level=3
# Small whole numbers for the jobs that a table speaks of; a twin of it costs next to nothing.
from libc.stdint cimport int32_t


cdef class Handles:
    cdef dict base          # job id -> handle; shared with twins, never changed
    cdef list base_ids      # by handle; likewise
    cdef dict own           # job id -> handle, or -1 for one of the base that was forgotten
    cdef list own_ids       # by handle, from the first that is not of the base on
    cdef list free          # handles of `own_ids` that stand for nothing
    cdef readonly Py_ssize_t count  # handles, also those that stand for nothing
    cdef Py_ssize_t forgotten       # of the base

    cdef int32_t find(self, str job_id) except -2   # -1: there is none
    cdef int32_t add(self, str job_id) except -1    # of one that has none
    cdef int forget(self, int32_t handle) except -1
    cdef str job_id(self, int32_t handle)
    cdef Handles twin(self)
    cdef int seal(self) except -1
    cdef bint wasteful(self) noexcept
    cdef list ids(self)     # by handle; None for one that stands for nothing
