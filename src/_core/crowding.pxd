# cython: language_level=3
# What a request asks about the nodes that others of its scope hold.
from libc.stdint cimport int32_t, int64_t


# One label: its value on each node, and how many of the scope may share one or should.
cdef struct Property:
    int64_t limit           # of jobs that share a value; 0: none
    int64_t weight          # of the spread; 0: none
    const int32_t *values   # by node; -1: the node has no such label
    Py_ssize_t value_count
    int64_t *desired        # by value, in hundredths of a percent
    int64_t *used           # by value: jobs of the scope, as of the last `look`


cdef class Crowding:
    cdef readonly str scope
    cdef int64_t host_limit
    cdef Py_ssize_t property_count
    cdef Property *properties
    cdef int64_t total      # jobs of the scope, as of the last `look`
    cdef list owners        # what `values` point into

    cdef void look(self, const int32_t *tally, Py_ssize_t count) noexcept nogil
    cdef bint allows(self, const int32_t *tally, Py_ssize_t node) noexcept nogil
    cdef Py_ssize_t taken(self, const int32_t *tally, Py_ssize_t node) noexcept nogil
    cdef int64_t score(self, Py_ssize_t node) noexcept nogil
