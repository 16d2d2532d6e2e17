# cython: language_level=3
# What policies say of many failed runs at once.
from libc.stdint cimport int8_t, int64_t, uint32_t

from pyresched._core.records cimport TrackerPart

# A policy as it is calculated with; no policy is one of its own.
cdef struct Rule:
    int64_t attempts
    int64_t interval
    int64_t delay
    int64_t max_delay
    int8_t function        # see the enum in retries.pyx
    int8_t enabled
    int8_t is_none

# What is said of one run.
cdef struct Answer:
    int64_t at
    int64_t delay
    int64_t attempted
    int8_t reason

# Where the columns of answers are.
cdef struct Answers:
    int64_t *at
    int64_t *delay
    int64_t *attempted
    int64_t *attempts
    int8_t *reason
    int8_t *eligible


# Policies by identity, each read once: a table of open places and borrowed pointers.
cdef class Rules:
    cdef Rule *rules
    cdef uint32_t count
    cdef uint32_t room
    cdef void **keys       # the policies; NULL: an open place
    cdef uint32_t *places  # where each one's rule is
    cdef size_t mask
    cdef void *last
    cdef uint32_t last_place
    cdef uint32_t of(self, object policy, Py_ssize_t row) except? 4294967295
    cdef int add(self, object policy, Py_ssize_t row) except -1
    cdef int widen(self) except -1
    cdef size_t place(self, void *policy) noexcept
    cdef void put(self, void *policy, uint32_t place) noexcept


cdef void answer(const Rule *rule, const TrackerPart *tracker, int64_t failed_at,
                 Answer *out) noexcept nogil
