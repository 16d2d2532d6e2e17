# cython: language_level=3
# Copy-on-write B+trees of items {k0, k1, k2, value}. See docs/hamt.md.
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

from pyresched._core.versions cimport EditLog, Meter

cdef enum:
    LEAF_ITEMS = 32
    INNER_WAYS = 32
    MAX_LEVELS = 32

# Ordered by (k0, k1, k2), then by the comparator hook on `value`; without a hook, items with
# equal keys are the same item.
cdef struct Item:
    int64_t k0
    int64_t k1
    int64_t k2
    int64_t value

ctypedef int (*Compare)(const void *context, int64_t a, int64_t b) noexcept nogil

# What all versions of many trees share.
cdef struct Trees:
    Meter meter
    Compare compare        # NULL: none
    const void *context
    uint32_t leaf_items    # at most LEAF_ITEMS and INNER_WAYS; tests take less, for tall trees
    uint32_t inner_ways

# One version of one tree: copy the struct to keep it. {NULL, 0} is the empty tree.
cdef struct Tree:
    void *root
    uint64_t count

# A place between items. Good as long as the version it came from.
cdef struct Cursor:
    uint32_t levels                    # nodes on the path; 0: at the end
    void *node[MAX_LEVELS]             # the root first, the leaf last
    uint16_t place[MAX_LEVELS]         # child or item at which the path goes on

cdef void trees_init(Trees *trees, Compare compare, const void *context) noexcept nogil
# 1 added; 0: it was there (nothing changed, its value neither). Raises MemoryError.
cdef int tree_add(Trees *trees, Tree *tree, EditLog *log, const Item *item) except -1 nogil
# 1: the item stands under the key now; its old value, if any, is in *before* (0: it is new).
cdef int tree_put(Trees *trees, Tree *tree, EditLog *log, const Item *item,
                  Item *before) except -1 nogil
# 1 removed (what was there is in *removed*, which may be NULL), 0 absent. Raises MemoryError.
cdef int tree_remove(Trees *trees, Tree *tree, EditLog *log, const Item *item,
                     Item *removed) except -1 nogil
# The item as it stands in the tree, or NULL.
cdef const Item *tree_find(const Trees *trees, const Tree *tree, const Item *item) noexcept nogil
# The first item, or NULL when empty.
cdef const Item *tree_first(const Tree *tree) noexcept nogil
cdef const Item *tree_last(const Tree *tree) noexcept nogil
# To the first item, or to the first that is not below *item*.
cdef void cursor_first(Cursor *cursor, const Tree *tree) noexcept nogil
cdef void cursor_seek(Cursor *cursor, const Trees *trees, const Tree *tree,
                      const Item *item) noexcept nogil
# The item at the cursor, which moves on; NULL at the end.
cdef const Item *cursor_next(Cursor *cursor) noexcept nogil

# Called for each difference in order: old NULL: added; new NULL: removed; both: another value.
ctypedef int (*ItemVisitor)(void *context, const Item *old, const Item *new) except -1
cdef int tree_diff(const Trees *trees, const Tree *old, const Tree *new, ItemVisitor visit,
                   void *context) except -1
# Give back every node of this version; its owner ends and nobody reads another.
cdef void tree_free(Trees *trees, Tree *tree) noexcept nogil
# Add the nodes of this version to *meter*.
cdef void tree_measure(const Tree *tree, Meter *meter) noexcept nogil
# Every breach of the shape as a sentence: order, fill, height, separators, count.
cdef list tree_breaches(const Trees *trees, const Tree *tree)
