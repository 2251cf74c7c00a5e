/* dataset.c: what all kinds of datasets share. */
#include "runtime/data/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "runtime/host/object.h"
#include "runtime/memory/container.h"
#include "runtime/step/task_state.h"
#include "runtime/value/tensor_list.h"

/* ---- kinds ---- */

#define OLD_NAME "Experimental" /* in front of names that many kinds had before */

const struct dataset_kind *dataset_kind_find(const char *op) {
  op += strncmp(op, OLD_NAME, strlen(OLD_NAME)) == 0 ? strlen(OLD_NAME) : 0;
  const struct dataset_kind *const files[] = {dataset_sources, dataset_orders, dataset_functions,  dataset_interleaves, dataset_batches,
                                              dataset_windows, dataset_files,  dataset_shuffles,   dataset_groups,      dataset_choices,
                                              dataset_slices,  dataset_caches, dataset_globals,    dataset_csv,         dataset_prefetches,
                                              dataset_flats,   dataset_saves,  dataset_auto_shards};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    for (const struct dataset_kind *kind = files[i]; kind->op; kind++)
      if (strcmp(kind->op, op) == 0)
        return kind;
  return NULL;
}

/* ---- datasets ---- */

struct dataset *dataset_retain(struct dataset *dataset) {
  object_retain(&dataset->object);
  return dataset;
}

void dataset_release(struct dataset *dataset) {
  if (dataset)
    object_release(&dataset->object);
}

static void dataset_destroy(struct object *object) {
  struct dataset *dataset = (struct dataset *)object;
  for (uint32_t i = 0; dataset->inputs && i < dataset->input_count; i++)
    tensor_release(dataset->inputs[i]);
  for (uint32_t i = 0; dataset->sources && i < dataset->source_count; i++)
    dataset_release(dataset->sources[i]);
  dataset_cache_free(dataset->own.cache);
  free(dataset->inputs);
  free(dataset->sources);
  free(dataset);
}

static const struct object_kind dataset_object = {.name = "dataset", .destroy = dataset_destroy};

void dataset_init(struct dataset *dataset) {
  object_init(&dataset->object, &dataset_object);
  dataset->memory = &dataset->own;
}

struct dataset *dataset_at(const struct tensor *handles, int64_t i) {
  struct object *object = tensor_has_objects(handles) ? objects_of(handles)[i] : NULL;
  return object && object->kind == &dataset_object ? (struct dataset *)object : NULL;
}

struct dataset *dataset_of(const struct tensor *handle) {
  return handle && handle->shape.rank == 0 ? dataset_at(handle, 0) : NULL;
}

status dataset_handle(struct dataset *dataset, struct tensor **out) {
  TRY(objects_create(&(struct shape){0}, out));
  objects_put(*out, 0, &dataset->object);
  return OK;
}

/* Inputs are sorted into datasets and tensors, which keep their order. */
static status take_inputs(struct host_call *call, struct dataset *dataset) {
  enum dataset_made made = dataset->kind->made;
  uint32_t sources = made == MADE_FROM_ALL ? call->input_count : made == MADE_FROM_FIRST;
  for (uint32_t i = 0; i < call->input_count; i++) {
    if (call->inputs[i].dtype != DTYPE_VARIANT || i >= sources) {
      TRY(host_keep_input(call, i, &dataset->inputs[dataset->input_count]));
      dataset->input_count++;
      continue;
    }
    struct dataset *source = dataset_of(call->held[i]);
    if (!source)
      return fail(INVALID_ARGUMENT, "input %u is no dataset", i);
    dataset->sources[dataset->source_count++] = dataset_retain(source);
  }
  return OK;
}

static uint32_t count_components(const struct host_call *call, const struct dataset_kind *kind) {
  const struct program_attr *types = host_attr(call, "output_types");
  types = types ? types : host_attr(call, "Toutput_types");
  return types ? types->list.count : kind->components ? kind->components : 1;
}

/* With room for so many inputs and sources. */
static status dataset_create(uint32_t count, struct dataset **out) {
  struct dataset *dataset = calloc(1, sizeof *dataset);
  if (!dataset)
    return fail(RESOURCE_EXHAUSTED, "no memory for a dataset");
  dataset_init(dataset);
  dataset->inputs = calloc((size_t)count + 1, sizeof *dataset->inputs);
  dataset->sources = calloc((size_t)count + 1, sizeof *dataset->sources);
  *out = dataset;
  if (dataset->inputs && dataset->sources)
    return OK;
  dataset_release(dataset);
  return fail(RESOURCE_EXHAUSTED, "no memory for a dataset");
}

status dataset_copy(const struct dataset *dataset, struct dataset **out) {
  struct dataset *copy;
  TRY(dataset_create(dataset->input_count + dataset->source_count, &copy));
  copy->kind = dataset->kind;
  copy->words = dataset->words;
  copy->component_count = dataset->component_count;
  for (uint32_t i = 0; i < dataset->input_count; i++)
    copy->inputs[copy->input_count++] = tensor_retain(dataset->inputs[i]);
  for (uint32_t i = 0; i < dataset->source_count; i++)
    copy->sources[copy->source_count++] = dataset_retain(dataset->sources[i]);
  *out = copy;
  return OK;
}

/* What a dataset that the graph makes once, when it is loaded, leaves to later steps, and to others of the same handle. */
struct kept_memory {
  struct resource resource;
  struct dataset_memory memory;
};

static status kept_init(struct resource *resource, void *unused) {
  (void)resource, (void)unused;
  return OK;
}

static void kept_destroy(struct resource *resource) { dataset_cache_free(((struct kept_memory *)resource)->memory.cache); }

static const struct resource_maker kept_maker = {"dataset", sizeof(struct kept_memory), kept_init, kept_destroy};

static status find_memory(const struct host_call *call, struct dataset *dataset) {
  int64_t handle = host_attr_int(call, "kept", 0);
  struct resource *resource;
  bool is_new;
  char name[32];
  if (!handle)
    return OK;
  snprintf(name, sizeof name, "%lld", (long long)handle);
  TRY(container_get(call->task->container, "tfc-datasets", name, &kept_maker, NULL, &is_new, &resource));
  dataset->memory = &((struct kept_memory *)resource)->memory;
  return OK;
}

status host_dataset(struct host_call *call) {
  struct dataset *dataset;
  TRY(dataset_create(call->input_count, &dataset));
  dataset->kind = dataset_kind_find(program_text(call->program, call->instr->tf_op));
  dataset->words = (struct host_call){.task = call->task, .program = call->program, .instr = call->instr};
  dataset->component_count = dataset->kind ? count_components(call, dataset->kind) : 0;
  status result = dataset->kind && dataset->component_count <= DATASET_COMPONENTS_MAX
                  ? take_inputs(call, dataset)
                  : fail(UNIMPLEMENTED, "a dataset of %u components", dataset->component_count);
  if (result == OK && dataset->kind->rewrite)
    result = dataset->kind->rewrite(dataset);
  if (result == OK && dataset->kind->check)
    result = dataset->kind->check(dataset);
  if (result == OK)
    result = find_memory(call, dataset);
  if (result == OK)
    result = dataset_handle(dataset, &call->outputs[0]);
  if (result != OK)
    dataset_release(dataset);
  return result;
}

status dataset_int(const struct dataset *dataset, uint32_t input, const char *what, int64_t *out) {
  if (input >= dataset->input_count || dataset->inputs[input]->count != 1 ||
      (dataset->inputs[input]->dtype != DTYPE_INT64 && dataset->inputs[input]->dtype != DTYPE_INT32))
    return fail(INVALID_ARGUMENT, "%s must be a scalar", what);
  *out = host_scalar_int(dataset->inputs[input]);
  return OK;
}

bool dataset_bool(const struct dataset *dataset, uint32_t input, bool otherwise) {
  if (input >= dataset->input_count || dataset->inputs[input]->dtype != DTYPE_BOOL || dataset->inputs[input]->count != 1)
    return otherwise;
  return *(const bool *)dataset->inputs[input]->data;
}

/* ---- cursors ---- */

status cursor_create(struct dataset *dataset, struct cursor **out) {
  struct cursor *cursor = calloc(1, sizeof *cursor);
  if (!cursor)
    return fail(RESOURCE_EXHAUSTED, "no memory for an iterator");
  cursor->dataset = dataset_retain(dataset);
  cursor->sources = calloc((size_t)dataset->source_count + 1, sizeof *cursor->sources);
  cursor->state = calloc(1, dataset->kind->state_size + 1);
  if (!cursor->sources || !cursor->state) {
    cursor_destroy(cursor);
    return fail(RESOURCE_EXHAUSTED, "no memory for an iterator");
  }
  *out = cursor;
  return OK;
}

void cursor_destroy(struct cursor *cursor) {
  if (!cursor)
    return;
  if (cursor->state && cursor->dataset->kind->stop)
    cursor->dataset->kind->stop(cursor);
  for (uint32_t i = 0; cursor->sources && i < cursor->dataset->source_count; i++)
    cursor_destroy(cursor->sources[i]);
  dataset_release(cursor->dataset);
  free(cursor->sources);
  free(cursor->state);
  free(cursor);
}

status cursor_next(struct cursor *cursor, const struct dataset_run *run, struct tensor **out, bool *end) {
  if (cursor->is_counted && cursor->given == dataset_size(cursor->dataset))
    cursor->ended = true;
  *end = cursor->ended;
  if (cursor->ended)
    return OK;
  status result = cursor->dataset->kind->next(cursor, run, out, end);
  cursor->ended = result == OK && *end;
  cursor->given += result == OK && !*end;
  return result;
}

status cursor_source(struct cursor *cursor, uint32_t i, struct cursor **out) {
  if (i >= cursor->dataset->source_count)
    return fail(INVALID_ARGUMENT, "%s: has no dataset %u", host_node_name(&cursor->dataset->words), i);
  if (!cursor->sources[i]) {
    TRY(cursor_create(cursor->dataset->sources[i], &cursor->sources[i]));
    cursor->sources[i]->is_counted = cursor->is_counted;
  }
  *out = cursor->sources[i];
  return OK;
}

status cursor_source_next(struct cursor *cursor, uint32_t i, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct cursor *source = NULL;
  TRY(cursor_source(cursor, i, &source));
  return cursor_next(source, run, out, end);
}

status cursor_pass_next(struct cursor *cursor, const struct dataset_run *run, struct tensor **out, bool *end) {
  return cursor_source_next(cursor, 0, run, out, end);
}

void element_release(struct tensor **element, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    tensor_release(element[i]);
    element[i] = NULL;
  }
}

/* ---- functions ---- */

/* The part that a name stands for where the cursor is moved; NULL: none. */
static struct part *find_function(const char *name, const struct dataset_run *run) {
  const struct host_call *call = run->call;
  const struct program_attr *names = host_attr(call, "functions");
  for (uint32_t i = 0; names && i < names->list.count && i < call->instr->functions.count; i++) {
    const struct program_attr *attr = program_attr(call->program, names->list.first + i);
    const char *text = (const char *)program_table(call->program, PROGRAM_DATA) + attr->offset;
    if (attr->size == strlen(name) && memcmp(text, name, attr->size) == 0)
      return &call->task->parts[call->instr->functions.first + i];
  }
  return NULL;
}

status dataset_call_named(const char *name, const struct dataset_run *run, struct tensor *const *in, uint32_t in_count, struct tensor **out,
                          uint32_t out_count) {
  struct part *part = find_function(name, run);
  if (!part)
    return fail(UNIMPLEMENTED, "the function of '%s', which is not found from this iterator while compiling", name);
  return part_call(part, run->call->step, in, in_count, out, out_count);
}

bool dataset_call_may_wait(const struct dataset *dataset, const struct dataset_run *run) {
  const struct part *part = find_function(host_node_name(&dataset->words), run);
  if (!part)
    return true;
  uint32_t first = program_block(part->program, part->code->block)->instrs.first;
  for (uint32_t i = 0; i < part->code->instr_count; i++) {
    const struct program_instr *instr = program_instr(part->program, first + i);
    if ((instr->flags & INSTR_BLOCKS) || instr->functions.count)
      return true;
  }
  return false;
}

/* The captured values of the functions stand one behind the other among the inputs, in the order of `captures:NAME`. */
static uint32_t captures_before(const struct dataset *d, const char *part, uint32_t *count) {
  uint32_t first = 0;
  char name[64];
  snprintf(name, sizeof name, "captures:%s", part);
  for (uint32_t i = 0; i < d->words.instr->attrs.count; i++) {
    const struct program_attr *attr = program_attr(d->words.program, d->words.instr->attrs.first + i);
    const char *text = program_text(d->words.program, attr->name);
    if (strcmp(text, name) == 0) {
      *count = (uint32_t)attr->i;
      return first;
    }
    first += strncmp(text, "captures:", 9) == 0 ? (uint32_t)attr->i : 0;
  }
  *count = 0;
  return first;
}

/* With the values of the inputs from `first` on that it captured. */
static status call_with(const struct dataset *d, const struct dataset_run *run, const char *name, struct tensor *const *in,
                        uint32_t in_count, uint32_t first, uint32_t captures, struct tensor **out, uint32_t out_count) {
  struct tensor *all[3 * DATASET_COMPONENTS_MAX];
  if (in_count + captures > 3 * DATASET_COMPONENTS_MAX || first + captures > d->input_count)
    return fail(UNIMPLEMENTED, "%s: a function of %u values", host_node_name(&d->words), in_count + captures);
  memcpy(all, in, in_count * sizeof *all);
  memcpy(all + in_count, d->inputs + first, captures * sizeof *all);
  return dataset_call_named(name, run, all, in_count + captures, out, out_count);
}

uint32_t dataset_capture_count(const struct dataset *dataset) { return (uint32_t)host_attr_int(&dataset->words, "captures", 0); }

status dataset_call(const struct dataset *dataset, const struct dataset_run *run, struct tensor *const *in, uint32_t in_count,
                    uint32_t first_capture, struct tensor **out, uint32_t out_count) {
  return call_with(dataset, run, host_node_name(&dataset->words), in, in_count, first_capture, dataset_capture_count(dataset), out,
                   out_count);
}

status dataset_call_part(const struct dataset *dataset, const struct dataset_run *run, const char *part, struct tensor *const *in,
                         uint32_t in_count, struct tensor **out, uint32_t out_count) {
  char name[1024];
  uint32_t captures, first = captures_before(dataset, part, &captures);
  snprintf(name, sizeof name, "%s:%s", host_node_name(&dataset->words), part);
  return call_with(dataset, run, name, in, in_count, first, captures, out, out_count);
}

/* ---- rows ---- */

status parts_join(struct tensor *const *rows, int64_t count, int64_t stride, const struct shape *shape, struct tensor **out) {
  VEC(struct tensor *) parts = {0};
  for (int64_t i = 0; i < count; i++)
    vec_push(&parts, rows[i * stride]);
  *out = NULL;
  status result = tensor_join(rows[0]->dtype, shape, parts.items, count, out);
  vec_free(&parts);
  if (result != OK)
    element_release(out, 1);
  return result;
}

status rows_stack(struct tensor *const *rows, int64_t count, int64_t stride, uint32_t component, struct tensor **out) {
  struct shape shape = {.rank = 1, .dims = {count}};
  const struct tensor *first = rows[0];
  if ((first->dtype == DTYPE_VARIANT && !tensor_has_objects(first)) || first->dtype == DTYPE_RESOURCE || first->shape.rank == LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a batch of %s%s", dtype_name(first->dtype), shape_text(&first->shape));
  for (int d = 0; d < first->shape.rank; d++)
    shape.dims[shape.rank++] = first->shape.dims[d];
  for (int64_t i = 1; i < count; i++) {
    const struct shape *here = &rows[i * stride]->shape;
    if (!shape_equal(here, &first->shape))
      return fail(INVALID_ARGUMENT,
                  "Cannot batch tensors with different shapes in component %u. First element had shape %s and element %lld had shape %s.",
                  component, shape_text(&first->shape), (long long)i, shape_text(here));
  }
  return parts_join(rows, count, stride, &shape, out);
}
