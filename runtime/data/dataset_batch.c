/* dataset_batch.c: several elements as one: of the same shape, or filled up to it. */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "runtime/data/dataset.h"
#include "runtime/data/parallel_calls.h"

/* Elements in a row, components side by side. */
struct rows {
  VEC(struct tensor *) tensors;
  int64_t count;
};

static void rows_free(struct rows *rows) {
  element_release(rows->tensors.items, rows->tensors.count);
  vec_free(&rows->tensors);
}

/* Up to `size` elements. */
static status rows_read(struct cursor *c, const struct dataset_run *run, int64_t size, struct rows *rows) {
  uint32_t count = c->dataset->sources[0]->component_count;
  for (; rows->count < size; rows->count++) {
    struct tensor *element[DATASET_COMPONENTS_MAX];
    bool end;
    TRY(cursor_source_next(c, 0, run, element, &end));
    if (end)
      break;
    for (uint32_t i = 0; i < count; i++)
      vec_push(&rows->tensors, element[i]);
  }
  return OK;
}

/* One component of the rows as one tensor. */
typedef status (*rows_joiner)(const struct dataset *d, const struct rows *rows, uint32_t component, struct tensor **out);

/* Takes what was read as one element. *end: nothing was, or less than `size`, which is dropped. */
static status rows_end(const struct dataset *d, struct rows *rows, int64_t size, bool drop, rows_joiner join, struct tensor **out,
                       bool *end) {
  status result = OK;
  *end = rows->count == 0 || (drop && rows->count < size);
  for (uint32_t i = 0; !*end && result == OK && i < d->component_count; i++) {
    result = join(d, rows, i, &out[i]);
    if (result != OK)
      element_release(out, i);
  }
  return result;
}

static status next_batch(struct cursor *c, const struct dataset_run *run, bool drop, rows_joiner join, struct tensor **out, bool *end) {
  struct rows rows = {0};
  int64_t size = host_scalar_int(c->dataset->inputs[0]);
  status result = rows_read(c, run, size, &rows);
  if (result == OK)
    result = rows_end(c->dataset, &rows, size, drop, join, out, end);
  rows_free(&rows);
  return result;
}

/* ---- batch ---- */

static status stack_component(const struct dataset *d, const struct rows *rows, uint32_t component, struct tensor **out) {
  return rows_stack(rows->tensors.items + component, rows->count, d->component_count, component, out);
}

static status batch_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  return next_batch(c, run, dataset_bool(c->dataset, c->dataset->input_count - 1, false), stack_component, out, end);
}

static status batch_check(const struct dataset *d) {
  int64_t size;
  TRY(dataset_int(d, 0, "batch_size", &size));
  return size > 0 ? OK : fail(INVALID_ARGUMENT, "Batch size must be greater than zero.");
}

/* ---- map and batch: the function's results are the rows; inputs are the captured values, the size, how many calls at once, whether to
 * drop ---- */

struct mapped_state {
  struct parallel_calls *calls; /* NULL: not begun */
};

static void mapped_stop(struct cursor *c) { parallel_calls_destroy(((struct mapped_state *)c->state)->calls); }

static status mapped_start(struct cursor *c, const struct dataset_run *run) {
  struct mapped_state *s = c->state;
  struct cursor *source;
  TRY(cursor_source(c, 0, &source));
  int64_t at_once = host_scalar_int(c->dataset->inputs[dataset_capture_count(c->dataset) + 1]);
  return parallel_calls_create(source, c->dataset, at_once, dataset_map_element, run, &s->calls);
}

/* The rows of a batch with an element that fails are lost, those behind it too: the next batch begins where it would have otherwise.
 * A function that says OUT_OF_RANGE ends the batch, unless every element has to have one of its own. */
static status mapped_read(struct cursor *c, const struct dataset_run *run, int64_t size, struct rows *rows) {
  const struct dataset *d = c->dataset;
  struct kept_status error = {0}; /* the first */
  bool end = false;
  for (int64_t i = 0; i < size && !end; i++) {
    struct tensor *made[DATASET_COMPONENTS_MAX];
    status code = parallel_calls_next(((struct mapped_state *)c->state)->calls, run, made, &end);
    if (code == OUT_OF_RANGE && !host_attr_int(&d->words, "preserve_cardinality", 0))
      break;
    if (code == CANCELLED) {
      status_drop(&error);
      return code;
    }
    if (code == OUT_OF_RANGE)
      code = status_prefix(INVALID_ARGUMENT, "Function invocation produced OutOfRangeError: ");
    if (code != OK && error.code == OK)
      error = status_keep(code);
    for (uint32_t k = 0; code == OK && !end && k < d->component_count; k++)
      vec_push(&rows->tensors, made[k]);
    rows->count += code == OK && !end;
  }
  return status_tell(&error);
}

static status map_and_batch_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  const struct dataset *d = c->dataset;
  struct rows rows = {0};
  int64_t size = host_scalar_int(d->inputs[dataset_capture_count(d)]);
  if (!((struct mapped_state *)c->state)->calls)
    TRY(mapped_start(c, run));
  status result = mapped_read(c, run, size, &rows);
  if (result == OK)
    result = rows_end(d, &rows, size, dataset_bool(d, d->input_count - 1, false), stack_component, out, end);
  rows_free(&rows);
  return result;
}

static status map_and_batch_check(const struct dataset *d) {
  int64_t size;
  TRY(dataset_int(d, dataset_capture_count(d), "batch_size", &size));
  if (size < 1)
    return fail(INVALID_ARGUMENT, "batch_size must be greater than zero.");
  return parallel_calls_check(d, dataset_capture_count(d) + 1);
}

/* ---- padded batch: inputs are the size, a shape and a value for each component, whether to drop ---- */

static status padded_shape(const struct dataset *d, const struct rows *rows, uint32_t component, struct shape *out) {
  const struct tensor *wanted = d->inputs[1 + component];
  *out = (struct shape){.rank = (int)wanted->count + 1, .dims = {rows->count}};
  if (wanted->count >= LIMIT_RANK || wanted->dtype != DTYPE_INT64)
    return fail(INVALID_ARGUMENT, "padded shape %u is none", component);
  for (int64_t r = 0; r < rows->count; r++) {
    int rank = rows->tensors.items[r * d->component_count + component]->shape.rank;
    if (rank != (int)wanted->count)
      return fail(
        INVALID_ARGUMENT,
        "All elements in a batch must have the same rank as the padded shape for component%u: expected rank %lld but got element with rank %d",
        component, (long long)wanted->count, rank);
  }
  for (int dim = 0; dim < (int)wanted->count; dim++) {
    int64_t most = ((const int64_t *)wanted->data)[dim];
    for (int64_t r = 0; r < rows->count; r++) {
      const struct shape *here = &rows->tensors.items[r * d->component_count + component]->shape;
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
  int64_t index[LIMIT_RANK] = {0}, run = rank ? from->shape.dims[last] : 1;
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
  if (fill->dtype == DTYPE_VARIANT || fill->dtype == DTYPE_RESOURCE)
    return fail(UNIMPLEMENTED, "a padded batch of %s", dtype_name(fill->dtype));
  TRY(tensor_create(fill->dtype, &shape, &tensor));
  size_t size = dtype_size(fill->dtype);
  for (int64_t i = 0; i < tensor->count; i++)
    memcpy((char *)tensor->data + (size_t)i * size, fill->data, size);
  for (int64_t r = 0; r < rows->count; r++)
    copy_block(tensor, r, rows->tensors.items[r * d->component_count + component]);
  return tensor_own_strings(tensor, out);
}

static status padded_check(const struct dataset *d) {
  TRY(batch_check(d));
  for (uint32_t i = 0; i < d->component_count && d->input_count >= 1 + 2 * d->component_count; i++) {
    if (d->inputs[1 + i]->shape.rank != 1)
      return fail(INVALID_ARGUMENT, "All padded shapes must be vectors");
    for (int64_t k = 0; k < d->inputs[1 + i]->count; k++)
      if (((const int64_t *)d->inputs[1 + i]->data)[k] < -1)
        return fail(INVALID_ARGUMENT, "Dimension %lld must be >= -1", (long long)((const int64_t *)d->inputs[1 + i]->data)[k]);
    if (d->inputs[1 + d->component_count + i]->shape.rank != 0)
      return fail(INVALID_ARGUMENT, "All padding values must be scalars");
  }
  return d->input_count >= 1 + 2 * d->component_count ? OK : fail(INVALID_ARGUMENT, "padded shapes and values are missing");
}

static status padded_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  return next_batch(c, run, dataset_bool(c->dataset, 1 + 2 * c->dataset->component_count, false), padded_component, out, end);
}

/* ---- how many elements, and rows of each ---- */

static int64_t batch_size(const struct dataset *d) {
  return dataset_size_batched(d, host_scalar_int(d->inputs[0]), dataset_bool(d, d->input_count - 1, false));
}

static bool batches_are_whole(const struct dataset *d) { return dataset_bool(d, d->input_count - 1, false); }

static int64_t padded_size(const struct dataset *d) {
  return dataset_size_batched(d, host_scalar_int(d->inputs[0]), dataset_bool(d, 1 + 2 * d->component_count, false));
}

static int64_t map_and_batch_size(const struct dataset *d) {
  uint32_t at = dataset_capture_count(d);
  return host_attr_int(&d->words, "preserve_cardinality", 0)
         ? dataset_size_batched(d, host_scalar_int(d->inputs[at]), dataset_bool(d, at + 2, false))
         : DATASET_UNKNOWN;
}

static int64_t map_and_batch_given(const struct dataset *d) { return host_scalar_int(d->inputs[dataset_capture_count(d)]); }

const struct dataset_kind dataset_batches[] = {
  {"BatchDataset", 0, batch_next, NULL, batch_check, .size = batch_size, .batch = dataset_batch_given, .has_places = batches_are_whole},
  {"BatchDatasetV2", 0, batch_next, NULL, batch_check, .size = batch_size, .batch = dataset_batch_given, .has_places = batches_are_whole},
  {"ParallelBatchDataset", 0, batch_next, NULL, batch_check, .size = batch_size},
  {"MapAndBatchDataset", sizeof(struct mapped_state), map_and_batch_next, mapped_stop, map_and_batch_check, .size = map_and_batch_size,
   .batch = map_and_batch_given},
  {"PaddedBatchDataset", 0, padded_next, NULL, padded_check, .size = padded_size, .batch = dataset_batch_given},
  {"PaddedBatchDatasetV2", 0, padded_next, NULL, padded_check, .size = padded_size, .batch = dataset_batch_given},
  {0},
};
