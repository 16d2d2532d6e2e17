# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Ids by slot: each id is kept once, as 128 bits where it is a ULID, a UUID or short.

Owns slots and the text of long ids; a slot goes back through the edit that took it or the dead
lists (see versions; keeps INV-N8). The order of ids is that of their UTF-8 bytes, never that of
the hash, whose seed is drawn for each process.
"""

import os

cimport cython
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, qsort, realloc
from libc.string cimport memcmp, memcpy, memset

from pyresched._core.bits cimport Sip, sip_end, sip_start, sip_word, ulid, word_at
from pyresched._core.versions cimport (
    NO_PLACE, EditLog, Fresh, add_fresh, add_retired, allocation_fails, make_room, obtain,
    out_of_memory, release,
)

from pyresched.errors import TooManyJobs


cdef extern from "Python.h":
    bint PyUnicode_Check(object)

cdef extern from "stdlib.h" nogil:
    void *aligned_alloc(size_t alignment, size_t size)


cdef uint64_t process_seed[2]
cdef bytes drawn = os.urandom(16)
process_seed[0] = word_at(<const uint8_t *> drawn)
process_seed[1] = word_at(<const uint8_t *> drawn + 8)

cdef enum:
    BAD = 255

# What a character is worth, BAD where it cannot stand.
cdef uint8_t hexadecimal[256]
cdef const char *CROCKFORD = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"
cdef const char *HEX = b"0123456789abcdef"


cdef void fill_tables() noexcept nogil:
    cdef int i
    memset(hexadecimal, BAD, 256)
    for i in range(16):
        hexadecimal[<uint8_t> HEX[i]] = <uint8_t> i


fill_tables()


cdef inline bint read_uuid(const uint8_t *text, Key *key) noexcept nogil:
    """Whether the 36 characters are a UUID as `slot_text` would write it; if so, its 128 bits."""
    cdef uint64_t word = 0
    cdef uint8_t value
    cdef int i, digits = 0
    for i in range(36):
        if i == 8 or i == 13 or i == 18 or i == 23:
            if text[i] != c"-":
                return False
            continue
        value = hexadecimal[text[i]]
        if value == BAD:
            return False
        word = word << 4 | value
        digits += 1
        if digits == 16:
            key.hi = word
            word = 0
    key.lo = word
    return True


cdef uint32_t hash_text(const Column *column, const Key *key) noexcept nogil:
    """The hash of a long id: SipHash-1-3 of its bytes."""
    cdef Sip state
    cdef const uint8_t *text = key.text
    cdef uint8_t last[8]
    cdef int left = key.size
    sip_start(&state, column.seed0, column.seed1 ^ key.kind)
    while left >= 8:
        sip_word(&state, word_at(text))
        text += 8
        left -= 8
    memset(last, 0, 8)
    memcpy(last, text, left)
    sip_word(&state, word_at(last))
    sip_word(&state, key.size)
    return <uint32_t> sip_end(&state) & column.mask


cdef inline uint32_t hash_key(const Column *column, const Key *key) noexcept nogil:
    if key.kind == KIND_HEAP:
        return hash_text(column, key)
    return hash_words(column, key.kind, key.hi, key.lo)


cdef inline void short_form(const uint8_t *text, size_t size, Key *key) noexcept nogil:
    """The form of up to 16 bytes that are neither ULID nor UUID."""
    cdef uint8_t padded[16]
    memset(padded, 0, 16)
    memcpy(padded, text, size)
    key.hi = word_at(padded)
    key.lo = word_at(padded + 8)
    key.kind = <uint8_t> (KIND_INLINE + size)


cdef inline void long_form(const uint8_t *text, size_t size, Key *key) noexcept nogil:
    """The form of 17 to 255 bytes."""
    key.hi = word_at(text)
    key.lo = 0
    key.kind = KIND_HEAP
    key.text = text
    key.size = <uint8_t> size


cdef int read_form(object id_, Key *key) except -1:
    cdef const uint8_t *text
    cdef Py_ssize_t size = 0
    if not PyUnicode_Check(id_):
        raise TypeError(f"an id is a str, got {type(id_).__name__}")
    if is_ascii(id_):
        text = ascii_of(id_)
        size = length_of(id_)
    else:
        text = <const uint8_t *> PyUnicode_AsUTF8AndSize(id_, &size)
    if size == 26 and ulid(text, &key.hi, &key.lo):
        key.kind = KIND_ULID
    elif size == 36 and read_uuid(text, key):
        key.kind = KIND_UUID
    elif size == 0:
        raise ValueError("an id must not be empty")
    elif size > MAX_ID_BYTES:
        raise ValueError(
            f"an id has at most {MAX_ID_BYTES} bytes of UTF-8, got {size}: {id_[:32]!r}..."
        )
    elif size <= 16:
        short_form(text, size, key)
    else:
        long_form(text, size, key)
    return 0


cdef int read_any_key(const Column *column, object id_, Key *key) except -1:
    read_form(id_, key)
    key.hash = hash_key(column, key)
    return 0


cdef bint read_bytes(const Column *column, const uint8_t *text, size_t size,
                     Key *key) noexcept nogil:
    cdef size_t i
    if size == 26 and ulid(text, &key.hi, &key.lo):
        key.kind = KIND_ULID
    elif size == 36 and read_uuid(text, key):
        key.kind = KIND_UUID
    elif size > MAX_ID_BYTES or size == 0:
        return False
    else:
        for i in range(size):
            if text[i] >= 128:
                return False
        if size <= 16:
            short_form(text, size, key)
        else:
            long_form(text, size, key)
    key.hash = hash_key(column, key)
    return True


cdef inline size_t text_size(uint8_t size) noexcept nogil:
    return 1 + <size_t> size


cdef void give_back(Column *column, uint32_t slot) noexcept nogil:
    cdef Entry *entry = entry_at(column, slot)
    cdef Text *text
    if <uint8_t> entry.tag == KIND_HEAP:
        text = <Text *> <size_t> entry.lo
        release(&column.text_meter, text, text_size(text.size))
    entry.tag = KIND_FREE
    entry.lo = column.free_slot
    column.free_slot = slot
    column.used -= 1


cdef void reclaim_slots(void *owner, uint64_t what) noexcept nogil:
    """A run of slots: the first in the low 32 bits, how many in the high ones."""
    cdef uint32_t first = <uint32_t> what
    cdef uint32_t count = <uint32_t> (what >> 32)
    # From the end, so that the lowest is the next to be handed out.
    while count:
        count -= 1
        give_back(<Column *> owner, first + count)


cdef int add_chunk(Column *column) except -1 nogil:
    cdef Entry **grown
    cdef void **outgrown
    cdef Entry *chunk
    cdef uint32_t capacity
    if column.chunk_count == column.chunk_capacity:
        capacity = max(<uint32_t> 8, column.chunk_capacity * 2)
        if allocation_fails():
            return out_of_memory()
        # Readers may be in the old directory: it stays until the column goes.
        outgrown = <void **> realloc(
            column.outgrown, (column.outgrown_count + 1) * sizeof(void *))
        if outgrown == NULL:
            return out_of_memory()
        column.outgrown = outgrown
        grown = <Entry **> malloc(capacity * sizeof(Entry *))
        if grown == NULL:
            return out_of_memory()
        if column.chunk_count:
            memcpy(grown, column.chunks, column.chunk_count * sizeof(Entry *))
            column.outgrown[column.outgrown_count] = column.chunks
            column.outgrown_count += 1
        set_chunks(&column.chunks, grown)
        column.chunk_capacity = capacity
    chunk = NULL if allocation_fails() else <Entry *> aligned_alloc(
        64, CHUNK_ENTRIES * sizeof(Entry))
    if chunk == NULL:
        return out_of_memory()
    column.chunks[column.chunk_count] = chunk
    column.chunk_count += 1
    column.chunk_meter.nodes += 1
    column.chunk_meter.bytes += CHUNK_ENTRIES * sizeof(Entry)
    return 0


cdef extern from "bits.h" nogil:
    void set_chunks "bits_store_pointer"(Entry ***place, Entry **chunks) noexcept


cdef uint32_t take_slot(Column *column, EditLog *log, const Key *key,
                        int64_t value) except? NOWHERE:
    cdef uint32_t slot
    cdef Entry *entry
    cdef Fresh *run
    cdef Text *text = NULL
    make_room(log, 1)
    if column.free_slot == NOWHERE:
        if column.next >= column.limit:
            raise TooManyJobs(f"all {column.limit} slots are taken; delete something first")
        if column.next >> CHUNK_BITS == column.chunk_count:
            add_chunk(column)
    if key.kind == KIND_HEAP:
        text = <Text *> obtain(&column.text_meter, text_size(key.size))
        if text == NULL:
            raise MemoryError
        text.size = key.size
        memcpy(text.bytes, key.text, key.size)
    if column.free_slot != NOWHERE:
        slot = column.free_slot
        entry = entry_at(column, slot)
        column.free_slot = <uint32_t> entry.lo
    else:
        slot = column.next
        column.next += 1
        entry = entry_at(column, slot)
    column.used += 1
    entry.hi = key.hi
    entry.lo = key.lo if text == NULL else <uint64_t> <size_t> text
    entry.tag = log.stamp << 8 | key.kind
    entry.value = value
    if log.slot_run != NO_PLACE:
        run = log.fresh + log.slot_run
        if (run.owner == column and run.what >> 32 < 0xFFFFFFFF
                and <uint32_t> run.what + <uint32_t> (run.what >> 32) == slot):
            run.what += <uint64_t> 1 << 32
            return slot
    log.slot_run = add_fresh(
        log, reclaim_slots, column,
        <uint64_t> 1 << 32 | slot)
    return slot


cdef int retire_slot(Column *column, EditLog *log, uint32_t slot) except -1 nogil:
    make_room(log, 1)
    add_retired(log, reclaim_slots, column, <uint64_t> 1 << 32 | slot, born(entry_at(column, slot)))
    return 0


cdef int room_for_return(Column *column, EditLog *log, size_t count) except -1 nogil:
    # Slots that were never used follow each other; one that comes back may stand alone.
    make_room(log, <uint32_t> (2 + min(count, <size_t> (column.next - column.used))))
    return 0


cdef void return_slots(Column *column, EditLog *log, const uint32_t *slots,
                       size_t count) noexcept nogil:
    cdef size_t first = 0, i
    for i in range(1, count + 1):
        if i == count or slots[i] != slots[i - 1] + 1:
            add_retired(log, reclaim_slots, column,
                        <uint64_t> (i - first) << 32 | slots[first], log.stamp)
            first = i


cdef void key_of_slot(const Column *column, uint32_t slot, Key *key) noexcept nogil:
    cdef Entry *entry = entry_at(column, slot)
    cdef Text *text
    key.hi = entry.hi
    key.lo = entry.lo
    key.kind = <uint8_t> entry.tag
    if key.kind == KIND_HEAP:
        text = <Text *> <size_t> entry.lo
        key.lo = 0
        key.text = text.bytes
        key.size = text.size
    key.hash = hash_key(column, key)


cdef inline void write_word(uint64_t word, uint8_t *text) noexcept nogil:
    cdef int i
    for i in range(8):
        text[i] = <uint8_t> (word >> (56 - 8 * i))


cdef int form_text(uint8_t kind, uint64_t hi, uint64_t lo, uint8_t *text) noexcept nogil:
    cdef uint8_t padded[16]
    cdef uint64_t word
    cdef int i, at
    if kind == KIND_ULID:
        word = lo
        for i in range(25, 13, -1):
            text[i] = CROCKFORD[word & 31]
            word >>= 5
        word = hi << 4 | lo >> 60
        for i in range(13, 1, -1):
            text[i] = CROCKFORD[word & 31]
            word >>= 5
        word = hi >> 56
        text[1] = CROCKFORD[word & 31]
        text[0] = CROCKFORD[word >> 5]
        return 26
    if kind == KIND_UUID:
        at = 0
        for i in range(32):
            if i == 8 or i == 12 or i == 16 or i == 20:
                text[at] = c"-"
                at += 1
            word = hi if i < 16 else lo
            text[at] = HEX[(word >> (60 - 4 * (i & 15))) & 15]
            at += 1
        return 36
    write_word(hi, padded)
    write_word(lo, padded + 8)
    memcpy(text, padded, kind - KIND_INLINE)
    return kind - KIND_INLINE


cdef int slot_text(const Column *column, uint32_t slot, uint8_t *text) noexcept nogil:
    cdef Entry *entry = entry_at(column, slot)
    cdef uint8_t kind = <uint8_t> entry.tag
    cdef Text *long_
    assert kind != KIND_FREE, "only a slot in use has an id"
    if kind == KIND_HEAP:
        long_ = <Text *> <size_t> entry.lo
        memcpy(text, long_.bytes, long_.size)
        return long_.size
    return form_text(kind, entry.hi, entry.lo, text)


cdef str slot_id(const Column *column, uint32_t slot):
    cdef uint8_t text[256]
    cdef int size = slot_text(column, slot, text)
    return PyUnicode_DecodeUTF8(<const char *> text, size, NULL)


cdef int compare_slots(const void *column, int64_t a, int64_t b) noexcept nogil:
    cdef const Column *ids = <const Column *> column
    cdef Entry *one = entry_at(ids, <uint32_t> a)
    cdef Entry *other = entry_at(ids, <uint32_t> b)
    cdef int kind = <uint8_t> one.tag
    cdef uint8_t left[256]
    cdef uint8_t right[256]
    cdef int left_size, right_size, order
    if a == b:
        return 0
    # Both alphabets ascend as their characters do, so the bits order as the text.
    if kind == <int> <uint8_t> other.tag and (kind == KIND_ULID or kind == KIND_UUID):
        if one.hi != other.hi:
            return -1 if one.hi < other.hi else 1
        return (one.lo > other.lo) - (one.lo < other.lo)
    left_size = slot_text(ids, <uint32_t> a, left)
    right_size = slot_text(ids, <uint32_t> b, right)
    order = memcmp(left, right, min(left_size, right_size))
    return order if order != 0 else left_size - right_size


# Sorting: slots with the first 16 bytes of what they sort by, so that most comparisons stay
# in the array.
cdef struct Sorted:
    uint64_t hi
    uint64_t lo
    const Column *column
    uint32_t slot


cdef int by_text(const void *a, const void *b) noexcept nogil:
    cdef const Sorted *one = <const Sorted *> a
    cdef const Sorted *other = <const Sorted *> b
    if one.hi != other.hi:
        return -1 if one.hi < other.hi else 1
    if one.lo != other.lo:
        return -1 if one.lo < other.lo else 1
    return compare_slots(one.column, one.slot, other.slot)


cdef int sort_slots(const Column *column, uint32_t *slots, size_t count) except -1 nogil:
    cdef Sorted *items
    cdef Entry *entry
    cdef uint8_t text[256]
    cdef uint8_t kind
    cdef size_t i
    cdef int size
    cdef bint alike = True
    if count < 2:
        return 0
    items = NULL if allocation_fails() else <Sorted *> malloc(count * sizeof(Sorted))
    if items == NULL:
        return out_of_memory()
    kind = <uint8_t> entry_at(column, slots[0]).tag
    if kind != KIND_ULID and kind != KIND_UUID:
        alike = False
    for i in range(count):
        entry = entry_at(column, slots[i])
        items[i].hi = entry.hi
        items[i].lo = entry.lo
        items[i].column = column
        items[i].slot = slots[i]
        if <uint8_t> entry.tag != kind:
            alike = False
    if not alike:
        for i in range(count):
            size = slot_text(column, slots[i], text)
            if size < 16:
                memset(text + size, 0, 16 - size)
            items[i].hi = word_at(text)
            items[i].lo = word_at(text + 8)
    qsort(items, count, sizeof(Sorted), by_text)
    for i in range(count):
        slots[i] = items[i].slot
    free(items)
    return 0


@cython.final
@cython.no_gc
cdef class IdColumn:
    """The ids of one store. *seed* (two words) and *bits* of the hash are fixed by tests only."""

    def __cinit__(self, *, seed=None, int bits=32, uint32_t limit=NOWHERE):
        if not 0 <= bits <= 32:
            raise ValueError(f"bits must be from 0 to 32, got {bits}")
        self.column.free_slot = NOWHERE
        self.column.limit = limit
        self.column.mask = <uint32_t> ((<uint64_t> 1 << bits) - 1)
        if seed is None:
            self.column.seed0 = process_seed[0]
            self.column.seed1 = process_seed[1]
        else:
            self.column.seed0, self.column.seed1 = seed

    def __dealloc__(self):
        cdef Column *column = &self.column
        cdef Entry *entry
        cdef uint32_t slot, i
        for slot in range(column.next):
            entry = entry_at(column, slot)
            if <uint8_t> entry.tag == KIND_HEAP:
                free(<void *> <size_t> entry.lo)
        for i in range(column.chunk_count):
            free(column.chunks[i])
        for i in range(column.outgrown_count):
            free(column.outgrown[i])
        free(column.outgrown)
        free(column.chunks)

    def __len__(self):
        return self.column.used

    def memory(self):
        """Slots in use and ever used, and the bytes of chunks and of long ids."""
        return {
            "slots": self.column.used,
            "slots_most": self.column.next,
            "chunk_bytes": self.column.chunk_meter.bytes,
            "texts": self.column.text_meter.nodes,
            "text_bytes": self.column.text_meter.bytes,
        }
