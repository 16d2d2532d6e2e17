# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""`IdIndex`: a persistent map from id to integer, by itself.

An entry is a slot of the id column, written once: an update takes a new slot, so that a
difference of two versions is a difference of slots. Relies on hamt, ids and versions; keeps that
a snapshot never changes (INV-N1), an aborted transaction leaves no trace (INV-N2) and no order
follows the hash (INV-N7).
"""

cimport cython
from cpython.buffer cimport (
    PyBUF_FORMAT, PyBUF_STRIDED_RO, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from pyresched._core.bits cimport prefetch, whole
from pyresched._core.collector cimport pause, resume
from pyresched._core.hamt cimport (
    Changes, Hamt, Path, changes_free, hamt_diff, hamt_find, hamt_find_many, hamt_free,
    hamt_put_at, hamt_remove_at, hamt_seek, hamt_slots, hamt_warm, maps_init,
)
from pyresched._core.hamtbuild cimport Cell, hamt_build, sorted_cells
from pyresched._core.hamtcheck cimport hamt_breaches, hamt_measure
from pyresched._core.hamtnode cimport LEAF_CELLS
from pyresched._core.ids cimport (
    MAX_ID_BYTES, NOWHERE, Column, Entry, IdColumn, Key, born, entry_at, read_bytes, read_key,
    retire_slot, return_slots, room_for_return, slot_id, sort_slots, take_slot,
)
from pyresched._core.indexbase cimport Index, IndexReader
from pyresched._core.versions cimport (
    EDIT_OPEN, EditLog, Meter, allocation_fails, make_room, owns,
)


cdef extern from "Python.h":
    object PySequence_Fast(object sequence, const char *message)
    Py_ssize_t PySequence_Fast_GET_SIZE(object)
    PyObject **PySequence_Fast_ITEMS(object)
    bint is_buffer "PyObject_CheckBuffer"(object)


cdef enum:
    ON_STACK = 64      # keys; more come from the heap
    READ_AHEAD = 12     # strings that are fetched ahead of their reading
    NO_GIL_FROM = 64    # keys: to let others run for fewer costs more than it gives
    LONG = 2048         # keys: when `get_many`, which makes an integer for each, lets others run
    BLOCK = 256         # keys that are looked up at a time without the GIL
    AHEAD = 32          # keys whose nodes are fetched ahead of their change
    OUT_OF_REACH = 2_000  # ids: a smaller map is near anyway


# Ids that one call is about: their keys, and where their characters are.
cdef struct Many:
    Py_ssize_t count
    Key *keys
    Key few[ON_STACK]
    Py_buffer cells        # of bytes of fixed width
    bint has_cells


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


cdef bint load(IdIndex index, Hamt *map_, EditLog *log, const Many *many,
               const int64_t *values) except -1:
    """Fill an empty map with all ids at once. False: too few, or one is there twice."""
    cdef bint twice = False
    cdef Py_ssize_t i, taken = 0
    cdef uint32_t *slots = NULL
    cdef Cell *cells
    if many.count <= LEAF_CELLS:
        return False
    cells = sorted_cells(many.keys, many.count, &twice)
    try:
        if twice:
            return False
        if not allocation_fails():
            slots = <uint32_t *> malloc(many.count * sizeof(uint32_t))
        if slots == NULL:
            raise MemoryError
        room_for_return(&index.ids.column, log, many.count)
        for i in range(many.count):
            slots[i] = take_slot(&index.ids.column, log, many.keys + i, values[i])
            taken += 1
        hamt_build(&index.maps, map_, log, cells, many.count, slots)
    except BaseException:
        return_slots(&index.ids.column, log, slots, taken)
        raise
    finally:
        free(slots)
        free(cells)
    return True


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


cdef int read_strs(IdIndex index, object sequence, Many *many) except -1:
    """The keys of a PySequence_Fast of str."""
    cdef Py_ssize_t i
    cdef PyObject **items = PySequence_Fast_ITEMS(sequence)
    for i in range(min(many.count, <Py_ssize_t> READ_AHEAD)):
        fetch_text(items[i])
    for i in range(many.count):
        if i + READ_AHEAD < many.count:
            fetch_text(items[i + READ_AHEAD])
        read_key(&index.ids.column, <object> items[i], many.keys + i)
    return 0


cdef int look_at_cells(object ids, Many *many) except -1:
    """Take the buffer of *ids*. Raises TypeError if it is not of bytes of fixed width."""
    cdef Py_buffer *cells = &many.cells
    PyObject_GetBuffer(ids, cells, PyBUF_STRIDED_RO | PyBUF_FORMAT)
    many.has_cells = True
    if cells.ndim != 1 or cells.format == NULL or not cells.format.endswith(b"s"):
        raise TypeError(
            "a buffer of ids has one dimension, of bytes of fixed width (NumPy 'S26'); got format "
            f"{(<bytes> (cells.format or b'B')).decode()!r} in {cells.ndim} dimensions")
    many.count = cells.shape[0]
    return 0


cdef inline bint read_cell(const Column *column, const Py_buffer *cells, Py_ssize_t i,
                           Key *key) noexcept nogil:
    """The key of a cell; False: its bytes are no id."""
    cdef const uint8_t *text = <const uint8_t *> cells.buf + i * cells.strides[0]
    cdef size_t size = <size_t> cells.itemsize
    while size and text[size - 1] == 0:  # padding
        size -= 1
    return read_bytes(column, text, size, key)


cdef int refuse_cell(const Py_buffer *cells, Py_ssize_t i) except -1:
    cdef const char *text = <const char *> cells.buf + i * cells.strides[0]
    raise ValueError(
        f"an id in a buffer is ASCII of 1 to {MAX_ID_BYTES} bytes, got "
        f"{text[:min(cells.itemsize, 32)]!r} at {i}")


cdef object gather(IdIndex index, object ids, bint kept, Many *many):
    """Read the keys of all *ids*; `let_go` comes after, whatever happens.

    *kept*: no other thread can change what is returned, which holds the characters.
    """
    cdef Py_ssize_t i
    many.has_cells = False
    many.keys = many.few
    if isinstance(ids, list) and not kept:
        many.count = PySequence_Fast_GET_SIZE(ids)
    elif not isinstance(ids, (list, tuple)) and is_buffer(ids):
        look_at_cells(ids, many)
    else:
        ids = tuple(ids)
        many.count = PySequence_Fast_GET_SIZE(ids)
    if many.count > ON_STACK:
        many.keys = NULL if allocation_fails() else <Key *> malloc(many.count * sizeof(Key))
        if many.keys == NULL:
            raise MemoryError
    if not many.has_cells:
        read_strs(index, ids, many)
        return ids
    for i in range(many.count):
        if not read_cell(&index.ids.column, &many.cells, i, many.keys + i):
            refuse_cell(&many.cells, i)
    return ids


cdef void let_go(Many *many) noexcept:
    if many.keys != many.few:
        free(many.keys)
    if many.has_cells:
        PyBuffer_Release(&many.cells)


cdef Py_ssize_t find_cells(IdReader reader, const Py_buffer *cells, int64_t *values,
                           int64_t missing, Py_ssize_t *found) noexcept nogil:
    """The values of the ids of all cells, and how many there are. Where the first cell is that
    is no id; as many as there are cells if none."""
    cdef const Column *column = &reader.index.ids.column
    cdef Key keys[BLOCK]
    cdef Py_ssize_t first = 0, i, count
    while first < cells.shape[0]:
        count = min(<Py_ssize_t> BLOCK, cells.shape[0] - first)
        for i in range(count):
            if not read_cell(column, cells, first + i, keys + i):
                return first + i
        found[0] += find_block(reader, keys, count, values + first, missing)
        first += count
    return first


cdef Py_ssize_t find_block(IdReader reader, const Key *keys, Py_ssize_t count, int64_t *values,
                           int64_t missing) noexcept nogil:
    """The values of up to BLOCK keys; how many there are."""
    cdef uint32_t slots[BLOCK]
    cdef Py_ssize_t i, found = 0
    hamt_find_many(&reader.index.maps, &reader.map, keys, slots, count)
    for i in range(count):
        if slots[i] == NOWHERE:
            values[i] = missing
        else:
            values[i] = entry_at(&reader.index.ids.column, slots[i]).value
            found += 1
    return found


cdef Py_ssize_t find_all(IdReader reader, const Many *many, int64_t *values,
                         int64_t missing) noexcept nogil:
    """The values of all keys that were read; how many there are."""
    cdef Py_ssize_t first = 0, count, found = 0
    while first < many.count:
        count = min(<Py_ssize_t> BLOCK, many.count - first)
        found += find_block(reader, many.keys + first, count, values + first, missing)
        first += count
    return found


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


cdef uint32_t *sorted_slots(IdReader reader) except NULL:
    """All slots in ascending order of id; the caller frees them."""
    cdef IdIndex index = reader.index
    cdef const Hamt *map_ = &reader.map
    cdef uint32_t *slots = NULL
    if not allocation_fails():
        slots = <uint32_t *> malloc(max(<uint64_t> 1, map_.count) * sizeof(uint32_t))
    if slots == NULL:
        raise MemoryError
    try:
        if reader.pin == NULL:  # a transaction: another thread could change it meanwhile
            hamt_slots(&index.maps, map_, slots)
            sort_slots(&index.ids.column, slots, map_.count)
        else:
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
    iterator.slots = sorted_slots(reader)
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
cdef class IdReader(IndexReader):
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
        """The values of *ids*, str or a buffer of fixed-width ASCII (NumPy `S26`), as a list,
        *default* for those that are not there.

        Much faster than a loop over `get`: memory is fetched ahead. Raises as `get` does.
        """
        cdef Many many
        cdef uint32_t few_slots[ON_STACK]
        cdef uint32_t *slots = few_slots
        cdef Py_ssize_t i
        cdef list values
        self._check()
        # A long one lets others run: nobody may take the strs away from it then.
        cdef bint alone = self.pin == NULL or isinstance(ids, list) and len(ids) < LONG
        try:
            ids = gather(self.index, ids, not alone, &many)
            if many.count > ON_STACK:
                slots = NULL if allocation_fails() else <uint32_t *> malloc(
                    many.count * sizeof(uint32_t))
                if slots == NULL:
                    raise MemoryError
            if alone or many.count < LONG:
                hamt_find_many(&self.index.maps, &self.map, many.keys, slots, many.count)
            else:
                with nogil:
                    hamt_find_many(&self.index.maps, &self.map, many.keys, slots, many.count)
            values = PyList_New(many.count)
            for i in range(many.count):
                value = default
                if slots[i] != NOWHERE:
                    value = entry_at(&self.index.ids.column, slots[i]).value
                Py_INCREF(value)
                PyList_SET_ITEM(values, i, value)
            return values
        finally:
            let_go(&many)
            if slots != few_slots:
                free(slots)

    def get_into(self, ids, out, missing=-1):
        """Write the values of *ids* into *out*, *missing* for those that are not there; how many
        are.

        *ids* are str or a buffer of fixed-width ASCII (NumPy `S26`), *out* is a buffer of int64
        as long. A snapshot looks ids up without the GIL, so threads run beside each other. Raises
        as `get` does, and ValueError if *out* has another length; *out* may be written in part
        then. Nobody may change *ids* or *out* meanwhile.
        """
        cdef Many many
        cdef int64_t[::1] values = out
        cdef int64_t absent = whole(missing)
        cdef Py_ssize_t bad, found = 0
        many.has_cells = False
        many.keys = many.few
        self._check()
        try:
            if not isinstance(ids, (list, tuple)) and is_buffer(ids):
                look_at_cells(ids, &many)
            else:
                ids = gather(self.index, ids, True, &many)
            if values.shape[0] != many.count:
                raise ValueError(f"{many.count} ids, but room for {values.shape[0]} values")
            if many.count == 0:
                return 0
            if many.has_cells:
                if self.pin != NULL and many.count >= NO_GIL_FROM:
                    with nogil:
                        bad = find_cells(self, &many.cells, &values[0], absent, &found)
                else:
                    bad = find_cells(self, &many.cells, &values[0], absent, &found)
                if bad < many.count:
                    refuse_cell(&many.cells, bad)
                return found
            if self.pin != NULL and many.count >= NO_GIL_FROM:
                with nogil:
                    found = find_all(self, &many, &values[0], absent)
            else:
                found = find_all(self, &many, &values[0], absent)
            return found
        finally:
            let_go(&many)

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

        *ids* are str or a buffer of fixed-width ASCII (NumPy `S26`), *values* integers or an int64
        buffer. Nothing is set if an id or a value cannot be used (errors as in `set`; ValueError if
        there are not as many of one as of the other).
        """
        cdef Many many
        cdef int64_t few_values[ON_STACK]
        cdef int64_t *numbers = NULL
        cdef Py_ssize_t i, at = 0, group
        self._check()
        many.has_cells = False
        many.keys = many.few
        if not isinstance(ids, list) and not is_buffer(ids):
            ids = tuple(ids)
        # First the values: asking them for their integers may run their code.
        numbers = read_values(values, len(ids), few_values)
        i = len(ids)
        try:
            self._check()
            ids = gather(self.index, ids, False, &many)
            if many.count != i:
                raise ValueError("the ids changed in number meanwhile")
            if self.map.root == 0 and load(self.index, &self.map, &self.edit.log, &many, numbers):
                at = many.count
            while at < many.count:
                group = min(<Py_ssize_t> AHEAD, many.count - at)
                if self.map.count > OUT_OF_REACH:
                    hamt_warm(&self.index.maps, &self.map, many.keys + at, group)
                for i in range(at, at + group):
                    put(self.index, &self.map, &self.edit.log, many.keys + i, numbers[i])
                at += group
        finally:
            let_go(&many)
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
        cdef Many many
        cdef Py_ssize_t i, found = 0
        self._check()
        try:
            ids = gather(self.index, ids, False, &many)
            for i in range(many.count):
                found += take_away(self.index, &self.map, &self.edit.log, many.keys + i)
        finally:
            let_go(&many)
        return found

    def __iter__(self):
        return iter([id for id, _ in self.items()])

    def items(self):
        """Pairs of id and value as they are now, in ascending order of id."""
        cdef bint were
        self._check()
        were = pause()
        try:
            return iter(list(walk(self, True)))
        finally:
            resume(were)

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
