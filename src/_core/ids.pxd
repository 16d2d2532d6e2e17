# cython: language_level=3
# Ids by slot: a write-once column of 128-bit forms, their order and their text. See docs/hamt.md.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from pyresched._core.bits cimport Sip, sip_end, sip_start, sip_word, ulid
from pyresched._core.versions cimport EditLog, Meter

cdef enum:
    NOWHERE = 0xFFFFFFFF   # no slot
    MAX_ID_BYTES = 255

# How the 128 bits of an id read.
cdef enum:
    KIND_FREE = 0     # nobody's slot: lo is the next free one
    KIND_ULID = 1     # 26 characters of Crockford's base 32, upper case
    KIND_UUID = 2     # 36 characters, lower-case hexadecimal with four dashes
    KIND_HEAP = 3     # hi: the first 8 bytes; lo: address of a Text
    KIND_INLINE = 16  # + length: up to 16 bytes of UTF-8, zeros behind

# An id taken apart, for a look-up. `text` is borrowed from the str.
cdef struct Key:
    uint64_t hi
    uint64_t lo
    const uint8_t *text
    uint32_t hash
    uint8_t kind
    uint8_t size      # of text in bytes, for KIND_HEAP

cdef struct Text:
    uint8_t size
    uint8_t bytes[1]

# One slot. `value` is a word of the owner's, as write-once as the id.
cdef struct Entry:
    uint64_t hi
    uint64_t lo
    uint64_t tag      # the version that the slot was born in, and the kind in the low 8 bits
    int64_t value

cdef enum:
    CHUNK_BITS = 10
    CHUNK_ENTRIES = 1024

cdef struct Column:
    Entry **chunks         # read without a lock: grown by a copy, the old one stays
    uint32_t chunk_count
    uint32_t chunk_capacity
    void **outgrown        # the directories that were copied; freed with the column
    uint32_t outgrown_count
    uint32_t next          # slots from here on were never handed out
    uint32_t limit         # slots from here on never are
    uint32_t free_slot     # first of the slots that came back, NOWHERE: none
    uint32_t used          # slots handed out and not back
    uint32_t mask          # bits of the hash that count
    uint64_t seed0
    uint64_t seed1
    Meter chunk_meter
    Meter text_meter       # ids that need more than 16 bytes


cdef class IdColumn:
    cdef Column column


# `read_key` of what is no ULID, or no plain str.
cdef int read_any_key(const Column *column, object id_, Key *key) except -1
# The same without the hash, which needs a column's seed.
cdef int read_form(object id_, Key *key) except -1
# The same from bytes of ASCII, which must outlive the key. False: too long, empty or not ASCII.
cdef bint read_bytes(const Column *column, const uint8_t *text, size_t size,
                     Key *key) noexcept nogil
# A slot of the edit's own that holds *key* and *value*; goes back if the edit aborts. Raises
# MemoryError, TooManyJobs.
cdef uint32_t take_slot(Column *column, EditLog *log, const Key *key,
                        int64_t value) except? NOWHERE
# The edit no longer needs the slot; it is used again when no version sees it. Raises MemoryError.
cdef int retire_slot(Column *column, EditLog *log, uint32_t slot) except -1 nogil
# The edit does without the slots that it has just taken, after all; `room_for_return`, which
# raises MemoryError, came before they were.
cdef int room_for_return(Column *column, EditLog *log, size_t count) except -1 nogil
cdef void return_slots(Column *column, EditLog *log, const uint32_t *slots,
                       size_t count) noexcept nogil
# The key of a slot that is in use, its text borrowed from the column.
cdef void key_of_slot(const Column *column, uint32_t slot, Key *key) noexcept nogil
# Below, at or above 0: the order of the two ids' UTF-8 bytes. Fits `Compare` of ordered.pxd.
cdef int compare_slots(const void *column, int64_t a, int64_t b) noexcept nogil
# The id as it was given.
cdef str slot_id(const Column *column, uint32_t slot)
# Its UTF-8 bytes into *text*, which has room for 255; how many.
cdef int slot_text(const Column *column, uint32_t slot, uint8_t *text) noexcept nogil
# The same of a form other than KIND_HEAP; room for 36.
cdef int form_text(uint8_t kind, uint64_t hi, uint64_t lo, uint8_t *text) noexcept nogil
# *slots* in ascending order of id. Raises MemoryError.
cdef int sort_slots(const Column *column, uint32_t *slots, size_t count) except -1 nogil

cdef extern from "bits.h" nogil:
    Entry **get_chunks "bits_load_pointer"(Entry ***place) noexcept

cdef extern from "Python.h":
    bint is_str "PyUnicode_CheckExact"(object) noexcept
    bint is_ascii "PyUnicode_IS_COMPACT_ASCII"(object) noexcept
    const uint8_t *ascii_of "PyUnicode_DATA"(object) noexcept
    Py_ssize_t length_of "PyUnicode_GET_LENGTH"(object) noexcept


cdef inline uint32_t hash_words(const Column *column, uint8_t kind, uint64_t hi,
                                uint64_t lo) noexcept nogil:
    """SipHash-1-3 of the 128 bits, under a seed that differs for each kind: forms of fixed
    length need no word that tells the length."""
    cdef Sip state
    sip_start(&state, column.seed0, column.seed1 ^ kind)
    sip_word(&state, hi)
    sip_word(&state, lo)
    return <uint32_t> sip_end(&state) & column.mask


cdef inline void key_of_form(const Column *column, uint8_t kind, uint64_t hi, uint64_t lo,
                             Key *key) noexcept nogil:
    """The key of a form that `read_form` gave, KIND_HEAP excepted."""
    key.kind = kind
    key.hi = hi
    key.lo = lo
    key.hash = hash_words(column, kind, hi, lo)


cdef inline int read_key(const Column *column, object id_, Key *key) except -1:
    """Fill *key*. Raises TypeError (no str), ValueError (empty, or over 255 bytes of UTF-8),
    UnicodeEncodeError (surrogates). A subclass of str counts as its characters."""
    if (is_str(id_) and is_ascii(id_) and length_of(id_) == 26
            and ulid(ascii_of(id_), &key.hi, &key.lo)):
        key.kind = KIND_ULID
        key.hash = hash_words(column, KIND_ULID, key.hi, key.lo)
        return 0
    return read_any_key(column, id_, key)


cdef inline Entry *entry_at(const Column *column, uint32_t slot) noexcept nogil:
    """The entry of a slot that has been handed out."""
    cdef Entry **chunks = get_chunks(&(<Column *> column).chunks)
    return chunks[slot >> CHUNK_BITS] + (slot & (CHUNK_ENTRIES - 1))


cdef inline uint64_t born(const Entry *entry) noexcept nogil:
    """The stamp of the edit that took the slot."""
    return entry.tag >> 8


cdef inline bint holds(const Column *column, uint32_t slot, const Key *key) noexcept nogil:
    """Whether the slot's id is *key*."""
    cdef Entry *entry = entry_at(column, slot)
    cdef Text *text
    if entry.hi != key.hi or <uint8_t> entry.tag != key.kind:
        return False
    if key.kind != KIND_HEAP:
        return entry.lo == key.lo
    text = <Text *> <size_t> entry.lo
    return text.size == key.size and memcmp(text.bytes, key.text, key.size) == 0
