# cython: language_level=3
# Open nodes in best-fit order at one level, in leaves with a maximum for each amount.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

cdef enum:
    LANES = 64


cdef struct Branch

# Nodes side by side, ascending: lanes past `count` hold INT64_MIN, which never has room.
cdef struct Leaf:
    int32_t count
    int32_t place           # in its branch
    Branch *branch
    int32_t nodes[64]
    int64_t values[1]       # [width][LANES]

# Leaves side by side, ascending, none of them empty.
cdef struct Branch:
    int32_t count
    int32_t place           # in the order
    Leaf *leaves[64]
    uint64_t kinds[64]      # of the nodes of each leaf
    int64_t first[64]       # the first amount of the first node of each leaf
    int64_t maxima[1]       # [width][LANES]

cdef struct Order:
    Py_ssize_t width        # amounts that must suffice
    Py_ssize_t key_width    # of them, the first so many say the order; then the node
    Py_ssize_t nodes
    Py_ssize_t pitch        # from a node's amounts to those of the next
    const uint8_t *open     # bit 0: the node is here
    const uint8_t *kind     # 0 to 63, of each node
    Leaf **where            # of each node, or NULL
    uint8_t *stale          # 1: listed in `changed`
    int32_t *changed
    Py_ssize_t changes
    Branch **branches
    Py_ssize_t branch_count
    Py_ssize_t branch_space
    int64_t *maxima         # [branch / LANES][width][LANES]
    bint built


# An order of nothing yet. Raises MemoryError.
cdef Order *order_new(Py_ssize_t width, Py_ssize_t key_width, Py_ssize_t nodes, Py_ssize_t pitch,
                      const uint8_t *open, const uint8_t *kind) except NULL nogil
cdef void order_free(Order *order) noexcept nogil

# Bring the order up to date with *cells*, the amounts of node 0. Raises MemoryError.
cdef int order_refresh(Order *order, const int64_t *cells) except -1 nogil

# The first node that has *wanted*, is of one of *kinds* and has *tier* in *mask*; -1: none.
cdef Py_ssize_t order_first(const Order *order, const int64_t *wanted, uint64_t kinds,
                            const uint8_t *mask, uint8_t tier) noexcept nogil

# The number of the first breach of what an order keeps, or 0.
cdef int order_fault(const Order *order, const int64_t *cells) noexcept nogil

cdef inline void order_touch(Order *order, Py_ssize_t node) noexcept nogil:
    """The amounts of *node* changed, or whether it is open."""
    if not order.stale[node]:
        order.stale[node] = 1
        order.changed[order.changes] = <int32_t> node
        order.changes += 1
