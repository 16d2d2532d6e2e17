# cython: language_level=3
# Where jobs and gangs go in a round.
from libc.stdint cimport int32_t, int64_t, uint8_t

from pyresched._core.roundjobs cimport Team
from pyresched._core.roundlimits cimport RoundLimits

# How room was found, as placements name it; in this order.
cdef enum Method:
    FREE
    SHARE
    URGENT
    AWAY

# A unit that took room so often and lost it again in one round takes none any more.
cdef enum:
    MOST_FLIPS = 4

# Where one member of a gang goes.
cdef struct Seat:
    int64_t priority
    int32_t at
    int32_t node
    int32_t shape
    uint8_t preemptible
    uint8_t method


cdef class RoundSeats(RoundLimits):
    cdef readonly int passes
    cdef object avoid_of
    cdef object values_of
    # What a round may do at all.
    cdef bint may_take_share
    cdef bint may_take_urgent
    cdef bint may_away
    cdef bint may_gang_away

    cdef int32_t *decided        # entries in the order of their decisions
    cdef Py_ssize_t decided_count
    cdef Py_ssize_t decided_space
    cdef int32_t *failed_in      # [signature]: the pass in which it found no room
    cdef int32_t *fail_reason
    cdef int32_t *value_nodes    # nodes by value of a label, all labels one after the other
    cdef int32_t *value_at       # where each value begins, one more at the end
    cdef int32_t *label_at       # the first value of each label, likewise
    cdef uint8_t *allowed        # [node]
    cdef Seat *seats             # of the try that is under way, and of the best
    cdef Seat *best_seats
    cdef int32_t *best_gone
    cdef uint8_t *best_causes
    cdef int32_t *best_cleared
    cdef int32_t *best_for
    cdef Py_ssize_t best_gone_count
    cdef Py_ssize_t best_gone_space
    cdef int32_t gang_reason
    cdef Py_ssize_t most_members

    # What a pass did.
    cdef bint took
    cdef bint settled
    cdef bint went_home
    cdef bint went_away
    cdef bint barred             # nobody gives way any more to the unit whose turn it is
    cdef bint lacked_room
    cdef bint reordered          # what it placed comes back in another order than it was placed
    cdef bint began_with_units   # the round found runs that may give way
    cdef int64_t turns

    cdef int get_ready(self) except -1
    cdef int load_values(self) except -1
    cdef int refuse(self, int32_t at, int32_t reason) noexcept nogil
    cdef int attempt_gang(self, int32_t at) except -1 nogil
    cdef void mark_room(self, int32_t at) noexcept nogil
    cdef void mark_unit(self, int32_t unit, bint took) noexcept nogil
    cdef bint find_seat(self, int32_t at, int32_t value, Seat *seat, bint gang) except -1 nogil
    cdef bint try_shape(self, int32_t at, int32_t shape, int64_t priority, int32_t value,
                        Seat *seat) except -1 nogil
    cdef int bind(self, const Seat *seat) except -1 nogil
    cdef int settle(self, const Seat *seat) except -1 nogil
    cdef int note(self, int32_t at) except -1 nogil
    cdef int lose(self, int32_t unit, int32_t for_entry, Py_ssize_t node,
                  uint8_t cause) except -1 nogil
    cdef void regain(self, Py_ssize_t down_to) noexcept nogil
    cdef Py_ssize_t try_value(self, const Team *team, int32_t value, int64_t *cost) except -2 nogil
    cdef int keep_best(self, const Team *team, Py_ssize_t gone_at) except -1 nogil
    cdef bint seat_best(self, const Team *team) except -1 nogil
    cdef bint return_home(self, int32_t at, bint asked=*) except -1 nogil
    cdef int load_avoid(self, int32_t at) except -1 nogil
    cdef int ask_avoid(self, Py_ssize_t first, Py_ssize_t end, int32_t at) except -1
    cdef bint is_hopeless(self, int32_t index) noexcept nogil
    cdef bint could_hold(self, int32_t index) noexcept nogil
    cdef int32_t why_not(self, int32_t shape, const int32_t *only, Py_ssize_t given) except -1 nogil
    cdef int nearest(self, int32_t shape, int row, bint open_only, const int32_t *only,
                     Py_ssize_t given, int32_t *resource, int64_t *had) except -2 nogil
