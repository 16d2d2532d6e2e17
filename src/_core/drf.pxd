# cython: language_level=3
from libc.stdint cimport int64_t


cdef class DominantResourceFairness:
    cdef readonly Py_ssize_t width
    cdef double *total
    cdef double *multiplier
    cdef double cost(self, const int64_t *allocation) noexcept nogil
    cdef int _check(self, Py_ssize_t width) except -1
    cdef list _vectors(self, object allocations, object weights)
    cdef object _rows(self, object allocations, object weights)
    cdef void _costs(
        self, const int64_t *rows, const double *weights, double *costs, Py_ssize_t count
    ) noexcept nogil
