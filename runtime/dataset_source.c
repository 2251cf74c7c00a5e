/* dataset_source.c: datasets from tensors, and the ways to put datasets one after or beside another. */
#include <stdlib.h>
#include <string.h>

#include "runtime/dataset.h"
#include "runtime/element_number.h"
#include "runtime/tensor_list.h"

/* ---- tensors ---- */

struct count_state {
  int64_t at;
};

static status tensor_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  (void)run;
  struct count_state *s = c->state;
  *end = s->at++ > 0;
  for (uint32_t i = 0; !*end && i < c->dataset->input_count; i++)
    out[i] = tensor_retain(c->dataset->inputs[i]);
  return OK;
}

static status slices_check(const struct dataset *d) {
  for (uint32_t i = 0; i < d->input_count; i++) {
    if (d->inputs[i]->shape.rank < 1)
      return fail(INVALID_ARGUMENT, "Component %u: a scalar has no slices", i);
    if (d->inputs[i]->shape.dims[0] != d->inputs[0]->shape.dims[0])
      return fail(INVALID_ARGUMENT, "Component %u has %lld slices, component 0 has %lld", i, (long long)d->inputs[i]->shape.dims[0],
                  (long long)d->inputs[0]->shape.dims[0]);
  }
  return OK;
}

static status rows_next(struct tensor *const *tensors, uint32_t count, int64_t row, struct tensor **out) {
  for (uint32_t i = 0; i < count; i++) {
    status result = tensor_row(tensors[i], row, &out[i]);
    if (result != OK) {
      element_release(out, i);
      return result;
    }
  }
  return OK;
}

static status slices_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  (void)run;
  struct count_state *s = c->state;
  const struct dataset *d = c->dataset;
  *end = d->input_count == 0 || s->at >= d->inputs[0]->shape.dims[0];
  return *end ? OK : rows_next(d->inputs, d->input_count, s->at++, out);
}

/* ---- range ---- */

static enum dtype range_dtype(const struct dataset *d) {
  const struct program_attr *types = host_attr(&d->words, "output_types");
  return types && types->list.count ? (enum dtype)program_attr(d->words.program, types->list.first)->i : DTYPE_INT64;
}

static status range_check(const struct dataset *d) {
  int64_t value = 0;
  enum dtype dtype = range_dtype(d);
  if (!dtype_is_integer(dtype) && !dtype_is_float(dtype))
    return fail(INVALID_ARGUMENT, "Unsupported data type: %s", dtype_name(dtype));
  static const char *const names[] = { "start", "stop", "step" };
  for (uint32_t i = 0; i < 3; i++)
    TRY(dataset_int(d, i, names[i], &value));
  return value ? OK : fail(INVALID_ARGUMENT, "step must be a non-zero integer.");
}

static status range_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  (void)run;
  struct count_state *s = c->state;
  const struct dataset *d = c->dataset;
  int64_t start = host_scalar_int(d->inputs[0]), stop = host_scalar_int(d->inputs[1]), step = host_scalar_int(d->inputs[2]), at;
  *end = __builtin_mul_overflow(step, s->at, &at) || __builtin_add_overflow(start, at, &at) || (step > 0 ? at >= stop : at <= stop);
  if (*end)
    return OK;
  s->at++;
  TRY(tensor_create(range_dtype(d), &(struct shape){ 0 }, &out[0]));
  element_put_int(out[0], 0, at);
  return OK;
}

/* ---- concatenate, zip ---- */

static status concatenate_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct count_state *s = c->state;
  for (; s->at < 2; s->at++) {
    TRY(cursor_source_next(c, (uint32_t)s->at, run, out, end));
    if (!*end)
      return OK;
  }
  return OK;
}

static status zip_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  uint32_t at = 0;
  status result = OK;
  *end = c->dataset->source_count == 0;
  for (uint32_t i = 0; i < c->dataset->source_count && result == OK && !*end; i++) {
    uint32_t count = c->dataset->sources[i]->component_count;
    result = at + count > DATASET_COMPONENTS_MAX ? fail(UNIMPLEMENTED, "a dataset of %u components", at + count)
                                                  : cursor_source_next(c, i, run, out + at, end);
    if (result == OK && !*end)
      at += count;
  }
  if (result != OK || *end)
    element_release(out, at);
  return result;
}

/* ---- unbatch ---- */

struct unbatch_state {
  struct tensor *element[DATASET_COMPONENTS_MAX];
  int64_t at, rows;
};

static void unbatch_stop(struct cursor *c) {
  struct unbatch_state *s = c->state;
  element_release(s->element, c->dataset->component_count);
}

static status unbatch_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct unbatch_state *s = c->state;
  uint32_t count = c->dataset->component_count;
  while (s->at >= s->rows) {
    element_release(s->element, count);
    s->at = s->rows = 0;
    TRY(cursor_source_next(c, 0, run, s->element, end));
    if (*end)
      return OK;
    for (uint32_t i = 0; i < count; i++)
      if (s->element[i]->shape.rank < 1 || s->element[i]->shape.dims[0] != s->element[0]->shape.dims[0])
        return fail(INVALID_ARGUMENT, "Input element must have the same batch size in each component. Component 0 had size %lld but component %u has shape %s",
                    (long long)s->element[0]->shape.dims[0], i, shape_text(&s->element[i]->shape));
    s->rows = s->element[0]->shape.dims[0];
  }
  *end = false;
  return rows_next(s->element, count, s->at++, out);
}

const struct dataset_kind dataset_sources[] = {
  { "TensorDataset", sizeof(struct count_state), tensor_next, NULL, NULL, MADE_FROM_NONE },
  { "TensorSliceDataset", sizeof(struct count_state), slices_next, NULL, slices_check, MADE_FROM_NONE },
  { "RangeDataset", sizeof(struct count_state), range_next, NULL, range_check },
  { "ConcatenateDataset", sizeof(struct count_state), concatenate_next, NULL, NULL, MADE_FROM_ALL },
  { "ZipDataset", 0, zip_next, NULL, NULL, MADE_FROM_ALL },
  { "UnbatchDataset", sizeof(struct unbatch_state), unbatch_next, unbatch_stop, NULL },
  { NULL, 0, NULL, NULL, NULL },
};
