# cython: language_level=3
from libc.stdint cimport int64_t


cdef class ResourceVector:
    cdef Py_ssize_t width
    cdef int64_t *amounts  # owned, `width` long, never changed after construction
    cdef int _same_width(self, ResourceVector other) except -1


cdef ResourceVector vector_of(const int64_t *amounts, Py_ssize_t width)
cdef int64_t saturating_add(int64_t a, int64_t b) noexcept nogil
cdef int64_t saturating_sub(int64_t a, int64_t b) noexcept nogil
cdef int64_t saturating_mul(int64_t a, int64_t b) noexcept nogil
