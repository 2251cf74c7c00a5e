/* dataset_cache.c: elements that are kept by the first pass over a dataset, and given again by those after it. They are kept in memory,
 * for as long as the dataset lives, also where a file is named. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "runtime/data/dataset.h"

/* Belongs to the dataset. Complete when it is there. */
struct dataset_cache {
  VEC(struct tensor *) tensors; /* components side by side */
};
struct cache_state {
  VEC(struct tensor *) kept; /* by this pass, until it is over */
  uint32_t at;
  bool decided, reads;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of every `cache` */

void dataset_cache_free(struct dataset_cache *cache) {
  if (!cache)
    return;
  element_release(cache->tensors.items, cache->tensors.count);
  vec_free(&cache->tensors);
  free(cache);
}

bool dataset_is_cached(const struct dataset *dataset) {
  pthread_mutex_lock(&lock);
  bool is_cached = dataset->memory->cache != NULL;
  pthread_mutex_unlock(&lock);
  return is_cached;
}

static void cache_stop(struct cursor *c) {
  struct cache_state *s = c->state;
  element_release(s->kept.items, s->kept.count);
  vec_free(&s->kept);
}

/* The pass is over: what it kept is there for the others, unless another was faster. */
static status cache_complete(struct cursor *c) {
  struct cache_state *s = c->state;
  struct dataset_cache *cache = calloc(1, sizeof *cache);
  if (!cache)
    return fail(RESOURCE_EXHAUSTED, "no memory for a cache");
  for (uint32_t i = 0; i < s->kept.count; i++)
    vec_push(&cache->tensors, s->kept.items[i]);
  s->kept.count = 0;
  pthread_mutex_lock(&lock);
  bool is_first = c->dataset->memory->cache == NULL;
  if (is_first)
    c->dataset->memory->cache = cache;
  pthread_mutex_unlock(&lock);
  if (!is_first)
    dataset_cache_free(cache);
  return OK;
}

static status cache_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct cache_state *s = c->state;
  uint32_t count = c->dataset->component_count;
  if (!s->decided) {
    s->reads = dataset_is_cached(c->dataset);
    s->decided = true;
  }
  if (s->reads) {
    *end = s->at >= c->dataset->memory->cache->tensors.count;
    for (uint32_t i = 0; !*end && i < count; i++)
      out[i] = tensor_retain(c->dataset->memory->cache->tensors.items[s->at++]);
    return OK;
  }
  TRY(cursor_source_next(c, 0, run, out, end));
  if (*end)
    return cache_complete(c);
  for (uint32_t i = 0; i < count; i++)
    vec_push(&s->kept, tensor_retain(out[i]));
  return OK;
}

const struct dataset_kind dataset_caches[] = {
  {"CacheDataset", sizeof(struct cache_state), cache_next, cache_stop, NULL, .size = dataset_size_of_source,
   .batch = dataset_batch_of_source, .has_places = dataset_has_places},
  {"CacheDatasetV2", sizeof(struct cache_state), cache_next, cache_stop, NULL, .size = dataset_size_of_source,
   .batch = dataset_batch_of_source, .has_places = dataset_has_places},
  {0},
};
