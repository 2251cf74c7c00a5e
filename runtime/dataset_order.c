/* dataset_order.c: datasets that choose among elements or change their order, but not the elements. */
#include <stdlib.h>
#include <string.h>

#include "runtime/dataset.h"
#include "runtime/philox_stream.h"

struct count_state {
  int64_t at;
};

/* Elements that come as they are: what TensorFlow does ahead of time here changes when, not what. */
static status pass_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  return cursor_source_next(c, 0, run, out, end);
}

static status take_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct count_state *s = c->state;
  int64_t count;
  TRY(dataset_int(c->dataset, 0, "count", &count));
  *end = count >= 0 && s->at >= count;
  s->at++;
  return *end ? OK : cursor_source_next(c, 0, run, out, end);
}

static status skip_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct count_state *s = c->state;
  int64_t count;
  TRY(dataset_int(c->dataset, 0, "count", &count));
  *end = count < 0;
  for (; !*end && s->at < count; s->at++) {
    TRY(cursor_source_next(c, 0, run, out, end));
    if (!*end)
      element_release(out, c->dataset->component_count);
  }
  return *end ? OK : cursor_source_next(c, 0, run, out, end);
}

/* A source without elements ends even what is repeated for ever. */
struct repeat_state {
  int64_t rounds;
  bool had_element;
};

static status repeat_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct repeat_state *s = c->state;
  int64_t count;
  TRY(dataset_int(c->dataset, 0, "count", &count));
  for (;;) {
    *end = count >= 0 && s->rounds >= count;
    if (*end)
      return OK;
    TRY(cursor_source_next(c, 0, run, out, end));
    if (!*end) {
      s->had_element = true;
      return OK;
    }
    cursor_destroy(c->sources[0]);
    c->sources[0] = NULL;
    s->rounds++;
    if (!s->had_element && count < 0)
      return OK;
    s->had_element = false;
  }
}

static status shard_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct count_state *s = c->state;
  int64_t shards, index;
  TRY(dataset_int(c->dataset, 0, "num_shards", &shards));
  TRY(dataset_int(c->dataset, 1, "index", &index));
  if (shards < 1 || index < 0 || index >= shards)
    return fail(INVALID_ARGUMENT, "index must be between 0 and %lld (currently index = %lld, num_shards = %lld)",
                (long long)shards - 1, (long long)index, (long long)shards);
  for (;; s->at++) {
    TRY(cursor_source_next(c, 0, run, out, end));
    if (*end || s->at % shards == index)
      break;
    element_release(out, c->dataset->component_count);
  }
  s->at++;
  return OK;
}

/* ---- shuffle: a window of the elements, one of which is drawn and replaced by the next (TensorFlow's order for its seeds) ---- */

struct shuffle_state {
  struct philox random;
  struct tensor **window; /* slots of components */
  int64_t size, room, first, filled; /* room: slots that are there */
  bool is_ready, source_ended;
};

static void shuffle_stop(struct cursor *c) {
  struct shuffle_state *s = c->state;
  for (int64_t i = 0; i < s->room; i++)
    element_release(s->window + i * c->dataset->component_count, c->dataset->component_count);
  free(s->window);
}

/* With reshuffle, the seeds of this pass are drawn from those of the dataset. */
static status shuffle_start(struct cursor *c) {
  struct shuffle_state *s = c->state;
  int64_t size, seed = 0, seed2 = 0;
  TRY(dataset_int(c->dataset, 0, "buffer_size", &size));
  if (size < 1)
    return fail(INVALID_ARGUMENT, "buffer_size must be greater than zero.");
  if (c->dataset->input_count > 2) {
    TRY(dataset_int(c->dataset, 1, "seed", &seed));
    TRY(dataset_int(c->dataset, 2, "seed2", &seed2));
  }
  philox_seed(&s->random, (uint64_t)seed, (uint64_t)seed2);
  if (host_attr_int(&c->dataset->words, "reshuffle_each_iteration", 1)) {
    for (unsigned pass = atomic_fetch_add(&c->dataset->passes, 1); pass > 0; pass--) {
      philox_next(&s->random);
      philox_next(&s->random);
    }
    uint64_t next = philox_next(&s->random), next2 = philox_next(&s->random);
    philox_seed(&s->random, next, next2);
  }
  s->size = size;
  s->is_ready = true;
  return OK;
}

static struct tensor **shuffle_slot(const struct cursor *c, int64_t i) {
  const struct shuffle_state *s = c->state;
  return s->window + (i % s->size) * c->dataset->component_count;
}

/* Grows by doubling: the size asked for may be far above the number of elements. */
static status shuffle_fill(struct cursor *c, const struct dataset_run *run) {
  struct shuffle_state *s = c->state;
  uint32_t count = c->dataset->component_count;
  while (!s->source_ended && s->filled < s->size) {
    if (s->filled == s->room && s->room < s->size) {
      int64_t grown = s->room * 2 + 64 < s->size ? s->room * 2 + 64 : s->size;
      struct tensor **window = realloc(s->window, (size_t)(grown * count + 1) * sizeof *window);
      if (!window)
        return fail(RESOURCE_EXHAUSTED, "no memory to shuffle %lld elements", (long long)grown);
      memset(window + s->room * count, 0, (size_t)((grown - s->room) * count) * sizeof *window);
      s->window = window;
      s->room = grown;
    }
    TRY(cursor_source_next(c, 0, run, shuffle_slot(c, s->first + s->filled), &s->source_ended));
    s->filled += !s->source_ended;
  }
  return OK;
}

static status shuffle_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct shuffle_state *s = c->state;
  uint32_t count = c->dataset->component_count;
  if (!s->is_ready)
    TRY(shuffle_start(c));
  TRY(shuffle_fill(c, run));
  if (s->source_ended && s->room < s->size)
    s->size = s->room ? s->room : 1; /* no more slots are needed */
  *end = s->filled == 0;
  if (*end)
    return OK;
  int64_t at = s->first + (int64_t)((uint64_t)philox_next(&s->random) % (uint64_t)s->filled);
  struct tensor **drawn = shuffle_slot(c, at), **front = shuffle_slot(c, s->first);
  for (uint32_t i = 0; i < count; i++) {
    out[i] = drawn[i];
    drawn[i] = front[i];
    if (drawn != front)
      front[i] = NULL;
    else
      drawn[i] = NULL;
  }
  s->first++;
  s->filled--;
  return OK;
}

const struct dataset_kind dataset_orders[] = {
  { "PrefetchDataset", 0, pass_next, NULL, NULL },
  { "OptionsDataset", 0, pass_next, NULL, NULL },
  { "ModelDataset", 0, pass_next, NULL, NULL },
  { "RewriteDataset", 0, pass_next, NULL, NULL },
  { "CacheDataset", 0, pass_next, NULL, NULL },
  { "TakeDataset", sizeof(struct count_state), take_next, NULL, NULL },
  { "SkipDataset", sizeof(struct count_state), skip_next, NULL, NULL },
  { "RepeatDataset", sizeof(struct repeat_state), repeat_next, NULL, NULL },
  { "ShardDataset", sizeof(struct count_state), shard_next, NULL, NULL },
  { "ShuffleDataset", sizeof(struct shuffle_state), shuffle_next, shuffle_stop, NULL },
  { NULL, 0, NULL, NULL, NULL },
};
