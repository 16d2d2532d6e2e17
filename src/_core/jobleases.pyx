# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Many queued jobs leased at once: a record a job, and each index changed in one go.

Gives the same rows and indices as an upsert job by job (INV-D1 to INV-D9). Jobs are taken in the
order of their slots, which is that of memory; what leaves a lane or enters the tree of leased jobs
is sorted, and where it is much the tree is written anew.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_XINCREF
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from pyresched._core.batch cimport Batch, Coded, Numbers, Texts
from pyresched._core.bits cimport prefetch, ulid
from pyresched._core.hamt cimport hamt_find_many, hamt_put, hamt_warm
from pyresched._core.hamtbuild cimport hamt_build, sorted_cells
from pyresched._core.ids cimport (
    KIND_ULID, NOWHERE, Key, ascii_of, entry_at, is_ascii, key_of_form, length_of,
    take_slot,
)
from pyresched._core.jobindex cimport (
    BLOCK, JobIndex, Lane, Place, Roots, lane_emptied, lane_item, own_lane, submit_item,
)
from pyresched._core.jobload cimport Load, Lot, Shared
from pyresched._core.jobids cimport JobIds
from pyresched._core.ordered cimport Trees, tree_add, tree_rebuild, tree_remove
from pyresched._core.records cimport (
    Kind, Name, Record, RunPart, name_drop, name_hold, name_key, name_text, one_more_run, record_at,
    record_copy, records_replace,
)
from pyresched._core.treenode cimport Item
from pyresched._core.values cimport LEASED, NEVER, QUEUED, or_never, whole_in
from pyresched._core.versions cimport EditLog

from pyresched._core.values import JobState
from pyresched.errors import (
    AwaitsReplacement, Conflict, DuplicateId, IllegalTransition, InputError, RunBelongsToOtherJob,
)

cdef enum:
    AHEAD = 16              # records whose memory is fetched ahead
    WARM = 32               # keys whose nodes are
    RADIX_BITS = 11
    RADIX = 2048
    BULK = 256              # runs: for fewer it does not pay to fill an empty map at once
    PART = 8                # a tree is written anew when so great a part of it changes

cdef tuple STATES = tuple([state.name.lower() for state in JobState])
cdef int64_t MOST_PRIORITY = 0x7FFFFFFF
cdef uint32_t LAST_VERSION = 0xFFFFFFFF


cdef str id_of(const Record *job):
    return name_text(&job.id, job.id_kind)


cdef int sort_by_slot(Leased *jobs, size_t count) except -1:
    """Put *jobs* in ascending order of slot."""
    cdef size_t starts[RADIX]
    cdef size_t i, here, total
    cdef uint32_t varies = 0, digit
    cdef int shift
    cdef bint ascend = True
    cdef Leased *one = jobs
    cdef Leased *other
    for i in range(1, count):
        ascend = ascend and jobs[i].slot >= jobs[i - 1].slot
        varies |= jobs[i].slot ^ jobs[0].slot
    if ascend:
        return 0
    other = <Leased *> malloc(count * sizeof(Leased))
    if other == NULL:
        raise MemoryError
    for shift in range(0, 32, RADIX_BITS):
        if not varies >> shift & (RADIX - 1):
            continue
        memset(starts, 0, sizeof(starts))
        for i in range(count):
            starts[one[i].slot >> shift & (RADIX - 1)] += 1
        total = 0
        for digit in range(RADIX):
            here = starts[digit]
            starts[digit] = total
            total += here
        for i in range(count):
            digit = one[i].slot >> shift & (RADIX - 1)
            other[starts[digit]] = one[i]
            starts[digit] += 1
        one, other = other, one
    if one != jobs:
        memcpy(jobs, one, count * sizeof(Leased))
        other = one
    free(other)
    return 0


@cython.final
@cython.no_gc
cdef class Leases:
    """One lease of many: the columns taken apart, then the jobs looked at, then all written."""

    def __dealloc__(self):
        cdef size_t i
        for i in range(self.named):
            name_drop(&self.names[i], self.runs[i].kind)
        free(self.jobs)
        free(self.slots)
        free(self.runs)
        free(self.names)
        free(self.run_slots)
        free(self.leased)
        free(self.cells)

    cdef int room(self, Py_ssize_t count) except -1:
        cdef size_t most = max(1, count)
        self.jobs = <Leased *> malloc(most * sizeof(Leased))
        self.slots = <uint32_t *> malloc(most * sizeof(uint32_t))
        self.runs = <Key *> malloc(most * sizeof(Key))
        self.names = <Name *> malloc(most * sizeof(Name))
        self.run_slots = <uint32_t *> malloc(most * sizeof(uint32_t))
        self.leased = <Item *> malloc(most * sizeof(Item))
        if (self.jobs == NULL or self.slots == NULL or self.runs == NULL or self.names == NULL
                or self.run_slots == NULL or self.leased == NULL):
            raise MemoryError
        self.count = count
        return 0

    cdef int name_runs(self, object run_ids) except -1:
        """The ids of the new runs, row by row."""
        cdef Texts texts
        cdef uint8_t kind = 0
        cdef size_t i
        if type(run_ids) is str:
            return self.count_runs(<str> run_ids)
        texts = Texts(run_ids, "run_ids")
        if texts.count != <Py_ssize_t> self.count:
            raise InputError(f"run_ids has {texts.count} rows, ids have {self.count}")
        self.texts = texts
        for i in range(self.count):
            texts.read(&self.index.runs.column, i, &self.names[i], &kind, &self.runs[i])
            self.named += 1
        return 0

    cdef int count_runs(self, str first) except -1:
        """ULIDs from *first* on, each one more than the one before."""
        cdef uint64_t hi = 0, lo = 0
        cdef size_t i
        self.counted = True
        if not (is_ascii(first) and length_of(first) == 26 and ulid(ascii_of(first), &hi, &lo)):
            raise InputError(
                f"run_ids: {first!r} is no ULID to count from; give one, or an id a job")
        self.first.hi = hi
        self.first.lo = lo
        for i in range(self.count):
            key_of_form(&self.index.runs.column, KIND_ULID, hi, lo, &self.runs[i])
            lo += 1
            if lo == 0:
                hi += 1
                if hi == 0 and i + 1 < self.count:
                    raise InputError(
                        f"run_ids: fewer than {self.count} ULIDs come after {first!r}")
        return 0

    cdef int find(self, Roots *roots) except -1:
        """Where each job is; then whether each may be leased, and its run is new."""
        self.find_jobs(roots)
        self.vet(roots)
        return self.vet_runs(roots)

    cdef int find_jobs(self, Roots *roots) except -1:
        if type(self.ids) is JobIds:
            self.find_records(roots, <JobIds> self.ids)
        else:
            self.find_ids(roots, <Texts> self.ids)
        return sort_by_slot(self.jobs, self.count)

    cdef int find_records(self, Roots *roots, JobIds ids) except -1:
        """Those of a snapshot, if they still are what they were."""
        cdef const Record *job
        cdef size_t i
        if ids.reader is not None and ids.reader.index is not self.index:
            raise InputError(f"ids are of another db: {ids!r}")
        if ids.slots == NULL:
            self.seek_records(roots, ids)
        else:
            for i in range(self.count):
                self.jobs[i].slot = ids.slots[i]
                self.jobs[i].row = <uint32_t> i
        sort_by_slot(self.jobs, self.count)
        for i in range(self.count):
            if i + AHEAD < self.count:
                prefetch(&ids.records[self.jobs[i + AHEAD].row])
            job = ids.records[self.jobs[i].row]
            if self.record(roots, self.jobs[i].slot) != job:
                raise Conflict((("job", id_of(job)),))
        return 0

    cdef int seek_records(self, Roots *roots, JobIds ids) except -1:
        cdef Key keys[BLOCK]
        cdef uint32_t slots[BLOCK]
        cdef const Record *job
        cdef Py_ssize_t first, i, here
        for first in range(0, ids.count, BLOCK):
            here = min(<Py_ssize_t> BLOCK, ids.count - first)
            for i in range(here):
                prefetch(ids.records[first + i])
            for i in range(here):
                job = ids.records[first + i]
                name_key(&self.index.ids.column, &job.id, job.id_kind, &keys[i])
            hamt_find_many(&self.index.id_maps, &roots.ids, keys, slots, here)
            for i in range(here):
                if slots[i] == NOWHERE:
                    raise Conflict((("job", id_of(ids.records[first + i])),))
                self.jobs[first + i].slot = slots[i]
                self.jobs[first + i].row = <uint32_t> (first + i)
        return 0

    cdef int find_ids(self, Roots *roots, Texts ids) except -1:
        cdef Key keys[BLOCK]
        cdef Name names[BLOCK]
        cdef uint32_t slots[BLOCK]
        cdef uint8_t kind = 0
        cdef Py_ssize_t first, i, here, read
        for first in range(0, ids.count, BLOCK):
            here = min(<Py_ssize_t> BLOCK, ids.count - first)
            read = 0
            try:
                for i in range(here):
                    ids.read(&self.index.ids.column, first + i, &names[i], &kind, &keys[i])
                    read += 1
                hamt_find_many(&self.index.id_maps, &roots.ids, keys, slots, here)
                for i in range(here):
                    if slots[i] == NOWHERE:
                        raise InputError(f"no job {name_text(&names[i], keys[i].kind)!r}")
                    self.jobs[first + i].slot = slots[i]
                    self.jobs[first + i].row = <uint32_t> (first + i)
            finally:
                for i in range(read):
                    name_drop(&names[i], keys[i].kind)
        return 0

    cdef int vet(self, Roots *roots) except -1:
        """Raise for a job that cannot be leased like this."""
        cdef const Record *job
        cdef size_t i
        cdef list waiting = []
        for i in range(self.count):
            if i + AHEAD < self.count:
                prefetch(self.record(roots, self.jobs[i + AHEAD].slot))
            job = self.record(roots, self.jobs[i].slot)
            self.slots[i] = self.jobs[i].slot
            if i and self.slots[i] == self.slots[i - 1]:
                raise DuplicateId(f"job {id_of(job)!r} is to be leased twice; once will do")
            if job.state != QUEUED:
                raise IllegalTransition(
                    f"job {id_of(job)!r} is {STATES[job.state]} and cannot become leased")
            if job.cold != NULL and job.cold.rare.retry_delay != NEVER:
                waiting.append(self.jobs[i].row)
            if job.version == LAST_VERSION:
                raise InputError(f"job {id_of(job)!r} is at the last version that there is")
        if waiting:
            raise AwaitsReplacement(tuple(sorted(waiting)))
        return 0

    cdef int vet_runs(self, Roots *roots) except -1:
        """Raise for a run that some job has, or that is there twice."""
        cdef uint32_t slots[BLOCK]
        cdef bint twice = False
        cdef size_t first, i, here
        if roots.runs.count:
            for first in range(0, self.count, BLOCK):
                here = min(<size_t> BLOCK, self.count - first)
                hamt_find_many(
                    &self.index.run_maps, &roots.runs, self.runs + first, slots, here)
                for i in range(here):
                    if slots[i] != NOWHERE:
                        self.taken(roots, first + i, slots[i])
        self.cells = sorted_cells(self.runs, self.count, &twice)
        if twice:
            self.must_differ(roots)
        return 0

    cdef void name_of(self, uint32_t row, Name *name, uint8_t *kind) noexcept:
        """The id of the run of *row*, no hold taken."""
        if not self.counted:
            name[0] = self.names[row]
            kind[0] = self.runs[row].kind
            return
        name.lo = self.first.lo + row
        name.hi = self.first.hi + (name.lo < row)
        kind[0] = KIND_ULID

    cdef str run_id(self, uint32_t row):
        cdef Name name
        cdef uint8_t kind = 0
        self.name_of(row, &name, &kind)
        return name_text(&name, kind)

    cdef int taken(self, Roots *roots, size_t row, uint32_t slot) except -1:
        """Raise for the run of *row*, whose id is at *slot* of the runs already."""
        cdef int64_t owner = entry_at(&self.index.runs.column, slot).value
        raise RunBelongsToOtherJob(
            f"run {self.run_id(<uint32_t> row)!r} belongs to job "
            f"{id_of(self.record(roots, <uint32_t> owner))!r}; a run's id is used once")

    cdef const Record *record(self, Roots *roots, uint32_t slot) noexcept:
        return record_at(&self.index.row_pages, &roots.rows, slot)

    cdef int must_differ(self, Roots *roots) except -1:
        """Raise for a run id that two rows have; `cells` only told that some may."""
        cdef dict jobs = {}
        cdef size_t i
        cdef uint32_t row
        for i in range(self.count):
            row = self.jobs[i].row
            run_id = self.run_id(row)
            job_id = id_of(self.record(roots, self.jobs[i].slot))
            taken = jobs.setdefault(run_id, job_id)
            if taken != job_id:
                raise RunBelongsToOtherJob(
                    f"run {run_id!r} is of job {taken!r} and of job {job_id!r} in one batch")
        self.alike = True
        return 0

    cdef int make(self, Roots *roots) except -1:
        """The new records."""
        cdef const Record *job
        cdef Record *record
        cdef RunPart *run
        cdef PyObject *node
        cdef list node_ids = self.nodes.values
        cdef int64_t priority
        cdef size_t i
        cdef uint32_t row
        for node_id in node_ids:
            if type(node_id) is not str:
                raise TypeError(f"nodes: the id of a node is a str, got {node_id!r}")
        self.batch = Batch.__new__(Batch)
        self.batch.room(self.count)
        for i in range(self.count):
            if i + AHEAD < self.count:
                row = self.jobs[i + AHEAD].row
                prefetch(self.record(roots, self.jobs[i + AHEAD].slot))
                if not self.counted:
                    prefetch(&self.names[row])
                    prefetch(&self.runs[row].kind)
            row = self.jobs[i].row
            priority = self.priorities.at(row)
            if not -MOST_PRIORITY - 1 <= priority <= MOST_PRIORITY:
                raise InputError(f"priority[{row}]: {priority} does not fit 32 bits")
            node = <PyObject *> node_ids[self.nodes.at(row)]
            job = self.record(roots, self.jobs[i].slot)
            record = record_copy(job)
            self.batch.records[i] = record
            self.batch.count += 1
            run = one_more_run(record)
            self.name_of(row, &run.id, &run.id_kind)
            name_hold(&run.id, run.id_kind)
            run.node_id = node
            run.pool = <PyObject *> self.pool
            Py_XINCREF(run.node_id)
            Py_XINCREF(run.pool)
            run.leased_at = self.leased_at
            run.lease_expires_at = self.expires_at
            run.started_at = NEVER
            run.ended_at = NEVER
            run.priority = <int32_t> priority
            record.state = LEASED
            record.version += 1
        return 0

    cdef int write(self, Roots *roots, EditLog *log) except -1:
        """Put it all into the rows and every index. Out of memory, the edit is to be aborted."""
        self.sort_out(roots)
        records_replace(&self.index.row_pages, &roots.rows, log, self.slots, self.batch.records,
                        self.count)
        self.write_runs(roots, log)
        self.write_leased(roots, log)
        self.leave_lanes(roots, log)
        return 0

    cdef int sort_out(self, Roots *roots) except -1:
        """Note what enters the leased jobs and what leaves each lane."""
        cdef Place place
        cdef const Shared *shared
        cdef const Record *job
        cdef size_t i
        cdef uint32_t slot
        self.load = Load.__new__(Load)
        self.load.begin(self.index, self.count)
        for i in range(self.count):
            slot = self.slots[i]
            job = self.record(roots, slot)
            shared = self.load.shared_by(<Kind> job.kind)
            place.submitted = job.submitted_at
            place.urgency = shared.rank << 32 | job.priority
            self.leased[i] = submit_item(&place, slot)
            self.load.note_queued(shared, lane_item(&place, slot))
        return 0

    cdef int write_runs(self, Roots *roots, EditLog *log) except -1:
        cdef JobIndex index = self.index
        cdef uint32_t before = 0
        cdef size_t i, first
        for i in range(self.count):
            self.run_slots[self.jobs[i].row] = self.jobs[i].slot
        for i in range(self.count):
            self.run_slots[i] = take_slot(
                &index.runs.column, log, &self.runs[i], self.run_slots[i])
        if roots.runs.count == 0 and self.count >= BULK and not self.alike:
            return hamt_build(
                &index.run_maps, &roots.runs, log, self.cells, self.count, self.run_slots)
        for first in range(0, self.count, WARM):
            hamt_warm(&index.run_maps, &roots.runs, self.runs + first,
                      min(<size_t> WARM, self.count - first))
            for i in range(first, min(first + WARM, self.count)):
                hamt_put(&index.run_maps, &roots.runs, log, &self.runs[i], self.run_slots[i],
                         &before)
        return 0

    cdef int write_leased(self, Roots *roots, EditLog *log) except -1:
        cdef Trees *trees = &self.index.moments
        cdef Item *items
        cdef size_t i
        if roots.leased.count <= self.count * PART:
            items = self.load.ascending(trees, self.leased, self.count)
            return tree_rebuild(trees, &roots.leased, log, NULL, 0, items, self.count)
        for i in range(self.count):
            tree_add(trees, &roots.leased, log, self.leased + i)
        return 0

    cdef int leave_lanes(self, Roots *roots, EditLog *log) except -1:
        cdef Trees *trees = &self.index.trees
        cdef Load load = self.load
        cdef Item *items
        cdef Lane *lane
        cdef const Lot *lot
        cdef size_t i, j
        load.deal()
        for i in range(<size_t> len(load.lanes)):
            queue, pool = load.lanes[i]
            lot = load.lots + i
            if lot.count == 0:
                continue
            items = load.items_of(lot)
            lane = own_lane(self.index, roots, log, <str> queue, pool, False)
            if lane.tree.count <= lot.count * PART:
                items = load.ascending(trees, items, lot.count)
                tree_rebuild(trees, &lane.tree, log, items, lot.count, NULL, 0)
            else:
                for j in range(lot.count):
                    tree_remove(trees, &lane.tree, log, items + j, NULL)
            if lane.tree.count == 0:
                lane_emptied(self.index, log, <str> queue, pool, lane)
        return 0


cdef Leases begun(JobIndex index, object ids):
    cdef Leases leases = Leases.__new__(Leases)
    leases.index = index
    leases.ids = ids
    leases.room((<JobIds> ids).count if type(ids) is JobIds else (<Texts> ids).count)
    return leases


cdef Leases leases_of(JobIndex index, object ids, object run_ids, object nodes, object pool,
                      object priority, object leased_at, object lease_expires_at):
    cdef Leases leases = begun(index, ids)
    cdef Py_ssize_t count = leases.count
    if type(pool) is not str:
        raise TypeError(f"pool is a str, got {pool!r}")
    leases.pool = pool
    leases.leased_at = whole_in(leased_at, "leased_at")
    leases.expires_at = or_never(lease_expires_at, "lease_expires_at")
    leases.nodes = Coded(nodes, "nodes", count)
    leases.priorities = Numbers(priority, "priority", count)
    leases.name_runs(run_ids)
    return leases
