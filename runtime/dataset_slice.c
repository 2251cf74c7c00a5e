/* dataset_slice.c: elements cut from larger ones or put together from smaller ones, other than by plain batches: batches of other
 * sizes, rows of a sparse tensor, batches that are sparse tensors, windows as batches. */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "runtime/boxed_sparse.h"
#include "runtime/dataset.h"
#include "runtime/object.h"

/* ---- rows [first, end) of a tensor ---- */

static status rows_of(const struct tensor *t, int64_t first, int64_t end, struct tensor **out) {
  struct shape shape = t->shape;
  int64_t each = t->shape.dims[0] ? t->count / t->shape.dims[0] : 0;
  shape.dims[0] = end - first;
  if (t->dtype == DTYPE_VARIANT)
    return objects_share(t, first * each, &shape, out);
  return tensor_copy_in(t->dtype, &shape, (const char *)t->data + (size_t)(first * each) * dtype_size(t->dtype), out);
}

static status check_rows(struct tensor *const *element, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (element[i]->shape.rank == 0)
      return fail(INVALID_ARGUMENT, "Cannot rebatch dataset: All components must have at least one dimension. Perhaps your input dataset is not batched? Component %u is scalar.", i);
    if (element[i]->shape.dims[0] != element[0]->shape.dims[0])
      return fail(INVALID_ARGUMENT, "Cannot rebatch dataset: All components must have the same 0th dimension. Component %u has 0th dimension %lld but component 0 has %lld.",
                  i, (long long)element[i]->shape.dims[0], (long long)element[0]->shape.dims[0]);
  }
  return OK;
}

/* ---- each batch as num_replicas smaller ones ---- */

struct divide_state {
  struct tensor *element[DATASET_COMPONENTS_MAX];
  int64_t at;
};

static void divide_stop(struct cursor *c) {
  element_release(((struct divide_state *)c->state)->element, c->dataset->component_count);
}

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
  }
  for (uint32_t i = 0; i < count; i++) {
    if (s->element[i]->shape.rank == 0)
      return fail(INVALID_ARGUMENT, "Cannot rebatch dataset: All components must have at least one dimension. Perhaps your input dataset is not batched? Component %u is scalar.", i);
    int64_t rows = s->element[i]->shape.dims[0], each = (rows + replicas - 1) / replicas;
    int64_t last = each * (s->at + 1) < rows ? each * (s->at + 1) : rows, first = each * s->at < last ? each * s->at : last;
    status result = rows_of(s->element[i], first, last, &out[i]);
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
  VEC(struct tensor *) parts; /* of the batch that is being made, components side by side */
  struct tensor *element[DATASET_COMPONENTS_MAX];
  int64_t at, rows, which;    /* in the element; of it; of the sizes */
  bool has_element, source_ended;
};

static void rebatch_stop(struct cursor *c) {
  struct rebatch_state *s = c->state;
  element_release(s->element, c->dataset->component_count);
  element_release(s->parts.items, s->parts.count);
  vec_free(&s->parts);
}

static status rebatch_check(const struct dataset *d) {
  if (d->input_count < 2 || d->inputs[0]->shape.rank > 1)
    return fail(INVALID_ARGUMENT, "`batch_sizes` must be a scalar or a vector.");
  return OK;
}

/* Parts one behind the other as one tensor. */
static status join_parts(struct cursor *c, uint32_t component, int64_t rows, struct tensor **out) {
  struct rebatch_state *s = c->state;
  uint32_t count = c->dataset->component_count;
  struct tensor *views;
  struct shape shape = s->parts.items[component]->shape;
  shape.dims[0] = rows;
  enum dtype dtype = s->parts.items[component]->dtype;
  TRY(tensor_create(dtype, &shape, &views));
  size_t at = 0;
  for (uint32_t i = component; i < s->parts.count; i += count) {
    size_t bytes = (size_t)tensor_byte_size(s->parts.items[i]);
    if (at + bytes > (size_t)tensor_byte_size(views)) {
      tensor_release(views);
      return fail(INVALID_ARGUMENT, "Cannot rebatch: component %u has elements of different shapes", component);
    }
    if (bytes)
      memcpy((char *)views->data + at, s->parts.items[i]->data, bytes);
    at += bytes;
  }
  if (dtype != DTYPE_STRING) {
    *out = views;
    return OK;
  }
  status result = tensor_clone(views, out);
  tensor_release(views);
  return result;
}

static status take_part(struct cursor *c, const struct dataset_run *run, int64_t missing, int64_t *got) {
  struct rebatch_state *s = c->state;
  uint32_t count = c->dataset->component_count;
  *got = 0;
  if (!s->has_element) {
    TRY(cursor_source_next(c, 0, run, s->element, &s->source_ended));
    if (s->source_ended)
      return OK;
    s->has_element = true;
    s->at = 0;
    TRY(check_rows(s->element, count));
    s->rows = s->element[0]->shape.dims[0];
  }
  int64_t end = s->rows - s->at < missing ? s->rows : s->at + missing;
  for (uint32_t i = 0; i < count; i++) {
    struct tensor *part;
    TRY(rows_of(s->element[i], s->at, end, &part));
    vec_push(&s->parts, part);
  }
  *got = end - s->at;
  s->at = end;
  if (s->at == s->rows) {
    element_release(s->element, count);
    s->has_element = false;
  }
  return OK;
}

static status rebatch_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct rebatch_state *s = c->state;
  const struct dataset *d = c->dataset;
  const struct tensor *sizes = d->inputs[0];
  int64_t wanted = ((const int64_t *)sizes->data)[s->which], have = 0, got;
  bool drops = dataset_bool(d, 1, false);
  s->which = (s->which + 1) % sizes->count;
  if (wanted == 0 && !s->has_element) { /* a batch without rows has the shape of the next one */
    TRY(cursor_source_next(c, 0, run, s->element, &s->source_ended));
    s->has_element = !s->source_ended;
    s->at = 0;
    if (s->has_element) {
      TRY(check_rows(s->element, d->component_count));
      s->rows = s->element[0]->shape.dims[0];
    }
  }
  for (bool first = true; !s->source_ended && (have < wanted || first); first = false) {
    TRY(take_part(c, run, wanted - have, &got));
    have += got;
  }
  *end = s->parts.count == 0 || (s->source_ended && (have == 0 || (drops && have < wanted)));
  for (uint32_t i = 0; !*end && i < d->component_count; i++) {
    status result = join_parts(c, i, have, &out[i]);
    if (result != OK) {
      element_release(out, i);
      return result;
    }
  }
  element_release(s->parts.items, s->parts.count);
  s->parts.count = 0;
  return OK;
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
  for (int64_t i = 1; i < values->count; i++)
    if (at[i * shape->count] < at[(i - 1) * shape->count])
      return fail(UNIMPLEMENTED, "The SparseTensor must be ordered in the batch dimension; handling arbitrarily ordered input is not currently supported.");
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
  while (s->entry + count < values->count && at[(s->entry + count) * rank] == s->row)
    count++;
  TRY(tensor_create(DTYPE_INT64, &(struct shape){ 2, { count, rank - 1 } }, &out[0]));
  for (int64_t i = 0; i < count; i++)
    for (int64_t d = 1; d < rank; d++)
      ((int64_t *)out[0]->data)[i * (rank - 1) + d - 1] = at[(s->entry + i) * rank + d];
  status result = rows_of(values, s->entry, s->entry + count, &out[1]);
  if (result == OK)
    result = tensor_copy_in(DTYPE_INT64, &(struct shape){ 1, { rank - 1 } }, (const int64_t *)shape->data + 1, &out[2]);
  if (result != OK)
    element_release(out, out[1] ? 2 : 1);
  s->entry += count;
  s->row++;
  return result;
}

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

/* One more row: it must fit, or make the batch's shape larger. */
static status dense_measure(const struct tensor *wanted, const struct tensor *row, int64_t *shape) {
  const int64_t *limits = wanted->data;
  if (row->shape.rank != wanted->count)
    return fail(INVALID_ARGUMENT, "Input element had shape (%s) that is incompatible with the row shape of rank %lld.", shape_text(&row->shape),
                (long long)wanted->count);
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

static status dense_values(const struct rows *rows, struct tensor **out) {
  enum dtype dtype = rows->tensors.items[0]->dtype;
  struct tensor *views;
  size_t at = 0;
  TRY(tensor_create(dtype, &(struct shape){ 1, { rows->values } }, &views));
  for (uint32_t r = 0; r < rows->tensors.count; r++) {
    size_t bytes = (size_t)tensor_byte_size(rows->tensors.items[r]);
    if (bytes)
      memcpy((char *)views->data + at, rows->tensors.items[r]->data, bytes);
    at += bytes;
  }
  if (dtype != DTYPE_STRING) {
    *out = views;
    return OK;
  }
  status result = tensor_clone(views, out);
  tensor_release(views);
  return result;
}

static status dense_join(const struct rows *rows, const int64_t *shape, int64_t rank, struct tensor **out) {
  struct boxed_sparse box = { 0 };
  status s = tensor_create(DTYPE_INT64, &(struct shape){ 2, { rows->values, rank } }, &box.indices);
  if (s == OK)
    put_indices(rows, rank, box.indices->data);
  s = s == OK ? dense_values(rows, &box.values) : s;
  s = s == OK ? tensor_copy_in(DTYPE_INT64, &(struct shape){ 1, { rank } }, shape, &box.shape) : s;
  s = s == OK ? boxed_sparse_variants(&box, out) : s;
  boxed_sparse_deinit(&box);
  return s;
}

static status dense_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct rows rows = { 0 };
  int64_t shape[LIMIT_RANK + 1] = { 0 }, rank = c->dataset->inputs[1]->count + 1;
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

/* ---- windows, each as one batch ---- */

struct sliding_state {
  VEC(struct tensor *) held; /* components side by side */
  int64_t count, skip;
  bool source_ended;
};

static void sliding_stop(struct cursor *c) {
  struct sliding_state *s = c->state;
  element_release(s->held.items, s->held.count);
  vec_free(&s->held);
}

static status sliding_check(const struct dataset *d) {
  static const char *const names[] = { "Window size", "Window shift", "window_stride" };
  for (uint32_t i = 0; i < 3; i++) {
    int64_t value;
    TRY(dataset_int(d, i, names[i], &value));
    if (value < 1)
      return fail(INVALID_ARGUMENT, "%s must be greater than zero.", names[i]);
  }
  return OK;
}

static status sliding_fill(struct cursor *c, const struct dataset_run *run, int64_t wanted) {
  struct sliding_state *s = c->state;
  uint32_t width = c->dataset->component_count;
  while (!s->source_ended && (s->skip > 0 || s->count < wanted)) {
    struct tensor *element[DATASET_COMPONENTS_MAX];
    TRY(cursor_source_next(c, 0, run, element, &s->source_ended));
    if (s->source_ended)
      break;
    if (s->skip-- > 0) {
      element_release(element, width);
      continue;
    }
    s->skip = 0;
    for (uint32_t i = 0; i < width; i++)
      vec_push(&s->held, element[i]);
    s->count++;
  }
  return OK;
}

static status sliding_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  struct sliding_state *s = c->state;
  const struct dataset *d = c->dataset;
  uint32_t width = d->component_count;
  int64_t size = host_scalar_int(d->inputs[0]), shift = host_scalar_int(d->inputs[1]), stride = host_scalar_int(d->inputs[2]);
  int64_t wanted = (size - 1) * stride + 1;
  TRY(sliding_fill(c, run, wanted));
  *end = s->count == 0 || (s->count < wanted && host_attr_int(&d->words, "drop_remainder", 1));
  if (*end)
    return OK;
  for (uint32_t i = 0; i < width; i++) {
    status result = rows_stack(s->held.items + i, (s->count + stride - 1) / stride, stride * width, i, &out[i]);
    if (result != OK) {
      element_release(out, i);
      return result;
    }
  }
  int64_t gone = shift < s->count ? shift : s->count;
  element_release(s->held.items, (uint32_t)gone * width);
  s->held.count -= (uint32_t)gone * width;
  memmove(s->held.items, s->held.items + gone * width, s->held.count * sizeof *s->held.items);
  s->count -= gone;
  s->skip = shift - gone;
  return OK;
}

/* ---- a list of elements: the tensors of one behind those of the other ---- */

struct place_state {
  uint32_t at;
};

static status list_next(struct cursor *c, const struct dataset_run *run, struct tensor **out, bool *end) {
  (void)run;
  struct place_state *s = c->state;
  uint32_t width = c->dataset->component_count;
  *end = s->at + width > c->dataset->input_count;
  for (uint32_t i = 0; !*end && i < width; i++)
    out[i] = tensor_retain(c->dataset->inputs[s->at + i]);
  s->at += width;
  return OK;
}

const struct dataset_kind dataset_slices[] = {
  { "RebatchDataset", sizeof(struct divide_state), divide_next, divide_stop, divide_check },
  { "RebatchDatasetV2", sizeof(struct rebatch_state), rebatch_next, rebatch_stop, rebatch_check },
  { "SparseTensorSliceDataset", sizeof(struct sparse_state), sparse_next, NULL, sparse_check },
  { "SlidingWindowDataset", sizeof(struct sliding_state), sliding_next, sliding_stop, sliding_check },
  { "DenseToSparseBatchDataset", 0, dense_next, NULL, dense_check },
  { "ListDataset", sizeof(struct place_state), list_next, NULL, NULL },
  { NULL, 0, NULL, NULL, NULL },
};
