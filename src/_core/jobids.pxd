# cython: language_level=3
# Jobs of one version, whose ids are made when read.

from libc.stdint cimport uint32_t

from pyresched._core.jobreader cimport Reader
from pyresched._core.records cimport Record


cdef class JobIds:
    cdef Reader reader               # a snapshot, by which the records stay
    cdef const Record **records
    cdef uint32_t *slots             # where they are, or NULL
    cdef Py_ssize_t count


# The ids of *records* of *reader*: a JobIds of a snapshot, else (a transaction lets records go when
# it changes) a list. *records* are copied, and so are *slots*, or NULL.
cdef object ids_of(object reader, const Record **records, const uint32_t *slots, Py_ssize_t count)
