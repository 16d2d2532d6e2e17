# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""`OrderedIndex`: a persistent map from an order key to an integer, by itself.

Keys are tuples of one to three int64, all of one length. Relies on ordered and versions; keeps
that a snapshot never changes (INV-N1) and an aborted transaction leaves no trace (INV-N2).
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from pyresched._core.bits cimport whole
from pyresched._core.collector cimport pause, resume
from pyresched._core.indexbase cimport Index, IndexReader
from pyresched._core.ordered cimport (
    Cursor, Item, Tree, cursor_first, cursor_next, cursor_seek, items_ascend, tree_build,
    tree_diff, tree_find, tree_first, tree_free, tree_last, tree_pop, tree_put, tree_remove,
    trees_init,
)
from pyresched._core.treecheck cimport tree_breaches, tree_measure
from pyresched._core.versions cimport EDIT_OPEN, Meter, allocation_fails


cdef extern from "Python.h":
    bint is_buffer "PyObject_CheckBuffer"(object)


cdef enum:
    MAX_WIDTH = 3


cdef int read_item(OrderedIndex index, object key, Item *item) except -1:
    """The key as an item without a value. Raises TypeError, ValueError, OverflowError."""
    cdef Py_ssize_t width
    if not isinstance(key, tuple):
        raise TypeError(f"an order key is a tuple of int, got {type(key).__name__}")
    width = len(<tuple> key)
    if width != index.width:
        if index.width:
            raise ValueError(f"the keys of this index have {index.width} parts, got {width}")
        if not 1 <= width <= MAX_WIDTH:
            raise ValueError(f"an order key has 1 to {MAX_WIDTH} parts, got {width}")
    item.k0 = whole((<tuple> key)[0])
    item.k1 = whole((<tuple> key)[1]) if width > 1 else 0
    item.k2 = whole((<tuple> key)[2]) if width > 2 else 0
    item.value = 0
    # All parts are good: the first key decides for the others.
    if width != index.width:
        set_width(index, <int> width)
    return 0


cdef void set_width(OrderedIndex index, int width) noexcept:
    """Let keys have *width* parts, 0: as many as the next one has. No tree has an item yet."""
    index.width = width
    index.trees.form.words = width if width else MAX_WIDTH


cdef object key_of(OrderedIndex index, const Item *item):
    if index.width == 1:
        return (item.k0,)
    if index.width == 2:
        return (item.k0, item.k1)
    return (item.k0, item.k1, item.k2)


cdef Item *read_items(OrderedIndex index, object keys, object values,
                      Py_ssize_t *count) except NULL:
    """Items of keys and values (None: no values); the caller frees them. All or none."""
    cdef const int64_t[:, ::1] rows = None
    cdef const int64_t[::1] column = None
    cdef list given = None
    cdef list wanted = None
    cdef Item *items
    cdef Py_ssize_t i, number
    cdef int width = index.width
    if is_buffer(keys):
        rows = keys
        if rows.shape[1] != width and width:
            raise ValueError(f"the keys of this index have {width} parts, got {rows.shape[1]}")
        if not 1 <= rows.shape[1] <= MAX_WIDTH:
            raise ValueError(f"an order key has 1 to {MAX_WIDTH} parts, got {rows.shape[1]}")
        number = rows.shape[0]
    else:
        given = list(keys)
        number = len(given)
    if values is not None:
        if is_buffer(values):
            column = values
            i = column.shape[0]
        else:
            wanted = list(values)
            i = len(wanted)
        if i != number:
            raise ValueError(f"{number} keys, but {i} values")
    items = NULL if allocation_fails() else <Item *> malloc((number + 1) * sizeof(Item))
    if items == NULL:
        raise MemoryError
    try:
        for i in range(number):
            if given is None:
                items[i].k0 = rows[i, 0]
                items[i].k1 = rows[i, 1] if rows.shape[1] > 1 else 0
                items[i].k2 = rows[i, 2] if rows.shape[1] > 2 else 0
                items[i].value = 0
            else:
                read_item(index, given[i], items + i)
            if column is not None:
                items[i].value = column[i]
            elif wanted is not None:
                items[i].value = whole(wanted[i])
    except:  # noqa: E722
        free(items)
        set_width(index, width)
        raise
    if given is None:
        set_width(index, <int> rows.shape[1])
    count[0] = number
    return items


# Borrowed: the call that walks holds them.
cdef struct Listed:
    PyObject *index
    PyObject *changed
    PyObject *added
    PyObject *removed


cdef int list_change(void *context, const Item *old, const Item *new) except -1:
    cdef Listed *listed = <Listed *> context
    cdef OrderedIndex index = <OrderedIndex> listed.index
    if old == NULL:
        (<list> listed.added).append(key_of(index, new))
    elif new == NULL:
        (<list> listed.removed).append(key_of(index, old))
    else:
        (<list> listed.changed).append(key_of(index, new))
    return 0


cdef enum:
    KEYS = 0
    VALUES = 1
    PAIRS = 2


@cython.final
cdef class OrderedIterator:
    """Walks a snapshot in ascending order of key."""

    cdef OrderedSnapshot snapshot
    cdef Cursor cursor
    cdef int what

    def __iter__(self):
        return self

    def __next__(self):
        cdef Item item
        # The first holds for one that was not made by `walk`.
        if self.snapshot is None or not cursor_next(&self.cursor, &item):
            raise StopIteration
        if self.what == VALUES:
            return item.value
        if self.what == KEYS:
            return key_of(self.snapshot.index, &item)
        return key_of(self.snapshot.index, &item), item.value


cdef OrderedIterator walk(OrderedSnapshot snapshot, object start, int what):
    cdef OrderedIterator iterator = OrderedIterator.__new__(OrderedIterator)
    cdef Item item
    iterator.snapshot = snapshot
    iterator.what = what
    if start is None:
        cursor_first(&iterator.cursor, &snapshot.index.trees, &snapshot.tree)
    else:
        read_item(snapshot.index, start, &item)
        cursor_seek(&iterator.cursor, &snapshot.index.trees, &snapshot.tree, &item)
    return iterator


@cython.no_gc
cdef class OrderedReader(IndexReader):
    """What a snapshot and a transaction have in common: the reads."""

    def get(self, key, default=None):
        """The value of *key*, or *default*.

        Raises TypeError if *key* is no tuple of int, ValueError if it has another length than
        the keys of this index, OverflowError if a part is no int64.
        """
        cdef Item item
        if self.state[0] != EDIT_OPEN:
            self._check()
        read_item(self.index, key, &item)
        if tree_find(&self.index.trees, &self.tree, &item, &item):
            return item.value
        return default

    def get_many(self, keys, default=None):
        """The values of *keys* as a list, *default* for those that are not there."""
        cdef Py_ssize_t i, count = 0
        cdef Item *items
        cdef list values = []
        self._check()
        items = read_items(self.index, keys, None, &count)
        try:
            for i in range(count):
                if tree_find(&self.index.trees, &self.tree, items + i, items + i):
                    values.append(items[i].value)
                else:
                    values.append(default)
        finally:
            free(items)
        return values

    def __contains__(self, key):
        cdef Item item
        self._check()
        read_item(self.index, key, &item)
        return tree_find(&self.index.trees, &self.tree, &item, &item)

    def __len__(self):
        self._check()
        return self.tree.count

    def first(self):
        """The pair of the lowest key and its value, or None when there is none."""
        cdef Item item
        self._check()
        if not tree_first(&self.index.trees, &self.tree, &item):
            return None
        return key_of(self.index, &item), item.value

    def last(self):
        """The pair of the highest key and its value, or None when there is none."""
        cdef Item item
        self._check()
        if not tree_last(&self.index.trees, &self.tree, &item):
            return None
        return key_of(self.index, &item), item.value

    def check(self):
        """Every breach of the structure's invariants, as a list of sentences."""
        self._check()
        return tree_breaches(&self.index.trees, &self.tree)


@cython.final
@cython.no_gc
cdef class OrderedSnapshot(OrderedReader):
    """The index at one version: never changes, and keeps only what it can see alive."""

    def __init__(self):
        raise TypeError("snapshots are made by OrderedIndex.snapshot()")

    @property
    def version(self):
        """How many commits came before."""
        return self.pin.version

    def __iter__(self):
        return walk(self, None, KEYS)

    def items(self, start=None):
        """Pairs of key and value in ascending order of key, from the key *start* on."""
        return walk(self, start, PAIRS)

    def keys(self, start=None):
        """Keys in ascending order, from the key *start* on."""
        return walk(self, start, KEYS)

    def values(self, start=None):
        """Values in ascending order of key, from the key *start* on."""
        return walk(self, start, VALUES)

    def diff(self, OrderedSnapshot older not None):
        """What changed since *older*, a snapshot of the same index.

        Three lists of keys, each ascending: those with another value, those only here, those
        only there. Takes time in the number of differences, not of keys. Raises ValueError for a
        snapshot of another index.
        """
        cdef Listed listed
        cdef list changed = [], added = [], removed = []
        if older.index is not self.index:
            raise ValueError("these are snapshots of two indices; compare those of one")
        listed.index = <PyObject *> self.index
        listed.changed = <PyObject *> changed
        listed.added = <PyObject *> added
        listed.removed = <PyObject *> removed
        tree_diff(&self.index.trees, &older.tree, &self.tree, list_change, &listed)
        return changed, added, removed

    def memory(self):
        """What this version alone needs: `nodes` and `node_bytes`. Visits them all."""
        cdef Meter meter
        meter.nodes = 0
        meter.bytes = 0
        tree_measure(&self.index.trees, &self.tree, &meter)
        return {"nodes": meter.nodes, "node_bytes": meter.bytes}

    def __repr__(self):
        return f"<OrderedSnapshot of version {self.version}: {self.tree.count} keys>"


@cython.final
@cython.no_gc
cdef class OrderedTxn(OrderedReader):
    """The writer's changes, published as one version or not at all.

    A context manager: left normally it commits, left by an exception it aborts. Reads see its
    own writes. Every use after the end raises TxnClosed.
    """

    def __init__(self):
        raise TypeError("transactions are made by OrderedIndex.write()")

    def __del__(self):
        self.forsaken()

    def __enter__(self):
        self._check()
        return self

    def __exit__(self, kind, error, trace):
        self.leave(kind)

    def add(self, key, value):
        """Put *value* (an int64) under *key*, in the place of the one that is there, if any.
        Whether the key is new. Raises as `get` does."""
        cdef Item item
        read_item(self.index, key, &item)
        item.value = whole(value)
        # Asking for an integer may have run code that ended this transaction.
        self._check()
        return tree_put(&self.index.trees, &self.tree, &self.edit.log, &item) == 1

    def add_many(self, keys, values):
        """Put each of *values* under the key at its place; of equal keys the last one counts.

        *keys* are tuples or an int64 buffer of two dimensions, *values* integers or an int64
        buffer. How many keys are new. Nothing is added if a key or value cannot be used (errors
        as in `add`; ValueError if there are not as many of one as of the other). Ascending keys
        are fastest and fill the nodes best.
        """
        cdef Py_ssize_t i, count = 0, new = 0
        cdef Item *items
        self._check()
        items = read_items(self.index, keys, values, &count)
        try:
            # Asking for integers may have run code that ended this transaction.
            self._check()
            if self.tree.root == NULL and items_ascend(&self.index.trees, items, count):
                tree_build(&self.index.trees, &self.tree, &self.edit.log, items, count)
                return count
            for i in range(count):
                new += tree_put(&self.index.trees, &self.tree, &self.edit.log, items + i)
        finally:
            free(items)
        return new

    def remove(self, key):
        """Take *key* out. Whether it was there. Raises as `get` does."""
        cdef Item item
        self._check()
        read_item(self.index, key, &item)
        return tree_remove(&self.index.trees, &self.tree, &self.edit.log, &item, NULL) == 1

    def remove_many(self, keys):
        """Take each of *keys* out. How many were there. Nothing goes if one is no key."""
        cdef Py_ssize_t i, count = 0, found = 0
        cdef Item *items
        self._check()
        items = read_items(self.index, keys, None, &count)
        try:
            self._check()
            for i in range(count):
                found += tree_remove(
                    &self.index.trees, &self.tree, &self.edit.log, items + i, NULL)
        finally:
            free(items)
        return found

    def pop_first(self):
        """Take out the lowest key: the pair of it and its value, or None when there is none."""
        cdef Item item
        self._check()
        if not tree_first(&self.index.trees, &self.tree, &item):
            return None
        pair = (key_of(self.index, &item), item.value)
        tree_pop(&self.index.trees, &self.tree, &self.edit.log, &item)
        return pair

    def __iter__(self):
        return iter([key for key, _ in self.items()])

    def items(self):
        """Pairs of key and value as they are now, in ascending order of key."""
        cdef Cursor cursor
        cdef Item item
        cdef list pairs = []
        cdef bint were
        self._check()
        were = pause()
        try:
            cursor_first(&cursor, &self.index.trees, &self.tree)
            while cursor_next(&cursor, &item):
                pairs.append((key_of(self.index, &item), item.value))
        finally:
            resume(were)
        return iter(pairs)

    cdef void publish(self) noexcept:
        self.index.published = self.tree

    def commit(self):
        """Publish. The number of the new version."""
        return self.commit_all()

    def abort(self):
        """Drop all changes."""
        return self.abort_all()


@cython.final
@cython.no_gc
cdef class OrderedIndex(Index):
    """A persistent map from an order key to int64, with one writer and any number of snapshots.

    A key is a tuple of one to three int64; all keys of an index have the same length: `width`,
    given, or that of the first key. *leaf* and *inner* (items and children in a node, 4 to 32) are
    for tests.
    """

    def __cinit__(self, *, int width=0, int leaf=32, int inner=32):
        if not 0 <= width <= MAX_WIDTH:
            raise ValueError(f"width must be from 1 to {MAX_WIDTH}, got {width}")
        if not (4 <= leaf <= 32 and 4 <= inner <= 32):
            raise ValueError(f"leaf and inner must be from 4 to 32, got {leaf} and {inner}")
        trees_init(&self.trees, NULL, NULL, MAX_WIDTH, sizeof(int64_t))
        self.trees.form.leaf_items = leaf
        self.trees.form.inner_ways = inner
        set_width(self, width)

    def __dealloc__(self):
        tree_free(&self.trees, &self.published)

    def __len__(self):
        return self.published.count

    def write(self, timeout=None):
        """A transaction. Waits up to *timeout* seconds for another writer's end (None: for ever),
        then raises WriterBusy, as it does at once if this thread is that writer."""
        cdef OrderedTxn txn = OrderedTxn.__new__(OrderedTxn)
        txn.begin(self, timeout)
        txn.index = self
        txn.tree = self.published
        return txn

    def snapshot(self):
        """The current version."""
        cdef OrderedSnapshot snapshot = OrderedSnapshot.__new__(OrderedSnapshot)
        snapshot.hold(self)
        snapshot.index = self
        snapshot.tree = self.published
        return snapshot

    def add(self, key, value):
        """One `OrderedTxn.add` as a version of its own. Whether the key is new."""
        cdef Item item
        cdef Tree working
        cdef int new
        read_item(self, key, &item)
        item.value = whole(value)
        self.begin_step()
        working = self.published
        try:
            new = tree_put(&self.trees, &working, &self.single.log, &item)
            self.history.prepare(self.single)
        except:  # noqa: E722
            if self.history.give_up(self.single):
                self.published = working
            raise
        self.published = working
        self.history.commit(self.single)
        return new == 1

    def remove(self, key):
        """One `OrderedTxn.remove` as a version of its own. Whether *key* was there."""
        cdef Item item
        cdef Tree working
        cdef int found
        read_item(self, key, &item)
        self.begin_step()
        working = self.published
        try:
            found = tree_remove(&self.trees, &working, &self.single.log, &item, NULL)
            self.history.prepare(self.single)
        except:  # noqa: E722
            if self.history.give_up(self.single):
                self.published = working
            raise
        self.published = working
        self.history.commit(self.single)
        return found == 1

    def pop_first(self):
        """One `OrderedTxn.pop_first` as a version of its own."""
        cdef Tree working
        cdef Item item
        cdef object popped = None
        self.history.begin_at_once(self.single)
        working = self.published
        try:
            if tree_first(&self.trees, &working, &item):
                popped = (key_of(self, &item), item.value)
                # From here on no Python runs.
                self.history.change_in_place(self.single)
                tree_pop(&self.trees, &working, &self.single.log, &item)
            self.history.prepare(self.single)
        except:  # noqa: E722
            if self.history.give_up(self.single):
                self.published = working
            raise
        self.published = working
        self.history.commit(self.single)
        return popped

    def memory(self):
        """What is allocated: `nodes` and `node_bytes` in all versions that somebody reads, and
        `waiting` items on dead lists."""
        return {
            "nodes": self.trees.meter.nodes,
            "node_bytes": self.trees.meter.bytes,
            "waiting": sum([waiting for _, waiting in self.history.pinned]),
        }

    def __repr__(self):
        return f"<OrderedIndex at version {self.version}: {self.published.count} keys>"
