# cython: language_level=3
# The job store: rows by slot and every index over them, in versions. See docs/invariants.md.
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t

from pyresched._core.hamt cimport Hamt, Maps
from pyresched._core.ids cimport IdColumn, Key
from pyresched._core.ordered cimport Cursor, Item, Tree, Trees
from pyresched._core.pages cimport Paged, Pages
from pyresched._core.values cimport Job
from pyresched._core.versions cimport Edit, History, Pin

# One version: copy the struct to keep it.
cdef struct Roots:
    Hamt ids           # job id -> slot
    Hamt runs          # run id -> slot of its own, whose value is that of the job
    Paged rows         # slot -> Job
    Paged lanes        # number of (queue, pool) -> Tree of the queued jobs
    Tree submitted     # every job
    Tree leased
    Tree unvalidated
    Tree backing_off
    Tree gangs

# Where a job stands in the indices.
cdef struct Place:
    int64_t submitted
    int64_t word0      # the first 16 bytes of the id, in the order of the text
    int64_t word1
    int64_t urgency    # rank of its class, then job priority
    int64_t eligible
    int64_t gang
    uint32_t marks     # in which indices it is

cdef enum:
    AHEAD = 16         # jobs that a walk fetches at a time

cdef enum:
    IN_LANES = 1
    IN_LEASED = 2
    IN_UNVALIDATED = 4
    IN_BACKING_OFF = 8
    IN_GANGS = 16


cdef class JobStore:
    cdef object __weakref__
    cdef History history
    cdef IdColumn ids
    cdef IdColumn runs
    cdef Maps id_maps
    cdef Maps run_maps
    cdef Pages row_pages
    cdef Pages lane_pages
    cdef Trees trees
    cdef Roots roots
    cdef dict ranks          # class name -> rank, 0 the most urgent
    cdef uint32_t moves[8]   # by state: bits of the states that may follow
    cdef dict lanes          # queue -> pool or None -> number
    cdef list lane_names     # number -> (queue, pool or None)
    cdef Edit spare
    cdef object after_commit

    cdef int lane_number(self, str queue, object pool) except -1
    cdef int place_of(self, Job job, Place *place) except -1


cdef class Reader:
    cdef JobStore store
    cdef Pin *pin            # NULL: a writer's
    cdef Roots roots
    cdef void *walks         # the first of a transaction's own that are under way

    cdef int must_be_open(self) except -1
    cdef Job row(self, uint32_t slot)
    cdef const Tree *lane(self, object queue, object pool) except? NULL
    cdef Walk walk(self, const Tree *tree)


cdef class Snapshot(Reader):
    pass


cdef class Txn(Reader):
    cdef Edit edit           # None after the end
    cdef readonly bint dry
    cdef bint busy           # a change is under way, and may not be changed

    cdef void end(self) noexcept
    cdef void leave_walks(self) noexcept
    cdef int begin_change(self) except -1
    cdef int must_have_room(self, uint64_t jobs) except -1
    cdef int vet(self, Job job, uint32_t slot, dict new_runs) except -1
    cdef int vet_runs(self, Job job, Job old, uint32_t slot, dict new_runs) except -1
    cdef int put(self, Job job, uint32_t slot) except -1
    cdef int drop(self, const Key *key, uint32_t slot) except -1
    cdef int move(self, Job old, Job new, uint32_t slot) except -1
    cdef int entry(self, Tree *tree, bint was, const Item *before, bint is_, const Item *after
                   ) except -1
    cdef int move_lanes(self, Job old, const Place *was, Job new, const Place *now_,
                        uint32_t slot) except -1
    cdef int lane_entry(self, str queue, object pool, const Place *place, uint32_t slot,
                        bint link) except -1
    cdef int move_runs(self, Job old, Job new, uint32_t slot) except -1
    cdef int run_entry(self, str run_id, uint32_t slot, bint link) except -1


cdef class Walk:
    cdef Reader reader
    cdef Cursor *cursors     # one a tree, merged
    cdef const Item **heads
    cdef Py_ssize_t trees
    cdef int64_t last        # the walk ends above this first key
    cdef PyObject *ahead[AHEAD]  # jobs of one tree fetched from memory together; borrowed
    cdef uint32_t ahead_at
    cdef uint32_t ahead_count
    cdef list rest           # what was left when the transaction wrote, last first
    cdef bint listed
    cdef void *before        # the chain of `Reader.walks`; borrowed
    cdef void *after

    cdef int start(self, Py_ssize_t trees) except -1
    cdef void add(self, const Tree *tree) noexcept
    cdef void fetch(self) noexcept
    cdef Job step(self)
    cdef Job merge_step(self)
    cdef int detach(self) except -1
    cdef void leave(self) noexcept


cdef class Diff:
    cdef tuple differences   # (old | None, new | None)
