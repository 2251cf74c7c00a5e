/* memory.c: malloc and its like of simulated processes: the system's, and a table of the blocks. */
#include "tests/simulator/memory.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/simulator/fiber.h"
#include "tests/simulator/process.h"
#include "tests/simulator/sanitizer.h"
#include "tests/simulator/seam.h"

struct block {
  char *at; /* NULL: free place */
  size_t size;
  void *caller;
  bool is_mapped; /* by map_block */
  bool is_used;   /* found while searching */
};

struct memory {
  struct block *blocks;
  uint32_t room, count; /* room: a power of two */
  uint64_t bytes, bytes_most;
};

static uint32_t place_of(const struct memory *memory, const void *at) {
  uint64_t hash = ((uint64_t)(uintptr_t)at >> 4) * UINT64_C(0x9e3779b97f4a7c15);
  uint32_t place = (uint32_t)(hash >> 32) & (memory->room - 1);
  while (memory->blocks[place].at && memory->blocks[place].at != at)
    place = (place + 1) & (memory->room - 1);
  return place;
}

static void grow(struct memory *memory) {
  struct memory old = *memory;
  memory->room = old.room ? old.room * 2 : 1024;
  memory->blocks = calloc(memory->room, sizeof *memory->blocks);
  if (!memory->blocks)
    abort();
  for (uint32_t i = 0; i < old.room; i++)
    if (old.blocks[i].at)
      memory->blocks[place_of(memory, old.blocks[i].at)] = old.blocks[i];
  free(old.blocks);
}

struct memory *memory_create(void) {
  struct memory *memory = calloc(1, sizeof *memory);
  if (!memory)
    abort();
  grow(memory);
  return memory;
}

uint64_t memory_bytes(const struct memory *memory) { return memory->bytes; }
uint64_t memory_bytes_most(const struct memory *memory) { return memory->bytes_most; }

/* What nobody has written yet, or has given back: whoever computes with it gets what no check takes for a value (a float
 * of these bytes is a NaN, a pointer leads nowhere). */
#define NOTHING 0xff

static void *blank(void *at, size_t size) { return at ? memset(at, NOTHING, size) : at; }

/* ---- large blocks: the runtime asks for many of which it uses little, so each is a mapping, with pages that cannot be touched around it,
 * and costs what is used of it; who uses one that was given back crashes ---- */

enum { LARGE_LEAST = 64 << 10, LARGE_MOST = 4 << 20, PAGE = 4096 };

static int nothing_file = -1; /* as many bytes of NOTHING as the largest such block has */

void memory_prepare(void) {
  static unsigned char bytes[LARGE_LEAST];
  nothing_file = nothing_file < 0 ? memfd_create("nothing", 0) : nothing_file;
  memset(bytes, NOTHING, sizeof bytes);
  for (size_t at = 0; at < LARGE_MOST; at += sizeof bytes)
    if (pwrite(nothing_file, bytes, sizeof bytes, (off_t)at) != sizeof bytes)
      abort();
}

static bool is_large(size_t size) { return size >= LARGE_LEAST && size <= LARGE_MOST && process_self(); }
static size_t pages_of(size_t size) { return (size + PAGE - 1) / PAGE * PAGE; }

static void *map_block(size_t size, bool is_zero) {
  size_t room = pages_of(size);
  char *around = mmap(NULL, room + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (around == MAP_FAILED)
    return NULL;
  int from = MAP_PRIVATE | MAP_FIXED | (is_zero ? MAP_ANONYMOUS : 0);
  char *at = mmap(around + PAGE, room, PROT_READ | PROT_WRITE, from, is_zero ? -1 : nothing_file, 0);
  if (at == MAP_FAILED)
    abort();
  track_bound(at + size, room - size, true);
  return at;
}

/* The addresses stay taken. */
static void unmap_block(char *at, size_t size) {
  size_t room = pages_of(size);
  track_bound(at + size, room - size, false);
  if (mmap(at, room, PROT_NONE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
    abort();
}

/* ---- the table ---- */

static void *note(void *at, size_t size, bool is_mapped, void *caller) {
  struct process *process = process_self();
  if (!at || !process)
    return at;
  struct memory *memory = process->memory;
  if (memory->count * 2 >= memory->room)
    grow(memory);
  memory->blocks[place_of(memory, at)] = (struct block){at, size, caller, is_mapped, false};
  memory->count++;
  memory->bytes += size;
  memory->bytes_most = memory->bytes > memory->bytes_most ? memory->bytes : memory->bytes_most;
  return at;
}

/* What it was; nothing when it is from a function of libc that is not simulated. What comes behind in the same run of places moves up, so
 * that it is still found. */
static struct block forget(void *at) {
  struct process *process = process_self();
  if (!at || !process)
    return (struct block){0};
  struct memory *memory = process->memory;
  uint32_t hole = place_of(memory, at), mask = memory->room - 1;
  struct block was = memory->blocks[hole];
  if (!was.at)
    return was;
  memory->bytes -= was.size;
  memory->count--;
  memory->blocks[hole].at = NULL;
  for (uint32_t i = (hole + 1) & mask; memory->blocks[i].at; i = (i + 1) & mask) {
    struct block moved = memory->blocks[i];
    memory->blocks[i].at = NULL;
    memory->blocks[place_of(memory, moved.at)] = moved;
  }
  return was;
}

static void *make(size_t size, void *caller) {
  bool is_mapped = is_large(size);
  return note(is_mapped ? map_block(size, false) : blank(malloc(size), size), size, is_mapped, caller);
}

static void give_back(const struct block *block) {
  if (block->is_mapped)
    unmap_block(block->at, block->size);
  else
    free(blank(block->at, block->size));
}

/* Of another size: never where it was, as it may be with any libc. */
static void *move(void *at, size_t size, void *caller) {
  struct block old = forget(at);
  if (at && !old.at)
    return note(realloc(at, size), size, false, caller);
  void *moved = make(size, caller);
  if (!moved)
    return NULL;
  if (at) {
    memcpy(moved, at, old.size < size ? old.size : size);
    give_back(&old);
  }
  return moved;
}

#define CALLER __builtin_return_address(0)

void *simulated_malloc(size_t size) { return make(size, CALLER); }
void *simulated_calloc(size_t count, size_t size) {
  bool is_mapped = (!count || size <= LARGE_MOST / count) && is_large(count * size);
  return note(is_mapped ? map_block(count * size, true) : calloc(count, size), count * size, is_mapped, CALLER);
}
void *simulated_aligned_alloc(size_t align, size_t size) {
  bool is_mapped = align <= PAGE && is_large(size);
  return note(is_mapped ? map_block(size, false) : blank(aligned_alloc(align, size), size), size, is_mapped, CALLER);
}
char *simulated_strdup(const char *text) { return note(strdup(text), strlen(text) + 1, false, CALLER); }
char *simulated_strndup(const char *text, size_t size) {
  char *copy = strndup(text, size);
  return note(copy, copy ? strlen(copy) + 1 : 0, false, CALLER);
}
void simulated_free(void *at) {
  struct block block = forget(at);
  if (block.at)
    give_back(&block);
  else
    free(at);
}
void *simulated_realloc(void *at, size_t size) { return move(at, size, CALLER); }
void *simulated_reallocarray(void *at, size_t count, size_t size) {
  return size && count > SIZE_MAX / size ? NULL : move(at, count * size, CALLER);
}
int simulated_asprintf(char **out, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int size = vasprintf(out, format, arguments);
  va_end(arguments);
  if (size >= 0)
    note(*out, (size_t)size + 1, false, CALLER);
  return size;
}

/* ---- what is left ---- */

#ifdef __SANITIZE_ADDRESS__ /* it looks also where nothing is kept */
#define LOOKS_ANYWHERE __attribute__((no_sanitize_address))
#else
#define LOOKS_ANYWHERE
#endif
static void search(struct memory *memory, const void *from, size_t size);

static void search_block(struct memory *memory, const void *pointer) {
  struct block *block = &memory->blocks[place_of(memory, pointer)];
  if (!block->at || block->is_used)
    return;
  block->is_used = true;
  search(memory, block->at, block->size);
}

/* A pointer to a block's begin, or a little behind it (a node inside of it), is a use. */
LOOKS_ANYWHERE static void search(struct memory *memory, const void *from, size_t size) {
  for (size_t at = 0; at + sizeof(void *) <= size; at += sizeof(void *)) {
    uintptr_t word;
    memcpy(&word, (const char *)from + at, sizeof word);
    if (word > 4096)
      search_block(memory, (const void *)word);
  }
}

static uint32_t count_unused(const struct memory *memory, size_t *largest, void **caller) {
  uint32_t lost = 0;
  *largest = 0;
  for (uint32_t i = 0; i < memory->room; i++) {
    const struct block *block = &memory->blocks[i];
    if (!block->at || block->is_used)
      continue;
    lost++;
    if (block->size >= *largest) {
      *largest = block->size;
      *caller = block->caller;
    }
  }
  return lost;
}

static void search_stack(void *memory, const void *stack, size_t size) { search(memory, stack, size); }

uint32_t memory_lost(const struct process *process, size_t *largest, void **caller) {
  struct memory *memory = process->memory;
  size_t size;
  const unsigned char *data = process_data(process, &size);
  for (uint32_t i = 0; i < memory->room; i++)
    memory->blocks[i].is_used = false;
  search(memory, data, size);
  if (count_unused(memory, largest, caller) > 0) /* long, so only then */
    fiber_each_stack(process, search_stack, memory);
  return count_unused(memory, largest, caller);
}
