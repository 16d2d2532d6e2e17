# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Ids of many jobs of a snapshot, at four bytes a job: what a round says it placed.

Holds the snapshot, so that the job at a slot stays the job that it was.
"""

cimport cython
from libc.stdint cimport uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from pyresched._core.hamt cimport hamt_find
from pyresched._core.ids cimport NOWHERE, Key, read_key
from pyresched._core.jobreader cimport Reader, Snapshot, several, several_of
from pyresched._core.records cimport Record, name_text


cdef str id_at(Reader reader, uint32_t slot):
    cdef const Record *job = reader.record(slot)
    return name_text(&job.id, job.id_kind)


@cython.final
@cython.no_gc_clear
cdef class SlotIds:
    """*ids*, each of a job of *reader*, as a sequence of str that makes each when it is read.

    Raises KeyError for an id that no job has.
    """

    def __init__(self, Snapshot reader not None, ids):
        cdef list wanted = several(ids)
        cdef uint32_t *slots = NULL
        cdef Key key
        cdef Py_ssize_t i
        if self.slots != NULL:
            raise TypeError("ids are taken once")
        reader.must_be_open()
        slots = <uint32_t *> malloc(max(1, len(wanted)) * sizeof(uint32_t))
        if slots == NULL:
            raise MemoryError
        try:
            for i in range(len(wanted)):
                read_key(&reader.index.ids.column, wanted[i], &key)
                slots[i] = hamt_find(&reader.index.id_maps, &reader.roots.ids, &key)
                if slots[i] == NOWHERE:
                    raise KeyError(wanted[i])
            self.slots, slots = slots, self.slots
        finally:
            free(slots)
        self.reader = reader
        self.count = len(wanted)

    def __dealloc__(self):
        free(self.slots)

    def __len__(self):
        return self.count

    def __getitem__(self, at):
        cdef Py_ssize_t first, stop, step, i
        cdef SlotIds part
        if not isinstance(at, slice):
            i = at
            if i < 0:
                i += self.count
            if not 0 <= i < self.count:
                raise IndexError(f"no id at {at}; there are {self.count}")
            return id_at(self.reader, self.slots[i])
        first, stop, step = at.indices(self.count)
        part = empty(self.reader, len(range(first, stop, step)))
        for i in range(part.count):
            part.slots[i] = self.slots[first + i * step]
        return part

    def __iter__(self):
        cdef Py_ssize_t i
        for i in range(self.count):
            yield id_at(self.reader, self.slots[i])

    def __repr__(self):
        return f"<ids of {several_of(self.count, 'job')} of version {self.reader.version}>"


cdef SlotIds empty(Reader reader, Py_ssize_t count):
    """Room for *count*, which is to be filled."""
    cdef SlotIds ids = SlotIds.__new__(SlotIds)
    ids.reader = reader
    ids.slots = <uint32_t *> malloc(max(<Py_ssize_t> 1, count) * sizeof(uint32_t))
    if ids.slots == NULL:
        raise MemoryError
    ids.count = count
    return ids


cdef object ids_at(Reader reader, const uint32_t *slots, Py_ssize_t count):
    cdef SlotIds ids
    if not isinstance(reader, Snapshot):
        return [id_at(reader, slots[i]) for i in range(count)]
    ids = empty(reader, count)
    memcpy(ids.slots, slots, count * sizeof(uint32_t))
    return ids
