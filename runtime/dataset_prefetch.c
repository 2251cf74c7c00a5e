/* dataset_prefetch.c: elements that are made ahead, by a thread of their own, while steps run. What calls functions of the graph can only be
 * made within a step, where it is asked for: datasets from such ones are not read ahead. The order is the same either way. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/dataset.h"

#define AHEAD_AUTO 2  /* elements, when TensorFlow may choose */
#define AHEAD_MAX 1024

struct item {
  struct tensor **element;
  status code; /* what came instead of an element, with its text */
  char text[512];
};
struct prefetch_state {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct item *ring;
  int64_t size, first, count;
  bool is_started, stops, ended; /* ended: the source has no more */
};

/* Whether no function is called below. */
static bool calls_nothing(const struct dataset *d) {
  for (uint32_t i = 0; i < d->words.instr->attrs.count; i++) {
    const struct program_attr *attr = program_attr(d->words.program, d->words.instr->attrs.first + i);
    if (strncmp(program_text(d->words.program, attr->name), "captures", 8) == 0)
      return false;
  }
  for (uint32_t i = 0; i < d->source_count; i++)
    if (!calls_nothing(d->sources[i]))
      return false;
  return true;
}

/* ---- the thread ---- */

/* Makes one element into a place that nobody else uses meanwhile. True at the end. */
static bool make_item(struct cursor *c, struct item *item) {
  bool end = false;
  item->code = cursor_source_next(c, 0, NULL, item->element, &end);
  snprintf(item->text, sizeof item->text, "%s", item->code == OK ? "" : status_text());
  return item->code == OK && end;
}

static void *run_ahead(void *argument) {
  struct cursor *c = argument;
  struct prefetch_state *s = c->state;
  pthread_mutex_lock(&s->lock);
  while (!s->stops && !s->ended) {
    if (s->count == s->size) {
      pthread_cond_wait(&s->changed, &s->lock);
      continue;
    }
    struct item *item = &s->ring[(s->first + s->count) % s->size];
    pthread_mutex_unlock(&s->lock);
    bool end = make_item(c, item);
    pthread_mutex_lock(&s->lock);
    s->ended = end;
    s->count += !end;
    pthread_cond_broadcast(&s->changed);
  }
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

static status start(struct cursor *c, int64_t size) {
  struct prefetch_state *s = c->state;
  uint32_t width = c->dataset->component_count;
  s->size = size < AHEAD_MAX ? size : AHEAD_MAX;
  s->ring = calloc((size_t)s->size, sizeof *s->ring);
  struct tensor **elements = calloc((size_t)s->size * width + 1, sizeof *elements);
  if (!s->ring || !elements) {
    free(s->ring);
    free(elements);
    s->ring = NULL;
    return fail(RESOURCE_EXHAUSTED, "no memory to read ahead");
  }
  for (int64_t i = 0; i < s->size; i++)
    s->ring[i].element = elements + i * width;
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->changed, NULL);
  s->is_started = pthread_create(&s->thread, NULL, run_ahead, c) == 0;
  return s->is_started ? OK : fail(RESOURCE_EXHAUSTED, "no thread to read ahead");
}

static void prefetch_stop(struct cursor *c) {
  struct prefetch_state *s = c->state;
  if (s->is_started) {
    pthread_mutex_lock(&s->lock);
    s->stops = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
  }
  if (!s->ring)
    return;
  for (int64_t i = 0; i < s->count; i++) {
    struct item *item = &s->ring[(s->first + i) % s->size];
    if (item->code == OK)
      element_release(item->element, c->dataset->component_count);
  }
  pthread_mutex_destroy(&s->lock);
  pthread_cond_destroy(&s->changed);
  free(s->ring[0].element);
  free(s->ring);
}

/* ---- whoever asks ---- */

static status take_item(struct cursor *c, struct tensor **out, bool *end) {
  struct prefetch_state *s = c->state;
  status code = OK;
  char text[512] = "";
  pthread_mutex_lock(&s->lock);
  while (s->count == 0 && !s->ended)
    pthread_cond_wait(&s->changed, &s->lock);
  *end = s->count == 0;
  if (!*end) {
    struct item *item = &s->ring[s->first];
    code = item->code;
    memcpy(text, item->text, sizeof text);
    if (code == OK)
      memcpy(out, item->element, c->dataset->component_count * sizeof *out);
    s->first = (s->first + 1) % s->size;
    s->count--;
    pthread_cond_broadcast(&s->changed);
  }
  pthread_mutex_unlock(&s->lock);
  return code == OK ? OK : fail(code, "%s", text);
}

static status prefetch_check(const struct dataset *d) {
  int64_t size;
  TRY(dataset_int(d, 0, "buffer_size", &size));
  return size >= -1 ? OK : fail(INVALID_ARGUMENT, "buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning");
}

static status prefetch_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct prefetch_state *s = c->state;
  int64_t size = host_scalar_int(c->dataset->inputs[0]);
  if (s->is_started)
    return take_item(c, out, end);
  if (size == 0 || !calls_nothing(c->dataset))
    return cursor_source_next(c, 0, run, out, end);
  TRY(start(c, size < 0 ? AHEAD_AUTO : size));
  return take_item(c, out, end);
}

const struct dataset_kind dataset_prefetches[] = {
  { "PrefetchDataset", sizeof(struct prefetch_state), prefetch_next, prefetch_stop, prefetch_check },
  { NULL, 0, NULL, NULL, NULL },
};
