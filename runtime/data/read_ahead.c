/* read_ahead.c: a ring that one worker fills and one reader empties. The worker is a job of the crew that ends when the ring is full; who
 * takes an element starts it again. */
#include "runtime/data/read_ahead.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/data/background.h"

#define AUTO_START 2 /* elements */
#define AUTO_MAX 64
#define AUTO_BYTES (INT64_C(256) * 1024 * 1024) /* of all elements together, when nobody says how many */

struct item {
  struct tensor **element;
  struct kept_status error; /* what came instead of an element */
};
struct read_ahead {
  struct background *background;
  struct cursor *cursor;
  uint32_t width;
  struct item *ring;
  int64_t capacity, limit, first, count; /* limit: how many are kept, at most the capacity */
  int64_t element_bytes;                 /* of the largest element so far */
  bool grows, was_full;                  /* grows: the limit is ours to choose */
  bool is_working, ended;                /* ended: the cursor has no more */
};

static void item_free(struct item *item, uint32_t width) {
  element_release(item->element, item->error.code == OK ? width : 0);
  status_drop(&item->error);
}

void read_ahead_destroy(struct read_ahead *r) {
  if (!r)
    return;
  background_destroy(r->background);
  for (int64_t i = 0; i < r->count; i++)
    item_free(&r->ring[(r->first + i) % r->capacity], r->width);
  if (r->ring)
    free(r->ring[0].element);
  free(r->ring);
  free(r);
}

/* ---- the worker ---- */

/* Makes one element in a place that nobody else uses meanwhile. */
static bool make_item(struct read_ahead *r, struct item *item, int64_t *bytes) {
  bool end = false;
  item->error = status_keep(cursor_next(r->cursor, &r->background->run, item->element, &end));
  *bytes = 0;
  for (uint32_t i = 0; item->error.code == OK && !end && i < r->width; i++)
    *bytes += tensor_byte_size(item->element[i]);
  return item->error.code != OK || !end;
}

static void work(void *self) {
  struct read_ahead *r = self;
  struct background *b = r->background;
  pthread_mutex_lock(&b->lock);
  while (!background_is_over(b) && !r->ended && r->count < r->limit) {
    struct item *item = &r->ring[(r->first + r->count) % r->capacity];
    int64_t bytes;
    pthread_mutex_unlock(&b->lock);
    bool made = make_item(r, item, &bytes);
    pthread_mutex_lock(&b->lock);
    r->element_bytes = bytes > r->element_bytes ? bytes : r->element_bytes;
    r->ended = !made;
    r->count += made;
    background_changed(b);
  }
  r->is_working = false;
  background_leave(b);
}

/* The lock is held. Keeps a worker at it: it is not woken for every single element of a large ring. */
static bool keep_working(struct read_ahead *r) {
  bool has_room = r->limit - r->count >= (r->limit + 3) / 4;
  if (!r->is_working && !r->ended && has_room && !background_is_over(r->background))
    r->is_working = background_start(r->background, work, r);
  return r->is_working;
}

status read_ahead_create(struct cursor *cursor, int64_t size, const struct dataset_run *run, struct read_ahead **out) {
  struct read_ahead *r = calloc(1, sizeof *r);
  if (!r)
    return fail(RESOURCE_EXHAUSTED, "no memory to read ahead");
  r->cursor = cursor;
  r->width = cursor->dataset->component_count;
  r->grows = size < 0;
  r->capacity = size < 0 ? AUTO_MAX : size < READ_AHEAD_MAX ? size : READ_AHEAD_MAX;
  r->limit = size < 0 ? AUTO_START : r->capacity;
  r->ring = calloc((size_t)r->capacity, sizeof *r->ring);
  struct tensor **elements = calloc((size_t)r->capacity * r->width + 1, sizeof *elements);
  status result = r->ring && elements ? background_create(run, &r->background) : fail(RESOURCE_EXHAUSTED, "no memory to read ahead");
  if (result != OK) {
    free(elements);
    free(r->ring);
    free(r);
    return result;
  }
  for (int64_t i = 0; i < r->capacity; i++)
    r->ring[i].element = elements + i * r->width;
  pthread_mutex_lock(&r->background->lock);
  keep_working(r);
  pthread_mutex_unlock(&r->background->lock);
  *out = r;
  return OK;
}

/* ---- the reader ---- */

/* The lock is held. More are kept when the reader finds none although the ring was full since it last grew: work comes in bursts then. */
static void choose_limit(struct read_ahead *r) {
  r->was_full = r->was_full || r->count == r->limit;
  int64_t more = 2 * r->limit < r->capacity ? 2 * r->limit : r->capacity;
  if (!r->grows || r->count > 0 || !r->was_full || more * r->element_bytes > AUTO_BYTES)
    return;
  r->limit = more;
  r->was_full = false;
}

/* The lock is held; there is an item. */
static status take_item(struct read_ahead *r, struct tensor **out) {
  struct item *item = &r->ring[r->first];
  status code = status_tell(&item->error);
  if (code == OK)
    memcpy(out, item->element, r->width * sizeof *out);
  r->first = (r->first + 1) % r->capacity;
  r->count--;
  return code;
}

/* The lock is held; false: there will be no item unless the reader makes it. */
static status await_item(struct read_ahead *r, const struct dataset_run *run, bool *comes) {
  *comes = true;
  while (*comes && r->count == 0 && !r->ended) {
    if (background_is_over(r->background))
      return fail(CANCELLED, "the iterator has ended");
    *comes = keep_working(r);
    if (*comes)
      TRY(background_wait(r->background, run));
  }
  return OK;
}

status read_ahead_next(struct read_ahead *r, const struct dataset_run *run, struct tensor **out, bool *end) {
  bool comes;
  *end = false;
  pthread_mutex_lock(&r->background->lock);
  choose_limit(r);
  status result = await_item(r, run, &comes);
  if (result == OK && !comes) { /* there is no thread: nobody else uses the cursor now */
    pthread_mutex_unlock(&r->background->lock);
    result = cursor_next(r->cursor, run, out, end);
    pthread_mutex_lock(&r->background->lock);
    r->ended = result == OK && *end;
  } else if (result == OK) {
    *end = r->count == 0;
    result = *end ? OK : take_item(r, out);
    keep_working(r);
  }
  pthread_mutex_unlock(&r->background->lock);
  return result;
}
