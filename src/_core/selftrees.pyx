# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Cases on trees that Python cannot reach: every form of a node, building, what nodes weigh.

Part of the self-tests (see selftest): each `test_` function is one case.
"""

import random
from bisect import bisect_left, bisect_right

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from pyresched._core.ordered cimport (
    Cursor, Item, Tree, Trees, cursor_next, cursor_seek, items_ascend, tree_add, tree_build,
    tree_find, tree_first, tree_free, tree_last, tree_pop, tree_put, tree_remove, trees_init,
)
from pyresched._core.treecheck cimport tree_breaches, tree_measure
from pyresched._core.versions cimport Edit, History, Meter, Pin, fail_allocations

cdef extern from "bits.h" nogil:
    uint32_t bits_below(const int64_t *words, uint32_t count, int64_t wanted)
    uint32_t bits_up_to(const int64_t *words, uint32_t count, int64_t wanted)

LOWEST, HIGHEST = -2**63, 2**63 - 1


cdef int by_value(const void *context, int64_t a, int64_t b) noexcept nogil:
    """The hook of these cases: higher values first."""
    return (a < b) - (a > b)


cdef Item item_of(key, value):
    cdef Item item
    item.k0, item.k1, item.k2 = key
    item.value = value
    return item


cdef class Forest:
    """Trees of one form, one of them, and a list that says what is in it, in order."""

    cdef History history
    cdef Edit edit
    cdef Trees trees
    cdef Tree tree
    cdef list model       # (key, minus value if a hook decides, value)
    cdef bint hooked

    def __cinit__(self, int words, int value_bytes, bint hooked, int leaf=32, int inner=32):
        self.history = History()
        self.edit = Edit(self.history, None)
        trees_init(&self.trees, NULL, NULL, words, value_bytes)
        if hooked:
            self.trees.form.compare = by_value
        self.trees.form.leaf_items = leaf
        self.trees.form.inner_ways = inner
        self.hooked = hooked
        self.model = []

    def __dealloc__(self):
        self.history.abort(self.edit)
        tree_free(&self.trees, &self.tree)

    cdef tuple entry(self, key, value):
        return (key, -value if self.hooked else 0, value)

    cdef int add(self, key, value) except -1:
        cdef Item item = item_of(key, value)
        entry = self.entry(key, value)
        at = bisect_left(self.model, entry[:2], key=lambda each: each[:2])
        there = at < len(self.model) and self.model[at][:2] == entry[:2]
        assert tree_add(&self.trees, &self.tree, &self.edit.log, &item) == (not there)
        if not there:
            self.model.insert(at, entry)
        return 0

    cdef int remove(self, key, value) except -1:
        cdef Item item = item_of(key, value), removed
        entry = self.entry(key, value)
        at = bisect_left(self.model, entry[:2], key=lambda each: each[:2])
        there = at < len(self.model) and self.model[at][:2] == entry[:2]
        assert tree_remove(&self.trees, &self.tree, &self.edit.log, &item, &removed) == there
        if there:
            assert (removed.k0, removed.k1, removed.k2) == key
            assert removed.value == self.model.pop(at)[2]
        return 0

    cdef int look(self) except -1:
        """The tree has what the list has, found in every way."""
        cdef Item item
        cdef Cursor cursor
        assert tree_breaches(&self.trees, &self.tree) == []
        assert self.tree.count == len(self.model)
        assert tree_first(&self.trees, &self.tree, &item) == bool(self.model)
        if self.model:
            assert ((item.k0, item.k1, item.k2), item.value) == self.model[0][::2]
            assert tree_last(&self.trees, &self.tree, &item)
            assert ((item.k0, item.k1, item.k2), item.value) == self.model[len(self.model) - 1][::2]
        for at in {0, len(self.model) // 3, len(self.model) - 1} if self.model else ():
            key, _, value = self.model[at]
            item = item_of(key, value)
            assert tree_find(&self.trees, &self.tree, &item, &item)
            assert ((item.k0, item.k1, item.k2), item.value) == (key, value)
            item = item_of(key, value)
            cursor_seek(&cursor, &self.trees, &self.tree, &item)
            rest = []
            while cursor_next(&cursor, &item):
                rest.append(((item.k0, item.k1, item.k2), item.value))
            assert rest == [(key, value) for key, _, value in self.model[at:]]
        return 0

    cdef int publish(self) except -1:
        self.history.prepare(self.edit)
        self.history.commit(self.edit)
        return 0

    cdef int nothing_is_left_over(self) except -1:
        """What is allocated is what this version needs."""
        cdef Meter meter
        memset(&meter, 0, sizeof(Meter))
        tree_measure(&self.trees, &self.tree, &meter)
        assert (meter.nodes, meter.bytes) == (self.trees.meter.nodes, self.trees.meter.bytes)
        return 0


def test_a_search_of_words_finds_their_place():
    """Every count to 32, words that repeat and that are as low and as high as can be."""
    cdef int64_t words[32]
    draw = random.Random(1)
    choice = [LOWEST, LOWEST + 1, -3, -1, 0, 1, 2, 5, 1000, HIGHEST - 1, HIGHEST]
    for count in range(33):
        for _ in range(20):
            given = sorted(draw.choices(choice, k=count))
            for i in range(count):
                words[i] = given[i]
            for wanted in choice:
                assert bits_below(words, count, wanted) == bisect_left(given, wanted)
                assert bits_up_to(words, count, wanted) == bisect_right(given, wanted)


def keys_of(draw, words):
    """Keys whose leading words seldom differ, so that leaves share them now and not then."""
    first = range(300) if words < 2 else [LOWEST, 0, 0, 0, 0, 0, 0, HIGHEST]
    second = [7, 7, 7, *range(200)] if words > 1 else [0]
    third = range(50) if words > 2 else [0]
    return [(draw.choice(first), draw.choice(second), draw.choice(third)) for _ in range(400)]


def test_every_form_of_a_node_holds_what_it_was_given():
    """One to three words, values of four and eight bytes, with a hook and without, in nodes of
    every size: items come and go in versions, some of them pinned."""
    cdef Forest forest
    for words in (1, 2, 3):
        for value_bytes in (4, 8):
            for hooked in (False, True):
                for nodes in (4, 5, 7, 32):
                    forest = Forest(words, value_bytes, hooked, nodes, nodes)
                    come_and_go(forest, words, value_bytes)


cdef int come_and_go(Forest forest, int words, int value_bytes) except -1:
    cdef Pin *pin = NULL
    cdef Tree now, pinned = forest.tree
    draw = random.Random(words)
    then = []
    values = [0, 1, 2, 2**31, 2**32 - 1] if value_bytes == 4 else [0, LOWEST, -1, HIGHEST]
    keys = keys_of(draw, words)
    for version in range(6):
        forest.history.begin(forest.edit, None)
        for key in draw.sample(keys, 150 if version < 4 else 60):
            if draw.random() < (0.8 if version < 3 else 0.25):
                forest.add(key, draw.choice(values))
            else:
                forest.remove(key, draw.choice(values))
        for _ in range(min(len(forest.model), 20 * (version > 3))):
            forest.remove(forest.model[0][0], forest.model[0][2])
        forest.look()
        forest.publish()
        if version == 2:
            pin = forest.history.pin()
            pinned, then = forest.tree, list(forest.model)
    now, forest.tree = forest.tree, pinned
    newest, forest.model = forest.model, then
    forest.look()
    forest.tree, forest.model = now, newest
    forest.look()
    forest.history.unpin(pin)
    forest.nothing_is_left_over()
    forest.history.begin(forest.edit, None)
    while forest.model:
        key, _, value = draw.choice(forest.model)
        forest.remove(key, value)
    forest.look()
    forest.publish()
    forest.nothing_is_left_over()
    return 0


cdef Item *items_of(list entries) except NULL:
    cdef Item *items = <Item *> malloc((len(entries) + 1) * sizeof(Item))
    for i in range(len(entries)):
        items[i] = item_of(entries[i][0], entries[i][2])
    return items


def test_a_built_tree_is_as_one_that_grew():
    """Every number of items up to a few leaves and some beyond: full leaves, all its shape."""
    cdef Forest forest
    cdef Item *items
    cdef Item item
    for nodes, most in ((4, 90), (5, 140), (32, 70)):
        for count in [*range(most), 32 * 32, 32 * 32 + 1, 32 * 40 + 3]:
            forest = Forest(2, 4, False, nodes, nodes)
            forest.model = [((n // 50, n, 0), 0, n) for n in range(count)]
            items = items_of(forest.model)
            try:
                forest.history.begin(forest.edit, None)
                assert items_ascend(&forest.trees, items, count)
                tree_build(&forest.trees, &forest.tree, &forest.edit.log, items, count)
            finally:
                free(items)
            forest.look()
            # It goes on as any tree.
            forest.add((0, 10**6, 0), 1)
            forest.remove((0, 0, 0), 0)
            item = item_of((0, 1, 0), 77)
            assert tree_put(&forest.trees, &forest.tree, &forest.edit.log, &item) == (count < 2)
            assert tree_pop(&forest.trees, &forest.tree, &forest.edit.log, &item) == 1
            assert (item.k1, item.value) == (1, 77)
            assert tree_breaches(&forest.trees, &forest.tree) == []
            forest.publish()
            forest.nothing_is_left_over()


def test_items_that_do_not_ascend_are_seen():
    """Equal ones and wrong ones, at every place; a hook may tell equal words apart."""
    cdef Forest forest = Forest(2, 4, False), hooked = Forest(2, 4, True)
    cdef Item *items = items_of([((0, n, 0), 0, 90 - n) for n in range(9)])
    try:
        assert items_ascend(&forest.trees, items, 9)
        for at in range(1, 9):
            items[at].k1 = at - 1
            assert not items_ascend(&forest.trees, items, 9)
            assert items_ascend(&hooked.trees, items, at + 1)
            items[at].k0 = -1
            assert not items_ascend(&hooked.trees, items, 9)
            items[at].k0 = 0
            items[at].k1 = at
    finally:
        free(items)


def test_building_without_memory_leaves_an_empty_tree():
    """Every allocation failing in turn, at the leaves and above."""
    cdef Forest forest = Forest(2, 4, False, 4, 4)
    cdef Item *items
    forest.model = [((0, n, 0), 0, n) for n in range(150)]
    items = items_of(forest.model)
    failures = 0
    try:
        forest.history.begin(forest.edit, None)
        while True:
            fail_allocations(failures)
            try:
                tree_build(&forest.trees, &forest.tree, &forest.edit.log, items, 150)
                break
            except MemoryError:
                failures += 1
                assert forest.tree.root == NULL and forest.tree.count == 0
                forest.nothing_is_left_over()
            finally:
                fail_allocations(-1)
        assert failures > 38 + 10 + 3
        forest.look()
        forest.publish()
        forest.nothing_is_left_over()
    finally:
        free(items)


def weight(list entries, bint built, int value_bytes=4):
    """Bytes of nodes for each item of a lane."""
    cdef Forest forest = Forest(2, value_bytes, False)
    cdef Item item
    cdef Item *items
    cdef Meter meter
    forest.history.begin(forest.edit, None)
    if built:
        items = items_of(entries)
        tree_build(&forest.trees, &forest.tree, &forest.edit.log, items, len(entries))
        free(items)
    for key, _, value in () if built else entries:
        item = item_of(key, value)
        tree_add(&forest.trees, &forest.tree, &forest.edit.log, &item)
    forest.publish()
    assert tree_breaches(&forest.trees, &forest.tree) == []
    memset(&meter, 0, sizeof(Meter))
    tree_measure(&forest.trees, &forest.tree, &meter)
    return <double> meter.bytes / len(entries)


def test_nodes_weigh_little():
    """A lane: one urgency or a few, submit times, slots. Half-full leaves would double it."""
    draw = random.Random(3)
    alike = [((7 << 32, 10**18 + n, 0), 0, n) for n in range(10_000)]
    mixed = [((n // 400 << 32, 10**18 + n, 0), 0, n) for n in range(10_000)]
    shuffled = [draw.sample(entries, len(entries)) for entries in (alike, mixed)]
    assert weight(alike, True) < 14
    assert weight(alike, False) < 15
    assert weight(mixed, True) < 15
    assert weight(shuffled[0], False) < 20
    assert weight(shuffled[1], False) < 21
    # A few urgencies, each with jobs that come in order.
    some = [((draw.randrange(20) << 32, 10**18 + n, 0), 0, n) for n in range(10_000)]
    assert weight(some, False) < 18
    # Many small queues: 16 bytes of a head, room for four.
    assert weight(alike[:3], False) <= (16 + 8 + 4 * 12) / 3
    # A leaf of a million different urgencies shares no word.
    assert weight([((n, n, 0), 0, n) for n in range(10_000)], True) < 23
