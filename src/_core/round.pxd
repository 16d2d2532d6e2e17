# cython: language_level=3
from libc.stdint cimport int32_t, int64_t, uint8_t

from pyresched._core.drf cimport DominantResourceFairness
from pyresched._core.nodeindex cimport NodeTable
from pyresched._core.values cimport Gang, Requirements
from pyresched._core.views cimport Job

# Why a job got no node; `CODES` names these, in this order.
cdef enum Code:
    INSUFFICIENT_RESOURCES
    EXCEEDS_EVERY_NODE
    NO_MATCHING_NODE
    NODES_CLOSED
    GANG_DOES_NOT_FIT
    GANG_INCOMPLETE
    GANG_MALFORMED
    UNKNOWN_PRIORITY_CLASS
    INVALID_REQUEST
    PAST_LOOKBACK
    NO_NODES
    QUEUE_CORDONED
    UNKNOWN_QUEUE
    INVALID_WEIGHT
    TOO_CROWDED
    CODE_COUNT

cdef enum:
    # In `Lane.verdicts`, where 0 and more is an index of a reason.
    WAITING = -2
    PLACED = -1
    REQUIREMENTS_KEPT = 1024


cdef struct Reason:
    int64_t wanted
    int64_t had
    int32_t code
    int32_t resource  # NOWHERE: none


# What is known of a shape of the node table.
cdef struct Shape:
    int64_t priority
    int64_t failed_at  # the epoch in which it found no room; NOWHERE: none
    int32_t reason  # why, then; or why it can have none
    uint8_t known
    uint8_t barred  # never tried: no such class
    uint8_t preemptible


# The next candidate of a lane, as the heap orders it.
cdef struct Head:
    int64_t priority
    double cost
    int32_t lane


cdef struct Seen:
    void *requirements
    int32_t shape


cdef class QueuedGang:
    cdef readonly Gang gang
    cdef Job first
    cdef list positions
    cdef list order
    cdef object signature
    cdef Py_ssize_t last
    cdef int32_t shape  # NOWHERE: members differ
    cdef bint malformed
    cdef int32_t fault


cdef class Lane:
    cdef readonly str queue
    cdef readonly double weight
    cdef readonly list jobs
    cdef readonly list preemptible
    cdef Py_ssize_t width
    cdef Py_ssize_t count
    cdef Py_ssize_t looked_at
    cdef Py_ssize_t cursor
    cdef Py_ssize_t head
    cdef QueuedGang head_gang
    cdef bint open
    cdef int32_t *shapes
    cdef int32_t *verdicts
    cdef int32_t *gang_at  # NULL while no job has a gang
    cdef list gangs
    cdef dict gang_by_id
    cdef int64_t *held
    cdef int64_t *allocated
    cdef int64_t *waiting


cdef class RoundWalk:
    cdef readonly NodeTable table
    cdef readonly list placed
    cdef readonly int64_t epoch
    cdef Py_ssize_t width
    cdef Py_ssize_t lookback
    cdef DominantResourceFairness fairness
    cdef dict classes
    cdef object avoid_of
    cdef object values_of
    cdef object room_maker
    cdef list lanes
    cdef dict lane_by_queue
    cdef Seen seen[REQUIREMENTS_KEPT]
    cdef Shape *shapes
    cdef Py_ssize_t shape_space
    cdef Reason *reasons
    cdef Py_ssize_t reason_count
    cdef Py_ssize_t reason_space
    cdef dict failed_gangs
    cdef int32_t gang_reason
    cdef Py_ssize_t most_members
    cdef Head *heap
    cdef Py_ssize_t heap_length
    cdef int64_t *freed  # NULL until runs are offered
    cdef int64_t *wanted
    cdef int64_t *proposed
    cdef int32_t *avoid
    cdef uint8_t *ranks
    cdef Py_ssize_t avoided
    cdef Py_ssize_t avoid_space

    cdef int32_t shape_of(self, Requirements requirements) except -2
    cdef int32_t new_reason(self, int code, int32_t resource, int64_t wanted,
                            int64_t had) except -1
    cdef int muster(self, Lane lane, Py_ssize_t position, Job job, int32_t shape) except -1
    cdef int inspect(self, Lane lane, QueuedGang gang, object members_of) except -1
    cdef int arrange(self, Lane lane, QueuedGang gang) except -1
    cdef int refuse(self, Lane lane, QueuedGang gang, Py_ssize_t position,
                    int32_t reason) except -1
    cdef bint pull(self, Lane lane) except -1
    cdef int rate(self, Head *head) except -1
    cdef bint before(self, Head *one, Head *other) noexcept
    cdef void sift_down(self, Py_ssize_t at) noexcept
    cdef void heapify(self) noexcept
    cdef int one_pass(self) except -1
    cdef int attempt(self, Lane lane) except -1
    cdef int attempt_gang(self, Lane lane) except -1
    cdef bint place_gang(self, Lane lane, QueuedGang gang, list only) except -1
    cdef bint make_room(self, Lane lane, list positions, object only) except -1
    cdef int settle(self, Lane lane, Py_ssize_t position, str node_id, object method) except -1
    cdef int load_avoid(self, Lane lane, list positions) except -1
    cdef Py_ssize_t checked(self, Py_ssize_t node) except -1
    cdef bint reachable(self, int32_t shape, Py_ssize_t node) noexcept
    cdef bint reaches_any(self, int32_t shape) noexcept
    cdef int32_t why_not(self, int32_t shape, list only) except -1
    cdef int nearest(self, int32_t shape, int row, bint open_only, list only,
                     int32_t *resource, int64_t *had) except -2
