# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The checker of INV-N5 (the shape of a tree) and the measure of its nodes.

Reads nodes in the form of treenode.pxd, changes none; relies on ordered for cursors.
"""

from libc.stdint cimport int64_t, uint32_t

from pyresched._core.ordered cimport Cursor, Item, Tree, Trees, cursor_first, cursor_next
from pyresched._core.treenode cimport (
    Head, children, head, item_at, least, most, node_size, order, set_item,
)
from pyresched._core.versions cimport Meter


cdef void measure_below(const Trees *trees, void *node, Meter *meter) noexcept nogil:
    cdef uint32_t i
    meter.nodes += 1
    meter.bytes += node_size(
        &trees.form, head(node).level, head(node).capacity, head(node).shared)
    if head(node).level:
        for i in range(head(node).count):
            measure_below(trees, children(node)[i], meter)


cdef void tree_measure(const Trees *trees, const Tree *tree, Meter *meter) noexcept nogil:
    if tree.root != NULL:
        measure_below(trees, tree.root, meter)


cdef void tree_spoil(const Trees *trees, const Tree *tree, const Item *item) noexcept nogil:
    cdef void *node = tree.root
    while head(node).level:
        node = children(node)[0]
    set_item(&trees.form, node, 0, item)


cdef str shown(const Item *item):
    return f"({item.k0}, {item.k1}, {item.k2}): {item.value}"


cdef int64_t look_below(const Trees *trees, void *node, uint32_t level, bint right_edge,
                        bint root, const Item *low, list breaches) except -1:
    """Note what is wrong below *node*, whose smallest item should be *low* (NULL: unknown). How
    many items there are."""
    cdef Head *top = head(node)
    cdef Item one, other
    cdef int64_t count = 0
    cdef uint32_t i
    if top.level != level:
        breaches.append(f"a node says level {top.level}, it is at {level}")
        return 0
    if top.count > most(&trees.form, level):
        breaches.append(f"level {level}: {top.count} in a node, at most {most(&trees.form, level)}")
    if root:
        if level and top.count < 2:
            breaches.append(f"the root has {top.count} child")
    elif top.count < least(&trees.form, level) and not (right_edge and level == 0):
        breaches.append(
            f"level {level}: {top.count} in a node, at least {least(&trees.form, level)}")
    if top.count == 0:
        breaches.append(f"level {level}: an empty node")
        return 0
    if top.count > top.capacity:
        breaches.append(f"level {level}: {top.count} in a node for {top.capacity}")
    if top.shared > (0 if level else trees.form.words):
        breaches.append(f"level {level}: {top.shared} words shared")
    # (Where no hook looks at values, that of a separator may be an older one.)
    item_at(&trees.form, node, 0, &one)
    if level == 0 and low != NULL and order(&trees.form, low, &one) != 0:
        breaches.append(f"separator {shown(low)}, but the first item is {shown(&one)}")
    for i in range(1, top.count):
        item_at(&trees.form, node, i, &other)
        if (i > 1 or level == 0) and order(&trees.form, &one, &other) >= 0:
            breaches.append(f"level {level}: {shown(&one)} before {shown(&other)}")
        one = other
    if level == 0:
        return top.count
    for i in range(top.count):
        item_at(&trees.form, node, i, &one)
        count += look_below(
            trees, children(node)[i], level - 1, right_edge and i == top.count - 1, False,
            &one if i else low, breaches)
    return count


cdef list tree_breaches(const Trees *trees, const Tree *tree):
    cdef list breaches = []
    cdef int64_t count = 0
    cdef Cursor cursor
    cdef Item last, item
    if tree.root != NULL:
        count = look_below(
            trees, tree.root, head(tree.root).level, True, True, NULL, breaches)
    if count != <int64_t> tree.count:
        breaches.append(f"{count} items, the tree says {tree.count}")
    cursor_first(&cursor, trees, tree)
    if not cursor_next(&cursor, &last):
        return breaches
    while cursor_next(&cursor, &item):
        if order(&trees.form, &last, &item) >= 0:
            breaches.append(f"the walk has {shown(&last)} before {shown(&item)}")
        last = item
    return breaches
