# cython: language_level=3
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from pyresched._core.crowding cimport Crowding
from pyresched._core.nodeledger cimport NodeLedger
from pyresched._core.nodeorder cimport Order
from pyresched._core.resources cimport ResourceVector
from pyresched._core.values cimport Requirements


cdef enum:  # of `NodeLedger.over`, where 0 is a node that holds no more than it has
    WAS_OPEN = 1
    WAS_CLOSED = 2

# Which nodes a shape may use, best tier first.
cdef struct Mask:
    const uint8_t *tiers  # by node: 0 never, 1 best; NULL: nobody asked yet
    uint64_t *kinds       # by tier from 1 on: of which kinds its nodes are
    int tier_count
    void *crowding        # the Crowding that `crowdings` holds, or NULL


cdef class NodeTable(NodeLedger):
    cdef public object matcher
    cdef object __weakref__
    cdef Mask *masks         # by shape
    cdef Py_ssize_t mask_space
    cdef list owners         # by shape: what `tiers` points into
    cdef list crowdings      # by shape: a Crowding or None

    # What the round calls. `row` is 0 for room that nobody holds, or from row_of.
    cdef int32_t shape_of(self, Requirements requirements) except -1
    cdef Py_ssize_t find(self, int32_t shape, int row, int *found) except -2 nogil
    cdef Py_ssize_t find_avoiding(self, int32_t shape, int row, const int32_t *avoid,
                                  const uint8_t *ranks, Py_ssize_t avoided,
                                  int *found) except -2 nogil
    cdef Py_ssize_t find_among(self, int32_t shape, int row, const int32_t *only,
                               Py_ssize_t given, const int32_t *avoid, const uint8_t *ranks,
                               Py_ssize_t avoided, int *found) except -2 nogil
    cdef int place_handles(self, const int32_t *shapes, const int32_t *handles, Py_ssize_t count,
                           int64_t priority, bint preemptible, int32_t *nodes) except -1 nogil
    cdef int refuse_repeats(self, const int32_t *handles, Py_ssize_t count) except -1
    cdef int hold_node(self, str job_id, Requirements requirements, Py_ssize_t node,
                       int64_t priority, bint preemptible, str pool) except -1
    cdef int let_go(self, str job_id) except -1
    cdef Py_ssize_t victims_of(self, int32_t shape, int64_t priority, const int32_t *candidates,
                               Py_ssize_t given, int32_t *victims, Py_ssize_t *count) except -2

    # Inside.
    cdef void close_node(self, Py_ssize_t node) noexcept
    cdef int load_mask(self, int32_t shape) except -1
    cdef int forget_mask(self, int32_t shape) except -1
    cdef const Order *order_at(self, int row) except NULL nogil
    cdef Py_ssize_t best_at(self, int32_t shape, int row, const int32_t *avoid,
                            const uint8_t *ranks, Py_ssize_t avoided) except -2 nogil
    cdef Py_ssize_t best_of(self, int32_t shape, int row, const int32_t *only, Py_ssize_t given,
                            const int32_t *avoid, const uint8_t *ranks,
                            Py_ssize_t avoided) noexcept nogil
    cdef bint fuller(self, int row, Py_ssize_t one, Py_ssize_t other) noexcept nogil
    cdef Py_ssize_t node_index(self, str node_id) except -1
    cdef int cut_victims(self, int32_t shape, Py_ssize_t node, int32_t *victims,
                         Py_ssize_t *count) except -1
    cdef ResourceVector best_had(self, int32_t shape, int row, const uint8_t *chosen)
