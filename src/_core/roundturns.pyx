# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Whose turn it is: the queues of a round in a heap, by what their next unit would make of them.

Owns the order between queues and nothing else; relies on `RoundJobs` for what each has.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from pyresched._core.resources cimport saturating_add
from pyresched._core.roundjobs cimport PENALTY, Entry, Lane, RoundJobs


cdef class RoundTurns(RoundJobs):
    """The order of turns."""

    def __cinit__(self, *_args, bint prefer_large=False, **_policy):
        self.prefer_large = prefer_large
        self.turn_amounts = <int64_t *> malloc(max(self.width, 1) * sizeof(int64_t))
        if self.turn_amounts == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.heap)
        free(self.turn_amounts)

    cdef int rate(self, Head *head, int32_t at, bint waits, int against) noexcept nogil:
        """Work out the turn of the unit of entry *at*; *against* is what its queue has."""
        cdef const Entry *entry = &self.entries[at]
        cdef const Lane *lane = &self.lanes[head.lane]
        cdef const int64_t *request = self.amounts_of(entry)
        cdef const int64_t *has = self.vector(head.lane, against)
        cdef const int64_t *penalty = self.vector(head.lane, PENALTY)
        cdef Py_ssize_t r
        head.priority = self.shapes[entry.shape].priority
        head.waits = waits
        for r in range(self.width):
            self.turn_amounts[r] = saturating_add(has[r], penalty[r])
        if self.prefer_large:
            head.current = self.fairness.cost(self.turn_amounts) / lane.weight
            head.size = self.fairness.cost(request) * lane.weight
        for r in range(self.width):
            self.turn_amounts[r] = saturating_add(self.turn_amounts[r], request[r])
        head.proposed = self.fairness.cost(self.turn_amounts) / lane.weight
        head.within = head.proposed <= lane.budget / lane.weight
        return 0

    cdef bint before(self, const Head *one, const Head *other) noexcept nogil:
        if one.priority != other.priority:
            return one.priority > other.priority
        if self.prefer_large:
            if one.within != other.within:
                return one.within
            if one.within:
                if one.current != other.current:
                    return one.current < other.current
                if one.size != other.size:
                    return one.size > other.size
            elif one.proposed != other.proposed:
                return one.proposed < other.proposed
        elif one.proposed != other.proposed:
            return one.proposed < other.proposed
        if one.waits != other.waits:
            return one.waits
        return one.lane < other.lane

    cdef void sift_down(self, Py_ssize_t at) noexcept nogil:
        cdef Head moved = self.heap[at]
        cdef Py_ssize_t child
        while True:
            child = 2 * at + 1
            if child >= self.heap_length:
                break
            if (child + 1 < self.heap_length
                    and self.before(&self.heap[child + 1], &self.heap[child])):
                child += 1
            if not self.before(&self.heap[child], &moved):
                break
            self.heap[at] = self.heap[child]
            at = child
        self.heap[at] = moved

    cdef void heapify(self) noexcept nogil:
        cdef Py_ssize_t at
        for at in range(self.heap_length // 2 - 1, -1, -1):
            self.sift_down(at)
