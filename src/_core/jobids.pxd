# cython: language_level=3
# Jobs of one version, whose ids are made when read.

from libc.stdint cimport uint32_t

from pyresched._core.jobreader cimport Reader
from pyresched._core.records cimport Record


cdef class JobIds:
    cdef Reader reader               # a snapshot, by which the records stay; None: each is held
    cdef const Record **records
    cdef uint32_t *slots             # where they are, or NULL
    cdef Py_ssize_t count


# The ids of *records*, which are copied, and so are *slots*, or NULL, if *reader* is a snapshot.
cdef JobIds ids_of(object reader, const Record **records, const uint32_t *slots, Py_ssize_t count)
