/* parallel_calls.c: a ring of elements on which workers are busy.
 *
 * A worker reads the next element, starts another worker, which reads the one after it, and calls the function; then it looks for more
 * to read. Reading is one worker's at a time, and gives the elements their places in the ring. There is no more work when the ring is full
 * or somebody else reads: then the worker ends.
 *
 * Calls that are shorter than it takes to hand an element to another thread are made by the reader, as long as they stay so.
 */
#include "runtime/data/parallel_calls.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/data/background.h"
#include "runtime/step/pool.h"
#include "runtime/step/task_state.h"

#define QUICK_NS 10000 /* a thread is woken in about this time */
#define RESULTS_KEPT 8 /* beside the calls: workers go on while the reader is woken, and are not started for each element */

struct item {
  struct tensor *element[DATASET_COMPONENTS_MAX]; /* the worker's */
  struct tensor *made[DATASET_COMPONENTS_MAX];
  bool is_done, skip;
  struct kept_status error; /* what came instead */
};
struct parallel_calls {
  struct background *background;
  struct cursor *source;
  const struct dataset *owner;
  element_call call;
  struct item *ring;
  int64_t at_once, capacity, first, count;
  int64_t call_ns;        /* of a call, about */
  bool may_wait;          /* a call may have to wait for something, even for another call */
  bool is_reading, ended; /* ended: the source has no more */
};

void parallel_calls_destroy(struct parallel_calls *p) {
  if (!p)
    return;
  background_destroy(p->background);
  for (int64_t i = 0; i < p->count; i++) {
    struct item *item = &p->ring[(p->first + i) % p->capacity];
    element_release(item->made, item->error.code == OK && !item->skip ? p->owner->component_count : 0);
    status_drop(&item->error);
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
  p->may_wait = dataset_call_may_wait(owner, run);
  p->call_ns = QUICK_NS * 100; /* until it is known */
  int64_t wanted = at_once < 1 ? pool_threads(run->call->task->pool) : at_once;
  p->at_once = wanted < PARALLEL_CALLS_MAX ? wanted : PARALLEL_CALLS_MAX;
  p->capacity = p->at_once + RESULTS_KEPT;
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

/* The lock is held, but while the cursor moves. The element that was read in its place; NULL: there is none to work on. */
static struct item *read_element(struct parallel_calls *p) {
  struct background *b = p->background;
  while (!p->is_reading && !p->ended && p->count < p->capacity && !background_is_over(b)) {
    struct item *item = &p->ring[(p->first + p->count) % p->capacity];
    bool end = false;
    p->is_reading = true;
    pthread_mutex_unlock(&b->lock);
    *item = (struct item){.is_done = false};
    item->error = status_keep(cursor_next(p->source, &b->run, item->element, &end));
    pthread_mutex_lock(&b->lock);
    p->is_reading = false;
    p->ended = item->error.code == OK && end;
    p->count += !p->ended;
    if (item->error.code == OK && !end)
      return item;
    item->is_done = true;
    background_changed(b);
  }
  return NULL;
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The lock is held, but while the function runs. */
static void call_item(struct parallel_calls *p, struct item *item, const struct dataset_run *run) {
  pthread_mutex_unlock(&p->background->lock);
  int64_t begin = now_ns();
  item->error = status_keep(p->call(p->owner, run, item->element, item->made, &item->skip));
  element_release(item->element, p->source->dataset->component_count);
  int64_t took = now_ns() - begin;
  pthread_mutex_lock(&p->background->lock);
  p->call_ns += (took - p->call_ns) / 4;
  item->is_done = true;
}

/* The lock is held. */
static bool is_quick(const struct parallel_calls *p) { return !p->may_wait && p->call_ns < QUICK_NS; }

static void work(void *self);

/* The lock is held. One more worker where there is something to read. */
static void add_worker(struct parallel_calls *p) {
  struct background *b = p->background;
  bool has_work = !p->is_reading && !p->ended && p->count < p->capacity && b->workers < p->at_once && !is_quick(p);
  if (has_work && !background_is_over(b))
    background_start(b, work, p);
}

static void work(void *self) {
  struct parallel_calls *p = self;
  struct background *b = p->background;
  struct item *item;
  pthread_mutex_lock(&b->lock);
  while (!is_quick(p) && (item = read_element(p))) {
    add_worker(p);
    call_item(p, item, &b->run);
    if (item == &p->ring[p->first])
      background_changed(b);
  }
  background_leave(b);
}

/* ---- the reader ---- */

/* The lock is held; the first item is done and leaves the ring. */
static status take_item(struct parallel_calls *p, struct tensor **out, bool *skip) {
  struct item *item = &p->ring[p->first];
  status code = status_tell(&item->error);
  *skip = code == OK && item->skip;
  if (code == OK && !item->skip)
    memcpy(out, item->made, p->owner->component_count * sizeof *out);
  p->first = (p->first + 1) % p->capacity;
  p->count--;
  add_worker(p);
  return code;
}

/* The lock is held. The reader does one element itself. */
static void work_alone(struct parallel_calls *p, const struct dataset_run *run) {
  struct item *item = read_element(p);
  if (item)
    call_item(p, item, run);
}

/* The lock is held: until the first item is done, or there is none. */
static status await_item(struct parallel_calls *p, const struct dataset_run *run) {
  while (p->count > 0 ? !p->ring[p->first].is_done : !p->ended) {
    if (background_is_over(p->background))
      return fail(CANCELLED, "the iterator has ended");
    if (p->count == 0)
      add_worker(p);
    bool is_free = p->count == 0 && !p->is_reading && is_quick(p);
    if (is_free || p->background->workers == 0) /* quick, or there is no thread to be had */
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
