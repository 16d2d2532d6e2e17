# cython: language_level=3
# Copy-on-write B+trees of items: one to three words and a value. See docs/hamt.md.
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

from pyresched._core.treenode cimport Compare, Form, Item
from pyresched._core.versions cimport EditLog, Meter

cdef enum:
    MAX_LEVELS = 32

# What all versions of many trees share.
cdef struct Trees:
    Meter meter
    Form form

# One version of one tree: copy the struct to keep it. {NULL, 0} is the empty tree.
cdef struct Tree:
    void *root
    uint64_t count

# A place between items. Good as long as the version it came from.
cdef struct Cursor:
    const Trees *trees
    uint32_t levels                    # nodes on the path; 0: at the end
    void *node[MAX_LEVELS]             # the root first, the leaf last
    uint16_t place[MAX_LEVELS]         # child or item at which the path goes on

# *value_bytes* 4: values are from 0 to 2**32 - 1 (what is sought may have another).
cdef void trees_init(Trees *trees, Compare compare, const void *context, uint32_t words,
                     uint32_t value_bytes) noexcept nogil
# 1 added; 0: it was there (nothing changed, its value neither). Raises MemoryError.
cdef int tree_add(Trees *trees, Tree *tree, EditLog *log, const Item *item) except -1 nogil
# 1: it is new; 0: its value stands in the place of the old one now.
cdef int tree_put(Trees *trees, Tree *tree, EditLog *log, const Item *item) except -1 nogil
# 1 removed (what was there is in *removed*, which may be NULL), 0 absent. Raises MemoryError.
cdef int tree_remove(Trees *trees, Tree *tree, EditLog *log, const Item *item,
                     Item *removed) except -1 nogil
# 1 removed the first item, which is in *removed*; 0: there is none. Raises MemoryError.
cdef int tree_pop(Trees *trees, Tree *tree, EditLog *log, Item *removed) except -1 nogil
# Fill an empty tree with *count* items in ascending order, no two the same: leaves are full.
# Raises MemoryError, and the tree is empty.
cdef int tree_build(Trees *trees, Tree *tree, EditLog *log, const Item *items,
                    size_t count) except -1 nogil
# Take out *gone*, which are there, and put in *new_*, which are not; both ascend. Every node is
# written anew: for changes to a good part of a tree. Raises MemoryError, and nothing has changed.
cdef int tree_rebuild(Trees *trees, Tree *tree, EditLog *log, const Item *gone, size_t gone_count,
                      const Item *new_, size_t new_count) except -1
# Whether *items* ascend, no two the same, so that a tree may be built of them.
cdef bint items_ascend(const Trees *trees, const Item *items, size_t count) noexcept nogil
# Whether there is such an item; if so, *found* is it as it stands in the tree.
cdef bint tree_find(const Trees *trees, const Tree *tree, const Item *item,
                    Item *found) noexcept nogil
# The first item, the last; False: there is none.
cdef bint tree_first(const Trees *trees, const Tree *tree, Item *item) noexcept nogil
cdef bint tree_last(const Trees *trees, const Tree *tree, Item *item) noexcept nogil
# To the first item, or to the first that is not below *item*.
cdef void cursor_first(Cursor *cursor, const Trees *trees, const Tree *tree) noexcept nogil
cdef void cursor_seek(Cursor *cursor, const Trees *trees, const Tree *tree,
                      const Item *item) noexcept nogil
# The item at the cursor, which moves on; False: the cursor is at the end.
cdef bint cursor_next(Cursor *cursor, Item *item) noexcept nogil
# The values alone of up to *room* items, where values are slots, a leaf at a time; how many.
cdef uint32_t cursor_slots(Cursor *cursor, uint32_t *slots, uint32_t room) noexcept nogil

# Called for each difference in order: old NULL: added; new NULL: removed; both: another value.
ctypedef int (*ItemVisitor)(void *context, const Item *old, const Item *new) except -1
cdef int tree_diff(const Trees *trees, const Tree *old, const Tree *new, ItemVisitor visit,
                   void *context) except -1
# Give back every node of this version; its owner ends and nobody reads another.
cdef void tree_free(Trees *trees, Tree *tree) noexcept nogil
