# cython: boundscheck=False, wraparound=False, cdivision=True
"""Cases for native functions that Python cannot reach; `tests/native` runs each `test_*`.

In builds with PYRESCHED_SELFTEST only, above every other module, named by no door. A case
takes nothing, returns nothing and fails by `assert`, so the build must keep asserts.
"""

import random
import sys

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from pyresched._core.bits cimport Sip, sip_end, sip_start, sip_word, word_at
from pyresched._core.hamt cimport (
    Hamt, Maps, hamt_find, hamt_find_many, hamt_free, hamt_put,
    hamt_remove, maps_init,
)
from pyresched._core.hamtcheck cimport hamt_breaches, hamt_measure
from pyresched._core.ids cimport (
    NOWHERE, IdColumn, Key, compare_slots, key_of_slot, read_key, retire_slot, slot_id,
    sort_slots, take_slot,
)
from pyresched._core.ordered cimport (
    Cursor, Item, Tree, Trees, cursor_first, cursor_next, tree_add, tree_free, tree_remove,
    trees_init,
)
from pyresched._core.pages cimport (
    Paged, Pages, page_read, page_write,
    pages_diff, pages_free, pages_init, pages_measure,
)
from pyresched._core.records cimport (
    Record, RecordRow, record_at, record_drop, record_new, record_put, records_free,
)
from pyresched._core.resources cimport saturating_add, saturating_mul, saturating_sub
from pyresched._core.treecheck cimport tree_breaches, tree_measure, tree_spoil
from pyresched._core.versions cimport (
    EDIT_CLOSED, Edit, History, Meter, Pin, add_fresh, add_retired, fail_allocations, make_room,
)

# Both ends, zero, one, and the square roots of the ends, where a product is about to leave.
EDGES = [
    INT64_MIN, INT64_MIN + 1, -3037000500, -2, -1, 0, 1, 2, 3037000499, 3037000500,
    INT64_MAX - 1, INT64_MAX,
]


def let_allocations_fail(int64_t after):
    """From now on the allocations of the native structures fail, after so many; -1: none does."""
    fail_allocations(after)


cdef object clamped(object exact):
    """*exact*, an int of any size, at the nearer end of int64 if it lies outside."""
    return max(INT64_MIN, min(INT64_MAX, exact))


def asserts_are_on():
    """Whether a false assert raises in this build: if not, no case here can fail."""
    try:
        assert False, "on purpose"
    except AssertionError:
        return True
    return False


def test_saturating_arithmetic_is_exact_or_at_the_nearer_end():
    """Sum, difference and product equal unbounded arithmetic, cut to int64."""
    cdef int64_t a, b
    for a in EDGES:
        for b in EDGES:
            exact_a, exact_b = int(a), int(b)
            assert saturating_add(a, b) == clamped(exact_a + exact_b), (a, b)
            assert saturating_sub(a, b) == clamped(exact_a - exact_b), (a, b)
            assert saturating_mul(a, b) == clamped(exact_a * exact_b), (a, b)


# --- bits ------------------------------------------------------------------------------------

cdef extern from "bits.h" nogil:
    uint32_t bits_matches_portable(const uint32_t *words, uint32_t count, uint32_t wanted)
    uint32_t bits_matches_sse2(const uint32_t *words, uint32_t count, uint32_t wanted)
    double bits_dominant_portable(const int64_t *amounts, const double *totals,
                                  const double *factors, Py_ssize_t count)
    double bits_dominant_sse2(const int64_t *amounts, const double *totals,
                              const double *factors, Py_ssize_t count)
    int bits_ulid_portable(const uint8_t *text, uint64_t *high, uint64_t *low)
    int bits_ulid_sse2(const uint8_t *text, uint64_t *high, uint64_t *low)
    int bits_ulid_fastest "bits_ulid"(const uint8_t *text, uint64_t *high, uint64_t *low)


def test_both_searches_of_a_leaf_find_the_same():
    """Every count from none to a full leaf, the wanted word anywhere or nowhere."""
    cdef uint32_t words[32]
    cdef uint32_t count, i, wanted
    draw = random.Random(1)
    for count in range(33):
        for _ in range(50):
            for i in range(32):
                words[i] = draw.choice((0, 1, 2, 0xFFFFFFFF, 0x80000000))
            wanted = draw.choice((0, 1, 0xFFFFFFFF, 7))
            found = bits_matches_portable(words, count, wanted)
            assert found == sum([2**int(at) for at in range(count) if words[at] == wanted])
            assert bits_matches_sse2(words, count, wanted) == found


def test_both_ways_to_the_dominant_share_agree():
    """Bit for bit, from no resource to nine: large and small amounts, negative ones, equal ones."""
    cdef int64_t amounts[9]
    cdef double totals[9]
    cdef double factors[9]
    cdef Py_ssize_t count, i
    draw = random.Random(3)
    for count in range(10):
        for _ in range(200):
            for i in range(9):
                amounts[i] = draw.choice((0, 1, -1, 3, 7, 2**63 - 1, -2**63, draw.getrandbits(40)))
                totals[i] = draw.choice((1.0, 3.0, 7.0, 2.0**63, float(draw.getrandbits(41) + 1)))
                factors[i] = draw.choice((0.0, 1.0, 0.3, 1e6))
            expected = max([0.0] + [float(amounts[i]) / totals[i] * factors[i]
                                    for i in range(count)])
            assert bits_dominant_portable(amounts, totals, factors, count) == expected
            assert bits_dominant_sse2(amounts, totals, factors, count) == expected


def test_all_readers_of_ulids_read_the_same():
    """Texts that are ULIDs, that nearly are, and any bytes."""
    cdef uint64_t high, low, other_high, other_low
    alphabet = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    draw = random.Random(2)
    texts = [b"7" + b"Z" * 25, b"8" + b"0" * 25, b"0" * 26, b"\xff" * 26, b"\x00" * 26]
    for _ in range(500):
        good = bytes(draw.choices(alphabet[:8]) + draw.choices(alphabet, k=25))
        texts.append(good)
        at = draw.randrange(26)
        texts.append(good[:at] + bytes([draw.randrange(256)]) + good[at + 1:])
    for byte in range(256):
        texts += [b"0" * 9 + bytes([byte]) + b"0" * 16, b"0" * 20 + bytes([byte]) + b"0" * 5]
    for text in texts:
        expected = 0
        for byte in text:
            expected = expected * 32 + alphabet.find(byte)
        good = all([byte in alphabet for byte in text]) and text[0] in b"01234567"
        high = low = other_high = other_low = 0
        assert bits_ulid_portable(text, &high, &low) == good, text
        assert bits_ulid_sse2(text, &other_high, &other_low) == good, text
        if good:
            assert int(high) << 64 | int(low) == expected, text
            assert (high, low) == (other_high, other_low), text
            assert bits_ulid_fastest(text, &other_high, &other_low)
            assert (high, low) == (other_high, other_low), text


cdef object rotated(object word, int by):
    return (word << by | word >> (64 - by)) & (2**64 - 1)


def sip_hash(seed, words, rounds, last_rounds):
    """SipHash of whole words as its authors write it, the reference for ours."""
    v = [seed[0] ^ 0x736F6D6570736575, seed[1] ^ 0x646F72616E646F6D,
         seed[0] ^ 0x6C7967656E657261, seed[1] ^ 0x7465646279746573]

    def turn(times):
        for _ in range(times):
            v[0] = (v[0] + v[1]) % 2**64
            v[2] = (v[2] + v[3]) % 2**64
            v[1] = rotated(v[1], 13) ^ v[0]
            v[3] = rotated(v[3], 16) ^ v[2]
            v[0] = rotated(v[0], 32)
            v[2] = (v[2] + v[1]) % 2**64
            v[0] = (v[0] + v[3]) % 2**64
            v[1] = rotated(v[1], 17) ^ v[2]
            v[3] = rotated(v[3], 21) ^ v[0]
            v[2] = rotated(v[2], 32)

    for word in words:
        v[3] ^= word
        turn(rounds)
        v[0] ^= word
    v[2] ^= 0xFF
    turn(last_rounds)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def test_the_hash_is_siphash():
    """The reference gives the published answer for 2-4 rounds, and ours is that with 1-3."""
    cdef Sip state
    seed = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
    published = (0x0706050403020100, 15 << 56 | 0x0E0D0C0B0A0908)
    assert sip_hash(seed, published, 2, 4) == 0xA129CA6149BE45E5
    for words in ((), (1,), (2**64 - 1, 7), published):
        sip_start(&state, seed[0], seed[1])
        for word in words:
            sip_word(&state, word)
        assert sip_end(&state) == sip_hash(seed, words, 1, 3)


def test_words_order_as_text_does():
    """The first byte is the most significant."""
    assert word_at(b"\x01\x02\x03\x04\x05\x06\x07\x08") == 0x0102030405060708
    assert word_at(b"\xff" + b"\0" * 7) > word_at(b"\x7f" + b"\xff" * 7)


# --- versions --------------------------------------------------------------------------------

cdef enum:
    ITEMS = 4096


cdef void count_reclaim(void *owner, uint64_t what) noexcept nogil:
    (<int *> owner)[what] += 1


cdef class Ledger:
    """A history whose items only count how often each is reclaimed, and the truth about them."""

    cdef History history
    cdef int *reclaimed
    cdef uint32_t items
    cdef dict spans      # of the items that were committed: birth, end (None: current)
    cdef set aborted
    cdef list pins       # addresses and versions

    def __cinit__(self):
        self.history = History()
        self.reclaimed = <int *> calloc(ITEMS, sizeof(int))
        self.spans = {}
        self.aborted = set()
        self.pins = []

    def __dealloc__(self):
        free(self.reclaimed)

    cdef list make(self, Edit edit, int count):
        made = []
        make_room(&edit.log, count)
        for _ in range(count):
            add_fresh(&edit.log, count_reclaim, self.reclaimed, self.items)
            made.append(self.items)
            self.items += 1
        return made

    cdef int retire(self, Edit edit, list items, dict births) except -1:
        make_room(&edit.log, len(items))
        for item in items:
            add_retired(&edit.log, count_reclaim, self.reclaimed, item, births[item])
        return 0

    cdef int pin(self) except -1:
        self.pins.append((<size_t> self.history.pin(), self.history.version))
        return 0

    cdef int unpin(self, int which) except -1:
        address, _ = self.pins.pop(which)
        self.history.unpin(<Pin *> <size_t> address)
        return 0

    cdef int check(self) except -1:
        """INV-N4: reclaimed once, and only when no pin sees it; the current version pins too."""
        seen = {version for _, version in self.pins}
        for item in range(self.items):
            times = self.reclaimed[item]
            if item in self.aborted:
                assert times == 1, (item, times)
            elif item in self.spans:
                birth, end = self.spans[item]
                needed = end is None or any([birth <= version < end for version in seen])
                assert times == (not needed), (item, birth, end, times, seen)
        waiting = sum([waiting for _, waiting in self.history.pinned])
        kept = sum([
            end is not None and self.reclaimed[item] == 0
            for item, (_, end) in self.spans.items()
        ])
        assert waiting == kept
        assert [version for version, _ in self.history.pinned] == sorted(seen)
        return 0


def test_dead_lists_give_back_once_and_only_what_no_pin_sees():
    """Any order of edits, aborts, pins and unpins, against the plain statement of the rule."""
    cdef Ledger ledger
    cdef Edit edit
    for seed in range(40):
        draw = random.Random(seed)
        ledger = Ledger()
        edit = Edit(ledger.history, ledger)
        for _ in range(60):
            what = draw.random()
            if what < 0.25:
                ledger.pin()
            elif what < 0.5 and ledger.pins:
                ledger.unpin(draw.randrange(len(ledger.pins)))
            else:
                ledger.history.begin(edit, None)
                version = ledger.history.version + 1
                made = ledger.make(edit, draw.randrange(6))
                alive = [item for item, (_, end) in ledger.spans.items() if end is None]
                gone = draw.sample(alive, min(len(alive), draw.randrange(5)))
                again = draw.sample(made, draw.randrange(len(made) + 1))
                births = {item: ledger.spans[item][0] for item in gone}
                births.update(dict.fromkeys(again, version))
                ledger.retire(edit, gone + again, births)
                if draw.random() < 0.3:
                    ledger.history.abort(edit)
                    ledger.aborted.update(made)
                else:
                    ledger.history.prepare(edit)
                    ledger.history.commit(edit)
                    ledger.spans.update({item: (version, None) for item in made})
                    ledger.spans.update({item: (births[item], version) for item in births})
            ledger.check()
        while ledger.pins:
            ledger.unpin(0)
            ledger.check()


def test_a_dry_run_reclaims_what_it_made_and_nothing_else():
    """It may supersede what it did not make; that lives on. It needs no turn as the writer."""
    cdef Ledger ledger = Ledger()
    cdef Edit writer = Edit(ledger.history, ledger), dry = Edit(ledger.history, ledger)
    ledger.history.begin(writer, None)
    base = ledger.make(writer, 2)
    ledger.history.prepare(writer)
    ledger.history.commit(writer)
    ledger.spans.update(dict.fromkeys(base, (1, None)))
    ledger.pin()
    ledger.history.begin(writer, None)
    ledger.history.begin_private(dry)
    made = ledger.make(dry, 3)
    births = {base[0]: 1, made[0]: dry.log.stamp}
    ledger.retire(dry, [base[0], made[0]], births)
    ledger.history.abort(dry)
    ledger.aborted.update(made)
    ledger.check()
    ledger.history.abort(writer)
    ledger.check()
    ledger.unpin(0)
    assert dry.state == EDIT_CLOSED


def test_an_edit_that_is_dropped_open_aborts():
    """And lets the next writer in."""
    cdef Ledger ledger = Ledger()
    cdef Edit edit = Edit(ledger.history, ledger)
    ledger.history.begin(edit, 0)
    ledger.aborted.update(ledger.make(edit, 3))
    edit = None
    ledger.check()
    edit = Edit(ledger.history, ledger)
    ledger.history.begin(edit, 0)
    ledger.history.abort(edit)


def test_a_pin_that_cannot_be_buried_loses_nothing():
    """Without memory to move its list it stays; it goes with a later one, or with the history."""
    cdef Ledger ledger
    cdef Edit edit
    for buried_later in (True, False):
        ledger = Ledger()
        edit = Edit(ledger.history, ledger)
        ledger.history.begin(edit, None)
        made = ledger.make(edit, 40)
        ledger.history.prepare(edit)
        ledger.history.commit(edit)
        ledger.pin()
        ledger.history.begin(edit, None)
        ledger.history.prepare(edit)
        ledger.history.commit(edit)
        ledger.pin()
        ledger.history.begin(edit, None)
        ledger.retire(edit, made, dict.fromkeys(made, 1))
        ledger.history.prepare(edit)
        ledger.history.commit(edit)
        fail_allocations(0)
        ledger.unpin(1)
        fail_allocations(-1)
        assert ledger.history.pinned == [(1, 0), (2, 40)]
        assert ledger.history.ghosts == 1
        if buried_later:
            ledger.unpin(0)
            ledger.pin()
            ledger.unpin(0)
            assert ledger.history.pinned == []
        else:
            # The other pin is left out of the count: its holder forgot it.
            edit = None
            ledger.history = History()
        assert [ledger.reclaimed[item] for item in made] == [1] * 40


# --- all structures in one edit --------------------------------------------------------------

cdef class Store:
    """One of each structure under one history, as a store has them, and a dict for each."""

    cdef History history
    cdef Edit edit
    cdef IdColumn ids
    cdef Maps maps
    cdef Trees trees
    cdef Pages pages
    cdef Pages object_pages
    cdef Hamt map
    cdef Tree tree
    cdef Paged rows
    cdef Paged objects
    cdef dict model       # id -> (slot, rank, number, object)

    def __cinit__(self, int bits=32, int leaf=32):
        self.history = History()
        self.edit = Edit(self.history, None)
        self.ids = IdColumn(seed=(1, 2), bits=bits)
        maps_init(&self.maps, &self.ids.column)
        self.maps.leaf_cells = leaf
        trees_init(&self.trees, compare_slots, &self.ids.column, 1, 4)
        self.trees.form.leaf_items = max(4, leaf)
        self.trees.form.inner_ways = max(4, leaf)
        pages_init(&self.pages, 16)
        pages_init(&self.object_pages, sizeof(RecordRow))
        self.model = {}

    def __dealloc__(self):
        self.history.abort(self.edit)
        hamt_free(&self.maps, &self.map)
        tree_free(&self.trees, &self.tree)
        pages_free(&self.pages, &self.rows)
        records_free(&self.object_pages, &self.objects)


cdef struct Roots:
    Hamt map
    Tree tree
    Paged rows
    Paged objects


cdef Roots roots_of(Store store):
    cdef Roots roots
    roots.map = store.map
    roots.tree = store.tree
    roots.rows = store.rows
    roots.objects = store.objects
    return roots


cdef Item item_of(int64_t rank, uint32_t slot):
    cdef Item item
    item.k0 = rank
    item.k1 = item.k2 = 0
    item.value = slot
    return item


cdef int put_object(Store store, Roots *roots, Edit edit, uint32_t slot, object held) except -1:
    """A row that holds a record of *held* alone."""
    cdef Record *record = record_new()
    Py_INCREF(held)
    record.payload = <PyObject *> held
    try:
        record_put(&store.object_pages, &roots.objects, &edit.log, slot, record)
    finally:
        record_drop(record)
    return 0


cdef int put(Store store, Roots *roots, Edit edit, dict model, str id_, int rank, int number,
             object held) except -1:
    """One row under one id in all structures, new or in the place of an old one."""
    cdef Key key
    cdef uint32_t slot, before = NOWHERE
    cdef Item item
    read_key(&store.ids.column, id_, &key)
    slot = hamt_find(&store.maps, &roots.map, &key)
    if slot == NOWHERE:
        slot = take_slot(&store.ids.column, &edit.log, &key, 0)
        hamt_put(&store.maps, &roots.map, &edit.log, &key, slot, &before)
        assert before == NOWHERE
    else:
        item = item_of(model[id_][1], slot)
        assert tree_remove(&store.trees, &roots.tree, &edit.log, &item, NULL) == 1
    item = item_of(rank, slot)
    assert tree_add(&store.trees, &roots.tree, &edit.log, &item) == 1
    assert tree_add(&store.trees, &roots.tree, &edit.log, &item) == 0
    (<int64_t *> page_write(&store.pages, &roots.rows, &edit.log, slot))[1] = number
    put_object(store, roots, edit, slot, held)
    model[id_] = (slot, rank, number, held)
    return 0


cdef int take_away(Store store, Roots *roots, Edit edit, dict model, str id_) except -1:
    cdef Key key
    cdef uint32_t before = NOWHERE
    cdef Item item
    read_key(&store.ids.column, id_, &key)
    hamt_remove(&store.maps, &roots.map, &edit.log, &key, &before)
    slot, rank, _, _ = model.pop(id_)
    assert before == slot
    item = item_of(rank, before)
    assert tree_remove(&store.trees, &roots.tree, &edit.log, &item, NULL) == 1
    assert tree_remove(&store.trees, &roots.tree, &edit.log, &item, NULL) == 0
    (<int64_t *> page_write(&store.pages, &roots.rows, &edit.log, before))[1] = 0
    record_put(&store.object_pages, &roots.objects, &edit.log, before, NULL)
    retire_slot(&store.ids.column, &edit.log, before)
    return 0


cdef int look(Store store, Roots *roots, dict model) except -1:
    """Every structure of a version says what the dict says."""
    cdef Key key
    cdef Cursor cursor
    cdef Item item
    cdef const int64_t *row
    cdef const Record *record
    assert hamt_breaches(&store.maps, &roots.map) == []
    assert tree_breaches(&store.trees, &roots.tree) == []
    assert roots.map.count == roots.tree.count == len(model)
    for id_, (slot, _, number, held) in model.items():
        read_key(&store.ids.column, id_, &key)
        assert hamt_find(&store.maps, &roots.map, &key) == slot
        assert slot_id(&store.ids.column, slot) == id_
        row = <const int64_t *> page_read(&store.pages, &roots.rows, slot)
        assert row[1] == number
        record = record_at(&store.object_pages, &roots.objects, slot)
        assert record.payload == <PyObject *> held
    walked = []
    cursor_first(&cursor, &store.trees, &roots.tree)
    while cursor_next(&cursor, &item):
        walked.append((item.k0, slot_id(&store.ids.column, <uint32_t> item.value).encode()))
    assert walked == sorted(
        [(rank, id_.encode()) for id_, (_, rank, _, _) in model.items()])
    return 0


cdef int publish(Store store, Roots *roots) except -1:
    store.history.prepare(store.edit)
    store.map = roots.map
    store.tree = roots.tree
    store.rows = roots.rows
    store.objects = roots.objects
    store.history.commit(store.edit)
    return 0


cdef int nothing_is_left_over(Store store) except -1:
    """What is allocated is what the current version needs."""
    cdef Meter meter
    for which in range(4):
        memset(&meter, 0, sizeof(Meter))
        if which == 0:
            hamt_measure(&store.map, &meter)
            allocated = (store.maps.meter.nodes, store.maps.meter.bytes)
        elif which == 1:
            tree_measure(&store.trees, &store.tree, &meter)
            allocated = (store.trees.meter.nodes, store.trees.meter.bytes)
        elif which == 2:
            pages_measure(&store.pages, &store.rows, &meter)
            allocated = (store.pages.meter.nodes, store.pages.meter.bytes)
        else:
            pages_measure(&store.object_pages, &store.objects, &meter)
            allocated = (store.object_pages.meter.nodes, store.object_pages.meter.bytes)
        assert allocated == (meter.nodes, meter.bytes), which
    assert store.ids.column.used == len(store.model)
    assert store.history.pinned == []
    return 0


IDS = [
    *(f"01J00000000000000000000{n:03}" for n in range(20)),
    *(f"job-{n}" for n in range(20)),
    *(f"a long name with its number at the end, {n}" for n in range(20)),
    *(f"00000000-0000-0000-0000-0000000000{n:02x}" for n in range(20)),
]


class Held:
    """Something to count references to."""


def test_structures_that_share_an_edit_change_and_abort_together():
    """Map, tree, rows and objects against a dict, with versions kept, dry runs and aborts."""
    cdef Store store
    cdef Roots roots
    cdef Roots[8] kept
    cdef Pin *pins[8]
    cdef Edit dry
    for seed, bits, leaf in ((0, 32, 32), (1, 3, 2), (2, 0, 4), (3, 32, 1), (4, 2, 8)):
        draw = random.Random(seed)
        store = Store(bits=bits, leaf=leaf)
        things = [Held() for _ in range(8)]
        before = [sys.getrefcount(thing) for thing in things]
        dry = Edit(store.history, store)
        models = [None] * 8
        for _ in range(60):
            for edit in (store.edit, dry):
                model = dict(store.model)
                roots = roots_of(store)
                if edit is dry:
                    store.history.begin_private(edit)
                else:
                    store.history.begin(edit, None)
                for _ in range(draw.randrange(12)):
                    id_ = draw.choice(IDS)
                    if id_ in model and draw.random() < 0.5:
                        take_away(store, &roots, edit, model, id_)
                    else:
                        put(store, &roots, edit, model, id_, draw.randrange(3),
                            draw.randrange(9), draw.choice(things))
                look(store, &roots, model)
                if edit is dry or draw.random() < 0.3:
                    store.history.abort(edit)
                else:
                    publish(store, &roots)
                    store.model = model
            roots = roots_of(store)
            look(store, &roots, store.model)
            at = draw.randrange(8)
            if models[at] is not None:
                look(store, &kept[at], models[at])
                models[at] = None
                store.history.unpin(pins[at])
            if draw.random() < 0.7:
                pins[at] = store.history.pin()
                kept[at] = roots
                models[at] = store.model
            if models == [None] * 8:
                nothing_is_left_over(store)
        for at in range(8):
            if models[at] is not None:
                look(store, &kept[at], models[at])
                store.history.unpin(pins[at])
        nothing_is_left_over(store)
        # An edit holds what it was made for.
        models = model = edit = dry = store = None
        assert [sys.getrefcount(thing) for thing in things] == before


def test_a_dry_run_beside_a_writer_sees_its_base_and_itself():
    """Both change the same rows; neither sees the other, and the dry run leaves no trace."""
    cdef Store store = Store()
    cdef Roots base, own, roots
    cdef Edit dry = Edit(store.history, store)
    cdef Pin *pin
    roots = roots_of(store)
    store.history.begin(store.edit, None)
    for n, id_ in enumerate(IDS):
        put(store, &roots, store.edit, store.model, id_, n % 3, n, None)
    publish(store, &roots)
    pin = store.history.pin()
    base = own = roots
    store.history.begin(store.edit, None)
    store.history.begin_private(dry)
    model, dry_model, base_model = dict(store.model), dict(store.model), dict(store.model)
    for n, id_ in enumerate(IDS):
        if n % 2:
            put(store, &own, dry, dry_model, id_, 1, -n, id_)
            take_away(store, &roots, store.edit, model, id_)
        else:
            take_away(store, &own, dry, dry_model, id_)
            put(store, &roots, store.edit, model, f"{id_}+", 2, n, id_)
    look(store, &own, dry_model)
    publish(store, &roots)
    store.model = model
    look(store, &own, dry_model)
    look(store, &base, base_model)
    # A second dry run, over the new version, while the first is open.
    other = Edit(store.history, None)
    store.history.begin_private(other)
    store.history.abort(other)
    store.history.abort(dry)
    look(store, &base, base_model)
    look(store, &roots, store.model)
    store.history.unpin(pin)
    nothing_is_left_over(store)


def test_a_failed_allocation_changes_nothing():
    """Whichever allocation of a change fails, each structure is valid and the edit can abort."""
    cdef Store store
    cdef Roots roots
    cdef int64_t failures
    for leaf, bits in ((2, 3), (4, 0), (32, 32)):
        store = Store(bits=bits, leaf=leaf)
        roots = roots_of(store)
        store.history.begin(store.edit, None)
        for n, id_ in enumerate(IDS):
            put(store, &roots, store.edit, store.model, id_, n % 3, n, None)
        publish(store, &roots)
        failed = 0
        for n, id_ in enumerate([*[f"new {n}" for n in range(40)], *IDS]):
            # Every point of failure, one after the other, each in an edit that aborts.
            failures = 0
            while True:
                roots = roots_of(store)
                model = dict(store.model)
                store.history.begin(store.edit, None)
                fail_allocations(failures)
                try:
                    if id_ in model:
                        take_away(store, &roots, store.edit, model, id_)
                    else:
                        put(store, &roots, store.edit, model, id_, n % 3, n, None)
                    done = True
                except MemoryError:
                    done = False
                    failed += 1
                fail_allocations(-1)
                assert hamt_breaches(&store.maps, &roots.map) == []
                assert tree_breaches(&store.trees, &roots.tree) == []
                if done:
                    publish(store, &roots)
                    store.model = model
                    break
                store.history.abort(store.edit)
                roots = roots_of(store)
                look(store, &roots, store.model)
                nothing_is_left_over(store)
                failures += 1
        assert failed > 100, "a change allocates"
        nothing_is_left_over(store)


def test_a_failed_step_leaves_the_edit_usable():
    """A map or a tree whose change failed half-way takes the same change when there is memory."""
    cdef Store store = Store(bits=32, leaf=2)
    cdef Key key
    cdef Item item
    cdef uint32_t before = NOWHERE, slot
    store.history.begin(store.edit, None)
    for n in range(200):
        read_key(&store.ids.column, f"id {n}", &key)
        slot = take_slot(&store.ids.column, &store.edit.log, &key, 0)
        item = item_of(n * 7 % 13, slot)
        for failures in range(100):
            fail_allocations(failures)
            try:
                hamt_put(&store.maps, &store.map, &store.edit.log, &key, slot, &before)
                tree_add(&store.trees, &store.tree, &store.edit.log, &item)
                break
            except MemoryError:
                continue
            finally:
                fail_allocations(-1)
                assert hamt_breaches(&store.maps, &store.map) == []
                assert tree_breaches(&store.trees, &store.tree) == []
        assert store.map.count == store.tree.count == n + 1
    memset(&store.map, 0, sizeof(Hamt))
    memset(&store.tree, 0, sizeof(Tree))
    store.history.abort(store.edit)
    nothing_is_left_over(store)


# --- single structures -----------------------------------------------------------------------

def test_many_find_what_one_finds():
    """Prefetching look-ups give the answers of single ones, at every length of a batch."""
    cdef Store store
    cdef Key keys[100]
    cdef uint32_t slots[100]
    cdef uint32_t before = NOWHERE
    cdef Py_ssize_t i, count
    for bits in (0, 3, 32):
        store = Store(bits=bits, leaf=4)
        store.history.begin(store.edit, None)
        for n in range(60):
            read_key(&store.ids.column, f"id {n}", &keys[0])
            slot = take_slot(&store.ids.column, &store.edit.log, &keys[0], 0)
            hamt_put(&store.maps, &store.map, &store.edit.log, &keys[0], slot, &before)
        store.history.prepare(store.edit)
        store.history.commit(store.edit)
        for count in (0, 1, 31, 32, 33, 100):
            texts = [f"id {n * 7 % 100}" for n in range(count)]
            for i in range(count):
                read_key(&store.ids.column, texts[i], &keys[i])
            hamt_find_many(&store.maps, &store.map, keys, slots, count)
            for i in range(count):
                assert slots[i] == hamt_find(&store.maps, &store.map, &keys[i])


cdef int note_row(void *context, uint32_t row, const void *old, const void *new) except -1:
    (<list> context).append((
        row,
        None if old == NULL else (<const int64_t *> old)[0],
        None if new == NULL else (<const int64_t *> new)[0],
    ))
    return 0


def test_paged_arrays_differ_where_rows_do():
    """Rows near and far, so that the older version is lower; a row that is set back is equal."""
    cdef History history = History()
    cdef Edit edit = Edit(history, None)
    cdef Pages pages
    cdef Paged array, older
    cdef Pin *pin
    memset(&array, 0, sizeof(Paged))
    pages_init(&pages, 8)
    draw = random.Random(5)
    model = {}
    for most in (50, 3_000, 70_000, 3_000_000, 2**32 - 2):
        older, before = array, dict(model)
        pin = history.pin()
        for _ in range(3):
            history.begin(edit, None)
            for _ in range(40):
                row = draw.randrange(most)
                number = draw.randrange(1, 4)
                (<int64_t *> page_write(&pages, &array, &edit.log, row))[0] = number
                model[row] = number
            history.prepare(edit)
            history.commit(edit)
        found = []
        pages_diff(&pages, &older, &array, note_row, <void *> found)
        # A page that only one side has is listed whole.
        listed = {row: (old or 0, new or 0) for row, old, new in found if (old or 0) != (new or 0)}
        assert listed == {
            row: (before.get(row, 0), number)
            for row, number in model.items()
            if before.get(row, 0) != number
        }
        assert [row for row, _, _ in found] == sorted([row for row, _, _ in found])
        for row, number in before.items():
            assert (<const int64_t *> page_read(&pages, &older, row))[0] == number
        for row, number in model.items():
            assert (<const int64_t *> page_read(&pages, &array, row))[0] == number
        assert page_read(&pages, &array, <uint32_t> array.length) == NULL
        history.unpin(pin)
    pages_free(&pages, &array)
    assert (pages.meter.nodes, pages.meter.bytes) == (0, 0)


def test_ids_by_slot_order_and_read_as_their_text():
    """Of all forms: any two slots compare as the bytes, and sorting agrees."""
    cdef IdColumn ids = IdColumn()
    cdef History history = History()
    cdef Edit edit = Edit(history, None)
    cdef Key key, again
    cdef uint32_t slots[200]
    cdef int order
    texts = [*IDS[::3], "a", "a\0", "\0", "b" * 16, "b" * 17, "b" * 255, "\U0010ffff", "\xe9",
             "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
             "ffffffff-ffff-ffff-ffff-ffffffffffff", "ffffffff-ffff-ffff-ffff-fffffffffffF"]
    history.begin(edit, None)
    for n, text in enumerate(texts):
        read_key(&ids.column, text, &key)
        slots[n] = take_slot(&ids.column, &edit.log, &key, n)
        assert slot_id(&ids.column, slots[n]) == text
        key_of_slot(&ids.column, slots[n], &again)
        assert (again.hi, again.lo, again.kind, again.hash) == (key.hi, key.lo, key.kind, key.hash)
    for a, one in enumerate(texts):
        for b, other in enumerate(texts):
            order = compare_slots(&ids.column, slots[a], slots[b])
            assert (order > 0) - (order < 0) == (
                (one.encode() > other.encode()) - (one.encode() < other.encode())), (one, other)
    sort_slots(&ids.column, slots, len(texts))
    assert [slot_id(&ids.column, slots[n]) for n in range(len(texts))] == sorted(
        texts, key=str.encode)
    history.abort(edit)
    assert (ids.column.used, ids.column.text_meter.nodes) == (0, 0)


def test_a_slot_waits_until_no_version_sees_it():
    """INV-N8, on two pins: the slot of a removed id comes back when the older one is let go."""
    cdef IdColumn ids = IdColumn()
    cdef History history = History()
    cdef Edit edit = Edit(history, None)
    cdef Key key
    cdef Pin *pin
    read_key(&ids.column, "first", &key)
    history.begin(edit, None)
    slot = take_slot(&ids.column, &edit.log, &key, 0)
    history.prepare(edit)
    history.commit(edit)
    pin = history.pin()
    history.begin(edit, None)
    retire_slot(&ids.column, &edit.log, slot)
    history.prepare(edit)
    history.commit(edit)
    for id_ in ("second", "third"):
        read_key(&ids.column, id_, &key)
        history.begin(edit, None)
        assert take_slot(&ids.column, &edit.log, &key, 0) != slot
        assert slot_id(&ids.column, slot) == "first"
        history.abort(edit)
    history.unpin(pin)
    history.begin(edit, None)
    # The last that came back is the next to go.
    assert take_slot(&ids.column, &edit.log, &key, 0) == slot
    history.abort(edit)


def test_a_separator_never_outlives_its_item():
    """Equal ranks, so that ids decide: slots go from id to id, and a stale one would misplace."""
    cdef Store store = Store(leaf=4)
    cdef Roots roots = roots_of(store)
    draw = random.Random(8)
    names = [f"{draw.randrange(10**6):06}" for _ in range(150)]
    for _ in range(60):
        roots = roots_of(store)
        store.history.begin(store.edit, None)
        for id_ in draw.sample(names, 20):
            if id_ in store.model:
                take_away(store, &roots, store.edit, store.model, id_)
            else:
                put(store, &roots, store.edit, store.model, id_, 0, 0, None)
            assert tree_breaches(&store.trees, &roots.tree) == []
        publish(store, &roots)
        look(store, &roots, store.model)
    nothing_is_left_over(store)


def test_checkers_see_what_is_broken():
    """Negative control: a wrong count, a cell under another hash, items out of order."""
    cdef Store store = Store()
    cdef Roots roots = roots_of(store)
    cdef Item item
    store.history.begin(store.edit, None)
    for n, id_ in enumerate(IDS):
        put(store, &roots, store.edit, store.model, id_, n, n, None)
    publish(store, &roots)
    store.map.count += 1
    assert hamt_breaches(&store.maps, &store.map) == ["80 cells, the map says 81"]
    store.map.count -= 1
    store.ids.column.seed0 += 1
    assert any(["another hash" in text for text in hamt_breaches(&store.maps, &store.map)])
    store.ids.column.seed0 -= 1
    assert hamt_breaches(&store.maps, &store.map) == []
    store.tree.count += 1
    assert len(tree_breaches(&store.trees, &store.tree)) == 1
    store.tree.count -= 1
    item = item_of(1_000, store.model[IDS[0]][0])
    tree_spoil(&store.trees, &store.tree, &item)
    assert any(["before" in text for text in tree_breaches(&store.trees, &store.tree)])
    item.k0 = 0
    tree_spoil(&store.trees, &store.tree, &item)
    assert tree_breaches(&store.trees, &store.tree) == []
