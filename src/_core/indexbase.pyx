# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What `IdIndex` and `OrderedIndex` have in common: versions, snapshots, transactions.

Relies on versions; keeps that a commit is seen whole (INV-N3) and that a transaction ends once. An
index adds its root and what may be asked of it.
"""

import warnings

cimport cython

from pyresched._core.versions cimport EDIT_CLOSED, EDIT_OPEN, Edit, History

from pyresched.errors import TxnClosed

# What `state` of a reader leads to when it is not that of an edit.
cdef int SHUT = EDIT_CLOSED
cdef int OPEN = EDIT_OPEN


@cython.no_gc
cdef class Index:
    """An index with one writer and any number of snapshots."""

    def __cinit__(self):
        self.history = History()
        self.single = Edit(self.history, None)

    @property
    def version(self):
        """How many commits there were."""
        return self.history.version

    @property
    def pinned(self):
        """The versions that snapshots hold, oldest first."""
        return [version for version, _ in self.history.pinned]

    cdef int begin_step(self) except -1:
        """Begin a version of one change: see `History.change_in_place`. Prepare and commit it, or
        give it up."""
        self.history.begin_at_once(self.single)
        try:
            self.history.change_in_place(self.single)
        except MemoryError:
            self.history.abort(self.single)
            raise
        return 0


@cython.no_gc
cdef class IndexReader:
    """A snapshot or a transaction of an index."""

    def __cinit__(self):
        # Until the snapshot or the transaction is made whole, and after its end.
        self.state = &SHUT

    def __dealloc__(self):
        if self.pin != NULL:
            self.home.history.unpin(self.pin)

    cdef int _check(self) except -1:
        if self.state[0] != EDIT_OPEN:
            raise TxnClosed("the transaction has ended; open another one, or take a snapshot")
        return 0

    cdef int hold(self, Index home) except -1:
        """Be a snapshot of the current version."""
        self.pin = home.history.pin()
        self.home = home
        self.state = &OPEN
        return 0

    cdef int begin(self, Index home, object timeout) except -1:
        """Be the writer. Waits for another one's end; raises WriterBusy."""
        # Mostly the edit of the last one, whose lists are there already.
        cdef Edit edit = Edit(home.history, None) if home.spare is None else home.spare
        home.spare = None
        self.home = home
        self.edit = edit
        home.history.begin(edit, timeout)
        self.state = &edit.state
        return 0

    cdef void publish(self) noexcept:
        """Let the index have the root of this transaction."""

    cdef object commit_all(self):
        """Publish. The number of the new version."""
        self._check()
        self.home.history.prepare(self.edit)
        self.publish()
        self.state = &SHUT
        self.home.history.commit(self.edit)
        self.home.spare = self.edit
        return self.home.history.version

    cdef object abort_all(self):
        self._check()
        self.state = &SHUT
        self.home.history.abort(self.edit)
        self.home.spare = self.edit
        return None

    cdef int leave(self, object kind) except -1:
        """The end of a `with` block: commit unless there is an error of some *kind*."""
        if self.state[0] != EDIT_OPEN:
            return 0
        if kind is not None:
            self.abort_all()
            return 0
        try:
            self.commit_all()
        except MemoryError:
            self.abort_all()
            raise
        return 0

    cdef int forsaken(self) except -1:
        """Nobody has the transaction any more."""
        if self.state[0] == EDIT_OPEN:
            self.abort_all()
            warnings.warn("a transaction was dropped open: nothing of it is published",
                          ResourceWarning)
        return 0
