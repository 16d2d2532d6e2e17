# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Every index over the jobs, and what keeps them in step with the rows.

Owns INV-D1 to INV-D9, INV-D15 and INV-D18 (docs/invariants.md); relies on hamt, ordered and pages
for structure and on versions for who sees what. A row leads to the job's record, which all versions
share that have the job as it is there.
"""

cimport cython
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pyresched._core.bits cimport Sip, sip_end, sip_start, sip_word, word_at
from pyresched._core.hamt cimport LEAF_CELLS, hamt_free, hamt_put, hamt_remove, maps_init
from pyresched._core.ids cimport (
    NOWHERE, Column, IdColumn, Key, compare_slots, retire_slot, take_slot,
)
from pyresched._core.ordered cimport (
    Item, Tree, Trees, tree_add, tree_free, tree_remove, trees_init,
)
from pyresched._core.pages cimport page_read, page_write, pages_free, pages_init
from pyresched._core.records cimport (
    VALIDATED, Kind, Name, Record, RecordRow, RunPart, active_run, name_equal, name_key,
    records_free,
)
from pyresched._core.treenode cimport INNER_WAYS
from pyresched._core.values cimport BACKING_OFF, NEVER, QUEUED, RUNNING, SUCCEEDED, Gang
from pyresched._core.versions cimport EditLog, History, add_fresh, add_retired, make_room


cdef int by_id(const void *column, int64_t a, int64_t b) noexcept nogil:
    if a < 0 or b < 0:
        return (a > b) - (a < b)
    return compare_slots(column, a, b)


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


@cython.final
@cython.no_gc
cdef class LaneNumbers:
    """The numbers of the lanes that some version or edit sees filled."""

    def __cinit__(self):
        self.numbers = {}
        self.names = []
        self.holds = []
        self.spare = []

    cdef int64_t of(self, object queue, object pool) except -2:
        """The number of the lane of *queue* and *pool*, -1 when it has none."""
        cdef dict pools = <dict> self.numbers.get(queue)
        if pools is None:
            return -1
        number = pools.get(pool)
        return -1 if number is None else <int64_t> number

    cdef int64_t hold(self, str queue, object pool) except -1:
        """The same, given now if there is none; `let_go` as often as this."""
        cdef int64_t number = self.of(queue, pool)
        if number >= 0:
            self.holds[number] += 1
            return number
        if not self.spare:
            self.names.append(None)
            self.holds.append(0)
            self.spare.append(len(self.names) - 1)
        number = self.spare[len(self.spare) - 1]
        self.numbers.setdefault(queue, {})[pool] = number
        self.names[number] = (queue, pool)
        self.holds[number] = 1
        self.spare.pop()
        return number

    cdef void let_go(self, uint32_t number) noexcept:
        self.holds[number] -= 1
        if self.holds[number]:
            return
        queue, pool = self.names[number]
        self.names[number] = None
        del self.numbers[queue][pool]
        if not self.numbers[queue]:
            del self.numbers[queue]
        self.spare.append(number)


cdef void let_lane_go(void *owner, uint64_t number) noexcept:
    (<LaneNumbers> owner).let_go(<uint32_t> number)


@cython.no_gc_clear
cdef class JobIndex:
    """Rows and indices of the newest version, and what all versions share."""

    def __init__(self, class_priorities, transitions, *, seed=None, int hash_bits=32,
                 most_jobs=None, uint32_t leaf=LEAF_CELLS, uint32_t fanout=INNER_WAYS):
        cdef uint32_t limit = NOWHERE if most_jobs is None else most_jobs
        if self.history is not None:
            raise TypeError("a store is made once")
        if not (4 <= leaf <= LEAF_CELLS and 4 <= fanout <= INNER_WAYS):
            raise ValueError(
                f"leaf and fanout must be from 4 to {LEAF_CELLS}, got {leaf} and {fanout}")
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
        self.lanes = LaneNumbers()
        maps_init(&self.id_maps, &self.ids.column)
        maps_init(&self.run_maps, &self.runs.column)
        pages_init(&self.row_pages, sizeof(RecordRow))
        pages_init(&self.lane_pages, sizeof(Lane))
        trees_init(&self.trees, by_id, &self.ids.column, 2, sizeof(uint32_t))
        trees_init(&self.moments, by_id, &self.ids.column, 1, sizeof(uint32_t))
        self.id_maps.leaf_cells = self.run_maps.leaf_cells = leaf
        self.trees.form.leaf_items = self.moments.form.leaf_items = leaf
        self.trees.form.inner_ways = self.moments.form.inner_ways = fanout
        history = History()
        history.keep(self.ids)
        history.keep(self.runs)
        history.keep(self.lanes)
        self.history = history

    def __dealloc__(self):
        cdef uint32_t number
        cdef const Lane *lane
        cdef Tree tree
        if self.history is None:
            return
        # Readers hold the store, so what is left is one version, and perhaps ghosts of pins,
        # which the history gives back when it goes, just after this.
        for number in range(<uint32_t> self.roots.lanes.length):
            lane = <const Lane *> page_read(&self.lane_pages, &self.roots.lanes, number)
            if lane != NULL:
                tree = lane.tree
                tree_free(&self.trees, &tree)
        pages_free(&self.lane_pages, &self.roots.lanes)
        tree_free(&self.moments, &self.roots.leased)
        tree_free(&self.moments, &self.roots.unvalidated)
        tree_free(&self.trees, &self.roots.backing_off)
        tree_free(&self.trees, &self.roots.gangs)
        hamt_free(&self.id_maps, &self.roots.ids)
        hamt_free(&self.run_maps, &self.roots.runs)
        records_free(&self.row_pages, &self.roots.rows)

    cdef int must_be_made(self) except -1:
        """Raise for a store whose `__init__` nobody called."""
        if self.history is None:
            raise TypeError(
                f"{type(self).__name__} has no store yet; its __init__ must call that of JobDb")
        return 0

    @property
    def version(self):
        """How many commits there were."""
        self.must_be_made()
        return self.history.version

    def memory(self):
        """What the structures hold now in bytes and in nodes, and what old versions
        keep back. For the records of all stores see `record_memory`."""
        self.must_be_made()
        return {
            "id_nodes": self.id_maps.meter.nodes,
            "run_nodes": self.run_maps.meter.nodes,
            "row_nodes": self.row_pages.meter.nodes,
            "tree_nodes": self.trees.meter.nodes,
            "ids": self.id_maps.meter.bytes,
            "runs": self.run_maps.meter.bytes,
            "rows": self.row_pages.meter.bytes,
            "lanes": self.lane_pages.meter.bytes,
            "trees": self.trees.meter.bytes + self.moments.meter.bytes,
            "id_slots": self.ids.column.used,
            "run_slots": self.runs.column.used,
            "lane_slots": len(self.lanes.names) - len(self.lanes.spare),
            "pinned": self.history.pinned,
        }

    cdef int committed(self) except -1:
        """Called after each commit, for whoever is above."""
        return 0


cdef int64_t rank_of(JobIndex index, Kind kind) except -2:
    """The rank of the class of *kind*, 0 the most urgent; -1: there is no such class."""
    cdef str name = kind.requirements.priority_class
    if name is index.class_seen:
        return index.rank_seen
    rank = index.ranks.get(name)
    if rank is None:
        return -1
    index.class_seen = name
    index.rank_seen = rank
    return index.rank_seen


cdef int place_of(JobIndex index, const Record *job, Place *place) except -1:
    return place_by(index, job, rank_of(index, <Kind> job.kind), place)


cdef int place_by(JobIndex index, const Record *job, int64_t rank, Place *place) except -1:
    cdef Kind kind = <Kind> job.kind
    place.submitted = job.submitted_at
    place.urgency = 0
    place.eligible = NEVER if job.cold == NULL else job.cold.rare.eligible_at
    place.gang = 0
    place.marks = 0
    if job.state == QUEUED:
        place.urgency = rank << 32 | job.priority
        place.marks |= IN_LANES
    elif job.state <= RUNNING:
        if active_run(job) != NULL:
            place.marks |= IN_LEASED
    elif job.state == BACKING_OFF:
        place.marks |= IN_BACKING_OFF
    if not job.flags & VALIDATED and job.state < SUCCEEDED:
        place.marks |= IN_UNVALIDATED
    if job.cold != NULL and job.cold.gang != NULL:
        place.gang = gang_hash(&index.ids.column, kind.queue, (<Gang> job.cold.gang).id)
        place.marks |= IN_GANGS
    return 0


cdef int move(JobIndex index, Roots *roots, EditLog *log, const Record *old, const Record *new,
              uint32_t slot) except -1:
    """Change the entries of every index from those of *old* to those of *new*.

    NULL stands for no job. An index in which nothing differs is not touched.
    """
    cdef Place was, now_
    cdef Item before, after
    cdef uint32_t both
    cdef bint same
    memset(&was, 0, sizeof(Place))
    memset(&now_, 0, sizeof(Place))
    if old != NULL:
        place_of(index, old, &was)
    if new != NULL:
        place_of(index, new, &now_)
    both = was.marks & now_.marks
    same = old != NULL and new != NULL and was.submitted == now_.submitted
    before = submit_item(&was, slot)
    after = submit_item(&now_, slot)
    if not (same and both & IN_LEASED):
        entry(&index.moments, log, &roots.leased, was.marks & IN_LEASED, &before,
              now_.marks & IN_LEASED, &after)
    if not (same and both & IN_UNVALIDATED):
        entry(&index.moments, log, &roots.unvalidated, was.marks & IN_UNVALIDATED, &before,
              now_.marks & IN_UNVALIDATED, &after)
    if not (same and both & IN_BACKING_OFF and was.eligible == now_.eligible):
        before = backing_off_item(&was, slot)
        after = backing_off_item(&now_, slot)
        entry(&index.trees, log, &roots.backing_off, was.marks & IN_BACKING_OFF, &before,
              now_.marks & IN_BACKING_OFF, &after)
    if not (same and both & IN_GANGS and was.gang == now_.gang):
        before = gang_item(&was, slot)
        after = gang_item(&now_, slot)
        entry(&index.trees, log, &roots.gangs, was.marks & IN_GANGS, &before,
              now_.marks & IN_GANGS, &after)
    if (was.marks | now_.marks) & IN_LANES:
        move_lanes(index, roots, log, old, &was, new, &now_, slot)
    if (old != NULL and old.cold != NULL) or (new != NULL and new.cold != NULL):
        move_runs(index, roots, log, old, new, slot)
    return 0


cdef int entry(Trees *trees, EditLog *log, Tree *tree, bint was, const Item *before,
               bint is_, const Item *after) except -1:
    """Take *before* out if it *was* in, put *after* in if it *is_*."""
    if was:
        tree_remove(trees, tree, log, before, NULL)
    if is_:
        tree_add(trees, tree, log, after)
    return 0


cdef int move_lanes(JobIndex index, Roots *roots, EditLog *log, const Record *old,
                    const Place *was, const Record *new, const Place *now_,
                    uint32_t slot) except -1:
    cdef bint left = was.marks & IN_LANES != 0
    cdef bint came = now_.marks & IN_LANES != 0
    cdef Kind before = None if old == NULL else <Kind> old.kind
    cdef Kind after = None if new == NULL else <Kind> new.kind
    cdef bint same = (
        left and came and was.urgency == now_.urgency and was.submitted == now_.submitted
        and before.queue == after.queue)
    if same and (before is after or before.pools == after.pools):
        return 0
    if left:
        for pool in before.pools:
            if not (same and pool in after.pools):
                lane_entry(index, roots, log, before.queue, pool, was, slot, False)
        if not before.pools:
            lane_entry(index, roots, log, before.queue, None, was, slot, False)
    if came:
        for pool in after.pools:
            if not (same and pool in before.pools):
                lane_entry(index, roots, log, after.queue, pool, now_, slot, True)
        if not after.pools:
            lane_entry(index, roots, log, after.queue, None, now_, slot, True)
    return 0


cdef Lane *own_lane(JobIndex index, Roots *roots, EditLog *log, str queue, object pool,
                    bint fills) except NULL:
    cdef int64_t number
    cdef Lane *lane
    if fills:
        make_room(log, 1)
        number = index.lanes.hold(queue, pool)
        add_fresh(log, let_lane_go, <void *> index.lanes, <uint64_t> number)
    else:
        number = index.lanes.of(queue, pool)
    lane = <Lane *> page_write(&index.lane_pages, &roots.lanes, log, <uint32_t> number)
    if fills:
        lane.birth = log.stamp
    return lane


cdef int lane_entry(JobIndex index, Roots *roots, EditLog *log, str queue, object pool,
                    const Place *place, uint32_t slot, bint link) except -1:
    cdef int64_t number = index.lanes.of(queue, pool)
    cdef const Lane *found = NULL
    cdef Lane *lane
    cdef Item item = lane_item(place, slot)
    cdef bint was_empty
    if number >= 0:
        found = <const Lane *> page_read(&index.lane_pages, &roots.lanes, <uint32_t> number)
    was_empty = found == NULL or found.tree.count == 0
    if was_empty and not link:
        return 0
    lane = own_lane(index, roots, log, queue, pool, was_empty)
    entry(&index.trees, log, &lane.tree, not link, &item, link, &item)
    if lane.tree.count == 0:
        lane_emptied(index, log, queue, pool, lane)
    return 0


cdef int lane_emptied(JobIndex index, EditLog *log, str queue, object pool,
                      const Lane *lane) except -1:
    make_room(log, 1)
    add_retired(log, let_lane_go, <void *> index.lanes, <uint64_t> index.lanes.of(queue, pool),
                lane.birth)
    return 0


cdef int move_runs(JobIndex index, Roots *roots, EditLog *log, const Record *old,
                   const Record *new, uint32_t slot) except -1:
    cdef uint32_t was = 0 if old == NULL or old.cold == NULL else old.cold.run_count
    cdef uint32_t now_ = 0 if new == NULL or new.cold == NULL else new.cold.run_count
    cdef const RunPart *before = NULL
    cdef const RunPart *after = NULL
    cdef uint32_t i, kept = 0
    if was:
        before = old.cold.runs
    if now_:
        after = new.cold.runs
    if before == after:
        return 0
    # Runs are added at the end and seldom go: what both begin with needs nothing.
    while (kept < was and kept < now_
            and name_equal(&(before + kept).id, (before + kept).id_kind,
                           &(after + kept).id, (after + kept).id_kind)):
        kept += 1
    for i in range(kept, was):
        run_entry(index, roots, log, &(before + i).id, (before + i).id_kind, slot, False)
    for i in range(kept, now_):
        run_entry(index, roots, log, &(after + i).id, (after + i).id_kind, slot, True)
    return 0


cdef int run_entry(JobIndex index, Roots *roots, EditLog *log, const Name *run, uint8_t kind,
                   uint32_t slot, bint link) except -1:
    cdef Key key
    cdef uint32_t at, before = NOWHERE
    name_key(&index.runs.column, run, kind, &key)
    if link:
        at = take_slot(&index.runs.column, log, &key, slot)
        hamt_put(&index.run_maps, &roots.runs, log, &key, at, &before)
    else:
        hamt_remove(&index.run_maps, &roots.runs, log, &key, &before)
        if before != NOWHERE:
            retire_slot(&index.runs.column, log, before)
    return 0
