/* What Cython cannot say: prefetch, counting zeros, and three inner loops over 16 bytes at a time.
 *
 * Each loop stands here twice, portable and for SSE2 (which every x86-64 has), with the same
 * answers; the self-tests hold one against the other. Both are short enough to be inlined.
 */
#ifndef PYRESCHED_BITS_H
#define PYRESCHED_BITS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define bits_prefetch(address) __builtin_prefetch(address)
#define bits_load_pointer(place) __atomic_load_n((place), __ATOMIC_ACQUIRE)
#define bits_store_pointer(place, value) __atomic_store_n((place), (value), __ATOMIC_RELEASE)
#define BITS_INLINE static inline __attribute__((always_inline, unused))
#else
#define bits_prefetch(address) ((void)(address))
#define bits_load_pointer(place) (*(place))
#define bits_store_pointer(place, value) ((void)(*(place) = (value)))
#define BITS_INLINE static inline
#endif

#if defined(__SSE2__)
#include <emmintrin.h>
#define BITS_SSE2 1
#else
#define BITS_SSE2 0
#endif

/* The place of the lowest bit that is set; there is one. */
BITS_INLINE int bits_lowest(uint32_t word) {
#if defined(__GNUC__) || defined(__clang__)
  return __builtin_ctz(word);
#else
  int at = 0;
  while (!(word & 1)) {
    word >>= 1;
    at++;
  }
  return at;
#endif
}

/* A bit for each of `count` words, at most 32, that is `wanted`. */
BITS_INLINE uint32_t bits_matches_portable(const uint32_t *words, uint32_t count,
                                           uint32_t wanted) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < count; i++)
    found |= (uint32_t)(words[i] == wanted) << i;
  return found;
}

/* How many of `count` ascending words are below `wanted`: first of the last of each line of eight,
 * then of those of the line where it belongs. No load waits for another, no branch for a word. */
BITS_INLINE uint32_t bits_below(const int64_t *words, uint32_t count, int64_t wanted) {
  uint32_t lines = 0, found = 0;
  for (uint32_t i = 7; i < count; i += 8)
    lines += (uint32_t)(words[i] < wanted);
  words += 8 * lines;
  count -= 8 * lines;
  if (count >= 8) {
    for (uint32_t i = 0; i < 7; i++)
      found += (uint32_t)(words[i] < wanted);
  } else {
    for (uint32_t i = 0; i < count; i++)
      found += (uint32_t)(words[i] < wanted);
  }
  return 8 * lines + found;
}

/* The same for those that are not above `wanted`. */
BITS_INLINE uint32_t bits_up_to(const int64_t *words, uint32_t count, int64_t wanted) {
  return wanted == INT64_MAX ? count : bits_below(words, count, wanted + 1);
}

/* The 128 bits of 26 characters of Crockford's base 32, upper case, the first at most '7'.
 * 0: they are no such text, and the words are not set. */
BITS_INLINE int bits_ulid_portable(const uint8_t *text, uint64_t *high, uint64_t *low) {
  static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  uint64_t words[2] = {0, 0};
  for (int i = 0; i < 26; i++) {
    int value = 0;
    while (value < 32 && (uint8_t)digits[value] != text[i])
      value++;
    if (value == 32 || (i == 0 && value > 7))
      return 0;
    words[0] = words[0] << 5 | words[1] >> 59;
    words[1] = words[1] << 5 | (uint64_t)value;
  }
  *high = words[0];
  *low = words[1];
  return 1;
}

/* The largest amount / total * factor, none below 0. Divided, not multiplied by a quotient worked
 * out before: so equal fractions are equal, and all of it is exactly 1. */
BITS_INLINE double bits_dominant_portable(const int64_t *amounts, const double *totals,
                                          const double *factors, ptrdiff_t count) {
  double most = 0.0;
  for (ptrdiff_t i = 0; i < count; i++) {
    const double share = (double)amounts[i] / totals[i] * factors[i];
    most = share > most ? share : most;
  }
  return most;
}

#if BITS_SSE2

/* A divider takes two as fast as one. */
BITS_INLINE double bits_dominant_sse2(const int64_t *amounts, const double *totals,
                                      const double *factors, ptrdiff_t count) {
  __m128d most = _mm_setzero_pd();
  ptrdiff_t i = 0;
  for (; i + 1 < count; i += 2) {
    const __m128d amount = _mm_set_pd((double)amounts[i + 1], (double)amounts[i]);
    const __m128d part = _mm_div_pd(amount, _mm_loadu_pd(totals + i));
    most = _mm_max_pd(_mm_mul_pd(part, _mm_loadu_pd(factors + i)), most);
  }
  if (i < count) {
    const __m128d part = _mm_div_sd(_mm_set_sd((double)amounts[i]), _mm_load_sd(totals + i));
    most = _mm_max_pd(_mm_mul_sd(part, _mm_load_sd(factors + i)), most);
  }
  return _mm_cvtsd_f64(_mm_max_sd(most, _mm_unpackhi_pd(most, most)));
}

/* Reads up to the next multiple of 16 words: one step for most leaves, so that how many there are
 * is seldom guessed wrong. */
BITS_INLINE uint32_t bits_matches_sse2(const uint32_t *words, uint32_t count, uint32_t wanted) {
  const __m128i pattern = _mm_set1_epi32((int)wanted);
  uint32_t found = 0;
  for (uint32_t i = 0; i < count; i += 16) {
    const __m128i *at = (const __m128i *)(words + i);
    const __m128i a = _mm_cmpeq_epi32(_mm_loadu_si128(at), pattern);
    const __m128i b = _mm_cmpeq_epi32(_mm_loadu_si128(at + 1), pattern);
    const __m128i c = _mm_cmpeq_epi32(_mm_loadu_si128(at + 2), pattern);
    const __m128i d = _mm_cmpeq_epi32(_mm_loadu_si128(at + 3), pattern);
    const __m128i all = _mm_packs_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
    found |= (uint32_t)_mm_movemask_epi8(all) << i;
  }
  return count < 32 ? found & ((1u << count) - 1) : found;
}

/* The values of 16 characters, and in *bad a byte that is not 0 for each that has none. */
BITS_INLINE __m128i bits_base32_values(__m128i text, __m128i *bad) {
  const __m128i letter = _mm_cmpgt_epi8(text, _mm_set1_epi8('9'));
  const __m128i after_i = _mm_cmpgt_epi8(text, _mm_set1_epi8('I'));
  const __m128i after_l = _mm_cmpgt_epi8(text, _mm_set1_epi8('L'));
  const __m128i after_o = _mm_cmpgt_epi8(text, _mm_set1_epi8('O'));
  const __m128i after_u = _mm_cmpgt_epi8(text, _mm_set1_epi8('U'));
  /* '0' is 48, and 'A' is 65 but stands for 10; I, L, O and U stand for nothing. */
  __m128i value = _mm_sub_epi8(text, _mm_set1_epi8('0'));
  value = _mm_sub_epi8(value, _mm_and_si128(letter, _mm_set1_epi8(7)));
  value = _mm_add_epi8(value, _mm_add_epi8(_mm_add_epi8(after_i, after_l),
                                           _mm_add_epi8(after_o, after_u)));
  /* Outside 0 to 31: beyond 'Z', or below '0', which is negative, as are bytes above 127. */
  __m128i wrong = _mm_and_si128(value, _mm_set1_epi8((char)0xE0));
  /* Between '9' and 'A'. */
  wrong = _mm_or_si128(wrong, _mm_and_si128(letter, _mm_cmplt_epi8(text, _mm_set1_epi8('A'))));
  wrong = _mm_or_si128(wrong, _mm_or_si128(_mm_cmpeq_epi8(text, _mm_set1_epi8('I')),
                                           _mm_cmpeq_epi8(text, _mm_set1_epi8('L'))));
  wrong = _mm_or_si128(wrong, _mm_or_si128(_mm_cmpeq_epi8(text, _mm_set1_epi8('O')),
                                           _mm_cmpeq_epi8(text, _mm_set1_epi8('U'))));
  *bad = _mm_or_si128(*bad, wrong);
  return value;
}

/* 16 values of 5 bits, the first the highest: two words of 40 bits, the first in the low lane. */
BITS_INLINE __m128i bits_base32_packed(__m128i values) {
  /* Pairs to 10 bits, pairs of these to 20, pairs of these to 40. */
  const __m128i first = _mm_slli_epi16(_mm_and_si128(values, _mm_set1_epi16(0xFF)), 5);
  const __m128i tens = _mm_or_si128(first, _mm_srli_epi16(values, 8));
  const __m128i twenties = _mm_madd_epi16(tens, _mm_set1_epi32(1 << 16 | 1024));
  const __m128i low = _mm_srli_epi64(twenties, 32);
  return _mm_or_si128(_mm_srli_epi64(_mm_slli_epi64(twenties, 32), 12), low);
}

BITS_INLINE int bits_ulid_sse2(const uint8_t *text, uint64_t *high, uint64_t *low) {
  __m128i bad = _mm_setzero_si128();
  /* Characters 0 to 15, and 10 to 25: none is read that is not there. */
  const __m128i head = bits_base32_packed(
      bits_base32_values(_mm_loadu_si128((const __m128i *)text), &bad));
  const __m128i tail = bits_base32_packed(
      bits_base32_values(_mm_loadu_si128((const __m128i *)(text + 10)), &bad));
  const uint64_t a = (uint64_t)_mm_cvtsi128_si64(head);
  const uint64_t b = (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(head, head));
  const uint64_t c = (uint64_t)_mm_cvtsi128_si64(tail);
  const uint64_t d = (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(tail, tail));
  if (_mm_movemask_epi8(_mm_cmpeq_epi8(bad, _mm_setzero_si128())) != 0xFFFF || a >> 38)
    return 0;
  /* 38 bits of a, 40 of b, the lowest 10 of c (the others are b's), 40 of d. */
  *high = a << 26 | b >> 14;
  *low = b << 50 | (c & 1023) << 40 | d;
  return 1;
}

#define bits_dominant bits_dominant_sse2
#define bits_matches bits_matches_sse2
#define bits_ulid bits_ulid_sse2

#else

#define bits_dominant_sse2 bits_dominant_portable
#define bits_dominant bits_dominant_portable
#define bits_matches_sse2 bits_matches_portable
#define bits_ulid_sse2 bits_ulid_portable
#define bits_matches bits_matches_portable
#define bits_ulid bits_ulid_table

/* As the portable one, by a table: 0xFF where a character has no value. */
BITS_INLINE int bits_ulid_table(const uint8_t *text, uint64_t *high, uint64_t *low) {
  static const uint8_t value[256] = {
      ['0'] = 1, ['1'] = 2, ['2'] = 3, ['3'] = 4, ['4'] = 5, ['5'] = 6, ['6'] = 7, ['7'] = 8,
      ['8'] = 9, ['9'] = 10, ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15,
      ['F'] = 16, ['G'] = 17, ['H'] = 18, ['J'] = 19, ['K'] = 20, ['M'] = 21, ['N'] = 22,
      ['P'] = 23, ['Q'] = 24, ['R'] = 25, ['S'] = 26, ['T'] = 27, ['V'] = 28, ['W'] = 29,
      ['X'] = 30, ['Y'] = 31, ['Z'] = 32,
  };
  uint64_t top = 0, middle = 0, bottom = 0;
  int missing = 0;
  for (int i = 0; i < 26; i++) {
    const uint8_t one = value[text[i]];
    missing |= one == 0;
    if (i < 2)
      top = top << 5 | (uint8_t)(one - 1);
    else if (i < 14)
      middle = middle << 5 | (uint8_t)(one - 1);
    else
      bottom = bottom << 5 | (uint8_t)(one - 1);
  }
  if (missing || top > 0xFF)
    return 0;
  *high = top << 56 | middle >> 4;
  *low = middle << 60 | bottom;
  return 1;
}

#endif

#endif
