# cython: language_level=3
from pyresched._core.ordered cimport Tree, Trees
from pyresched._core.versions cimport Edit, History, Pin


cdef class OrderedIndex:
    cdef History history
    cdef Trees trees
    cdef Tree published
    cdef Edit single       # of what is a version of its own
    cdef Edit spare        # for the next transaction, or None
    cdef readonly int width


cdef class OrderedReader:
    cdef OrderedIndex index
    cdef Tree tree
    cdef const int *state  # EDIT_OPEN there: it may be used
    cdef int _check(self) except -1


cdef class OrderedSnapshot(OrderedReader):
    cdef Pin *pin


cdef class OrderedTxn(OrderedReader):
    cdef Edit edit
