/* dataset_global.c: all elements in an order of chance that needs no window: the place of each is computed by a small block cipher (Simon,
 * Beaulieu and others, 2013) over as many bits as the number of elements has. Elements are taken by their place: the source is read
 * to its end first. */
#include <stdlib.h>

#include "base/vec.h"
#include "runtime/data/dataset.h"
#include "runtime/resource/philox_stream.h"

#define ROUNDS 8
#define BLOCK_MIN 16 /* bits: smaller blocks show patterns */

struct global_state {
  VEC(struct tensor *) elements; /* components side by side */
  uint64_t at, count;
  uint32_t keys[3];
  bool is_ready;
};

static void global_stop(struct cursor *c) {
  struct global_state *s = c->state;
  element_release(s->elements.items, s->elements.count);
  vec_free(&s->elements);
}

/* ---- where element i goes ---- */

static uint64_t rotate(uint64_t x, int by, int width) { return ((x << by) | (x >> (width - by))) & ((UINT64_C(1) << width) - 1); }

static uint64_t mix(uint64_t x, int width) { return (rotate(x, 1, width) & rotate(x, 8, width)) ^ rotate(x, 2, width); }

static uint64_t encrypt(uint64_t value, const uint64_t *keys, int width) {
  uint64_t mask = (UINT64_C(1) << width) - 1, left = value >> width & mask, right = value & mask;
  for (int i = 0; i < ROUNDS; i += 2) {
    left ^= mix(right, width) ^ keys[i];
    right ^= mix(left, width) ^ keys[i + 1];
  }
  return left << width | right;
}

/* The keys of the rounds: three are given, the others follow from them. */
static void expand_keys(const uint32_t given[3], int width, uint64_t *keys) {
  uint64_t mask = (UINT64_C(1) << width) - 1, z = UINT64_C(0x7369f885192c0ef5) & mask;
  for (int i = 0; i < 3; i++)
    keys[i] = given[i] & mask;
  for (int i = 3; i < ROUNDS; i++, z >>= 1)
    keys[i] =
      (UINT64_C(0xfffffffc) & mask) ^ (z & 1) ^ keys[i - 3] ^ rotate(keys[i - 1], width - 3, width) ^ rotate(keys[i - 1], width - 4, width);
}

static uint64_t shuffled(uint64_t index, const uint32_t given[3], uint64_t last) {
  uint64_t keys[ROUNDS];
  int bits = 0;
  if (last == 0)
    return 0;
  while (bits < 62 && (UINT64_C(1) << bits) < last)
    bits++;
  bits += bits % 2;
  bits = bits < BLOCK_MIN ? BLOCK_MIN : bits;
  expand_keys(given, bits / 2, keys);
  do
    index = encrypt(index, keys, bits / 2);
  while (index > last);
  return index;
}

/* ---- what it can be done with ---- */

/* The kind whose elements cannot be reached by their places; NULL: they can. */
static const char *unreachable(const struct dataset *d) {
  if (!d->kind->has_places || !d->kind->has_places(d))
    return d->kind->op;
  const char *within = NULL;
  for (uint32_t i = 0; i < d->source_count && !within; i++)
    within = unreachable(d->sources[i]);
  return within;
}

static status global_check(const struct dataset *d) {
  int64_t seed, size = dataset_size(d->sources[0]);
  const char *bad = unreachable(d->sources[0]);
  TRY(dataset_int(d, 0, "seed", &seed));
  TRY(dataset_int(d, 1, "seed2", &seed));
  if (bad)
    return fail(FAILED_PRECONDITION, "`global_shuffle` requires all upstream transformations be compatible with random access. Got: %s",
                bad);
  return size > 0 ? OK
                  : fail(INVALID_ARGUMENT,
                         "`global_shuffle` requires the input dataset to have a non-empty finite cardinality. Got cardinality %lld",
                         (long long)size);
}

/* Two pairs of seeds are drawn for each pass, of which three are used. */
static void draw_keys(struct cursor *c) {
  struct global_state *s = c->state;
  const struct dataset *d = c->dataset;
  uint64_t seed = (uint64_t)host_scalar_int(d->inputs[0]), seed2 = (uint64_t)host_scalar_int(d->inputs[1]);
  s->keys[0] = s->keys[2] = (uint32_t)seed;
  s->keys[1] = (uint32_t)seed2;
  if (!host_attr_int(&d->words, "reshuffle_each_iteration", 1) && (seed || seed2))
    return;
  struct philox random;
  philox_seed(&random, seed, seed2);
  philox_skip(&random, 4 * (uint64_t)atomic_fetch_add(&c->dataset->memory->passes, 1));
  for (int i = 0; i < 3; i++)
    s->keys[i] = philox_next(&random);
}

static status global_fill(struct cursor *c, const struct dataset_run *run) {
  struct global_state *s = c->state;
  struct cursor *source;
  TRY(cursor_source(c, 0, &source));
  source->is_counted = true; /* what is behind as many cannot be reached by its place */
  draw_keys(c);
  for (bool end = false;;) {
    struct tensor *element[DATASET_COMPONENTS_MAX];
    TRY(cursor_next(source, run, element, &end));
    if (end)
      break;
    for (uint32_t i = 0; i < c->dataset->component_count; i++)
      vec_push(&s->elements, element[i]);
    s->count++;
  }
  s->is_ready = true;
  return OK;
}

static status global_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct global_state *s = c->state;
  uint32_t width = c->dataset->component_count;
  if (!s->is_ready)
    TRY(global_fill(c, run));
  *end = s->at >= s->count;
  if (*end)
    return OK;
  uint64_t from = shuffled(s->at++, s->keys, s->count - 1);
  for (uint32_t i = 0; i < width; i++)
    out[i] = tensor_retain(s->elements.items[from * width + i]);
  return OK;
}

const struct dataset_kind dataset_globals[] = {
  {"GlobalShuffleDataset", sizeof(struct global_state), global_next, global_stop, global_check, .size = dataset_size_of_source,
   .has_places = dataset_has_places},
  {0},
};
