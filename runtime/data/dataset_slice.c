/* dataset_slice.c: elements cut from larger ones or put together from smaller ones, other than by plain batches: batches of other
 * sizes, rows of a sparse tensor, batches that are sparse tensors. */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "runtime/data/dataset.h"
#include "runtime/value/boxed_sparse.h"
#include "runtime/value/tensor_list.h"

static status check_batch(struct tensor *const *element, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (element[i]->shape.rank == 0)
      return fail(
        INVALID_ARGUMENT,
        "Cannot rebatch dataset: All components must have at least one dimension. Perhaps your input dataset is not batched? Component %u is scalar.",
        i);
  return OK;
}

static status check_rows(struct tensor *const *element, uint32_t count) {
  TRY(check_batch(element, count));
  for (uint32_t i = 1; i < count; i++)
    if (element[i]->shape.dims[0] != element[0]->shape.dims[0])
      return fail(
        INVALID_ARGUMENT,
        "Cannot rebatch dataset: All components must have the same 0th dimension. Component %u has 0th dimension %lld but component 0 has %lld.",
        i, (long long)element[i]->shape.dims[0], (long long)element[0]->shape.dims[0]);
  return OK;
}

/* ---- each batch as num_replicas smaller ones ---- */

struct divide_state {
  struct tensor *element[DATASET_COMPONENTS_MAX];
  int64_t at;
};

static void divide_stop(struct cursor *c) { element_release(((struct divide_state *)c->state)->element, c->dataset->component_count); }

static status divide_check(const struct dataset *d) {
  int64_t replicas;
  TRY(dataset_int(d, 0, "num_replicas", &replicas));
  return replicas > 0 ? OK : fail(INVALID_ARGUMENT, "num_replicas must be greater than zero.");
}

static status divide_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct divide_state *s = c->state;
  uint32_t count = c->dataset->component_count;
  int64_t replicas = host_scalar_int(c->dataset->inputs[0]);
  *end = false;
  if (s->at == 0) {
    element_release(s->element, count);
    TRY(cursor_source_next(c, 0, run, s->element, end));
    if (*end)
      return OK;
    TRY(check_batch(s->element, count));
  }
  for (uint32_t i = 0; i < count; i++) {
    int64_t rows = s->element[i]->shape.dims[0], each = rows / replicas + (rows % replicas != 0);
    int64_t last = each * (s->at + 1) < rows ? each * (s->at + 1) : rows, first = each * s->at < last ? each * s->at : last;
    status result = tensor_rows(s->element[i], first, last - first, &out[i]);
    if (result != OK) {
      element_release(out, i);
      return result;
    }
  }
  s->at = (s->at + 1) % replicas;
  return OK;
}

/* ---- batches of given sizes, in turn, whatever the batches of the source are ---- */

struct rebatch_state {
  struct tensor *element[DATASET_COMPONENTS_MAX];
  int64_t at, rows, which; /* in the element; of it; of the sizes */
  bool has_element, source_ended;
};
struct parts {
  VEC(struct tensor *) tensors; /* of the batch that is being made, components side by side */
  int64_t rows;
};

static void rebatch_stop(struct cursor *c) {
  struct rebatch_state *s = c->state;
  element_release(s->element, c->dataset->component_count);
}

static status rebatch_check(const struct dataset *d) {
  if (d->input_count < 2 || d->inputs[0]->shape.rank > 1)
    return fail(INVALID_ARGUMENT, "`batch_sizes` must be a scalar or a vector.");
  const struct tensor *sizes = d->inputs[0];
  for (int64_t i = 0; i < sizes->count; i++)
    if (((const int64_t *)sizes->data)[i] < 0)
      return fail(INVALID_ARGUMENT, "`batch_sizes` must not be negative, but is %lld", (long long)((const int64_t *)sizes->data)[i]);
  return sizes->count ? OK : fail(INVALID_ARGUMENT, "`batch_sizes` must not be empty");
}

/* There is an element to cut parts from, unless the source has ended. */
static status open_element(struct cursor *c, const struct dataset_run *run) {
  struct rebatch_state *s = c->state;
  uint32_t width = c->dataset->component_count;
  if (s->has_element)
    return OK;
  TRY(cursor_source_next(c, 0, run, s->element, &s->source_ended));
  if (s->source_ended)
    return OK;
  status result = check_rows(s->element, width);
  if (result != OK) {
    element_release(s->element, width);
    return result;
  }
  s->has_element = true;
  s->at = 0;
  s->rows = s->element[0]->shape.dims[0];
  return OK;
}

static status take_part(struct cursor *c, int64_t missing, struct parts *parts) {
  struct rebatch_state *s = c->state;
  uint32_t width = c->dataset->component_count;
  int64_t count = s->rows - s->at < missing ? s->rows - s->at : missing;
  for (uint32_t i = 0; i < width; i++) {
    struct tensor *part;
    TRY(tensor_rows(s->element[i], s->at, count, &part));
    vec_push(&parts->tensors, part);
  }
  parts->rows += count;
  s->at += count;
  if (s->at == s->rows) {
    element_release(s->element, width);
    s->has_element = false;
  }
  return OK;
}

static status take_parts(struct cursor *c, const struct dataset_run *run, int64_t wanted, struct parts *parts) {
  struct rebatch_state *s = c->state;
  while (parts->rows < wanted) {
    TRY(open_element(c, run));
    if (s->source_ended)
      return OK;
    TRY(take_part(c, wanted - parts->rows, parts));
  }
  return OK;
}

/* A batch of no rows: the other sizes are those that the dataset says, 0 where it does not know them. */
static status empty_batch(const struct dataset *d, uint32_t i, struct tensor **out) {
  const struct program *p = d->words.program;
  const struct program_attr *types = host_attr(&d->words, "output_types"), *shapes = host_attr(&d->words, "output_shapes");
  struct shape shape;
  TRY(host_read_shape(&d->words, shapes && i < shapes->list.count ? program_attr(p, shapes->list.first + i) : NULL, &shape));
  shape.rank = shape.rank < 1 ? 1 : shape.rank;
  for (int k = 0; k < shape.rank; k++)
    shape.dims[k] = k == 0 || shape.dims[k] < 0 ? 0 : shape.dims[k];
  return tensor_create((enum dtype)program_attr(p, types->list.first + i)->i, &shape, out);
}

static status join_parts(const struct dataset *d, uint32_t i, const struct parts *parts, struct tensor **out) {
  uint32_t width = d->component_count;
  struct shape shape = parts->tensors.items[i]->shape;
  for (uint32_t k = i + width; k < parts->tensors.count; k += width) {
    const struct shape *here = &parts->tensors.items[k]->shape;
    if (here->rank != shape.rank || memcmp(here->dims + 1, shape.dims + 1, sizeof *shape.dims * (size_t)(shape.rank - 1)) != 0)
      return fail(INVALID_ARGUMENT, "Cannot rebatch: component %u has elements of different shapes", i);
  }
  shape.dims[0] = parts->rows;
  return parts_join(parts->tensors.items + i, parts->tensors.count / width, width, &shape, out);
}

static status rebatch_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct rebatch_state *s = c->state;
  const struct dataset *d = c->dataset;
  int64_t wanted = ((const int64_t *)d->inputs[0]->data)[s->which];
  struct parts parts = {0};
  *end = s->source_ended;
  status result = *end ? OK : take_parts(c, run, wanted, &parts);
  if (result == OK && !*end) {
    s->which = (s->which + 1) % d->inputs[0]->count;
    *end = parts.rows < wanted && (parts.rows == 0 || dataset_bool(d, 1, false));
  }
  for (uint32_t i = 0; result == OK && !*end && i < d->component_count; i++) {
    result = wanted ? join_parts(d, i, &parts, &out[i]) : empty_batch(d, i, &out[i]);
    if (result != OK)
      element_release(out, i);
  }
  element_release(parts.tensors.items, parts.tensors.count);
  vec_free(&parts.tensors);
  return result;
}

/* ---- rows of a sparse tensor: inputs are its indices, values and shape ---- */

struct sparse_state {
  int64_t row, entry;
};

static status sparse_check(const struct dataset *d) {
  const struct tensor *indices = d->inputs[0], *values = d->inputs[1], *shape = d->inputs[2];
  if (indices->shape.rank != 2)
    return fail(INVALID_ARGUMENT, "Input indices must be a matrix. Got: %s", shape_text(&indices->shape));
  if (values->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "Input values must be a vector. Got: %s", shape_text(&values->shape));
  if (shape->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "Input shape must be a vector. Got: %s", shape_text(&shape->shape));
  if (values->count != indices->shape.dims[0])
    return fail(INVALID_ARGUMENT, "Number of values must match first dimension of indices. Got %lld values, indices shape: %s",
                (long long)values->count, shape_text(&indices->shape));
  if (shape->count != indices->shape.dims[1])
    return fail(INVALID_ARGUMENT, "Number of dimensions must match second dimension of indices. Got %lld dimensions, indices shape: %s",
                (long long)shape->count, shape_text(&indices->shape));
  if (shape->count < 1)
    return fail(INVALID_ARGUMENT, "The shape argument requires at least one element.");
  const int64_t *at = indices->data;
  for (int64_t i = 0; i < values->count; i++)
    if (at[i * shape->count] < (i ? at[(i - 1) * shape->count] : -1)) /* TensorFlow starts from -1, too */
      return fail(
        UNIMPLEMENTED,
        "The SparseTensor must be ordered in the batch dimension; handling arbitrarily ordered input is not currently supported.");
  return OK;
}

static status sparse_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  (void)run;
  struct sparse_state *s = c->state;
  const struct tensor *indices = c->dataset->inputs[0], *values = c->dataset->inputs[1], *shape = c->dataset->inputs[2];
  const int64_t *at = indices->data;
  int64_t rank = shape->count, count = 0;
  *end = s->row >= ((const int64_t *)shape->data)[0];
  if (*end)
    return OK;
  /* a row -1 is, and then each turn at most one row, as in TensorFlow */
  int64_t passed = s->entry < values->count ? at[s->entry * rank] : -1;
  while (s->row > 0 && passed < s->row && s->entry < values->count && at[s->entry * rank] == passed)
    s->entry++;
  while (s->entry + count < values->count && at[(s->entry + count) * rank] == s->row)
    count++;
  out[0] = out[1] = NULL;
  status result = tensor_create(DTYPE_INT64, &(struct shape){2, {count, rank - 1}}, &out[0]);
  for (int64_t i = 0; result == OK && i < count; i++)
    for (int64_t d = 1; d < rank; d++)
      ((int64_t *)out[0]->data)[i * (rank - 1) + d - 1] = at[(s->entry + i) * rank + d];
  if (result == OK)
    result = tensor_rows(values, s->entry, count, &out[1]);
  if (result == OK)
    result = tensor_copy_in(DTYPE_INT64, &(struct shape){1, {rank - 1}}, (const int64_t *)shape->data + 1, &out[2]);
  if (result != OK)
    element_release(out, 2);
  s->entry += count;
  s->row++;
  return result;
}

static int64_t sparse_size(const struct dataset *d) { return *(const int64_t *)d->inputs[2]->data; }

/* ---- batches of elements of different sizes as sparse tensors: inputs are the size and the shape of a row, -1: as large as it is ---- */

struct rows {
  VEC(struct tensor *) tensors;
  int64_t values; /* of all of them */
};

static status dense_check(const struct dataset *d) {
  int64_t size;
  if (d->sources[0]->component_count != 1)
    return fail(INVALID_ARGUMENT, "DenseToSparseBatchDataset only supports inputs with a single component.");
  TRY(dataset_int(d, 0, "batch_size", &size));
  if (size < 1)
    return fail(INVALID_ARGUMENT, "Batch size must be greater than zero.");
  return d->inputs[1]->shape.rank == 1 ? OK : fail(INVALID_ARGUMENT, "row_shape must be a vector");
}

static int64_t dense_size(const struct dataset *d) { return dataset_size_batched(d, host_scalar_int(d->inputs[0]), false); }

/* One more row: it must fit, or make the batch's shape larger. */
static status dense_measure(const struct tensor *wanted, const struct tensor *row, int64_t *shape) {
  const int64_t *limits = wanted->data;
  if (row->shape.rank != wanted->count)
    return fail(INVALID_ARGUMENT, "Input element had shape (%s) that is incompatible with the row shape of rank %lld.",
                shape_text(&row->shape), (long long)wanted->count);
  for (int d = 0; d < row->shape.rank; d++) {
    if (limits[d] >= 0 && row->shape.dims[d] > limits[d])
      return fail(DATA_LOSS, "Input element had shape (%s) that is larger than the row shape.", shape_text(&row->shape));
    shape[d + 1] = limits[d] >= 0 ? limits[d] : row->shape.dims[d] > shape[d + 1] ? row->shape.dims[d] : shape[d + 1];
  }
  return OK;
}

static status dense_read(struct cursor *c, const struct dataset_run *run, struct rows *rows, int64_t *shape) {
  int64_t size = host_scalar_int(c->dataset->inputs[0]);
  while (rows->tensors.count < size) {
    struct tensor *row;
    bool end;
    TRY(cursor_source_next(c, 0, run, &row, &end));
    if (end)
      return OK;
    vec_push(&rows->tensors, row);
    rows->values += row->count;
    TRY(dense_measure(c->dataset->inputs[1], row, shape));
  }
  return OK;
}

static void put_indices(const struct rows *rows, int64_t rank, int64_t *to) {
  for (int64_t r = 0; r < rows->tensors.count; r++) {
    const struct tensor *row = rows->tensors.items[r];
    for (int64_t i = 0; i < row->count; i++, to += rank) {
      int64_t rest = i;
      to[0] = r;
      for (int d = row->shape.rank; d-- > 0; rest /= row->shape.dims[d])
        to[d + 1] = rest % row->shape.dims[d];
    }
  }
}

static status dense_join(const struct rows *rows, const int64_t *shape, int64_t rank, struct tensor **out) {
  const struct shape values = {1, {rows->values}};
  struct boxed_sparse box = {0};
  status s = tensor_create(DTYPE_INT64, &(struct shape){2, {rows->values, rank}}, &box.indices);
  if (s == OK)
    put_indices(rows, rank, box.indices->data);
  s = s == OK ? parts_join(rows->tensors.items, rows->tensors.count, 1, &values, &box.values) : s;
  s = s == OK ? tensor_copy_in(DTYPE_INT64, &(struct shape){1, {rank}}, shape, &box.shape) : s;
  s = s == OK ? boxed_sparse_variants(&box, out) : s;
  boxed_sparse_deinit(&box);
  return s;
}

static status dense_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct rows rows = {0};
  int64_t shape[LIMIT_RANK + 1] = {0}, rank = c->dataset->inputs[1]->count + 1;
  if (rank > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "a batch of rank %lld", (long long)rank);
  for (int64_t d = 1; d < rank; d++)
    shape[d] = ((const int64_t *)c->dataset->inputs[1]->data)[d - 1] < 0 ? 0 : ((const int64_t *)c->dataset->inputs[1]->data)[d - 1];
  status result = dense_read(c, run, &rows, shape);
  *end = rows.tensors.count == 0;
  shape[0] = rows.tensors.count;
  if (result == OK && !*end)
    result = dense_join(&rows, shape, rank, &out[0]);
  element_release(rows.tensors.items, rows.tensors.count);
  vec_free(&rows.tensors);
  return result;
}

const struct dataset_kind dataset_slices[] = {
  {"RebatchDataset", sizeof(struct divide_state), divide_next, divide_stop, divide_check, .size = NULL},
  {"RebatchDatasetV2", sizeof(struct rebatch_state), rebatch_next, rebatch_stop, rebatch_check, .size = NULL},
  {"SparseTensorSliceDataset", sizeof(struct sparse_state), sparse_next, NULL, sparse_check, .components = 3, .size = sparse_size},
  {"DenseToSparseBatchDataset", 0, dense_next, NULL, dense_check, .size = dense_size},
  {0},
};
