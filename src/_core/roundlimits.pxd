# cython: language_level=3
# What new jobs may get in one round.
from libc.stdint cimport int32_t, int64_t, uint8_t

from pyresched._core.roundjobs cimport Entry, Lane
from pyresched._core.roundline cimport RoundLine


cdef class RoundLimits(RoundLine):
    # Infinite, 0 or NULL where there is none.
    cdef double tokens
    cdef double burst
    cdef double preemption_tokens
    cdef int64_t *most           # [width]
    cdef int64_t *floating       # [width]
    cdef uint8_t *floats         # [width]
    cdef int64_t tries_left
    cdef int64_t queue_tries
    cdef double *lane_tokens
    cdef double *lane_bursts
    cdef int64_t *class_limits   # [lane][class][width]
    cdef int32_t *class_reasons  # [lane][class]
    cdef int64_t *new_amounts    # [width]
    cdef int64_t new_jobs
    cdef int64_t displaced       # runs that gave way for the sake of shares, over all passes
    cdef int64_t tries
    cdef bint ended              # a limit: no new jobs at all
    cdef int32_t end_reason

    cdef int32_t limit(self, Py_ssize_t number, int32_t at) except -2 nogil
    cdef int32_t end_round(self, int code, int32_t resource, int64_t wanted,
                           int64_t had) except -2 nogil
    cdef int32_t end_lane(self, Lane *lane, int code, int64_t wanted, int64_t had) except -2 nogil
    cdef void count_new(self, const Entry *entry, int by) noexcept nogil
