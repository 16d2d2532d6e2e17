/* The search for the best-fit node over columns, once as portable C and once for AVX2.
 *
 * Here and not in Cython because it is compiled twice, with and without `target("avx2")`, and
 * the twin is chosen when the program runs. Both give the same answer: they are one text, in
 * whole numbers. The loops over a block have no branches, so that a compiler can vectorise them.
 */
#ifndef PYRESCHED_NODESCAN_H
#define PYRESCHED_NODESCAN_H

#include <stddef.h>
#include <stdint.h>

#define NODESCAN_BLOCK 64

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define NODESCAN_HAS_AVX2 1
#define NODESCAN_AVX2 __attribute__((target("avx2")))
#else
#define NODESCAN_HAS_AVX2 0
#endif

typedef ptrdiff_t (*nodescan_fn)(const int64_t *rows, ptrdiff_t stride, ptrdiff_t width,
                                 const int64_t *request, const uint8_t *mask,
                                 const uint8_t *open);

/* The first node, in lexicographic order of its amounts and then of its index, with every amount
 * at least that of `request` and `mask` and `open` 1; -1 for none. `rows` is [width][stride],
 * `stride` is whole blocks, `width` at least 1. */
#define NODESCAN_DEFINE(name, attribute)                                                        \
  attribute static ptrdiff_t name(const int64_t *rows, ptrdiff_t stride, ptrdiff_t width,       \
                                  const int64_t *request, const uint8_t *mask,                  \
                                  const uint8_t *open) {                                        \
    int64_t misses[NODESCAN_BLOCK], before[NODESCAN_BLOCK], equal[NODESCAN_BLOCK];              \
    int64_t least = INT64_MAX;                                                                  \
    ptrdiff_t best = -1;                                                                        \
    for (ptrdiff_t start = 0; start < stride; start += NODESCAN_BLOCK) {                        \
      const int64_t *column = rows + start;                                                     \
      int64_t wanted = request[0], some = 0;                                                    \
      for (int i = 0; i < NODESCAN_BLOCK; i++)                                                  \
        misses[i] = -(int64_t)((column[i] < wanted) | (column[i] > least));                     \
      for (ptrdiff_t r = 1; r < width; r++) {                                                   \
        column = rows + r * stride + start;                                                     \
        wanted = request[r];                                                                    \
        for (int i = 0; i < NODESCAN_BLOCK; i++) misses[i] |= -(int64_t)(column[i] < wanted);   \
      }                                                                                         \
      for (int i = 0; i < NODESCAN_BLOCK; i++) some |= ~misses[i];                              \
      if (!some) continue;                                                                      \
      for (int i = 0; i < NODESCAN_BLOCK; i++)                                                  \
        misses[i] |= (int64_t)(mask[start + i] & open[start + i]) - 1;                          \
      if (best >= 0) {                                                                          \
        /* Later nodes win only if they come strictly before the best so far. */                \
        for (int i = 0; i < NODESCAN_BLOCK; i++) before[i] = 0, equal[i] = -1;                  \
        for (ptrdiff_t r = 0; r < width; r++) {                                                 \
          int64_t had = rows[r * stride + best];                                                \
          column = rows + r * stride + start;                                                   \
          for (int i = 0; i < NODESCAN_BLOCK; i++) {                                            \
            before[i] |= equal[i] & -(int64_t)(column[i] < had);                                \
            equal[i] &= -(int64_t)(column[i] == had);                                           \
          }                                                                                     \
        }                                                                                       \
        for (int i = 0; i < NODESCAN_BLOCK; i++) misses[i] |= ~before[i];                       \
      }                                                                                         \
      for (int i = 0; i < NODESCAN_BLOCK; i++) {                                                \
        if (misses[i]) continue;                                                                \
        ptrdiff_t r = 0;                                                                        \
        if (best >= 0)                                                                          \
          while (r < width && rows[r * stride + start + i] == rows[r * stride + best]) r++;     \
        if (best < 0 || (r < width && rows[r * stride + start + i] < rows[r * stride + best]))  \
          best = start + i;                                                                     \
      }                                                                                         \
      if (best >= 0) least = rows[best];                                                        \
    }                                                                                           \
    return best;                                                                                \
  }

NODESCAN_DEFINE(nodescan_portable, )
#if NODESCAN_HAS_AVX2
NODESCAN_DEFINE(nodescan_avx2, NODESCAN_AVX2)
#endif

/* The fastest that this machine runs. */
static nodescan_fn nodescan_fastest(void) {
#if NODESCAN_HAS_AVX2
  if (__builtin_cpu_supports("avx2")) return nodescan_avx2;
#endif
  return nodescan_portable;
}

#endif
