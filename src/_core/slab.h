/* Small blocks of a few sizes, from chunks that go back to the system when empty.
 *
 *   chunk (256 KiB, aligned to its size): | head, 64 bytes | block | block | ...
 *
 * A chunk holds blocks of one size, a multiple of eight; 64 bytes are one cache line each. The
 * chunk of a block is its address with the low bits cleared. Chunks with room form a list for
 * each size; freed blocks of a chunk form another. What is larger than SLAB_MOST comes from
 * malloc, which spends eight bytes on each and rounds up to sixteen. Called with the GIL held. A
 * sanitizer build takes each block from malloc, so that a use after the end is seen. */
#ifndef PYRESCHED_SLAB_H
#define PYRESCHED_SLAB_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { SLAB_MOST = 256 };

#if defined(__SANITIZE_ADDRESS__)

static inline void *slab_take(size_t size) { return malloc(size); }
static inline void slab_give(void *block, size_t size) {
  (void)size;
  free(block);
}
static inline size_t slab_bytes(void) { return 0; }

#else

#include <sys/mman.h>

enum { SLAB_CHUNK = 1 << 18, SLAB_HEAD = 64, SLAB_STEP = 8 };

typedef struct slab_chunk {
  struct slab_chunk *before, *after; /* in the list of those with room */
  void *freed;                       /* first of the blocks that came back */
  uint32_t used;                     /* blocks out */
  uint32_t fresh;                    /* blocks that were never out begin here */
  uint32_t most;                     /* blocks that it has */
} slab_chunk;

static slab_chunk *slab_room[SLAB_MOST / SLAB_STEP + 1]; /* by size */
static size_t slab_chunks;

static void slab_unlink(slab_chunk **room, slab_chunk *chunk) {
  if (chunk->before)
    chunk->before->after = chunk->after;
  else
    *room = chunk->after;
  if (chunk->after)
    chunk->after->before = chunk->before;
}

static void slab_link(slab_chunk **room, slab_chunk *chunk) {
  chunk->before = NULL;
  chunk->after = *room;
  if (*room)
    (*room)->before = chunk;
  *room = chunk;
}

/* An aligned chunk: twice the room is mapped, and what is not needed given back. */
static slab_chunk *slab_map(void) {
  char *room = (char *)mmap(
      NULL, 2 * (size_t)SLAB_CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == (char *)MAP_FAILED)
    return NULL;
  char *start = (char *)(((uintptr_t)room + SLAB_CHUNK - 1) & ~((uintptr_t)SLAB_CHUNK - 1));
  if (start > room)
    munmap(room, (size_t)(start - room));
  munmap(start + SLAB_CHUNK, (size_t)(room + SLAB_CHUNK - start));
  slab_chunks++;
  return (slab_chunk *)start; /* of zeros */
}

/* A block, its content undefined, or NULL when there is no memory. */
static void *slab_take(size_t size) {
  const size_t step = (size + SLAB_STEP - 1) / SLAB_STEP;
  slab_chunk *chunk;
  void *block;
  if (size > SLAB_MOST)
    return malloc(size);
  chunk = slab_room[step];
  if (!chunk) {
    chunk = slab_map();
    if (!chunk)
      return NULL;
    chunk->most = (uint32_t)((SLAB_CHUNK - SLAB_HEAD) / (step * SLAB_STEP));
    slab_link(&slab_room[step], chunk);
  }
  block = chunk->freed;
  if (block)
    chunk->freed = *(void **)block;
  else
    block = (char *)chunk + SLAB_HEAD + step * SLAB_STEP * (size_t)chunk->fresh++;
  if (++chunk->used == chunk->most)
    slab_unlink(&slab_room[step], chunk);
  return block;
}

/* Give back a block that was taken with the same size. */
static void slab_give(void *block, size_t size) {
  const size_t step = (size + SLAB_STEP - 1) / SLAB_STEP;
  slab_chunk *chunk;
  if (size > SLAB_MOST) {
    free(block);
    return;
  }
  chunk = (slab_chunk *)((uintptr_t)block & ~((uintptr_t)SLAB_CHUNK - 1));
  *(void **)block = chunk->freed;
  chunk->freed = block;
  if (chunk->used-- == chunk->most)
    slab_link(&slab_room[step], chunk);
  /* One empty chunk stays, or a program at the edge would map and unmap for ever. */
  if (chunk->used == 0 && (chunk->before || chunk->after)) {
    slab_unlink(&slab_room[step], chunk);
    munmap(chunk, SLAB_CHUNK);
    slab_chunks--;
  }
}

/* What the chunks take. */
static inline size_t slab_bytes(void) { return slab_chunks * (size_t)SLAB_CHUNK; }

#endif
#endif
