# cython: language_level=3
# What a job is to the store: immutable native records, counted and shared by all versions.
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from pyresched._core.ids cimport Column, Key
from pyresched._core.pages cimport Paged, Pages
from pyresched._core.values cimport NEVER, Requirements
from pyresched._core.versions cimport EditLog

# An id in the form of ids.pxd; of KIND_HEAP, lo is a str of our own.
cdef struct Name:
    uint64_t hi
    uint64_t lo

# One run. The strings are counted references.
cdef struct RunPart:
    Name id
    PyObject *node_id
    PyObject *pool
    PyObject *reason
    int64_t leased_at
    int64_t lease_expires_at
    int64_t started_at
    int64_t ended_at      # NEVER: active
    int32_t priority
    uint8_t id_kind
    uint8_t outcome       # 1 + its place among the outcomes, 0: none

# One reschedule, and the history of them that a job or a gang carries.
cdef struct EventPart:
    int64_t time
    int64_t delay
    Name previous_run
    PyObject *previous_node
    uint8_t run_kind
    uint8_t forced        # 1: by hand, counted in no window

cdef struct TrackerPart:
    uint32_t holders
    uint32_t count
    uint32_t last         # place among the `LastReschedule`s
    EventPart events[1]   # `count` of them

# What jobs have that wait for another run, or have ended.
cdef struct Rare:
    PyObject *reason      # NULL: ""
    int64_t failed_at
    int64_t eligible_at
    int64_t retry_delay
    int64_t ended_at

# What few jobs have. Shared by versions that do not change it.
cdef struct Cold:
    uint32_t holders
    uint32_t run_count
    PyObject *gang        # or NULL
    TrackerPart *tracker  # or NULL
    const Rare *rare      # never NULL: one that says nothing is shared by all
    RunPart runs[1]       # `run_count` of them

cdef enum:
    VALIDATED = 1

# One job at one version: a cache line. Never changed once anybody but its maker has it.
cdef struct Record:
    uint32_t holders      # views, rows of stores, and who is at work with it
    uint8_t state
    uint8_t id_kind
    uint8_t flags
    uint8_t unused
    Name id
    int64_t submitted_at
    uint32_t version
    uint32_t priority
    PyObject *kind        # a Kind
    PyObject *payload     # NULL: None
    Cold *cold            # NULL: nothing of it

# A row of records: the store's hold counts for the versions from `birth` on, until replaced.
cdef struct RecordRow:
    Record *held
    uint64_t birth


# What jobs have in common, once for all jobs that have it: equal kinds are one object.
cdef class Kind:
    cdef readonly str queue
    cdef readonly str job_set
    cdef readonly Requirements requirements
    cdef readonly tuple pools
    cdef readonly str job_type
    cdef readonly object policy
    cdef readonly object rules
    cdef Py_hash_t hash_
    cdef void *next_      # in its bucket


# The kind of these parts. Raises MemoryError, and what comparing a policy or rules raises.
cdef Kind kind_of(str queue, str job_set, Requirements requirements, tuple pools, str job_type,
                  object policy, object rules)

# The form of any str, also of one that no store would take as an id. Takes a hold on KIND_HEAP.
cdef int name_read(str text, Name *name, uint8_t *kind) except -1
cdef str name_text(const Name *name, uint8_t kind)
cdef void name_hold(const Name *name, uint8_t kind) noexcept
cdef void name_drop(const Name *name, uint8_t kind) noexcept
cdef bint name_equal(const Name *a, uint8_t a_kind, const Name *b, uint8_t b_kind) noexcept

cdef void run_hold(const RunPart *run) noexcept
cdef void run_drop(const RunPart *run) noexcept
cdef bint runs_equal(const RunPart *a, const RunPart *b) except -1

# Room for so many events, with one hold, all zeros. Raises MemoryError.
cdef TrackerPart *tracker_new(uint32_t count) except NULL
cdef void tracker_drop(TrackerPart *tracker) noexcept
cdef bint trackers_equal(const TrackerPart *a, const TrackerPart *b) except -1

# A record of zeros with one hold, or a copy of one that shares what it leads to.
# Raise MemoryError.
cdef Record *record_new() except NULL
cdef Record *record_copy(const Record *record) except NULL
# *count* of them to *records*, all or none.
cdef int records_new(Record **records, size_t count) except -1
# Give up a hold. The last one frees it, which may run a user's code.
cdef void record_drop(Record *record) noexcept
cdef bint records_equal(const Record *a, const Record *b) except -1
# The key of an id. Raises for one that cannot be an id.
cdef int name_key(const Column *column, const Name *name, uint8_t kind, Key *key) except -1

# For whoever makes a record: its cold part, its own and changeable. Raises MemoryError.
cdef Cold *own_cold(Record *record) except NULL
# The part of it that few of these have, to be changed; whether there is one.
cdef Rare *own_rare(Record *record) except NULL
cdef bint has_rare(const Record *record) noexcept
# The cold part with room for *count* runs, which are zeros (of those that were there none is kept).
cdef Cold *own_runs(Record *record, uint32_t count) except NULL
# One run more, all zeros, behind those that it has.
cdef RunPart *one_more_run(Record *record) except NULL
# Drop a cold part that says nothing.
cdef void settle_cold(Record *record) noexcept

cdef inline Record *record_hold(const Record *record) noexcept:
    (<Record *> record).holders += 1
    return <Record *> record


cdef inline int record_key(const Column *column, const Record *record, Key *key) except -1:
    return name_key(column, &record.id, record.id_kind, key)


cdef inline const RunPart *active_run(const Record *record) noexcept nogil:
    """The newest run if it has not ended, or NULL. (After a reconnect the kept run is last.)"""
    cdef const Cold *cold = record.cold
    cdef const RunPart *newest
    if cold == NULL or cold.run_count == 0:
        return NULL
    newest = cold.runs + (cold.run_count - 1)
    return newest if newest.ended_at == NEVER else NULL


# Rows of records: an array of `Pages` with row_size = sizeof(RecordRow). `record_put` takes a
# hold of its own and retires that of the record that was there; NULL empties the row.
cdef const Record *record_at(const Pages *pages, const Paged *array, uint32_t row) noexcept nogil
cdef int record_put(Pages *pages, Paged *array, EditLog *log, uint32_t row,
                    const Record *held) except -1
# The same for many rows that are empty.
cdef int records_fill(Pages *pages, Paged *array, EditLog *log, const uint32_t *rows,
                      Record **held, size_t count) except -1
# The same for many rows in ascending order, each of which has a record.
cdef int records_replace(Pages *pages, Paged *array, EditLog *log, const uint32_t *rows,
                         Record **held, size_t count) except -1
# Give back every node of this version and the holds of its rows; nobody reads another.
cdef void records_free(Pages *pages, Paged *array) noexcept
