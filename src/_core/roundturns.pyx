# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Whose turn it is: the queues of a round in a heap, by what their next unit would make of them.

Owns the order between queues and nothing else; relies on `RoundJobs` for what each has.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.stdlib cimport free

from pyresched._core.roundjobs cimport PENALTY, Entry, Lane, RoundJobs
from pyresched._core.versions cimport tried_malloc as malloc


# Shares are quotients and sums of doubles: one that is exactly at its limit may compute as above.
cdef double EPSILON = 1e-9


cdef inline bint is_above(double cost, double share) noexcept nogil:
    return cost > share + EPSILON


cdef inline int64_t added(int64_t amount, int64_t more) noexcept nogil:
    """The sum, of which *more* is not negative, or the largest number."""
    return INT64_MAX if amount > INT64_MAX - more else amount + more


cdef inline bint before(const Head *one, const Head *other, bint prefer_large) noexcept nogil:
    """Whose turn it is. No two are equal: each is of a lane of its own."""
    if one.priority != other.priority:
        return one.priority > other.priority
    if prefer_large and (one.within or other.within):
        if one.within != other.within:
            return one.within
        if one.current != other.current:
            return one.current < other.current
        if one.size != other.size:
            return one.size > other.size
    elif one.proposed != other.proposed:
        return one.proposed < other.proposed
    if one.waits != other.waits:
        return one.waits
    return one.lane < other.lane


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
        cdef int64_t *sums = self.turn_amounts
        cdef Py_ssize_t r, width = self.width
        head.priority = self.shapes[entry.shape].priority
        head.waits = waits
        if self.prefer_large:
            for r in range(width):
                sums[r] = added(has[r], penalty[r])
            head.current = self.fairness.cost(sums) / lane.weight
            head.size = self.fairness.cost(request) * lane.weight
        for r in range(width):
            sums[r] = added(added(has[r], penalty[r]), request[r])
        head.proposed = self.fairness.cost(sums)
        head.within = not is_above(head.proposed, lane.budget)
        head.proposed /= lane.weight
        return 0

    cdef bint holds_more(self, const int64_t *amounts, double share) noexcept nogil:
        """Whether *amounts* cost more than *share*; exactly as much is not more."""
        return is_above(self.fairness.cost(amounts), share)

    cdef void sift_down(self, Py_ssize_t at) noexcept nogil:
        """Let the head at *at* sink to its place: mostly that is near the bottom, so it goes all
        the way down and then up again, with one comparison a level."""
        cdef Head moved = self.heap[at]
        cdef Py_ssize_t top = at, child = 2 * at + 1, parent
        while child < self.heap_length:
            if (child + 1 < self.heap_length and before(
                    &self.heap[child + 1], &self.heap[child], self.prefer_large)):
                child += 1
            self.heap[at] = self.heap[child]
            at = child
            child = 2 * at + 1
        while at > top:
            parent = (at - 1) // 2
            if not before(&moved, &self.heap[parent], self.prefer_large):
                break
            self.heap[at] = self.heap[parent]
            at = parent
        self.heap[at] = moved

    cdef void heapify(self) noexcept nogil:
        cdef Py_ssize_t at
        for at in range(self.heap_length // 2 - 1, -1, -1):
            self.sift_down(at)
