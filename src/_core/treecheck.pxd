# cython: language_level=3
# What a tree needs and whether it is in good shape, found by visiting every node.
from pyresched._core.ordered cimport Item, Tree, Trees
from pyresched._core.versions cimport Meter

# Add the nodes of this version to *meter*.
cdef void tree_measure(const Trees *trees, const Tree *tree, Meter *meter) noexcept nogil
# Every breach of the shape as a sentence: order, fill, height, separators, count.
cdef list tree_breaches(const Trees *trees, const Tree *tree)
# Put another item in the place of the first, whatever its order: for tests of the checker only.
cdef void tree_spoil(const Trees *trees, const Tree *tree, const Item *item) noexcept nogil
