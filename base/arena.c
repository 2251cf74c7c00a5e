/* arena.c: a list of blocks, the newest first; each new one is at least twice the last, up to 16 MiB. */
#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arena_block {
  struct arena_block *next;
  size_t size, used; /* of data */
  char *data;
};

#define BLOCK_FIRST ((size_t)64 << 10)
#define BLOCK_MAX ((size_t)16 << 20)

void arena_init(struct arena *arena) { *arena = (struct arena){0}; }

static void block_free(struct arena_block *b) {
  free(b->data);
  free(b);
}

void arena_deinit(struct arena *arena) {
  for (struct arena_block *b = arena->head, *next; b; b = next) {
    next = b->next;
    block_free(b);
  }
  *arena = (struct arena){0};
}

void arena_reset(struct arena *arena) {
  struct arena_block *best = NULL;
  for (struct arena_block *b = arena->head; b; b = b->next)
    if (!best || b->size > best->size)
      best = b;
  for (struct arena_block *b = arena->head, *next; b; b = next) {
    next = b->next;
    if (b != best)
      block_free(b);
  }
  arena->head = best;
  arena->total = best ? best->size : 0;
  if (best) {
    memset(best->data, 0, best->used);
    best->next = NULL;
    best->used = 0;
  }
}

static void out_of_memory(size_t size) {
  fprintf(stderr, "error: RESOURCE_EXHAUSTED: out of memory (%zu bytes)\n", size);
  exit(70);
}

static struct arena_block *block_add(struct arena *arena, size_t needed) {
  size_t size = arena->head ? arena->head->size * 2 : BLOCK_FIRST;
  size = size > BLOCK_MAX ? BLOCK_MAX : size;
  size = size < needed ? needed : size;
  struct arena_block *b = malloc(sizeof *b);
  char *data = calloc(1, size);
  if (!b || !data)
    out_of_memory(size);
  *b = (struct arena_block){.next = arena->head, .size = size, .data = data};
  arena->head = b;
  arena->total += size;
  return b;
}

void *arena_alloc_aligned(struct arena *arena, size_t size, size_t align) {
  struct arena_block *b = arena->head;
  for (int attempt = 0;; attempt++) {
    if (b) {
      uintptr_t start = ((uintptr_t)b->data + b->used + align - 1) & ~(uintptr_t)(align - 1);
      size_t offset = start - (uintptr_t)b->data;
      if (offset <= b->size && size <= b->size - offset) {
        b->used = offset + size;
        return (void *)start;
      }
    }
    if (attempt || size > SIZE_MAX / 2)
      out_of_memory(size);
    b = block_add(arena, size + align);
  }
}
void *arena_alloc(struct arena *arena, size_t size) { return arena_alloc_aligned(arena, size, 16); }

void *arena_copy(struct arena *arena, const void *data, size_t size) {
  void *p = arena_alloc(arena, size);
  if (size)
    memcpy(p, data, size);
  return p;
}
char *arena_strndup(struct arena *arena, const char *text, size_t length) {
  char *p = arena_alloc(arena, length + 1);
  if (length)
    memcpy(p, text, length);
  return p;
}
char *arena_strdup(struct arena *arena, const char *text) { return arena_strndup(arena, text, strlen(text)); }

char *arena_printf(struct arena *arena, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, args);
  va_end(args);
  char *p = arena_alloc(arena, (size_t)n + 1);
  vsnprintf(p, (size_t)n + 1, format, again);
  va_end(again);
  return p;
}
