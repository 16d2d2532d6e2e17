# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Cases on best-fit orders that Python cannot reach: deep ones, and each fault of INV-B11.

Part of the self-tests (see selftest): each `test_` function is one case.
"""

import random

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free

from pyresched._core.nodeorder cimport (
    LANES, Branch, Leaf, Order, order_fault, order_first, order_free, order_new, order_refresh,
    order_touch,
)

cdef enum:
    WIDTH = 3  # amounts; the last says nothing of the order


cdef class Rows:
    """The amounts of some nodes, an order of them, and the answers of a look at each."""

    cdef Order *order
    cdef int64_t *cells
    cdef uint8_t *open
    cdef uint8_t *kind
    cdef uint8_t *mask
    cdef Py_ssize_t count

    def __cinit__(self, Py_ssize_t count, most, dice):
        cdef Py_ssize_t i
        self.count = count
        self.cells = <int64_t *> calloc(count * WIDTH, sizeof(int64_t))
        self.open = <uint8_t *> calloc(count, 1)
        self.kind = <uint8_t *> calloc(count, 1)
        self.mask = <uint8_t *> calloc(count, 1)
        assert self.cells and self.open and self.kind and self.mask
        for i in range(count * WIDTH):
            self.cells[i] = dice.randint(0, most)
        for i in range(count):
            self.open[i] = dice.random() < 0.9
            self.kind[i] = dice.randrange(64)
            self.mask[i] = 1 + self.kind[i] % 2
        self.order = order_new(WIDTH, WIDTH - 1, count, WIDTH, self.open, self.kind)

    def __dealloc__(self):
        order_free(self.order)
        free(self.cells)
        free(self.open)
        free(self.kind)
        free(self.mask)

    def change(self, Py_ssize_t node, list amounts, bint open_):
        """*node* has other amounts, or takes nothing any more."""
        cdef Py_ssize_t r
        for r in range(WIDTH):
            self.cells[node * WIDTH + r] = amounts[r]
        self.open[node] = open_
        order_touch(self.order, node)

    def sound(self):
        """Bring the order up to date; whether it is as it should be, before and after."""
        before = order_fault(self.order, self.cells)
        order_refresh(self.order, self.cells)
        return not before and not order_fault(self.order, self.cells)

    def first(self, list wanted, int tier):
        """What the order says, and what a look at every node says."""
        cdef int64_t asked[WIDTH]
        cdef uint64_t kinds = 0
        cdef Py_ssize_t i, r
        found = []
        for r in range(WIDTH):
            asked[r] = wanted[r]
        for i in range(64):
            if 1 + i % 2 == tier:
                kinds |= <uint64_t> 1 << i
        for i in range(self.count):
            amounts = [self.cells[i * WIDTH + r] for r in range(WIDTH)]
            if self.open[i] and self.mask[i] == tier and all(
                [amounts[r] >= wanted[r] for r in range(WIDTH)]
            ):
                found.append((amounts[:WIDTH - 1], i))
        return (
            order_first(self.order, asked, kinds, self.mask, <uint8_t> tier),
            min(found)[1] if found else -1,
        )


def test_an_order_answers_what_a_look_at_each_node_does():
    """With few values, so that many nodes are equal, and with many."""
    dice = random.Random(5)
    for count, most in [(1, 3), (64, 2), (65, 1000), (700, 3), (5000, 10**6)]:
        rows = Rows(count, most, dice)
        assert rows.sound()
        for _ in range(30):
            for _ in range(dice.choice([1, 3, count // 10 + 1])):
                amounts = [dice.randint(-2, most) for _ in range(WIDTH)]
                rows.change(dice.randrange(count), amounts, dice.random() < 0.9)
            assert rows.sound()
            wanted = [dice.randint(0, most) for _ in range(WIDTH)]
            ours, right = rows.first(wanted, dice.choice([1, 2]))
            assert ours == right, (count, most)


def test_nodes_that_all_move_down_split_and_join_leaves_and_branches():
    """As a cluster that fills: no leaf is left nearly empty beside another, none is too full."""
    cdef Py_ssize_t i, thin = 0
    dice = random.Random(7)
    rows = Rows(12_000, 10**6, dice)
    assert rows.sound()
    branches = (<Rows> rows).order.branch_count
    assert branches > 2
    for round_ in range(60):
        for _ in range(400):
            node = dice.randrange(12_000)
            rows.change(node, [dice.randint(0, 10**6 >> round_ // 3) for _ in range(WIDTH)], True)
        assert rows.sound()
    for i in range((<Rows> rows).order.branch_count):
        thin += (<Rows> rows).order.branches[i].count == 1
    assert thin <= 1 + (<Rows> rows).order.branch_count // 2


def test_an_order_may_become_empty_and_fill_again():
    """The last node goes, and one comes."""
    dice = random.Random(11)
    rows = Rows(130, 5, dice)
    for open_ in (False, True, False, True):
        for node in range(130):
            rows.change(node, [node % 5, 1, 1], open_)
            if node % 7 == 0:
                assert rows.sound()
        assert rows.sound()
        assert rows.first([0, 0, 0], 1)[0] == rows.first([0, 0, 0], 1)[1]


def test_each_fault_of_an_order_is_seen():
    """Negative control: the check has a number for each thing that it looks at."""
    cdef Rows rows
    cdef Branch *branch
    cdef Leaf *leaf
    cdef int64_t kept
    seen = set()
    for fault in range(1, 14):
        dice = random.Random(13)
        rows = Rows(8_000, 10**6, dice)
        assert rows.sound()
        branch = rows.order.branches[0]
        leaf = branch.leaves[1]
        if fault == 1:
            branch.place = 1
        elif fault == 2:
            leaf.place = 2
        elif fault == 3:
            rows.order.where[leaf.nodes[0]] = branch.leaves[0]
        elif fault == 4:
            rows.open[leaf.nodes[0]] = 0
        elif fault == 5:
            rows.cells[leaf.nodes[0] * WIDTH + 2] += 1
        elif fault == 6:
            # Both are said to have changed, so that only their places can be held against them.
            rows.order.stale[leaf.nodes[0]] = rows.order.stale[leaf.nodes[1]] = 1
            kept = leaf.values[0]
            leaf.values[0] = leaf.values[1]
            leaf.values[1] = kept
        elif fault == 7:
            rows.order.stale[leaf.nodes[0]] = 1
            leaf.values[0] = -1
        elif fault == 8:
            branch.kinds[1] = 0
        elif fault == 9:
            branch.maxima[1] += 1
        elif fault == 10:
            leaf.values[LANES - 1] = 0
        elif fault == 11:
            rows.order.maxima[0] += 1
        elif fault == 12:
            for node in range(rows.count):
                if rows.order.where[node] == NULL:
                    rows.open[node] = 1
                    break
        else:
            for node in range(rows.count):
                if rows.order.where[node] == NULL:
                    rows.order.where[node] = leaf
                    break
        seen.add(order_fault(rows.order, rows.cells))
        # What was damaged is not walked again but to be freed.
    assert seen == set(range(1, 14)), seen


def test_a_leaf_holds_as_many_as_a_kernel_asks():
    """The numbers of the header and of the structs are one."""
    assert LANES == 64
