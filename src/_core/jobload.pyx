# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A store that is filled at once: every index is built of sorted items, each node written once.

Gives the same indices as `jobindex.move` job by job (INV-D1 to INV-D9), whose helpers it uses; only
runs go in one by one.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, qsort, realloc
from libc.string cimport memset

from pyresched._core.batch cimport Batch
from pyresched._core.bits cimport prefetch
from pyresched._core.hamt cimport hamt_put
from pyresched._core.hamtbuild cimport Cell, hamt_build, sorted_cells
from pyresched._core.ids cimport Key, take_slot
from pyresched._core.jobindex cimport (
    IN_BACKING_OFF, IN_GANGS, IN_LANES, IN_LEASED, IN_UNVALIDATED, JobIndex, Lane, Place, Roots,
    backing_off_item, gang_item, lane_item, move_runs, own_lane, place_by, rank_of, submit_item,
)
from pyresched._core.ordered cimport Tree, Trees, items_ascend, tree_add, tree_build
from pyresched._core.records cimport Kind, Record, records_fill
from pyresched._core.treenode cimport Form, Item, order
from pyresched._core.versions cimport EditLog

cdef enum:
    FEW = 32          # so many items are sorted by comparing them
    AHEAD = 16        # items that are fetched ahead
    WAYS = 256        # of a pass over one byte of a word

# Whose order `by_item` is; set while the GIL is held.
cdef const Form *sorting = NULL


cdef int by_item(const void *a, const void *b) noexcept nogil:
    return order(sorting, <const Item *> a, <const Item *> b)


cdef void compare_sort(const Form *form, Item *items, size_t count) noexcept:
    global sorting
    sorting = form
    qsort(items, count, sizeof(Item), by_item)


cdef inline uint64_t word(const Item *item, int which) noexcept nogil:
    """A key of an item, so that unsigned words are in its order."""
    return <uint64_t> (item.k0 if which == 0 else item.k1) ^ <uint64_t> 1 << 63


cdef Item *pass_by(Item *items, Item *spare, size_t count, int which, int shift) noexcept nogil:
    """*items* in the order of one byte of a word, otherwise as before, in *spare*."""
    cdef size_t starts[WAYS]
    cdef size_t i, here, total = 0
    cdef int digit
    memset(starts, 0, sizeof(starts))
    for i in range(count):
        starts[word(items + i, which) >> shift & (WAYS - 1)] += 1
    for digit in range(WAYS):
        here = starts[digit]
        starts[digit] = total
        total += here
    for i in range(count):
        digit = <int> (word(items + i, which) >> shift & (WAYS - 1))
        spare[starts[digit]] = items[i]
        starts[digit] += 1
    return spare


cdef Item *sorted_items(const Form *form, Item *items, size_t count, Item *spare) noexcept:
    """*items* of two words in ascending order, there or in *spare*, whose content is lost: byte by
    byte, those bytes in which any two differ."""
    cdef uint64_t varies[2]
    cdef bint rest_ascends = True
    cdef Item *other
    cdef size_t i, first
    cdef int which, shift
    varies[0] = varies[1] = 0
    for i in range(1, count):
        varies[0] |= <uint64_t> (items[i].k0 ^ items[0].k0)
        varies[1] |= <uint64_t> (items[i].k1 ^ items[0].k1)
        if rest_ascends and (items[i].k1 < items[i - 1].k1 or items[i].k1 == items[i - 1].k1
                             and form.compare(form.context, items[i - 1].value,
                                              items[i].value) > 0):
            rest_ascends = False
    for which in range(0 if rest_ascends else 1, -1, -1):
        for shift in range(0, 64, 8):
            if varies[which] >> shift & (WAYS - 1):
                other = items
                items = pass_by(items, spare, count, which, shift)
                spare = other
    if rest_ascends:
        return items
    first = 0
    for i in range(1, count + 1):
        if i == count or items[i].k0 != items[first].k0 or items[i].k1 != items[first].k1:
            if i - first > 1:
                compare_sort(form, items + first, i - first)
            first = i
    return items


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
        free(self.kinds)
        free(self.ways)
        free(self.spare)
        free(self.dealt)
        free(self.lot_items)

    cdef int begin(self, JobIndex index, size_t expected) except -1:
        """For so many jobs, more or less."""
        self.index = index
        self.expected = max(<size_t> 1, expected)
        self.lanes = []
        self.numbers = {}
        return self.more_kinds()

    cdef int take_ids(self, Roots *roots, EditLog *log, const Cell *cells) except -1:
        """A slot for each job, and the map that leads there."""
        cdef Py_ssize_t i, count = self.batch.count
        cdef Key *keys = self.batch.keys
        cdef Cell *own = NULL
        cdef bint alike = False
        cdef uint32_t before = 0
        self.slots = <uint32_t *> malloc(count * sizeof(uint32_t))
        if self.slots == NULL:
            raise MemoryError
        for i in range(count):
            self.slots[i] = take_slot(&self.index.ids.column, log, &keys[i], 0)
        if cells != NULL:
            hamt_build(&self.index.id_maps, &roots.ids, log, cells, count, self.slots)
            return 0
        own = sorted_cells(keys, count, &alike)
        try:
            if not alike:
                hamt_build(&self.index.id_maps, &roots.ids, log, own, count, self.slots)
                return 0
            # Too many hashes are the same to tell at once that no ids are.
            for i in range(count):
                hamt_put(&self.index.id_maps, &roots.ids, log, &keys[i], self.slots[i], &before)
        finally:
            free(own)
        return 0

    cdef int sort_out(self, Roots *roots, EditLog *log) except -1:
        """Write the rows and runs, and note where each job goes."""
        cdef Place place
        cdef const Record *job
        cdef const Shared *shared
        cdef Py_ssize_t i
        cdef uint32_t slot
        records_fill(&self.index.row_pages, &roots.rows, log, self.slots, self.batch.records,
                     self.batch.count)
        for i in range(self.batch.count):
            job = self.batch.records[i]
            slot = self.slots[i]
            shared = self.shared_by(<Kind> job.kind)
            place_by(self.index, job, shared.rank, &place)
            if place.marks & IN_UNVALIDATED:
                self.note(&self.unvalidated, submit_item(&place, slot))
            if place.marks & IN_LEASED:
                self.note(&self.leased, submit_item(&place, slot))
            if place.marks & IN_BACKING_OFF:
                self.note(&self.backing_off, backing_off_item(&place, slot))
            if place.marks & IN_GANGS:
                self.note(&self.gangs, gang_item(&place, slot))
            if place.marks & IN_LANES:
                self.note_queued(shared, lane_item(&place, slot))
            if job.cold != NULL:
                move_runs(self.index, roots, log, NULL, job, slot)
        return 0

    cdef int note(self, Items *items, Item item) except -1:
        if items.items == NULL:
            items.items = <Item *> malloc(self.expected * sizeof(Item))
            if items.items == NULL:
                raise MemoryError
        items.items[items.count] = item
        items.count += 1
        return 0

    cdef int note_queued(self, const Shared *shared, Item item) except -1:
        cdef size_t room
        cdef void *grown
        cdef uint32_t i, lot
        if self.queued.count + shared.count > self.queued_room:
            room = max(self.expected, 2 * self.queued_room) + shared.count
            grown = realloc(self.queued.items, room * sizeof(Item))
            if grown == NULL:
                raise MemoryError
            self.queued.items = <Item *> grown
            grown = realloc(self.lot_of, room * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError
            self.lot_of = <uint32_t *> grown
            self.queued_room = room
        for i in range(shared.count):
            lot = self.ways[shared.first + i]
            self.queued.items[self.queued.count] = item
            self.lot_of[self.queued.count] = lot
            self.queued.count += 1
            self.lots[lot].count += 1
        return 0

    cdef const Shared *shared_by(self, Kind kind) except NULL:
        """What the jobs of *kind* share. Good until the next one is asked for."""
        cdef Shared *found = self.place(<PyObject *> kind)
        if found.kind != NULL:
            return found
        if 2 * self.kind_count >= self.kind_mask:
            self.more_kinds()
            found = self.place(<PyObject *> kind)
        found.rank = rank_of(self.index, kind)
        found.first = <uint32_t> self.way_count
        for pool in kind.pools if len(kind.pools) < 2 else dict.fromkeys(kind.pools):
            self.add_way(kind.queue, pool)
        if not kind.pools:
            self.add_way(kind.queue, None)
        found.count = <uint32_t> self.way_count - found.first
        found.kind = <PyObject *> kind
        self.kind_count += 1
        return found

    cdef Shared *place(self, PyObject *kind) noexcept:
        """Where what is shared by *kind* is, or belongs."""
        cdef uint64_t mixed = <uint64_t> <size_t> kind * <uint64_t> 0x9E3779B97F4A7C15
        cdef size_t at = <size_t> (mixed >> 32) & self.kind_mask
        while self.kinds[at].kind != NULL and self.kinds[at].kind != kind:
            at = (at + 1) & self.kind_mask
        return self.kinds + at

    cdef int more_kinds(self) except -1:
        """A table of twice as many places, 64 at first."""
        cdef Shared *old = self.kinds
        cdef size_t i, places = max(<size_t> 64, 2 * (self.kind_mask + 1))
        cdef Shared *table = <Shared *> calloc(places, sizeof(Shared))
        if table == NULL:
            raise MemoryError
        self.kinds = table
        if old != NULL:
            i = self.kind_mask + 1
            self.kind_mask = places - 1
            while i:
                i -= 1
                if old[i].kind != NULL:
                    self.place(old[i].kind)[0] = old[i]
            free(old)
        self.kind_mask = places - 1
        return 0

    cdef int add_way(self, str queue, object pool) except -1:
        cdef uint32_t lot = self.lot(queue, pool)
        cdef void *grown
        if self.way_count == self.way_room:
            grown = realloc(self.ways, (2 * self.way_room + 64) * sizeof(uint32_t))
            if grown == NULL:
                raise MemoryError
            self.ways = <uint32_t *> grown
            self.way_room = 2 * self.way_room + 64
        self.ways[self.way_count] = lot
        self.way_count += 1
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

    cdef Item *ascending(self, Trees *trees, Item *items, size_t count) except NULL:
        """*items* in order, there or in room of its own: good until more are put in order."""
        if items_ascend(trees, items, count):
            return items
        if count <= FEW:
            compare_sort(&trees.form, items, count)
            return items
        if count > self.spare_room:
            free(self.spare)
            self.spare_room = 0
            self.spare = <Item *> malloc(count * sizeof(Item))
            if self.spare == NULL:
                raise MemoryError
            self.spare_room = count
        return sorted_items(&trees.form, items, count, self.spare)

    cdef int fill(self, Trees *trees, Tree *tree, EditLog *log, Item *items, size_t count
                  ) except -1:
        """Put *items*, which are sorted for it, into a tree that has none."""
        cdef size_t i
        if count == 0:
            return 0
        items = self.ascending(trees, items, count)
        if tree.root == NULL:
            return tree_build(trees, tree, log, items, count)
        for i in range(count):
            tree_add(trees, tree, log, items + i)
        return 0

    cdef int deal(self) except -1:
        """Bring the numbers of queued items together, lane by lane as they came."""
        cdef Lot *lot
        cdef size_t i, first = 0, most = 1
        for i in range(<size_t> len(self.lanes)):
            self.lots[i].next_ = first
            first += self.lots[i].count
            most = max(most, self.lots[i].count)
        self.dealt = <uint32_t *> malloc((first + 1) * sizeof(uint32_t))
        self.lot_items = <Item *> malloc(most * sizeof(Item))
        if self.dealt == NULL or self.lot_items == NULL:
            raise MemoryError
        for i in range(self.queued.count):
            lot = &self.lots[self.lot_of[i]]
            self.dealt[lot.next_] = <uint32_t> i
            lot.next_ += 1
        return 0

    cdef Item *items_of(self, const Lot *lot) noexcept:
        """The items of a lot as they came: good until those of another are asked for."""
        cdef const uint32_t *numbers = self.dealt + (lot.next_ - lot.count)
        cdef size_t i
        for i in range(lot.count):
            if i + AHEAD < lot.count:
                prefetch(self.queued.items + numbers[i + AHEAD])
            self.lot_items[i] = self.queued.items[numbers[i]]
        return self.lot_items

    cdef int fill_lanes(self, Roots *roots, EditLog *log) except -1:
        """Build each lane of its queued jobs."""
        cdef Lane *lane
        cdef Lot *lot
        cdef size_t i
        self.deal()
        for i in range(<size_t> len(self.lanes)):
            lot = self.lots + i
            if lot.count == 0:
                continue
            queue, pool = self.lanes[i]
            lane = own_lane(self.index, roots, log, <str> queue, pool, True)
            self.fill(&self.index.trees, &lane.tree, log, self.items_of(lot), lot.count)
        return 0


cdef int load(JobIndex index, Roots *roots, EditLog *log, Batch batch, const Cell *cells) except -1:
    cdef Load load = Load.__new__(Load)
    assert roots.ids.count == 0, "the store has jobs already"
    load.begin(index, batch.count)
    load.batch = batch
    load.take_ids(roots, log, cells)
    load.sort_out(roots, log)
    load.fill(&index.moments, &roots.unvalidated, log, load.unvalidated.items,
              load.unvalidated.count)
    load.fill(&index.moments, &roots.leased, log, load.leased.items, load.leased.count)
    load.fill(&index.trees, &roots.backing_off, log, load.backing_off.items,
              load.backing_off.count)
    load.fill(&index.trees, &roots.gangs, log, load.gangs.items, load.gangs.count)
    load.fill_lanes(roots, log)
    return 0
