# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What can be asked of one version of the jobs: look-ups, walks in order, diffs.

Owns INV-D10 and INV-D14 (docs/invariants.md); relies on jobindex, which it only reads.
"""

from enum import Enum

cimport cython
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memcpy

from pyresched._core.batch cimport Texts
from pyresched._core.bits cimport prefetch
from pyresched._core.collector cimport pause, resume
from pyresched._core.hamt cimport (
    Hamt, Maps, hamt_find, hamt_find_many, hamt_slots,
)
from pyresched._core.hamtcheck cimport hamt_breaches
from pyresched._core.ids cimport (
    NOWHERE, Key, entry_at, read_key, slot_id,
)
from pyresched._core.jobcolumns cimport column_fields, fill_column, sorted_slots
from pyresched._core.jobindex cimport BEFORE_ALL, BLOCK, JobIndex, Roots, by_id, gang_hash
from pyresched._core.ordered cimport (
    Cursor, Item, Tree, Trees, cursor_first, cursor_next, cursor_seek, cursor_slots,
)
from pyresched._core.pages cimport page_read, pages_diff, pages_fetch
from pyresched._core.records cimport Record, RecordRow, record_at
from pyresched._core.treecheck cimport tree_breaches
from pyresched._core.values cimport Gang, whole_in
from pyresched._core.views cimport LENDING, Job, job_view, lend, lent_end

from pyresched.errors import InputError, ReadOnly


class Order(Enum):
    """In which order a queue is walked.

    FAIR_SHARE: higher class priority, lower job priority, earlier submit, lower id.
    MARKET: the same without the job priority. Bids come with market pools in a later change.
    """

    FAIR_SHARE = "fair_share"
    MARKET = "market"


cdef object BY_SHARE = Order.FAIR_SHARE
cdef object BY_MARKET = Order.MARKET


@cython.no_gc_clear
cdef class Reader:
    """One version of the jobs. What it gives never depends on a hash."""

    def __init__(self):
        raise TypeError("readers are made by JobDb: snapshot(), write() or dry_run()")

    def __dealloc__(self):
        if self.pin != NULL:
            self.index.history.unpin(self.pin)
            self.pin = NULL

    def __repr__(self):
        if self.index is None:
            return f"<{type(self).__name__} that was never made>"
        return (
            f"<{type(self).__name__} version {self.version}, {several_of(len(self), 'job')}, "
            f"{several_of(len(self.queues()), 'queue')}>")

    cdef int must_be_open(self) except -1:
        if self.index is None:
            raise TypeError("readers are made by JobDb: snapshot(), write() or dry_run()")
        return 0

    cdef const Record *record(self, uint32_t slot) noexcept:
        return record_at(&self.index.row_pages, &self.roots.rows, slot)

    cdef Job row(self, uint32_t slot):
        cdef const Record *record = self.record(slot)
        return None if record == NULL else job_view(record)

    cdef const Tree *lane(self, object queue, object pool) except? NULL:
        """The lane of *queue* and *pool*, NULL when there is none."""
        cdef int64_t number = self.index.lanes.of(queue, pool)
        if number < 0:
            return NULL
        return <const Tree *> page_read(
            &self.index.lane_pages, &self.roots.lanes, <uint32_t> number)

    @property
    def version(self):
        """How many commits it has seen; a transaction or dry run: those before it began."""
        self.must_be_open()
        return self.index.history.version if self.pin == NULL else self.pin.version

    def get(self, id, default=None):
        """The job *id*, or *default*."""
        cdef Key key
        cdef uint32_t slot
        self.must_be_open()
        read_key(&self.index.ids.column, id, &key)
        slot = hamt_find(&self.index.id_maps, &self.roots.ids, &key)
        return default if slot == NOWHERE else self.row(slot)

    def get_many(self, ids):
        """The jobs of *ids* in their order, None where there is none."""
        cdef list wanted = several(ids)
        cdef list found = []
        cdef Key keys[BLOCK]
        cdef uint32_t slots[BLOCK]
        cdef const void *row
        cdef Py_ssize_t first, i, count
        self.must_be_open()
        for first in range(0, len(wanted), BLOCK):
            count = min(<Py_ssize_t> BLOCK, len(wanted) - first)
            for i in range(count):
                read_key(&self.index.ids.column, wanted[first + i], &keys[i])
            hamt_find_many(&self.index.id_maps, &self.roots.ids, keys, slots, count)
            for i in range(count):
                if slots[i] != NOWHERE:
                    row = page_read(&self.index.row_pages, &self.roots.rows, slots[i])
                    prefetch((<const RecordRow *> row).held)
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
        cdef Walk walk
        self.must_be_open()
        walk = Walk.__new__(Walk)
        walk.reader = self
        walk.start(0)
        walk.slot_count = <Py_ssize_t> self.roots.ids.count
        walk.slots = in_submit_order(self)
        return walk

    def by_run(self, run_id):
        """The job that has the run *run_id*, ended runs included."""
        cdef Key key
        cdef uint32_t slot
        self.must_be_open()
        read_key(&self.index.runs.column, run_id, &key)
        slot = hamt_find(&self.index.run_maps, &self.roots.runs, &key)
        if slot == NOWHERE:
            return None
        return self.row(<uint32_t> entry_at(&self.index.runs.column, slot).value)

    def gang(self, str queue not None, str gang_id not None):
        """The members of a gang whatever their state, in submit order, then by id."""
        cdef Cursor cursor
        cdef list members = []
        cdef Job job
        cdef Item first, item
        self.must_be_open()
        first = Item(
            gang_hash(&self.index.ids.column, queue, gang_id), INT64_MIN, 0, BEFORE_ALL)
        cursor_seek(&cursor, &self.index.trees, &self.roots.gangs, &first)
        while True:
            if not cursor_next(&cursor, &item) or item.k0 != first.k0:
                return members
            job = self.row(<uint32_t> item.value)
            if (<Gang> job.record.cold.gang).id == gang_id and job.kind().queue == queue:
                members.append(job)

    def leased(self):
        """The jobs that hold room on a node, in submit order, then by id."""
        return self.walk(&self.index.moments, &self.roots.leased)

    def unvalidated(self):
        """The jobs that wait for validation and have not ended, in submit order, then by id."""
        return self.walk(&self.index.moments, &self.roots.unvalidated)

    def backing_off(self, before=None):
        """The waiting jobs that are eligible at *before* or earlier, due first; None: all."""
        cdef int64_t last = INT64_MAX if before is None else whole_in(before, "before")
        cdef Walk walk = self.walk(&self.index.trees, &self.roots.backing_off)
        walk.last = last
        return walk

    def queued(self, str queue not None, str pool=None, order=BY_SHARE):
        """The queued jobs of *queue* that may run in *pool* (None: in any or none), in order."""
        cdef Walk walk
        cdef const Tree *lane
        cdef uint64_t count = 0
        if order is not BY_SHARE and order is not BY_MARKET:
            raise TypeError(f"order is an Order, got {order!r}")
        self.must_be_open()
        walk = Walk.__new__(Walk)
        walk.reader = self
        names = list(self.index.lanes.numbers.get(queue, ())) if pool is None else [pool]
        walk.start(len(names))
        for name in names:
            lane = self.lane(queue, name)
            if lane != NULL and lane.count:
                walk.add(&self.index.trees, lane)
                count += lane.count
        # Only market pools ask for the other order, so no index keeps it.
        if order is BY_MARKET and walk.trees:
            walk.sort_for_market(count)
        return walk

    def same_queue(self, Reader other not None, str queue not None, str pool=None):
        """Whether it is known at once that `queued` gives the same ids in the same order in both.

        False says nothing: the queue may have changed and changed back.
        """
        cdef const Tree *lane
        cdef const Tree *others
        self.must_be_open()
        other.must_be_open()
        for name in list(self.index.lanes.numbers.get(queue, ())) if pool is None else [pool]:
            lane = self.lane(queue, name)
            others = other.lane(queue, name)
            if (NULL if lane == NULL else lane.root) != (NULL if others == NULL else others.root):
                return False
        return True

    def queue_length(self, str queue not None, str pool=None):
        """How many jobs `queued` would give."""
        cdef const Tree *lane
        cdef Py_ssize_t filled = 0
        cdef uint64_t count = 0
        self.must_be_open()
        if pool is not None:
            lane = self.lane(queue, pool)
            return 0 if lane == NULL else lane.count
        for name in list(self.index.lanes.numbers.get(queue, ())):
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
        for queue in list(self.index.lanes.numbers):
            for pool in list(self.index.lanes.numbers.get(queue, ())):
                lane = self.lane(queue, pool)
                if lane != NULL and lane.count:
                    names.append(queue)
                    break
        names.sort()
        return names

    def diff(self, Reader older not None):
        """What changed from *older* to this one. Raises ValueError for one of another db."""
        cdef list pairs = []
        cdef bint were
        self.must_be_open()
        older.must_be_open()
        if older.index is not self.index:
            raise ValueError("both must be of one db; the other is of another")
        were = pause()
        try:
            pages_diff(&self.index.row_pages, &older.roots.rows, &self.roots.rows,
                       note_difference, <void *> pairs)
        finally:
            resume(were)
        return diff_of(pairs)

    def columns(self, *names, ids=None):
        """A column of int64 by name for each of *names*, filled without the GIL.

        Of all jobs by submit time, then id, or of *ids* (a list, a buffer of bytes of fixed width
        such as NumPy's 'S26', an Arrow string column) in their order. Names: state, priority,
        submitted_at, version, validated, runs, reschedules, failed_at, eligible_at, ended_at,
        and of the newest run leased_at, started_at. -2**63 stands for None and for no such job.
        Raises InputError for another name.
        """
        cdef dict fields = column_fields()
        cdef Texts texts
        cdef bint were
        for name in names:
            if type(name) is not str or name not in fields:
                raise InputError(f"no column {name!r}; there are: {', '.join(fields)}")
        texts = None if ids is None else Texts(ids)
        self.must_be_open()
        were = pause()
        try:
            return self.filled(names, fields, texts)
        finally:
            resume(were)

    cdef dict filled(self, tuple names, dict fields, Texts texts):
        """The columns; no Python of a user runs meanwhile."""
        cdef JobIndex index = self.index
        cdef Roots roots = self.roots
        cdef Py_ssize_t count = <Py_ssize_t> roots.ids.count if texts is None else texts.count
        cdef uint32_t *slots = (
            in_submit_order(self) if texts is None else found_slots(self, texts))
        cdef int field
        cdef int64_t[::1] out
        cdef dict columns = {}
        try:
            for name in names:
                columns[name] = memoryview(bytearray(8 * count)).cast("q")
                if count == 0:
                    continue
                field = fields[name]
                out = columns[name]
                if self.changing:
                    fill_column(&index.row_pages, &roots, slots, count, field, &out[0])
                else:
                    with nogil:
                        fill_column(&index.row_pages, &roots, slots, count, field, &out[0])
        finally:
            free(slots)
        return columns

    def contents(self):
        """Everything as stored, for checkers."""
        cdef bint were
        self.must_be_open()
        were = pause()
        try:
            return self.everything()
        finally:
            resume(were)

    cdef dict everything(self):
        cdef JobIndex index = self.index
        cdef uint32_t slot
        cdef const Tree *lane
        cdef list rows = [], runs = [], shape = []
        cdef dict lanes = {}
        cdef dict lane_counts = {}
        for slot in range(<uint32_t> self.roots.rows.length):
            job = self.row(slot)
            if job is not None:
                rows.append((slot, job))
        for slot in all_slots(&index.run_maps, &self.roots.runs):
            owner = entry_at(&index.runs.column, slot).value
            runs.append((slot_id(&index.runs.column, slot), owner))
        shape.extend(hamt_breaches(&index.id_maps, &self.roots.ids))
        shape.extend(hamt_breaches(&index.run_maps, &self.roots.runs))
        shape.extend(tree_breaches(&index.moments, &self.roots.leased))
        shape.extend(tree_breaches(&index.moments, &self.roots.unvalidated))
        shape.extend(tree_breaches(&index.trees, &self.roots.backing_off))
        shape.extend(tree_breaches(&index.trees, &self.roots.gangs))
        for queue, pool in filter(None, list(index.lanes.names)):
            lane = self.lane(queue, pool)
            if lane != NULL and (lane.root != NULL or lane.count):
                lanes[queue, pool] = all_items(&index.trees, lane)
                lane_counts[queue, pool] = lane.count
                shape.extend(tree_breaches(&index.trees, lane))
        return {
            "rows": rows,
            "ids": [
                (slot_id(&index.ids.column, at), at)
                for at in all_slots(&index.id_maps, &self.roots.ids)
            ],
            "runs": runs,
            "submitted": submitted_slots(self),
            "leased": all_items(&index.moments, &self.roots.leased),
            "unvalidated": all_items(&index.moments, &self.roots.unvalidated),
            "backing_off": all_items(&index.trees, &self.roots.backing_off),
            "gangs": all_items(&index.trees, &self.roots.gangs),
            "lanes": lanes,
            "counts": {
                "ids": self.roots.ids.count,
                "runs": self.roots.runs.count,
                "leased": self.roots.leased.count,
                "unvalidated": self.roots.unvalidated.count,
                "backing_off": self.roots.backing_off.count,
                "gangs": self.roots.gangs.count,
            },
            "lane_counts": lane_counts,
            "shape": shape,
        }

    cdef Walk walk(self, const Trees *trees, const Tree *tree):
        cdef Walk walk
        self.must_be_open()
        walk = Walk.__new__(Walk)
        walk.reader = self
        if tree.count:
            walk.start(1)
            walk.add(trees, tree)
        return walk


cdef str several_of(Py_ssize_t count, str noun):
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


cdef list several(ids):
    """*ids* as a list of our own. A str is one id, not its characters."""
    if isinstance(ids, str):
        raise TypeError(f"ids is several ids, got the one str {ids!r}; write [{ids!r}]")
    return list(ids)


cdef uint32_t *found_slots(Reader reader, Texts texts) except NULL:
    """The slot of each of *texts*, NOWHERE where there is none. To be freed by the caller."""
    cdef JobIndex index = reader.index
    cdef Roots roots = reader.roots
    cdef Key *keys = <Key *> malloc(max(1, texts.count) * sizeof(Key))
    cdef uint32_t *slots = <uint32_t *> malloc(max(1, texts.count) * sizeof(uint32_t))
    cdef Py_ssize_t i
    try:
        if keys == NULL or slots == NULL:
            raise MemoryError
        if texts.strs is not None:
            for i in range(texts.count):
                read_key(&index.ids.column, texts.strs[i], &keys[i])
            i = texts.count
        elif reader.changing:
            i = texts.keys(&index.ids.column, keys)
        else:
            with nogil:
                i = texts.keys(&index.ids.column, keys)
        if i < texts.count:
            raise InputError(f"ids[{i}] is empty, over 255 bytes or not ASCII")
        if reader.changing:
            hamt_find_many(&index.id_maps, &roots.ids, keys, slots, texts.count)
        else:
            with nogil:
                hamt_find_many(&index.id_maps, &roots.ids, keys, slots, texts.count)
    except:  # noqa: E722
        free(slots)
        raise
    finally:
        free(keys)
    return slots


cdef uint32_t *in_submit_order(Reader reader) except NULL:
    """The slots of all jobs by submit time, then id. To be freed by the caller."""
    cdef JobIndex index = reader.index
    cdef Roots roots = reader.roots
    cdef uint32_t *slots
    if reader.changing:  # another thread could change it meanwhile
        slots = sorted_slots(&index.ids.column, &index.id_maps, &index.row_pages, &roots)
    else:
        with nogil:
            slots = sorted_slots(&index.ids.column, &index.id_maps, &index.row_pages, &roots)
    if slots == NULL:
        raise MemoryError
    return slots


cdef list submitted_slots(Reader reader):
    cdef uint32_t *slots = in_submit_order(reader)
    try:
        return [slots[i] for i in range(<Py_ssize_t> reader.roots.ids.count)]
    finally:
        free(slots)


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


cdef list all_items(const Trees *trees, const Tree *tree):
    cdef Cursor cursor
    cdef Item item
    cdef tuple key
    cdef list items = []
    cursor_first(&cursor, trees, tree)
    while cursor_next(&cursor, &item):
        key = (item.k0,)
        if trees.form.words == 2:
            key = (item.k0, item.k1)
        items.append((key, item.value))
    return items


@cython.final
@cython.no_gc_clear
cdef class Snapshot(Reader):
    """The jobs as one commit left them: immutable, and alive as long as it is held."""

    def upsert(self, job):
        """Raises ReadOnly."""
        raise ReadOnly(
            f"a snapshot (here of version {self.version}) cannot be changed; open a transaction "
            "with write()")

    def upsert_many(self, jobs):
        """Raises ReadOnly."""
        self.upsert(None)

    def upsert_columns(self, **columns):
        """Raises ReadOnly."""
        self.upsert(None)

    def delete_many(self, ids):
        """Raises ReadOnly."""
        self.upsert(None)


@cython.final
@cython.no_gc_clear
cdef class Walk:
    """Jobs in order, of the moment that the walk began: later writes do not reach it.

    A walk of a snapshot holds its version. Each job comes once, in however many pools it is.
    """
    # From one tree or from several merged. The first write of a transaction makes its walks keep
    # what they have not given yet.

    def __cinit__(self):
        self.last = INT64_MAX

    def __dealloc__(self):
        lent_end(&self.lent)
        self.leave()
        free(self.heads)
        free(self.slots)

    def __repr__(self):
        if self.reader is None:
            return "<Walk that was never made>"
        return f"<Walk over {self.reader!r}>"

    cdef int start(self, Py_ssize_t trees) except -1:
        """Room for *trees* trees; a transaction will tell before it changes one."""
        self.heads = <Head *> malloc(max(1, trees) * sizeof(Head))
        if self.heads == NULL:
            raise MemoryError
        if self.reader.changing:
            self.after = self.reader.walks
            if self.after != NULL:
                (<Walk> self.after).before = <void *> self
            self.reader.walks = <void *> self
            self.listed = True
        else:
            self.lends = LENDING
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

    cdef void add(self, const Trees *trees, const Tree *tree) noexcept:
        cdef Head *head = self.heads + self.trees
        cursor_first(&head.cursor, trees, tree)
        head.there = cursor_next(&head.cursor, &head.item)
        self.trees += 1

    cdef int sort_for_market(self, uint64_t count) except -1:
        """Go by class, submit time and id instead. The trees have *count* items."""
        cdef const void *ids = &self.reader.index.ids.column
        cdef Head *head
        cdef size_t i, at = 0
        cdef Offer *offers = <Offer *> malloc(count * sizeof(Offer))
        self.slots = <uint32_t *> malloc(count * sizeof(uint32_t))
        if offers == NULL or self.slots == NULL:
            free(offers)
            raise MemoryError
        for i in range(<size_t> self.trees):
            head = self.heads + i
            while head.there:
                offers[at].item = head.item
                offers[at].item.k0 >>= 32  # the rank, without the job's own priority
                offers[at].ids = ids
                head.there = cursor_next(&head.cursor, &head.item)
                at += 1
        qsort(offers, at, sizeof(Offer), by_offer)
        for i in range(at):
            # Equal offers are one job, in several pools.
            if i == 0 or offers[i].item.value != offers[i - 1].item.value:
                self.slots[self.slot_count] = <uint32_t> offers[i].item.value
                self.slot_count += 1
        free(offers)
        self.trees = 0
        return 0

    cdef uint32_t next_slots(self, uint32_t *slots) noexcept:
        """Up to AHEAD slots from the trees or the array."""
        cdef uint32_t count = 0
        cdef Head *head = self.heads
        if self.slots != NULL:
            while count < AHEAD and self.slot_at < self.slot_count:
                slots[count] = self.slots[self.slot_at]
                self.slot_at += 1
                count += 1
            return count
        if self.trees == 1 and self.last == INT64_MAX:
            if head.there:
                slots[0] = <uint32_t> head.item.value
                head.there = False
                count = 1
            return count + cursor_slots(&head.cursor, slots + count, AHEAD - count)
        while count < AHEAD and self.merged(&slots[count]):
            count += 1
        return count

    cdef bint merged(self, uint32_t *slot) noexcept:
        """The slot of the first job of all trees, which move past it; False at the end."""
        cdef Head *head
        cdef const Item *best = NULL
        cdef Py_ssize_t i
        for i in range(self.trees):
            head = self.heads + i
            if head.there and (best == NULL or below(head.cursor.trees, &head.item, best)):
                best = &head.item
        if best == NULL or best.k0 > self.last:
            return False
        slot[0] = <uint32_t> best.value
        for i in range(self.trees):
            head = self.heads + i
            if head.there and <uint32_t> head.item.value == slot[0]:
                head.there = cursor_next(&head.cursor, &head.item)
        return True

    cdef bint fetch(self) noexcept:
        """Move every batch one stage on; False at the end.

        What a stage reads was asked for by the stage before, a batch of jobs ago.
        """
        cdef uint32_t i, count
        self.ahead_at = 0
        while True:
            self.ahead_count = self.coming_count
            memcpy(self.ahead_slots, self.coming_slots, sizeof(self.coming_slots))
            for i in range(self.coming_count):
                self.ahead[i] = NULL if self.coming[i] == NULL else self.coming[i].held
                prefetch(self.ahead[i])
            count = self.next_slots(self.coming_slots)
            pages_fetch(&self.reader.index.row_pages, &self.reader.roots.rows, self.coming_slots,
                        count, <const void **> self.coming)
            self.coming_count = count
            if self.ahead_count or count == 0:
                return self.ahead_count != 0

    cdef const Record *step(self) noexcept:
        """The next job, NULL at the end."""
        if self.ahead_at == self.ahead_count:
            if not self.trees and self.slots == NULL:
                return NULL
            if not self.fetch():
                self.trees = 0
                free(self.slots)
                self.slots = NULL
                self.leave()
                return NULL
        self.ahead_at += 1
        return self.ahead[self.ahead_at - 1]

    cdef uint32_t slot(self) noexcept:
        """Where the job is that `step` has just given."""
        return self.ahead_slots[self.ahead_at - 1]

    cdef int detach(self) except -1:
        """Keep what is left, before it changes."""
        cdef list rest = []
        cdef const Record *job = self.step()
        while job != NULL:
            rest.append(job_view(job))
            job = self.step()
        rest.reverse()
        self.rest = rest
        self.leave()
        return 0

    def __iter__(self):
        return self

    def __next__(self):
        cdef const Record *job
        if self.lends:
            if self.ahead_at != self.ahead_count:
                job = self.ahead[self.ahead_at]
                self.ahead_at += 1
            else:
                job = self.step()
            if job != NULL:
                return lend(&self.lent, job)
        elif self.reader is None:
            raise TypeError("walks are made by readers")
        else:
            self.reader.must_be_open()
            if self.rest is not None:
                if self.rest:
                    return self.rest.pop()
            else:
                job = self.step()
                if job != NULL:
                    return job_view(job)
        raise StopIteration


# A queued job as the market sees it.
cdef struct Offer:
    Item item
    const void *ids


cdef int by_offer(const void *a, const void *b) noexcept nogil:
    cdef const Item *one = &(<const Offer *> a).item
    cdef const Item *other = &(<const Offer *> b).item
    if one.k0 != other.k0:
        return -1 if one.k0 < other.k0 else 1
    if one.k1 != other.k1:
        return -1 if one.k1 < other.k1 else 1
    return by_id((<const Offer *> a).ids, one.value, other.value)


cdef inline bint below(const Trees *trees, const Item *a, const Item *b) noexcept nogil:
    if a.k0 != b.k0:
        return a.k0 < b.k0
    if a.k1 != b.k1:
        return a.k1 < b.k1
    return by_id(trees.form.context, a.value, b.value) < 0


cdef int note_difference(void *context, uint32_t row, const void *old, const void *new
                         ) except -1:
    cdef const Record *before = NULL if old == NULL else (<const RecordRow *> old).held
    cdef const Record *after = NULL if new == NULL else (<const RecordRow *> new).held
    if before != after:
        (<list> context).append((
            None if before == NULL else job_view(before),
            None if after == NULL else job_view(after)))
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
    """What became of the jobs from one version to another. Ids in submit order, then by id."""

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
        """Each difference as (old, new), in submit order of the job that there is; None: absent."""
        return self.differences

    def __len__(self):
        return len(self.differences)

    def __repr__(self):
        return f"Diff(changed={self.changed!r}, added={self.added!r}, removed={self.removed!r})"
