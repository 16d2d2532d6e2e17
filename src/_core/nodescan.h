/* Which of 64 rows have room, and the most of a column: as portable C, for AVX2, for AVX-512.
 *
 * Here and not in Cython because each twin is compiled for its own instructions and one is chosen
 * when the program runs. All give the same answer, in whole numbers.
 */
#ifndef PYRESCHED_NODESCAN_H
#define PYRESCHED_NODESCAN_H

#include <stddef.h>
#include <stdint.h>

#define NODESCAN_LANES 64

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define NODESCAN_HAS_X86 1
#include <immintrin.h>
#else
#define NODESCAN_HAS_X86 0
#endif

/* Bit i is set where column r has at its place i at least wanted[r], for each of `width` columns
 * of NODESCAN_LANES values, one behind the other. No `wanted` may be INT64_MIN. */
typedef uint64_t (*nodescan_fn)(const int64_t *columns, ptrdiff_t width, const int64_t *wanted);

/* The largest of NODESCAN_LANES values. */
typedef int64_t (*nodemost_fn)(const int64_t *column);

static int64_t nodemost_portable(const int64_t *column) {
  int64_t four[4] = {column[0], column[1], column[2], column[3]};
  for (int i = 4; i < NODESCAN_LANES; i += 4)
    for (int k = 0; k < 4; k++)
      if (column[i + k] > four[k]) four[k] = column[i + k];
  for (int k = 1; k < 4; k++)
    if (four[k] > four[0]) four[0] = four[k];
  return four[0];
}

static uint64_t nodescan_portable(const int64_t *columns, ptrdiff_t width,
                                  const int64_t *wanted) {
  uint64_t fit = ~(uint64_t)0;
  for (ptrdiff_t r = 0; r < width && fit; r++, columns += NODESCAN_LANES) {
    uint64_t column = 0;
    for (int i = 0; i < NODESCAN_LANES; i += 8) {
      uint64_t eight = 0;
      for (int k = 0; k < 8; k++) eight |= (uint64_t)(columns[i + k] >= wanted[r]) << k;
      column |= eight << i;
    }
    fit &= column;
  }
  return fit;
}

#if NODESCAN_HAS_X86
__attribute__((target("avx2"))) static uint64_t nodescan_avx2(const int64_t *columns,
                                                              ptrdiff_t width,
                                                              const int64_t *wanted) {
  uint64_t fit = ~(uint64_t)0;
  for (ptrdiff_t r = 0; r < width && fit; r++, columns += NODESCAN_LANES) {
    const __m256i least = _mm256_set1_epi64x(wanted[r] - 1);
    uint64_t column = 0;
    for (int i = 0; i < NODESCAN_LANES; i += 4) {
      const __m256i four = _mm256_loadu_si256((const __m256i *)(columns + i));
      const __m256i enough = _mm256_cmpgt_epi64(four, least);
      column |= (uint64_t)(unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(enough)) << i;
    }
    fit &= column;
  }
  return fit;
}

__attribute__((target("avx2"))) static int64_t nodemost_avx2(const int64_t *column) {
  int64_t four[4];
  __m256i most = _mm256_loadu_si256((const __m256i *)column);
  for (int i = 4; i < NODESCAN_LANES; i += 4) {
    const __m256i next = _mm256_loadu_si256((const __m256i *)(column + i));
    most = _mm256_blendv_epi8(most, next, _mm256_cmpgt_epi64(next, most));
  }
  _mm256_storeu_si256((__m256i *)four, most);
  for (int k = 1; k < 4; k++)
    if (four[k] > four[0]) four[0] = four[k];
  return four[0];
}

__attribute__((target("avx512f"))) static int64_t nodemost_avx512(const int64_t *column) {
  __m512i most = _mm512_loadu_si512(column);
  for (int i = 8; i < NODESCAN_LANES; i += 8)
    most = _mm512_max_epi64(most, _mm512_loadu_si512(column + i));
  return _mm512_reduce_max_epi64(most);
}

__attribute__((target("avx512f"))) static uint64_t nodescan_avx512(const int64_t *columns,
                                                                   ptrdiff_t width,
                                                                   const int64_t *wanted) {
  uint64_t fit = ~(uint64_t)0;
  for (ptrdiff_t r = 0; r < width && fit; r++, columns += NODESCAN_LANES) {
    const __m512i least = _mm512_set1_epi64(wanted[r]);
    uint64_t column = 0;
    for (int i = 0; i < NODESCAN_LANES; i += 8) {
      const __m512i eight = _mm512_loadu_si512(columns + i);
      column |= (uint64_t)_mm512_cmpge_epi64_mask(eight, least) << i;
    }
    fit &= column;
  }
  return fit;
}
#endif

/* The fastest that this machine runs. */
static nodescan_fn nodescan_fastest(void) {
#if NODESCAN_HAS_X86
  if (__builtin_cpu_supports("avx512f")) return nodescan_avx512;
  if (__builtin_cpu_supports("avx2")) return nodescan_avx2;
#endif
  return nodescan_portable;
}

static nodemost_fn nodemost_fastest(void) {
#if NODESCAN_HAS_X86
  if (__builtin_cpu_supports("avx512f")) return nodemost_avx512;
  if (__builtin_cpu_supports("avx2")) return nodemost_avx2;
#endif
  return nodemost_portable;
}

/* The place of the lowest bit that is set; there is one. */
static inline int nodescan_lowest(uint64_t bits) {
#if defined(__GNUC__) || defined(__clang__)
  return __builtin_ctzll(bits);
#else
  int at = 0;
  while (!(bits >> at & 1)) at++;
  return at;
#endif
}

#endif
