/* dataset_choose.c: datasets that choose among others, or among elements by what they are; and those that only watch. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/vec.h"
#include "runtime/data/dataset.h"
#include "runtime/step/frame.h"

/* ---- directed: source 0 says which of the others is next ---- */

struct directed_state {
  uint64_t *over; /* bit i: source i + 1 has ended */
  uint32_t left;
};

static void directed_stop(struct cursor *c) { free(((struct directed_state *)c->state)->over); }

static status directed_check(const struct dataset *d) {
  if (d->source_count < 2 || d->sources[0]->component_count != 1)
    return fail(INVALID_ARGUMENT, "The selector input must be a dataset of scalar int64 elements.");
  for (uint32_t i = 2; i < d->source_count; i++)
    if (d->sources[i]->component_count != d->sources[1]->component_count)
      return fail(INVALID_ARGUMENT, "All inputs must have the same output_dtypes.");
  return OK;
}

static status directed_start(struct cursor *c) {
  struct directed_state *s = c->state;
  s->left = c->dataset->source_count - 1;
  s->over = calloc(c->dataset->source_count / 64 + 1, sizeof *s->over);
  return s->over ? OK : fail(RESOURCE_EXHAUSTED, "no memory for an iterator");
}

static status read_choice(struct cursor *c, const struct dataset_run *run, int64_t *out, bool *end) {
  struct tensor *choice;
  TRY(cursor_source_next(c, 0, run, &choice, end));
  if (*end)
    return OK;
  bool good = choice->dtype == DTYPE_INT64 && choice->count == 1;
  *out = good ? *(const int64_t *)choice->data : 0;
  tensor_release(choice);
  if (!good)
    return fail(INVALID_ARGUMENT, "The selector input must be a dataset of scalar int64 elements.");
  return *out >= 0 && *out < c->dataset->source_count - 1
         ? OK
         : fail(INVALID_ARGUMENT, "Selector index out of range: %lld >= %u", (long long)*out, c->dataset->source_count - 1);
}

static status directed_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct directed_state *s = c->state;
  bool stops = host_attr_int(&c->dataset->words, "stop_on_empty_dataset", 0) != 0;
  if (!s->over)
    TRY(directed_start(c));
  for (;;) {
    int64_t choice;
    TRY(read_choice(c, run, &choice, end));
    if (*end)
      return OK;
    if (s->over[choice / 64] >> choice % 64 & 1)
      continue;
    TRY(cursor_source_next(c, (uint32_t)choice + 1, run, out, end));
    if (!*end || stops || --s->left == 0)
      return OK;
    s->over[choice / 64] |= UINT64_C(1) << choice % 64;
  }
}

/* Infinite if one of those chosen from is: it may not be known which are chosen. */
static int64_t directed_size(const struct dataset *d) {
  for (uint32_t i = 1; i < d->source_count; i++)
    if (dataset_size(d->sources[i]) == DATASET_INFINITE)
      return DATASET_INFINITE;
  return DATASET_UNKNOWN;
}

/* ---- unique ---- */

struct unique_state {
  VEC(struct tensor *) seen;
  VEC(uint32_t) table; /* of places in seen, from 1; a power of two */
};

static void unique_stop(struct cursor *c) {
  struct unique_state *s = c->state;
  element_release(s->seen.items, s->seen.count);
  vec_free(&s->seen);
  vec_free(&s->table);
}

static status unique_check(const struct dataset *d) {
  if (d->component_count != 1)
    return fail(INVALID_ARGUMENT, "UniqueDataset only supports inputs with a single component.");
  const struct program_attr *types = host_attr(&d->words, "output_types");
  enum dtype dtype = (enum dtype)program_attr(d->words.program, types->list.first)->i;
  return dtype == DTYPE_INT32 || dtype == DTYPE_INT64 || dtype == DTYPE_STRING
         ? OK
         : fail(INVALID_ARGUMENT, "UniqueDataset only supports inputs with a single `tf.int32`, `tf.int64`, or `tf.string` component.");
}

static uint32_t *find_place(struct unique_state *s, const struct tensor *t) {
  uint32_t at = (uint32_t)tensor_hash(t) & (s->table.count - 1);
  while (s->table.items[at] && !tensor_equal(s->seen.items[s->table.items[at] - 1], t))
    at = (at + 1) & (s->table.count - 1);
  return &s->table.items[at];
}

static void grow_table(struct unique_state *s) {
  uint32_t size = s->table.count ? s->table.count * 2 : 64;
  s->table.count = 0;
  for (uint32_t i = 0; i < size; i++)
    vec_push(&s->table, 0);
  for (uint32_t i = 0; i < s->seen.count; i++)
    *find_place(s, s->seen.items[i]) = i + 1;
}

static status unique_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct unique_state *s = c->state;
  for (;;) {
    TRY(cursor_source_next(c, 0, run, out, end));
    if (*end)
      return OK;
    if (2 * (s->seen.count + 1) > s->table.count)
      grow_table(s);
    uint32_t *place = find_place(s, out[0]);
    if (!*place) {
      vec_push(&s->seen, tensor_retain(out[0]));
      *place = s->seen.count;
      return OK;
    }
    element_release(out, 1);
  }
}

/* ---- as many as is said ---- */

struct count_state {
  int64_t at;
};

static const char *many(int64_t count) { return count == 1 ? "" : "s"; }

static status assert_cardinality_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct count_state *s = c->state;
  int64_t wanted;
  TRY(dataset_int(c->dataset, 0, "cardinality", &wanted));
  TRY(cursor_source_next(c, 0, run, out, end));
  s->at += !*end;
  if (*end && wanted >= 0 && s->at != wanted)
    return fail(FAILED_PRECONDITION, "Input dataset was expected to contain %lld element%s but contained only %lld element%s.",
                (long long)wanted, many(wanted), (long long)s->at, many(s->at));
  if (*end && wanted == -1)
    return fail(FAILED_PRECONDITION,
                "Input dataset was expected to contain an infinite number of elements but contained only %lld element%s.", (long long)s->at,
                many(s->at));
  if (!*end && wanted >= 0 && s->at > wanted) {
    element_release(out, c->dataset->component_count);
    return fail(FAILED_PRECONDITION, "Input dataset was expected to contain %lld element%s but contained at least %lld element%s.",
                (long long)wanted, many(wanted), (long long)s->at, many(s->at));
  }
  return OK;
}

static int64_t assert_cardinality_size(const struct dataset *d) { return d->input_count ? host_scalar_int(d->inputs[0]) : 0; }

/* ---- only those that can be made ---- */

static status ignore_errors_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  for (;;) {
    status result = cursor_source_next(c, 0, run, out, end);
    if (result == OK || result == CANCELLED || result == UNIMPLEMENTED || result == INTERNAL)
      return result;
  }
}

#define SLEEP_PART 10000 /* microseconds: so long does who is given up sleep on */

static status sleep_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  int64_t micros;
  TRY(dataset_int(c->dataset, 0, "sleep_microseconds", &micros));
  TRY(cursor_source_next(c, 0, run, out, end));
  while (!*end && micros > 0) {
    if (atomic_load(&run->call->step->cancelled)) {
      element_release(out, c->dataset->component_count);
      return fail(CANCELLED, "the step was cancelled");
    }
    int64_t part = micros < SLEEP_PART ? micros : SLEEP_PART;
    nanosleep(&(struct timespec){.tv_nsec = part * 1000}, NULL);
    micros -= part;
  }
  return OK;
}

const struct dataset_kind dataset_choices[] = {
  {"DirectedInterleaveDataset", sizeof(struct directed_state), directed_next, directed_stop, directed_check, MADE_FROM_ALL,
   .size = directed_size},
  {"ChooseFastestDataset", 0, cursor_pass_next, NULL, NULL, MADE_FROM_ALL, .size = dataset_size_of_source},
  {"UniqueDataset", sizeof(struct unique_state), unique_next, unique_stop, unique_check, .size = NULL},
  {"AssertCardinalityDataset", sizeof(struct count_state), assert_cardinality_next, NULL, NULL, .size = assert_cardinality_size,
   .batch = dataset_batch_of_source, .has_places = dataset_has_places},
  {"IgnoreErrorsDataset", 0, ignore_errors_next, NULL, NULL, .size = NULL},
  {"SleepDataset", 0, sleep_next, NULL, NULL, .size = dataset_size_of_source},
  {0},
};
