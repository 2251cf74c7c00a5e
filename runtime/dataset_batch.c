/* dataset_batch.c: several elements as one: of the same shape, or filled up to it. */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "runtime/dataset.h"

/* Elements in a row, components side by side. */
struct rows {
  VEC(struct tensor *) tensors;
  int64_t count;
};

static void rows_free(struct rows *rows) {
  element_release(rows->tensors.items, rows->tensors.count);
  vec_free(&rows->tensors);
}

/* Up to `size` elements; *end: none came, or fewer and those are dropped. */
static status rows_read(struct cursor *c, const struct dataset_run *run, int64_t size, bool drop, struct rows *rows, bool *end) {
  uint32_t count = c->dataset->sources[0]->component_count;
  if (size < 1)
    return fail(INVALID_ARGUMENT, "Batch size must be greater than zero.");
  for (*end = false; rows->count < size; rows->count++) {
    struct tensor *element[DATASET_COMPONENTS_MAX];
    TRY(cursor_source_next(c, 0, run, element, end));
    if (*end)
      break;
    for (uint32_t i = 0; i < count; i++)
      vec_push(&rows->tensors, element[i]);
  }
  *end = rows->count == 0 || (drop && rows->count < size);
  return OK;
}

/* The rows as one element. */
static status rows_join(const struct dataset *d, const struct rows *rows, struct tensor **out) {
  for (uint32_t i = 0; i < d->component_count; i++) {
    status result = rows_stack(rows->tensors.items + i, rows->count, d->component_count, i, &out[i]);
    if (result == OK)
      continue;
    element_release(out, i);
    return result;
  }
  return OK;
}

/* ---- batch ---- */

static status batch_take(struct cursor *c, const struct dataset_run *run, struct rows *rows, struct tensor **out, bool *end) {
  const struct dataset *d = c->dataset;
  int64_t size;
  TRY(dataset_int(d, 0, "batch_size", &size));
  TRY(rows_read(c, run, size, dataset_bool(d, d->input_count - 1, false), rows, end));
  return *end ? OK : rows_join(d, rows, out);
}

static status batch_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct rows rows = { 0 };
  status result = batch_take(c, run, &rows, out, end);
  rows_free(&rows);
  return result;
}

/* ---- map and batch: the function's results are the rows; inputs are the captured values, the size, a hint, whether to drop ---- */

static status mapped_read(struct cursor *c, const struct dataset_run *run, int64_t size, struct rows *rows) {
  const struct dataset *d = c->dataset;
  uint32_t count = d->sources[0]->component_count, captures = (uint32_t)host_attr_int(&d->words, "captures", 0);
  for (bool end = false; rows->count < size; rows->count++) {
    struct tensor *in[2 * DATASET_COMPONENTS_MAX], *made[DATASET_COMPONENTS_MAX];
    if (captures > DATASET_COMPONENTS_MAX || captures > d->input_count)
      return fail(UNIMPLEMENTED, "a function of %u captured values", captures);
    TRY(cursor_source_next(c, 0, run, in, &end));
    if (end)
      return OK;
    memcpy(in + count, d->inputs, captures * sizeof *in);
    status result = dataset_call(d, run, in, count + captures, made, d->component_count);
    element_release(in, count);
    TRY(result);
    for (uint32_t i = 0; i < d->component_count; i++)
      vec_push(&rows->tensors, made[i]);
  }
  return OK;
}

static status map_and_batch_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  const struct dataset *d = c->dataset;
  struct rows rows = { 0 };
  int64_t size;
  TRY(dataset_int(d, (uint32_t)host_attr_int(&d->words, "captures", 0), "batch_size", &size));
  if (size < 1)
    return fail(INVALID_ARGUMENT, "Batch size must be greater than zero.");
  status result = mapped_read(c, run, size, &rows);
  *end = rows.count == 0 || (rows.count < size && dataset_bool(d, d->input_count - 1, false));
  if (result == OK && !*end)
    result = rows_join(d, &rows, out);
  rows_free(&rows);
  return result;
}

/* ---- padded batch: inputs are the size, a shape and a value for each component, whether to drop ---- */

static status padded_shape(const struct dataset *d, const struct rows *rows, uint32_t component, struct shape *out) {
  const struct tensor *wanted = d->inputs[1 + component];
  *out = (struct shape){ .rank = (int)wanted->count + 1, .dims = { rows->count } };
  if (wanted->count >= LIMIT_RANK || wanted->dtype != DTYPE_INT64)
    return fail(INVALID_ARGUMENT, "padded shape %u is none", component);
  for (int dim = 0; dim < (int)wanted->count; dim++) {
    int64_t most = ((const int64_t *)wanted->data)[dim];
    for (int64_t r = 0; r < rows->count; r++) {
      const struct shape *here = &rows->tensors.items[r * d->component_count + component]->shape;
      if (here->rank != (int)wanted->count)
        return fail(INVALID_ARGUMENT, "All elements in a batch must have the same rank as the padded shape for component%u: expected rank %lld but got element with rank %d",
                    component, (long long)wanted->count, here->rank);
      if (((const int64_t *)wanted->data)[dim] < 0)
        most = here->dims[dim] > most ? here->dims[dim] : most;
      else if (here->dims[dim] > most)
        return fail(DATA_LOSS, "Attempted to pad to a smaller size than the input element.");
    }
    out->dims[dim + 1] = most < 0 ? 0 : most;
  }
  return OK;
}

static void copy_block(struct tensor *to, int64_t row, const struct tensor *from) {
  size_t size = dtype_size(to->dtype);
  int rank = from->shape.rank, last = rank - 1;
  int64_t index[LIMIT_RANK] = { 0 }, run = rank ? from->shape.dims[last] : 1;
  for (int64_t done = 0; done < from->count; done += run) {
    int64_t at = row;
    for (int d = 0; d < rank; d++)
      at = at * to->shape.dims[d + 1] + (d < last ? index[d] : 0);
    memcpy((char *)to->data + (size_t)at * size, (const char *)from->data + (size_t)done * size, (size_t)run * size);
    for (int d = last - 1; d >= 0 && ++index[d] == from->shape.dims[d]; d--)
      index[d] = 0;
  }
}

static status padded_component(const struct dataset *d, const struct rows *rows, uint32_t component, struct tensor **out) {
  const struct tensor *fill = d->inputs[1 + d->component_count + component];
  struct shape shape;
  struct tensor *tensor;
  TRY(padded_shape(d, rows, component, &shape));
  if (fill->count != 1 || fill->dtype != rows->tensors.items[component]->dtype)
    return fail(INVALID_ARGUMENT, "All padding values must be scalars of their component's dtype");
  TRY(tensor_create(fill->dtype, &shape, &tensor));
  size_t size = dtype_size(fill->dtype);
  for (int64_t i = 0; i < tensor->count; i++)
    memcpy((char *)tensor->data + (size_t)i * size, fill->data, size);
  for (int64_t r = 0; r < rows->count; r++)
    copy_block(tensor, r, rows->tensors.items[r * d->component_count + component]);
  if (fill->dtype != DTYPE_STRING) {
    *out = tensor;
    return OK;
  }
  status result = tensor_clone(tensor, out);
  tensor_release(tensor);
  return result;
}

static status batch_check(const struct dataset *d) {
  int64_t size;
  TRY(dataset_int(d, 0, "batch_size", &size));
  return size > 0 ? OK : fail(INVALID_ARGUMENT, "Batch size must be greater than zero.");
}

static status map_and_batch_check(const struct dataset *d) {
  int64_t size;
  TRY(dataset_int(d, (uint32_t)host_attr_int(&d->words, "captures", 0), "batch_size", &size));
  return size > 0 ? OK : fail(INVALID_ARGUMENT, "batch_size must be greater than zero.");
}

static status padded_check(const struct dataset *d) {
  TRY(batch_check(d));
  for (uint32_t i = 0; i < d->component_count && d->input_count >= 1 + 2 * d->component_count; i++) {
    if (d->inputs[1 + i]->shape.rank != 1)
      return fail(INVALID_ARGUMENT, "All padded shapes must be vectors");
    if (d->inputs[1 + d->component_count + i]->shape.rank != 0)
      return fail(INVALID_ARGUMENT, "All padding values must be scalars");
  }
  return d->input_count >= 1 + 2 * d->component_count ? OK : fail(INVALID_ARGUMENT, "padded shapes and values are missing");
}

static status padded_take(struct cursor *c, const struct dataset_run *run, struct rows *rows, struct tensor **out, bool *end) {
  const struct dataset *d = c->dataset;
  int64_t size;
  TRY(dataset_int(d, 0, "batch_size", &size));
  TRY(rows_read(c, run, size, dataset_bool(d, 1 + 2 * d->component_count, false), rows, end));
  for (uint32_t i = 0; !*end && i < d->component_count; i++) {
    status result = padded_component(d, rows, i, &out[i]);
    if (result == OK)
      continue;
    element_release(out, i);
    return result;
  }
  return OK;
}

static status padded_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct rows rows = { 0 };
  status result = padded_take(c, run, &rows, out, end);
  rows_free(&rows);
  return result;
}

const struct dataset_kind dataset_batches[] = {
  { "BatchDataset", 0, batch_next, NULL, batch_check },
  { "BatchDatasetV2", 0, batch_next, NULL, batch_check },
  { "ParallelBatchDataset", 0, batch_next, NULL, batch_check },
  { "MapAndBatchDataset", 0, map_and_batch_next, NULL, map_and_batch_check },
  { "PaddedBatchDataset", 0, padded_next, NULL, padded_check },
  { "PaddedBatchDatasetV2", 0, padded_next, NULL, padded_check },
  { NULL, 0, NULL, NULL, NULL },
};
