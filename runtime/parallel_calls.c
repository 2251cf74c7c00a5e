/* parallel_calls.c: a ring of elements on which workers are busy.
 *
 * A worker reads the next element, starts another worker, which reads the one after it, and calls the function; then it looks for more
 * to read. Reading is one worker's at a time, and gives the elements their places in the ring. There is no more work when the ring is full or
 * somebody else reads: then the worker ends.
 */
#include "runtime/parallel_calls.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/background.h"
#include "runtime/pool.h"
#include "runtime/task_state.h"

struct item {
  struct tensor *element[DATASET_COMPONENTS_MAX]; /* the worker's */
  struct tensor *made[DATASET_COMPONENTS_MAX];
  bool is_done, skip;
  status code; /* what came instead, with its text */
  char *text;
};
struct parallel_calls {
  struct background *background;
  struct cursor *source;
  const struct dataset *owner;
  element_call call;
  struct item *ring;
  int64_t capacity, first, count;
  bool is_reading, ended; /* ended: the source has no more */
};

void parallel_calls_destroy(struct parallel_calls *p) {
  if (!p)
    return;
  background_destroy(p->background);
  for (int64_t i = 0; i < p->count; i++) {
    struct item *item = &p->ring[(p->first + i) % p->capacity];
    element_release(item->made, item->code == OK && !item->skip ? p->owner->component_count : 0);
    free(item->text);
  }
  free(p->ring);
  free(p);
}

status parallel_calls_check(const struct dataset *dataset, uint32_t input) {
  int64_t at_once;
  TRY(dataset_int(dataset, input, "num_parallel_calls", &at_once));
  return at_once > 0 || at_once == -1 ? OK : fail(INVALID_ARGUMENT, "num_parallel_calls must be greater than zero.");
}

status parallel_calls_create(struct cursor *source, const struct dataset *owner, int64_t at_once, element_call call,
                             const struct dataset_run *run, struct parallel_calls **out) {
  struct parallel_calls *p = calloc(1, sizeof *p);
  if (!p)
    return fail(RESOURCE_EXHAUSTED, "no memory to work beside the step");
  p->source = source;
  p->owner = owner;
  p->call = call;
  int64_t wanted = at_once < 1 ? pool_threads(run->call->task->pool) : at_once;
  p->capacity = wanted < PARALLEL_CALLS_MAX ? wanted : PARALLEL_CALLS_MAX;
  p->ring = calloc((size_t)p->capacity, sizeof *p->ring);
  status result = p->ring ? background_create(run, &p->background) : fail(RESOURCE_EXHAUSTED, "no memory to work beside the step");
  if (result != OK) {
    free(p->ring);
    free(p);
    return result;
  }
  *out = p;
  return OK;
}

/* ---- the workers ---- */

static void item_fail(struct item *item, status code) {
  item->code = code;
  item->text = code == OK ? NULL : strdup(status_text());
}

/* The lock is held, but while the cursor moves. The element that was read in its place; NULL: there is none to work on. */
static struct item *read_element(struct parallel_calls *p) {
  struct background *b = p->background;
  while (!p->is_reading && !p->ended && p->count < p->capacity && !background_is_over(b)) {
    struct item *item = &p->ring[(p->first + p->count) % p->capacity];
    bool end = false;
    p->is_reading = true;
    pthread_mutex_unlock(&b->lock);
    *item = (struct item){ .is_done = false };
    item_fail(item, cursor_next(p->source, &b->run, item->element, &end));
    pthread_mutex_lock(&b->lock);
    p->is_reading = false;
    p->ended = item->code == OK && end;
    p->count += !p->ended;
    if (item->code == OK && !end)
      return item;
    item->is_done = true;
    background_changed(b);
  }
  return NULL;
}

static void call_item(const struct parallel_calls *p, struct item *item, const struct dataset_run *run) {
  item_fail(item, p->call(p->owner, run, item->element, item->made, &item->skip));
  element_release(item->element, p->source->dataset->component_count);
}

static void work(void *self);

/* The lock is held. One more worker where there is something to read. */
static void add_worker(struct parallel_calls *p) {
  struct background *b = p->background;
  if (!p->is_reading && !p->ended && p->count < p->capacity && b->workers < p->capacity && !background_is_over(b))
    background_start(b, work, p);
}

static void work(void *self) {
  struct parallel_calls *p = self;
  struct background *b = p->background;
  struct item *item;
  pthread_mutex_lock(&b->lock);
  while ((item = read_element(p))) {
    add_worker(p);
    pthread_mutex_unlock(&b->lock);
    call_item(p, item, &b->run);
    pthread_mutex_lock(&b->lock);
    item->is_done = true;
    if (item == &p->ring[p->first])
      background_changed(b);
  }
  background_leave(b);
}

/* ---- the reader ---- */

/* The lock is held; the first item is done and leaves the ring. */
static status take_item(struct parallel_calls *p, struct tensor **out, bool *skip) {
  struct item *item = &p->ring[p->first];
  status code = item->code == OK ? OK : fail(item->code, "%s", item->text ? item->text : "");
  *skip = code == OK && item->skip;
  if (code == OK && !item->skip)
    memcpy(out, item->made, p->owner->component_count * sizeof *out);
  free(item->text);
  p->first = (p->first + 1) % p->capacity;
  p->count--;
  add_worker(p);
  return code;
}

/* The lock is held. There is no thread to be had: the reader does one element itself. */
static void work_alone(struct parallel_calls *p, const struct dataset_run *run) {
  struct item *item = read_element(p);
  if (!item)
    return;
  pthread_mutex_unlock(&p->background->lock);
  call_item(p, item, run);
  pthread_mutex_lock(&p->background->lock);
  item->is_done = true;
}

/* The lock is held: until the first item is done, or there is none. */
static status await_item(struct parallel_calls *p, const struct dataset_run *run) {
  while (p->count > 0 ? !p->ring[p->first].is_done : !p->ended) {
    if (background_is_over(p->background))
      return fail(CANCELLED, "the iterator has ended");
    if (p->count == 0)
      add_worker(p);
    if (p->background->workers == 0)
      work_alone(p, run);
    else
      TRY(background_wait(p->background, run));
  }
  return OK;
}

status parallel_calls_next(struct parallel_calls *p, const struct dataset_run *run, struct tensor **out, bool *end) {
  bool skip = true;
  status result = OK;
  *end = false;
  pthread_mutex_lock(&p->background->lock);
  while (result == OK && skip && !*end) {
    result = await_item(p, run);
    if (result != OK)
      break;
    *end = p->count == 0;
    if (!*end)
      result = take_item(p, out, &skip);
  }
  pthread_mutex_unlock(&p->background->lock);
  return result;
}
