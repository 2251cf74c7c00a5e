/* host_dataset.c: ops that look into a dataset by themselves, without an iterator. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "runtime/data/dataset.h"
#include "runtime/data/inflate.h"
#include "runtime/data/record_file.h"
#include "runtime/resource/table.h"

static status find_dataset(const struct host_call *call, uint32_t i, struct dataset **out) {
  *out = call->input_count > i ? dataset_of(call->held[i]) : NULL;
  return *out ? OK : fail(INVALID_ARGUMENT, "input %u is no dataset", i);
}

status host_dataset_cardinality(struct host_call *call) {
  struct dataset *dataset;
  TRY(find_dataset(call, 0, &dataset));
  TRY(host_make_output(call, 0, DTYPE_INT64, &(struct shape){0}));
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
    call->outputs[i] = good ? element[i] : NULL;
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
  struct tensor *element[DATASET_COMPONENTS_MAX] = {0};
  struct dataset_run run = {call};
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
  struct tensor *element[DATASET_COMPONENTS_MAX] = {0};
  struct dataset_run run = {call};
  int64_t index = host_scalar_int(&call->inputs[1]);
  TRY(find_dataset(call, 0, &dataset));
  TRY(check_components(call, dataset));
  while (strcmp(dataset->kind->op, "AssertCardinalityDataset") == 0)
    dataset = dataset->sources[0]; /* who asks for one element does not count them */
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
  struct dataset_run run = {call};
  struct reduction r = {.call = call};
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

/* ---- all elements: into a table, into a file ---- */

/* Calls back with each element; frees it. */
static status each_element(struct dataset *dataset, struct host_call *call, status (*use)(void *self, struct tensor *const *element),
                           void *self) {
  struct dataset_run run = {call};
  struct cursor *cursor;
  bool end = false;
  TRY(cursor_create(dataset, &cursor));
  status result = OK;
  while (result == OK && !end) {
    struct tensor *element[DATASET_COMPONENTS_MAX];
    result = cursor_next(cursor, &run, element, &end);
    if (result != OK || end)
      break;
    result = use(self, element);
    element_release(element, dataset->component_count);
  }
  cursor_destroy(cursor);
  return result;
}

struct pairs {
  VEC(struct tensor *) keys;
  VEC(struct tensor *) values;
};

static status keep_pair(void *self, struct tensor *const *element) {
  struct pairs *pairs = self;
  vec_push(&pairs->keys, tensor_retain(element[0]));
  vec_push(&pairs->values, tensor_retain(element[1]));
  return OK;
}

static status fill_table(struct table *table, const struct pairs *pairs) {
  struct tensor *keys = NULL, *values = NULL;
  status result = OK;
  if (pairs->keys.count) {
    result = rows_stack(pairs->keys.items, pairs->keys.count, 1, 0, &keys);
    if (result == OK)
      result = rows_stack(pairs->values.items, pairs->values.count, 1, 1, &values);
  } else {
    result = tensor_create(table_get_spec(table)->key, &(struct shape){1, {0}}, &keys);
    if (result == OK)
      result = tensor_create(table_get_spec(table)->value, &(struct shape){1, {0}}, &values);
  }
  if (result == OK)
    result = table_initialize(table, keys, values);
  tensor_release(keys);
  tensor_release(values);
  return result;
}

/* inputs: the table, a dataset of keys and values */
status host_table_initialize_from_dataset(struct host_call *call) {
  struct dataset *dataset;
  struct resource *table;
  struct pairs pairs = {0};
  TRY(host_find_resource(call, 0, "table", &table));
  TRY(find_dataset(call, 1, &dataset));
  if (dataset->component_count != 2)
    return fail(INVALID_ARGUMENT, "the dataset must give a key and a value, not %u components", dataset->component_count);
  status result = table_is_initialized((struct table *)table) ? OK : each_element(dataset, call, keep_pair, &pairs);
  if (result == OK && !table_is_initialized((struct table *)table))
    result = fill_table((struct table *)table, &pairs);
  element_release(pairs.keys.items, pairs.keys.count);
  element_release(pairs.values.items, pairs.values.count);
  vec_free(&pairs.keys);
  vec_free(&pairs.values);
  return result;
}

struct records {
  FILE *file;
  const char *path;
};

static status write_record(void *self, struct tensor *const *element) {
  struct records *records = self;
  if (element[0]->dtype != DTYPE_STRING || element[0]->count != 1)
    return fail(INVALID_ARGUMENT, "ToTFRecordOp currently only supports DT_STRING dataypes, but got %s", dtype_name(element[0]->dtype));
  struct string_view record = host_scalar_string(element[0]);
  return record_file_put(records->file, record.data, record.size) ? OK : host_file_error(records->path);
}

/* inputs: a dataset of strings, the file, its compression */
status host_dataset_to_records(struct host_call *call) {
  struct dataset *dataset;
  struct string_view compression = host_scalar_string(&call->inputs[2]);
  char path[HOST_PATH_MAX];
  TRY(find_dataset(call, 0, &dataset));
  TRY(host_scalar_path(call, 1, "filename", path, sizeof path));
  if (!record_file_knows(compression))
    return fail(INVALID_ARGUMENT, "Unsupported compression_type: %.*s", (int)compression.size, compression.data);
  if (dataset->component_count != 1)
    return fail(INVALID_ARGUMENT, "ToTFRecordOp currently only support datasets of 1 single column, but got %u", dataset->component_count);
  FILE *file = fopen(path, "wbe");
  if (!file)
    return host_file_error(path);
  FILE *out = compression.size ? deflated_file(file, compression.data[0] == 'G') : file;
  status result =
    out ? each_element(dataset, call, write_record, &(struct records){out, path}) : fail(RESOURCE_EXHAUSTED, "no memory to compress");
  if (fclose(out ? out : file) != 0 && result == OK)
    result = host_file_error(path);
  return result;
}
