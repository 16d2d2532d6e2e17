# cython: language_level=3
from pyresched._core.hamt cimport Hamt, Maps
from pyresched._core.ids cimport IdColumn
from pyresched._core.indexbase cimport Index, IndexReader


cdef class IdIndex(Index):
    cdef IdColumn ids
    cdef Maps maps
    cdef Hamt published


cdef class IdReader(IndexReader):
    cdef IdIndex index
    cdef Hamt map


cdef class IdSnapshot(IdReader):
    pass


cdef class IdTxn(IdReader):
    pass
