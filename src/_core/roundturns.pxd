# cython: language_level=3
# Whose turn it is in a round.
from libc.stdint cimport int32_t, int64_t, uint8_t

from pyresched._core.roundjobs cimport RoundJobs

# The next of a lane, as the heap orders it. Costs are divided by the weight.
cdef struct Head:
    int64_t priority
    double current        # of the queue without it
    double proposed       # with it
    double size           # of it alone, times the weight
    int32_t lane
    uint8_t waits
    uint8_t within        # its queue's share, with it


cdef class RoundTurns(RoundJobs):
    cdef bint prefer_large
    cdef Head *heap
    cdef Py_ssize_t heap_length
    cdef int64_t *turn_amounts   # a vector to work in

    cdef int rate(self, Head *head, int32_t entry, bint waits, int against) noexcept nogil
    cdef bint holds_more(self, const int64_t *amounts, double share) noexcept nogil
    cdef void sift_down(self, Py_ssize_t at) noexcept nogil
    cdef void heapify(self) noexcept nogil
