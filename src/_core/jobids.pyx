# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Ids of many jobs of a snapshot, at eight bytes a job: what a round says it placed.

Holds the snapshot and by it the records, nothing of the round.
"""

cimport cython
from libc.stdint cimport uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from pyresched._core.hamt cimport hamt_find
from pyresched._core.ids cimport NOWHERE, Key, read_key
from pyresched._core.jobreader cimport Reader, Snapshot, several, several_of
from pyresched._core.records cimport Record, name_text


cdef inline str id_of(const Record *job):
    return name_text(&job.id, job.id_kind)


cdef const Record **room_for(Py_ssize_t count) except NULL:
    cdef const Record **records = <const Record **> malloc(
        max(<Py_ssize_t> 1, count) * sizeof(Record *))
    if records == NULL:
        raise MemoryError
    return records


@cython.final
@cython.no_gc_clear
cdef class JobIds:
    """*ids*, each of a job of *reader*, as a sequence of str that makes each when it is read.

    Raises KeyError for an id that no job has.
    """

    def __init__(self, Snapshot reader not None, ids):
        cdef list wanted = several(ids)
        cdef const Record **records
        cdef Key key
        cdef uint32_t slot
        cdef Py_ssize_t i
        reader.must_be_open()
        records = room_for(len(wanted))
        try:
            for i in range(len(wanted)):
                read_key(&reader.index.ids.column, wanted[i], &key)
                slot = hamt_find(&reader.index.id_maps, &reader.roots.ids, &key)
                if slot == NOWHERE:
                    raise KeyError(wanted[i])
                records[i] = reader.record(slot)
            if self.records != NULL:
                raise TypeError("ids are taken once")
            self.records = records
            records = NULL
        finally:
            free(records)
        self.reader = reader
        self.count = len(wanted)

    def __dealloc__(self):
        free(self.records)

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
        part = empty(self.reader, len(range(first, stop, step)))
        for i in range(part.count):
            part.records[i] = self.records[first + i * step]
        return part

    def __iter__(self):
        cdef Py_ssize_t i
        for i in range(self.count):
            yield id_of(self.records[i])

    def __repr__(self):
        if self.reader is None:
            return "<JobIds that were never made>"
        return f"<ids of {several_of(self.count, 'job')} of version {self.reader.version}>"


cdef JobIds empty(Reader reader, Py_ssize_t count):
    """Room for *count*, which is to be filled."""
    cdef JobIds ids = JobIds.__new__(JobIds)
    ids.records = room_for(count)
    ids.reader = reader
    ids.count = count
    return ids


cdef object ids_of(object reader, const Record **records, Py_ssize_t count):
    cdef JobIds ids
    if not isinstance(reader, Snapshot):
        return [id_of(records[i]) for i in range(count)]
    ids = empty(<Snapshot> reader, count)
    memcpy(ids.records, records, count * sizeof(Record *))
    return ids
