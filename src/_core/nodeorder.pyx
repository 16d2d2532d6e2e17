# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Best-fit order: the open nodes of a pool at one level, ascending by what they have left.

Owns leaves and branches; relies on whoever owns the amounts to say which nodes changed. Keeps
INV-B11: leaves hold exactly the open nodes, sorted, and each maximum is one.

    order      branches in sequence, and of each the most that any node there has
      branch   up to 64 leaves, likewise
        leaf   up to 64 nodes, one column for each resource

A search asks 64 maxima at a time and goes down only where each resource might suffice, so that
it reads three blocks when the first node in sight will do. A changed node is only noted, and put
in its new place when somebody searches: what is bound and taken back again costs nothing here.
"""

from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove, memset

from pyresched._core.versions cimport (
    tried_calloc as calloc,
    tried_malloc as malloc,
    tried_realloc as realloc,
)

cdef extern from "nodescan.h" nogil:
    ctypedef uint64_t (*nodescan_fn)(
        const int64_t *columns, Py_ssize_t width, const int64_t *wanted) noexcept nogil
    uint64_t nodescan_portable(
        const int64_t *columns, Py_ssize_t width, const int64_t *wanted) noexcept nogil
    nodescan_fn nodescan_fastest() noexcept nogil
    int nodescan_lowest(uint64_t bits) noexcept nogil
    ctypedef int64_t (*nodemost_fn)(const int64_t *column) noexcept nogil
    int64_t nodemost_portable(const int64_t *column) noexcept nogil
    nodemost_fn nodemost_fastest() noexcept nogil

cdef nodescan_fn scan = nodescan_fastest()
cdef nodemost_fn most = nodemost_fastest()  # of a column

cdef enum:
    FILLED = 48  # lanes that a new leaf or branch uses: most nodes move down, not up
    THIN = 12  # lanes below which one looks for a neighbour to join


cdef struct Sorted:
    int64_t first
    int32_t node


def use_portable_scan(bint portable):
    """Search with the portable kernel or the fastest; for tests. Returns whether they differ."""
    global scan, most
    scan = nodescan_portable if portable else nodescan_fastest()
    most = nodemost_portable if portable else nodemost_fastest()
    return nodescan_fastest() != nodescan_portable


# --- comparing ------------------------------------------------------------------------------

cdef inline int against(const Order *order, const int64_t *amounts, Py_ssize_t node,
                        const Leaf *leaf, Py_ssize_t lane) noexcept nogil:
    """Below, at or above zero: whether *node* comes before the one in *lane* of *leaf*."""
    cdef Py_ssize_t r
    cdef const int64_t *there = leaf.values + lane
    for r in range(order.key_width):
        if amounts[r] != there[0]:
            return -1 if amounts[r] < there[0] else 1
        there += LANES
    return -1 if node < leaf.nodes[lane] else node > leaf.nodes[lane]


cdef inline bint precedes(const Order *order, const int64_t *cells, const Sorted *one,
                          const Sorted *other) noexcept nogil:
    cdef const int64_t *a
    cdef const int64_t *b
    cdef Py_ssize_t r
    if one.first != other.first:
        return one.first < other.first
    a = cells + one.node * order.pitch
    b = cells + other.node * order.pitch
    for r in range(1, order.key_width):
        if a[r] != b[r]:
            return a[r] < b[r]
    return one.node < other.node


# --- maxima ---------------------------------------------------------------------------------

cdef inline int64_t *top(const Order *order, const Branch *branch, Py_ssize_t r) noexcept nogil:
    """Where the order keeps the most of amount *r* that *branch* has."""
    return order.maxima + (
        (branch.place // LANES * order.width + r) * LANES + branch.place % LANES)


cdef inline void raise_to(const Order *order, const Leaf *leaf, Py_ssize_t r,
                          int64_t amount) noexcept nogil:
    """A node of *leaf* has *amount*."""
    cdef Branch *branch = leaf.branch
    cdef int64_t *cell = branch.maxima + r * LANES + leaf.place
    if amount > cell[0]:
        cell[0] = amount
        cell = top(order, branch, r)
        if amount > cell[0]:
            cell[0] = amount


cdef inline void lower_from(const Order *order, const Leaf *leaf, Py_ssize_t r,
                            int64_t amount) noexcept nogil:
    """A node of *leaf* has *amount* no longer."""
    cdef Branch *branch = leaf.branch
    cdef int64_t *cell = branch.maxima + r * LANES + leaf.place
    if amount == cell[0]:
        cell[0] = most(leaf.values + r * LANES)
        if cell[0] != amount:
            cell = top(order, branch, r)
            if amount == cell[0]:
                cell[0] = most(branch.maxima + r * LANES)


cdef void summarise(const Order *order, Leaf *leaf) noexcept nogil:
    """Work out anew what its branch says of *leaf*."""
    cdef Branch *branch = leaf.branch
    cdef Py_ssize_t i, r
    cdef uint64_t kinds = 0
    branch.first[leaf.place] = leaf.values[0]
    for i in range(leaf.count):
        kinds |= <uint64_t> 1 << order.kind[leaf.nodes[i]]
    branch.kinds[leaf.place] = kinds
    for r in range(order.width):
        branch.maxima[r * LANES + leaf.place] = most(leaf.values + r * LANES)


cdef void crown(const Order *order, const Branch *branch) noexcept nogil:
    """Work out anew what the order says of *branch*."""
    cdef Py_ssize_t r
    for r in range(order.width):
        top(order, branch, r)[0] = most(branch.maxima + r * LANES)


# --- leaves and branches --------------------------------------------------------------------

cdef void vacate(int64_t *columns, Py_ssize_t width, Py_ssize_t start) noexcept nogil:
    """Lanes from *start* on hold nothing."""
    cdef Py_ssize_t i, r
    for r in range(width):
        for i in range(start, LANES):
            columns[r * LANES + i] = INT64_MIN


cdef Leaf *new_leaf(const Order *order) noexcept nogil:
    cdef Leaf *leaf = <Leaf *> malloc(
        sizeof(Leaf) + order.width * LANES * sizeof(int64_t))
    if leaf != NULL:
        leaf.count = 0
        vacate(leaf.values, order.width, 0)
    return leaf


cdef Branch *new_branch(const Order *order) noexcept nogil:
    cdef Branch *branch = <Branch *> malloc(
        sizeof(Branch) + order.width * LANES * sizeof(int64_t))
    if branch != NULL:
        branch.count = 0
        vacate(branch.maxima, order.width, 0)
    return branch


cdef int reserve_branches(Order *order, Py_ssize_t wanted) except -1 nogil:
    cdef Py_ssize_t space
    cdef void *grown
    if wanted <= order.branch_space:
        return 0
    space = (max(wanted, 2 * order.branch_space) + LANES - 1) // LANES * LANES
    grown = realloc(order.branches, space * sizeof(Branch *))
    if grown != NULL:
        order.branches = <Branch **> grown
        grown = realloc(order.maxima, space * order.width * sizeof(int64_t))
    if grown == NULL:
        with gil:
            raise MemoryError
    order.maxima = <int64_t *> grown
    order.branch_space = space
    return 0


cdef void recrown_from(Order *order, Py_ssize_t start) noexcept nogil:
    """The branches from *start* on have new places."""
    cdef Py_ssize_t i, r, k
    for i in range(start, order.branch_count):
        order.branches[i].place = <int32_t> i
        if i % LANES == 0:
            vacate(order.maxima + i * order.width, order.width, 0)
        crown(order, order.branches[i])
    i = order.branch_count
    k = i // LANES * LANES
    if i % LANES:
        for r in range(order.width):
            order.maxima[(k // LANES * order.width + r) * LANES + i % LANES] = INT64_MIN


cdef void shift_leaves(const Order *order, Branch *branch, Py_ssize_t start,
                       int by) noexcept nogil:
    """Move the leaves from *start* on by one place; the caller fills or has emptied the gap."""
    cdef Py_ssize_t i, r, count = branch.count - start
    memmove(&branch.leaves[start + by], &branch.leaves[start], count * sizeof(Leaf *))
    memmove(&branch.kinds[start + by], &branch.kinds[start], count * sizeof(uint64_t))
    memmove(&branch.first[start + by], &branch.first[start], count * sizeof(int64_t))
    for r in range(order.width):
        memmove(branch.maxima + r * LANES + start + by, branch.maxima + r * LANES + start,
                count * sizeof(int64_t))
    branch.count += by
    for i in range(start + by, branch.count):
        branch.leaves[i].place = <int32_t> i


cdef int split_branch(Order *order, Branch *branch) except -1 nogil:
    """Give the upper half of a full *branch* to a new one behind it."""
    cdef Branch *upper
    cdef Py_ssize_t i, r, half = LANES // 2
    reserve_branches(order, order.branch_count + 1)
    upper = new_branch(order)
    if upper == NULL:
        with gil:
            raise MemoryError
    upper.count = LANES - half
    memcpy(upper.leaves, &branch.leaves[half], upper.count * sizeof(Leaf *))
    memcpy(upper.kinds, &branch.kinds[half], upper.count * sizeof(uint64_t))
    memcpy(upper.first, &branch.first[half], upper.count * sizeof(int64_t))
    for r in range(order.width):
        memcpy(upper.maxima + r * LANES, branch.maxima + r * LANES + half,
               upper.count * sizeof(int64_t))
    branch.count = <int32_t> half
    vacate(branch.maxima, order.width, half)
    for i in range(upper.count):
        upper.leaves[i].branch = upper
        upper.leaves[i].place = <int32_t> i
    i = branch.place
    memmove(&order.branches[i + 2], &order.branches[i + 1],
            (order.branch_count - i - 1) * sizeof(Branch *))
    order.branches[i + 1] = upper
    order.branch_count += 1
    recrown_from(order, i)
    return 0


cdef int split_leaf(Order *order, Leaf *leaf) except -1 nogil:
    """Give the upper half of a full *leaf* to a new one behind it."""
    cdef Leaf *upper
    cdef Branch *branch
    cdef Py_ssize_t i, r, half = LANES // 2
    if leaf.branch.count == LANES:
        split_branch(order, leaf.branch)
    upper = new_leaf(order)
    if upper == NULL:
        with gil:
            raise MemoryError
    branch = leaf.branch
    upper.count = LANES - half
    memcpy(upper.nodes, &leaf.nodes[half], upper.count * sizeof(int32_t))
    for r in range(order.width):
        memcpy(upper.values + r * LANES, leaf.values + r * LANES + half,
               upper.count * sizeof(int64_t))
    leaf.count = <int32_t> half
    vacate(leaf.values, order.width, half)
    for i in range(upper.count):
        order.where[upper.nodes[i]] = upper
    shift_leaves(order, branch, leaf.place + 1, 1)
    branch.leaves[leaf.place + 1] = upper
    upper.branch = branch
    upper.place = leaf.place + 1
    summarise(order, leaf)
    summarise(order, upper)
    return 0


cdef void drop_leaf(Order *order, Leaf *leaf) noexcept nogil:
    """Take out a *leaf* that holds nothing."""
    cdef Branch *branch = leaf.branch
    cdef Py_ssize_t i
    shift_leaves(order, branch, leaf.place + 1, -1)
    vacate(branch.maxima, order.width, branch.count)
    free(leaf)
    if branch.count:
        crown(order, branch)
        return
    i = branch.place
    order.branch_count -= 1
    memmove(&order.branches[i], &order.branches[i + 1],
            (order.branch_count - i) * sizeof(Branch *))
    free(branch)
    recrown_from(order, i)


cdef void join_leaves(Order *order, Leaf *leaf, Leaf *upper) noexcept nogil:
    """Move all of *upper*, the next in the branch, into *leaf*."""
    cdef Py_ssize_t i, r
    memcpy(&leaf.nodes[leaf.count], upper.nodes, upper.count * sizeof(int32_t))
    for r in range(order.width):
        memcpy(leaf.values + r * LANES + leaf.count, upper.values + r * LANES,
               upper.count * sizeof(int64_t))
    for i in range(upper.count):
        order.where[upper.nodes[i]] = leaf
    leaf.count += upper.count
    drop_leaf(order, upper)
    summarise(order, leaf)
    crown(order, leaf.branch)


# --- one node -------------------------------------------------------------------------------

cdef Leaf *leaf_for(const Order *order, const int64_t *amounts, Py_ssize_t node) noexcept nogil:
    """The leaf in whose stretch *node* lies; there is a leaf."""
    cdef Py_ssize_t low = 0, high = order.branch_count, middle
    cdef Branch *branch
    while high - low > 1:
        middle = (low + high) // 2
        branch = order.branches[middle]
        if amounts[0] > branch.first[0] or (
            amounts[0] == branch.first[0]
            and against(order, amounts, node, branch.leaves[0], 0) >= 0
        ):
            low = middle
        else:
            high = middle
    branch = order.branches[low]
    low = 0
    high = branch.count
    while high - low > 1:
        middle = (low + high) // 2
        if amounts[0] > branch.first[middle] or (
            amounts[0] == branch.first[middle]
            and against(order, amounts, node, branch.leaves[middle], 0) >= 0
        ):
            low = middle
        else:
            high = middle
    return branch.leaves[low]


cdef inline Py_ssize_t lane_for(const Order *order, const Leaf *leaf, const int64_t *amounts,
                                Py_ssize_t node) noexcept nogil:
    """How many of *leaf* come before *node*."""
    cdef Py_ssize_t low = 0, high = leaf.count, middle
    while low < high:
        middle = (low + high) // 2
        if against(order, amounts, node, leaf, middle) > 0:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline Py_ssize_t lane_of(const Leaf *leaf, Py_ssize_t node) noexcept nogil:
    cdef Py_ssize_t i = 0
    while leaf.nodes[i] != node:
        i += 1
    return i


cdef int insert(Order *order, const int64_t *amounts, Py_ssize_t node) except -1 nogil:
    cdef Leaf *leaf
    cdef Branch *branch
    cdef Py_ssize_t lane, r
    if not order.branch_count:
        reserve_branches(order, 1)
        branch = new_branch(order)
        leaf = new_leaf(order)
        if branch == NULL or leaf == NULL:
            free(branch)
            free(leaf)
            with gil:
                raise MemoryError
        branch.count = 1
        branch.leaves[0] = leaf
        branch.kinds[0] = 0
        leaf.branch = branch
        leaf.place = 0
        order.branches[0] = branch
        order.branch_count = 1
        recrown_from(order, 0)
    else:
        leaf = leaf_for(order, amounts, node)
        if leaf.count == LANES:
            split_leaf(order, leaf)
            leaf = leaf_for(order, amounts, node)
    lane = lane_for(order, leaf, amounts, node)
    memmove(&leaf.nodes[lane + 1], &leaf.nodes[lane], (leaf.count - lane) * sizeof(int32_t))
    leaf.nodes[lane] = <int32_t> node
    for r in range(order.width):
        memmove(leaf.values + r * LANES + lane + 1, leaf.values + r * LANES + lane,
                (leaf.count - lane) * sizeof(int64_t))
        leaf.values[r * LANES + lane] = amounts[r]
        raise_to(order, leaf, r, amounts[r])
    leaf.count += 1
    leaf.branch.first[leaf.place] = leaf.values[0]
    leaf.branch.kinds[leaf.place] |= <uint64_t> 1 << order.kind[node]
    order.where[node] = leaf
    return 0


cdef void remove(Order *order, Py_ssize_t node) noexcept nogil:
    cdef Leaf *leaf = order.where[node]
    cdef Branch *branch = leaf.branch
    cdef Leaf *other
    cdef Py_ssize_t lane = lane_of(leaf, node), r, i
    cdef int64_t *column
    cdef int64_t amount
    cdef uint64_t kinds = 0
    order.where[node] = NULL
    leaf.count -= 1
    memmove(&leaf.nodes[lane], &leaf.nodes[lane + 1], (leaf.count - lane) * sizeof(int32_t))
    for r in range(order.width):
        column = leaf.values + r * LANES
        amount = column[lane]
        memmove(column + lane, column + lane + 1, (leaf.count - lane) * sizeof(int64_t))
        column[leaf.count] = INT64_MIN
        lower_from(order, leaf, r, amount)
    if not leaf.count:
        drop_leaf(order, leaf)
        return
    branch.first[leaf.place] = leaf.values[0]
    if branch.kinds[leaf.place] & (branch.kinds[leaf.place] - 1):
        for i in range(leaf.count):
            kinds |= <uint64_t> 1 << order.kind[leaf.nodes[i]]
        branch.kinds[leaf.place] = kinds
    if leaf.count >= THIN:
        return
    if leaf.place + 1 < branch.count:
        other = branch.leaves[leaf.place + 1]
        if leaf.count + other.count <= FILLED:
            join_leaves(order, leaf, other)
            return
    if leaf.place:
        other = branch.leaves[leaf.place - 1]
        if leaf.count + other.count <= FILLED:
            join_leaves(order, other, leaf)


cdef bint shuffle(Order *order, const int64_t *amounts, Py_ssize_t node) noexcept nogil:
    """Move *node* within its leaf, if it is sure to stay there."""
    cdef Leaf *leaf = order.where[node]
    cdef Py_ssize_t lane = lane_of(leaf, node), to, r
    cdef int64_t *column
    cdef int64_t before
    # At either end it is compared with what it was: what lies beyond may be another leaf's.
    if (against(order, amounts, node, leaf, 0) < 0
            or against(order, amounts, node, leaf, leaf.count - 1) > 0):
        return False
    to = lane
    while to > 0 and against(order, amounts, node, leaf, to - 1) < 0:
        to -= 1
    if to == lane:
        while to + 1 < leaf.count and against(order, amounts, node, leaf, to + 1) > 0:
            to += 1
    if to < lane:
        memmove(&leaf.nodes[to + 1], &leaf.nodes[to], (lane - to) * sizeof(int32_t))
    elif to > lane:
        memmove(&leaf.nodes[lane], &leaf.nodes[lane + 1], (to - lane) * sizeof(int32_t))
    leaf.nodes[to] = <int32_t> node
    for r in range(order.width):
        column = leaf.values + r * LANES
        before = column[lane]
        if to < lane:
            memmove(column + to + 1, column + to, (lane - to) * sizeof(int64_t))
        elif to > lane:
            memmove(column + lane, column + lane + 1, (to - lane) * sizeof(int64_t))
        column[to] = amounts[r]
        if amounts[r] > before:
            raise_to(order, leaf, r, amounts[r])
        elif amounts[r] < before:
            lower_from(order, leaf, r, before)
    leaf.branch.first[leaf.place] = leaf.values[0]
    return True


# --- the whole ------------------------------------------------------------------------------

cdef Order *order_new(Py_ssize_t width, Py_ssize_t key_width, Py_ssize_t nodes, Py_ssize_t pitch,
                      const uint8_t *open, const uint8_t *kind) except NULL nogil:
    cdef Order *order = <Order *> calloc(1, sizeof(Order))
    if order != NULL:
        order.width = width
        order.key_width = key_width
        order.nodes = nodes
        order.pitch = pitch
        order.open = open
        order.kind = kind
        order.where = <Leaf **> calloc(max(nodes, 1), sizeof(Leaf *))
        order.stale = <uint8_t *> calloc(max(nodes, 1), 1)
        order.changed = <int32_t *> malloc(max(nodes, 1) * sizeof(int32_t))
        if order.where == NULL or order.stale == NULL or order.changed == NULL:
            order_free(order)
            order = NULL
    if order == NULL:
        with gil:
            raise MemoryError
    return order


cdef void clear(Order *order) noexcept nogil:
    cdef Py_ssize_t i, k
    for i in range(order.branch_count):
        for k in range(order.branches[i].count):
            free(order.branches[i].leaves[k])
        free(order.branches[i])
    order.branch_count = 0


cdef void order_free(Order *order) noexcept nogil:
    if order == NULL:
        return
    clear(order)
    free(order.branches)
    free(order.maxima)
    free(order.where)
    free(order.stale)
    free(order.changed)
    free(order)


cdef void merge_sort(const Order *order, const int64_t *cells, Sorted *rows, Sorted *spare,
                     Py_ssize_t count) noexcept nogil:
    """Sort *rows*, which is quick where they are sorted already."""
    cdef Py_ssize_t half = count // 2, i = 0, k = half, to = 0
    if count < 2:
        return
    merge_sort(order, cells, rows, spare, half)
    merge_sort(order, cells, rows + half, spare, count - half)
    if precedes(order, cells, &rows[half - 1], &rows[half]):
        return
    memcpy(spare, rows, half * sizeof(Sorted))
    while i < half:
        if k < count and precedes(order, cells, &rows[k], &spare[i]):
            rows[to] = rows[k]
            k += 1
        else:
            rows[to] = spare[i]
            i += 1
        to += 1


cdef int fill(Order *order, const int64_t *cells, const Sorted *rows,
              Py_ssize_t count) except -1 nogil:
    """Make leaves and branches of *rows*, sorted."""
    cdef Py_ssize_t i, k, r, at = 0
    cdef Branch *branch = NULL
    cdef Leaf *leaf
    reserve_branches(order, max((count + FILLED - 1) // FILLED // FILLED + 1, 1))
    while at < count:
        if branch == NULL or branch.count == FILLED:
            branch = new_branch(order)
            if branch == NULL:
                with gil:
                    raise MemoryError
            branch.place = <int32_t> order.branch_count
            order.branches[order.branch_count] = branch
            order.branch_count += 1
        leaf = new_leaf(order)
        if leaf == NULL:
            with gil:
                raise MemoryError
        leaf.branch = branch
        leaf.place = branch.count
        branch.leaves[branch.count] = leaf
        branch.count += 1
        k = min(count - at, FILLED)
        leaf.count = <int32_t> k
        for i in range(k):
            leaf.nodes[i] = rows[at + i].node
            order.where[rows[at + i].node] = leaf
            for r in range(order.width):
                leaf.values[r * LANES + i] = cells[rows[at + i].node * order.pitch + r]
        at += k
        summarise(order, leaf)
    recrown_from(order, 0)
    return 0


cdef int rebuild(Order *order, const int64_t *cells) except -1 nogil:
    cdef Py_ssize_t i, count = 0
    cdef Sorted *rows = <Sorted *> malloc(2 * max(order.nodes, 1) * sizeof(Sorted))
    if rows == NULL:
        with gil:
            raise MemoryError
    order.built = False
    clear(order)
    memset(order.where, 0, order.nodes * sizeof(Leaf *))
    for i in range(order.nodes):
        if order.open[i]:
            rows[count].first = cells[i * order.pitch]
            rows[count].node = <int32_t> i
            count += 1
    merge_sort(order, cells, rows, rows + order.nodes, count)
    try:
        fill(order, cells, rows, count)
    finally:
        free(rows)
    memset(order.stale, 0, order.nodes)
    order.changes = 0
    order.built = True
    return 0


cdef int order_refresh(Order *order, const int64_t *cells) except -1 nogil:
    cdef Py_ssize_t node
    cdef const int64_t *amounts
    cdef Leaf *leaf
    if not order.built or order.changes > order.nodes // 4 + LANES:
        return rebuild(order, cells)
    while order.changes:
        node = order.changed[order.changes - 1]
        leaf = order.where[node]
        amounts = cells + node * order.pitch
        if not order.open[node]:
            if leaf != NULL:
                remove(order, node)
        elif leaf == NULL:
            insert(order, amounts, node)
        elif not shuffle(order, amounts, node):
            remove(order, node)
            insert(order, amounts, node)
        order.stale[node] = 0
        order.changes -= 1
    return 0


cdef Py_ssize_t order_first(const Order *order, const int64_t *wanted, uint64_t kinds,
                            const uint8_t *mask, uint8_t tier) noexcept nogil:
    cdef Py_ssize_t start = 0, width = order.width
    cdef uint64_t branches, leaves, lanes
    cdef int place
    cdef const Branch *branch
    cdef const Leaf *leaf
    cdef int32_t node
    while start < order.branch_count:
        branches = scan(order.maxima + start * width, width, wanted)
        while branches:
            branch = order.branches[start + nodescan_lowest(branches)]
            branches &= branches - 1
            leaves = scan(branch.maxima, width, wanted)
            while leaves:
                place = nodescan_lowest(leaves)
                leaves &= leaves - 1
                if not branch.kinds[place] & kinds:
                    continue
                leaf = branch.leaves[place]
                lanes = scan(leaf.values, width, wanted)
                while lanes:
                    node = leaf.nodes[nodescan_lowest(lanes)]
                    if mask[node] == tier and order.open[node] & 1:
                        return node
                    lanes &= lanes - 1
        start += LANES
    return -1


cdef int order_fault(const Order *order, const int64_t *cells) noexcept nogil:
    cdef Py_ssize_t b, k, i, r, held = 0, wanted = 0
    cdef const Branch *branch
    cdef Leaf *leaf
    cdef const Leaf *last = NULL
    cdef uint64_t kinds
    if not order.built:
        return 0
    for b in range(order.branch_count):
        branch = order.branches[b]
        if branch.place != b or not 0 < branch.count <= LANES:
            return 1
        for k in range(branch.count):
            leaf = branch.leaves[k]
            if leaf.branch != branch or leaf.place != k or not 0 < leaf.count <= LANES:
                return 2
            kinds = 0
            for i in range(leaf.count):
                held += 1
                kinds |= <uint64_t> 1 << order.kind[leaf.nodes[i]]
                if order.where[leaf.nodes[i]] != leaf:
                    return 3
                if not order.stale[leaf.nodes[i]]:
                    if not order.open[leaf.nodes[i]]:
                        return 4
                    for r in range(order.width):
                        if leaf.values[r * LANES + i] != cells[
                                leaf.nodes[i] * order.pitch + r]:
                            return 5
                if i and not ascending(order, leaf, i - 1, leaf, i):
                    return 6
            if last != NULL and not ascending(order, last, last.count - 1, leaf, 0):
                return 7
            last = leaf
            if kinds & ~branch.kinds[k] or branch.first[k] != leaf.values[0]:
                return 8
            for r in range(order.width):
                if branch.maxima[r * LANES + k] != most(leaf.values + r * LANES):
                    return 9
                for i in range(leaf.count, LANES):
                    if leaf.values[r * LANES + i] != INT64_MIN:
                        return 10
        for r in range(order.width):
            if top(order, branch, r)[0] != most(branch.maxima + r * LANES):
                return 11
    for i in range(order.nodes):
        if order.where[i] != NULL:
            wanted += 1
        elif order.open[i] and not order.stale[i]:
            return 12
    return 0 if held == wanted else 13


cdef bint ascending(const Order *order, const Leaf *one, Py_ssize_t i, const Leaf *other,
                    Py_ssize_t k) noexcept nogil:
    cdef Py_ssize_t r
    for r in range(order.key_width):
        if one.values[r * LANES + i] != other.values[r * LANES + k]:
            return one.values[r * LANES + i] < other.values[r * LANES + k]
    return one.nodes[i] < other.nodes[k]
