# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A store that is filled at once: every index is built of sorted items, each node written once.

Gives the same indices as `jobindex.move` job by job (INV-D1 to INV-D9), whose helpers it uses; only
runs go in one by one.
"""

cimport cython
from libc.stdint cimport uint32_t
from libc.stdlib cimport free, malloc, qsort, realloc

from pyresched._core.batch cimport Batch
from pyresched._core.hamt cimport hamt_put
from pyresched._core.hamtbuild cimport Cell, hamt_build, sorted_cells
from pyresched._core.ids cimport Key, take_slot
from pyresched._core.jobindex cimport (
    IN_BACKING_OFF, IN_GANGS, IN_LANES, IN_LEASED, IN_UNVALIDATED, JobIndex, Lane, Place, Roots,
    backing_off_item, gang_item, lane_item, move_runs, own_lane, place_of, submit_item,
)
from pyresched._core.ordered cimport Tree, Trees, items_ascend, tree_add, tree_build
from pyresched._core.records cimport Kind, Record, record_put
from pyresched._core.treenode cimport Form, Item, order
from pyresched._core.versions cimport EditLog

# Whose order `by_item` is; set while the GIL is held.
cdef const Form *sorting = NULL


cdef int by_item(const void *a, const void *b) noexcept nogil:
    return order(sorting, <const Item *> a, <const Item *> b)


@cython.final
@cython.no_gc
cdef class Load:
    """One load: where each job goes, gathered before any tree is made."""

    def __dealloc__(self):
        free(self.slots)
        free(self.unvalidated.items)
        free(self.leased.items)
        free(self.backing_off.items)
        free(self.gangs.items)
        free(self.queued.items)
        free(self.lot_of)
        free(self.lots)

    cdef int take_ids(self, Roots *roots, EditLog *log) except -1:
        """A slot for each job, and the map that leads there."""
        cdef Py_ssize_t i, count = self.batch.count
        cdef Key *keys = <Key *> malloc(count * sizeof(Key))
        cdef Cell *cells = NULL
        cdef bint alike = False
        cdef uint32_t before = 0
        try:
            self.slots = <uint32_t *> malloc(count * sizeof(uint32_t))
            if keys == NULL or self.slots == NULL:
                raise MemoryError
            for i in range(count):
                self.batch.key(&self.index.ids.column, i, &keys[i])
            cells = sorted_cells(keys, count, &alike)
            for i in range(count):
                self.slots[i] = take_slot(&self.index.ids.column, log, &keys[i], 0)
            if not alike:
                hamt_build(&self.index.id_maps, &roots.ids, log, cells, count, self.slots)
                return 0
            # Too many hashes are the same to tell at once that no ids are.
            for i in range(count):
                hamt_put(&self.index.id_maps, &roots.ids, log, &keys[i], self.slots[i], &before)
        finally:
            free(keys)
            free(cells)
        return 0

    cdef int sort_out(self, Roots *roots, EditLog *log) except -1:
        """Write the rows and runs, and note where each job goes."""
        cdef Place place
        cdef const Record *job
        cdef Kind kind
        cdef Py_ssize_t i
        cdef uint32_t slot
        for i in range(self.batch.count):
            job = self.batch.records[i]
            slot = self.slots[i]
            record_put(&self.index.row_pages, &roots.rows, log, slot, job)
            place_of(self.index, job, &place)
            if place.marks & IN_UNVALIDATED:
                self.note(&self.unvalidated, submit_item(&place, slot))
            if place.marks & IN_LEASED:
                self.note(&self.leased, submit_item(&place, slot))
            if place.marks & IN_BACKING_OFF:
                self.note(&self.backing_off, backing_off_item(&place, slot))
            if place.marks & IN_GANGS:
                self.note(&self.gangs, gang_item(&place, slot))
            if place.marks & IN_LANES:
                kind = <Kind> job.kind
                pools = kind.pools if len(kind.pools) < 2 else dict.fromkeys(kind.pools)
                for pool in pools:
                    self.note_queued(kind.queue, pool, lane_item(&place, slot))
                if not kind.pools:
                    self.note_queued(kind.queue, None, lane_item(&place, slot))
            if job.cold != NULL:
                move_runs(self.index, roots, log, NULL, job, slot)
        return 0

    cdef int note(self, Items *items, Item item) except -1:
        if items.items == NULL:
            items.items = <Item *> malloc(self.batch.count * sizeof(Item))
            if items.items == NULL:
                raise MemoryError
        items.items[items.count] = item
        items.count += 1
        return 0

    cdef int note_queued(self, str queue, object pool, Item item) except -1:
        cdef uint32_t lot = self.lot(queue, pool)
        cdef size_t room
        cdef void *grown
        if self.queued.count == self.queued_room:
            room = max(<size_t> self.batch.count, 2 * self.queued_room)
            grown = realloc(self.queued.items, room * sizeof(Item))
            if grown == NULL:
                raise MemoryError
            self.queued.items = <Item *> grown
            grown = realloc(self.lot_of, room * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError
            self.lot_of = <uint32_t *> grown
            self.queued_room = room
        self.queued.items[self.queued.count] = item
        self.lot_of[self.queued.count] = lot
        self.queued.count += 1
        self.lots[lot].count += 1
        return 0

    cdef uint32_t lot(self, str queue, object pool) except? 0xFFFFFFFF:
        """The number of the lot of *queue* and *pool*."""
        cdef dict pools = <dict> self.numbers.get(queue)
        cdef size_t number
        cdef void *grown
        if pools is None:
            pools = self.numbers.setdefault(queue, {})
        found = pools.get(pool)
        if found is not None:
            return <uint32_t> found
        number = len(self.lanes)
        if number == self.lot_room:
            grown = realloc(self.lots, (2 * number + 16) * sizeof(Lot))
            if grown == NULL:
                raise MemoryError
            self.lots = <Lot *> grown
            self.lot_room = 2 * number + 16
        self.lots[number].count = 0
        self.lanes.append((queue, pool))
        pools[pool] = number
        return <uint32_t> number

    cdef int fill(self, Trees *trees, Tree *tree, EditLog *log, Item *items, size_t count
                  ) except -1:
        """Put *items*, which are sorted for it, into a tree that has none."""
        global sorting
        cdef size_t i
        if not items_ascend(trees, items, count):
            sorting = &trees.form
            qsort(items, count, sizeof(Item), by_item)
        if tree.root == NULL:
            return tree_build(trees, tree, log, items, count)
        for i in range(count):
            tree_add(trees, tree, log, items + i)
        return 0

    cdef int fill_lanes(self, Roots *roots, EditLog *log) except -1:
        """Bring the queued jobs of a lane together, then build it."""
        cdef Item *sorted_
        cdef Lane *lane
        cdef Lot *lot
        cdef size_t i, first = 0, count = len(self.lanes)
        if self.queued.count == 0:
            return 0
        sorted_ = <Item *> malloc(self.queued.count * sizeof(Item))
        if sorted_ == NULL:
            raise MemoryError
        try:
            for i in range(count):
                self.lots[i].next_ = first
                first += self.lots[i].count
            for i in range(self.queued.count):
                lot = &self.lots[self.lot_of[i]]
                sorted_[lot.next_] = self.queued.items[i]
                lot.next_ += 1
            first = 0
            for i in range(count):
                queue, pool = self.lanes[i]
                lane = own_lane(self.index, roots, log, <str> queue, pool, True)
                self.fill(&self.index.trees, &lane.tree, log, sorted_ + first, self.lots[i].count)
                first += self.lots[i].count
        finally:
            free(sorted_)
        return 0


cdef int load(JobIndex index, Roots *roots, EditLog *log, Batch batch) except -1:
    cdef Load load = Load.__new__(Load)
    assert roots.ids.count == 0, "the store has jobs already"
    load.index = index
    load.batch = batch
    load.lanes = []
    load.numbers = {}
    load.take_ids(roots, log)
    load.sort_out(roots, log)
    load.fill(&index.moments, &roots.unvalidated, log, load.unvalidated.items,
              load.unvalidated.count)
    load.fill(&index.moments, &roots.leased, log, load.leased.items, load.leased.count)
    load.fill(&index.trees, &roots.backing_off, log, load.backing_off.items,
              load.backing_off.count)
    load.fill(&index.trees, &roots.gangs, log, load.gangs.items, load.gangs.count)
    load.fill_lanes(roots, log)
    return 0
