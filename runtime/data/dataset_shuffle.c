/* dataset_shuffle.c: datasets that draw: elements in an order of chance, and numbers; TensorFlow's for its seeds. */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "runtime/data/dataset.h"
#include "runtime/resource/philox_stream.h"

#define ALL (-2)     /* a buffer_size: everything there is */
#define EPOCHS_MAX 3 /* of which elements may be in the window at once */

/* The seeds of the next pass over the dataset: with reshuffle drawn from those of the dataset. */
static void draw_seeds(struct dataset *d, bool reshuffle, int64_t seed, int64_t seed2, struct philox *out) {
  philox_seed(out, (uint64_t)seed, (uint64_t)seed2);
  if (!reshuffle)
    return;
  philox_skip(out, 2 * (uint64_t)atomic_fetch_add(&d->memory->passes, 1));
  uint64_t next = philox_next(out), next2 = philox_next(out);
  philox_seed(out, next, next2);
}

/* ---- shuffle: a window of the elements, one of which is drawn and replaced by the next; epochs do not mix ---- */

struct epoch {
  int64_t first, end; /* positions in the order of the source, over all epochs */
};
struct shuffle_state {
  struct philox random;
  int64_t seed, seed2, size, count;
  bool reshuffle, is_ready, had_element;
  struct tensor **window; /* a ring of elements, components side by side */
  int64_t room, first, filled;
  VEC(struct epoch) epochs;
  int64_t begun; /* epochs so far */
  bool is_open;  /* the last of them is not over */
};

static struct tensor **slot(const struct cursor *c, int64_t position) {
  const struct shuffle_state *s = c->state;
  return s->window + position % s->room * c->dataset->component_count;
}

static void shuffle_stop(struct cursor *c) {
  struct shuffle_state *s = c->state;
  for (int64_t i = 0; i < s->filled; i++)
    element_release(slot(c, s->first + i), c->dataset->component_count);
  free(s->window);
  vec_free(&s->epochs);
}

/* Inputs: buffer_size, then the seeds, where there are any, and how often it is repeated. */
enum { HAS_SEEDS = 1, HAS_COUNT = 2 };

static status shuffle_parameters(const struct dataset *d, struct shuffle_state *s) {
  bool repeats = (d->kind->traits & HAS_COUNT) != 0;
  s->seed = s->seed2 = 0;
  s->count = 1;
  TRY(dataset_int(d, 0, "buffer_size", &s->size));
  if (d->kind->traits & HAS_SEEDS) {
    TRY(dataset_int(d, 1, "seed", &s->seed));
    TRY(dataset_int(d, 2, "seed2", &s->seed2));
  }
  if (repeats)
    TRY(dataset_int(d, 3, "count", &s->count));
  s->reshuffle = host_attr_int(&d->words, "reshuffle_each_iteration", 1) != 0;
  if (s->size < 1 && s->size != ALL)
    return fail(INVALID_ARGUMENT, "buffer_size must be greater than zero or UNKNOWN_CARDINALITY");
  return !repeats || s->count > 0 || s->count == -1 ? OK : fail(INVALID_ARGUMENT, "count must be greater than zero or equal to -1.");
}

static status shuffle_check(const struct dataset *d) {
  struct shuffle_state unused;
  return shuffle_parameters(d, &unused);
}

/* Grows by doubling: the size asked for may be far above the number of elements. */
static status make_room(struct cursor *c) {
  struct shuffle_state *s = c->state;
  uint32_t count = c->dataset->component_count;
  if (s->filled < s->room)
    return OK;
  int64_t grown = s->room * 2 + 64;
  struct tensor **window = calloc((size_t)(grown * count) + 1, sizeof *window);
  if (!window)
    return fail(RESOURCE_EXHAUSTED, "no memory to shuffle %lld elements", (long long)grown);
  for (int64_t i = 0; i < s->filled; i++)
    memcpy(window + (s->first + i) % grown * count, slot(c, s->first + i), count * sizeof *window);
  free(s->window);
  s->window = window;
  s->room = grown;
  return OK;
}

static bool wants_more(const struct shuffle_state *s) {
  if ((!s->is_open && s->count != -1 && s->begun >= s->count) || (s->epochs.count > EPOCHS_MAX && s->filled > 0))
    return false;
  return s->size == ALL ? s->is_open || s->filled == 0 : s->filled < s->size;
}

static status shuffle_fill(struct cursor *c, const struct dataset_run *run) {
  struct shuffle_state *s = c->state;
  while (wants_more(s)) {
    bool over;
    if (!s->is_open) {
      struct epoch next = {s->first + s->filled, s->first + s->filled};
      vec_push(&s->epochs, next);
      s->begun++;
      s->is_open = true;
    }
    TRY(make_room(c));
    TRY(cursor_source_next(c, 0, run, slot(c, s->first + s->filled), &over));
    if (!over) {
      s->had_element = true;
      s->filled++;
      s->epochs.items[s->epochs.count - 1].end++;
      continue;
    }
    cursor_destroy(c->sources[0]);
    c->sources[0] = NULL;
    s->is_open = false;
    if (!s->had_element && s->count == -1)
      return OK;
  }
  return OK;
}

/* Each epoch has seeds of its own. */
static struct epoch *current_epoch(struct cursor *c) {
  struct shuffle_state *s = c->state;
  while (s->epochs.items[0].first == s->epochs.items[0].end) {
    memmove(s->epochs.items, s->epochs.items + 1, --s->epochs.count * sizeof *s->epochs.items);
    draw_seeds(c->dataset, s->reshuffle, s->seed, s->seed2, &s->random);
  }
  return &s->epochs.items[0];
}

static status shuffle_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct shuffle_state *s = c->state;
  uint32_t count = c->dataset->component_count;
  if (!s->is_ready) {
    TRY(shuffle_parameters(c->dataset, s));
    draw_seeds(c->dataset, s->reshuffle, s->seed, s->seed2, &s->random);
    s->is_ready = true;
  }
  TRY(shuffle_fill(c, run));
  *end = s->filled == 0;
  if (*end)
    return OK;
  struct epoch *epoch = current_epoch(c);
  int64_t at = epoch->first + (int64_t)((uint64_t)philox_next(&s->random) % (uint64_t)(epoch->end - epoch->first));
  struct tensor **drawn = slot(c, at), **front = slot(c, epoch->first);
  memcpy(out, drawn, count * sizeof *out);
  memmove(drawn, front, count * sizeof *out);
  memset(front, 0, count * sizeof *out);
  epoch->first++;
  s->first++;
  s->filled--;
  return OK;
}

static int64_t repeated_size(const struct dataset *d) { return dataset_size_repeated(d, host_scalar_int(d->inputs[3])); }

/* ---- numbers ---- */

struct random_state {
  struct philox random;
  bool is_ready;
};

static status random_check(const struct dataset *d) {
  int64_t seed;
  TRY(dataset_int(d, 0, "seed", &seed));
  return dataset_int(d, 1, "seed2", &seed);
}

static status random_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  (void)run;
  struct random_state *s = c->state;
  const struct dataset *d = c->dataset;
  if (!s->is_ready)
    draw_seeds(c->dataset, host_attr_int(&d->words, "rerandomize_each_iteration", 0) != 0, host_scalar_int(d->inputs[0]),
               host_scalar_int(d->inputs[1]), &s->random);
  s->is_ready = true;
  *end = false;
  TRY(tensor_create(DTYPE_INT64, &(struct shape){0}, &out[0]));
  *(int64_t *)out[0]->data = philox_next(&s->random);
  return OK;
}

static int64_t random_size(const struct dataset *d) {
  (void)d;
  return DATASET_INFINITE;
}

#define SHUFFLE(op, how_many, has)                                                                                                   \
  {                                                                                                                                  \
    op, sizeof(struct shuffle_state), shuffle_next, shuffle_stop, shuffle_check, .size = how_many, .batch = dataset_batch_of_source, \
                                                                                 .draws = true, .traits = has                        \
  }

const struct dataset_kind dataset_shuffles[] = {
  SHUFFLE("ShuffleDataset", dataset_size_of_source, HAS_SEEDS),
  SHUFFLE("ShuffleDatasetV2", dataset_size_of_source, 0),
  SHUFFLE("ShuffleDatasetV3", dataset_size_of_source, HAS_SEEDS),
  SHUFFLE("ShuffleAndRepeatDataset", repeated_size, HAS_SEEDS | HAS_COUNT),
  SHUFFLE("ShuffleAndRepeatDatasetV2", repeated_size, HAS_SEEDS | HAS_COUNT),
  {"RandomDataset", sizeof(struct random_state), random_next, NULL, random_check, .size = random_size, .draws = true},
  {"RandomDatasetV2", sizeof(struct random_state), random_next, NULL, random_check, .size = random_size, .draws = true},
  {0},
};
