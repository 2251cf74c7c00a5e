/* barrier.c: the incomplete tuples in a hash table of lists, the complete ones in a priority queue. */
#include "runtime/resource/barrier.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "runtime/value/tensor_list.h"

struct partial {
  struct partial *next; /* in its bucket */
  uint64_t hash;
  struct tensor *key;    /* a scalar */
  int64_t place;         /* the number of the insertion that began it */
  struct tensor **items; /* NULL: not there yet */
};
struct barrier {
  struct resource resource; /* first */
  struct barrier_spec spec;
  pthread_mutex_t lock;
  struct partial **buckets;
  uint64_t bucket_count; /* a power of 2, at least as many as tuples */
  int64_t partial_count, next_place;
  struct queue *ready;
  bool closed, cancelled;
};

/* ---- tuples ---- */

static void partial_free(struct partial *p, uint32_t count) {
  for (uint32_t i = 0; p->items && i < count; i++)
    tensor_release(p->items[i]);
  tensor_release(p->key);
  free(p->items);
  free(p);
}

static void partials_clear(struct barrier *b) {
  for (uint64_t i = 0; i < b->bucket_count; i++) {
    for (struct partial *p = b->buckets[i], *next; p; p = next) {
      next = p->next;
      partial_free(p, b->spec.component_count);
    }
    b->buckets[i] = NULL;
  }
  b->partial_count = 0;
}

/* Room for one more. */
static status buckets_reserve(struct barrier *b) {
  if ((uint64_t)b->partial_count < b->bucket_count)
    return OK;
  uint64_t count = b->bucket_count ? b->bucket_count * 2 : 16;
  struct partial **buckets = calloc(count, sizeof *buckets);
  if (!buckets)
    return fail(RESOURCE_EXHAUSTED, "no memory for %llu tuples", (unsigned long long)count);
  for (uint64_t i = 0; i < b->bucket_count; i++)
    for (struct partial *p = b->buckets[i], *next; p; p = next) {
      struct partial **at = &buckets[p->hash & (count - 1)];
      next = p->next;
      p->next = *at;
      *at = p;
    }
  free(b->buckets);
  b->buckets = buckets;
  b->bucket_count = count;
  return OK;
}

/* The link that points to the tuple of the key, or the last link of its bucket; there is a bucket. */
static struct partial **partial_find(struct barrier *b, const struct string_view *key, uint64_t hash) {
  struct partial **at = &b->buckets[hash & (b->bucket_count - 1)];
  while (*at && !((*at)->hash == hash && string_equal(*(const struct string_view *)(*at)->key->data, *key)))
    at = &(*at)->next;
  return at;
}

static status partial_create(struct barrier *b, const struct string_view *key, uint64_t hash, struct partial **at) {
  struct partial *p = calloc(1, sizeof *p);
  if (!p)
    return fail(RESOURCE_EXHAUSTED, "no memory for a tuple");
  p->items = calloc(b->spec.component_count + 1u, sizeof *p->items);
  status result =
    p->items ? tensor_copy_in(DTYPE_STRING, &(struct shape){0}, key, &p->key) : fail(RESOURCE_EXHAUSTED, "no memory for a tuple");
  if (result != OK) {
    partial_free(p, b->spec.component_count);
    return result;
  }
  p->hash = hash;
  p->place = b->next_place;
  *at = p;
  b->partial_count++;
  return OK;
}

static bool is_complete(const struct barrier *b, const struct partial *p) {
  for (uint32_t i = 0; i < b->spec.component_count; i++)
    if (!p->items[i])
      return false;
  return true;
}

static status check_shapes(const struct barrier *b, const struct partial *p) {
  for (uint32_t i = 0; i < b->spec.component_count; i++) {
    const struct shape *want = &b->spec.components[i].shape, *is = &p->items[i]->shape;
    if (!shape_equal(want, is))
      return fail(INVALID_ARGUMENT, "Shape mismatch in tuple component %u. Expected %s, got %s", i + 2, shape_text(want), shape_text(is));
  }
  return OK;
}

/* The complete tuple at the link becomes one of the queue: place, key, components. It is a partial one no more. */
static status finish_tuple(struct barrier *b, struct partial **at, struct tensor **tuple) {
  struct partial *p = *at;
  *at = p->next;
  b->partial_count--;
  status result = check_shapes(b, p);
  if (result == OK)
    result = tensor_copy_in(DTYPE_INT64, &(struct shape){0}, &p->place, &tuple[0]);
  if (result == OK) {
    tuple[1] = tensor_retain(p->key);
    for (uint32_t i = 0; i < b->spec.component_count; i++)
      tuple[i + 2] = tensor_retain(p->items[i]);
  }
  partial_free(p, b->spec.component_count);
  return result;
}

/* ---- inserting ---- */

struct insertion {
  struct barrier *barrier;
  uint32_t component;
  const struct tensor *keys, *values;
  struct tensor **ready; /* complete tuples, behind each other */
  int64_t ready_count;
  bool began; /* a tuple */
};

static status insert_one(struct insertion *in, int64_t i) {
  struct barrier *b = in->barrier;
  const struct string_view *key = (const struct string_view *)in->keys->data + i;
  uint64_t hash = hash_bytes(key->data, key->size, 0);
  TRY(buckets_reserve(b));
  struct partial **at = partial_find(b, key, hash);
  if (!*at && b->closed)
    return fail(CANCELLED,
                "Barrier %s is closed, but attempted to insert a brand new key: %.*s.  Pending enqueues cancelled: %d.  "
                "Insertion index: %lld.  Number of incomplete keys: %lld.",
                b->resource.name, (int)key->size, key->data, b->cancelled, (long long)i, (long long)b->partial_count);
  if (!*at) {
    TRY(partial_create(b, key, hash, at));
    in->began = true;
  }
  struct partial *p = *at;
  if (p->items[in->component])
    return fail(INVALID_ARGUMENT, "Key %.*s already has a value for component %u in barrier %s", (int)key->size, key->data, in->component,
                b->resource.name);
  TRY(tensor_row(in->values, i, &p->items[in->component]));
  if (!is_complete(b, p))
    return OK;
  TRY(finish_tuple(b, at, in->ready + in->ready_count * (b->spec.component_count + 2)));
  in->ready_count++;
  return OK;
}

static status insert_all(struct insertion *in) {
  struct barrier *b = in->barrier;
  int64_t count = in->keys->count;
  status result = OK;
  if (b->closed && (b->cancelled || (count > 0 && !b->partial_count)))
    return fail(CANCELLED,
                "Barrier %s is closed.  Pending enqueues cancelled: %d.  Number of new insertions: %lld.  Number of incomplete "
                "keys: %lld.",
                b->resource.name, b->cancelled, (long long)count, (long long)b->partial_count);
  for (int64_t i = 0; i < count && result == OK; i++)
    result = insert_one(in, i);
  if (result == OK)
    b->next_place += in->began;
  return result;
}

static status check_insertion(const struct barrier *b, uint32_t component, const struct tensor *keys, const struct tensor *values) {
  if (component >= b->spec.component_count)
    return fail(INVALID_ARGUMENT, "The component ID is out of range %u > num_components (= %u)", component, b->spec.component_count);
  if (values->dtype != b->spec.components[component].dtype)
    return fail(INVALID_ARGUMENT, "component %u is %s, not %s", component, dtype_name(b->spec.components[component].dtype),
                dtype_name(values->dtype));
  if (keys->count > 0 && values->count == 0)
    return fail(INVALID_ARGUMENT, "Tensors with no elements are not supported %s: received shape %s", b->resource.name,
                shape_text(&values->shape));
  if (values->shape.rank < 1 || values->shape.dims[0] != keys->count)
    return fail(INVALID_ARGUMENT, "%lld keys for values of shape %s", (long long)keys->count, shape_text(&values->shape));
  return OK;
}

status barrier_insert(struct barrier *b, struct host_call *call, uint32_t component, const struct tensor *keys,
                      const struct tensor *values) {
  TRY(check_insertion(b, component, keys, values));
  uint32_t width = b->spec.component_count + 2;
  struct insertion in = {.barrier = b, .component = component, .keys = keys, .values = values};
  in.ready = calloc((size_t)keys->count * width + 1, sizeof *in.ready);
  if (!in.ready)
    return fail(RESOURCE_EXHAUSTED, "no memory for %lld tuples", (long long)keys->count);
  pthread_mutex_lock(&b->lock);
  status result = insert_all(&in);
  pthread_mutex_unlock(&b->lock);
  if (result == OK && in.ready_count)
    result = queue_enqueue(b->ready, call, in.ready, in.ready_count); /* takes the references; has room always */
  else
    for (int64_t i = 0; i < keys->count * width; i++)
      tensor_release(in.ready[i]);
  free(in.ready);
  return result;
}

/* ---- taking, closing ---- */

status barrier_take(struct barrier *b, struct host_call *call, int64_t count, bool small) {
  pthread_mutex_lock(&b->lock);
  bool closed = b->closed;
  int64_t available = queue_size(b->ready);
  if (closed && small)
    count = count < available ? count : available;
  else
    available += b->partial_count;
  pthread_mutex_unlock(&b->lock);
  if (closed && available < (count > 1 ? count : 1))
    return fail(OUT_OF_RANGE, "Barrier '%s' is closed and has insufficient elements (requested %lld, total size %lld)", b->resource.name,
                (long long)count, (long long)available);
  return queue_dequeue_many(b->ready, call, count, small);
}

status barrier_close(struct barrier *b, struct host_call *call, bool cancel_pending) {
  pthread_mutex_lock(&b->lock);
  bool again = b->closed && (b->cancelled || !cancel_pending);
  if (!again) {
    b->cancelled = cancel_pending;
    b->closed = true;
    if (cancel_pending)
      partials_clear(b);
  }
  bool queue_ends = !again && !b->partial_count && !queue_is_closed(b->ready);
  pthread_mutex_unlock(&b->lock);
  if (again)
    return fail(CANCELLED, "Barrier '%s' is already closed.", b->resource.name);
  return queue_ends ? queue_close(b->ready, call, cancel_pending) : OK;
}

int64_t barrier_size(struct barrier *b, bool incomplete) {
  if (!incomplete)
    return queue_size(b->ready);
  pthread_mutex_lock(&b->lock);
  int64_t count = b->partial_count;
  pthread_mutex_unlock(&b->lock);
  return count;
}

/* ---- the resource ---- */

static bool barrier_explain(struct resource *resource, const void *call, struct resource_wait *out) {
  struct resource *ready = (struct resource *)((struct barrier *)resource)->ready;
  if (!ready->explain(ready, call, out))
    return false;
  snprintf(out->text, sizeof out->text, "barrier '%.60s' has too few complete elements", resource->name);
  out->driver_count = 0; /* of its queue they are whoever completed one */
  return true;
}

static status barrier_init(struct resource *resource, void *argument) {
  struct barrier *b = (struct barrier *)resource;
  char name[600];
  b->spec = *(const struct barrier_spec *)argument;
  b->next_place = INT64_MIN;
  struct queue_spec spec = {.kind = QUEUE_PRIORITY, .component_count = b->spec.component_count + 2, .capacity = INT64_MAX};
  spec.components[0] = (struct queue_component){.dtype = DTYPE_INT64, .has_shape = true};
  spec.components[1] = (struct queue_component){.dtype = DTYPE_STRING, .has_shape = true};
  memcpy(spec.components + 2, b->spec.components, sizeof *spec.components * b->spec.component_count);
  snprintf(name, sizeof name, "%.512s_queue", resource->name);
  pthread_mutex_init(&b->lock, NULL);
  struct resource *ready;
  TRY(resource_create(&queue_maker, &spec, name, &ready));
  b->ready = (struct queue *)ready;
  resource->explain = barrier_explain;
  return OK;
}

static void barrier_destroy(struct resource *resource) {
  struct barrier *b = (struct barrier *)resource;
  partials_clear(b);
  free(b->buckets);
  resource_release((struct resource *)b->ready);
  pthread_mutex_destroy(&b->lock);
}

const struct resource_maker barrier_maker = {"barrier", sizeof(struct barrier), barrier_init, barrier_destroy};

status barrier_match(const struct barrier *b, const struct barrier_spec *wanted) {
  const char *name = b->resource.name;
  bool same = b->spec.component_count == wanted->component_count;
  for (uint32_t i = 0; same && i < wanted->component_count; i++)
    same = b->spec.components[i].dtype == wanted->components[i].dtype;
  if (!same)
    return fail(INVALID_ARGUMENT, "Shared barrier '%s' has component types that differ from the requested ones", name);
  for (uint32_t i = 0; same && i < wanted->component_count; i++)
    same = shape_equal(&b->spec.components[i].shape, &wanted->components[i].shape);
  return same ? OK : fail(INVALID_ARGUMENT, "Shared barrier '%s' has component shapes that differ from the requested ones", name);
}
