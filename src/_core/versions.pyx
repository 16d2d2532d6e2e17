# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Versions in a line, one writer: who reads what, and when what was superseded may go.

Owns the writer's gate, the pins of readers and the dead lists; knows nothing of the structures,
which give it pairs of a pointer and a function that reclaims. Definitions and invariants:
docs/hamt.md. All of it is called with the GIL held (what is marked nogil touches no Python).
Keeps INV-N3 (a commit is seen whole) and INV-N4 (what was superseded goes once, when no version
sees it).
"""

import os
import threading
import time
import warnings

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from pyresched.errors import TxnClosed, WriterBusy


cdef extern from "pythread.h" nogil:
    void *PyThread_allocate_lock()
    void PyThread_free_lock(void *)
    int PyThread_acquire_lock(void *, int wait)
    int PyThread_acquire_lock_timed(void *, long long microseconds, int interruptible)
    void PyThread_release_lock(void *)

cdef extern from "Python.h" nogil:
    void *PyThreadState_Get()
    uint64_t PyThreadState_GetID(void *)


PRIVATE_STAMP = <uint64_t> 1 << (STAMP_BITS - 1)

# Waiting writers look for signals, for a dead writer and for the end of their time this often.
cdef long long NAP_US = 50_000

cdef enum:
    LIST_KEPT = 16384  # items: an edit that is begun again keeps no longer list
    STEP_ITEMS = 160   # more than one change of one structure supersedes

# How many forks lie between this process and the one that loaded the module, and which thread
# came through the last one: of those from before it no other is in this process.
cdef uint64_t forks = 0
cdef uint64_t survivor = 0


def _forked():
    """Called in a new child, by the thread that forked."""
    global forks, survivor
    forks += 1
    survivor = PyThreadState_GetID(PyThreadState_Get())


os.register_at_fork(after_in_child=_forked)

cdef int64_t failures_after = -1


cdef void fail_allocations(int64_t after) noexcept nogil:
    global failures_after
    failures_after = after


cdef bint allocation_fails() noexcept nogil:
    """Whether this allocation is to fail, for a test."""
    global failures_after
    if failures_after < 0:
        return False
    if failures_after == 0:
        return True
    failures_after -= 1
    return False


# Nodes of a size that were given back, for the next of that size: a version's path is as long
# as that of the one before, so most nodes come from here. Bounded; empty in sanitizer builds,
# which are to see each use after the end, and without the GIL, which guards it.
cdef extern from *:
    """
    #if defined(Py_GIL_DISABLED) || defined(__SANITIZE_ADDRESS__)
      #define PYRESCHED_POOLED 0
    #else
      #define PYRESCHED_POOLED 32768
    #endif
    """
    const size_t POOLED_BYTES "PYRESCHED_POOLED"  # at most, of each size

cdef enum:
    GRAIN = 16
    GRAINS = 128  # larger nodes are not kept

cdef struct Spare:
    Spare *next_

cdef Spare *spares[GRAINS]
cdef size_t spare_bytes[GRAINS]


cdef void *obtain(Meter *meter, size_t size) noexcept nogil:
    cdef void *memory
    cdef size_t grains = (size + GRAIN - 1) // GRAIN
    if failures_after >= 0 and allocation_fails():
        return NULL
    if grains < GRAINS:
        if spares[grains] != NULL:
            memory = spares[grains]
            spares[grains] = spares[grains].next_
            spare_bytes[grains] -= grains * GRAIN
        else:
            memory = malloc(grains * GRAIN)
    else:
        memory = malloc(size)
    if memory != NULL:
        meter.nodes += 1
        meter.bytes += <int64_t> size
    return memory


cdef void release(Meter *meter, void *memory, size_t size) noexcept nogil:
    cdef size_t grains = (size + GRAIN - 1) // GRAIN
    meter.nodes -= 1
    meter.bytes -= <int64_t> size
    if grains < GRAINS and spare_bytes[grains] < POOLED_BYTES:
        (<Spare *> memory).next_ = spares[grains]
        spares[grains] = <Spare *> memory
        spare_bytes[grains] += grains * GRAIN
    else:
        free(memory)


cdef int out_of_memory() except -1 nogil:
    with gil:
        raise MemoryError


cdef int grow_lists(EditLog *log, uint32_t fresh, uint32_t retired) except -1 nogil:
    """Room for so many more on each list. Raises MemoryError; the lists are as before then."""
    cdef size_t wanted
    cdef void *grown
    if log.fresh_capacity - log.fresh_count < fresh:
        wanted = max(<size_t> 64, <size_t> log.fresh_capacity * 2, <size_t> log.fresh_count + fresh)
        if wanted >= NO_PLACE or allocation_fails():
            return out_of_memory()
        grown = realloc(log.fresh, wanted * sizeof(Fresh))
        if grown == NULL:
            return out_of_memory()
        log.fresh = <Fresh *> grown
        log.fresh_capacity = <uint32_t> wanted
    if log.retired_capacity - log.retired_count < retired:
        wanted = max(<size_t> 64, <size_t> log.retired_capacity * 2,
                     <size_t> log.retired_count + retired)
        if wanted >= NO_PLACE or allocation_fails():
            return out_of_memory()
        grown = realloc(log.retired, wanted * sizeof(Retired))
        if grown == NULL:
            return out_of_memory()
        log.retired = <Retired *> grown
        log.retired_capacity = <uint32_t> wanted
    return 0


cdef inline void forget_all(EditLog *log) noexcept:
    log.fresh_count = 0
    log.fresh_hole = NO_PLACE
    log.retired_count = 0
    log.slot_run = NO_PLACE


cdef int dead_room(Pin *pin, size_t items) except -1:
    """Room for *items* more on the pin's dead list."""
    cdef size_t wanted
    cdef void *grown
    if pin.dead_capacity - pin.dead_count >= items:
        return 0
    wanted = max(<size_t> 16, pin.dead_capacity * 2, pin.dead_count + items)
    grown = NULL if allocation_fails() else realloc(pin.dead, wanted * sizeof(Retired))
    if grown == NULL:
        raise MemoryError
    pin.dead = <Retired *> grown
    pin.dead_capacity = wanted
    return 0


cdef void reclaim_all(Retired *items, size_t count) noexcept:
    cdef size_t i
    for i in range(count):
        items[i].reclaim(items[i].owner, items[i].what)


cdef double seconds() noexcept nogil:
    """What `time.monotonic()` says, without the call."""
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <double> now.tv_sec + 1e-9 * <double> now.tv_nsec


cdef bint is_alive(object thread) except -1:
    try:
        return thread.is_alive()
    except Exception:  # foreign threads say so when they are gone, each release in its own way
        return False


@cython.final
@cython.no_gc
cdef class History:
    """The line of versions of one store. `version` counts commits; 0 is empty."""

    def __cinit__(self):
        self.owners = []
        self._hang_bell()

    def __dealloc__(self):
        # Whoever holds a pin or an edit holds the history too, so none is left but ghosts;
        # the owners are alive until this returns.
        cdef Pin *pin = self.newest
        cdef Pin *older
        while pin != NULL:
            older = pin.older
            reclaim_all(pin.dead, pin.dead_count)
            free(pin.dead)
            free(pin)
            pin = older
        if self.bell != NULL:
            PyThread_free_lock(self.bell)

    cdef int keep(self, object owner) except -1:
        """Keep *owner*, on whose memory dead lists may point, alive as long as the lists."""
        self.owners.append(owner)
        return 0

    cdef int _hang_bell(self) except -1:
        """A bell of this process. One that was forked with it may be held by no thread of it."""
        cdef void *bell = PyThread_allocate_lock()
        if bell == NULL:
            raise MemoryError
        PyThread_acquire_lock(bell, 0)
        self.bell = bell
        self.bell_is_free = False
        self.bell_forks = forks
        self.waiting = 0
        return 0

    cdef int _wait(self, object timeout) except -1:
        """Until nobody writes. Raises WriterBusy."""
        cdef long long nap
        cdef int rung
        if self.thread_id == PyThreadState_GetID(PyThreadState_Get()):
            raise WriterBusy(
                f"this thread has a transaction open: {self.thread.name}, for "
                f"{max(0.0, seconds() - self.since):.3f} s, since version {self.version}; "
                "commit or abort it first"
            )
        if self.bell_forks != forks:
            self._hang_bell()
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.edit != NULL:
            if self._forsake_the_dead():
                continue  # its warning ran Python: another thread may write by now
            nap = NAP_US
            if deadline is not None:
                now = time.monotonic()
                if not now < deadline:  # so that NaN waits for nothing
                    raise WriterBusy(
                        f"thread {self.thread.name} has been writing for "
                        f"{max(0.0, now - self.since):.3f} s, since version {self.version}; "
                        f"waited {timeout} s: wait longer or end its transaction"
                    )
                nap = min(nap, 1 + <long long> (1e6 * min(1.0, <double> (deadline - now))))
            self.waiting += 1
            with nogil:
                rung = PyThread_acquire_lock_timed(self.bell, nap, 1)
            self.waiting -= 1
            if rung == 1:
                self.bell_is_free = False
            PyErr_CheckSignals()
        return 0

    cdef int _forsake_the_dead(self) except -1:
        """Abort the writer if its thread has ended: nobody else would. Whether it had."""
        cdef void *edit = self.edit
        if self.writer_forks != forks and self.thread_id != survivor:
            # Nobody forgot anything: the thread writes on in the parent.
            self.abort(<Edit> self.edit)
            return True
        thread = self.thread
        if is_alive(thread):
            return False
        name = thread.name
        if self.edit != edit or self.thread is not thread:
            return True  # another thread was faster, while Python ran: look again
        self.abort(<Edit> edit)
        warnings.warn(
            f"thread {name} ended with a transaction open: aborted", ResourceWarning, stacklevel=1)
        return True

    cdef void _end(self) noexcept:
        """Let another writer begin."""
        self.edit = NULL
        if self.bell_forks != forks:
            self.waiting = 0  # those threads wait in the parent
        if self.waiting and not self.bell_is_free:
            self.bell_is_free = True
            PyThread_release_lock(self.bell)

    cdef int begin(self, Edit edit, object timeout) except -1:
        """Make *edit* the writer. Waits *timeout* seconds (None: for ever), then WriterBusy."""
        self._enter(edit, timeout)
        self.since = seconds()
        return 0

    cdef int begin_at_once(self, Edit edit) except -1:
        """The same for an edit that ends before another thread can run, so that nobody needs to
        be told how long it takes. Waits for a writer's end for ever."""
        return self._enter(edit, None)

    cdef int _enter(self, Edit edit, object timeout) except -1:
        """Take the gate. No Python runs between the look at it and the taking, or another thread
        could come in between."""
        cdef uint64_t id_ = PyThreadState_GetID(PyThreadState_Get())
        # Mostly it is the thread that wrote last; to ask for another runs Python.
        cdef object thread = self.thread if self.thread_id == id_ else threading.current_thread()
        assert edit.state == EDIT_CLOSED, "an edit is begun once"
        if self.edit != NULL:
            self._wait(timeout)
        self.edit = <void *> edit
        self.thread_id = id_
        thread, self.thread = self.thread, thread  # who wrote last is let go at the end
        self.writer_forks = forks
        edit.log.stamp = edit.log.own_from = self.version + 1
        edit.log.private_ = False
        edit.state = EDIT_OPEN
        return 0

    cdef int begin_private(self, Edit edit) except -1:
        """Make *edit* a dry run: it sees no gate, keeps base nodes alive by a pin that its owner
        holds, and can only abort."""
        assert edit.state == EDIT_CLOSED, "an edit is begun once"
        edit.log.stamp = edit.log.own_from = PRIVATE_STAMP + self.next_private
        self.next_private += 1
        edit.log.private_ = True
        edit.state = EDIT_OPEN
        return 0

    cdef int change_in_place(self, Edit edit) except -1:
        """Let *edit*, begun at once, change what no reader sees, though older edits made it.

        It must then be one step that leaves all as it was if it fails, with no Python in it: such
        changes cannot be taken back, so it ends by `commit` or `give_up`, never by `abort`. Raises
        MemoryError, and nothing is different.
        """
        assert self.edit == <void *> edit, "the writer's edit"
        if self.newest == NULL:
            edit.log.own_from = 0
        elif self.newest.version < self.version:
            # So that `prepare` cannot fail.
            dead_room(self.newest, STEP_ITEMS)
            edit.log.own_from = self.newest.version + 1
        return 0

    cdef bint give_up(self, Edit edit) noexcept:
        """End an edit whose one step failed. True: by a version that holds what the last one held
        in nodes that may be others, so the roots are to be published; False: as if it had never
        been."""
        if edit.log.own_from == edit.log.stamp:
            self.abort(edit)
            return False
        self.commit(edit)
        return True

    cdef int prepare(self, Edit edit) except -1:
        """Reserve what `commit` needs, so that it cannot fail.

        Raises TxnClosed after the end, MemoryError (the edit stays open). No other call may come
        between this and `commit`: publish the roots there.
        """
        cdef size_t kept = 0
        cdef uint32_t i
        if edit.state != EDIT_OPEN:
            raise TxnClosed("the transaction has ended; open another one")
        assert not edit.log.private_, "a dry run is never committed"
        if self.newest != NULL and edit.log.retired_count:
            for i in range(edit.log.retired_count):
                kept += edit.log.retired[i].birth <= self.newest.version
            dead_room(self.newest, kept)
        return 0

    cdef void commit(self, Edit edit) noexcept:
        """Make the edit's version the current one; the roots have been published.

        What it superseded goes to the newest pin if that can see it, else is reclaimed. (Older
        pins cannot see what the newest one cannot.)
        """
        cdef EditLog *log = &edit.log
        cdef Retired *doomed = log.retired
        cdef uint32_t capacity = log.retired_capacity
        cdef uint32_t i, count = 0
        cdef Pin *pin = self.newest
        self.version = log.stamp
        if pin == NULL:
            count = log.retired_count
        else:
            for i in range(log.retired_count):
                if doomed[i].birth <= pin.version:
                    pin.dead[pin.dead_count] = doomed[i]
                    pin.dead_count += 1
                else:
                    doomed[count] = doomed[i]
                    count += 1
        forget_all(log)
        edit.state = EDIT_CLOSED
        self._end()
        if count:
            # Reclaiming may run a user's code, which may use this very edit again.
            log.retired = NULL
            log.retired_capacity = 0
            reclaim_all(doomed, count)
            if log.retired == NULL and capacity <= LIST_KEPT:
                log.retired = doomed
                log.retired_capacity = capacity
            else:
                free(doomed)
        if log.fresh_capacity > LIST_KEPT:
            free(log.fresh)
            log.fresh = NULL
            log.fresh_capacity = 0

    cdef void abort(self, Edit edit) noexcept:
        """End the edit as if it had never been."""
        cdef EditLog *log = &edit.log
        cdef Fresh *made = log.fresh
        cdef uint32_t i, count = log.fresh_count, capacity = log.fresh_capacity
        if edit.state != EDIT_OPEN:
            return
        forget_all(log)
        edit.state = EDIT_CLOSED
        if not log.private_:
            self._end()
        log.fresh = NULL
        log.fresh_capacity = 0
        for i in range(count):
            if made[i].reclaim != NULL:
                made[i].reclaim(made[i].owner, made[i].what)
        if log.fresh == NULL and capacity <= LIST_KEPT:
            log.fresh = made
            log.fresh_capacity = capacity
        else:
            free(made)

    cdef Pin *pin(self) except NULL:
        """A hold on the current version, for `unpin`. Raises MemoryError."""
        cdef Pin *pin = self.newest
        cdef Edit writer
        if self.edit != NULL:
            writer = <Edit> self.edit
            if writer.log.own_from < writer.log.stamp:
                # Only what an error runs, a finalizer say, can get here.
                raise MemoryError("no snapshot while a change runs out of memory")
        if pin != NULL and pin.version == self.version:
            if pin.holders == 0:
                self.ghosts -= 1
            pin.holders += 1
            return pin
        pin = NULL if allocation_fails() else <Pin *> malloc(sizeof(Pin))
        if pin == NULL:
            raise MemoryError
        pin.version = self.version
        pin.holders = 1
        pin.dead = NULL
        pin.dead_count = 0
        pin.dead_capacity = 0
        pin.newer = NULL
        pin.older = self.newest
        if self.newest == NULL:
            self.oldest = pin
        else:
            self.newest.newer = pin
        self.newest = pin
        return pin

    cdef void unpin(self, Pin *pin) noexcept:
        """Let go. The last holder's going hands the dead list to the next older pin, or ends it."""
        cdef Pin *ghost
        cdef Pin *newer
        pin.holders -= 1
        if pin.holders > 0:
            return
        assert pin.holders == 0, "a pin is let go as often as it was taken"
        if not self._bury(pin):
            self.ghosts += 1
        elif self.ghosts:
            ghost = self.oldest
            while ghost != NULL:
                newer = ghost.newer
                if ghost.holders == 0 and self._bury(ghost):
                    self.ghosts -= 1
                    break  # what it reclaimed may have changed the line
                ghost = newer

    cdef bint _bury(self, Pin *pin) noexcept:
        """Take a pin that nobody holds off the line. False: no memory to move its list now, it
        stays as a ghost (nothing is lost, what it keeps is kept longer)."""
        cdef Pin *older = pin.older
        cdef size_t i, kept = 0, doomed = 0
        if older != NULL:
            for i in range(pin.dead_count):
                kept += pin.dead[i].birth <= older.version
            if kept:
                try:
                    dead_room(older, kept)
                except MemoryError:
                    return False
        if pin.newer != NULL:
            pin.newer.older = older
        else:
            self.newest = older
        if older != NULL:
            older.newer = pin.newer
        else:
            self.oldest = pin.newer
        for i in range(pin.dead_count):
            if older != NULL and pin.dead[i].birth <= older.version:
                older.dead[older.dead_count] = pin.dead[i]
                older.dead_count += 1
            else:
                pin.dead[doomed] = pin.dead[i]
                doomed += 1
        reclaim_all(pin.dead, doomed)
        free(pin.dead)
        free(pin)
        return True

    @property
    def pinned(self):
        """The versions that somebody reads, oldest first, each with how many items only it and
        older ones still need."""
        cdef Pin *pin = self.oldest
        cdef list found = []
        while pin != NULL:
            found.append((pin.version, pin.dead_count))
            pin = pin.newer
        return found


@cython.final
@cython.no_gc
cdef class Edit:
    """What one transaction made and superseded. Garbage-collected while open, it aborts.

    *owner* is what its items point into; the edit keeps it alive.
    """

    def __cinit__(self, History history not None, owner):
        self.history = history
        self.owner = owner
        forget_all(&self.log)

    def __dealloc__(self):
        if self.state == EDIT_OPEN:
            self.history.abort(self)
        free(self.log.fresh)
        free(self.log.retired)
