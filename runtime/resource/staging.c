/* staging.c: two arrays of tuples, complete and incomplete ones, and those who wait. */
#include "runtime/resource/staging.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/host/wait_list.h"

struct tuple {
  int64_t key;
  uint32_t width;
  struct tensor **items; /* NULL: not put yet, or taken */
};
struct tuples {
  struct tuple *items;
  int64_t count, room;
};
struct staging {
  struct resource resource; /* first */
  struct staging_spec spec;
  pthread_mutex_t lock;
  struct tuples complete, incomplete;
  int64_t bytes;
  struct wait_list waiting;
};

static bool is_keyed(const struct staging *a) { return a->spec.area != STAGING_LINE; }

/* ---- tuples ---- */

static status tuples_insert(struct tuples *list, int64_t at, int64_t key, uint32_t width, struct tuple **out) {
  if (list->count == list->room) {
    int64_t room = list->room * 2 + 8;
    struct tuple *grown = realloc(list->items, (size_t)room * sizeof *grown);
    if (!grown)
      return fail(RESOURCE_EXHAUSTED, "no memory for %lld tuples", (long long)room);
    list->items = grown;
    list->room = room;
  }
  struct tensor **items = calloc(width + 1u, sizeof *items);
  if (!items)
    return fail(RESOURCE_EXHAUSTED, "no memory for a tuple");
  memmove(list->items + at + 1, list->items + at, (size_t)(list->count - at) * sizeof *list->items);
  list->items[at] = (struct tuple){key, width, items};
  list->count++;
  *out = &list->items[at];
  return OK;
}

static void tuples_remove(struct tuples *list, int64_t at) {
  struct tuple *t = &list->items[at];
  for (uint32_t i = 0; i < t->width; i++)
    tensor_release(t->items[i]);
  free(t->items);
  list->count--;
  memmove(t, t + 1, (size_t)(list->count - at) * sizeof *t);
}

static void tuples_clear(struct tuples *list) {
  while (list->count)
    tuples_remove(list, list->count - 1);
}

/* -1: no such key */
static int64_t tuples_find(const struct tuples *list, int64_t key) {
  for (int64_t i = 0; i < list->count; i++)
    if (list->items[i].key == key)
      return i;
  return -1;
}

/* Where a tuple of this key belongs: by key, or in front. */
static int64_t place_of(const struct staging *a, int64_t key) {
  int64_t at = 0;
  while (a->spec.area == STAGING_ORDERED_MAP && at < a->complete.count && a->complete.items[at].key < key)
    at++;
  return at;
}

/* ---- requests ---- */

struct staging_request *staging_request_create(enum staging_kind kind, uint32_t indices, uint32_t values) {
  struct staging_request *r = calloc(1, sizeof *r);
  if (!r)
    return NULL;
  r->kind = kind;
  r->indices = calloc(indices + 1u, sizeof *r->indices);
  r->values = calloc(values + 1u, sizeof *r->values);
  if (r->indices && r->values)
    return r;
  staging_request_free(r);
  return NULL;
}

void staging_request_free(struct staging_request *r) {
  if (!r)
    return;
  for (uint32_t i = 0; r->values && i < r->value_count; i++)
    tensor_release(r->values[i]);
  free(r->values);
  free(r->indices);
  free(r);
}
static void free_own(void *own) { staging_request_free(own); }

/* What a put counts for. With keys TensorFlow counts the last component alone; so the bound means the same here. */
static int64_t put_bytes(const struct staging *a, const struct staging_request *r) {
  int64_t bytes = 0;
  for (uint32_t i = is_keyed(a) && r->value_count ? r->value_count - 1 : 0; i < r->value_count; i++)
    bytes += tensor_byte_size(r->values[i]);
  return bytes;
}

static status check_index(const struct staging *a, const struct staging_request *r, uint32_t i) {
  if (r->indices[i] >= 0 && (uint32_t)r->indices[i] < a->spec.width)
    return OK;
  return fail(INVALID_ARGUMENT, "Index '%d' for key '%lld' was out of bounds '%u'.", r->indices[i], (long long)r->key, a->spec.width);
}

static status check_request(const struct staging *a, const struct staging_request *r) {
  if (!is_keyed(a))
    return OK;
  if (r->index_count == 0)
    return fail(INVALID_ARGUMENT, "Indices are empty");
  for (uint32_t i = 0; i + 1 < r->index_count; i++)
    if (r->indices[i] >= r->indices[i + 1])
      return fail(INVALID_ARGUMENT, "Indices are not strictly ordered");
  if (r->kind == STAGING_PUT && r->value_count != r->index_count)
    return fail(INVALID_ARGUMENT, "%u values for %u indices", r->value_count, r->index_count);
  return OK;
}

/* ---- putting ---- */

static void move_values(struct staging_request *r, struct tuple *to) {
  for (uint32_t i = 0; i < r->value_count; i++) {
    uint32_t at = r->index_count ? (uint32_t)r->indices[i] : i;
    tensor_release(to->items[at]);
    to->items[at] = r->values[i];
    r->values[i] = NULL;
  }
}

/* Components of a tuple that is not complete yet, or is by these. A complete one of that key stays as it is. */
static status put_some(struct staging *a, struct staging_request *r) {
  struct tuple *t;
  int64_t at = tuples_find(&a->incomplete, r->key);
  for (uint32_t i = 0; i < r->index_count; i++) {
    TRY(check_index(a, r, i));
    if (at >= 0 && a->incomplete.items[at].items[r->indices[i]])
      return fail(INVALID_ARGUMENT, "The tensor for index '%d' for key '%lld' was already initialized '%u'.", r->indices[i],
                  (long long)r->key, a->spec.width);
  }
  if (at < 0)
    TRY(tuples_insert(&a->incomplete, at = a->incomplete.count, r->key, a->spec.width, &t));
  move_values(r, &a->incomplete.items[at]);
  uint32_t present = 0;
  for (uint32_t i = 0; i < a->spec.width; i++)
    present += a->incomplete.items[at].items[i] != NULL;
  if (present < a->spec.width)
    return OK;
  struct tuple done = a->incomplete.items[at];
  a->incomplete.items[at].width = 0;
  a->incomplete.items[at].items = NULL;
  tuples_remove(&a->incomplete, at);
  t = NULL;
  status result = tuples_find(&a->complete, r->key) < 0 ? tuples_insert(&a->complete, place_of(a, r->key), r->key, a->spec.width, &t) : OK;
  if (t) { /* trades its empty places for those */
    struct tensor **empty = t->items;
    t->items = done.items;
    done.items = empty;
  }
  for (uint32_t i = 0; i < a->spec.width; i++)
    tensor_release(done.items[i]);
  free(done.items);
  return result;
}

/* False: there is no room yet. */
static bool try_put(struct staging *a, struct staging_request *r, status *result) {
  int64_t bytes = put_bytes(a, r), limit = a->spec.memory_limit;
  bool whole = !is_keyed(a) || r->index_count == a->spec.width;
  struct tuple *t;
  if (limit > 0 && bytes > limit) {
    *result = fail(RESOURCE_EXHAUSTED,
                   "Attempted to insert tensors with combined size of '%lld' bytes into Staging Area with a memory "
                   "limit of '%lld'.",
                   (long long)bytes, (long long)limit);
    return true;
  }
  if (limit > 0 && a->bytes + bytes > limit)
    return false;
  if (whole && a->spec.capacity > 0 && a->complete.count >= a->spec.capacity)
    return false;
  for (uint32_t i = 0; whole && i < r->index_count; i++)
    if ((*result = check_index(a, r, i)) != OK)
      return true;
  if (!whole) {
    *result = put_some(a, r);
  } else if (!is_keyed(a) || tuples_find(&a->complete, r->key) < 0) {
    int64_t at = is_keyed(a) ? place_of(a, r->key) : a->complete.count;
    *result = tuples_insert(&a->complete, at, r->key, r->value_count, &t);
    if (*result == OK)
      move_values(r, t);
  }
  a->bytes += *result == OK ? bytes : 0;
  return true;
}

/* ---- taking ---- */

static status give_all(struct staging *a, const struct staging_request *r, struct host_call *call, int64_t at) {
  struct tuple *t = &a->complete.items[at];
  uint32_t width = t->width;
  for (uint32_t i = 0; i < width; i++) {
    a->bytes -= r->kind == STAGING_TAKE ? tensor_byte_size(t->items[i]) : 0;
    if (width == call->output_count)
      call->outputs[i] = tensor_retain(t->items[i]);
  }
  if (r->kind == STAGING_TAKE)
    tuples_remove(&a->complete, at);
  return width == call->output_count ? OK : fail(INVALID_ARGUMENT, "Mismatch stage/unstage: %u vs. %u", width, call->output_count);
}

static status give_some(struct staging *a, const struct staging_request *r, struct host_call *call, int64_t at) {
  struct tuple *t = &a->complete.items[at];
  uint32_t first = r->any_key, left = 0;
  if (r->index_count + first != call->output_count)
    return fail(INVALID_ARGUMENT, "output/indices size mismatch: %u vs. %u", call->output_count - first, r->index_count);
  for (uint32_t i = 0; i < r->index_count; i++) {
    TRY(check_index(a, r, i));
    struct tensor *item = t->items[r->indices[i]];
    if (!item)
      return fail(INVALID_ARGUMENT, "Tensor at index '%d' for key '%lld' has already been removed.", r->indices[i], (long long)t->key);
    call->outputs[i + first] = tensor_retain(item);
    if (r->kind == STAGING_PEEK)
      continue;
    a->bytes -= tensor_byte_size(item);
    a->bytes = a->bytes < 0 ? 0 : a->bytes;
    tensor_release(item);
    t->items[r->indices[i]] = NULL;
  }
  if (r->any_key)
    TRY(tensor_copy_in(DTYPE_INT64, &(struct shape){0}, &t->key, &call->outputs[0]));
  for (uint32_t i = 0; i < t->width; i++)
    left += t->items[i] != NULL;
  if (left == 0)
    tuples_remove(&a->complete, at);
  return OK;
}

/* False: it is not there yet. */
static bool try_give(struct staging *a, const struct staging_request *r, struct host_call *call, status *result) {
  int64_t at = !is_keyed(a) ? (r->kind == STAGING_PEEK ? r->key : 0) : r->any_key ? 0 : tuples_find(&a->complete, r->key);
  if (at < 0 || at >= a->complete.count)
    return false;
  *result = is_keyed(a) ? give_some(a, r, call, at) : give_all(a, r, call, at);
  if (*result != OK)
    for (uint32_t i = 0; i < call->output_count; i++) {
      tensor_release(call->outputs[i]);
      call->outputs[i] = NULL;
    }
  return true;
}

/* ---- waiting ---- */

/* Lets everybody go on who can, until nobody can. */
static struct wait_entry *serve(struct staging *a) {
  struct wait_entry *over = NULL;
  for (bool progress = true; progress;) {
    progress = false;
    for (struct wait_entry **at = &a->waiting.first; *at;) {
      struct staging_request *r = (*at)->own;
      status result = OK;
      if (!(r->kind == STAGING_PUT ? try_put(a, r, &result) : try_give(a, r, (*at)->call, &result))) {
        at = &(*at)->next;
        continue;
      }
      wait_list_move(&a->waiting, at, result, result == OK ? "" : status_text(), &over);
      progress = true;
    }
  }
  return over;
}

status staging_run(struct staging *a, struct host_call *call, struct staging_request *request) {
  status result = check_request(a, request);
  if (result != OK) {
    staging_request_free(request);
    return result;
  }
  pthread_mutex_lock(&a->lock);
  struct wait_entry *entry = wait_list_add(&a->waiting, call, 0);
  if (entry) {
    entry->own = request;
    entry->free_own = free_own;
  }
  struct wait_entry *over = entry ? serve(a) : NULL;
  wait_list_settle(over, call);
  pthread_mutex_unlock(&a->lock);
  if (entry)
    return wait_list_finish(over, call);
  staging_request_free(request);
  return fail(RESOURCE_EXHAUSTED, "no memory");
}

void staging_clear(struct staging *a) {
  pthread_mutex_lock(&a->lock);
  tuples_clear(&a->complete);
  tuples_clear(&a->incomplete);
  a->bytes = 0;
  struct wait_entry *over = serve(a);
  pthread_mutex_unlock(&a->lock);
  (void)wait_list_finish(over, NULL); /* none of them is ours */
}

int64_t staging_size(struct staging *a, bool incomplete) {
  pthread_mutex_lock(&a->lock);
  int64_t count = incomplete ? a->incomplete.count : a->complete.count;
  pthread_mutex_unlock(&a->lock);
  return count;
}

/* ---- the resource ---- */

static bool staging_explain(struct resource *resource, const void *call, struct resource_wait *out) {
  struct staging *a = (struct staging *)resource;
  pthread_mutex_lock(&a->lock);
  bool waits = wait_list_has(&a->waiting, call);
  pthread_mutex_unlock(&a->lock);
  if (waits)
    snprintf(out->text, sizeof out->text, "%s '%.60s'", resource->kind, resource->name);
  return waits;
}

static status staging_init(struct resource *resource, void *argument) {
  struct staging *a = (struct staging *)resource;
  a->spec = *(const struct staging_spec *)argument;
  pthread_mutex_init(&a->lock, NULL);
  wait_list_init(&a->waiting, &a->lock);
  resource->explain = staging_explain;
  return OK;
}

static void staging_destroy(struct resource *resource) {
  struct staging *a = (struct staging *)resource;
  tuples_clear(&a->complete);
  tuples_clear(&a->incomplete);
  free(a->complete.items);
  free(a->incomplete.items);
  pthread_mutex_destroy(&a->lock);
}

const struct resource_maker staging_makers[] = {
  [STAGING_LINE] = {"staging area", sizeof(struct staging), staging_init, staging_destroy},
  [STAGING_MAP] = {"staging map", sizeof(struct staging), staging_init, staging_destroy},
  [STAGING_ORDERED_MAP] = {"ordered staging map", sizeof(struct staging), staging_init, staging_destroy},
};
