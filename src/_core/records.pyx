# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Jobs as native records: one cache line each, counted, shared by views, stores and versions.

A record never changes once anybody but its maker has it, so a store keeps a job by holding its
record, and a view of it pins no version. What many jobs have in common is interned as a `Kind`;
what few have is in a `Cold` part, shared too. Nothing here is seen by the garbage collector. All
of it is called with the GIL held; readers without it look at records that a snapshot pins.
"""

cimport cython
from cpython.object cimport Py_EQ, PyObject, PyObject_RichCompareBool
from cpython.ref cimport Py_INCREF, Py_XDECREF, Py_XINCREF
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from pyresched._core.ids cimport (
    KIND_HEAP, MAX_ID_BYTES, Column, Key, form_text, key_of_form, read_form, read_key,
)
from pyresched._core.pages cimport (
    PAGE_BITS, PAGE_ROWS, Paged, Pages, page_read, page_write, pages_each, pages_free,
)
from pyresched._core.values cimport NEVER, Requirements
from pyresched._core.versions cimport (
    EditLog, add_fresh, add_retired, allocation_fails, make_room,
)


cdef extern from "slab.h" nogil:
    void *slab_take(size_t size)
    void slab_give(void *block, size_t size)
    size_t slab_bytes()

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object)
    Py_ssize_t PyUnicode_GET_LENGTH(object)

assert sizeof(Record) == 64, "a cache line"

# Of a cold part that has none of its own.
cdef Rare NOTHING_RARE = Rare(NULL, NEVER, NEVER, NEVER, NEVER)

cdef size_t record_count = 0
cdef size_t cold_count = 0
cdef size_t tracker_count = 0

# --- ids -----------------------------------------------------------------------------------------


cdef int name_read(str text, Name *name, uint8_t *kind) except -1:
    cdef Key key
    # What might not fit a store's column, or is longer than 16 bytes, stays as it is.
    if PyUnicode_IS_COMPACT_ASCII(text) and 0 < PyUnicode_GET_LENGTH(text) <= MAX_ID_BYTES:
        read_form(text, &key)
        if key.kind != KIND_HEAP:
            name.hi = key.hi
            name.lo = key.lo
            kind[0] = key.kind
            return 0
    Py_INCREF(text)
    name.hi = 0
    name.lo = <uint64_t> <size_t> <PyObject *> text
    kind[0] = KIND_HEAP
    return 0


cdef str name_text(const Name *name, uint8_t kind):
    cdef uint8_t written[36]
    cdef int size
    if kind == KIND_HEAP:
        return <str> <PyObject *> <size_t> name.lo
    size = form_text(kind, name.hi, name.lo, written)
    return PyUnicode_DecodeUTF8(<const char *> written, size, NULL)


cdef void name_hold(const Name *name, uint8_t kind) noexcept:
    if kind == KIND_HEAP:
        Py_XINCREF(<PyObject *> <size_t> name.lo)


cdef void name_drop(const Name *name, uint8_t kind) noexcept:
    if kind == KIND_HEAP:
        Py_XDECREF(<PyObject *> <size_t> name.lo)


cdef bint name_equal(const Name *a, uint8_t a_kind, const Name *b, uint8_t b_kind) noexcept:
    if a_kind != b_kind:
        return False
    if a_kind != KIND_HEAP or a.lo == b.lo:
        return a.hi == b.hi and a.lo == b.lo
    return <str> <PyObject *> <size_t> a.lo == <str> <PyObject *> <size_t> b.lo


cdef int name_key(const Column *column, const Name *name, uint8_t kind, Key *key) except -1:
    if kind == KIND_HEAP:
        return read_key(column, <object> <PyObject *> <size_t> name.lo, key)
    key_of_form(column, kind, name.hi, name.lo, key)
    return 0


cdef inline bint same(PyObject *a, PyObject *b) except -1:
    """Equal; what is identical is, without asking (a payload may not know how to compare)."""
    if a == b:
        return True
    if a == NULL or b == NULL:
        return False
    return PyObject_RichCompareBool(<object> a, <object> b, Py_EQ)


# --- kinds ---------------------------------------------------------------------------------------
#
# A table of chains of borrowed pointers: a kind takes itself out when the last record goes. Before
# it, a cache by the addresses of the parts, which catches jobs made one after the other.

cdef enum:
    RECENT = 512

cdef PyObject **buckets = NULL
cdef size_t bucket_count = 0
cdef size_t kind_count = 0
cdef uint64_t changes = 0      # of the table, so that a search notices
cdef PyObject *recent[RECENT]


cdef inline size_t address(object part) noexcept:
    return <size_t> <PyObject *> part >> 4


cdef inline size_t place_of(str queue, str job_set, Requirements requirements, tuple pools,
                            str job_type, object policy, object rules) noexcept:
    """Where in the cache a kind of exactly these parts is."""
    cdef uint64_t mixed = address(queue)
    mixed = mixed * 31 + address(job_set)
    mixed = mixed * 31 + address(requirements)
    mixed = mixed * 31 + address(pools)
    mixed = mixed * 31 + address(job_type)
    mixed = mixed * 31 + address(policy)
    mixed = mixed * 31 + address(rules)
    return (mixed * <uint64_t> 0x9E3779B97F4A7C15) >> 55


@cython.final
@cython.no_gc
cdef class Kind:
    """Queue, job set, requirements, pools, type, policy and rules of jobs that share them all."""

    def __init__(self):
        raise TypeError("kinds are found, not made")

    def __dealloc__(self):
        global kind_count, changes
        cdef PyObject *found
        cdef PyObject **at
        cdef size_t place
        if self.queue is None:
            return  # never became one
        place = place_of(self.queue, self.job_set, self.requirements, self.pools, self.job_type,
                         self.policy, self.rules)
        if recent[place] == <PyObject *> self:
            recent[place] = NULL
        at = &buckets[<size_t> self.hash_ & (bucket_count - 1)]
        found = at[0]
        while found != NULL:
            if found == <PyObject *> self:
                at[0] = <PyObject *> self.next_
                kind_count -= 1
                changes += 1
                return
            at = <PyObject **> &(<Kind> found).next_
            found = at[0]


cdef int more_buckets() except -1:
    """Twice as many, so that chains stay short."""
    global buckets, bucket_count, changes
    cdef size_t i, wanted = max(<size_t> 64, bucket_count * 2)
    cdef PyObject **grown = <PyObject **> calloc(wanted, sizeof(PyObject *))
    cdef PyObject **place
    cdef PyObject *kind
    cdef PyObject *after
    if grown == NULL:
        raise MemoryError
    for i in range(bucket_count):
        kind = buckets[i]
        while kind != NULL:
            after = <PyObject *> (<Kind> kind).next_
            place = &grown[<size_t> (<Kind> kind).hash_ & (wanted - 1)]
            (<Kind> kind).next_ = place[0]
            place[0] = kind
            kind = after
    free(buckets)
    buckets = grown
    bucket_count = wanted
    changes += 1
    return 0


cdef Py_hash_t hash_of(str queue, str job_set, Requirements requirements, tuple pools,
                       str job_type, object policy, object rules) except? -1:
    cdef uint64_t mixed = <uint64_t> hash(queue)
    mixed = (mixed ^ <uint64_t> hash(job_set)) * <uint64_t> 0x9E3779B97F4A7C15
    mixed = (mixed ^ <uint64_t> requirements.cached_hash) * <uint64_t> 0x9E3779B97F4A7C15
    mixed = (mixed ^ <uint64_t> hash(pools)) * <uint64_t> 0x9E3779B97F4A7C15
    mixed = (mixed ^ <uint64_t> hash(job_type)) * <uint64_t> 0x9E3779B97F4A7C15
    # Both raise for a value that can be changed: it is shared.
    mixed = (mixed ^ <uint64_t> hash(policy)) * <uint64_t> 0x9E3779B97F4A7C15
    mixed ^= <uint64_t> hash(rules)
    mixed ^= mixed >> 32
    return <Py_hash_t> (mixed >> 1)


cdef bint is_among(list kinds, Kind kind) noexcept:
    for each in kinds:
        if each is kind:
            return True
    return False


cdef Kind kind_of(str queue, str job_set, Requirements requirements, tuple pools, str job_type,
                  object policy, object rules):
    global kind_count, changes
    cdef size_t place = place_of(queue, job_set, requirements, pools, job_type, policy, rules)
    cdef PyObject **bucket
    cdef PyObject *at
    cdef Py_hash_t hash_
    cdef uint64_t seen
    cdef Kind kind
    cdef list others = None  # what was compared
    cdef bint again = False
    if recent[place] != NULL:
        kind = <Kind> recent[place]
        if (kind.queue is queue and kind.job_set is job_set and kind.pools is pools
                and kind.requirements is requirements and kind.job_type is job_type
                and kind.policy is policy and kind.rules is rules):
            return kind
    hash_ = hash_of(queue, job_set, requirements, pools, job_type, policy, rules)
    if kind_count >= bucket_count:
        more_buckets()
    while True:
        seen = changes
        at = buckets[<size_t> hash_ & (bucket_count - 1)]
        while at != NULL:
            kind = <Kind> at
            if kind.hash_ == hash_ and not (again and is_among(others, kind)):
                if alike(kind, queue, job_set, requirements, pools, job_type, policy, rules):
                    return kind
                # Comparing may run a user's code, which may change the table. What has been
                # compared stays until the new kind is in, and is not compared again.
                if others is None:
                    others = []
                others.append(kind)
                if changes != seen:
                    again = True
                    break
            at = <PyObject *> kind.next_
        if at == NULL:
            break
    kind = Kind.__new__(Kind)
    kind.queue = queue
    kind.job_set = job_set
    kind.requirements = requirements
    kind.pools = pools
    kind.job_type = job_type
    kind.policy = policy
    kind.rules = rules
    kind.hash_ = hash_
    bucket = &buckets[<size_t> hash_ & (bucket_count - 1)]
    kind.next_ = bucket[0]
    bucket[0] = <PyObject *> kind
    recent[place] = <PyObject *> kind
    kind_count += 1
    changes += 1
    return kind


cdef bint alike(Kind kind, str queue, str job_set, Requirements requirements, tuple pools,
                str job_type, object policy, object rules) except -1:
    return (
        kind.queue == queue
        and kind.job_set == job_set
        and kind.job_type == job_type
        and same(<PyObject *> kind.requirements, <PyObject *> requirements)
        and same(<PyObject *> kind.pools, <PyObject *> pools)
        and same(<PyObject *> kind.policy, <PyObject *> policy)
        and same(<PyObject *> kind.rules, <PyObject *> rules)
    )


# --- runs and trackers ---------------------------------------------------------------------------


cdef void run_hold(const RunPart *run) noexcept:
    name_hold(&run.id, run.id_kind)
    Py_XINCREF(<PyObject *> run.node_id)
    Py_XINCREF(<PyObject *> run.pool)
    Py_XINCREF(<PyObject *> run.reason)


cdef void run_drop(const RunPart *run) noexcept:
    name_drop(&run.id, run.id_kind)
    Py_XDECREF(<PyObject *> run.node_id)
    Py_XDECREF(<PyObject *> run.pool)
    Py_XDECREF(<PyObject *> run.reason)


cdef bint runs_equal(const RunPart *a, const RunPart *b) except -1:
    return (
        name_equal(&a.id, a.id_kind, &b.id, b.id_kind)
        and a.priority == b.priority
        and a.leased_at == b.leased_at
        and a.lease_expires_at == b.lease_expires_at
        and a.started_at == b.started_at
        and a.ended_at == b.ended_at
        and a.outcome == b.outcome
        and same(<PyObject *> a.node_id, <PyObject *> b.node_id)
        and same(<PyObject *> a.pool, <PyObject *> b.pool)
        and same(<PyObject *> a.reason, <PyObject *> b.reason)
    )


cdef inline size_t tracker_size(uint32_t count) noexcept nogil:
    return sizeof(TrackerPart) - sizeof(EventPart) + count * sizeof(EventPart)


cdef TrackerPart *tracker_new(uint32_t count) except NULL:
    global tracker_count
    cdef TrackerPart *tracker = NULL
    if not allocation_fails():
        tracker = <TrackerPart *> slab_take(tracker_size(count))
    if tracker == NULL:
        raise MemoryError
    memset(tracker, 0, tracker_size(count))
    tracker_count += 1
    tracker.holders = 1
    tracker.count = count
    return tracker


cdef void tracker_drop(TrackerPart *tracker) noexcept:
    global tracker_count
    cdef uint32_t i
    if tracker == NULL:
        return
    tracker.holders -= 1
    if tracker.holders:
        return
    for i in range(tracker.count):
        name_drop(&(tracker.events + i).previous_run, (tracker.events + i).run_kind)
        Py_XDECREF((tracker.events + i).previous_node)
    slab_give(tracker, tracker_size(tracker.count))
    tracker_count -= 1


cdef bint trackers_equal(const TrackerPart *a, const TrackerPart *b) except -1:
    cdef const EventPart *one
    cdef const EventPart *other
    cdef uint32_t i
    if a == b:
        return True
    if a == NULL or b == NULL or a.count != b.count or a.last != b.last:
        return False
    for i in range(a.count):
        one = a.events + i
        other = b.events + i
        if not (
            one.time == other.time
            and one.delay == other.delay
            and one.forced == other.forced
            and name_equal(
                &one.previous_run, one.run_kind, &other.previous_run, other.run_kind)
            and same(<PyObject *> one.previous_node, <PyObject *> other.previous_node)
        ):
            return False
    return True


# --- cold parts ----------------------------------------------------------------------------------


cdef inline size_t cold_size(uint32_t runs) noexcept nogil:
    return sizeof(Cold) - sizeof(RunPart) + runs * sizeof(RunPart)


cdef Cold *cold_new(uint32_t runs) except NULL:
    global cold_count
    cdef Cold *cold = NULL
    if not allocation_fails():
        cold = <Cold *> slab_take(cold_size(runs))
    if cold == NULL:
        raise MemoryError
    memset(cold, 0, cold_size(runs))
    cold_count += 1
    cold.holders = 1
    cold.run_count = runs
    cold.rare = &NOTHING_RARE
    return cold


cdef void rare_drop(const Rare *rare) noexcept:
    if rare != &NOTHING_RARE:
        Py_XDECREF(rare.reason)
        slab_give(<void *> rare, sizeof(Rare))


cdef void cold_drop(Cold *cold) noexcept:
    global cold_count
    cdef uint32_t i
    if cold == NULL:
        return
    cold.holders -= 1
    if cold.holders:
        return
    for i in range(cold.run_count):
        run_drop(cold.runs + i)
    Py_XDECREF(cold.gang)
    rare_drop(cold.rare)
    tracker_drop(cold.tracker)
    slab_give(cold, cold_size(cold.run_count))
    cold_count -= 1


cdef int rare_copy(const Rare *rare, const Rare **place) except -1:
    cdef Rare *copy = NULL
    if rare == &NOTHING_RARE:
        place[0] = rare
        return 0
    if not allocation_fails():
        copy = <Rare *> slab_take(sizeof(Rare))
    if copy == NULL:
        raise MemoryError
    copy[0] = rare[0]
    Py_XINCREF(copy.reason)
    place[0] = copy
    return 0


cdef Cold *cold_copy(const Cold *cold, uint32_t runs) except NULL:
    """The same but for the runs: zeros unless there are to be as many as before."""
    cdef Cold *copy = cold_new(runs)
    cdef uint32_t i
    try:
        rare_copy(cold.rare, &copy.rare)
    except MemoryError:
        cold_drop(copy)
        raise
    copy.gang = cold.gang
    copy.tracker = cold.tracker
    Py_XINCREF(copy.gang)
    if copy.tracker != NULL:
        copy.tracker.holders += 1
    if runs == cold.run_count:
        memcpy(copy.runs, cold.runs, runs * sizeof(RunPart))
        for i in range(runs):
            run_hold(copy.runs + i)
    return copy


cdef Rare *own_rare(Record *record) except NULL:
    cdef Cold *cold = own_cold(record)
    cdef Rare *rare = NULL
    if cold.rare != &NOTHING_RARE:
        return <Rare *> cold.rare
    if not allocation_fails():
        rare = <Rare *> slab_take(sizeof(Rare))
    if rare == NULL:
        raise MemoryError
    rare[0] = NOTHING_RARE
    cold.rare = rare
    return rare


cdef bint has_rare(const Record *record) noexcept:
    return record.cold != NULL and record.cold.rare != &NOTHING_RARE


cdef inline bint says_nothing(const Rare *rare) noexcept:
    return (rare.reason == NULL and rare.failed_at == NEVER and rare.eligible_at == NEVER
            and rare.retry_delay == NEVER and rare.ended_at == NEVER)


cdef Cold *own_cold(Record *record) except NULL:
    cdef Cold *cold = record.cold
    if cold == NULL:
        record.cold = cold_new(0)
    elif cold.holders > 1:
        record.cold = cold_copy(cold, cold.run_count)
        cold.holders -= 1
    return record.cold


cdef Cold *own_runs(Record *record, uint32_t count) except NULL:
    cdef Cold *cold = record.cold
    cdef uint32_t i
    if cold == NULL:
        record.cold = cold_new(count)
    elif cold.run_count != count:
        record.cold = cold_copy(cold, count)
        cold_drop(cold)
    else:
        cold = own_cold(record)
        for i in range(count):
            run_drop(cold.runs + i)
        memset(cold.runs, 0, count * sizeof(RunPart))
    return record.cold


cdef RunPart *one_more_run(Record *record) except NULL:
    cdef Cold *before = record.cold
    cdef uint32_t i, count
    if before == NULL:
        record.cold = cold_new(1)
        return record.cold.runs
    count = before.run_count
    record.cold = cold_copy(before, count + 1)
    memcpy(record.cold.runs, before.runs, count * sizeof(RunPart))
    for i in range(count):
        run_hold(record.cold.runs + i)
    cold_drop(before)
    return record.cold.runs + count


cdef void settle_cold(Record *record) noexcept:
    cdef Cold *cold = record.cold
    cdef const Rare *rare
    if cold == NULL:
        return
    # A shared one was settled by who made it.
    if cold.holders == 1 and cold.rare != &NOTHING_RARE and says_nothing(cold.rare):
        rare = cold.rare
        cold.rare = &NOTHING_RARE
        rare_drop(rare)
    if (cold.run_count == 0 and cold.gang == NULL and cold.tracker == NULL
            and says_nothing(cold.rare)):
        record.cold = NULL
        cold_drop(cold)


cdef bint colds_equal(const Cold *a, const Cold *b) except -1:
    cdef uint32_t i
    if a == b:
        return True
    if a == NULL or b == NULL or a.run_count != b.run_count:
        return False
    for i in range(a.run_count):
        if not runs_equal(a.runs + i, b.runs + i):
            return False
    return (
        a.rare.failed_at == b.rare.failed_at
        and a.rare.eligible_at == b.rare.eligible_at
        and a.rare.retry_delay == b.rare.retry_delay
        and a.rare.ended_at == b.rare.ended_at
        and same(<PyObject *> a.gang, <PyObject *> b.gang)
        and same(a.rare.reason, b.rare.reason)
        and trackers_equal(a.tracker, b.tracker)
    )


# --- records -------------------------------------------------------------------------------------


cdef Record *record_new() except NULL:
    global record_count
    cdef Record *record = NULL if allocation_fails() else <Record *> slab_take(sizeof(Record))
    if record == NULL:
        raise MemoryError
    record_count += 1
    memset(record, 0, sizeof(Record))
    record.holders = 1
    record.id_kind = KIND_HEAP  # of nothing, yet
    return record


cdef int records_new(Record **records, size_t count) except -1:
    cdef size_t made = 0
    try:
        while made < count:
            records[made] = record_new()
            made += 1
    except MemoryError:
        while made:
            made -= 1
            record_drop(records[made])
        raise
    return 0


cdef Record *record_copy(const Record *record) except NULL:
    global record_count
    cdef Record *copy = NULL if allocation_fails() else <Record *> slab_take(sizeof(Record))
    if copy == NULL:
        raise MemoryError
    record_count += 1
    memcpy(copy, record, sizeof(Record))
    copy.holders = 1
    name_hold(&copy.id, copy.id_kind)
    Py_XINCREF(copy.kind)
    Py_XINCREF(copy.payload)
    if copy.cold != NULL:
        copy.cold.holders += 1
    return copy


# How many records are being freed one within another (a payload, a policy or rules may be a
# job), and those that wait until these are through, as the stack has an end.
cdef enum:
    DEEP = 50

cdef uint32_t depth = 0
cdef Record *waiting = NULL


cdef void record_drop(Record *record) noexcept:
    global depth, waiting
    record.holders -= 1
    if record.holders:
        return
    if depth == DEEP:
        record.submitted_at = <int64_t> <size_t> waiting
        waiting = record
        return
    depth += 1
    record_free(record)
    while depth == 1 and waiting != NULL:
        record = waiting
        waiting = <Record *> <size_t> record.submitted_at
        record_free(record)
    depth -= 1


cdef void record_free(Record *record) noexcept:
    global record_count
    cdef Record gone
    # What a reference frees may make records: this one is gone by then.
    gone = record[0]
    slab_give(record, sizeof(Record))
    record_count -= 1
    name_drop(&gone.id, gone.id_kind)
    Py_XDECREF(gone.kind)
    cold_drop(gone.cold)
    Py_XDECREF(gone.payload)


cdef bint records_equal(const Record *a, const Record *b) except -1:
    if a == b:
        return True
    return (
        a.version == b.version
        and a.state == b.state
        and a.flags == b.flags
        and a.submitted_at == b.submitted_at
        and a.priority == b.priority
        and a.kind == b.kind
        and name_equal(&a.id, a.id_kind, &b.id, b.id_kind)
        and colds_equal(a.cold, b.cold)
        and same(<PyObject *> a.payload, <PyObject *> b.payload)
    )


# --- rows ----------------------------------------------------------------------------------------


cdef void reclaim_record(void *owner, uint64_t what) noexcept:
    record_drop(<Record *> <size_t> what)


cdef const Record *record_at(const Pages *pages, const Paged *array, uint32_t row) noexcept nogil:
    cdef const RecordRow *found = <const RecordRow *> page_read(pages, array, row)
    return NULL if found == NULL else found.held


cdef int record_put(Pages *pages, Paged *array, EditLog *log, uint32_t row,
                    const Record *held) except -1:
    cdef RecordRow *found = <RecordRow *> page_write(pages, array, log, row)
    make_room(log, 1)
    if found.held != NULL:
        add_retired(log, reclaim_record, NULL, <uint64_t> <size_t> found.held, found.birth)
    if held != NULL:
        record_hold(held)
        add_fresh(log, reclaim_record, NULL, <uint64_t> <size_t> held)
    found.held = <Record *> held
    found.birth = log.stamp
    return 0


cdef int records_fill(Pages *pages, Paged *array, EditLog *log, const uint32_t *rows,
                      Record **held, size_t count) except -1:
    cdef RecordRow *found = NULL
    cdef size_t i
    for i in range(count):
        if i and rows[i] == rows[i - 1] + 1 and rows[i] & (PAGE_ROWS - 1):
            found += 1  # on the page of the one before, which is the edit's own
            array.length = max(array.length, <uint64_t> rows[i] + 1)
        else:
            found = <RecordRow *> page_write(pages, array, log, rows[i])
        assert found.held == NULL, "the row is empty"
        make_room(log, 1)
        record_hold(held[i])
        add_fresh(log, reclaim_record, NULL, <uint64_t> <size_t> held[i])
        found.held = held[i]
        found.birth = log.stamp
    return 0


cdef int records_replace(Pages *pages, Paged *array, EditLog *log, const uint32_t *rows,
                         Record **held, size_t count) except -1:
    cdef RecordRow *page = NULL
    cdef RecordRow *found
    cdef uint32_t number = 0
    cdef size_t i
    for i in range(count):
        if page == NULL or rows[i] >> PAGE_BITS != number:
            number = rows[i] >> PAGE_BITS
            found = <RecordRow *> page_write(pages, array, log, rows[i])
            page = found - (rows[i] & (PAGE_ROWS - 1))
        found = page + (rows[i] & (PAGE_ROWS - 1))
        make_room(log, 1)
        add_retired(log, reclaim_record, NULL, <uint64_t> <size_t> found.held, found.birth)
        record_hold(held[i])
        add_fresh(log, reclaim_record, NULL, <uint64_t> <size_t> held[i])
        found.held = held[i]
        found.birth = log.stamp
    return 0


cdef int give_up_row(void *context, uint32_t row, void *at) except -1:
    cdef Record *held = (<RecordRow *> at).held
    if held != NULL:
        (<RecordRow *> at).held = NULL
        record_drop(held)
    return 0


cdef void records_free(Pages *pages, Paged *array) noexcept:
    cdef Paged gone = array[0]
    # What a reference frees may look at the array: it is empty by then.
    memset(array, 0, sizeof(Paged))
    pages_each(pages, &gone, give_up_row, NULL)
    pages_free(pages, &gone)


def memory():
    """How many `records`, `kinds`, `colds` and `trackers` the process has, and the
    `record_bytes` of the chunks of records."""
    return {
        "records": record_count, "kinds": kind_count, "colds": cold_count,
        "trackers": tracker_count, "record_bytes": slab_bytes(),
    }
