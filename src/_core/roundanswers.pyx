# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Why each job of a round got no node, read when somebody asks.

Holds the jobs of the round, and makes no object for one before it is asked for.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport free

from pyresched._core.nodeledger cimport NOWHERE
from pyresched._core.records cimport Record, name_text
from pyresched._core.roundjobs cimport Entry, RoundJobs
from pyresched._core.versions cimport tried_calloc as calloc


@cython.final
cdef class Refused:
    """Why each job of a round got no node, as columns; (code, resource, wanted, had) a reason.

    Holds the jobs and a number for each, so that it costs the same for one as for many.
    """

    cdef RoundJobs walk
    cdef readonly tuple reasons
    cdef Py_ssize_t size

    def __init__(self, RoundJobs walk not None, tuple reasons not None):
        cdef Py_ssize_t i
        self.walk = walk
        self.reasons = reasons
        for i in range(walk.entry_count):
            self.size += self.is_refused(i)

    cdef bint is_refused(self, Py_ssize_t i) noexcept:
        cdef const Entry *entry = &self.walk.entries[i]
        return entry.home == NOWHERE and entry.node == NOWHERE and entry.verdict >= 0

    def __len__(self):
        return self.size

    def counts(self):
        """How many jobs have each of `reasons`, in their order."""
        cdef Py_ssize_t i
        cdef list counts = [0] * len(self.reasons)
        cdef int64_t *tally = <int64_t *> calloc(max(len(counts), 1), sizeof(int64_t))
        if tally == NULL:
            raise MemoryError
        for i in range(self.walk.entry_count):
            if self.is_refused(i):
                tally[self.walk.entries[i].verdict] += 1
        for i in range(len(counts)):
            counts[i] = tally[i]
        free(tally)
        return counts

    def items(self):
        """[(job id, index in `reasons`)] by queue and then in the order of the queue."""
        cdef Py_ssize_t i
        cdef const Record *record
        cdef list items = []
        for i in range(self.walk.entry_count):
            if self.is_refused(i):
                record = self.walk.entries[i].record
                items.append((
                    name_text(&record.id, record.id_kind), self.walk.entries[i].verdict))
        return items
