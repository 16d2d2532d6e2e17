# cython: language_level=3
from pyresched._core.indexbase cimport Index, IndexReader
from pyresched._core.ordered cimport Tree, Trees


cdef class OrderedIndex(Index):
    cdef Trees trees
    cdef Tree published
    cdef readonly int width


cdef class OrderedReader(IndexReader):
    cdef OrderedIndex index
    cdef Tree tree


cdef class OrderedSnapshot(OrderedReader):
    pass


cdef class OrderedTxn(OrderedReader):
    pass
