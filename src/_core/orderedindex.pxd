# cython: language_level=3
from pyresched._core.ordered cimport Tree, Trees
from pyresched._core.versions cimport Edit, History, Pin


cdef class OrderedIndex:
    cdef History history
    cdef Trees trees
    cdef Tree published
    cdef Edit single       # the edit of `add`, `remove` and `pop_first`, begun again and again
    cdef readonly int width


cdef class OrderedReader:
    cdef OrderedIndex index
    cdef Tree tree
    cdef bint closed
    cdef int _check(self) except -1


cdef class OrderedSnapshot(OrderedReader):
    cdef Pin *pin


cdef class OrderedTxn(OrderedReader):
    cdef Edit edit
