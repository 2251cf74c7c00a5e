/* host_dataset.c: ops that look into a dataset by themselves, without an iterator. */
#include <stdlib.h>
#include <string.h>

#include "runtime/dataset.h"

static status find_dataset(const struct host_call *call, uint32_t i, struct dataset **out) {
  *out = call->input_count > i ? dataset_of(call->held[i]) : NULL;
  return *out ? OK : fail(INVALID_ARGUMENT, "input %u is no dataset", i);
}

status host_dataset_cardinality(struct host_call *call) {
  struct dataset *dataset;
  TRY(find_dataset(call, 0, &dataset));
  TRY(host_make_output(call, 0, DTYPE_INT64, &(struct shape){ 0 }));
  *(int64_t *)call->outputs[0]->data = dataset_size(dataset);
  return OK;
}

/* ---- the only element, the one at an index ---- */

static status check_components(const struct host_call *call, const struct dataset *d) {
  return call->output_count == d->component_count && d->component_count <= DATASET_COMPONENTS_MAX
             ? OK
             : fail(INVALID_ARGUMENT, "the dataset gives %u components, expected are %u", d->component_count, call->output_count);
}

static void set_outputs(struct host_call *call, struct tensor *const *element, bool good) {
  for (uint32_t i = 0; i < call->output_count; i++)
    call->outputs[i] = good ? element[i] : NULL; /* functions use the same places: last */
}

static status only_element(struct cursor *cursor, const struct dataset_run *run, struct tensor **element) {
  struct tensor *more[DATASET_COMPONENTS_MAX];
  bool end;
  TRY(cursor_next(cursor, run, element, &end));
  if (end)
    return fail(INVALID_ARGUMENT, "Dataset was empty.");
  uint32_t count = cursor->dataset->component_count;
  status result = cursor_next(cursor, run, more, &end);
  if (result == OK && end)
    return OK;
  element_release(element, count);
  if (result == OK)
    element_release(more, count);
  return result == OK ? fail(INVALID_ARGUMENT, "Dataset had more than one element.") : result;
}

status host_dataset_single(struct host_call *call) {
  struct dataset *dataset;
  struct cursor *cursor;
  struct tensor *element[DATASET_COMPONENTS_MAX] = { 0 };
  struct dataset_run run = { call };
  TRY(find_dataset(call, 0, &dataset));
  TRY(check_components(call, dataset));
  TRY(cursor_create(dataset, &cursor));
  status result = only_element(cursor, &run, element);
  cursor_destroy(cursor);
  set_outputs(call, element, result == OK);
  return result;
}

static status element_at(struct cursor *cursor, const struct dataset_run *run, int64_t index, struct tensor **element) {
  for (int64_t i = 0;; i++) {
    bool end;
    TRY(cursor_next(cursor, run, element, &end));
    if (end)
      return fail(OUT_OF_RANGE, "Index out of range [0, %lld):%lld", (long long)i, (long long)index);
    if (i == index)
      return OK;
    element_release(element, cursor->dataset->component_count);
  }
}

status host_dataset_element_at(struct host_call *call) {
  struct dataset *dataset;
  struct cursor *cursor;
  struct tensor *element[DATASET_COMPONENTS_MAX] = { 0 };
  struct dataset_run run = { call };
  int64_t index = host_scalar_int(&call->inputs[1]);
  TRY(find_dataset(call, 0, &dataset));
  TRY(check_components(call, dataset));
  if (index < 0)
    return fail(OUT_OF_RANGE, "Index out of range [0, %lld):%lld", (long long)dataset_size(dataset), (long long)index);
  TRY(cursor_create(dataset, &cursor));
  status result = element_at(cursor, &run, index, element);
  cursor_destroy(cursor);
  set_outputs(call, element, result == OK);
  return result;
}

/* ---- reduce: inputs are the dataset, the first state, captured values ---- */

struct reduction {
  struct host_call *call;
  struct tensor *state[DATASET_COMPONENTS_MAX], *captured[DATASET_COMPONENTS_MAX];
  uint32_t states, captures;
};

static void reduction_free(struct reduction *r) {
  element_release(r->state, r->states);
  element_release(r->captured, r->captures);
}

static status keep_inputs(struct reduction *r, uint32_t states) {
  for (uint32_t i = 1; i < r->call->input_count; i++) {
    bool is_state = i <= states;
    uint32_t *count = is_state ? &r->states : &r->captures;
    if (*count == DATASET_COMPONENTS_MAX)
      return fail(UNIMPLEMENTED, "a reduction of more than %d values", DATASET_COMPONENTS_MAX);
    TRY(host_keep_input(r->call, i, (is_state ? r->state : r->captured) + *count));
    ++*count;
  }
  return OK;
}

static status reduce_all(struct reduction *r, struct cursor *cursor, const struct dataset_run *run) {
  uint32_t count = cursor->dataset->component_count;
  for (;;) {
    struct tensor *in[3 * DATASET_COMPONENTS_MAX], *made[DATASET_COMPONENTS_MAX];
    bool end;
    TRY(cursor_next(cursor, run, in + r->states, &end));
    if (end)
      return OK;
    memcpy(in, r->state, r->states * sizeof *in);
    memcpy(in + r->states + count, r->captured, r->captures * sizeof *in);
    status result = dataset_call_named(host_node_name(r->call), run, in, r->states + count + r->captures, made, r->states);
    element_release(in + r->states, count);
    TRY(result);
    element_release(r->state, r->states);
    memcpy(r->state, made, r->states * sizeof *made);
  }
}

status host_dataset_reduce(struct host_call *call) {
  struct dataset *dataset;
  struct cursor *cursor = NULL;
  struct dataset_run run = { call };
  struct reduction r = { .call = call };
  const struct program_attr *types = host_attr(call, "Tstate");
  TRY(find_dataset(call, 0, &dataset));
  status result = keep_inputs(&r, types ? types->list.count : 0);
  if (result == OK && r.states != call->output_count)
    result = fail(INVALID_ARGUMENT, "the state has %u components, the result %u", r.states, call->output_count);
  if (result == OK)
    result = cursor_create(dataset, &cursor);
  if (result == OK)
    result = reduce_all(&r, cursor, &run);
  cursor_destroy(cursor);
  set_outputs(call, r.state, result == OK);
  if (result == OK)
    r.states = 0; /* given away */
  reduction_free(&r);
  return result;
}
