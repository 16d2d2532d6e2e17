# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""`IdIndex`: a persistent map from id to integer, by itself.

An entry is a slot of the id column, written once: an update takes a new slot, so that a
difference of two versions is a difference of slots. Relies on hamt, ids and versions; keeps that
a snapshot never changes (INV-N1), an aborted transaction leaves no trace (INV-N2) and no order
follows the hash (INV-N7).
"""

cimport cython
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from pyresched._core.bits cimport prefetch, whole
from pyresched._core.hamt cimport (
    Changes, Hamt, Path, changes_free, hamt_breaches, hamt_diff, hamt_find, hamt_find_many,
    hamt_free, hamt_measure, hamt_put_at, hamt_remove_at, hamt_seek, hamt_slots, hamt_warm,
    maps_init,
)
from pyresched._core.ids cimport (
    NOWHERE, Entry, IdColumn, Key, born, entry_at, read_key, retire_slot, slot_id, sort_slots,
    take_slot,
)
from pyresched._core.indexbase cimport Index, Reader
from pyresched._core.versions cimport (
    EDIT_OPEN, EditLog, Meter, allocation_fails, make_room, owns,
)


cdef extern from "Python.h":
    object PySequence_Fast(object sequence, const char *message)
    Py_ssize_t PySequence_Fast_GET_SIZE(object)
    PyObject **PySequence_Fast_ITEMS(object)


cdef enum:
    ON_STACK = 64      # keys; more come from the heap
    READ_AHEAD = 12     # strings that are fetched ahead of their reading
    NO_GIL_FROM = 2048  # keys: fewer are found before another thread could take over
    AHEAD = 32          # keys whose nodes are fetched ahead of their change
    OUT_OF_REACH = 2_000  # ids: a smaller map is near anyway


cdef int put(IdIndex index, Hamt *map_, EditLog *log, const Key *key, int64_t value) except -1:
    """Let the id lead to *value*."""
    cdef Path path
    cdef uint32_t before = hamt_seek(&index.maps, map_, key, &path), slot
    cdef Entry *entry
    # More than any one change needs, so that what follows the change cannot fail.
    make_room(log, 128)
    if before != NOWHERE:
        entry = entry_at(&index.ids.column, before)
        if entry.value == value:
            return 0
        if owns(log, born(entry)):
            # Nobody else can see the slot yet.
            entry.value = value
            return 0
    slot = take_slot(&index.ids.column, log, key, value)
    try:
        hamt_put_at(&index.maps, map_, log, key, slot, &path)
    except MemoryError:
        retire_slot(&index.ids.column, log, slot)
        raise
    if before != NOWHERE:
        retire_slot(&index.ids.column, log, before)
    return 0


cdef bint take_away(IdIndex index, Hamt *map_, EditLog *log, const Key *key) except -1:
    """Take the id out. Whether it was there."""
    cdef Path path
    cdef uint32_t before = hamt_seek(&index.maps, map_, key, &path)
    if before == NOWHERE:
        return False
    make_room(log, 128)
    hamt_remove_at(&index.maps, map_, log, key, &path)
    retire_slot(&index.ids.column, log, before)
    return True


cdef inline void fetch_text(const void *id_) noexcept nogil:
    """Ask memory for a str and its first characters."""
    prefetch(id_)
    prefetch(<const char *> id_ + 64)


cdef Key *read_keys(IdIndex index, object sequence, Key *few) except NULL:
    """The keys of all ids of a PySequence_Fast, in *few* if there is room. All or none."""
    cdef Py_ssize_t i, count = PySequence_Fast_GET_SIZE(sequence)
    cdef PyObject **items = PySequence_Fast_ITEMS(sequence)
    cdef Key *keys = few
    if count > ON_STACK:
        keys = NULL if allocation_fails() else <Key *> malloc(count * sizeof(Key))
        if keys == NULL:
            raise MemoryError
    try:
        for i in range(min(count, <Py_ssize_t> READ_AHEAD)):
            fetch_text(items[i])
        for i in range(count):
            if i + READ_AHEAD < count:
                fetch_text(items[i + READ_AHEAD])
            read_key(&index.ids.column, <object> items[i], keys + i)
    except:  # noqa: E722
        if keys != few:
            free(keys)
        raise
    return keys


cdef int64_t *read_values(object sequence, Py_ssize_t count, int64_t *few) except NULL:
    """*count* integers, in *few* if there is room."""
    cdef const int64_t[::1] column = None
    cdef Py_ssize_t i, length
    cdef int64_t *values = few
    cdef object items = None
    if isinstance(sequence, (list, tuple)):
        items = sequence
    else:
        try:
            column = sequence
        except (TypeError, ValueError):
            items = list(sequence)
    length = column.shape[0] if items is None else len(items)
    if length != count:
        raise ValueError(f"{count} ids, but {length} values")
    if count > ON_STACK:
        values = NULL if allocation_fails() else <int64_t *> malloc(count * sizeof(int64_t))
        if values == NULL:
            raise MemoryError
    try:
        if items is None:
            for i in range(count):
                values[i] = column[i]
        else:
            i = 0
            for value in items:
                if i == count:
                    raise ValueError("the values changed in length meanwhile")
                values[i] = whole(value)
                i += 1
            if i < count:
                raise ValueError("the values changed in length meanwhile")
    except:  # noqa: E722
        if values != few:
            free(values)
        raise
    return values


cdef uint32_t *sorted_slots(IdIndex index, const Hamt *map_) except NULL:
    """All slots in ascending order of id; the caller frees them."""
    cdef uint32_t *slots = NULL
    if not allocation_fails():
        slots = <uint32_t *> malloc(max(<uint64_t> 1, map_.count) * sizeof(uint32_t))
    if slots == NULL:
        raise MemoryError
    try:
        with nogil:
            hamt_slots(&index.maps, map_, slots)
            sort_slots(&index.ids.column, slots, map_.count)
    except MemoryError:
        free(slots)
        raise
    return slots


@cython.final
cdef class IdIterator:
    """Walks a snapshot in ascending order of id."""

    cdef IdReader reader
    cdef uint32_t *slots
    cdef uint64_t next_
    cdef bint with_values

    def __dealloc__(self):
        free(self.slots)

    def __iter__(self):
        return self

    def __next__(self):
        cdef uint32_t slot
        if self.reader is None or self.next_ == self.reader.map.count:
            raise StopIteration
        slot = self.slots[self.next_]
        self.next_ += 1
        id_ = slot_id(&self.reader.index.ids.column, slot)
        if not self.with_values:
            return id_
        return id_, entry_at(&self.reader.index.ids.column, slot).value


cdef IdIterator walk(IdReader reader, bint with_values):
    cdef IdIterator iterator = IdIterator.__new__(IdIterator)
    iterator.slots = sorted_slots(reader.index, &reader.map)
    iterator.reader = reader
    iterator.with_values = with_values
    return iterator


cdef list sorted_ids(IdIndex index, uint32_t *slots, size_t count):
    cdef list ids = []
    cdef size_t i
    sort_slots(&index.ids.column, slots, count)
    for i in range(count):
        ids.append(slot_id(&index.ids.column, slots[i]))
    return ids


@cython.no_gc
cdef class IdReader(Reader):
    """What a snapshot and a transaction have in common: the reads."""

    def get(self, id, default=None):
        """The value of *id*, or *default*.

        Raises TypeError if *id* is no str, ValueError if it is empty or longer than 255 bytes of
        UTF-8, UnicodeEncodeError if it has surrogates.
        """
        cdef Key key
        cdef uint32_t slot
        if self.state[0] != EDIT_OPEN:
            self._check()
        read_key(&self.index.ids.column, id, &key)
        slot = hamt_find(&self.index.maps, &self.map, &key)
        if slot == NOWHERE:
            return default
        return entry_at(&self.index.ids.column, slot).value

    def get_many(self, ids, default=None):
        """The values of *ids* as a list, *default* for those that are not there.

        Much faster than a loop over `get`: memory is fetched ahead. Raises as `get` does.
        """
        cdef Key few[ON_STACK]
        cdef uint32_t few_slots[ON_STACK]
        cdef uint32_t *slots = few_slots
        cdef Key *keys
        cdef Py_ssize_t i, count
        cdef list values
        self._check()
        if not isinstance(ids, list):
            ids = tuple(ids)
        count = PySequence_Fast_GET_SIZE(ids)
        if count >= NO_GIL_FROM:
            # Keeps every str alive while other threads run.
            ids = tuple(ids)
            count = PySequence_Fast_GET_SIZE(ids)
        keys = read_keys(self.index, ids, few)
        try:
            if count > ON_STACK:
                slots = NULL if allocation_fails() else <uint32_t *> malloc(
                    count * sizeof(uint32_t))
                if slots == NULL:
                    raise MemoryError
            if count >= NO_GIL_FROM:
                with nogil:
                    hamt_find_many(&self.index.maps, &self.map, keys, slots, count)
            else:
                hamt_find_many(&self.index.maps, &self.map, keys, slots, count)
            values = PyList_New(count)
            for i in range(count):
                value = default
                if slots[i] != NOWHERE:
                    value = entry_at(&self.index.ids.column, slots[i]).value
                Py_INCREF(value)
                PyList_SET_ITEM(values, i, value)
            return values
        finally:
            if keys != few:
                free(keys)
            if slots != few_slots:
                free(slots)

    def __contains__(self, id):
        cdef Key key
        self._check()
        read_key(&self.index.ids.column, id, &key)
        return hamt_find(&self.index.maps, &self.map, &key) != NOWHERE

    def __len__(self):
        self._check()
        return self.map.count

    def check(self):
        """Every breach of the structure's invariants, as a list of sentences."""
        self._check()
        return hamt_breaches(&self.index.maps, &self.map)


@cython.final
@cython.no_gc
cdef class IdSnapshot(IdReader):
    """The index at one version: never changes, and keeps only what it can see alive."""

    def __init__(self):
        raise TypeError("snapshots are made by IdIndex.snapshot()")

    @property
    def version(self):
        """How many commits came before."""
        return self.pin.version

    def __iter__(self):
        return walk(self, False)

    def items(self):
        """Pairs of id and value in ascending order of id (of its UTF-8 bytes)."""
        return walk(self, True)

    def diff(self, IdSnapshot older not None):
        """What changed since *older*, a snapshot of the same index.

        Three lists of ids, each ascending: those with another value, those only here, those only
        there. Takes time in the number of differences, not of ids. Raises ValueError for a
        snapshot of another index.
        """
        cdef Changes changes
        cdef uint32_t *slots
        cdef size_t i, changed = 0, added = 0, removed = 0
        cdef Entry *old
        if older.index is not self.index:
            raise ValueError("these are snapshots of two indices; compare those of one")
        hamt_diff(&self.index.maps, &older.map, &self.map, &changes)
        try:
            slots = NULL
            if not allocation_fails():
                slots = <uint32_t *> malloc((3 * changes.count + 1) * sizeof(uint32_t))
            if slots == NULL:
                raise MemoryError
            try:
                for i in range(changes.count):
                    if changes.items[i].old == NOWHERE:
                        slots[changes.count + added] = changes.items[i].new
                        added += 1
                    elif changes.items[i].new == NOWHERE:
                        slots[2 * changes.count + removed] = changes.items[i].old
                        removed += 1
                    else:
                        # Set to another value and back again is no change.
                        old = entry_at(&self.index.ids.column, changes.items[i].old)
                        if (old.value != entry_at(&self.index.ids.column,
                                                  changes.items[i].new).value):
                            slots[changed] = changes.items[i].new
                            changed += 1
                return (
                    sorted_ids(self.index, slots, changed),
                    sorted_ids(self.index, slots + changes.count, added),
                    sorted_ids(self.index, slots + 2 * changes.count, removed),
                )
            finally:
                free(slots)
        finally:
            changes_free(&changes)

    def memory(self):
        """What this version alone needs: `nodes` and `node_bytes` of the map. Visits them all."""
        cdef Meter meter
        meter.nodes = 0
        meter.bytes = 0
        hamt_measure(&self.map, &meter)
        return {"nodes": meter.nodes, "node_bytes": meter.bytes}

    def __repr__(self):
        return f"<IdSnapshot of version {self.version}: {self.map.count} ids>"


@cython.final
@cython.no_gc
cdef class IdTxn(IdReader):
    """The writer's changes, published as one version or not at all.

    A context manager: left normally it commits, left by an exception it aborts. Reads see its
    own writes. Every use after the end raises TxnClosed.
    """

    def __init__(self):
        raise TypeError("transactions are made by IdIndex.write()")

    def __del__(self):
        self.forsaken()

    def __enter__(self):
        self._check()
        return self

    def __exit__(self, kind, error, trace):
        self.leave(kind)

    def set(self, id, value):
        """Let *id* lead to *value* (an int64). Raises as `get` does, and OverflowError."""
        cdef Key key
        cdef int64_t number = whole(value)
        self._check()
        read_key(&self.index.ids.column, id, &key)
        put(self.index, &self.map, &self.edit.log, &key, number)

    def set_many(self, ids, values):
        """Let each of *ids* lead to the value at its place; of equal ids the last one counts.

        *values* are integers or an int64 buffer. Nothing is set if an id or a value cannot be
        used (errors as in `set`; ValueError if there are not as many of one as of the other).
        """
        cdef Key few[ON_STACK]
        cdef int64_t few_values[ON_STACK]
        cdef Key *keys
        cdef int64_t *numbers
        cdef Py_ssize_t i, at, group, count
        self._check()
        if not isinstance(ids, list):
            ids = tuple(ids)
        count = PySequence_Fast_GET_SIZE(ids)
        # First the values: asking them for their integers may run their code.
        numbers = read_values(values, count, few_values)
        keys = NULL
        try:
            if PySequence_Fast_GET_SIZE(ids) != count:
                raise ValueError("the ids changed in number meanwhile")
            self._check()
            keys = read_keys(self.index, ids, few)
            at = 0
            while at < count:
                group = min(<Py_ssize_t> AHEAD, count - at)
                if self.map.count > OUT_OF_REACH:
                    hamt_warm(&self.index.maps, &self.map, keys + at, group)
                for i in range(at, at + group):
                    put(self.index, &self.map, &self.edit.log, keys + i, numbers[i])
                at += group
        finally:
            if keys != few:
                free(keys)
            if numbers != few_values:
                free(numbers)

    def delete(self, id):
        """Take *id* out. Whether it was there. Raises as `get` does."""
        cdef Key key
        self._check()
        read_key(&self.index.ids.column, id, &key)
        return take_away(self.index, &self.map, &self.edit.log, &key)

    def delete_many(self, ids):
        """Take each of *ids* out. How many were there. Nothing is taken out if one is no id."""
        cdef Key few[ON_STACK]
        cdef Key *keys
        cdef Py_ssize_t i, found = 0
        self._check()
        if not isinstance(ids, list):
            ids = tuple(ids)
        keys = read_keys(self.index, ids, few)
        try:
            for i in range(PySequence_Fast_GET_SIZE(ids)):
                found += take_away(self.index, &self.map, &self.edit.log, keys + i)
        finally:
            if keys != few:
                free(keys)
        return found

    def __iter__(self):
        return iter([id for id, _ in self.items()])

    def items(self):
        """Pairs of id and value as they are now, in ascending order of id."""
        self._check()
        return iter(list(walk(self, True)))

    cdef void publish(self) noexcept:
        self.index.published = self.map

    def commit(self):
        """Publish. The number of the new version."""
        return self.commit_all()

    def abort(self):
        """Drop all changes."""
        return self.abort_all()


@cython.final
@cython.no_gc
cdef class IdIndex(Index):
    """A persistent map from id (str) to int64, with one writer and any number of snapshots.

    Opening a transaction or a snapshot takes the same few words at every size. Ids that are
    ULIDs or UUIDs are kept as 128 bits; any other string up to 255 bytes of UTF-8 works too.
    *seed* (two words), *bits* of the hash and *leaf* (cells in a leaf, 1 to 32) are for tests:
    the seed is drawn for each process.
    """

    def __cinit__(self, *, seed=None, int bits=32, uint32_t leaf=32, uint32_t limit=NOWHERE):
        if not 1 <= leaf <= 32:
            raise ValueError(f"leaf must be from 1 to 32, got {leaf}")
        self.ids = IdColumn(seed=seed, bits=bits, limit=limit)
        maps_init(&self.maps, &self.ids.column)
        self.maps.leaf_cells = leaf

    def __dealloc__(self):
        hamt_free(&self.maps, &self.published)

    def __len__(self):
        return self.published.count

    def write(self, timeout=None):
        """A transaction. Waits up to *timeout* seconds for another writer's end (None: for ever),
        then raises WriterBusy, as it does at once if this thread is that writer."""
        cdef IdTxn txn = IdTxn.__new__(IdTxn)
        txn.begin(self, timeout)
        txn.index = self
        txn.map = self.published
        return txn

    def snapshot(self):
        """The current version."""
        cdef IdSnapshot snapshot = IdSnapshot.__new__(IdSnapshot)
        snapshot.hold(self)
        snapshot.index = self
        snapshot.map = self.published
        return snapshot

    def set(self, id, value):
        """One `IdTxn.set` as a version of its own; its number."""
        cdef Key key
        cdef Hamt working
        cdef int64_t number = whole(value)
        read_key(&self.ids.column, id, &key)
        self.begin_step()
        working = self.published
        try:
            put(self, &working, &self.single.log, &key, number)
            self.history.prepare(self.single)
        except:  # noqa: E722
            if self.history.give_up(self.single):
                self.published = working
            raise
        self.published = working
        self.history.commit(self.single)
        return self.history.version

    def delete(self, id):
        """One `IdTxn.delete` as a version of its own. Whether *id* was there."""
        cdef Key key
        cdef Hamt working
        cdef bint found
        read_key(&self.ids.column, id, &key)
        self.begin_step()
        working = self.published
        try:
            found = take_away(self, &working, &self.single.log, &key)
            self.history.prepare(self.single)
        except:  # noqa: E722
            if self.history.give_up(self.single):
                self.published = working
            raise
        self.published = working
        self.history.commit(self.single)
        return found

    def memory(self):
        """What is allocated: `nodes` and `node_bytes` of the map in all versions that somebody
        reads, `slots` in use by them, `slots_most` ever, `chunk_bytes`, `texts` and `text_bytes`
        of the ids, `waiting` items on dead lists."""
        return {
            "nodes": self.maps.meter.nodes,
            "node_bytes": self.maps.meter.bytes,
            "waiting": sum([waiting for _, waiting in self.history.pinned]),
            **self.ids.memory(),
        }

    def __repr__(self):
        return f"<IdIndex at version {self.version}: {self.published.count} ids>"
