# cython: language_level=3
# The fewest of some amounts that cover a need.
from libc.stdint cimport int32_t, int64_t

cdef enum:
    MOST_AMOUNTS = 65  # as many resources as a table may have, and places for jobs


# Cut *chosen*, places in *amounts* ([place][width], ascending), which hold all *given* at first, to
# the fewest that cover *need*; among equally few, the latest. Returns how many. Raises MemoryError.
cdef Py_ssize_t fewest(const int64_t *amounts, Py_ssize_t given, Py_ssize_t width,
                       const int64_t *need, int32_t *chosen) except -1
