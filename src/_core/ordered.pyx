# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Copy-on-write B+trees: queue order, gangs, whatever is walked in order.

Owns its nodes through the edit that made them (see versions); many trees share one `Trees`.
Every step of a change leaves a valid tree, so an allocation that fails costs nothing but the
change itself. Keeps INV-N5: items ascend, nodes are a quarter full but on the right edge, all
leaves are at one level, a separator *is* the smallest item below it (never a stale copy: its
slot may be somebody else's by now).
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove, memset

from pyresched._core.versions cimport (
    EditLog, Meter, drop_node, make_room, new_node, out_of_memory, release,
)

# A leaf is a Head and `capacity` items. An inner node is a Head, its children and the smallest
# item of each child (of the first: unused, it may be lower by now).
cdef struct Head:
    uint64_t stamp
    uint32_t fresh
    uint16_t count
    uint8_t level      # 0: a leaf
    uint8_t capacity   # of a leaf, in items

cdef struct Inner:
    Head head
    void *child[INNER_WAYS]
    Item low[INNER_WAYS]


cdef inline Item *items_of(void *leaf) noexcept nogil:
    return <Item *> (<char *> leaf + sizeof(Head))


cdef inline size_t leaf_size(uint32_t capacity) noexcept nogil:
    return sizeof(Head) + capacity * sizeof(Item)


cdef void reclaim_leaf(void *owner, uint64_t what) noexcept nogil:
    cdef Head *leaf = <Head *> <size_t> what
    release(&(<Trees *> owner).meter, leaf, leaf_size(leaf.capacity))


cdef void reclaim_inner(void *owner, uint64_t what) noexcept nogil:
    release(&(<Trees *> owner).meter, <void *> <size_t> what, sizeof(Inner))


cdef void trees_init(Trees *trees, Compare compare, const void *context) noexcept nogil:
    memset(trees, 0, sizeof(Trees))
    trees.compare = compare
    trees.context = context
    trees.leaf_items = LEAF_ITEMS
    trees.inner_ways = INNER_WAYS


cdef inline int order(const Trees *trees, const Item *a, const Item *b) noexcept nogil:
    """Below, at or above 0."""
    if a.k0 != b.k0:
        return -1 if a.k0 < b.k0 else 1
    if a.k1 != b.k1:
        return -1 if a.k1 < b.k1 else 1
    if a.k2 != b.k2:
        return -1 if a.k2 < b.k2 else 1
    return 0 if trees.compare == NULL else trees.compare(trees.context, a.value, b.value)


cdef inline uint32_t not_below(const Trees *trees, void *leaf, const Item *item) noexcept nogil:
    """The place of the first item that is not below *item*."""
    cdef uint32_t low = 0, high = (<Head *> leaf).count, middle
    while low < high:
        middle = (low + high) >> 1
        if order(trees, items_of(leaf) + middle, item) < 0:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline uint32_t way_to(const Trees *trees, const Inner *inner,
                            const Item *item) noexcept nogil:
    """The child under which *item* is, if anywhere."""
    cdef uint32_t low = 1, high = inner.head.count, middle
    while low < high:
        middle = (low + high) >> 1
        if order(trees, &inner.low[middle], item) <= 0:
            low = middle + 1
        else:
            high = middle
    return low - 1


cdef inline uint32_t least(const Trees *trees, uint32_t level) noexcept nogil:
    """How few items or children a node has, but for the root and the right edge."""
    if level == 0:
        return max(<uint32_t> 1, trees.leaf_items >> 2)
    return max(<uint32_t> 2, trees.inner_ways >> 2)


cdef inline uint32_t most(const Trees *trees, uint32_t level) noexcept nogil:
    return trees.leaf_items if level == 0 else trees.inner_ways


cdef inline bint descend(const Trees *trees, const Tree *tree, const Item *item,
                         Cursor *path) noexcept nogil:
    """Lead *path* to where *item* is or belongs. Whether it is there."""
    cdef void *node = tree.root
    cdef uint32_t level = 0, place
    while (<Head *> node).level:
        place = way_to(trees, <Inner *> node, item)
        path.node[level] = node
        path.place[level] = <uint16_t> place
        level += 1
        node = (<Inner *> node).child[place]
    place = not_below(trees, node, item)
    path.node[level] = node
    path.place[level] = <uint16_t> place
    path.levels = level + 1
    return place < (<Head *> node).count and order(trees, items_of(node) + place, item) == 0


cdef void *new_leaf(Trees *trees, EditLog *log, uint32_t capacity) noexcept nogil:
    """An empty leaf, or NULL."""
    cdef Head *leaf
    capacity = min(trees.leaf_items, (capacity + 3) & ~<uint32_t> 3)
    leaf = <Head *> new_node(log, &trees.meter, reclaim_leaf, trees, leaf_size(capacity))
    if leaf != NULL:
        leaf.count = 0
        leaf.level = 0
        leaf.capacity = <uint8_t> capacity
    return leaf


cdef Inner *new_inner(Trees *trees, EditLog *log, uint32_t level) noexcept nogil:
    """An empty inner node, or NULL."""
    cdef Inner *inner = <Inner *> new_node(
        log, &trees.meter, reclaim_inner, trees, sizeof(Inner))
    if inner != NULL:
        inner.head.count = 0
        inner.head.level = <uint8_t> level
        inner.head.capacity = 0
    return inner


cdef void *own(Trees *trees, EditLog *log, void **place, uint32_t room) except NULL nogil:
    """The node at *place*, the edit's own, and if a leaf with room for *room* items."""
    cdef Head *old = <Head *> place[0]
    cdef Inner *inner
    cdef void *leaf
    if old.stamp == log.stamp and (old.level or old.capacity >= room):
        return old
    if old.level:
        inner = new_inner(trees, log, old.level)
        if inner == NULL:
            out_of_memory()
            return NULL
        inner.head.count = old.count
        memcpy(inner.child, (<Inner *> old).child, old.count * sizeof(void *))
        memcpy(inner.low, (<Inner *> old).low, old.count * sizeof(Item))
        drop_node(log, reclaim_inner, trees, old)
        place[0] = inner
        return inner
    # A leaf that grows in this edit will grow again.
    room = max(room, <uint32_t> old.count)
    leaf = new_leaf(trees, log, room + 4 if old.stamp == log.stamp else room)
    if leaf == NULL:
        out_of_memory()
        return NULL
    (<Head *> leaf).count = old.count
    memcpy(items_of(leaf), items_of(old), old.count * sizeof(Item))
    drop_node(log, reclaim_leaf, trees, old)
    place[0] = leaf
    return leaf


cdef inline void take_in(Inner *inner, uint32_t at, void *child, const Item *low) noexcept nogil:
    """Put *child* before what is at *at*."""
    cdef uint32_t behind = inner.head.count - at
    memmove(inner.child + at + 1, inner.child + at, behind * sizeof(void *))
    memmove(inner.low + at + 1, inner.low + at, behind * sizeof(Item))
    inner.child[at] = child
    inner.low[at] = low[0]
    inner.head.count += 1


cdef inline void let_out(Inner *inner, uint32_t at) noexcept nogil:
    cdef uint32_t behind = inner.head.count - at - 1
    memmove(inner.child + at, inner.child + at + 1, behind * sizeof(void *))
    memmove(inner.low + at, inner.low + at + 1, behind * sizeof(Item))
    inner.head.count -= 1


cdef bint split(Trees *trees, EditLog *log, Inner *parent, uint32_t at,
                uint32_t keep) noexcept nogil:
    """Move what child *at* has past its first *keep* into a new right neighbour.

    Parent and child are the edit's own; the parent has room. False: no memory, nothing is moved.
    """
    cdef Head *left = <Head *> parent.child[at]
    cdef uint32_t moved = left.count - keep
    cdef Inner *inner
    cdef void *leaf
    if left.level:
        inner = new_inner(trees, log, left.level)
        if inner == NULL:
            return False
        memcpy(inner.child, (<Inner *> left).child + keep, moved * sizeof(void *))
        memcpy(inner.low, (<Inner *> left).low + keep, moved * sizeof(Item))
        inner.head.count = <uint16_t> moved
        take_in(parent, at + 1, inner, inner.low)
    else:
        # Where nothing is moved, the new leaf waits for an item beyond the last.
        leaf = new_leaf(trees, log, moved + 4)
        if leaf == NULL:
            return False
        memcpy(items_of(leaf), items_of(left) + keep, moved * sizeof(Item))
        (<Head *> leaf).count = <uint16_t> moved
        take_in(parent, at + 1, leaf, items_of(leaf))
    left.count = <uint16_t> keep
    return True


cdef int own_path(Trees *trees, Tree *tree, EditLog *log, Cursor *path,
                  uint32_t room) except -1 nogil:
    """Make the nodes of *path* the edit's own, the leaf with room for *room* items."""
    cdef void **place = &tree.root
    cdef uint32_t i
    for i in range(path.levels):
        path.node[i] = own(trees, log, place, room)
        if i + 1 < path.levels:
            place = &(<Inner *> path.node[i]).child[path.place[i]]
    return 0


cdef int insert(Trees *trees, Tree *tree, EditLog *log, const Item *item,
                Cursor *path) except -1 nogil:
    """Add an item that is not there at the end of *path*."""
    cdef uint32_t leaf_level = path.levels - 1
    cdef uint32_t i, top, count, keep, at
    cdef Head *node
    cdef Inner *root = NULL
    cdef bint right_edge = True
    cdef void *leaf
    count = (<Head *> path.node[leaf_level]).count
    if count < trees.leaf_items:
        own_path(trees, tree, log, path, count + 1)
    else:
        own_path(trees, tree, log, path, count)
        for i in range(leaf_level):
            right_edge = right_edge and path.place[i] == (<Head *> path.node[i]).count - 1
        # The full nodes at the end of the path are split, the uppermost first.
        top = leaf_level
        while top and (<Head *> path.node[top - 1]).count == trees.inner_ways:
            top -= 1
        if top == 0:
            root = NULL if path.levels == MAX_LEVELS else new_inner(
                trees, log, (<Head *> tree.root).level + 1)
            if root == NULL:
                return out_of_memory()
            root.head.count = 1
            root.child[0] = tree.root
            root.low[0] = item[0]
            memmove(path.node + 1, path.node, path.levels * sizeof(void *))
            memmove(path.place + 1, path.place, path.levels * sizeof(uint16_t))
            path.node[0] = root
            path.place[0] = 0
            path.levels += 1
            leaf_level += 1
            top = 1
        for i in range(top, leaf_level + 1):
            node = <Head *> path.node[i]
            count = node.count
            at = path.place[i]
            # Ascending items leave full leaves behind.
            if not right_edge:
                keep = count // 2
            elif i == leaf_level and at == count:
                keep = count
            else:
                keep = count - least(trees, node.level)
            if not split(trees, log, <Inner *> path.node[i - 1], path.place[i - 1], keep):
                if root != NULL and i == 1:
                    drop_node(log, reclaim_inner, trees, root)
                return out_of_memory()
            if root != NULL:
                # Only now that it has two children.
                tree.root = root
            if at > keep or (at == keep and (node.level or keep == count)):
                path.place[i - 1] += 1
                path.node[i] = (<Inner *> path.node[i - 1]).child[path.place[i - 1]]
                path.place[i] -= <uint16_t> keep
        i = leaf_level
        at = path.place[i - 1]
        # New leaves have room for one more, a left half may not.
        leaf = own(trees, log, &(<Inner *> path.node[i - 1]).child[at],
                   (<Head *> path.node[i]).count + 1)
        path.node[i] = leaf
        if (<Head *> leaf).count == 0:
            (<Inner *> path.node[i - 1]).low[at] = item[0]
    leaf = path.node[leaf_level]
    at = path.place[leaf_level]
    memmove(items_of(leaf) + at + 1, items_of(leaf) + at,
            ((<Head *> leaf).count - at) * sizeof(Item))
    items_of(leaf)[at] = item[0]
    (<Head *> leaf).count += 1
    tree.count += 1
    return 1


cdef int start(Trees *trees, Tree *tree, EditLog *log, const Item *item) except -1 nogil:
    """The first item of an empty tree."""
    cdef void *leaf = new_leaf(trees, log, 4)
    if leaf == NULL:
        return out_of_memory()
    items_of(leaf)[0] = item[0]
    (<Head *> leaf).count = 1
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


cdef int tree_put(Trees *trees, Tree *tree, EditLog *log, const Item *item,
                  Item *before) except -1 nogil:
    cdef Cursor path
    cdef Item *found
    make_room(log, 3 * MAX_LEVELS)
    if tree.root == NULL:
        return start(trees, tree, log, item)
    if not descend(trees, tree, item, &path):
        return insert(trees, tree, log, item, &path)
    found = items_of(path.node[path.levels - 1]) + path.place[path.levels - 1]
    if before != NULL:
        before[0] = found[0]
    if found.value != item.value:
        own_path(trees, tree, log, &path, 0)
        items_of(path.node[path.levels - 1])[path.place[path.levels - 1]].value = item.value
    return 0


cdef int fill(Trees *trees, EditLog *log, Inner *parent, Cursor *path,
              uint32_t level) except -1 nogil:
    """Give the path's node below *parent* more than the least, from a neighbour or by joining it.

    *path* has the parent's place at *level* and goes on to the child; both are put right.
    """
    cdef uint32_t at = path.place[level], left_at = at if at + 1 < parent.head.count else at - 1
    cdef Head *left = <Head *> parent.child[left_at]
    cdef Head *right = <Head *> parent.child[left_at + 1]
    cdef uint32_t both = left.count + right.count, old_left = left.count, keep, moved
    cdef uint32_t kind = left.level
    cdef bint joined = both <= max(most(trees, kind) - (most(trees, kind) >> 2),
                                   2 * least(trees, kind))
    # The larger half is for the child: it must be able to lose one.
    keep = both if joined else (both + (at == left_at)) // 2
    left = <Head *> own(trees, log, &parent.child[left_at], max(keep, old_left))
    if not joined:
        right = <Head *> own(trees, log, &parent.child[left_at + 1],
                             max(both - keep, right.count))
    if keep > old_left:
        moved = keep - old_left
        if kind == 0:
            memcpy(items_of(left) + old_left, items_of(right), moved * sizeof(Item))
        else:
            memcpy((<Inner *> left).child + old_left, (<Inner *> right).child,
                   moved * sizeof(void *))
            memcpy((<Inner *> left).low + old_left, (<Inner *> right).low, moved * sizeof(Item))
            (<Inner *> left).low[old_left] = parent.low[left_at + 1]
        left.count = <uint16_t> keep
        if joined:
            let_out(parent, left_at + 1)
            if kind == 0:
                drop_node(log, reclaim_leaf, trees, right)
            else:
                drop_node(log, reclaim_inner, trees, right)
        else:
            right.count -= <uint16_t> moved
            if kind == 0:
                memmove(items_of(right), items_of(right) + moved, right.count * sizeof(Item))
                parent.low[left_at + 1] = items_of(right)[0]
            else:
                parent.low[left_at + 1] = (<Inner *> right).low[moved]
                memmove((<Inner *> right).child, (<Inner *> right).child + moved,
                        right.count * sizeof(void *))
                memmove((<Inner *> right).low, (<Inner *> right).low + moved,
                        right.count * sizeof(Item))
    elif keep < old_left:
        moved = old_left - keep
        if kind == 0:
            memmove(items_of(right) + moved, items_of(right), right.count * sizeof(Item))
            memcpy(items_of(right), items_of(left) + keep, moved * sizeof(Item))
            parent.low[left_at + 1] = items_of(right)[0]
        else:
            memmove((<Inner *> right).child + moved, (<Inner *> right).child,
                    right.count * sizeof(void *))
            memmove((<Inner *> right).low + moved, (<Inner *> right).low,
                    right.count * sizeof(Item))
            (<Inner *> right).low[moved] = parent.low[left_at + 1]
            memcpy((<Inner *> right).child, (<Inner *> left).child + keep, moved * sizeof(void *))
            memcpy((<Inner *> right).low, (<Inner *> left).low + keep, moved * sizeof(Item))
            parent.low[left_at + 1] = (<Inner *> right).low[0]
        right.count += <uint16_t> moved
        left.count = <uint16_t> keep
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


cdef int remove_at(Trees *trees, Tree *tree, EditLog *log, Cursor *path,
                   Item *removed) except -1 nogil:
    cdef void **place = &tree.root
    cdef Item *low = NULL
    cdef Head *child
    cdef Inner *inner
    cdef void *leaf
    cdef uint32_t level = 0, at
    make_room(log, 4 * MAX_LEVELS)
    while level + 1 < path.levels:
        inner = <Inner *> own(trees, log, place, 0)
        child = <Head *> inner.child[path.place[level]]
        if inner.head.count > 1 and child.count <= least(trees, child.level):
            fill(trees, log, inner, path, level)
        if inner.head.count == 1:
            # Only a root gets here: its one child takes its place.
            assert level == 0 or place == &tree.root, "an inner node has two children"
            place[0] = inner.child[0]
            drop_node(log, reclaim_inner, trees, inner)
        else:
            at = path.place[level]
            if at:
                low = &inner.low[at]
            place = &inner.child[at]
        level += 1
    leaf = own(trees, log, place, 0)
    at = path.place[level]
    if removed != NULL:
        removed[0] = items_of(leaf)[at]
    (<Head *> leaf).count -= 1
    tree.count -= 1
    if (<Head *> leaf).count == 0:
        assert place == &tree.root, "only the last leaf of a tree may become empty"
        drop_node(log, reclaim_leaf, trees, leaf)
        tree.root = NULL
        return 1
    memmove(items_of(leaf) + at, items_of(leaf) + at + 1,
            ((<Head *> leaf).count - at) * sizeof(Item))
    if at == 0 and low != NULL:
        low[0] = items_of(leaf)[0]
    return 1


cdef const Item *tree_find(const Trees *trees, const Tree *tree, const Item *item) noexcept nogil:
    cdef void *node = tree.root
    cdef uint32_t place
    if node == NULL:
        return NULL
    while (<Head *> node).level:
        node = (<Inner *> node).child[way_to(trees, <Inner *> node, item)]
    place = not_below(trees, node, item)
    if place < (<Head *> node).count and order(trees, items_of(node) + place, item) == 0:
        return items_of(node) + place
    return NULL


cdef const Item *tree_first(const Tree *tree) noexcept nogil:
    cdef void *node = tree.root
    if node == NULL:
        return NULL
    while (<Head *> node).level:
        node = (<Inner *> node).child[0]
    return items_of(node)


cdef const Item *tree_last(const Tree *tree) noexcept nogil:
    cdef void *node = tree.root
    if node == NULL:
        return NULL
    while (<Head *> node).level:
        node = (<Inner *> node).child[(<Head *> node).count - 1]
    return items_of(node) + ((<Head *> node).count - 1)


cdef void go_down(Cursor *cursor, void *node) noexcept nogil:
    """To the first item below *node*."""
    while True:
        cursor.node[cursor.levels] = node
        cursor.place[cursor.levels] = 0
        cursor.levels += 1
        if (<Head *> node).level == 0:
            return
        node = (<Inner *> node).child[0]


cdef void leave(Cursor *cursor, uint32_t depth) noexcept nogil:
    """To what comes after the node at *depth* of the path."""
    cursor.levels = depth
    while cursor.levels:
        depth = cursor.levels - 1
        if cursor.place[depth] + 1 < (<Head *> cursor.node[depth]).count:
            cursor.place[depth] += 1
            go_down(cursor, (<Inner *> cursor.node[depth]).child[cursor.place[depth]])
            return
        cursor.levels = depth


cdef void cursor_first(Cursor *cursor, const Tree *tree) noexcept nogil:
    cursor.levels = 0
    if tree.root != NULL:
        go_down(cursor, tree.root)


cdef void cursor_seek(Cursor *cursor, const Trees *trees, const Tree *tree,
                      const Item *item) noexcept nogil:
    cursor.levels = 0
    if tree.root != NULL:
        descend(trees, tree, item, cursor)
        if cursor.place[cursor.levels - 1] == (<Head *> cursor.node[cursor.levels - 1]).count:
            leave(cursor, cursor.levels - 1)


cdef inline const Item *here(const Cursor *cursor) noexcept nogil:
    cdef uint32_t leaf = cursor.levels - 1
    return items_of(cursor.node[leaf]) + cursor.place[leaf]


cdef inline void step(Cursor *cursor) noexcept nogil:
    cdef uint32_t leaf = cursor.levels - 1
    if cursor.place[leaf] + 1 < (<Head *> cursor.node[leaf]).count:
        cursor.place[leaf] += 1
    else:
        leave(cursor, leaf)


cdef const Item *cursor_next(Cursor *cursor) noexcept nogil:
    cdef const Item *item
    if cursor.levels == 0:
        return NULL
    item = here(cursor)
    step(cursor)
    return item


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
    cdef const Item *was
    cdef const Item *is_
    cdef int way
    cursor_first(&before, old)
    cursor_first(&after, new)
    while True:
        skip_shared(&before, &after)
        if before.levels == 0 and after.levels == 0:
            return 0
        was = here(&before) if before.levels else NULL
        is_ = here(&after) if after.levels else NULL
        if was == NULL:
            way = 1
        elif is_ == NULL:
            way = -1
        else:
            way = order(trees, was, is_)
        if way < 0:
            visit(context, was, NULL)
            step(&before)
        elif way > 0:
            visit(context, NULL, is_)
            step(&after)
        else:
            if was.value != is_.value:
                visit(context, was, is_)
            step(&before)
            step(&after)


cdef void free_below(Trees *trees, void *node) noexcept nogil:
    cdef uint32_t i
    if (<Head *> node).level == 0:
        reclaim_leaf(trees, <uint64_t> <size_t> node)
        return
    for i in range((<Head *> node).count):
        free_below(trees, (<Inner *> node).child[i])
    reclaim_inner(trees, <uint64_t> <size_t> node)


cdef void tree_free(Trees *trees, Tree *tree) noexcept nogil:
    if tree.root != NULL:
        free_below(trees, tree.root)
    tree.root = NULL
    tree.count = 0


cdef void measure_below(void *node, Meter *meter) noexcept nogil:
    cdef uint32_t i
    meter.nodes += 1
    if (<Head *> node).level == 0:
        meter.bytes += leaf_size((<Head *> node).capacity)
        return
    meter.bytes += sizeof(Inner)
    for i in range((<Head *> node).count):
        measure_below((<Inner *> node).child[i], meter)


cdef void tree_measure(const Tree *tree, Meter *meter) noexcept nogil:
    if tree.root != NULL:
        measure_below(tree.root, meter)


cdef tuple shown(const Item *item):
    return item.k0, item.k1, item.k2, item.value


cdef int64_t look_below(const Trees *trees, void *node, uint32_t level, bint right_edge,
                        bint root, const Item *low, list breaches) except -1:
    """Note what is wrong below *node*, whose smallest item should be *low* (NULL: unknown). How
    many items there are."""
    cdef Head *head = <Head *> node
    cdef Inner *inner = <Inner *> node
    cdef int64_t count = 0
    cdef uint32_t i
    if head.level != level:
        breaches.append(f"a node says level {head.level}, it is at {level}")
        return 0
    if head.count > most(trees, level):
        breaches.append(f"level {level}: {head.count} in a node, at most {most(trees, level)}")
    if root:
        if level and head.count < 2:
            breaches.append(f"the root has {head.count} child")
    elif head.count < least(trees, level) and not (right_edge and level == 0):
        breaches.append(f"level {level}: {head.count} in a node, at least {least(trees, level)}")
    if head.count == 0:
        breaches.append(f"level {level}: an empty node")
        return 0
    if level == 0:
        if head.count > head.capacity:
            breaches.append(f"{head.count} items in a leaf for {head.capacity}")
        # (Where no hook looks at values, that of a separator may be an older one.)
        if low != NULL and order(trees, low, items_of(node)) != 0:
            breaches.append(f"separator {shown(low)}, but the first item is "
                            f"{shown(items_of(node))}")
        for i in range(1, head.count):
            if order(trees, items_of(node) + i - 1, items_of(node) + i) >= 0:
                breaches.append(f"{shown(items_of(node) + i - 1)} before "
                                f"{shown(items_of(node) + i)}")
        return head.count
    for i in range(head.count):
        if i > 1 and order(trees, &inner.low[i - 1], &inner.low[i]) >= 0:
            breaches.append(f"separator {shown(&inner.low[i - 1])} before "
                            f"{shown(&inner.low[i])}")
        count += look_below(
            trees, inner.child[i], level - 1, right_edge and i == head.count - 1, False,
            &inner.low[i] if i else low, breaches)
    return count


cdef list tree_breaches(const Trees *trees, const Tree *tree):
    cdef list breaches = []
    cdef int64_t count = 0
    cdef Cursor cursor
    cdef const Item *last = NULL
    cdef const Item *item
    if tree.root != NULL:
        count = look_below(
            trees, tree.root, (<Head *> tree.root).level, True, True, NULL, breaches)
    if count != <int64_t> tree.count:
        breaches.append(f"{count} items, the tree says {tree.count}")
    cursor_first(&cursor, tree)
    while True:
        item = cursor_next(&cursor)
        if item == NULL:
            return breaches
        if last != NULL and order(trees, last, item) >= 0:
            breaches.append(f"the walk has {shown(last)} before {shown(item)}")
        last = item
