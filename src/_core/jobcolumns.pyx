# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns of the jobs of one version, and their order by submission. No Python in it.

Reads records that the caller keeps alive: by a pin, or by not letting the GIL go.
"""

from libc.stdint cimport INT64_MIN, int64_t, uint32_t
from libc.stdlib cimport free, malloc, qsort

from pyresched._core.bits cimport prefetch
from pyresched._core.hamt cimport Maps, hamt_slots
from pyresched._core.ids cimport NOWHERE, Column, compare_slots
from pyresched._core.jobindex cimport Roots
from pyresched._core.pages cimport Pages, page_read
from pyresched._core.records cimport VALIDATED, Cold, Record, RecordRow, RunPart, record_at
from pyresched._core.values cimport NEVER

cdef enum:
    AHEAD = 16         # jobs whose memory is fetched together

cdef enum Field:
    STATE
    PRIORITY
    SUBMITTED_AT
    VERSION
    IS_VALIDATED
    RUNS
    RESCHEDULES
    FAILED_AT
    ELIGIBLE_AT
    ENDED_AT
    LEASED_AT
    STARTED_AT

cdef dict fields = {
    "state": STATE, "priority": PRIORITY, "submitted_at": SUBMITTED_AT, "version": VERSION,
    "validated": IS_VALIDATED, "runs": RUNS, "reschedules": RESCHEDULES, "failed_at": FAILED_AT,
    "eligible_at": ELIGIBLE_AT, "ended_at": ENDED_AT, "leased_at": LEASED_AT,
    "started_at": STARTED_AT,
}


cdef dict column_fields():
    return fields


cdef int64_t field_of(const Record *job, int field) noexcept nogil:
    """What a column says of *job*; NEVER where it has none, or there is no job."""
    cdef const Cold *cold
    cdef const RunPart *run
    if job == NULL:
        return NEVER
    if field == STATE:
        return job.state
    if field == PRIORITY:
        return job.priority
    if field == SUBMITTED_AT:
        return job.submitted_at
    if field == VERSION:
        return job.version
    if field == IS_VALIDATED:
        return job.flags & VALIDATED != 0
    cold = job.cold
    if field == RUNS:
        return 0 if cold == NULL else cold.run_count
    if field == RESCHEDULES:
        return 0 if cold == NULL or cold.tracker == NULL else cold.tracker.count
    if cold == NULL:
        return NEVER
    if field == FAILED_AT:
        return cold.rare.failed_at
    if field == ELIGIBLE_AT:
        return cold.rare.eligible_at
    if field == ENDED_AT:
        return cold.rare.ended_at
    if cold.run_count == 0:
        return NEVER
    run = cold.runs + (cold.run_count - 1)
    return run.leased_at if field == LEASED_AT else run.started_at


cdef void fill_column(const Pages *pages, const Roots *roots, const uint32_t *slots,
                      Py_ssize_t count, int field, int64_t *out) noexcept nogil:
    cdef const void *rows[AHEAD]
    cdef const Record *job
    cdef Py_ssize_t first = 0, i, group
    while first < count:
        group = min(<Py_ssize_t> AHEAD, count - first)
        for i in range(group):
            rows[i] = NULL
            if slots[first + i] != NOWHERE:
                rows[i] = page_read(pages, &roots.rows, slots[first + i])
                prefetch(rows[i])
        for i in range(group):
            if rows[i] != NULL:
                prefetch((<const RecordRow *> rows[i]).held)
        for i in range(group):
            job = NULL if rows[i] == NULL else (<const RecordRow *> rows[i]).held
            out[first + i] = field_of(job, field)
        first += group


cdef struct Submitted:
    int64_t at
    const Column *column
    uint32_t slot


cdef int by_submission(const void *a, const void *b) noexcept nogil:
    cdef const Submitted *one = <const Submitted *> a
    cdef const Submitted *other = <const Submitted *> b
    if one.at != other.at:
        return -1 if one.at < other.at else 1
    return compare_slots(one.column, one.slot, other.slot)


cdef uint32_t *sorted_slots(const Column *column, const Maps *maps, const Pages *pages,
                            const Roots *roots) noexcept nogil:
    """The slots of all jobs by submit time, then id; NULL: no memory."""
    cdef size_t i, count = roots.ids.count
    cdef uint32_t *slots = <uint32_t *> malloc(max(count, <size_t> 1) * sizeof(uint32_t))
    cdef Submitted *jobs = <Submitted *> malloc(max(count, <size_t> 1) * sizeof(Submitted))
    cdef const Record *job
    cdef bint ascending = True
    if slots == NULL or jobs == NULL:
        free(slots)
        free(jobs)
        return NULL
    hamt_slots(maps, &roots.ids, slots)
    qsort(slots, count, sizeof(uint32_t), by_number)
    for i in range(count):
        if i + AHEAD < count:
            prefetch(record_at(pages, &roots.rows, slots[i + AHEAD]))
        job = record_at(pages, &roots.rows, slots[i])
        jobs[i].at = INT64_MIN if job == NULL else job.submitted_at
        jobs[i].column = column
        jobs[i].slot = slots[i]
        if i and by_submission(&jobs[i - 1], &jobs[i]) > 0:
            ascending = False
    if not ascending:
        qsort(jobs, count, sizeof(Submitted), by_submission)
        for i in range(count):
            slots[i] = jobs[i].slot
    free(jobs)
    return slots


cdef int by_number(const void *a, const void *b) noexcept nogil:
    cdef uint32_t one = (<const uint32_t *> a)[0]
    cdef uint32_t other = (<const uint32_t *> b)[0]
    return (one > other) - (one < other)
