/* receive_pool.c: a list of kept blocks, the last one given back first (its pages are the warmest). */
#include "runtime/net/receive_pool.h"

#include <pthread.h>
#include <stdlib.h>
#include "base/pages.h"
#include "runtime/net/net_limits.h"

#define ALIGNMENT 64

struct block {
  struct block *next;
  uint64_t room;
  void *data;
};
static struct {
  pthread_mutex_t lock;
  struct block *kept;
  uint64_t kept_bytes, used_bytes, peak_bytes;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct block *block_create(uint64_t bytes) {
  struct block *block = malloc(sizeof *block);
  if (!block)
    return NULL;
  block->room = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  block->data = pages_create(block->room);
  if (!block->data) {
    free(block);
    return NULL;
  }
  return block;
}

static void block_destroy(struct block *block) {
  free(block->data);
  free(block);
}

/* A kept block that fits without wasting more than a quarter. */
static struct block *kept_take(uint64_t bytes) {
  for (struct block **at = &pool.kept; *at; at = &(*at)->next) {
    struct block *block = *at;
    if (block->room >= bytes && block->room - block->room / 4 <= bytes + ALIGNMENT) {
      *at = block->next;
      pool.kept_bytes -= block->room;
      return block;
    }
  }
  return NULL;
}

/* Takes blocks off the list until the pool is within its bounds. */
static struct block *kept_cut(void) {
  uint64_t bound = pool.peak_bytes > NET_POOL_BYTES ? pool.peak_bytes : NET_POOL_BYTES;
  struct block *cut = NULL, **at = &pool.kept;
  uint64_t bytes = pool.used_bytes;
  while (*at && bytes + (*at)->room <= bound) {
    bytes += (*at)->room;
    at = &(*at)->next;
  }
  cut = *at;
  *at = NULL;
  for (const struct block *block = cut; block; block = block->next)
    pool.kept_bytes -= block->room;
  return cut;
}

static void blocks_destroy(struct block *block) {
  while (block) {
    struct block *next = block->next;
    block_destroy(block);
    block = next;
  }
}

static void give_back(struct tensor *tensor) {
  struct block *block = tensor->owner;
  pthread_mutex_lock(&pool.lock);
  pool.used_bytes -= block->room;
  pool.kept_bytes += block->room;
  block->next = pool.kept;
  pool.kept = block;
  struct block *cut = kept_cut();
  pthread_mutex_unlock(&pool.lock);
  blocks_destroy(cut);
}

static struct block *block_take(uint64_t bytes) {
  pthread_mutex_lock(&pool.lock);
  struct block *block = kept_take(bytes);
  pthread_mutex_unlock(&pool.lock);
  if (!block)
    block = block_create(bytes);
  if (!block)
    return NULL;
  pthread_mutex_lock(&pool.lock);
  pool.used_bytes += block->room;
  if (pool.used_bytes > pool.peak_bytes)
    pool.peak_bytes = pool.used_bytes;
  struct block *cut = kept_cut();
  pthread_mutex_unlock(&pool.lock);
  blocks_destroy(cut);
  return block;
}

status receive_pool_tensor(enum dtype dtype, const struct shape *shape, struct tensor **out) {
  int64_t count = shape_count(shape);
  uint64_t bytes = count > 0 ? (uint64_t)count * dtype_size(dtype) : 0;
  if (bytes < NET_POOL_TENSOR_BYTES)
    return tensor_create(dtype, shape, out); /* malloc keeps small ones itself */
  struct tensor *tensor = calloc(1, sizeof *tensor);
  struct block *block = tensor ? block_take(bytes) : NULL;
  if (!block) {
    free(tensor);
    return fail(RESOURCE_EXHAUSTED, "no memory for a tensor %s%s", dtype_name(dtype), shape_text(shape));
  }
  tensor->dtype = dtype;
  tensor->shape = *shape;
  tensor->count = count;
  tensor->data = block->data;
  tensor->references = 1;
  tensor->owner = block;
  tensor->release_data = give_back;
  *out = tensor;
  return OK;
}

void receive_pool_trim(void) {
  pthread_mutex_lock(&pool.lock);
  struct block *kept = pool.kept;
  pool.kept = NULL;
  pool.kept_bytes = 0;
  pool.peak_bytes = pool.used_bytes;
  pthread_mutex_unlock(&pool.lock);
  blocks_destroy(kept);
}
