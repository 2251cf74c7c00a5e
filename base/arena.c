/* arena.c: a chain of blocks, each twice the one before up to 16 MiB; a large request gets a block of its own. */
#include "base/arena.h"

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_MIN ((size_t)16 << 10)
#define BLOCK_MAX ((size_t)16 << 20)

struct arena_block {
  struct arena_block *next;
  size_t size, used; /* of data */
  alignas(16) unsigned char data[];
};

_Noreturn static void out_of_memory(size_t size) {
  fprintf(stderr, "error: RESOURCE_EXHAUSTED: out of memory: %zu bytes asked for\n", size);
  exit(65);
}

void arena_init(struct arena *arena) { *arena = (struct arena){0}; }

void arena_deinit(struct arena *arena) {
  struct arena_block *block = arena->head;
  while (block) {
    struct arena_block *next = block->next;
    free(block);
    block = next;
  }
  *arena = (struct arena){0};
}

static struct arena_block *block_add(struct arena *arena, size_t size) {
  size_t wanted = arena->head ? arena->head->size * 2 : BLOCK_MIN;
  if (wanted > BLOCK_MAX)
    wanted = BLOCK_MAX;
  bool own = size > wanted;
  if (own)
    wanted = size;
  struct arena_block *block = size > SIZE_MAX / 2 ? NULL : calloc(1, sizeof *block + wanted);
  if (!block)
    out_of_memory(size);
  block->size = wanted;
  arena->total += wanted;
  if (own && arena->head) { /* behind the head, whose rest stays in use */
    block->next = arena->head->next;
    arena->head->next = block;
  } else {
    block->next = arena->head;
    arena->head = block;
  }
  return block;
}

void *arena_alloc_aligned(struct arena *arena, size_t size, size_t align) {
  assert(align && !(align & (align - 1)));
  if (size > SIZE_MAX / 2)
    out_of_memory(size);
  struct arena_block *block = arena->head;
  for (int attempt = 0;; attempt++) {
    if (block) {
      uintptr_t base = (uintptr_t)block->data;
      size_t start = (size_t)(((base + block->used + align - 1) & ~(uintptr_t)(align - 1)) - base);
      if (start <= block->size && size <= block->size - start) {
        block->used = start + size;
        return block->data + start;
      }
    }
    assert(attempt == 0);
    block = block_add(arena, size + (align > 16 ? align : 0));
  }
}

void *arena_alloc(struct arena *arena, size_t size) { return arena_alloc_aligned(arena, size, 16); }

void *arena_copy(struct arena *arena, const void *data, size_t size) {
  void *copy = arena_alloc(arena, size);
  if (size)
    memcpy(copy, data, size);
  return copy;
}

char *arena_strndup(struct arena *arena, const char *text, size_t length) {
  char *copy = arena_alloc_aligned(arena, length + 1, 1);
  if (length)
    memcpy(copy, text, length);
  return copy;
}

char *arena_strdup(struct arena *arena, const char *text) { return arena_strndup(arena, text, strlen(text)); }

char *arena_printf(struct arena *arena, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  size_t size = length > 0 ? (size_t)length : 0;
  char *text = arena_alloc_aligned(arena, size + 1, 1);
  if (length > 0)
    (void)vsnprintf(text, size + 1, format, again);
  va_end(again);
  return text;
}
