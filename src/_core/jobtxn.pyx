# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Staged changes: what may be put, and one commit for all of it or none.

Owns INV-D11 to INV-D13 (docs/invariants.md); relies on jobindex to keep the indices, on jobreader
for what is read meanwhile.
"""

import warnings

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from pyresched._core.hamt cimport hamt_find, hamt_find_many, hamt_put, hamt_remove
from pyresched._core.ids cimport NOWHERE, Column, Key, entry_at, read_key, retire_slot, take_slot
from pyresched._core.jobindex cimport (
    BLOCK, JobIndex, Place, backing_off_item, entry, gang_hash, gang_item, lane_entry, move,
    place_of, run_entry, submit_item,
)
from pyresched._core.jobreader cimport Reader, Walk
from pyresched._core.ordered cimport Item, Tree
from pyresched._core.pages cimport objects_put
from pyresched._core.values cimport BACKING_OFF, NEVER, QUEUED, SUCCEEDED, Job, Run
from pyresched._core.versions cimport EDIT_OPEN, Edit

from pyresched._core.values import JobState
from pyresched.errors import (
    DuplicateId, IllegalTransition, InputError, RunBelongsToOtherJob, TooManyJobs, TxnClosed,
)

cdef tuple STATES = tuple([state.name.lower() for state in JobState])


@cython.no_gc_clear
cdef class Txn(Reader):
    """Staged changes and every read, which see them."""

    def __del__(self):
        if self.edit is None or self.edit.state != EDIT_OPEN or self.dry:
            return
        try:
            warnings.warn(
                "a transaction was dropped without commit or abort: aborted", ResourceWarning,
                stacklevel=1)
        finally:
            self.end()

    def __dealloc__(self):
        self.end()

    cdef int must_be_open(self) except -1:
        if self.edit is None or self.edit.state != EDIT_OPEN:
            raise TxnClosed("the transaction has ended; open another one")
        return 0

    @property
    def closed(self):
        """Whether it has ended."""
        return self.edit is None or self.edit.state != EDIT_OPEN

    def __enter__(self):
        self.must_be_open()
        return self

    def __exit__(self, kind, error, trace):
        if self.closed:
            return
        if kind is None:
            self.commit()
        else:
            self.abort()

    def commit(self):
        """Publish what was staged as one version and return it."""
        cdef JobIndex index = self.index
        cdef int64_t version
        self.must_be_open()
        if self.busy:
            raise RuntimeError("the transaction is being changed by another call")
        if self.dry:
            version = self.pin.version
            self.end()
            return version
        index.history.prepare(self.edit)
        index.roots = self.roots
        edit = self.edit
        self.leave_walks()
        self.edit = None
        index.history.commit(edit)
        index.spare = edit
        version = index.history.version
        index.committed()
        return version

    def depend_on(self, ids=(), gang=None, queue=None):
        """Raises TypeError: only a dry run can be overtaken."""
        raise TypeError(
            "only a dry run depends on what it read; nothing changes beside a writing transaction")

    def abort(self):
        """Drop what was staged."""
        self.must_be_open()
        if self.busy:
            raise RuntimeError("the transaction is being changed by another call")
        self.end()

    cdef void end(self) noexcept:
        """Leave no trace. Does nothing after the end."""
        cdef JobIndex index = self.index
        cdef Edit edit = self.edit
        if edit is None:
            return
        self.edit = None
        self.leave_walks()
        index.history.abort(edit)
        if self.dry:
            self.base = None
            index.history.unpin(self.pin)
            self.pin = NULL
        elif index.spare is None:
            index.spare = edit

    cdef void leave_walks(self) noexcept:
        """Walks that are under way find the transaction ended."""
        cdef Walk walk
        while self.walks != NULL:
            walk = <Walk> self.walks
            walk.leave()

    cdef int begin_change(self) except -1:
        """Let walks that are under way keep what they have not given yet."""
        cdef Walk walk
        self.must_be_open()
        while self.walks != NULL:
            walk = <Walk> self.walks
            walk.detach()
        if self.busy:
            raise RuntimeError("the transaction is being changed by another call")
        return 0

    def upsert(self, Job job not None):
        """Put *job* in place of what is under its id."""
        cdef Key key
        cdef uint32_t slot
        self.begin_change()
        self.busy = True
        try:
            read_key(&self.index.ids.column, job.id, &key)
            slot = hamt_find(&self.index.id_maps, &self.roots.ids, &key)
            if slot == NOWHERE:
                self.must_have_room(1)
            self.vet(job, slot, None)
            self.put(job, slot)
        finally:
            self.busy = False

    def upsert_many(self, jobs):
        """Put each of *jobs* in place of what is under its id, all or none."""
        cdef list batch = one_of_each(list(jobs))
        cdef dict new_runs = {}
        cdef Key keys[BLOCK]
        cdef uint32_t *slots = NULL
        cdef Py_ssize_t first, i, count
        cdef uint64_t new = 0
        self.begin_change()
        slots = <uint32_t *> malloc(max(1, len(batch)) * sizeof(uint32_t))
        if slots == NULL:
            raise MemoryError
        self.busy = True
        try:
            for first in range(0, len(batch), BLOCK):
                count = min(<Py_ssize_t> BLOCK, len(batch) - first)
                for i in range(count):
                    read_key(&self.index.ids.column, (<Job> batch[first + i]).id, &keys[i])
                hamt_find_many(&self.index.id_maps, &self.roots.ids, keys, slots + first, count)
                for i in range(count):
                    new += slots[first + i] == NOWHERE
                    self.vet(<Job> batch[first + i], slots[first + i], new_runs)
            self.must_have_room(new)
            for i in range(len(batch)):
                self.put(<Job> batch[i], slots[i])
        finally:
            self.busy = False
            free(slots)

    def delete_many(self, ids):
        """Remove the jobs of *ids*, all or none. How many there were."""
        cdef list wanted = list(ids)
        cdef Key key
        cdef uint32_t slot
        cdef Py_ssize_t gone = 0
        self.begin_change()
        for id in wanted:
            read_key(&self.index.ids.column, id, &key)
        self.busy = True
        try:
            for id in wanted:
                read_key(&self.index.ids.column, id, &key)
                slot = hamt_find(&self.index.id_maps, &self.roots.ids, &key)
                if slot != NOWHERE:
                    self.drop(&key, slot)
                    gone += 1
        finally:
            self.busy = False
        return gone

    cdef int must_have_room(self, uint64_t jobs) except -1:
        cdef Column *column = &self.index.ids.column
        if jobs > <uint64_t> column.limit - column.used:
            raise TooManyJobs(
                f"{jobs} more jobs do not fit: {column.used} of {column.limit} slots are taken; "
                "delete jobs that ended")
        return 0

    cdef int vet(self, Job job, uint32_t slot, dict new_runs) except -1:
        """Raise for whatever `put` would stumble over. Changes nothing.

        *new_runs* are those of the batch so far, by id; None for a batch of one.
        """
        cdef JobIndex index = self.index
        cdef Job old = None if slot == NOWHERE else self.row(slot)
        if job.requirements.priority_class not in index.ranks:
            raise InputError(
                f"job {job.id!r}: no priority class {job.requirements.priority_class!r}; "
                f"known: {', '.join(sorted(index.ranks))}")
        for pool in job.pools:
            if type(pool) is not str:
                raise TypeError(f"job {job.id!r}: a pool is a str, got {pool!r}")
        if job.state_code == BACKING_OFF and job.eligible_ns == NEVER:
            raise InputError(f"job {job.id!r} is backing off without eligible_at; set it")
        if job.gang is not None:
            gang_hash(&index.ids.column, job.queue, job.gang.id)
        if old is not None and not index.moves[old.state_code] >> job.state_code & 1:
            # Who hands on the newest versions only may skip states, but none follows an end.
            if old.state_code >= SUCCEEDED or job.version <= old.version + 1:
                raise IllegalTransition(
                    f"job {job.id!r} is {STATES[old.state_code]} and cannot become "
                    f"{STATES[job.state_code]}")
        if job.runs and (old is None or old.runs is not job.runs):
            self.vet_runs(job, old, slot, new_runs)
        if job.state_code == QUEUED:
            for pool in job.pools:
                index.lane_number(job.queue, pool)
            if not job.pools:
                index.lane_number(job.queue, None)
        return 0

    cdef int vet_runs(self, Job job, Job old, uint32_t slot, dict new_runs) except -1:
        """Raise for a run that another job has, or that this one has twice."""
        cdef JobIndex index = self.index
        cdef Py_ssize_t i, j, known = 0 if old is None else len(old.runs)
        cdef Key key
        cdef uint32_t at
        cdef Job owner
        for i in range(len(job.runs)):
            if type(job.runs[i]) is not Run:
                raise TypeError(f"job {job.id!r}: a run is a Run, got {job.runs[i]!r}")
        for i in range(len(job.runs)):
            run_id = (<Run> job.runs[i]).id
            for j in range(i):
                if (<Run> job.runs[j]).id == run_id:
                    raise DuplicateId(f"job {job.id!r} has run {run_id!r} twice")
            if i < known and (<Run> old.runs[i]).id == run_id:
                continue
            read_key(&index.runs.column, run_id, &key)
            at = hamt_find(&index.run_maps, &self.roots.runs, &key)
            if at != NOWHERE:
                owner = self.row(<uint32_t> entry_at(&index.runs.column, at).value)
                if owner.id != job.id:
                    raise RunBelongsToOtherJob(
                        f"run {run_id!r} of job {job.id!r} belongs to job {owner.id!r}")
            elif new_runs is not None:
                taken = new_runs.setdefault(run_id, job.id)
                if taken != job.id:
                    raise RunBelongsToOtherJob(
                        f"run {run_id!r} is of job {taken!r} and of job {job.id!r} in one batch")
        return 0

    cdef int put(self, Job job, uint32_t slot) except -1:
        """Write a job that `vet` has passed. Out of memory, the transaction ends."""
        cdef JobIndex index = self.index
        cdef Key key
        cdef uint32_t before = NOWHERE
        cdef Job old = None
        try:
            if slot == NOWHERE:
                read_key(&index.ids.column, job.id, &key)
                slot = take_slot(&index.ids.column, &self.edit.log, &key, 0)
                hamt_put(&index.id_maps, &self.roots.ids, &self.edit.log, &key, slot, &before)
            else:
                old = self.row(slot)
                if old is job:
                    return 0
            move(index, &self.roots, &self.edit.log, old, job, slot)
            objects_put(
                &index.row_pages, &self.roots.rows, &self.edit.log, slot, <PyObject *> job)
        except BaseException:
            # Half of it may be in; nothing of the transaction may stay.
            self.end()
            raise
        return 0

    cdef int drop(self, const Key *key, uint32_t slot) except -1:
        """Take the job at *slot* out of everything. Out of memory, the transaction ends."""
        cdef JobIndex index = self.index
        cdef uint32_t before = NOWHERE
        cdef Job old = self.row(slot)
        try:
            move(index, &self.roots, &self.edit.log, old, None, slot)
            hamt_remove(&index.id_maps, &self.roots.ids, &self.edit.log, key, &before)
            objects_put(&index.row_pages, &self.roots.rows, &self.edit.log, slot, NULL)
            retire_slot(&index.ids.column, &self.edit.log, slot)
        except BaseException:
            self.end()
            raise
        return 0

    def sabotage(self, str name not None, Job job not None, *, bint link):
        """Enter *job* in one index or take it out, alone: for tests of the checkers only."""
        cdef JobIndex index = self.index
        cdef Key key
        cdef Place place
        cdef Item item
        cdef Tree *tree
        cdef uint32_t slot, before = NOWHERE
        self.begin_change()
        read_key(&index.ids.column, job.id, &key)
        slot = hamt_find(&index.id_maps, &self.roots.ids, &key)
        if slot == NOWHERE:
            raise KeyError(job.id)
        place_of(index, job, &place)
        if name == "ids":
            hamt_remove(&index.id_maps, &self.roots.ids, &self.edit.log, &key, &before)
        elif name == "rows":
            objects_put(&index.row_pages, &self.roots.rows, &self.edit.log, slot,
                        <PyObject *> job if link else NULL)
        elif name == "runs":
            for run in job.runs:
                run_entry(index, &self.roots, &self.edit.log, (<Run> run).id, slot, link)
        elif name == "lanes":
            place.urgency = <int64_t> index.ranks[job.requirements.priority_class] << 32
            place.urgency |= job.priority
            for pool in job.pools or (None,):
                lane_entry(index, &self.roots, &self.edit.log, job.queue, pool, &place, slot, link)
        else:
            item = submit_item(&place, slot)
            if name == "submitted":
                tree = &self.roots.submitted
            elif name == "leased":
                tree = &self.roots.leased
            elif name == "unvalidated":
                tree = &self.roots.unvalidated
            elif name == "backing_off":
                tree = &self.roots.backing_off
                item = backing_off_item(&place, slot)
            elif name == "gangs":
                tree = &self.roots.gangs
                item = gang_item(&place, slot)
            else:
                raise ValueError(f"no index {name!r}")
            entry(index, &self.edit.log, tree, not link, &item, link, &item)


cdef list one_of_each(list jobs):
    """*jobs* without repetitions. Raises TypeError for what is no job, DuplicateId."""
    cdef dict seen
    for job in jobs:
        if type(job) is not Job:
            raise TypeError(f"a job is a Job, got {type(job).__name__}")
    if len(jobs) < 2:
        return jobs
    seen = {(<Job> job).id: job for job in jobs}
    if len(seen) == len(jobs):
        return jobs
    for job in jobs:
        if seen.setdefault((<Job> job).id, job) != job:
            raise DuplicateId(
                f"job {(<Job> job).id!r} is in one batch twice with different content")
    return list(seen.values())
