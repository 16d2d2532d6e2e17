# cython: language_level=3
# The inner loop of a round.
from libc.stdint cimport int32_t

from pyresched._core.roundjobs cimport Team
from pyresched._core.roundseats cimport RoundSeats


cdef class RoundWalk(RoundSeats):
    cdef int32_t *again          # units that lost their nodes, by lane
    cdef int32_t *again_before   # the queued entry before which each goes
    cdef Py_ssize_t again_count
    cdef Py_ssize_t again_space

    cdef int start_again(self) except -1
    cdef int one_pass(self) except -1
    cdef int walk(self) except -1 nogil
    cdef void count_turn(self, int32_t at) noexcept nogil
    cdef bint is_last_word(self, Py_ssize_t place) noexcept nogil
    cdef bint anyone_waits(self) noexcept nogil
    cdef bint needs_another(self) noexcept nogil
    cdef bint pull(self, Py_ssize_t number) except -1 nogil
    cdef int32_t next_queued(self, Py_ssize_t number) except -2 nogil
    cdef int refresh(self) except -1 nogil
    cdef bint is_remembered(self, int32_t at) noexcept nogil
    cdef int32_t hopeless_member(self, const Team *team) noexcept nogil
    cdef int attempt(self, Py_ssize_t number) except -1 nogil
    cdef int attempt_lone(self, int32_t at) except -1 nogil
    cdef int send_home(self) except -1
    cdef bint sits_better(self, int32_t at) noexcept nogil
