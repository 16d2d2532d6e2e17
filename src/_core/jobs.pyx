# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The job store: rows by slot, and every index over them, in versions.

Owns INV-D1 to INV-D12 (docs/invariants.md); relies on hamt, ordered and pages for structure and on
versions for who sees what. A row is the `Job` itself, held once by the store for all versions.
"""

import warnings
from enum import Enum

cimport cython
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from pyresched._core.bits cimport Sip, prefetch, sip_end, sip_start, sip_word, word_at
from pyresched._core.hamt cimport (
    Hamt, Maps, hamt_breaches, hamt_find, hamt_find_many, hamt_free, hamt_put, hamt_remove,
    hamt_slots, maps_init,
)
from pyresched._core.ids cimport (
    NOWHERE, Column, IdColumn, Key, compare_slots, entry_at, read_key, retire_slot,
    slot_id, take_slot,
)
from pyresched._core.ordered cimport (
    Cursor, Item, Tree, Trees, cursor_first, cursor_next, cursor_seek, tree_add, tree_breaches,
    tree_free, tree_remove, trees_init,
)
from pyresched._core.pages cimport (
    ObjectRow, Pages, objects_free, objects_get, objects_put, page_read, page_write,
    pages_diff, pages_free, pages_init,
)
from pyresched._core.values cimport (
    BACKING_OFF, NEVER, QUEUED, RUNNING, SUCCEEDED, Job, Run,
)
from pyresched._core.versions cimport EDIT_OPEN, Edit, History

from pyresched._core.values import JobState
from pyresched.errors import (
    DuplicateId, IllegalTransition, InputError, ReadOnly, RunBelongsToOtherJob, TooManyJobs,
    TxnClosed,
)


class Order(Enum):
    """In which order a queue is walked."""

    FAIR_SHARE = "fair_share"
    MARKET = "market"


cdef object BY_SHARE = Order.FAIR_SHARE
cdef object BY_MARKET = Order.MARKET
cdef tuple STATES = tuple([state.name.lower() for state in JobState])

cdef enum:
    # The value of an item that is sought by its keys alone: it stands before all that share them.
    BEFORE_ALL = -1
    # Keys are looked up so many at a time.
    BLOCK = 256


cdef int by_id(const void *column, int64_t a, int64_t b) noexcept nogil:
    if a < 0 or b < 0:
        return (a > b) - (a < b)
    return compare_slots(column, a, b)


cdef inline int64_t signed_word(uint64_t word) noexcept nogil:
    """*word* as an int64 that compares as it does."""
    return <int64_t> (word ^ <uint64_t> 1 << 63)


cdef int take_text(Sip *state, str text) except -1:
    """Take in the bytes of *text* and how many they are."""
    cdef Py_ssize_t size = 0
    cdef const uint8_t *at = <const uint8_t *> PyUnicode_AsUTF8AndSize(text, &size)
    cdef uint8_t last[8]
    sip_word(state, <uint64_t> size)
    while size >= 8:
        sip_word(state, word_at(at))
        at += 8
        size -= 8
    memset(last, 0, 8)
    memcpy(last, at, size)
    sip_word(state, word_at(last))
    return 0


cdef int64_t gang_hash(const Column *column, str queue, str gang_id) except? -1:
    """Where the members of a gang stand together. Two gangs may share it: readers look twice."""
    cdef Sip state
    sip_start(&state, column.seed0, column.seed1)
    take_text(&state, queue)
    take_text(&state, gang_id)
    return <int64_t> (sip_end(&state) & (<uint64_t> column.mask << 32 | column.mask))


cdef inline Item lane_item(const Place *place, uint32_t slot) noexcept nogil:
    return Item(place.urgency, place.submitted, place.word0, slot)


cdef inline Item submit_item(const Place *place, uint32_t slot) noexcept nogil:
    return Item(place.submitted, place.word0, place.word1, slot)


cdef inline Item backing_off_item(const Place *place, uint32_t slot) noexcept nogil:
    return Item(place.eligible, place.submitted, place.word0, slot)


cdef inline Item gang_item(const Place *place, uint32_t slot) noexcept nogil:
    return Item(place.gang, place.submitted, place.word0, slot)


@cython.no_gc_clear
cdef class JobStore:
    """The jobs behind `JobDb`, whose docstring is the contract. `version` counts commits."""

    def __init__(self, class_priorities, transitions, *, seed=None, int hash_bits=32,
                 most_jobs=None, after_commit=None):
        cdef uint32_t limit = NOWHERE if most_jobs is None else most_jobs
        if self.history is not None:
            raise TypeError("a store is made once")
        if seed is not None:
            if len(seed) != 16:
                raise ValueError(f"a seed has 16 bytes, got {len(seed)}")
            seed = (int.from_bytes(seed[:8], "big"), int.from_bytes(seed[8:], "big"))
        distinct = sorted(set(class_priorities.values()), reverse=True)
        self.ranks = {name: distinct.index(at) for name, at in class_priorities.items()}
        for state, nexts in transitions.items():
            self.moves[<int> state] = 1 << <int> state
            for following in nexts:
                self.moves[<int> state] |= 1 << <int> following
        self.ids = IdColumn(seed=seed, bits=hash_bits, limit=limit)
        self.runs = IdColumn(seed=seed, bits=hash_bits)
        self.lanes = {}
        self.lane_names = []
        self.after_commit = after_commit
        maps_init(&self.id_maps, &self.ids.column)
        maps_init(&self.run_maps, &self.runs.column)
        pages_init(&self.row_pages, sizeof(ObjectRow))
        pages_init(&self.lane_pages, sizeof(Tree))
        trees_init(&self.trees, by_id, &self.ids.column)
        history = History()
        history.keep(self.ids)
        history.keep(self.runs)
        self.history = history

    def __dealloc__(self):
        cdef uint32_t number
        cdef Tree *lane
        cdef Tree tree
        if self.history is None:
            return
        # Readers hold the store, so what is left is one version, and perhaps ghosts of pins,
        # which the history gives back when it goes, just after this.
        for number in range(<uint32_t> self.roots.lanes.length):
            lane = <Tree *> page_read(&self.lane_pages, &self.roots.lanes, number)
            if lane != NULL:
                tree = lane[0]
                tree_free(&self.trees, &tree)
        pages_free(&self.lane_pages, &self.roots.lanes)
        tree_free(&self.trees, &self.roots.submitted)
        tree_free(&self.trees, &self.roots.leased)
        tree_free(&self.trees, &self.roots.unvalidated)
        tree_free(&self.trees, &self.roots.backing_off)
        tree_free(&self.trees, &self.roots.gangs)
        hamt_free(&self.id_maps, &self.roots.ids)
        hamt_free(&self.run_maps, &self.roots.runs)
        objects_free(&self.row_pages, &self.roots.rows)

    @property
    def version(self):
        """How many commits there were."""
        return self.history.version

    def write(self, timeout=None):
        """The one writing transaction."""
        cdef Txn txn = Txn.__new__(Txn)
        cdef Edit edit = self.spare
        if edit is None:
            edit = Edit(self.history, None)  # a transaction holds the store itself
        self.spare = None
        self.history.begin(edit, timeout)
        txn.store = self
        txn.edit = edit
        txn.roots = self.roots
        return txn

    def dry_run(self):
        """A transaction over the current version that never publishes."""
        cdef Txn txn = Txn.__new__(Txn)
        cdef Edit edit = Edit(self.history, None)
        txn.store = self
        txn.dry = True
        txn.pin = self.history.pin()
        self.history.begin_private(edit)
        txn.edit = edit
        txn.roots = self.roots
        return txn

    def snapshot(self):
        """The current version."""
        cdef Snapshot snapshot = Snapshot.__new__(Snapshot)
        snapshot.store = self
        snapshot.pin = self.history.pin()
        snapshot.roots = self.roots
        return snapshot

    def memory(self):
        """What the structures hold now, in bytes, and what old versions keep back."""
        return {
            "ids": self.id_maps.meter.bytes,
            "runs": self.run_maps.meter.bytes,
            "rows": self.row_pages.meter.bytes,
            "lanes": self.lane_pages.meter.bytes,
            "trees": self.trees.meter.bytes,
            "id_slots": self.ids.column.used,
            "run_slots": self.runs.column.used,
            "pinned": self.history.pinned,
        }

    cdef int lane_number(self, str queue, object pool) except -1:
        """The number of the lane of *queue* and *pool*, given now if there is none."""
        cdef dict pools = <dict> self.lanes.get(queue)
        if pools is None:
            pools = self.lanes.setdefault(queue, {})
        number = pools.get(pool)
        if number is None:
            self.lane_names.append((queue, pool))
            number = len(self.lane_names) - 1
            pools[pool] = number
        return number

    cdef int place_of(self, Job job, Place *place) except -1:
        """Where *job* belongs. Raises InputError for its class, UnicodeEncodeError."""
        cdef Py_ssize_t size = 0
        cdef const uint8_t *text = <const uint8_t *> PyUnicode_AsUTF8AndSize(job.id, &size)
        cdef uint8_t padded[16]
        cdef Run run
        if size < 16:
            memset(padded, 0, 16)
            memcpy(padded, text, size)
            text = padded
        place.word0 = signed_word(word_at(text))
        place.word1 = signed_word(word_at(text + 8))
        place.submitted = job.submitted_at
        place.urgency = 0
        place.eligible = job.eligible_ns
        place.gang = 0
        place.marks = 0
        if job.state_code == QUEUED:
            rank = self.ranks.get(job.requirements.priority_class)
            place.urgency = <int64_t> rank << 32 | job.priority
            place.marks |= IN_LANES
        elif job.state_code <= RUNNING:
            run = job.active()
            if run is not None:
                place.marks |= IN_LEASED
        elif job.state_code == BACKING_OFF:
            place.marks |= IN_BACKING_OFF
        if not job.validated and job.state_code < SUCCEEDED:
            place.marks |= IN_UNVALIDATED
        if job.gang is not None:
            place.gang = gang_hash(&self.ids.column, job.queue, job.gang.id)
            place.marks |= IN_GANGS
        return 0


@cython.no_gc_clear
cdef class Reader:
    """One version of the jobs."""

    def __init__(self):
        raise TypeError("readers are made by JobDb: snapshot(), write() or dry_run()")

    def __dealloc__(self):
        if self.pin != NULL:
            self.store.history.unpin(self.pin)
            self.pin = NULL

    cdef int must_be_open(self) except -1:
        return 0

    cdef Job row(self, uint32_t slot):
        cdef PyObject *held = objects_get(&self.store.row_pages, &self.roots.rows, slot)
        return None if held == NULL else <Job> held

    cdef const Tree *lane(self, object queue, object pool) except? NULL:
        """The lane of *queue* and *pool*, NULL when there never was one."""
        pools = self.store.lanes.get(queue)
        if pools is None:
            return NULL
        number = (<dict> pools).get(pool)
        if number is None:
            return NULL
        return <const Tree *> page_read(&self.store.lane_pages, &self.roots.lanes, number)

    @property
    def version(self):
        """How many commits it has seen."""
        self.must_be_open()
        return self.store.history.version if self.pin == NULL else self.pin.version

    def get(self, id, default=None):
        """The job *id*, or *default*."""
        cdef Key key
        cdef uint32_t slot
        self.must_be_open()
        read_key(&self.store.ids.column, id, &key)
        slot = hamt_find(&self.store.id_maps, &self.roots.ids, &key)
        return default if slot == NOWHERE else self.row(slot)

    def get_many(self, ids):
        """The jobs of *ids* in their order, None where there is none."""
        cdef list wanted = list(ids)
        cdef list found = []
        cdef Key keys[BLOCK]
        cdef uint32_t slots[BLOCK]
        cdef const void *row
        cdef Py_ssize_t first, i, count
        self.must_be_open()
        for first in range(0, len(wanted), BLOCK):
            count = min(<Py_ssize_t> BLOCK, len(wanted) - first)
            for i in range(count):
                read_key(&self.store.ids.column, wanted[first + i], &keys[i])
            hamt_find_many(&self.store.id_maps, &self.roots.ids, keys, slots, count)
            for i in range(count):
                if slots[i] != NOWHERE:
                    row = page_read(&self.store.row_pages, &self.roots.rows, slots[i])
                    prefetch((<const ObjectRow *> row).held)
            for i in range(count):
                found.append(None if slots[i] == NOWHERE else self.row(slots[i]))
        return found

    def __getitem__(self, id):
        job = self.get(id)
        if job is None:
            raise KeyError(id)
        return job

    def __contains__(self, id):
        return self.get(id) is not None

    def __len__(self):
        self.must_be_open()
        return <Py_ssize_t> self.roots.ids.count

    def __iter__(self):
        return self.walk(&self.roots.submitted)

    def by_run(self, run_id):
        """The job that has the run *run_id*, ended runs included."""
        cdef Key key
        cdef uint32_t slot
        self.must_be_open()
        read_key(&self.store.runs.column, run_id, &key)
        slot = hamt_find(&self.store.run_maps, &self.roots.runs, &key)
        if slot == NOWHERE:
            return None
        return self.row(<uint32_t> entry_at(&self.store.runs.column, slot).value)

    def gang(self, str queue not None, str gang_id not None):
        """The members of a gang whatever their state."""
        cdef Cursor cursor
        cdef const Item *item
        cdef list members = []
        cdef Job job
        cdef Item first
        self.must_be_open()
        first = Item(
            gang_hash(&self.store.ids.column, queue, gang_id), INT64_MIN, INT64_MIN, BEFORE_ALL)
        cursor_seek(&cursor, &self.store.trees, &self.roots.gangs, &first)
        while True:
            item = cursor_next(&cursor)
            if item == NULL or item.k0 != first.k0:
                return members
            job = self.row(<uint32_t> item.value)
            if job.gang.id == gang_id and job.queue == queue:
                members.append(job)

    def leased(self):
        """The jobs that hold room on a node."""
        return self.walk(&self.roots.leased)

    def unvalidated(self):
        """The jobs that wait for validation."""
        return self.walk(&self.roots.unvalidated)

    def backing_off(self, before=None):
        """The waiting jobs that are eligible at *before* or earlier, due first."""
        cdef int64_t last = INT64_MAX if before is None else before
        cdef Walk walk = self.walk(&self.roots.backing_off)
        walk.last = last
        return walk

    def queued(self, str queue not None, str pool=None, order=BY_SHARE):
        """The queued jobs of *queue* that may run in *pool*, in order."""
        cdef Walk walk
        cdef const Tree *lane
        cdef list jobs
        if order is not BY_SHARE and order is not BY_MARKET:
            raise TypeError(f"order is an Order, got {order!r}")
        self.must_be_open()
        walk = Walk.__new__(Walk)
        walk.reader = self
        if pool is not None:
            lane = self.lane(queue, pool)
            if lane != NULL and lane.count:
                walk.start(1)
                walk.add(lane)
        else:
            pools = self.store.lanes.get(queue)
            if pools is not None:
                names = list(<dict> pools)
                walk.start(len(names))
                for name in names:
                    lane = self.lane(queue, name)
                    if lane != NULL and lane.count:
                        walk.add(lane)
        if order is BY_SHARE:
            return walk
        # Without bids the order is that of classes and submit times; a queue is sorted for it
        # only when asked, since only market pools walk it.
        jobs = list(walk)
        ranks = self.store.ranks
        jobs.sort(key=lambda job: (
            ranks[job.requirements.priority_class], job.submitted_at, job.id), reverse=True)
        walk = Walk.__new__(Walk)
        walk.reader = self
        walk.rest = jobs
        return walk

    def queue_length(self, str queue not None, str pool=None):
        """How many jobs `queued` would give."""
        cdef const Tree *lane
        cdef Py_ssize_t filled = 0
        cdef uint64_t count = 0
        self.must_be_open()
        if pool is not None:
            lane = self.lane(queue, pool)
            return 0 if lane == NULL else lane.count
        for name in list(self.store.lanes.get(queue, ())):
            lane = self.lane(queue, name)
            if lane != NULL and lane.count:
                filled += 1
                count = lane.count
        if filled > 1:  # a job may be in several
            return sum([1 for _ in self.queued(queue)])
        return count

    def queues(self):
        """The queues that have queued jobs, by name."""
        cdef const Tree *lane
        cdef list names = []
        self.must_be_open()
        for queue, pools in list(self.store.lanes.items()):
            for pool in list(<dict> pools):
                lane = self.lane(queue, pool)
                if lane != NULL and lane.count:
                    names.append(queue)
                    break
        names.sort()
        return names

    def diff(self, Reader older not None):
        """What changed from *older* to this one."""
        cdef list pairs = []
        if older.store is not self.store:
            raise ValueError("both must be of one db; the other is of another")
        self.must_be_open()
        older.must_be_open()
        pages_diff(&self.store.row_pages, &older.roots.rows, &self.roots.rows, note_difference,
                   <void *> pairs)
        return diff_of(pairs)

    def contents(self):
        """Everything as stored, for checkers."""
        cdef JobStore store = self.store
        cdef uint32_t slot
        cdef const Tree *lane
        cdef list rows = [], runs = [], shape = []
        cdef dict lanes = {}
        cdef dict lane_counts = {}
        self.must_be_open()
        for slot in range(<uint32_t> self.roots.rows.length):
            job = self.row(slot)
            if job is not None:
                rows.append((slot, job))
        for slot in all_slots(&store.run_maps, &self.roots.runs):
            owner = entry_at(&store.runs.column, slot).value
            runs.append((slot_id(&store.runs.column, slot), owner))
        shape.extend(hamt_breaches(&store.id_maps, &self.roots.ids))
        shape.extend(hamt_breaches(&store.run_maps, &self.roots.runs))
        shape.extend(tree_breaches(&store.trees, &self.roots.submitted))
        shape.extend(tree_breaches(&store.trees, &self.roots.leased))
        shape.extend(tree_breaches(&store.trees, &self.roots.unvalidated))
        shape.extend(tree_breaches(&store.trees, &self.roots.backing_off))
        shape.extend(tree_breaches(&store.trees, &self.roots.gangs))
        for queue, pool in list(store.lane_names):
            lane = self.lane(queue, pool)
            if lane != NULL and (lane.root != NULL or lane.count):
                lanes[queue, pool] = all_items(lane)
                lane_counts[queue, pool] = lane.count
                shape.extend(tree_breaches(&store.trees, lane))
        return {
            "rows": rows,
            "ids": [
                (slot_id(&store.ids.column, at), at)
                for at in all_slots(&store.id_maps, &self.roots.ids)
            ],
            "runs": runs,
            "submitted": all_items(&self.roots.submitted),
            "leased": all_items(&self.roots.leased),
            "unvalidated": all_items(&self.roots.unvalidated),
            "backing_off": all_items(&self.roots.backing_off),
            "gangs": all_items(&self.roots.gangs),
            "lanes": lanes,
            "counts": {
                "ids": self.roots.ids.count,
                "runs": self.roots.runs.count,
                "submitted": self.roots.submitted.count,
                "leased": self.roots.leased.count,
                "unvalidated": self.roots.unvalidated.count,
                "backing_off": self.roots.backing_off.count,
                "gangs": self.roots.gangs.count,
            },
            "lane_counts": lane_counts,
            "shape": shape,
        }

    cdef Walk walk(self, const Tree *tree):
        cdef Walk walk
        self.must_be_open()
        walk = Walk.__new__(Walk)
        walk.reader = self
        if tree.count:
            walk.start(1)
            walk.add(tree)
        return walk


cdef list all_slots(const Maps *maps, const Hamt *map_):
    """The slots of the map, ascending."""
    cdef uint32_t *slots = <uint32_t *> malloc(max(<uint64_t> 1, map_.count) * sizeof(uint32_t))
    if slots == NULL:
        raise MemoryError
    try:
        hamt_slots(maps, map_, slots)
        return sorted([slots[i] for i in range(<Py_ssize_t> map_.count)])
    finally:
        free(slots)


cdef list all_items(const Tree *tree):
    cdef Cursor cursor
    cdef const Item *item
    cdef list items = []
    cursor_first(&cursor, tree)
    while True:
        item = cursor_next(&cursor)
        if item == NULL:
            return items
        items.append(((item.k0, item.k1, item.k2), item.value))


@cython.final
@cython.no_gc_clear
cdef class Snapshot(Reader):
    """The jobs as one commit left them."""

    def upsert(self, job):
        """Raises ReadOnly."""
        raise ReadOnly("a snapshot cannot be changed; open a transaction with write()")

    def upsert_many(self, jobs):
        """Raises ReadOnly."""
        self.upsert(None)

    def delete_many(self, ids):
        """Raises ReadOnly."""
        self.upsert(None)


@cython.final
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
        cdef JobStore store = self.store
        cdef int64_t version
        self.must_be_open()
        if self.busy:
            raise RuntimeError("the transaction is being changed by another call")
        if self.dry:
            version = self.pin.version
            self.end()
            return version
        store.history.prepare(self.edit)
        store.roots = self.roots
        edit = self.edit
        self.leave_walks()
        self.edit = None
        store.history.commit(edit)
        store.spare = edit
        version = store.history.version
        if store.after_commit is not None:
            store.after_commit(store.snapshot())
        return version

    def abort(self):
        """Drop what was staged."""
        self.must_be_open()
        if self.busy:
            raise RuntimeError("the transaction is being changed by another call")
        self.end()

    cdef void end(self) noexcept:
        """Leave no trace. Does nothing after the end."""
        cdef JobStore store = self.store
        cdef Edit edit = self.edit
        if edit is None:
            return
        self.edit = None
        self.leave_walks()
        store.history.abort(edit)
        if self.dry:
            store.history.unpin(self.pin)
            self.pin = NULL
        elif store.spare is None:
            store.spare = edit

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
            read_key(&self.store.ids.column, job.id, &key)
            slot = hamt_find(&self.store.id_maps, &self.roots.ids, &key)
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
                    read_key(&self.store.ids.column, (<Job> batch[first + i]).id, &keys[i])
                hamt_find_many(&self.store.id_maps, &self.roots.ids, keys, slots + first, count)
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
            read_key(&self.store.ids.column, id, &key)
        self.busy = True
        try:
            for id in wanted:
                read_key(&self.store.ids.column, id, &key)
                slot = hamt_find(&self.store.id_maps, &self.roots.ids, &key)
                if slot != NOWHERE:
                    self.drop(&key, slot)
                    gone += 1
        finally:
            self.busy = False
        return gone

    cdef int must_have_room(self, uint64_t jobs) except -1:
        cdef Column *column = &self.store.ids.column
        if jobs > <uint64_t> column.limit - column.used:
            raise TooManyJobs(
                f"{jobs} more jobs do not fit: {column.used} of {column.limit} slots are taken; "
                "delete jobs that ended")
        return 0

    cdef int vet(self, Job job, uint32_t slot, dict new_runs) except -1:
        """Raise for whatever `put` would stumble over. Changes nothing.

        *new_runs* are those of the batch so far, by id; None for a batch of one.
        """
        cdef JobStore store = self.store
        cdef Job old = None if slot == NOWHERE else self.row(slot)
        if job.requirements.priority_class not in store.ranks:
            raise InputError(
                f"job {job.id!r}: no priority class {job.requirements.priority_class!r}; "
                f"known: {', '.join(sorted(store.ranks))}")
        for pool in job.pools:
            if type(pool) is not str:
                raise TypeError(f"job {job.id!r}: a pool is a str, got {pool!r}")
        if job.state_code == BACKING_OFF and job.eligible_ns == NEVER:
            raise InputError(f"job {job.id!r} is backing off without eligible_at; set it")
        if job.gang is not None:
            gang_hash(&store.ids.column, job.queue, job.gang.id)
        if old is not None and not store.moves[old.state_code] >> job.state_code & 1:
            # Who hands on the newest versions only may skip states, but none follows an end.
            if old.state_code >= SUCCEEDED or job.version <= old.version + 1:
                raise IllegalTransition(
                    f"job {job.id!r} is {STATES[old.state_code]} and cannot become "
                    f"{STATES[job.state_code]}")
        if job.runs and (old is None or old.runs is not job.runs):
            self.vet_runs(job, old, slot, new_runs)
        if job.state_code == QUEUED:
            for pool in job.pools:
                store.lane_number(job.queue, pool)
            if not job.pools:
                store.lane_number(job.queue, None)
        return 0

    cdef int vet_runs(self, Job job, Job old, uint32_t slot, dict new_runs) except -1:
        """Raise for a run that another job has, or that this one has twice."""
        cdef JobStore store = self.store
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
            read_key(&store.runs.column, run_id, &key)
            at = hamt_find(&store.run_maps, &self.roots.runs, &key)
            if at != NOWHERE:
                owner = self.row(<uint32_t> entry_at(&store.runs.column, at).value)
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
        cdef JobStore store = self.store
        cdef Key key
        cdef uint32_t before = NOWHERE
        cdef Job old = None
        try:
            if slot == NOWHERE:
                read_key(&store.ids.column, job.id, &key)
                slot = take_slot(&store.ids.column, &self.edit.log, &key, 0)
                hamt_put(&store.id_maps, &self.roots.ids, &self.edit.log, &key, slot, &before)
            else:
                old = self.row(slot)
                if old is job:
                    return 0
            self.move(old, job, slot)
            objects_put(
                &store.row_pages, &self.roots.rows, &self.edit.log, slot, <PyObject *> job)
        except BaseException:
            # Half of it may be in; nothing of the transaction may stay.
            self.end()
            raise
        return 0

    cdef int drop(self, const Key *key, uint32_t slot) except -1:
        """Take the job at *slot* out of everything. Out of memory, the transaction ends."""
        cdef JobStore store = self.store
        cdef uint32_t before = NOWHERE
        cdef Job old = self.row(slot)
        try:
            self.move(old, None, slot)
            hamt_remove(&store.id_maps, &self.roots.ids, &self.edit.log, key, &before)
            objects_put(&store.row_pages, &self.roots.rows, &self.edit.log, slot, NULL)
            retire_slot(&store.ids.column, &self.edit.log, slot)
        except BaseException:
            self.end()
            raise
        return 0

    cdef int move(self, Job old, Job new, uint32_t slot) except -1:
        """Change the entries of every index from those of *old* to those of *new*.

        None stands for no job. An index in which nothing differs is not touched.
        """
        cdef JobStore store = self.store
        cdef Place was, now_
        cdef Item before, after
        cdef uint32_t both
        cdef bint same
        memset(&was, 0, sizeof(Place))
        memset(&now_, 0, sizeof(Place))
        if old is not None:
            store.place_of(old, &was)
        if new is not None:
            store.place_of(new, &now_)
        both = was.marks & now_.marks
        same = old is not None and new is not None and was.submitted == now_.submitted
        before = submit_item(&was, slot)
        after = submit_item(&now_, slot)
        if not same:
            self.entry(&self.roots.submitted, old is not None, &before, new is not None, &after)
        if not (same and both & IN_LEASED):
            self.entry(&self.roots.leased, was.marks & IN_LEASED, &before,
                       now_.marks & IN_LEASED, &after)
        if not (same and both & IN_UNVALIDATED):
            self.entry(&self.roots.unvalidated, was.marks & IN_UNVALIDATED, &before,
                       now_.marks & IN_UNVALIDATED, &after)
        if not (same and both & IN_BACKING_OFF and was.eligible == now_.eligible):
            before = backing_off_item(&was, slot)
            after = backing_off_item(&now_, slot)
            self.entry(&self.roots.backing_off, was.marks & IN_BACKING_OFF, &before,
                       now_.marks & IN_BACKING_OFF, &after)
        if not (same and both & IN_GANGS and was.gang == now_.gang):
            before = gang_item(&was, slot)
            after = gang_item(&now_, slot)
            self.entry(&self.roots.gangs, was.marks & IN_GANGS, &before,
                       now_.marks & IN_GANGS, &after)
        if (was.marks | now_.marks) & IN_LANES:
            self.move_lanes(old, &was, new, &now_, slot)
        if (old is not None and old.runs) or (new is not None and new.runs):
            self.move_runs(old, new, slot)
        return 0

    cdef int entry(self, Tree *tree, bint was, const Item *before, bint is_, const Item *after
                   ) except -1:
        """Take *before* out if it *was* in, put *after* in if it *is_*."""
        if was:
            tree_remove(&self.store.trees, tree, &self.edit.log, before, NULL)
        if is_:
            tree_add(&self.store.trees, tree, &self.edit.log, after)
        return 0

    cdef int move_lanes(self, Job old, const Place *was, Job new, const Place *now_,
                        uint32_t slot) except -1:
        cdef bint left = was.marks & IN_LANES != 0
        cdef bint came = now_.marks & IN_LANES != 0
        cdef bint same = (
            left and came and was.urgency == now_.urgency and was.submitted == now_.submitted
            and old.queue == new.queue)
        if same and (old.pools is new.pools or old.pools == new.pools):
            return 0
        if left:
            for pool in old.pools:
                if not (same and pool in new.pools):
                    self.lane_entry(old.queue, pool, was, slot, False)
            if not old.pools:
                self.lane_entry(old.queue, None, was, slot, False)
        if came:
            for pool in new.pools:
                if not (same and pool in old.pools):
                    self.lane_entry(new.queue, pool, now_, slot, True)
            if not new.pools:
                self.lane_entry(new.queue, None, now_, slot, True)
        return 0

    cdef int lane_entry(self, str queue, object pool, const Place *place, uint32_t slot,
                        bint link) except -1:
        cdef JobStore store = self.store
        cdef uint32_t number = <uint32_t> store.lane_number(queue, pool)
        cdef Tree *lane = <Tree *> page_write(
            &store.lane_pages, &self.roots.lanes, &self.edit.log, number)
        cdef Item item = lane_item(place, slot)
        return self.entry(lane, not link, &item, link, &item)

    cdef int move_runs(self, Job old, Job new, uint32_t slot) except -1:
        cdef tuple was = () if old is None else old.runs
        cdef tuple now_ = () if new is None else new.runs
        cdef Py_ssize_t i, kept = 0
        if was is now_:
            return 0
        # Runs are added at the end and seldom go: what both begin with needs nothing.
        while (kept < len(was) and kept < len(now_)
                and (<Run> was[kept]).id == (<Run> now_[kept]).id):
            kept += 1
        for i in range(kept, len(was)):
            self.run_entry((<Run> was[i]).id, slot, False)
        for i in range(kept, len(now_)):
            self.run_entry((<Run> now_[i]).id, slot, True)
        return 0

    cdef int run_entry(self, str run_id, uint32_t slot, bint link) except -1:
        cdef JobStore store = self.store
        cdef Key key
        cdef uint32_t at, before = NOWHERE
        read_key(&store.runs.column, run_id, &key)
        if link:
            at = take_slot(&store.runs.column, &self.edit.log, &key, slot)
            hamt_put(&store.run_maps, &self.roots.runs, &self.edit.log, &key, at, &before)
        else:
            hamt_remove(&store.run_maps, &self.roots.runs, &self.edit.log, &key, &before)
            if before != NOWHERE:
                retire_slot(&store.runs.column, &self.edit.log, before)
        return 0

    def sabotage(self, str index not None, Job job not None, *, bint link):
        """Enter *job* in one index or take it out, alone: for tests of the checkers only."""
        cdef JobStore store = self.store
        cdef Key key
        cdef Place place
        cdef Item item
        cdef Tree *tree
        cdef uint32_t slot, before = NOWHERE
        self.begin_change()
        read_key(&store.ids.column, job.id, &key)
        slot = hamt_find(&store.id_maps, &self.roots.ids, &key)
        if slot == NOWHERE:
            raise KeyError(job.id)
        store.place_of(job, &place)
        if index == "ids":
            hamt_remove(&store.id_maps, &self.roots.ids, &self.edit.log, &key, &before)
        elif index == "rows":
            objects_put(&store.row_pages, &self.roots.rows, &self.edit.log, slot,
                        <PyObject *> job if link else NULL)
        elif index == "runs":
            for run in job.runs:
                self.run_entry((<Run> run).id, slot, link)
        elif index == "lanes":
            place.urgency = <int64_t> store.ranks[job.requirements.priority_class] << 32
            place.urgency |= job.priority
            for pool in job.pools or (None,):
                self.lane_entry(job.queue, pool, &place, slot, link)
        else:
            item = submit_item(&place, slot)
            if index == "submitted":
                tree = &self.roots.submitted
            elif index == "leased":
                tree = &self.roots.leased
            elif index == "unvalidated":
                tree = &self.roots.unvalidated
            elif index == "backing_off":
                tree = &self.roots.backing_off
                item = backing_off_item(&place, slot)
            elif index == "gangs":
                tree = &self.roots.gangs
                item = gang_item(&place, slot)
            else:
                raise ValueError(f"no index {index!r}")
            self.entry(tree, not link, &item, link, &item)


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


@cython.final
@cython.no_gc_clear
cdef class Walk:
    """Jobs in order, from one tree or from several merged (each job once).

    A walk of a snapshot holds its version. A walk of a transaction is of the moment it began:
    the first write after that makes it keep what it has not given yet.
    """

    def __cinit__(self):
        self.last = INT64_MAX

    def __dealloc__(self):
        self.leave()
        free(self.cursors)
        free(self.heads)

    cdef int start(self, Py_ssize_t trees) except -1:
        """Room for *trees* trees; a transaction will tell before it changes one."""
        self.cursors = <Cursor *> malloc(max(1, trees) * sizeof(Cursor))
        self.heads = <const Item **> malloc(max(1, trees) * sizeof(Item *))
        if self.cursors == NULL or self.heads == NULL:
            raise MemoryError
        if type(self.reader) is Txn:
            self.after = self.reader.walks
            if self.after != NULL:
                (<Walk> self.after).before = <void *> self
            self.reader.walks = <void *> self
            self.listed = True
        return 0

    cdef void leave(self) noexcept:
        """Be told of no more writes."""
        if not self.listed:
            return
        self.listed = False
        if self.before != NULL:
            (<Walk> self.before).after = self.after
        else:
            self.reader.walks = self.after
        if self.after != NULL:
            (<Walk> self.after).before = self.before
        self.before = self.after = NULL

    cdef void add(self, const Tree *tree) noexcept:
        cursor_first(&self.cursors[self.trees], tree)
        self.heads[self.trees] = cursor_next(&self.cursors[self.trees])
        self.trees += 1

    cdef void fetch(self) noexcept:
        """The next jobs of one tree: their rows, then the jobs, so that the misses overlap."""
        cdef const Pages *pages = &self.reader.store.row_pages
        cdef const void *rows[AHEAD]
        cdef const Item *head = self.heads[0]
        cdef uint32_t i, count = 0
        while count < AHEAD and head != NULL and head.k0 <= self.last:
            rows[count] = page_read(pages, &self.reader.roots.rows, <uint32_t> head.value)
            prefetch(rows[count])
            count += 1
            head = cursor_next(&self.cursors[0])
        for i in range(count):
            self.ahead[i] = NULL if rows[i] == NULL else (<const ObjectRow *> rows[i]).held
            prefetch(self.ahead[i])
        self.heads[0] = head
        self.ahead_at = 0
        self.ahead_count = count

    cdef Job step(self):
        """The next job, None at the end."""
        cdef PyObject *job
        if self.trees > 1:
            return self.merge_step()
        if self.ahead_at == self.ahead_count and self.trees:
            self.fetch()
            if self.ahead_count == 0:
                self.trees = 0
                self.leave()
        if self.ahead_at == self.ahead_count:
            return None
        job = self.ahead[self.ahead_at]
        self.ahead_at += 1
        return None if job == NULL else <Job> job

    cdef Job merge_step(self):
        """The same for several trees."""
        cdef const Item *best
        cdef Py_ssize_t i
        best = self.heads[0]
        for i in range(1, self.trees):
            if best == NULL or self.heads[i] != NULL and below(
                    &self.reader.store.trees, self.heads[i], best):
                best = self.heads[i]
        if best == NULL or best.k0 > self.last:
            self.trees = 0
            self.leave()
            return None
        slot = best.value
        for i in range(self.trees):
            if self.heads[i] != NULL and self.heads[i].value == slot:
                self.heads[i] = cursor_next(&self.cursors[i])
        return self.reader.row(<uint32_t> slot)

    cdef int detach(self) except -1:
        """Keep what is left, before it changes."""
        cdef list rest = []
        cdef Job job = self.step()
        while job is not None:
            rest.append(job)
            job = self.step()
        rest.reverse()
        self.rest = rest
        self.leave()
        return 0

    def __iter__(self):
        return self

    def __next__(self):
        cdef Job job
        self.reader.must_be_open()
        if self.rest is not None:
            if self.rest:
                return self.rest.pop()
        else:
            job = self.step()
            if job is not None:
                return job
        raise StopIteration


cdef inline bint below(const Trees *trees, const Item *a, const Item *b) noexcept nogil:
    if a.k0 != b.k0:
        return a.k0 < b.k0
    if a.k1 != b.k1:
        return a.k1 < b.k1
    if a.k2 != b.k2:
        return a.k2 < b.k2
    return by_id(trees.context, a.value, b.value) < 0


cdef int note_difference(void *context, uint32_t row, const void *old, const void *new
                         ) except -1:
    cdef PyObject *before = NULL if old == NULL else (<const ObjectRow *> old).held
    cdef PyObject *after = NULL if new == NULL else (<const ObjectRow *> new).held
    if before != after:
        (<list> context).append((
            None if before == NULL else <Job> before, None if after == NULL else <Job> after))
    return 0


cdef Diff diff_of(list pairs):
    """A diff of the rows that differ. A job that went and came back has two rows here, one line
    there; rows of equal value are no difference."""
    cdef Diff diff = Diff.__new__(Diff)
    cdef dict gone = {(<Job> old).id: old for old, new in pairs if new is None}
    cdef list found = []
    for old, new in pairs:
        if new is None:
            continue
        if old is None:
            old = gone.pop((<Job> new).id, None)
        if old is None or (<Job> old).version != (<Job> new).version or old != new:
            found.append(((<Job> new).submitted_at, (<Job> new).id, old, new))
    for old in gone.values():
        found.append(((<Job> old).submitted_at, (<Job> old).id, old, None))
    found.sort()  # no two share an id, so no jobs are compared
    diff.differences = tuple([(old, new) for _, _, old, new in found])
    return diff


@cython.final
cdef class Diff:
    """What became of the jobs from one version to another."""

    def __init__(self):
        raise TypeError("diffs are made by diff()")

    @property
    def changed(self):
        """Ids of jobs that both have, different."""
        return tuple([
            (<Job> new).id for old, new in self.differences if old is not None and new is not None])

    @property
    def added(self):
        """Ids of jobs that only the newer has."""
        return tuple([(<Job> new).id for old, new in self.differences if old is None])

    @property
    def removed(self):
        """Ids of jobs that only the older has."""
        return tuple([(<Job> old).id for old, new in self.differences if new is None])

    def pairs(self):
        """Each difference as (old, new)."""
        return self.differences

    def __len__(self):
        return len(self.differences)

    def __repr__(self):
        return f"Diff(changed={self.changed!r}, added={self.added!r}, removed={self.removed!r})"
