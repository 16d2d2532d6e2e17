# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The job store: who may write, and the readers and transactions over one version.

Relies on jobindex, jobreader and jobtxn for all else. Closes the chain: those know no store.
"""

cimport cython
from libc.stdint cimport uint32_t

from pyresched._core.jobindex cimport JobIndex
from pyresched._core.jobreader cimport Reader, Snapshot
from pyresched._core.jobtxn cimport Txn
from pyresched._core.versions cimport Edit


@cython.no_gc_clear
cdef class JobStore(JobIndex):
    """The jobs behind `JobDb`, whose docstring is the contract. `version` counts commits."""

    def __init__(self, class_priorities, transitions, *, seed=None, int hash_bits=32,
                 most_jobs=None, uint32_t leaf=32, uint32_t fanout=32, after_commit=None):
        JobIndex.__init__(self, class_priorities, transitions, seed=seed, hash_bits=hash_bits,
                          most_jobs=most_jobs, leaf=leaf, fanout=fanout)
        self.after_commit = after_commit

    cdef int committed(self) except -1:
        if self.after_commit is not None:
            self.after_commit(self.snapshot())
        return 0

    def write(self, timeout=None):
        """The one writing transaction; waits for another's end, *timeout* seconds at most.

        Raises WriterBusy when the time is up, and at once when this very thread holds it.
        """
        cdef Txn txn = Txn.__new__(Txn)
        cdef Edit edit
        self.must_be_made()
        if timeout is not None and type(timeout) not in (int, float):
            timeout = in_seconds(timeout)
        edit = self.spare
        if edit is None:
            edit = Edit(self.history, None)  # a transaction holds the store itself
        self.spare = None
        self.history.begin(edit, timeout)
        txn.index = self
        txn.edit = edit
        txn.roots = self.roots
        txn.changing = True
        return txn

    def overlay(self, Snapshot base not None, type kind not None):
        """A transaction of *kind* over *base* that never publishes; any number at a time.

        Raises ValueError for a snapshot of another db.
        """
        cdef Txn txn = kind.__new__(kind)
        cdef Edit edit = Edit(self.history, None)
        if base.index is not self:
            raise ValueError("the snapshot is of another db")
        txn.index = self
        txn.dry = True
        txn.base = base
        txn.pin = base.pin
        txn.pin.holders += 1
        self.history.begin_private(edit)
        txn.edit = edit
        txn.roots = base.roots
        txn.changing = True
        return txn

    def owns(self, Reader reader not None):
        """Whether *reader* is of this very db."""
        return reader.index is self

    def snapshot(self):
        """The current version."""
        cdef Snapshot snapshot
        self.must_be_made()
        snapshot = Snapshot.__new__(Snapshot)
        snapshot.index = self
        snapshot.pin = self.history.pin()
        snapshot.roots = self.roots
        return snapshot


cdef double in_seconds(object timeout) except? -1:
    """A time to wait that is no plain number, NumPy's perhaps."""
    if isinstance(timeout, (str, bytes)) or not hasattr(timeout, "__float__"):
        raise TypeError(f"timeout is in seconds, or None to wait for ever; got {timeout!r}")
    return float(timeout)
