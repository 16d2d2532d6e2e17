# cython: language_level=3
# MVCC for the structures above: one writer, versions in a line, dead lists. See docs/hamt.md.
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, malloc, realloc

# What an owner has allocated and not given back.
cdef struct Meter:
    int64_t nodes
    int64_t bytes

# Gives *what* (a pointer or a slot) back to *owner*. Called with the GIL, exactly once for each
# item. It may run Python code only through a DECREF.
ctypedef void (*Reclaim)(void *owner, uint64_t what) noexcept
# The same for nodes, which hold nothing of Python.
ctypedef void (*ReclaimNode)(void *owner, uint64_t what) noexcept nogil

# Made by the running edit; reclaimed when that aborts. reclaim is NULL in a hole of the list,
# `what` then leads to the next hole.
cdef struct Fresh:
    Reclaim reclaim
    void *owner
    uint64_t what

# Superseded: versions from `birth` up to (not including) that of the edit still see it.
cdef struct Retired:
    Reclaim reclaim
    void *owner
    uint64_t what
    uint64_t birth

# Every node begins with these two fields.
cdef struct Node:
    uint64_t stamp   # of the edit that made it: the version that it was born in
    uint32_t fresh   # its place on that edit's list; means nothing later

# What one transaction made and superseded. Structures take a pointer to this.
cdef struct EditLog:
    uint64_t stamp   # of what the edit makes
    uint64_t own_from  # what has this stamp or a newer one is changed in place
    bint private_    # a dry run: what it supersedes lives on, what it makes never does
    uint32_t fresh_count
    uint32_t fresh_capacity
    uint32_t fresh_hole
    uint32_t retired_count
    uint32_t retired_capacity
    Fresh *fresh
    Retired *retired
    # The last run of slots handed out, so that neighbours share one item.
    uint32_t slot_run

cdef enum:
    NO_PLACE = 0xFFFFFFFF

# Stamps at or above this are private ones, of dry runs; versions stay below.
cdef enum:
    STAMP_BITS = 56
cdef uint64_t PRIVATE_STAMP

# A version that somebody reads, with what only it and older pins still need.
cdef struct Pin:
    uint64_t version
    int64_t holders
    Retired *dead
    size_t dead_count
    size_t dead_capacity
    Pin *older
    Pin *newer

cdef enum:
    EDIT_CLOSED = 0
    EDIT_OPEN = 1


cdef class History:
    cdef readonly uint64_t version
    cdef Pin *newest
    cdef Pin *oldest
    cdef uint64_t next_private
    cdef size_t ghosts
    cdef list owners
    cdef void *edit            # the writer's, borrowed; NULL: nobody writes
    cdef object thread         # that wrote last
    cdef uint64_t thread_id    # the interpreter's number of it, never used twice
    cdef uint64_t writer_forks  # in which process the writer began
    cdef double since          # when the writer began, by the monotonic clock
    cdef void *bell            # held, but for when a waiting writer may look again
    cdef bint bell_is_free
    cdef uint64_t bell_forks   # in which process the bell was made
    cdef size_t waiting

    cdef int keep(self, object owner) except -1
    cdef int begin(self, Edit edit, object timeout) except -1
    cdef int begin_at_once(self, Edit edit) except -1
    cdef int begin_private(self, Edit edit) except -1
    cdef int change_in_place(self, Edit edit) except -1
    cdef bint give_up(self, Edit edit) noexcept
    cdef int prepare(self, Edit edit) except -1
    cdef void commit(self, Edit edit) noexcept
    cdef void abort(self, Edit edit) noexcept
    cdef Pin *pin(self) except NULL
    cdef void unpin(self, Pin *pin) noexcept
    cdef int _hang_bell(self) except -1
    cdef int _enter(self, Edit edit, object timeout) except -1
    cdef int _wait(self, object timeout) except -1
    cdef int _forsake_the_dead(self) except -1
    cdef void _end(self) noexcept
    cdef bint _bury(self, Pin *pin) noexcept


cdef class Edit:
    cdef readonly History history
    cdef object owner
    cdef EditLog log
    cdef int state


# Counted memory, with the GIL held (readers never allocate). NULL when there is none.
cdef void *obtain(Meter *meter, size_t size) noexcept nogil
cdef void release(Meter *meter, void *memory, size_t size) noexcept nogil

# For tests: the n-th allocation from now fails (0: the next), all do after it; -1: none.
cdef void fail_allocations(int64_t after) noexcept nogil
cdef bint allocation_fails() noexcept nogil


# Memory of the C library, if allocations do not fail.
cdef inline void *tried_malloc(size_t size) noexcept nogil:
    return NULL if allocation_fails() else malloc(size)


cdef inline void *tried_calloc(size_t count, size_t size) noexcept nogil:
    return NULL if allocation_fails() else calloc(count, size)


cdef inline void *tried_realloc(void *memory, size_t size) noexcept nogil:
    return NULL if allocation_fails() else realloc(memory, size)


cdef int out_of_memory() except -1 nogil
cdef int grow_lists(EditLog *log, uint32_t fresh, uint32_t retired) except -1 nogil


cdef inline bint owns(const EditLog *log, uint64_t stamp) noexcept nogil:
    """Whether the edit may change what was born with *stamp*."""
    return stamp >= log.own_from


cdef inline int make_room(EditLog *log, uint32_t items) except -1 nogil:
    """Room for *items* more on both lists: up to that many pushes cannot fail."""
    if (log.fresh_capacity - log.fresh_count < items
            or log.retired_capacity - log.retired_count < items):
        return grow_lists(log, items, items)
    return 0


cdef inline uint32_t add_fresh(EditLog *log, Reclaim reclaim, void *owner,
                               uint64_t what) noexcept nogil:
    """Note what the edit made; `make_room` came before. Its place on the list."""
    cdef uint32_t place = log.fresh_hole
    if place != NO_PLACE:
        log.fresh_hole = <uint32_t> log.fresh[place].what
    else:
        place = log.fresh_count
        log.fresh_count += 1
    log.fresh[place].reclaim = reclaim
    log.fresh[place].owner = owner
    log.fresh[place].what = what
    return place


cdef inline void drop_fresh(EditLog *log, uint32_t place) noexcept nogil:
    """Forget a fresh item that its maker has given back itself."""
    log.fresh[place].reclaim = NULL
    log.fresh[place].what = log.fresh_hole
    log.fresh_hole = place


cdef inline void add_retired(EditLog *log, Reclaim reclaim, void *owner, uint64_t what,
                             uint64_t birth) noexcept nogil:
    """Note what the edit superseded; `make_room` came before.

    An item that the edit itself made stays on the fresh list too: the one list counts if the
    edit commits, the other if it aborts, so it is reclaimed exactly once.
    """
    if log.private_:
        return
    cdef Retired *item = log.retired + log.retired_count
    item.reclaim = reclaim
    item.owner = owner
    item.what = what
    item.birth = birth
    log.retired_count += 1


cdef inline void *new_node(EditLog *log, Meter *meter, ReclaimNode reclaim, void *owner,
                           size_t size) noexcept nogil:
    """A node of *size* bytes that belongs to the edit, or NULL; `make_room` came before."""
    cdef Node *node = <Node *> obtain(meter, size)
    if node != NULL:
        node.stamp = log.stamp
        node.fresh = add_fresh(log, reclaim, owner, <uint64_t> <size_t> node)
    return node


cdef inline void drop_node(EditLog *log, ReclaimNode reclaim, void *owner,
                           void *node) noexcept nogil:
    """Supersede a node: at once if the edit made it, else when no version sees it.

    `make_room` came before.
    """
    cdef Node *head = <Node *> node
    if head.stamp == log.stamp:
        drop_fresh(log, head.fresh)
        reclaim(owner, <uint64_t> <size_t> node)
    else:
        add_retired(log, reclaim, owner, <uint64_t> <size_t> node, head.stamp)
