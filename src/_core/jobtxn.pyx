# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Staged changes: what may be put, and one commit for all of it or none.

Owns INV-D11 to INV-D13 (docs/invariants.md); relies on jobindex to keep the indices, on jobreader
for what is read meanwhile.
"""

import warnings

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from pyresched._core.batch cimport Batch, Texts, batch_of_columns, batch_of_jobs
from pyresched._core.hamt cimport hamt_find, hamt_find_many, hamt_put, hamt_remove, hamt_warm
from pyresched._core.hamtbuild cimport Cell, sorted_cells
from pyresched._core.ids cimport (
    NOWHERE, Column, Key, entry_at, is_ascii, read_key, retire_slot, take_slot,
)
from pyresched._core.jobindex cimport (
    BLOCK, JobIndex, Place, backing_off_item, entry, gang_hash, gang_item, lane_entry, move,
    place_of, rank_of, run_entry, submit_item,
)
from pyresched._core.jobleases cimport Leases, leases_of
from pyresched._core.jobload cimport load
from pyresched._core.jobreader cimport Reader, Walk, several, several_of
from pyresched._core.jobids cimport JobIds
from pyresched._core.ordered cimport Item, Tree, Trees
from pyresched._core.records cimport (
    Kind, Record, RunPart, name_equal, name_key, name_text, record_key, record_put,
)
from pyresched._core.values cimport BACKING_OFF, NEVER, SUCCEEDED, Gang
from pyresched._core.versions cimport EDIT_OPEN, Edit
from pyresched._core.views cimport Job

from pyresched._core.values import JobState
from pyresched.errors import (
    DuplicateId, IllegalTransition, InputError, RunBelongsToOtherJob, TooManyJobs, TxnClosed,
)

cdef enum:
    AHEAD = 32              # keys whose nodes are fetched ahead of their change
    OUT_OF_REACH = 20_000   # ids: a smaller map is in the cache anyway
    BULK = 256              # jobs: for fewer it pays not to fill an empty store at once

cdef tuple STATES = tuple([state.name.lower() for state in JobState])


@cython.no_gc_clear
cdef class Txn(Reader):
    """Staged changes and every read, which see them. Ends once; then all raises TxnClosed.

    As a context manager: left normally it commits, left by an exception it aborts. A dry run
    (`dry`) publishes nothing however it ends; while it is open, `base` is what it is over.
    """

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

    def __repr__(self):
        if self.closed:
            return f"<{type(self).__name__} closed>"
        return (
            f"<{type(self).__name__} over version {self.version}, "
            f"{several_of(<Py_ssize_t> self.roots.ids.count, 'job')} staged>")

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
        if kind is not None:
            self.abort()
            return
        try:
            self.commit()
        finally:
            if not self.busy:  # no memory for it: who left the block cannot try again
                self.end()

    def commit(self):
        """Publish what was staged as one version and return it; a dry run: its base version."""
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
        version = <int64_t> edit.log.stamp
        # What it lets go may run a user's code, which may commit as well.
        index.history.commit(edit)
        index.spare = edit
        index.committed()
        return version

    def depend_on(self, ids=(), gang=None, queue=None):
        """Raises TypeError: only a dry run can be overtaken, nothing changes beside a writer."""
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
        """Put *job* in place of what is under its id.

        It compares no versions: read *job* in this transaction. Raises as `upsert_many`.
        """
        cdef Key key
        cdef uint32_t slot
        self.begin_change()
        self.busy = True
        try:
            record_key(&self.index.ids.column, job.record, &key)
            slot = hamt_find(&self.index.id_maps, &self.roots.ids, &key)
            if slot == NOWHERE:
                self.must_have_room(1)
            self.vet(job.record, slot, None)
            self.put(job.record, slot, &key)
        finally:
            self.busy = False

    def upsert_many(self, jobs):
        """Put each of *jobs* in place of what is under its id, all or none.

        Raises DuplicateId (one id twice with different content), RunBelongsToOtherJob,
        IllegalTransition (a row that skips versions may have gone through states in between),
        InputError (no such priority class, waiting without `eligible_at`), TooManyJobs,
        ValueError for an id over 255 bytes.
        """
        cdef Batch batch = batch_of_jobs(jobs)
        self.begin_change()
        self.put_all(batch)

    def upsert_columns(self, *, ids, submitted_at, queue, requirements, priority=0, gang=None,
                       job_set="", pools=None, job_type="batch", policy=None,
                       validated=False, payload=None, rules=None):
        """Put a new queued job of version 1 for each row of these columns, all or none.

        A job that is under such an id starts anew, without its runs, unless it has ended
        (IllegalTransition).

        *ids*: a list of str, NumPy text or bytes of fixed width ('S26' is fastest), or an Arrow
        column of type string or large_string, in chunks or not. *submitted_at* (ns) and
        *priority*: an int for all rows, or int64: a list, a buffer, an Arrow column. *validated*:
        one bool for all rows. *payload*: None or a list. Every other: one value for all rows, a
        pair of codes (a list, or a buffer of int8 to int64) and the values that they stand for,
        as `np.unique(..., return_inverse=True)` gives them the other way round, or an Arrow column
        encoded by dictionary; *queue*, *job_set* and *job_type* also a list, NumPy or Arrow column
        of text, one a row. A value of *pools* is a tuple of names; the code -1 is no *gang*. How
        many jobs were put. Raises InputError that names column and row, else as `upsert_many`
        does.
        """
        cdef Batch batch
        self.must_be_open()
        batch = batch_of_columns(
            &self.index.ids.column, ids, submitted_at, queue, requirements, priority, gang,
            job_set, ("default",) if pools is None else pools, job_type, policy, rules,
            validated, payload)
        self.begin_change()
        self.put_all(batch)
        return batch.count

    cdef int put_all(self, Batch batch) except -1:
        if batch.count == 0:
            return 0
        batch.read_keys(&self.index.ids.column)
        self.busy = True
        try:
            if self.roots.ids.count == 0 and batch.count >= BULK:
                self.fill(batch)
            else:
                self.put_each(batch)
        finally:
            self.busy = False
        return 0

    cdef int put_each(self, Batch batch) except -1:
        cdef JobIndex index = self.index
        cdef dict new_runs = {}
        cdef uint32_t *slots = NULL
        cdef Py_ssize_t first, i, count
        cdef uint64_t new = 0
        batch.distinct()
        slots = <uint32_t *> malloc(batch.count * sizeof(uint32_t))
        if slots == NULL:
            raise MemoryError
        try:
            for first in range(0, batch.count, BLOCK):
                count = min(<Py_ssize_t> BLOCK, batch.count - first)
                hamt_find_many(
                    &index.id_maps, &self.roots.ids, batch.keys + first, slots + first, count)
                for i in range(first, first + count):
                    new += slots[i] == NOWHERE
                    self.vet(batch.records[i], slots[i], new_runs)
            self.must_have_room(new)
            for first in range(0, batch.count, AHEAD):
                count = min(<Py_ssize_t> AHEAD, batch.count - first)
                if self.roots.ids.count > OUT_OF_REACH:
                    hamt_warm(&index.id_maps, &self.roots.ids, batch.keys + first, count)
                for i in range(first, first + count):
                    self.put(batch.records[i], slots[i], &batch.keys[i])
        finally:
            free(slots)
        return 0

    cdef int fill(self, Batch batch) except -1:
        """Put the first jobs of a store, all or none. Out of memory, the transaction ends."""
        cdef dict new_runs = {}
        cdef Py_ssize_t i
        cdef Cell *cells = NULL
        cdef bint twice = False
        # The order of hashes, which the map is made of, shows at once that no id is there twice.
        cells = sorted_cells(batch.keys, batch.count, &twice)
        try:
            if twice:
                free(cells)
                cells = NULL
                batch.distinct()
            for i in range(batch.count):
                self.vet(batch.records[i], NOWHERE, new_runs)
            self.must_have_room(batch.count)
            try:
                load(self.index, &self.roots, &self.edit.log, batch, cells)
            except BaseException:
                self.end()
                raise
        finally:
            free(cells)
        return 0

    def lease_many(self, ids, *, run_ids, nodes, pool="default", priority=0, leased_at,
                   lease_expires_at=None):
        """Give each of the queued jobs *ids* a new run on a node, all or none; how many.

        The same as an upsert of each one version on, LEASED, with one run more; made for a
        million at once. *ids*: as in `upsert_columns`, or the `job_ids` that a round over a
        snapshot gives, whose jobs must be as they were there. *run_ids*: one a job, in the same
        forms, or a ULID: the first of so many that follow one another. *nodes*: an id for all, or a
        pair of codes and the ids that they stand for. *priority*: an int for all, or int64 as in
        `upsert_columns`. Raises InputError that names column, row or job, AwaitsReplacement (a
        lease would lose the history that `leasing.grant` keeps), Conflict (not as in the
        snapshot), IllegalTransition (not queued), DuplicateId, RunBelongsToOtherJob.
        """
        cdef Leases leases
        self.must_be_open()
        leases = leases_of(
            self.index, ids if type(ids) is JobIds else Texts(ids), run_ids, nodes, pool,
            priority, leased_at, lease_expires_at)
        self.begin_change()
        if leases.count == 0:
            return 0
        self.busy = True
        try:
            leases.find(&self.roots)
            leases.make(&self.roots)
            try:
                leases.write(&self.roots, &self.edit.log)
            except BaseException:
                # Half of it may be in; nothing of the transaction may stay.
                self.end()
                raise
        finally:
            self.busy = False
        return <Py_ssize_t> leases.count

    def delete_many(self, ids):
        """Remove the jobs of *ids*, all or none; unknown ids count for nothing. How many went."""
        cdef list wanted = several(ids)
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

    cdef int vet(self, const Record *job, uint32_t slot, dict new_runs) except -1:
        """Raise for whatever `put` would stumble over. Changes nothing.

        *new_runs* are those of the batch so far, by id; None for a batch of one.
        """
        cdef JobIndex index = self.index
        cdef const Record *old = NULL if slot == NOWHERE else self.record(slot)
        cdef Kind kind = <Kind> job.kind
        if rank_of(index, kind) < 0:
            raise InputError(
                f"job {id_of(job)!r}: no priority class {kind.requirements.priority_class!r}; "
                f"known: {', '.join(sorted(index.ranks))}")
        if job.state == BACKING_OFF and (job.cold == NULL or job.cold.rare.eligible_at == NEVER):
            raise InputError(f"job {id_of(job)!r} is backing off without eligible_at; set it")
        if job.cold != NULL and job.cold.gang != NULL and not (
                is_ascii(kind.queue) and is_ascii((<Gang> job.cold.gang).id)):
            gang_hash(&index.ids.column, kind.queue, (<Gang> job.cold.gang).id)
        if old != NULL and not index.moves[old.state] >> job.state & 1:
            # Who hands on the newest versions only may skip states, but none follows an end.
            if old.state >= SUCCEEDED or job.version <= <int64_t> old.version + 1:
                raise IllegalTransition(
                    f"job {id_of(job)!r} is {STATES[old.state]} and cannot become "
                    f"{STATES[job.state]}")
        if job.cold != NULL and job.cold.run_count and (old == NULL or old.cold != job.cold):
            self.vet_runs(job, old, slot, new_runs)
        return 0

    cdef int vet_runs(self, const Record *job, const Record *old, uint32_t slot,
                      dict new_runs) except -1:
        """Raise for a run that another job has, or that this one has twice."""
        cdef JobIndex index = self.index
        cdef uint32_t i, j, known = 0 if old == NULL or old.cold == NULL else old.cold.run_count
        cdef uint32_t kept = 0
        cdef Key key
        cdef uint32_t at
        cdef int64_t owner
        cdef const RunPart *run
        cdef const RunPart *other
        for i in range(job.cold.run_count):
            run = job.cold.runs + i
            if i == kept and i < known:
                other = old.cold.runs + i
                if name_equal(&other.id, other.id_kind, &run.id, run.id_kind):
                    kept += 1  # what both begin with has been looked at before
                    continue
            for j in range(i):
                other = job.cold.runs + j
                if name_equal(&other.id, other.id_kind, &run.id, run.id_kind):
                    raise DuplicateId(
                        f"job {id_of(job)!r} has run {name_text(&run.id, run.id_kind)!r} twice")
            name_key(&index.runs.column, &run.id, run.id_kind, &key)
            at = hamt_find(&index.run_maps, &self.roots.runs, &key)
            if at != NOWHERE:
                owner = entry_at(&index.runs.column, at).value
                if owner != slot:
                    raise RunBelongsToOtherJob(
                        f"run {name_text(&run.id, run.id_kind)!r} of job {id_of(job)!r} belongs "
                        f"to job {id_of(self.record(<uint32_t> owner))!r}")
            elif new_runs is not None:
                run_id = name_text(&run.id, run.id_kind)
                taken = new_runs.setdefault(run_id, id_of(job))
                if taken != id_of(job):
                    raise RunBelongsToOtherJob(
                        f"run {run_id!r} is of job {taken!r} and of job {id_of(job)!r} in one "
                        "batch")
        return 0

    cdef int put(self, const Record *job, uint32_t slot, const Key *key) except -1:
        """Write a job that `vet` has passed. Out of memory, the transaction ends."""
        cdef JobIndex index = self.index
        cdef uint32_t before = NOWHERE
        cdef const Record *old = NULL
        try:
            if slot == NOWHERE:
                slot = take_slot(&index.ids.column, &self.edit.log, key, 0)
                hamt_put(&index.id_maps, &self.roots.ids, &self.edit.log, key, slot, &before)
            else:
                old = self.record(slot)
                if old == job:
                    return 0
            move(index, &self.roots, &self.edit.log, old, job, slot)
            record_put(&index.row_pages, &self.roots.rows, &self.edit.log, slot, job)
        except BaseException:
            # Half of it may be in; nothing of the transaction may stay.
            self.end()
            raise
        return 0

    cdef int drop(self, const Key *key, uint32_t slot) except -1:
        """Take the job at *slot* out of everything. Out of memory, the transaction ends."""
        cdef JobIndex index = self.index
        cdef uint32_t before = NOWHERE
        try:
            move(index, &self.roots, &self.edit.log, self.record(slot), NULL, slot)
            hamt_remove(&index.id_maps, &self.roots.ids, &self.edit.log, key, &before)
            record_put(&index.row_pages, &self.roots.rows, &self.edit.log, slot, NULL)
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
        cdef Trees *trees = &index.moments
        cdef Tree *tree
        cdef const RunPart *run
        cdef uint32_t slot, i, before = NOWHERE
        self.begin_change()
        record_key(&index.ids.column, job.record, &key)
        slot = hamt_find(&index.id_maps, &self.roots.ids, &key)
        if slot == NOWHERE:
            raise KeyError(job.id)
        place_of(index, job.record, &place)
        if name == "ids":
            hamt_remove(&index.id_maps, &self.roots.ids, &self.edit.log, &key, &before)
        elif name == "rows":
            record_put(&index.row_pages, &self.roots.rows, &self.edit.log, slot,
                       job.record if link else NULL)
        elif name == "runs":
            for i in range(0 if job.record.cold == NULL else job.record.cold.run_count):
                run = job.record.cold.runs + i
                run_entry(index, &self.roots, &self.edit.log, &run.id, run.id_kind, slot, link)
        elif name == "lanes":
            place.urgency = <int64_t> index.ranks[job.requirements.priority_class] << 32
            place.urgency |= job.priority
            for pool in job.pools or (None,):
                lane_entry(index, &self.roots, &self.edit.log, job.queue, pool, &place, slot, link)
        else:
            item = submit_item(&place, slot)
            if name == "leased":
                tree = &self.roots.leased
            elif name == "unvalidated":
                tree = &self.roots.unvalidated
            elif name == "backing_off":
                trees = &index.trees
                tree = &self.roots.backing_off
                item = backing_off_item(&place, slot)
            elif name == "gangs":
                trees = &index.trees
                tree = &self.roots.gangs
                item = gang_item(&place, slot)
            else:
                raise ValueError(f"no index {name!r}")
            entry(trees, &self.edit.log, tree, not link, &item, link, &item)


cdef str id_of(const Record *job):
    return name_text(&job.id, job.id_kind)
