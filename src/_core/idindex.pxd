# cython: language_level=3
from pyresched._core.hamt cimport Hamt, Maps
from pyresched._core.ids cimport IdColumn
from pyresched._core.versions cimport Edit, History, Pin


cdef class IdIndex:
    cdef History history
    cdef IdColumn ids
    cdef Maps maps
    cdef Hamt published
    cdef Edit single  # the edit of `set` and `delete`, begun again and again


cdef class IdReader:
    cdef IdIndex index
    cdef Hamt map
    cdef bint closed
    cdef int _check(self) except -1


cdef class IdSnapshot(IdReader):
    cdef Pin *pin


cdef class IdTxn(IdReader):
    cdef Edit edit
