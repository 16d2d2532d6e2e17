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

cdef extern from "stdint.h":
    # No instant: the field is None to Python.
    const int64_t NEVER "INT64_MIN"


cdef class Requirements:
    cdef readonly ResourceVector resources
    cdef readonly str priority_class
    cdef readonly tuple selector
    cdef readonly tuple tolerations
    # (constraints, affinity, preferences, spread, scope, nodes); None when all are empty.
    cdef tuple rules
    cdef Py_hash_t cached_hash


cdef class Gang:
    cdef readonly str id
    cdef readonly Py_ssize_t cardinality
    cdef readonly str uniformity


cdef inline object instant(int64_t at):
    return None if at == NEVER else at


cdef int64_t whole_in(object value, str field) except? -1
cdef int64_t clipped(object value, str field) except? -1
cdef int64_t or_never(object at, str field) except? -1
cdef tuple tuple_of(object value, str field)
cdef str text(object value, str field)
