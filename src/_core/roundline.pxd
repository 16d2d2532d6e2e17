# cython: language_level=3
# Who gives way first: the line of the runs of a round, and the fewest of them that make room.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from pyresched._core.records cimport Record
from pyresched._core.roundjobs cimport Entry
from pyresched._core.roundturns cimport RoundTurns

# Why a run gave way, as `CAUSES` names it; in this order.
cdef enum Cause:
    BY_SHARE
    BY_URGENCY
    WITH_GANG
    AS_GUEST

# What sorts the units of a lane as they come back.
cdef struct UnitKey:
    int64_t priority
    int64_t leased_at
    const Record *record
    int32_t unit

# A unit that a walk of the line passed, and the one before it on the same node.
cdef struct Link:
    int32_t unit
    int32_t before

# A unit that gave way in the attempt that is open, as it was.
cdef struct Gone:
    int32_t unit
    int32_t node          # that was cleared
    int32_t for_entry
    int32_t for_before    # to which, and when, it gave way the time before
    int32_t fell_before
    uint8_t standing
    uint8_t cause


cdef class RoundLine(RoundTurns):
    cdef int32_t *waiting        # units of each lane in the order in which they come back
    cdef int32_t *line           # units by rank
    cdef int32_t line_length
    cdef int32_t unit_space
    cdef Py_ssize_t waiting_count
    cdef int64_t lowest          # priority of a unit that may give way

    # One walk of the line.
    cdef int64_t *sums           # [node][column]: what those passed hold there
    cdef uint32_t *walk_of       # [node]: the walk that `sums` and `chains` are of
    cdef int32_t *chains         # [node]: the last link
    cdef uint32_t walks
    cdef Link *links
    cdef Py_ssize_t link_count
    cdef Py_ssize_t link_space
    cdef int64_t *scratch        # a vector or two

    # What the attempt that is open took.
    cdef int32_t falls
    cdef Gone *gone
    cdef Py_ssize_t gone_count
    cdef Py_ssize_t gone_space
    cdef int32_t *chosen         # units that would be taken
    cdef Py_ssize_t chosen_count
    cdef Py_ssize_t chosen_space

    # Nodes that the candidate would rather not use.
    cdef int32_t *avoid
    cdef uint8_t *ranks
    cdef Py_ssize_t avoided
    cdef Py_ssize_t avoid_space

    cdef bint is_over(self, Py_ssize_t number) noexcept nogil
    cdef int start_line(self) except -1
    cdef int rebind(self, int32_t at, int64_t priority, bint preemptible) except -1 nogil
    cdef int settle_bindings(self) except -1 nogil
    cdef bint whole_unit(self, int32_t at) noexcept nogil
    cdef Py_ssize_t collect(self) except -1
    cdef int32_t group_of(self, const Entry *entry) noexcept nogil
    cdef Py_ssize_t count_units(self, int32_t *ends) noexcept nogil
    cdef void sort_units(self, UnitKey *keys, int32_t *ends) noexcept nogil
    cdef int rank_units(self, Py_ssize_t count) except -1 nogil
    cdef int32_t may_give_way(self, int32_t at) noexcept nogil
    cdef int64_t unit_priority(self, int32_t unit) noexcept nogil
    cdef bint enough(self, Py_ssize_t node, int32_t shape) noexcept nogil
    cdef int node_rank(self, Py_ssize_t node) noexcept nogil
    cdef bint above_share(self, int32_t unit, Py_ssize_t node) noexcept nogil
    cdef int pass_unit(self, int32_t unit, Py_ssize_t node) except -1 nogil
    cdef int64_t *sum_of(self, Py_ssize_t node) noexcept nogil
    cdef Py_ssize_t walk_line(self, int32_t shape, int64_t priority, int rank,
                              const uint8_t *allowed) except -2 nogil
    cdef Py_ssize_t clear_by_share(self, int32_t shape, int64_t priority,
                                   const uint8_t *allowed) except -2 nogil
    cdef Py_ssize_t clear_by_urgency(self, int32_t shape, int64_t priority, const int32_t *only,
                                     Py_ssize_t given) except -2 nogil
    cdef int choose(self, int32_t unit) except -1 nogil
    cdef int spare(self, Py_ssize_t node, int32_t shape) except -1 nogil
    cdef void add_held(self, int32_t unit, Py_ssize_t node, int by) noexcept nogil
    cdef int take(self, int32_t unit, int32_t for_entry, Py_ssize_t node,
                  uint8_t cause) except -1 nogil
    cdef void count_run(self, int32_t at, int by, bint counts_for_turn) noexcept nogil
    cdef void take_back(self, Py_ssize_t down_to) noexcept nogil
