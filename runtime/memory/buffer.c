/* buffer.c: one list of idle buffers for each size class; four classes an octave, so that at most a fifth is wasted. */
#include "runtime/memory/buffer.h"

#include "base/pages.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#define CLASS_COUNT 168                   /* 2^6 .. 2^47 bytes */
#define IDLE_BYTES_MAX (INT64_C(1) << 32) /* idle memory above this goes back to the system */

struct buffer {
  void *data;
  struct buffer_cache *cache;
  struct buffer *next;
  int64_t bytes;
  int class;
};
struct buffer_cache {
  pthread_mutex_t lock;
  struct buffer *idle[CLASS_COUNT];
  int64_t idle_bytes;
  int64_t alive; /* buffers that exist */
  bool closed;
};

/* The class whose size is the smallest that holds `bytes`, a multiple of 64. */
static int class_of(int64_t bytes, int64_t *size) {
  int64_t octave = 256;
  int class = 0;
  while (octave * 2 < bytes) {
    octave *= 2;
    class += 4;
  }
  for (int quarter = 0; quarter < 4; quarter++, class ++) {
    *size = octave + octave / 4 * quarter;
    if (*size >= bytes)
      return class;
  }
  *size = octave * 2;
  return class;
}

status buffer_cache_create(struct buffer_cache **out) {
  struct buffer_cache *cache = calloc(1, sizeof *cache);
  if (!cache)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  pthread_mutex_init(&cache->lock, NULL);
  *out = cache;
  return OK;
}

static void cache_free(struct buffer_cache *cache) {
  pthread_mutex_destroy(&cache->lock);
  free(cache);
}

static void buffer_free(struct buffer *buffer) {
  free(buffer->data);
  free(buffer);
}

void buffer_cache_close(struct buffer_cache *cache) {
  if (!cache)
    return;
  pthread_mutex_lock(&cache->lock);
  cache->closed = true;
  for (int i = 0; i < CLASS_COUNT; i++)
    while (cache->idle[i]) {
      struct buffer *buffer = cache->idle[i];
      cache->idle[i] = buffer->next;
      cache->alive--;
      buffer_free(buffer);
    }
  bool last = cache->alive == 0;
  pthread_mutex_unlock(&cache->lock);
  if (last)
    cache_free(cache);
}

/* The tensor's release_data. */
static void buffer_release(struct tensor *tensor) {
  struct buffer *buffer = tensor->owner;
  struct buffer_cache *cache = buffer->cache;
  pthread_mutex_lock(&cache->lock);
  bool keep = !cache->closed && cache->idle_bytes + buffer->bytes <= IDLE_BYTES_MAX;
  if (keep) {
    cache->idle_bytes += buffer->bytes;
    buffer->next = cache->idle[buffer->class];
    cache->idle[buffer->class] = buffer;
  } else {
    cache->alive--;
  }
  bool last = cache->closed && cache->alive == 0;
  pthread_mutex_unlock(&cache->lock);
  if (!keep)
    buffer_free(buffer);
  if (last)
    cache_free(cache);
}

static struct buffer *buffer_take(struct buffer_cache *cache, int64_t bytes) {
  int64_t size;
  int class = class_of(bytes, &size);
  pthread_mutex_lock(&cache->lock);
  struct buffer *buffer = cache->idle[class];
  if (buffer) {
    cache->idle[class] = buffer->next;
    cache->idle_bytes -= buffer->bytes;
  } else {
    cache->alive++;
  }
  pthread_mutex_unlock(&cache->lock);
  if (buffer)
    return buffer;
  buffer = calloc(1, sizeof *buffer);
  void *data = pages_create((size_t)size);
  if (buffer && data) {
    *buffer = (struct buffer){.data = data, .cache = cache, .bytes = size, .class = class};
    return buffer;
  }
  free(buffer);
  free(data);
  pthread_mutex_lock(&cache->lock);
  cache->alive--;
  pthread_mutex_unlock(&cache->lock);
  return NULL;
}

status buffer_tensor(struct buffer_cache *cache, enum dtype dtype, const struct shape *shape, struct tensor **out) {
  int64_t count = shape_count(shape);
  if (count < 0)
    return shape_refuse(shape);
  int64_t bytes = count * (int64_t)dtype_size(dtype);
  struct tensor *tensor = calloc(1, sizeof *tensor);
  struct buffer *buffer = tensor ? buffer_take(cache, bytes) : NULL;
  if (!buffer) {
    free(tensor);
    return fail(RESOURCE_EXHAUSTED, "no memory for a %s tensor of shape %s", dtype_name(dtype), shape_text(shape));
  }
  tensor->dtype = dtype;
  tensor->shape = *shape;
  tensor->data = buffer->data;
  tensor->count = count;
  tensor->references = 1;
  tensor->release_data = buffer_release;
  tensor->owner = buffer;
  *out = tensor;
  return OK;
}
