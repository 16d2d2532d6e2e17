# cython: language_level=3
from libc.stdint cimport int64_t

from pyresched._core.resources cimport ResourceVector

cdef enum:
    QUEUED = 0
    LEASED = 1
    PENDING = 2
    RUNNING = 3
    BACKING_OFF = 4
    SUCCEEDED = 5
    FAILED = 6
    CANCELLED = 7

# No instant: the field is None to Python.
cdef int64_t NEVER


cdef class Requirements:
    cdef readonly ResourceVector resources
    cdef readonly str priority_class
    cdef readonly tuple selector
    cdef readonly tuple tolerations
    cdef Py_hash_t cached_hash


cdef class Gang:
    cdef readonly str id
    cdef readonly Py_ssize_t cardinality
    cdef readonly str uniformity


cdef class Run:
    cdef readonly str id
    cdef readonly str node_id
    cdef readonly str pool
    cdef readonly int64_t priority
    cdef readonly int64_t leased_at
    cdef int64_t lease_expires_ns
    cdef int64_t started_ns
    cdef int64_t ended_ns
    cdef readonly object outcome
    cdef readonly str reason
    cdef int put(self, str name, object value) except -1


cdef class Job:
    cdef readonly str id
    cdef readonly str queue
    cdef readonly str job_set
    cdef readonly int64_t priority
    cdef readonly Requirements requirements
    cdef readonly tuple pools
    cdef readonly int64_t submitted_at
    cdef int state_code
    cdef readonly bint validated
    cdef readonly Gang gang
    cdef readonly tuple runs
    cdef readonly str job_type
    cdef readonly object policy
    cdef readonly object tracker
    cdef int64_t failed_ns
    cdef int64_t eligible_ns
    cdef int64_t retry_delay
    cdef int64_t ended_ns
    cdef readonly str reason
    cdef readonly object payload
    cdef readonly int64_t version
    cdef int put_state(self, object state) except -1
    cdef int must_be_whole(self) except -1
    cdef int put(self, str name, object value) except -1
    cdef Run active(self)
