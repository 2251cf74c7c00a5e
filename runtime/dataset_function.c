/* dataset_function.c: datasets that call a function of the graph for each element. What runs in parallel or ahead in TensorFlow
 * runs here in order: with the same results. Captured values come first among the inputs. */
#include <stdlib.h>
#include <string.h>

#include "runtime/dataset.h"

#define CYCLE_MAX 4096
#define CYCLE_AUTO 8 /* when TensorFlow may choose */

/* ---- map ---- */

static status map_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct tensor *element[DATASET_COMPONENTS_MAX];
  uint32_t count = c->dataset->sources[0]->component_count;
  TRY(cursor_source_next(c, 0, run, element, end));
  if (*end)
    return OK;
  status result = dataset_call(c->dataset, run, element, count, 0, out, c->dataset->component_count);
  element_release(element, count);
  return result;
}

/* ---- filter, take while ---- */

static status holds(struct cursor *c, const struct dataset_run *run, struct tensor *const *element, bool *out) {
  struct tensor *answer;
  TRY(dataset_call(c->dataset, run, element, c->dataset->component_count, 0, &answer, 1));
  status result = answer->dtype == DTYPE_BOOL && answer->count == 1
                      ? OK
                      : fail(INVALID_ARGUMENT, "`predicate` must return a scalar bool tensor.");
  if (result == OK)
    *out = *(const bool *)answer->data;
  tensor_release(answer);
  return result;
}

static status filter_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  for (;;) {
    bool keep = false;
    TRY(cursor_source_next(c, 0, run, out, end));
    if (*end)
      return OK;
    status result = holds(c, run, out, &keep);
    if (result == OK && keep)
      return OK;
    element_release(out, c->dataset->component_count);
    TRY(result);
  }
}

static status take_while_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  bool keep = false;
  TRY(cursor_source_next(c, 0, run, out, end));
  if (*end)
    return OK;
  status result = holds(c, run, out, &keep);
  if (result == OK && keep)
    return OK;
  element_release(out, c->dataset->component_count);
  *end = result == OK;
  return result;
}

/* ---- scan: inputs are the first state, then the captured values ---- */

struct scan_state {
  struct tensor *state[DATASET_COMPONENTS_MAX];
  bool is_ready;
};

static uint32_t state_count(const struct dataset *d) {
  const struct program_attr *types = host_attr(&d->words, "Tstate");
  return types ? types->list.count : 0;
}

static void scan_stop(struct cursor *c) {
  struct scan_state *s = c->state;
  if (s->is_ready)
    element_release(s->state, state_count(c->dataset));
}

static status scan_check(const struct dataset *d) {
  return state_count(d) <= DATASET_COMPONENTS_MAX && state_count(d) <= d->input_count
             ? OK
             : fail(UNIMPLEMENTED, "a state of %u components", state_count(d));
}

static status scan_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct scan_state *s = c->state;
  struct tensor *in[2 * DATASET_COMPONENTS_MAX], *made[2 * DATASET_COMPONENTS_MAX];
  const struct dataset *d = c->dataset;
  uint32_t states = state_count(d), count = d->sources[0]->component_count;
  for (uint32_t i = 0; !s->is_ready && i < states; i++)
    s->state[i] = tensor_retain(d->inputs[i]);
  s->is_ready = true;
  memcpy(in, s->state, states * sizeof *in);
  TRY(cursor_source_next(c, 0, run, in + states, end));
  if (*end)
    return OK;
  status result = dataset_call(d, run, in, states + count, states, made, states + d->component_count);
  element_release(in + states, count);
  TRY(result);
  element_release(s->state, states);
  memcpy(s->state, made, states * sizeof *made);
  memcpy(out, made + states, d->component_count * sizeof *made);
  return OK;
}

/* ---- interleave: elements become datasets, a few of which are read in turn ---- */

struct interleave_state {
  struct cursor **open; /* cycle of them; NULL: free */
  int64_t cycle, block, at, in_block, open_count;
  bool source_ended;
};

static void interleave_stop(struct cursor *c) {
  struct interleave_state *s = c->state;
  for (int64_t i = 0; s->open && i < s->cycle; i++)
    cursor_destroy(s->open[i]);
  free(s->open);
}

static status interleave_start(struct cursor *c) {
  struct interleave_state *s = c->state;
  uint32_t captures = dataset_capture_count(c->dataset);
  s->cycle = s->block = 1;
  if (strcmp(c->dataset->kind->op, "FlatMapDataset") != 0) {
    TRY(dataset_int(c->dataset, captures, "cycle_length", &s->cycle));
    TRY(dataset_int(c->dataset, captures + 1, "block_length", &s->block));
  }
  s->cycle = s->cycle == -1 ? CYCLE_AUTO : s->cycle;
  if (s->cycle < 1 || s->block < 1)
    return fail(INVALID_ARGUMENT, "`cycle_length` and `block_length` must be > 0");
  if (s->cycle > CYCLE_MAX)
    return fail(UNIMPLEMENTED, "a cycle_length of %lld", (long long)s->cycle);
  s->open = calloc((size_t)s->cycle, sizeof(struct cursor *));
  return s->open ? OK : fail(RESOURCE_EXHAUSTED, "no memory for an iterator");
}

/* The dataset that the function makes of the next element. */
static status interleave_open(struct cursor *c, const struct dataset_run *run, struct cursor **out) {
  struct interleave_state *s = c->state;
  struct tensor *element[DATASET_COMPONENTS_MAX], *handle;
  uint32_t count = c->dataset->sources[0]->component_count;
  TRY(cursor_source_next(c, 0, run, element, &s->source_ended));
  if (s->source_ended)
    return OK;
  status result = dataset_call(c->dataset, run, element, count, 0, &handle, 1);
  element_release(element, count);
  TRY(result);
  struct dataset *dataset = dataset_of(handle);
  result = dataset && dataset->component_count == c->dataset->component_count
               ? cursor_create(dataset, out)
               : fail(INVALID_ARGUMENT, "The function must return a dataset of %u components", c->dataset->component_count);
  tensor_release(handle);
  return result;
}

static void interleave_turn(struct interleave_state *s) {
  s->in_block = 0;
  s->at = (s->at + 1) % s->cycle;
}

static status interleave_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct interleave_state *s = c->state;
  if (!s->open)
    TRY(interleave_start(c));
  for (;;) {
    *end = s->source_ended && s->open_count == 0;
    if (*end)
      return OK;
    if (!s->open[s->at]) {
      if (s->source_ended) {
        interleave_turn(s);
        continue;
      }
      TRY(interleave_open(c, run, &s->open[s->at]));
      s->open_count += s->open[s->at] != NULL;
      continue;
    }
    TRY(cursor_next(s->open[s->at], run, out, end));
    if (!*end) {
      if (++s->in_block == s->block)
        interleave_turn(s);
      return OK;
    }
    cursor_destroy(s->open[s->at]);
    s->open[s->at] = NULL;
    s->open_count--;
    interleave_turn(s);
  }
}

#define INTERLEAVE(op) { op, sizeof(struct interleave_state), interleave_next, interleave_stop, NULL }

const struct dataset_kind dataset_functions[] = {
  { "MapDataset", 0, map_next, NULL, NULL },
  { "ParallelMapDataset", 0, map_next, NULL, NULL },
  { "ParallelMapDatasetV2", 0, map_next, NULL, NULL },
  { "FilterDataset", 0, filter_next, NULL, NULL },
  { "ParallelFilterDataset", 0, filter_next, NULL, NULL },
  { "TakeWhileDataset", 0, take_while_next, NULL, NULL },
  { "ScanDataset", sizeof(struct scan_state), scan_next, scan_stop, scan_check },
  INTERLEAVE("FlatMapDataset"),
  INTERLEAVE("InterleaveDataset"),
  INTERLEAVE("ParallelInterleaveDataset"),
  INTERLEAVE("LegacyParallelInterleaveDatasetV2"),
  INTERLEAVE("ParallelInterleaveDatasetV2"),
  INTERLEAVE("ParallelInterleaveDatasetV3"),
  INTERLEAVE("ParallelInterleaveDatasetV4"),
  { NULL, 0, NULL, NULL, NULL },
};
