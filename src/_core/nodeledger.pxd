# cython: language_level=3
# Who holds what of which node, at each level, and how to take it back.
from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t, uint16_t

from pyresched._core.crowding cimport Tally
from pyresched._core.handles cimport Handles
from pyresched._core.nodeorder cimport Order
from pyresched._core.resources cimport ResourceVector
from pyresched._core.values cimport Requirements

cdef enum:
    NOWHERE = -1
    OWN_POOL = 0  # that of the table
    NO_POOL = 1
    AT_ITS_LEVEL = 0x8000  # added to that of a guest that counts at its own priority
    MOST_NESTED = 16  # attempts deeper than this still work; they only forget what did not fit


# What one job holds: row 0 always; while not evicted, those of its level and below, or all.
cdef struct Binding:
    int64_t priority
    int32_t node  # NOWHERE: the job holds nothing
    int32_t shape
    int32_t newer  # the list of the node's bindings
    int32_t older
    uint16_t pool  # of the run, in `pool_names`; OWN_POOL, NO_POOL, or that of a guest
    uint8_t evicted
    uint8_t preemptible


# A preemptible run of another pool counts below every class: its room is free to all but guests.
cdef inline bint counts_below(uint16_t pool) noexcept nogil:
    """Whether a preemptible run of *pool* does."""
    return NO_POOL < pool < AT_ITS_LEVEL


cdef inline int64_t cutoff(const Binding *binding) noexcept nogil:
    """Up to which priority a preemptible binding counts."""
    return INT64_MIN + 1 if counts_below(binding.pool) else binding.priority


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


cdef class NodeLedger:
    cdef readonly Py_ssize_t width     # resources
    cdef readonly Py_ssize_t columns   # amounts: the resources, and places for jobs if limited
    cdef readonly Py_ssize_t count     # nodes
    cdef public str pool               # whose nodes these are; "": of no pool in particular
    cdef public bint guests_first      # whether runs of other pools count below every class
    cdef list pool_names
    cdef readonly tuple levels         # priorities of classes, to name levels by
    cdef readonly tuple node_ids
    cdef readonly dict node_by_id

    # Row 0: the evicted level; then one for each cutoff; the last: what only cutoffs above take.
    cdef int64_t *cutoffs
    cdef int height                    # the last row
    cdef int row_space

    # By node; [node][row][column] for room.
    cdef Py_ssize_t pitch
    cdef int64_t *base
    cdef int64_t *room
    cdef uint8_t *open
    cdef uint8_t *over
    cdef uint8_t *clipped
    cdef uint8_t *kind
    cdef uint8_t *lent                 # of another pool: its own runs hold room for good
    cdef int32_t *newest
    cdef Order **orders                # by row; NULL until somebody searches there

    # By handle.
    cdef Handles jobs
    cdef Py_ssize_t handle_space
    cdef Binding *bindings

    # By shape.
    cdef readonly Py_ssize_t shapes
    cdef Py_ssize_t shape_space
    cdef int64_t *requests             # [shape][column]
    cdef int64_t *unfit                # [shape][row]
    cdef int32_t *scope_of             # [shape], NOWHERE: none
    cdef list shape_requirements
    cdef dict shape_by_requirements

    # By scope: how many of its jobs hold each node.
    cdef dict scope_by_name            # a scope, or the requirements that are one by themselves
    cdef Py_ssize_t scopes
    cdef Tally *tallies

    cdef Undo *log
    cdef Py_ssize_t log_length
    cdef Py_ssize_t log_space
    cdef readonly int depth
    cdef int floor
    cdef int64_t clock
    cdef int64_t stamps[MOST_NESTED + 1]

    cdef int row_of(self, int64_t priority) noexcept nogil
    cdef int level_of(self, int row, int64_t priority, int64_t *level) except -1
    cdef int use_level(self, int64_t priority) except -1 nogil
    cdef int drop_levels(self) except -1
    cdef int32_t handle_of(self, str job_id) except -1
    cdef int forget(self, int32_t handle) except -1
    cdef bint fits(self, Py_ssize_t node, int32_t shape, int row) noexcept nogil
    cdef int bind_handle(self, int32_t handle, int32_t shape, Py_ssize_t node, int64_t priority,
                         bint preemptible, uint16_t pool=*) except -1 nogil
    cdef int pool_index(self, str pool) except -1
    cdef str pool_of(self, const Binding *binding)
    cdef int evict_handle(self, int32_t handle) except -1 nogil
    cdef int unbind_handle(self, int32_t handle) except -1 nogil
    cdef Py_ssize_t open_attempt(self) except -1 nogil
    cdef void keep_attempt(self, Py_ssize_t mark) noexcept nogil
    cdef void undo_attempt(self, Py_ssize_t mark) noexcept nogil

    cdef bint known_unfit(self, int32_t shape, int row) noexcept nogil
    cdef void remember_unfit(self, int32_t shape, int row) noexcept nogil
    cdef void released(self) noexcept nogil
    cdef void take(self, Py_ssize_t node, const int64_t *request, int low, int high) noexcept nogil
    cdef void give(self, Py_ssize_t node, const int64_t *request, int low, int high) noexcept nogil
    cdef void touch(self, Py_ssize_t node, int low, int high) noexcept nogil
    cdef int last_row(self, const Binding *binding) noexcept nogil
    cdef void recount(self, Py_ssize_t node) noexcept nogil
    cdef void link(self, int32_t handle) noexcept nogil
    cdef void relink(self, int32_t handle) noexcept nogil
    cdef void unlink(self, int32_t handle) noexcept nogil
    cdef int tally(self, int32_t shape, Py_ssize_t node, int by) except -1 nogil
    cdef int reserve_log(self) except -1 nogil
    cdef int reserve_bind(self, int32_t shape, int64_t priority, bint preemptible,
                          uint16_t pool) except -1 nogil
    cdef void record(self, Step step, int32_t handle) noexcept nogil
    cdef int lay_out(self, int row_space) except -1 nogil
    cdef void forget_orders(self) noexcept nogil
    cdef int allot_handles(self, Py_ssize_t wanted) except -1
    cdef int allot_shapes(self, Py_ssize_t wanted) except -1
    cdef int32_t new_shape(self, Requirements requirements) except -1
    cdef int32_t use_scope(self, object name) except -1
    cdef int keep_scopes(self) except -1
    cdef int nodes_changed(self) except -1  # other nodes, or of other kinds
    cdef int check_amounts(self, ResourceVector amounts) except -1
    cdef int compact(self) except -1
    cdef int copy_ledger(self, NodeLedger copy) except -1

    cdef inline int64_t *cells(self, Py_ssize_t node, int row) noexcept nogil:
        """What *node* has left at *row*."""
        return self.room + node * self.pitch + row * self.columns

    cdef inline const int64_t *request_of(self, int32_t shape) noexcept nogil:
        return self.requests + shape * self.columns
