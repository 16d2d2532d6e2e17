# cython: language_level=3
# What a request asks about the nodes that others of its scope hold.
from libc.stdint cimport int32_t, int64_t


# How many jobs of one scope hold which nodes, ascending by node; no node has 0.
cdef struct Tally:
    Py_ssize_t count
    Py_ssize_t space
    int32_t *nodes
    int32_t *jobs


# Make room for one more node. Raises MemoryError.
cdef int tally_reserve(Tally *tally) except -1 nogil
# *by* more, or fewer, jobs hold *node*. Giving back what was added never fails. MemoryError.
cdef int tally_add(Tally *tally, Py_ssize_t node, int by) except -1 nogil
cdef int tally_copy(const Tally *tally, Tally *copy) except -1
cdef void tally_free(Tally *tally) noexcept nogil


# One label: its value on each node, and how many of the scope may share one or should.
cdef struct Property:
    int64_t limit           # of jobs that share a value; 0: none
    int64_t weight          # of the spread; 0: none
    const int32_t *values   # by node; -1: the node has no such label
    Py_ssize_t value_count
    int64_t *desired        # by value, in hundredths of a percent
    int64_t *used           # by value: jobs of the scope, as of the last `look`


cdef class Crowding:
    cdef int64_t host_limit
    cdef Py_ssize_t property_count
    cdef Property *properties
    cdef int64_t total      # jobs of the scope, as of the last `look`
    cdef list owners        # what `values` point into
    cdef int32_t *jobs      # by node: jobs of the scope, as of the last `look`
    cdef Py_ssize_t nodes

    cdef void look(self, const Tally *tally) noexcept nogil
    cdef Py_ssize_t taken(self, Py_ssize_t node) noexcept nogil
    cdef int64_t score(self, Py_ssize_t node) noexcept nogil
