# cython: language_level=3
from libc.stdint cimport int32_t, int64_t, uint8_t

from pyresched._core.resources cimport ResourceVector
from pyresched._core.values cimport Requirements

cdef enum:
    NOWHERE = -1
    MOST_NESTED = 16  # attempts deeper than this still work; they only forget what did not fit


# What one job holds. Rows of `room` that it holds: 0 always, 1 .. height while not evicted.
cdef struct Binding:
    int64_t priority
    int32_t node  # NOWHERE: the job holds nothing
    int32_t shape
    int32_t height
    int32_t newer  # the list of the node's bindings
    int32_t older
    uint8_t evicted
    uint8_t preemptible


cdef enum Step:
    BEGIN
    KEPT  # a BEGIN whose attempt was kept
    BIND
    RETURN
    EVICT
    UNBIND


cdef struct Undo:
    Step step
    int32_t handle
    int32_t floor
    int64_t stamp
    Binding before


cdef class NodeTable:
    cdef readonly Py_ssize_t width
    cdef readonly Py_ssize_t count
    cdef readonly int height
    cdef readonly tuple levels
    cdef readonly tuple node_ids
    cdef readonly dict node_by_id
    cdef public object matcher
    cdef object __weakref__

    # Columns by node; [row][resource][node] for room.
    cdef Py_ssize_t stride
    cdef int64_t *level_priority
    cdef int64_t *base
    cdef int64_t *room
    cdef uint8_t *open
    cdef uint8_t *over
    cdef uint8_t *clipped
    cdef int32_t *newest

    # Columns by handle.
    cdef readonly Py_ssize_t handles
    cdef Py_ssize_t handle_space
    cdef Binding *bindings
    cdef list job_ids
    cdef dict handle_by_job
    cdef list free_handles

    # Columns by shape.
    cdef readonly Py_ssize_t shapes
    cdef Py_ssize_t shape_space
    cdef int64_t *requests
    cdef int64_t *unfit
    cdef const uint8_t **masks
    cdef const uint8_t **preferred
    cdef list shape_requirements
    cdef list mask_owners
    cdef dict shape_by_requirements

    cdef Undo *log
    cdef Py_ssize_t log_length
    cdef Py_ssize_t log_space
    cdef readonly int depth
    cdef int floor
    cdef int64_t clock
    cdef int64_t stamps[MOST_NESTED + 1]

    # What the round calls. `row` is an index from row_of: 0 is the evicted level.
    cdef int row_of(self, int64_t priority) noexcept nogil
    cdef int32_t shape_of(self, Requirements requirements) except -1
    cdef int32_t handle_of(self, str job_id) except -1
    cdef Py_ssize_t find(self, int32_t shape, int row, int *found) noexcept nogil
    cdef Py_ssize_t find_avoiding(self, int32_t shape, int row, const int32_t *avoid,
                                  const uint8_t *ranks, Py_ssize_t avoided,
                                  int *found) noexcept nogil
    cdef Py_ssize_t find_among(self, int32_t shape, int row, const int32_t *only,
                               Py_ssize_t given, const int32_t *avoid, const uint8_t *ranks,
                               Py_ssize_t avoided, int *found) noexcept nogil
    cdef bint fits(self, Py_ssize_t node, int32_t shape, int row) noexcept nogil
    cdef int bind_handle(self, int32_t handle, int32_t shape, Py_ssize_t node, int64_t priority,
                         bint preemptible) except -1 nogil
    cdef int evict_handle(self, int32_t handle) except -1 nogil
    cdef int unbind_handle(self, int32_t handle) except -1 nogil
    cdef Py_ssize_t open_attempt(self) except -1 nogil
    cdef void keep_attempt(self, Py_ssize_t mark) noexcept nogil
    cdef void undo_attempt(self, Py_ssize_t mark) noexcept nogil
    cdef int place_handles(self, const int32_t *shapes, const int32_t *handles, Py_ssize_t count,
                           int row, int64_t priority, bint preemptible,
                           int32_t *nodes) except -1 nogil
    cdef Py_ssize_t victims_of(self, int32_t shape, int64_t priority, const int32_t *candidates,
                               Py_ssize_t given, int32_t *victims, Py_ssize_t *count) except -2

    # Inside.
    cdef int64_t *row(self, int row) noexcept nogil
    cdef bint known_unfit(self, int32_t shape, int row) noexcept nogil
    cdef void remember_unfit(self, int32_t shape, int row) noexcept nogil
    cdef void released(self) noexcept nogil
    cdef bint fuller(self, int row, Py_ssize_t one, Py_ssize_t other) noexcept nogil
    cdef Py_ssize_t scan(self, const int64_t *request, const uint8_t *mask, int row) noexcept nogil
    cdef Py_ssize_t best_at(self, int32_t shape, int row, const int32_t *avoid,
                            const uint8_t *ranks, Py_ssize_t avoided) noexcept nogil
    cdef Py_ssize_t best_among(self, int32_t shape, int row, const int32_t *only,
                               Py_ssize_t given, const int32_t *avoid, const uint8_t *ranks,
                               Py_ssize_t avoided) noexcept nogil
    cdef void take(self, Py_ssize_t node, const int64_t *request, int low, int high) noexcept nogil
    cdef void give(self, Py_ssize_t node, const int64_t *request, int low, int high) noexcept nogil
    cdef void recount(self, Py_ssize_t node) noexcept nogil
    cdef void link(self, int32_t handle) noexcept nogil
    cdef void relink(self, int32_t handle) noexcept nogil
    cdef void unlink(self, int32_t handle) noexcept nogil
    cdef int reserve_log(self) except -1 nogil
    cdef void record(self, Step step, int32_t handle) noexcept nogil
    cdef int allot_nodes(self, Py_ssize_t count) except -1
    cdef int allot_handles(self, Py_ssize_t wanted) except -1
    cdef int allot_shapes(self, Py_ssize_t wanted) except -1
    cdef int load_mask(self, int32_t shape) except -1
    cdef Py_ssize_t node_index(self, str node_id) except -1
    cdef NodeTable twin(self)
    cdef int _fewest(self, int32_t shape, Py_ssize_t node, int32_t *victims,
                     Py_ssize_t *count) except -1
    cdef ResourceVector _best_had(self, int32_t shape, const int64_t *rows, const uint8_t *chosen)
    cdef ResourceVector _column(self, const int64_t *rows, Py_ssize_t node)
