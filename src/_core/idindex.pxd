# cython: language_level=3
from pyresched._core.hamt cimport Hamt, Maps
from pyresched._core.ids cimport IdColumn
from pyresched._core.versions cimport Edit, History, Pin


cdef class IdIndex:
    cdef History history
    cdef IdColumn ids
    cdef Maps maps
    cdef Hamt published
    cdef Edit single       # of what is a version of its own
    cdef Edit spare        # for the next transaction, or None


cdef class IdReader:
    cdef IdIndex index
    cdef Hamt map
    cdef const int *state  # EDIT_OPEN there: it may be used
    cdef int _check(self) except -1


cdef class IdSnapshot(IdReader):
    cdef Pin *pin


cdef class IdTxn(IdReader):
    cdef Edit edit
