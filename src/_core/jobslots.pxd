# cython: language_level=3
# Jobs of one version by their slots, whose ids are made when read.
from libc.stdint cimport uint32_t

from pyresched._core.jobreader cimport Reader


cdef class SlotIds:
    cdef Reader reader         # a snapshot, so that what is at a slot stays
    cdef uint32_t *slots
    cdef Py_ssize_t count


# The ids of the jobs at *slots*, each of which has one in *reader*: a SlotIds of a snapshot, else
# (what a transaction has at a slot changes) a list. *slots* are copied.
cdef object ids_at(Reader reader, const uint32_t *slots, Py_ssize_t count)
