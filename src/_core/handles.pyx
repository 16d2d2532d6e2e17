# cython: binding=False, boundscheck=False, wraparound=False
"""Handles: small whole numbers that stand for job ids in a table's columns.

Owns the two directions of that map. What a twin was made of is shared and never changed again,
so that a fork of a table with a million jobs copies only what came after; a table that has
gathered much since is asked to seal itself when it is forked. Relies on nothing.
"""

cimport cython
from libc.stdint cimport int32_t

cdef enum:
    FEW = 1024  # changes since the base that a twin may always copy


@cython.final
cdef class Handles:
    """Job ids and their handles."""

    def __cinit__(self):
        self.base = {}
        self.base_ids = []
        self.own = {}
        self.own_ids = []
        self.free = []

    cdef int32_t find(self, str job_id) except -2:
        """The handle of a job, or -1."""
        found = self.own.get(job_id)
        if found is None:
            found = self.base.get(job_id)
        return -1 if found is None else <int32_t> found

    cdef int32_t add(self, str job_id) except -1:
        """Make a handle for a job that has none."""
        cdef int32_t handle
        if job_id is None:
            raise TypeError("a job id must be text, not None")
        # Both ways, what can fail for want of memory comes before anything changes for good.
        if self.free:
            handle = self.free.pop()
            try:
                self.own[job_id] = handle
            except MemoryError:
                self.free.append(handle)  # where it just stood
                raise
            self.own_ids[handle - len(self.base_ids)] = job_id
        else:
            if self.count >= 0x7FFFFFFF:
                raise MemoryError
            handle = <int32_t> self.count
            self.own_ids.append(job_id)
            try:
                self.own[job_id] = handle
            except MemoryError:
                self.own_ids.pop()
                raise
            self.count += 1
        return handle

    cdef int forget(self, int32_t handle) except -1:
        """*handle* stands for nothing from now on."""
        cdef Py_ssize_t sealed = len(self.base_ids)
        if handle < sealed:
            self.own[self.base_ids[handle]] = -1
            self.forgotten += 1
        else:
            self.free.append(handle)  # first: nothing after it asks for memory
            job_id = self.own_ids[handle - sealed]
            if job_id in self.base:
                self.own[job_id] = -1
            else:
                del self.own[job_id]
            self.own_ids[handle - sealed] = None
        return 0

    cdef str job_id(self, int32_t handle):
        """The job that *handle* stands for, or stood for."""
        cdef Py_ssize_t sealed = len(self.base_ids)
        return self.base_ids[handle] if handle < sealed else self.own_ids[handle - sealed]

    cdef Handles twin(self):
        """A copy with the same handles."""
        cdef Handles copy = Handles.__new__(Handles)
        cdef dict own
        cdef list own_ids, free
        if not self.base_ids:
            # Nobody else knows what is ours: it becomes the base of both.
            own, own_ids, free = {}, [], []
            self.forgotten = len(self.free)
            self.base, self.base_ids = self.own, self.own_ids
            self.own, self.own_ids, self.free = own, own_ids, free
        elif len(self.own) > FEW and len(self.own) > len(self.base) // 8:
            self.seal()
        copy.base = self.base
        copy.base_ids = self.base_ids
        copy.own = self.own.copy()
        copy.own_ids = self.own_ids[:]
        copy.free = self.free[:]
        copy.count = self.count
        copy.forgotten = self.forgotten
        return copy

    cdef int seal(self) except -1:
        """Make a new base of all that there is."""
        cdef list ids = self.ids()
        cdef dict base = {job_id: i for i, job_id in enumerate(ids) if job_id is not None}
        cdef dict own = {}
        cdef list own_ids = [], free = []
        self.base, self.base_ids = base, ids
        self.own, self.own_ids, self.free = own, own_ids, free
        self.forgotten = len(ids) - len(base)
        return 0

    cdef bint wasteful(self) noexcept:
        """Whether more handles stand for nothing than for something."""
        return self.forgotten > FEW and self.forgotten > self.count // 2

    cdef list ids(self):
        """Job ids by handle; None where a handle stands for nothing."""
        cdef list found = self.base_ids + self.own_ids
        cdef Py_ssize_t i
        cdef Py_ssize_t sealed = len(self.base_ids)
        for i in range(sealed):
            job_id = found[i]
            if job_id is not None and self.find(job_id) != i:
                found[i] = None
        return found
