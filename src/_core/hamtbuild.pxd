# cython: language_level=3
# A hash map made at once of many ids, for bulk loads.
from libc.stdint cimport uint32_t

from pyresched._core.hamt cimport Hamt, Maps
from pyresched._core.ids cimport Key
from pyresched._core.versions cimport EditLog

# A key that is to be in a map: its hash with the bits reversed, so that cells in ascending order
# are in the order of the leaves, and its number.
cdef struct Cell:
    uint32_t reversed
    uint32_t number

# Cells of *keys*, below 2**32 of them, in ascending order, to be freed; *twice*: there is some id
# twice. Raises MemoryError.
cdef Cell *sorted_cells(const Key *keys, size_t count, bint *twice) except NULL nogil
# Fill an empty map with these cells: the key of each holds the slot `slots[number]`, and no id is
# there twice. Raises MemoryError, and the map is empty.
cdef int hamt_build(Maps *maps, Hamt *map_, EditLog *log, const Cell *cells, size_t count,
                    const uint32_t *slots) except -1
