# cython: language_level=3
# Bit tricks and the keyed hash that the native structures share.
#
# There is no bits.pyx: each module that cimports this gets its own inline copy. Nothing here
# allocates, and only `whole` raises or touches Python.
from cpython.number cimport PyNumber_Index
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef extern from "bits.h" nogil:
    # A hint; wrong addresses are harmless.
    void prefetch "bits_prefetch"(const void *address) noexcept
    # The place of the lowest bit that is set; there is one.
    int lowest "bits_lowest"(uint32_t word) noexcept
    # A bit for each of up to 32 words that is *wanted*. Reads up to the next multiple of 16.
    uint32_t matches "bits_matches"(const uint32_t *words, uint32_t count,
                                    uint32_t wanted) noexcept
    # The 128 bits of 26 characters if they are a ULID as it is written (upper case); 0 if not.
    bint ulid "bits_ulid"(const uint8_t *text, uint64_t *high, uint64_t *low) noexcept
    # The largest amount / total * factor, none below 0; no total is 0.
    double dominant "bits_dominant"(const int64_t *amounts, const double *totals,
                                    const double *factors, Py_ssize_t count) noexcept


cdef inline int64_t whole(object value) except? -1:
    """*value* as an int64; TypeError unless it is a whole number, OverflowError outside int64."""
    return <int64_t> value if type(value) is int else <int64_t> PyNumber_Index(value)


cdef inline uint64_t rotated(uint64_t word, int by) noexcept nogil:
    """*word* turned left; *by* from 1 to 63."""
    return (word << by) | (word >> (64 - by))


cdef inline uint64_t word_at(const uint8_t *bytes_) noexcept nogil:
    """Eight bytes, the first the most significant: words in this form compare as text does."""
    cdef uint64_t word = 0
    cdef int i
    for i in range(8):
        word = (word << 8) | bytes_[i]
    return word


cdef struct Sip:
    uint64_t v0
    uint64_t v1
    uint64_t v2
    uint64_t v3


cdef inline void sip_round(Sip *state) noexcept nogil:
    state.v0 += state.v1
    state.v2 += state.v3
    state.v1 = rotated(state.v1, 13) ^ state.v0
    state.v3 = rotated(state.v3, 16) ^ state.v2
    state.v0 = rotated(state.v0, 32)
    state.v2 += state.v1
    state.v0 += state.v3
    state.v1 = rotated(state.v1, 17) ^ state.v2
    state.v3 = rotated(state.v3, 21) ^ state.v0
    state.v2 = rotated(state.v2, 32)


cdef inline void sip_start(Sip *state, uint64_t seed0, uint64_t seed1) noexcept nogil:
    state.v0 = seed0 ^ <uint64_t> 0x736F6D6570736575
    state.v1 = seed1 ^ <uint64_t> 0x646F72616E646F6D
    state.v2 = seed0 ^ <uint64_t> 0x6C7967656E657261
    state.v3 = seed1 ^ <uint64_t> 0x7465646279746573


cdef inline void sip_word(Sip *state, uint64_t word) noexcept nogil:
    """Take in one word: the one compression round of SipHash-1-3."""
    state.v3 ^= word
    sip_round(state)
    state.v0 ^= word


cdef inline uint64_t sip_end(Sip *state) noexcept nogil:
    """The hash: the three finalisation rounds of SipHash-1-3."""
    state.v2 ^= 0xFF
    sip_round(state)
    sip_round(state)
    sip_round(state)
    return state.v0 ^ state.v1 ^ state.v2 ^ state.v3
