# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Copy-on-write B+trees: queue order, gangs, whatever is walked in order.

Owns its nodes (their form: treenode.pxd) through the edit that made them (see versions); many
trees share one `Trees`. Every step of a change leaves a valid tree, so an allocation that fails
costs nothing but the change itself. Keeps INV-N5: items ascend, nodes are a quarter full but on
the right edge, all leaves are at one level, a separator *is* the smallest item below it (never a
stale copy: its slot may be somebody else's by now).
"""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove, memset

from pyresched._core.bits cimport prefetch
from pyresched._core.treenode cimport (
    INNER_WAYS, LEAF_ITEMS, Head, agreed, children, column, common, copy_cells, head, item_at,
    least, most, move_cells, node_size, order, rank, set_item, set_value, value_of,
)
from pyresched._core.versions cimport (
    EditLog, allocation_fails, drop_node, make_room, new_node, out_of_memory, owns,
    release,
)


cdef enum:
    SLACK = 4          # cells: capacities are multiples


cdef void reclaim_node(void *owner, uint64_t what) noexcept nogil:
    cdef Trees *trees = <Trees *> owner
    cdef Head *node = <Head *> <size_t> what
    release(&trees.meter, node, node_size(&trees.form, node.level, node.capacity, node.shared))


cdef void trees_init(Trees *trees, Compare compare, const void *context, uint32_t words,
                     uint32_t value_bytes) noexcept nogil:
    assert 1 <= words <= 3 and (value_bytes == 4 or value_bytes == 8), "one to three words"
    memset(trees, 0, sizeof(Trees))
    trees.form.compare = compare
    trees.form.context = context
    trees.form.words = words
    trees.form.value_bytes = value_bytes
    trees.form.leaf_items = LEAF_ITEMS
    trees.form.inner_ways = INNER_WAYS


cdef inline uint32_t way_to(const Trees *trees, const void *inner,
                            const Item *item) noexcept nogil:
    """The child under which *item* is, if anywhere."""
    cdef bint same = False
    cdef uint32_t place = rank(&trees.form, inner, item, 1, &same)
    return place if same else place - 1


cdef inline bint descend(const Trees *trees, const Tree *tree, const Item *item,
                         Cursor *path) noexcept nogil:
    """Lead *path* to where *item* is or belongs. Whether it is there."""
    cdef void *node = tree.root
    cdef uint32_t level = 0, place
    cdef bint same = False
    path.trees = trees
    while head(node).level:
        place = way_to(trees, node, item)
        path.node[level] = node
        path.place[level] = <uint16_t> place
        level += 1
        node = children(node)[place]
    path.node[level] = node
    path.place[level] = <uint16_t> rank(&trees.form, node, item, 0, &same)
    path.levels = level + 1
    return same


cdef void *make_node(Trees *trees, EditLog *log, uint32_t level, uint32_t capacity,
                     uint32_t shared) noexcept nogil:
    """An empty node, or NULL."""
    cdef Head *node
    capacity = min(most(&trees.form, level), (capacity + SLACK - 1) & ~<uint32_t> (SLACK - 1))
    node = <Head *> new_node(log, &trees.meter, reclaim_node, trees,
                             node_size(&trees.form, level, capacity, shared))
    if node != NULL:
        node.count = 0
        node.level = level
        node.capacity = capacity
        node.shared = shared
    return node


cdef inline uint32_t shareable(const Trees *trees, const void *node, uint32_t first,
                               uint32_t behind) noexcept nogil:
    """How many words a leaf may share that takes these items of another. One of a single item
    leaves out the last word, in which the next item will differ."""
    cdef uint32_t shared
    if head(node).level:
        return 0
    if behind - first < 2:
        return trees.form.words - 1
    shared = common(&trees.form, node, first, node, behind - 1)
    return shared


cdef void *own(Trees *trees, EditLog *log, void **place, uint32_t room,
               uint32_t limit) except NULL nogil:
    """The node at *place*, the edit's own, with room for *room* cells; a leaf that shares at most
    *limit* words."""
    cdef Head *old = head(place[0])
    cdef void *node
    if owns(log, old.stamp) and old.capacity >= room and old.shared <= limit:
        return old
    if old.capacity < room:
        # A node that has grown will grow again.
        if owns(log, old.stamp):
            room += SLACK
    elif old.capacity < old.count + 2 * SLACK:
        # Of the same form it is copied fastest.
        room = old.capacity
    node = make_node(trees, log, old.level, max(room, <uint32_t> old.count),
                     min(limit, shareable(trees, old, 0, old.count)))
    if node == NULL:
        out_of_memory()
        return NULL
    copy_cells(&trees.form, node, old)
    drop_node(log, reclaim_node, trees, old)
    place[0] = node
    return node


cdef inline void take_in(const Trees *trees, void *inner, uint32_t at, void *child,
                         const Item *low) noexcept nogil:
    """Put *child* before what is at *at*."""
    move_cells(&trees.form, inner, at + 1, inner, at, head(inner).count - at)
    children(inner)[at] = child
    set_item(&trees.form, inner, at, low)
    head(inner).count += 1


cdef inline void let_out(const Trees *trees, void *node, uint32_t at) noexcept nogil:
    """Close the gap that the item or child at *at* leaves."""
    head(node).count -= 1
    move_cells(&trees.form, node, at, node, at + 1, head(node).count - at)


cdef bint split(Trees *trees, EditLog *log, void *parent, uint32_t at, uint32_t keep,
                const Item *beyond) noexcept nogil:
    """Move what child *at* has past its first *keep* into a new right neighbour.

    Parent and child are the edit's own; the parent has room. Where nothing is moved, the new leaf
    waits for *beyond*. False: no memory, nothing is moved.
    """
    cdef Head *left = head(children(parent)[at])
    cdef uint32_t moved = left.count - keep
    cdef Item low = beyond[0]
    cdef void *right = make_node(trees, log, left.level, moved + SLACK,
                                 shareable(trees, left, keep, left.count))
    if right == NULL:
        return False
    move_cells(&trees.form, right, 0, left, keep, moved)
    head(right).count = moved
    left.count = keep
    if moved:
        item_at(&trees.form, right, 0, &low)
    take_in(trees, parent, at + 1, right, &low)
    return True


cdef void fit(Trees *trees, EditLog *log, void **place) noexcept nogil:
    """Give a leaf of the edit's own, which items leave behind, no more room than it needs. Does
    nothing without memory."""
    cdef Head *old = head(place[0])
    cdef uint32_t shared = shareable(trees, old, 0, old.count)
    cdef void *leaf = NULL
    if old.capacity >= old.count + SLACK or shared > old.shared:
        leaf = make_node(trees, log, 0, old.count, shared)
    if leaf != NULL:
        copy_cells(&trees.form, leaf, old)
        drop_node(log, reclaim_node, trees, old)
        place[0] = leaf


cdef int own_path(Trees *trees, Tree *tree, EditLog *log, Cursor *path, uint32_t widened,
                  uint32_t room, uint32_t limit) except -1 nogil:
    """Make the nodes of *path* the edit's own: the one at *widened*, if it is above the leaf,
    with room for one more child, the leaf as `own` says."""
    cdef void **place = &tree.root
    cdef uint32_t i
    for i in range(path.levels - 1):
        path.node[i] = own(trees, log, place,
                           head(place[0]).count + 1 if i == widened else 0, trees.form.words)
        place = &children(path.node[i])[path.place[i]]
    path.node[path.levels - 1] = own(trees, log, place, room, limit)
    return 0


cdef int make_way(Trees *trees, Tree *tree, EditLog *log, const Item *item,
                  Cursor *path) except -1 nogil:
    """Split the full leaf at the end of *path*, which then leads to the half for *item*."""
    cdef uint32_t leaf_level = path.levels - 1, top = leaf_level, i, count, keep, at
    cdef void *root = NULL
    cdef Head *node
    cdef bint right_edge = True
    # The full nodes at the end of the path are split, the uppermost first.
    while top and head(path.node[top - 1]).count == trees.form.inner_ways:
        top -= 1
    own_path(trees, tree, log, path, top - 1 if top else MAX_LEVELS, 0, trees.form.words)
    for i in range(leaf_level):
        right_edge = right_edge and path.place[i] == head(path.node[i]).count - 1
    if top == 0:
        if path.levels < MAX_LEVELS:
            root = make_node(trees, log, head(tree.root).level + 1, 2, 0)
        if root == NULL:
            return out_of_memory()
        take_in(trees, root, 0, tree.root, item)
        memmove(path.node + 1, path.node, path.levels * sizeof(void *))
        memmove(path.place + 1, path.place, path.levels * sizeof(uint16_t))
        path.node[0] = root
        path.place[0] = 0
        path.levels += 1
        leaf_level += 1
        top = 1
    for i in range(top, leaf_level + 1):
        node = head(path.node[i])
        count = node.count
        at = path.place[i]
        # Ascending items leave full leaves behind.
        if not right_edge:
            keep = count // 2
        elif i == leaf_level and at == count:
            keep = count
        else:
            keep = count - least(&trees.form, node.level)
        if not split(trees, log, path.node[i - 1], path.place[i - 1], keep, item):
            if root != NULL and i == 1:
                drop_node(log, reclaim_node, trees, root)
            return out_of_memory()
        if root != NULL:
            # Only now that it has two children.
            tree.root = root
        if at > keep or (at == keep and (node.level or keep == count)):
            path.place[i - 1] += 1
            path.node[i] = children(path.node[i - 1])[path.place[i - 1]]
            path.place[i] -= <uint16_t> keep
            if i == leaf_level:
                # Items that ascend, here or anywhere, do not come back to the left half.
                fit(trees, log, &children(path.node[i - 1])[path.place[i - 1] - 1])
    return 0


cdef int insert(Trees *trees, Tree *tree, EditLog *log, const Item *item,
                Cursor *path) except -1 nogil:
    """Add an item that is not there at the end of *path*."""
    cdef void *leaf = path.node[path.levels - 1]
    cdef uint32_t above = path.levels - 2, at
    if head(leaf).count < trees.form.leaf_items:
        own_path(trees, tree, log, path, MAX_LEVELS, head(leaf).count + 1,
                 agreed(&trees.form, leaf, item))
        leaf = path.node[path.levels - 1]
    else:
        make_way(trees, tree, log, item, path)
        leaf = path.node[path.levels - 1]
        above = path.levels - 2
        leaf = own(trees, log, &children(path.node[above])[path.place[above]],
                   head(leaf).count + 1, agreed(&trees.form, leaf, item))
    at = path.place[path.levels - 1]
    move_cells(&trees.form, leaf, at + 1, leaf, at, head(leaf).count - at)
    set_item(&trees.form, leaf, at, item)
    head(leaf).count += 1
    tree.count += 1
    return 1


cdef int start(Trees *trees, Tree *tree, EditLog *log, const Item *item) except -1 nogil:
    """The first item of an empty tree."""
    cdef void *leaf = make_node(trees, log, 0, 4, trees.form.words - 1)
    if leaf == NULL:
        return out_of_memory()
    set_item(&trees.form, leaf, 0, item)
    head(leaf).count = 1
    tree.root = leaf
    tree.count = 1
    return 1


cdef int tree_add(Trees *trees, Tree *tree, EditLog *log, const Item *item) except -1 nogil:
    cdef Cursor path
    make_room(log, 3 * MAX_LEVELS)
    if tree.root == NULL:
        return start(trees, tree, log, item)
    if descend(trees, tree, item, &path):
        return 0
    return insert(trees, tree, log, item, &path)


cdef int tree_put(Trees *trees, Tree *tree, EditLog *log, const Item *item) except -1 nogil:
    cdef Cursor path
    cdef uint32_t last, at
    make_room(log, 3 * MAX_LEVELS)
    if tree.root == NULL:
        return start(trees, tree, log, item)
    if not descend(trees, tree, item, &path):
        return insert(trees, tree, log, item, &path)
    last = path.levels - 1
    at = path.place[last]
    if value_of(&trees.form, path.node[last], at) != item.value:
        own_path(trees, tree, log, &path, MAX_LEVELS, 0, trees.form.words)
        set_value(&trees.form, path.node[last], at, item.value)
    return 0


cdef int fill(Trees *trees, EditLog *log, void *parent, Cursor *path,
              uint32_t level) except -1 nogil:
    """Give the path's node below *parent* more than the least, from a neighbour or by joining it.

    *path* has the parent's place at *level* and goes on to the child; both are put right.
    """
    cdef uint32_t at = path.place[level], left_at = at if at + 1 < head(parent).count else at - 1
    cdef void **place = children(parent) + left_at
    cdef Head *left = head(place[0])
    cdef Head *right = head(place[1])
    cdef uint32_t both = left.count + right.count, old_left = left.count, keep, moved
    cdef uint32_t kind = left.level
    cdef uint32_t limit = 0 if kind else common(&trees.form, left, 0, right, right.count - 1)
    cdef bint joined = both <= max(most(&trees.form, kind) - (most(&trees.form, kind) >> 2),
                                   2 * least(&trees.form, kind))
    cdef Item low
    # The larger half is for the child: it must be able to lose one.
    keep = both if joined else (both + (at == left_at)) // 2
    left = head(own(trees, log, place, max(keep, old_left), limit))
    if not joined:
        right = head(own(trees, log, place + 1, max(both - keep, <uint32_t> right.count), limit))
    if keep > old_left:
        moved = keep - old_left
        move_cells(&trees.form, left, old_left, right, 0, moved)
        if kind:
            # The first child's own item may be too low.
            item_at(&trees.form, parent, left_at + 1, &low)
            set_item(&trees.form, left, old_left, &low)
        left.count = keep
        if joined:
            let_out(trees, parent, left_at + 1)
            drop_node(log, reclaim_node, trees, right)
        else:
            item_at(&trees.form, right, moved, &low)
            set_item(&trees.form, parent, left_at + 1, &low)
            right.count -= moved
            move_cells(&trees.form, right, 0, right, moved, right.count)
    elif keep < old_left:
        moved = old_left - keep
        move_cells(&trees.form, right, moved, right, 0, right.count)
        if kind:
            item_at(&trees.form, parent, left_at + 1, &low)
            set_item(&trees.form, right, moved, &low)
        move_cells(&trees.form, right, 0, left, keep, moved)
        item_at(&trees.form, right, 0, &low)
        set_item(&trees.form, parent, left_at + 1, &low)
        right.count += moved
        left.count = keep
    # Where the path goes on: its node was the left or the right one.
    if at != left_at:
        path.place[level + 1] += <uint16_t> old_left
    if path.place[level + 1] >= left.count and not joined:
        path.place[level + 1] -= left.count
        path.place[level] = <uint16_t> (left_at + 1)
    else:
        path.place[level] = <uint16_t> left_at
    return 0


cdef int tree_remove(Trees *trees, Tree *tree, EditLog *log, const Item *item,
                     Item *removed) except -1 nogil:
    cdef Cursor path
    if tree.root == NULL or not descend(trees, tree, item, &path):
        return 0
    return remove_at(trees, tree, log, &path, removed)


cdef int tree_pop(Trees *trees, Tree *tree, EditLog *log, Item *removed) except -1 nogil:
    cdef Cursor path
    if tree.root == NULL:
        return 0
    cursor_first(&path, trees, tree)
    return remove_at(trees, tree, log, &path, removed)


cdef int remove_at(Trees *trees, Tree *tree, EditLog *log, Cursor *path,
                   Item *removed) except -1 nogil:
    cdef void **place = &tree.root
    cdef void *separator = NULL
    cdef uint32_t separator_at = 0
    cdef Head *child
    cdef void *inner
    cdef void *leaf
    cdef Item low
    cdef uint32_t level = 0, at
    make_room(log, 4 * MAX_LEVELS)
    while level + 1 < path.levels:
        inner = own(trees, log, place, 0, trees.form.words)
        child = head(children(inner)[path.place[level]])
        if head(inner).count > 1 and child.count <= least(&trees.form, child.level):
            fill(trees, log, inner, path, level)
        if head(inner).count == 1:
            # Only a root gets here: its one child takes its place.
            assert level == 0 or place == &tree.root, "an inner node has two children"
            place[0] = children(inner)[0]
            drop_node(log, reclaim_node, trees, inner)
        else:
            at = path.place[level]
            if at:
                separator = inner
                separator_at = at
            place = &children(inner)[at]
        level += 1
    leaf = own(trees, log, place, 0, trees.form.words)
    at = path.place[level]
    if removed != NULL:
        item_at(&trees.form, leaf, at, removed)
    tree.count -= 1
    if head(leaf).count == 1:
        assert place == &tree.root, "only the last leaf of a tree may become empty"
        drop_node(log, reclaim_node, trees, leaf)
        tree.root = NULL
        return 1
    let_out(trees, leaf, at)
    if at == 0 and separator != NULL:
        item_at(&trees.form, leaf, 0, &low)
        set_item(&trees.form, separator, separator_at, &low)
    return 1


cdef bint items_ascend(const Trees *trees, const Item *items, size_t count) noexcept nogil:
    cdef size_t i
    for i in range(1, count):
        if order(&trees.form, items + i - 1, items + i) >= 0:
            return False
    return True


cdef inline size_t cut(size_t left, uint32_t full, uint32_t smallest) noexcept nogil:
    """How many of *left* cells the next node takes: all it can, but so that the last node gets
    *smallest* of them."""
    if left <= full:
        return left
    return min(<size_t> full, left - smallest)


cdef int tree_build(Trees *trees, Tree *tree, EditLog *log, const Item *items,
                    size_t count) except -1 nogil:
    cdef size_t nodes = (count + trees.form.leaf_items - 1) // trees.form.leaf_items
    cdef size_t done, i, made, taken
    cdef uint32_t level = 0
    cdef void **row
    cdef void *node
    assert tree.root == NULL, "a tree is built once"
    if count == 0:
        return 0
    # No level has more nodes than that of the leaves, all levels together have fewer than twice
    # as many.
    make_room(log, <uint32_t> (2 * nodes + 2 * MAX_LEVELS))
    row = NULL if allocation_fails() else <void **> malloc((nodes + 1) * sizeof(void *))
    if row == NULL:
        return out_of_memory()
    done = made = 0
    while done < count:
        taken = cut(count - done, trees.form.leaf_items, 1)
        node = build_leaf(trees, log, items + done, <uint32_t> taken)
        if node == NULL:
            give_up(trees, log, row, made)
            return out_of_memory()
        row[made] = node
        made += 1
        done += taken
    while made > 1:
        level += 1
        done = 0
        i = 0
        while done < made:
            taken = cut(made - done, trees.form.inner_ways, least(&trees.form, level))
            node = build_inner(trees, log, level, row + done, <uint32_t> taken)
            if node == NULL:
                # Finished ones stand in the place of what they have taken.
                memmove(row + i, row + done, (made - done) * sizeof(void *))
                give_up(trees, log, row, i + made - done)
                return out_of_memory()
            row[i] = node
            i += 1
            done += taken
        made = i
    tree.root = row[0]
    tree.count = count
    free(row)
    return 0


cdef size_t nodes_below(const void *node) noexcept nogil:
    """How many there are, *node* among them."""
    cdef size_t count = 1
    cdef uint32_t i
    if head(node).level == 1:
        return 1 + head(node).count
    for i in range(head(node).count if head(node).level else 0):
        count += nodes_below(children(node)[i])
    return count


cdef int tree_rebuild(Trees *trees, Tree *tree, EditLog *log, const Item *gone, size_t gone_count,
                      const Item *new_, size_t new_count) except -1:
    cdef size_t left = 0, out = 0, into = 0
    cdef Tree built = Tree(NULL, 0)
    cdef Cursor cursor
    cdef Item *items
    cdef Item item
    cdef void *old = tree.root
    if old == NULL:
        assert gone_count == 0, "what goes is there"
        return tree_build(trees, tree, log, new_, new_count)
    if gone_count == tree.count and new_count == 0:
        make_room(log, <uint32_t> nodes_below(old))
        drop_below(trees, log, old)
        tree[0] = built
        return 0
    items = NULL if allocation_fails() else <Item *> malloc(
        (tree.count + new_count - gone_count + 1) * sizeof(Item))
    if items == NULL:
        return out_of_memory()
    cursor_first(&cursor, trees, tree)
    while cursor_next(&cursor, &item):
        if out < gone_count and order(&trees.form, gone + out, &item) == 0:
            out += 1
            continue
        while into < new_count and order(&trees.form, new_ + into, &item) < 0:
            items[left] = new_[into]
            left += 1
            into += 1
        items[left] = item
        left += 1
    if into < new_count:
        memcpy(items + left, new_ + into, (new_count - into) * sizeof(Item))
        left += new_count - into
    assert out == gone_count, "what goes is there"
    try:
        make_room(log, <uint32_t> nodes_below(old))
        tree_build(trees, &built, log, items, left)
    finally:
        free(items)
    drop_below(trees, log, old)
    tree[0] = built
    return 0


cdef void *build_leaf(Trees *trees, EditLog *log, const Item *items,
                      uint32_t count) noexcept nogil:
    """A full leaf of so many items, or NULL."""
    cdef uint32_t shared = 0, i
    cdef void *leaf
    cdef const int64_t *first = <const int64_t *> items
    cdef const int64_t *last = <const int64_t *> (items + count - 1)
    while shared < trees.form.words and first[shared] == last[shared]:
        shared += 1
    leaf = make_node(trees, log, 0, count, min(shared, trees.form.words - (count < 2)))
    if leaf != NULL:
        for i in range(count):
            set_item(&trees.form, leaf, i, items + i)
        head(leaf).count = count
    return leaf


cdef void *build_inner(Trees *trees, EditLog *log, uint32_t level, void **below_it,
                       uint32_t count) noexcept nogil:
    """A node above so many, or NULL."""
    cdef void *inner = make_node(trees, log, level, count, 0)
    cdef void *node
    cdef Item low
    cdef uint32_t i
    if inner != NULL:
        for i in range(count):
            node = below_it[i]
            while head(node).level:
                node = children(node)[0]
            item_at(&trees.form, node, 0, &low)
            take_in(trees, inner, i, below_it[i], &low)
    return inner


cdef void give_up(Trees *trees, EditLog *log, void **row, size_t count) noexcept nogil:
    """Drop what was built, and the row."""
    cdef size_t i
    for i in range(count):
        drop_below(trees, log, row[i])
    free(row)


cdef void drop_below(Trees *trees, EditLog *log, void *node) noexcept nogil:
    cdef uint32_t i
    if head(node).level:
        for i in range(head(node).count):
            drop_below(trees, log, children(node)[i])
    drop_node(log, reclaim_node, trees, node)


cdef bint tree_find(const Trees *trees, const Tree *tree, const Item *item,
                    Item *found) noexcept nogil:
    cdef void *node = tree.root
    cdef uint32_t place
    cdef bint same = False
    if node == NULL:
        return False
    while head(node).level:
        node = children(node)[way_to(trees, node, item)]
    place = rank(&trees.form, node, item, 0, &same)
    if same:
        item_at(&trees.form, node, place, found)
    return same


cdef bint tree_first(const Trees *trees, const Tree *tree, Item *item) noexcept nogil:
    cdef void *node = tree.root
    if node == NULL:
        return False
    while head(node).level:
        node = children(node)[0]
    item_at(&trees.form, node, 0, item)
    return True


cdef bint tree_last(const Trees *trees, const Tree *tree, Item *item) noexcept nogil:
    cdef void *node = tree.root
    if node == NULL:
        return False
    while head(node).level:
        node = children(node)[head(node).count - 1]
    item_at(&trees.form, node, head(node).count - 1, item)
    return True


cdef void go_down(Cursor *cursor, void *node) noexcept nogil:
    """To the first item below *node*."""
    while True:
        cursor.node[cursor.levels] = node
        cursor.place[cursor.levels] = 0
        cursor.levels += 1
        if head(node).level == 0:
            return
        node = children(node)[0]


cdef void leave(Cursor *cursor, uint32_t depth) noexcept nogil:
    """To what comes after the node at *depth* of the path."""
    cursor.levels = depth
    while cursor.levels:
        depth = cursor.levels - 1
        if cursor.place[depth] + 1 < head(cursor.node[depth]).count:
            cursor.place[depth] += 1
            go_down(cursor, children(cursor.node[depth])[cursor.place[depth]])
            return
        cursor.levels = depth


cdef void cursor_first(Cursor *cursor, const Trees *trees, const Tree *tree) noexcept nogil:
    cursor.trees = trees
    cursor.levels = 0
    if tree.root != NULL:
        go_down(cursor, tree.root)


cdef void cursor_seek(Cursor *cursor, const Trees *trees, const Tree *tree,
                      const Item *item) noexcept nogil:
    cursor.trees = trees
    cursor.levels = 0
    if tree.root != NULL:
        descend(trees, tree, item, cursor)
        if cursor.place[cursor.levels - 1] == head(cursor.node[cursor.levels - 1]).count:
            leave(cursor, cursor.levels - 1)


cdef inline void here(const Cursor *cursor, Item *item) noexcept nogil:
    cdef uint32_t leaf = cursor.levels - 1
    item_at(&cursor.trees.form, cursor.node[leaf], cursor.place[leaf], item)


cdef inline void step(Cursor *cursor) noexcept nogil:
    cdef uint32_t leaf = cursor.levels - 1
    if cursor.place[leaf] + 1 < head(cursor.node[leaf]).count:
        cursor.place[leaf] += 1
    else:
        leave(cursor, leaf)


cdef bint cursor_next(Cursor *cursor, Item *item) noexcept nogil:
    if cursor.levels == 0:
        return False
    here(cursor, item)
    step(cursor)
    return True


cdef inline void fetch_leaves(const Cursor *cursor) noexcept nogil:
    """Let the values of the leaf after this one come from memory, and the head of the second."""
    cdef uint32_t leaf = cursor.levels - 1, after, line
    cdef const void *parent
    cdef const char *values
    if leaf == 0:
        return
    parent = cursor.node[leaf - 1]
    after = cursor.place[leaf - 1] + 1
    if after + 1 < head(parent).count:
        prefetch(children(parent)[after + 1])
    if after < head(parent).count:
        values = <const char *> column(children(parent)[after], cursor.trees.form.words)
        for line in range(0, 4 * LEAF_ITEMS + 1, 64):
            prefetch(values + line)


cdef uint32_t cursor_slots(Cursor *cursor, uint32_t *slots, uint32_t room) noexcept nogil:
    cdef uint32_t leaf, at, taken, count = 0
    cdef const void *node
    assert cursor.trees.form.value_bytes == 4, "these values are no slots"
    while count < room and cursor.levels:
        leaf = cursor.levels - 1
        node = cursor.node[leaf]
        at = cursor.place[leaf]
        if at <= 1:  # a walk begins behind the first item
            fetch_leaves(cursor)
        taken = min(room - count, <uint32_t> head(node).count - at)
        memcpy(slots + count, <uint32_t *> column(node, cursor.trees.form.words) + at,
               taken * sizeof(uint32_t))
        count += taken
        cursor.place[leaf] = <uint16_t> (at + taken - 1)
        step(cursor)
    return count


cdef void skip_shared(Cursor *old, Cursor *new) noexcept nogil:
    """Move both past what the two versions have in common from here on."""
    cdef uint32_t height
    while old.levels and new.levels:
        height = 0
        while (height < old.levels and height < new.levels
                and old.node[old.levels - 1 - height] == new.node[new.levels - 1 - height]
                and old.place[old.levels - 1 - height] == new.place[new.levels - 1 - height]):
            height += 1
        if height == 0:
            return
        leave(old, old.levels - height)
        leave(new, new.levels - height)


cdef int tree_diff(const Trees *trees, const Tree *old, const Tree *new, ItemVisitor visit,
                   void *context) except -1:
    cdef Cursor before, after
    cdef Item was, is_
    cdef int way
    cursor_first(&before, trees, old)
    cursor_first(&after, trees, new)
    while True:
        skip_shared(&before, &after)
        if before.levels == 0 and after.levels == 0:
            return 0
        way = 0
        if before.levels:
            here(&before, &was)
        else:
            way = 1
        if after.levels:
            here(&after, &is_)
        else:
            way = -1
        if way == 0:
            way = order(&trees.form, &was, &is_)
        if way < 0:
            visit(context, &was, NULL)
            step(&before)
        elif way > 0:
            visit(context, NULL, &is_)
            step(&after)
        else:
            if was.value != is_.value:
                visit(context, &was, &is_)
            step(&before)
            step(&after)


cdef void free_below(Trees *trees, void *node) noexcept nogil:
    cdef uint32_t i
    if head(node).level:
        for i in range(head(node).count):
            free_below(trees, children(node)[i])
    reclaim_node(trees, <uint64_t> <size_t> node)


cdef void tree_free(Trees *trees, Tree *tree) noexcept nogil:
    if tree.root != NULL:
        free_below(trees, tree.root)
    tree.root = NULL
    tree.count = 0
