# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Ids of many jobs as they were at one time, some bytes a job: what a round says it placed.

Holds the snapshot and by it the records, or each record; nothing of the round.
"""

cimport cython
from libc.stdint cimport uint32_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from pyresched._core.hamt cimport hamt_find
from pyresched._core.ids cimport NOWHERE, Key, read_key
from pyresched._core.jobreader cimport Reader, Snapshot, several, several_of
from pyresched._core.records cimport Record, name_text, record_drop, record_hold
from pyresched._core.versions cimport tried_malloc as malloc


cdef inline str id_of(const Record *job):
    return name_text(&job.id, job.id_kind)


@cython.final
@cython.no_gc_clear
cdef class JobIds:
    """*ids*, each of a job of *reader*, as a sequence of str that makes each when it is read.

    Raises KeyError for an id that no job has.
    """

    def __init__(self, Snapshot reader not None, ids):
        cdef list wanted = several(ids)
        cdef Key key
        cdef Py_ssize_t i
        reader.must_be_open()
        if self.records != NULL:
            raise TypeError("ids are taken once")
        fill(self, reader, len(wanted), True)
        for i in range(self.count):
            read_key(&reader.index.ids.column, wanted[i], &key)
            self.slots[i] = hamt_find(&reader.index.id_maps, &reader.roots.ids, &key)
            if self.slots[i] == NOWHERE:
                raise KeyError(wanted[i])
            self.records[i] = reader.record(self.slots[i])

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.reader is None:
            for i in range(self.count):
                record_drop(<Record *> self.records[i])
        free(self.records)
        free(self.slots)

    def __len__(self):
        return self.count

    def __getitem__(self, at):
        cdef Py_ssize_t first, stop, step, i
        cdef JobIds part
        if not isinstance(at, slice):
            i = at
            if i < 0:
                i += self.count
            if not 0 <= i < self.count:
                raise IndexError(f"no id at {at}; there are {self.count}")
            return id_of(self.records[i])
        first, stop, step = at.indices(self.count)
        part = JobIds.__new__(JobIds)
        fill(part, self.reader, len(range(first, stop, step)), self.slots != NULL)
        for i in range(part.count):
            part.records[i] = self.records[first + i * step]
            if self.reader is None:
                record_hold(part.records[i])
            if self.slots != NULL:
                part.slots[i] = self.slots[first + i * step]
        return part

    def __iter__(self):
        cdef Py_ssize_t i
        for i in range(self.count):
            yield id_of(self.records[i])

    def __repr__(self):
        if self.reader is None:
            return f"<ids of {several_of(self.count, 'job')}>"
        return f"<ids of {several_of(self.count, 'job')} of version {self.reader.version}>"


cdef int fill(JobIds ids, Reader reader, Py_ssize_t count, bint with_slots) except -1:
    """Room for *count* jobs of *reader*, which are to be written there."""
    cdef size_t room = max(<Py_ssize_t> 1, count)
    ids.records = <const Record **> malloc(room * sizeof(Record *))
    if with_slots:
        ids.slots = <uint32_t *> malloc(room * sizeof(uint32_t))
    if ids.records == NULL or with_slots and ids.slots == NULL:
        raise MemoryError
    ids.reader = reader
    ids.count = count
    return 0


cdef JobIds ids_of(object reader, const Record **records, const uint32_t *slots, Py_ssize_t count):
    cdef JobIds ids = JobIds.__new__(JobIds)
    cdef Py_ssize_t i
    if not isinstance(reader, Snapshot):
        reader = None
        slots = NULL
    fill(ids, reader, count, slots != NULL)
    memcpy(ids.records, records, count * sizeof(Record *))
    if slots != NULL:
        memcpy(ids.slots, slots, count * sizeof(uint32_t))
    if reader is None:
        for i in range(count):
            record_hold(records[i])
    return ids
