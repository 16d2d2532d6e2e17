# cython: language_level=3
# What a hash map needs and whether it is in good shape, found by visiting every node.
from pyresched._core.hamt cimport Hamt, Maps
from pyresched._core.versions cimport Meter

# Add the nodes of this version to *meter*.
cdef void hamt_measure(const Hamt *map_, Meter *meter) noexcept nogil
# Every breach of the shape as a sentence: bucket placement, counts, sizes.
cdef list hamt_breaches(const Maps *maps, const Hamt *map_)
