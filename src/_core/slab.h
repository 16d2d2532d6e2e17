/* Blocks of 64 bytes, one cache line each, from chunks that go back to the system when empty.
 *
 *   chunk (256 KiB, aligned to its size): | head | block | block | ... 4,095 of them
 *
 * The chunk of a block is its address with the low bits cleared. Chunks with room form a list;
 * freed blocks of a chunk form another. Called with the GIL held. A sanitizer build takes each
 * block from malloc, so that a use after the end is seen. */
#ifndef PYRESCHED_SLAB_H
#define PYRESCHED_SLAB_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { SLAB_BLOCK = 64 };

#if defined(__SANITIZE_ADDRESS__)

static inline void *slab_take(void) { return malloc(SLAB_BLOCK); }
static inline void slab_give(void *block) { free(block); }
static inline size_t slab_bytes(void) { return 0; }

#else

#include <sys/mman.h>

enum { SLAB_CHUNK = 1 << 18, SLAB_BLOCKS = SLAB_CHUNK / SLAB_BLOCK - 1 };

typedef struct slab_chunk {
  struct slab_chunk *before, *after; /* in the list of those with room */
  void *freed;                       /* first of the blocks that came back */
  uint32_t used;                     /* blocks out */
  uint32_t fresh;                    /* blocks that were never out begin here */
} slab_chunk;

static slab_chunk *slab_room;
static size_t slab_chunks;

static void slab_unlink(slab_chunk *chunk) {
  if (chunk->before)
    chunk->before->after = chunk->after;
  else
    slab_room = chunk->after;
  if (chunk->after)
    chunk->after->before = chunk->before;
}

static void slab_link(slab_chunk *chunk) {
  chunk->before = NULL;
  chunk->after = slab_room;
  if (slab_room)
    slab_room->before = chunk;
  slab_room = chunk;
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
static void *slab_take(void) {
  slab_chunk *chunk = slab_room;
  void *block;
  if (!chunk) {
    chunk = slab_map();
    if (!chunk)
      return NULL;
    slab_link(chunk);
  }
  block = chunk->freed;
  if (block)
    chunk->freed = *(void **)block;
  else
    block = (char *)chunk + SLAB_BLOCK * (size_t)++chunk->fresh;
  if (++chunk->used == SLAB_BLOCKS)
    slab_unlink(chunk);
  return block;
}

static void slab_give(void *block) {
  slab_chunk *chunk = (slab_chunk *)((uintptr_t)block & ~((uintptr_t)SLAB_CHUNK - 1));
  *(void **)block = chunk->freed;
  chunk->freed = block;
  if (chunk->used-- == SLAB_BLOCKS)
    slab_link(chunk);
  /* One empty chunk stays, or a program at the edge would map and unmap for ever. */
  if (chunk->used == 0 && (chunk->before || chunk->after)) {
    slab_unlink(chunk);
    munmap(chunk, SLAB_CHUNK);
    slab_chunks--;
  }
}

/* What the chunks take. */
static inline size_t slab_bytes(void) { return slab_chunks * (size_t)SLAB_CHUNK; }

#endif
#endif
