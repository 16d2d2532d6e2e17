# cython: language_level=3
# Rows by slot and every index over them, in versions. See docs/invariants.md.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pyresched._core.hamt cimport Hamt, Maps
from pyresched._core.ids cimport Column, IdColumn
from pyresched._core.ordered cimport Item, Tree, Trees
from pyresched._core.pages cimport Paged, Pages
from pyresched._core.records cimport Kind, Name, Record
from pyresched._core.versions cimport Edit, EditLog, History

cdef enum:
    # The value of an item that is sought by its keys alone: it stands before all that share them.
    BEFORE_ALL = -1
    # Keys are looked up so many at a time.
    BLOCK = 256

# One version: copy the struct to keep it.
cdef struct Roots:
    Hamt ids           # job id -> slot
    Hamt runs          # run id -> slot of its own, whose value is that of the job
    Paged rows         # slot -> Record
    Paged lanes        # number of (queue, pool) -> Lane
    Tree leased
    Tree unvalidated
    Tree backing_off
    Tree gangs

# The queued jobs of a queue that may run in a pool.
cdef struct Lane:
    Tree tree
    uint64_t birth     # the stamp of the edit since which it is never empty

# Where a job stands in the indices.
cdef struct Place:
    int64_t submitted
    int64_t urgency    # rank of its class, then job priority
    int64_t eligible
    int64_t gang
    uint32_t marks     # in which indices it is

cdef enum:
    IN_LANES = 1
    IN_LEASED = 2
    IN_UNVALIDATED = 4
    IN_BACKING_OFF = 8
    IN_GANGS = 16


# Which number a lane has. It is held once for each time that the lane fills, until no version
# sees it filled so, and is another's after that.
cdef class LaneNumbers:
    cdef dict numbers        # queue -> pool or None -> number
    cdef list names          # number -> (queue, pool or None), None: nobody's
    cdef list holds          # number -> how often it is held
    cdef list spare          # the numbers that are nobody's

    cdef int64_t of(self, object queue, object pool) except -2
    cdef int64_t hold(self, str queue, object pool) except -1
    cdef void let_go(self, uint32_t number) noexcept


cdef class JobIndex:
    cdef object __weakref__
    cdef History history
    cdef IdColumn ids
    cdef IdColumn runs
    cdef Maps id_maps
    cdef Maps run_maps
    cdef Pages row_pages
    cdef Pages lane_pages
    cdef Trees trees         # of lanes, gangs and what is backing off: two words
    cdef Trees moments       # of the others: by submit time alone
    cdef Roots roots
    cdef dict ranks          # class name -> rank, 0 the most urgent
    cdef str class_seen      # the one that was looked up last, and its rank
    cdef int64_t rank_seen
    cdef uint32_t moves[8]   # by state: bits of the states that may follow
    cdef LaneNumbers lanes
    cdef Edit spare          # of a writer that ended, for the next

    cdef int committed(self) except -1
    cdef int must_be_made(self) except -1


# The order of slots by their ids; what is below 0 stands for none and comes first.
cdef int by_id(const void *column, int64_t a, int64_t b) noexcept nogil
# Where the members of a gang stand together. Two gangs may share it: readers look twice.
cdef int64_t gang_hash(const Column *column, str queue, str gang_id) except? -1
# The rank of the class of a kind, -1: there is no such class.
cdef int64_t rank_of(JobIndex index, Kind kind) except -2
# Where a job belongs, whose class there is (`place_by`: of this rank). Raises UnicodeEncodeError.
cdef int place_of(JobIndex index, const Record *job, Place *place) except -1
cdef int place_by(JobIndex index, const Record *job, int64_t rank, Place *place) except -1
# Change the entries of every index from those of *old* to those of *new*, NULL: no job.
cdef int move(JobIndex index, Roots *roots, EditLog *log, const Record *old, const Record *new,
              uint32_t slot) except -1
# Take *before* out if it *was* in, put *after* in if it *is_*.
cdef int entry(Trees *trees, EditLog *log, Tree *tree, bint was, const Item *before,
               bint is_, const Item *after) except -1
# One entry of a lane, of the runs.
cdef int lane_entry(JobIndex index, Roots *roots, EditLog *log, str queue, object pool,
                    const Place *place, uint32_t slot, bint link) except -1
cdef int run_entry(JobIndex index, Roots *roots, EditLog *log, const Name *run, uint8_t kind,
                   uint32_t slot, bint link) except -1
cdef int move_runs(JobIndex index, Roots *roots, EditLog *log, const Record *old,
                   const Record *new, uint32_t slot) except -1
# A lane that is about to be filled or changed; *fills*: it is empty.
cdef Lane *own_lane(JobIndex index, Roots *roots, EditLog *log, str queue, object pool,
                    bint fills) except NULL
# A lane that has just been emptied gives up its number.
cdef int lane_emptied(JobIndex index, EditLog *log, str queue, object pool,
                      const Lane *lane) except -1


# Ids decide between items with equal words.
cdef inline Item lane_item(const Place *place, uint32_t slot) noexcept nogil:
    return Item(place.urgency, place.submitted, 0, slot)


cdef inline Item submit_item(const Place *place, uint32_t slot) noexcept nogil:
    return Item(place.submitted, 0, 0, slot)


cdef inline Item backing_off_item(const Place *place, uint32_t slot) noexcept nogil:
    return Item(place.eligible, place.submitted, 0, slot)


cdef inline Item gang_item(const Place *place, uint32_t slot) noexcept nogil:
    return Item(place.gang, place.submitted, 0, slot)
