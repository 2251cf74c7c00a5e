/* dataset_function.c: datasets that call a function of the graph for each element, one at a time or several at once: with the same
 * results in the same order, also where TensorFlow may change it. Captured values come first among the inputs. */
#include <stdlib.h>
#include <string.h>

#include "runtime/data/dataset.h"
#include "runtime/data/parallel_calls.h"

/* ---- several calls at once: how many is the last input ---- */

struct parallel_state {
  struct parallel_calls *calls; /* NULL: not begun */
};

static void parallel_stop(struct cursor *c) { parallel_calls_destroy(((struct parallel_state *)c->state)->calls); }
static status parallel_check(const struct dataset *d) { return parallel_calls_check(d, d->input_count - 1); }

static status parallel_next(struct cursor *c, const struct dataset_run *run, element_call call, struct tensor **out, bool *end) {
  struct parallel_state *s = c->state;
  const struct dataset *d = c->dataset;
  if (!s->calls) {
    struct cursor *source;
    TRY(cursor_source(c, 0, &source));
    TRY(parallel_calls_create(source, d, host_scalar_int(d->inputs[d->input_count - 1]), call, run, &s->calls));
  }
  return parallel_calls_next(s->calls, run, out, end);
}

/* ---- map ---- */

/* A function that says OUT_OF_RANGE ends the dataset, unless every element has to have one of its own. */
static status map_result(const struct dataset *d, status result, bool *end) {
  *end = result == OUT_OF_RANGE && !host_attr_int(&d->words, "preserve_cardinality", 0);
  if (result != OUT_OF_RANGE)
    return result;
  return *end ? OK : status_prefix(INVALID_ARGUMENT, "Function invocation produced OutOfRangeError: ");
}

static status map_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct tensor *element[DATASET_COMPONENTS_MAX];
  uint32_t count = c->dataset->sources[0]->component_count;
  TRY(cursor_source_next(c, 0, run, element, end));
  if (*end)
    return OK;
  status result = dataset_call(c->dataset, run, element, count, 0, out, c->dataset->component_count);
  element_release(element, count);
  return map_result(c->dataset, result, end);
}

status dataset_map_element(const struct dataset *d, const struct dataset_run *run, struct tensor *const *element, struct tensor **out,
                           bool *skip) {
  *skip = false;
  return dataset_call(d, run, element, d->sources[0]->component_count, 0, out, d->component_count);
}

static status parallel_map_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  status result = parallel_next(c, run, dataset_map_element, out, end);
  return result == OUT_OF_RANGE ? map_result(c->dataset, result, end) : result;
}

/* ---- filter, take while ---- */

static status holds(const struct dataset *d, const struct dataset_run *run, struct tensor *const *element, bool *out) {
  struct tensor *answer;
  TRY(dataset_call(d, run, element, d->component_count, 0, &answer, 1));
  status result =
    answer->dtype == DTYPE_BOOL && answer->count == 1 ? OK : fail(INVALID_ARGUMENT, "`predicate` must return a scalar bool tensor.");
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
    status result = holds(c->dataset, run, out, &keep);
    if (result == OK && keep)
      return OK;
    element_release(out, c->dataset->component_count);
    TRY(result);
  }
}

static status filter_element(const struct dataset *d, const struct dataset_run *run, struct tensor *const *element, struct tensor **out,
                             bool *skip) {
  bool keep = false;
  TRY(holds(d, run, element, &keep));
  *skip = !keep;
  for (uint32_t i = 0; keep && i < d->component_count; i++)
    out[i] = tensor_retain(element[i]);
  return OK;
}

static status parallel_filter_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  return parallel_next(c, run, filter_element, out, end);
}

static status take_while_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  bool keep = false;
  TRY(cursor_source_next(c, 0, run, out, end));
  if (*end)
    return OK;
  status result = holds(c->dataset, run, out, &keep);
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

const struct dataset_kind dataset_functions[] = {
  {"MapDataset", 0, map_next, NULL, NULL, .size = dataset_size_kept, .has_places = dataset_places_kept},
  {"ParallelMapDataset", sizeof(struct parallel_state), parallel_map_next, parallel_stop, parallel_check, .size = dataset_size_kept,
   .has_places = dataset_places_kept},
  {"ParallelMapDatasetV2", sizeof(struct parallel_state), parallel_map_next, parallel_stop, parallel_check, .size = dataset_size_kept,
   .has_places = dataset_places_kept},
  {"FilterDataset", 0, filter_next, NULL, NULL, .size = NULL, .batch = dataset_batch_of_source},
  {"ParallelFilterDataset", sizeof(struct parallel_state), parallel_filter_next, parallel_stop, parallel_check, .size = NULL},
  {"TakeWhileDataset", 0, take_while_next, NULL, NULL, .size = NULL},
  {"ScanDataset", sizeof(struct scan_state), scan_next, scan_stop, scan_check, .size = dataset_size_kept},
  {0},
};
