/* host_ragged.c: ragged tensors as variants: encoded as a whole or row by row, decoded and stacked, and the gradient of encoding. */
#include <stdlib.h>
#include <string.h>

#include "runtime/host/object.h"
#include "runtime/text/element_number.h"
#include "runtime/value/element_sum.h"
#include "runtime/value/object_message.h"
#include "runtime/value/tensor_list.h"

struct ragged {
  struct object object;
  int rank; /* of the splits */
  struct tensor *splits[LIMIT_RANK];
  struct tensor *values;
};

static void ragged_destroy(struct object *object) {
  struct ragged *r = (struct ragged *)object;
  for (int i = 0; i < r->rank; i++)
    tensor_release(r->splits[i]);
  tensor_release(r->values);
  free(r);
}
static status ragged_zeros(const struct object *object, struct object **out);
static status ragged_add(const struct object *a, const struct object *b, struct object **out);
static const struct object_kind ragged_kind = {"RaggedTensorVariant", ragged_destroy, ragged_zeros, ragged_add, &ragged_message};

static status ragged_create(int rank, struct ragged **out) {
  *out = calloc(1, sizeof **out);
  if (!*out)
    return fail(RESOURCE_EXHAUSTED, "no memory for a ragged tensor");
  object_init(&(*out)->object, &ragged_kind);
  (*out)->rank = rank;
  return OK;
}

/* ---- arithmetic ---- */

/* The same rows around other values. */
static status ragged_like(const struct ragged *from, struct ragged **out) {
  TRY(ragged_create(from->rank, out));
  for (int i = 0; i < from->rank; i++)
    (*out)->splits[i] = tensor_retain(from->splits[i]);
  return OK;
}

static status ragged_zeros(const struct object *object, struct object **out) {
  const struct ragged *x = (const struct ragged *)object;
  struct ragged *r;
  TRY(ragged_like(x, &r));
  *out = &r->object;
  return tensor_zeros(x->values->dtype, &x->values->shape, &r->values);
}

static bool same_elements(const struct tensor *a, const struct tensor *b) {
  return a->dtype == b->dtype && a->count == b->count && (a->count == 0 || memcmp(a->data, b->data, (size_t)tensor_byte_size(a)) == 0);
}

static status ragged_add(const struct object *a, const struct object *b, struct object **out) {
  const struct ragged *x = (const struct ragged *)a, *y = (const struct ragged *)b;
  struct ragged *r;
  if (x->values->dtype != y->values->dtype)
    return fail(INVALID_ARGUMENT, "Can't add RaggedTensorVariants of different dtypes. One is %s and the other is %s",
                dtype_name(x->values->dtype), dtype_name(y->values->dtype));
  if (x->rank != y->rank)
    return fail(INVALID_ARGUMENT, "Can't add RaggedTensorVariants of different ragged rank. One is %d and the other is %d", x->rank,
                y->rank);
  for (int i = 0; i < x->rank; i++)
    if (!same_elements(x->splits[i], y->splits[i]))
      return fail(INVALID_ARGUMENT, "Can't add RaggedTensorVariants with different row_splits.");
  if (x->values->count != y->values->count || !element_sum_has(x->values->dtype))
    return fail(INVALID_ARGUMENT, "Can't add values of shapes %s and %s, of %s", shape_text(&x->values->shape),
                shape_text(&y->values->shape), dtype_name(x->values->dtype));
  TRY(ragged_like(x, &r));
  *out = &r->object;
  TRY(tensor_clone(x->values, &r->values));
  element_add(r->values->dtype, r->values->data, y->values->data, r->values->count);
  return OK;
}

/* ---- encoding ---- */

/* Splits ascend from 0; the last is `count`, or anything when that is negative. */
static status check_splits(const struct tensor *splits, int64_t count) {
  if (splits->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "Invalid ragged splits: ragged splits must be rank 1 but is rank %d", splits->shape.rank);
  if (splits->count < 1)
    return fail(INVALID_ARGUMENT, "Invalid ragged splits: ragged splits must have at least one splits, but is empty");
  int64_t last = element_int(splits, 0);
  if (last != 0)
    return fail(INVALID_ARGUMENT, "Invalid ragged splits: first element of ragged splits  must be 0 but is %lld", (long long)last);
  for (int64_t i = 1; i < splits->count; i++) {
    int64_t split = element_int(splits, i);
    if (split < last)
      return fail(INVALID_ARGUMENT,
                  "Invalid ragged splits: ragged splits must be monotonically increasing, but ragged_splits[%lld]=%lld is smaller than "
                  "row_splits[%lld]=%lld",
                  (long long)i, (long long)split, (long long)i - 1, (long long)last);
    last = split;
  }
  return count < 0 || last == count ? OK
                                    : fail(INVALID_ARGUMENT,
                                           "Invalid ragged splits: last element of ragged splits must be the number "
                                           "of ragged values(%lld) but is %lld",
                                           (long long)count, (long long)last);
}

static status ragged_of_inputs(const struct host_call *call, int rank, struct ragged **out) {
  const struct tensor *values = &call->inputs[rank];
  if (rank > 0 && values->shape.rank < 1)
    return fail(INVALID_ARGUMENT, "Requires flat_values to have rank>=1 when nested_row_splits is not empty, but is 0.");
  for (int i = rank - 1; i >= 0; i--)
    TRY(check_splits(&call->inputs[i], i == rank - 1 ? values->shape.dims[0] : call->inputs[i + 1].count - 1));
  struct ragged *r;
  TRY(ragged_create(rank, &r));
  status s = host_keep_input(call, (uint32_t)rank, &r->values);
  for (int i = 0; i < rank && s == OK; i++)
    s = host_keep_input(call, (uint32_t)i, &r->splits[i]);
  if (s != OK) {
    object_release(&r->object);
    return s;
  }
  *out = r;
  return OK;
}

/* ---- as bytes ---- */

static struct tensor *ragged_item(const struct object *object, uint32_t i) {
  const struct ragged *r = (const struct ragged *)object;
  return i > (uint32_t)r->rank ? NULL : i == (uint32_t)r->rank ? r->values : r->splits[i];
}

/* Splits, then the values. */
static status ragged_make(struct tensor *const *items, uint32_t count, struct string_view metadata, struct object **out) {
  (void)metadata;
  int rank = (int)count - 1;
  if (rank < 0 || rank > LIMIT_RANK)
    return fail(INVALID_ARGUMENT, "a ragged tensor of %u tensors", count);
  const struct tensor *values = items[rank];
  if (rank > 0 && values->shape.rank < 1)
    return fail(INVALID_ARGUMENT, "a ragged tensor whose values are a scalar");
  for (int i = rank - 1; i >= 0; i--) {
    if (items[i]->dtype != DTYPE_INT32 && items[i]->dtype != DTYPE_INT64)
      return fail(INVALID_ARGUMENT, "ragged splits of %s", dtype_name(items[i]->dtype));
    TRY(check_splits(items[i], i == rank - 1 ? values->shape.dims[0] : items[i + 1]->count - 1));
  }
  struct ragged *r;
  TRY(ragged_create(rank, &r));
  for (int i = 0; i < rank; i++)
    r->splits[i] = tensor_retain(items[i]);
  r->values = tensor_retain(items[rank]);
  *out = &r->object;
  return OK;
}
const struct object_message ragged_message = {"RaggedTensorVariant", ragged_item, NULL, ragged_make};

/* ---- rows ---- */

/* Splits from .. to, beginning with 0. */
static status splits_of_row(const struct tensor *splits, int64_t from, int64_t to, struct tensor **out) {
  TRY(tensor_create(splits->dtype, &(struct shape){1, {to - from + 1}}, out));
  for (int64_t i = from; i <= to; i++)
    element_put_int(*out, i - from, element_int(splits, i) - element_int(splits, from));
  return OK;
}

static status fill_row(const struct ragged *all, int64_t row, struct ragged *out) {
  if (all->rank == 0)
    return tensor_row(all->values, row, &out->values);
  int64_t from = element_int(all->splits[0], row), to = element_int(all->splits[0], row + 1);
  for (int i = 1; i < all->rank; i++) {
    TRY(splits_of_row(all->splits[i], from, to, &out->splits[i - 1]));
    from = element_int(all->splits[i], from);
    to = element_int(all->splits[i], to);
  }
  return tensor_rows(all->values, from, to - from, &out->values);
}

static status put_rows(struct host_call *call, const struct ragged *all) {
  if (all->values->shape.rank < 1)
    return fail(INVALID_ARGUMENT, "Can't unbatch rank-0 tensor.");
  int64_t rows = all->rank ? all->splits[0]->count - 1 : all->values->shape.dims[0];
  TRY(objects_create(&(struct shape){1, {rows}}, &call->outputs[0]));
  for (int64_t i = 0; i < rows; i++) {
    struct ragged *row;
    TRY(ragged_create(all->rank ? all->rank - 1 : 0, &row));
    objects_put(call->outputs[0], i, &row->object);
    TRY(fill_row(all, i, row));
  }
  return OK;
}

status host_ragged_to_variant(struct host_call *call) {
  struct ragged *all = NULL;
  TRY(ragged_of_inputs(call, (int)call->input_count - 1, &all));
  if (!host_attr_int(call, "batched_input", 0))
    return object_output(call, 0, &all->object);
  status s = put_rows(call, all);
  object_release(&all->object);
  return s;
}

/* ---- decoding ---- */

static status check_component(const struct host_call *call, const struct object *object, int64_t i, int input_rank, int output_rank) {
  const struct ragged *r = (const struct ragged *)object;
  enum dtype splits = (enum dtype)host_attr_int(call, "Tsplits", DTYPE_INT64), values = (enum dtype)host_attr_int(call, "Tvalues", 0);
  if (!object || object->kind != &ragged_kind)
    return fail(INVALID_ARGUMENT, "Input Variant element at index %lld doesn't hold a RaggedTensorVariant", (long long)i);
  if (r->rank != input_rank)
    return fail(INVALID_ARGUMENT, "Encoded input RaggedTensorVariant has ragged_rank=%d.  Expected ragged_rank=%d.", r->rank, input_rank);
  if (r->values->dtype != values)
    return fail(INVALID_ARGUMENT, "Expected values Tensor dtype: %s, found: %s", dtype_name(values), dtype_name(r->values->dtype));
  if (r->values->shape.rank < 1 && output_rank != 0)
    return fail(INVALID_ARGUMENT, "Ragged values must have rank >= 1; encoded scalar element at index %lld", (long long)i);
  for (int d = 0; d < r->rank; d++)
    if (r->splits[d]->dtype != splits)
      return fail(INVALID_ARGUMENT, "Expected row_splits Tensor dtype: %s, found: %s", dtype_name(splits), dtype_name(r->splits[d]->dtype));
  return OK;
}

static const struct ragged *component(const struct tensor *encoded, int64_t i) { return (const struct ragged *)objects_of(encoded)[i]; }

/* Splits that the shape of the variants says: all rows of a dimension are equally long. */
static status put_outer_splits(struct host_call *call, const struct tensor *encoded, enum dtype dtype) {
  for (int d = 0; d < encoded->shape.rank - 1; d++) {
    int64_t rows = encoded->shape.dims[d], each = encoded->shape.dims[d + 1];
    for (int before = 0; before < d; before++)
      rows *= encoded->shape.dims[before];
    TRY(host_make_output(call, (uint32_t)d, dtype, &(struct shape){1, {rows + 1}}));
    for (int64_t i = 0; i <= rows; i++)
      element_put_int(call->outputs[d], i, i * each);
  }
  return OK;
}

/* Splits of level `level` of all components (-1: how many rows each has) behind each other. */
static status put_joined_splits(struct host_call *call, const struct tensor *encoded, uint32_t output, int level, enum dtype dtype) {
  int64_t count = 1, at = 0, last = 0;
  for (int64_t i = 0; i < encoded->count; i++)
    count += level < 0 ? 1 : component(encoded, i)->splits[level]->count - 1;
  TRY(host_make_output(call, output, dtype, &(struct shape){1, {count}}));
  element_put_int(call->outputs[output], at++, 0);
  for (int64_t i = 0; i < encoded->count; i++) {
    const struct ragged *r = component(encoded, i);
    if (level < 0) {
      last += r->rank ? r->splits[0]->count - 1 : r->values->shape.dims[0];
      element_put_int(call->outputs[output], at++, last);
      continue;
    }
    const struct tensor *splits = r->splits[level];
    for (int64_t k = 1; k < splits->count; k++)
      element_put_int(call->outputs[output], at++, last + element_int(splits, k));
    last += splits->count > 1 ? element_int(splits, splits->count - 1) : 0;
  }
  return OK;
}

/* Values of all components behind each other, or (stacked) on a new first dimension. */
static status put_joined_values(struct host_call *call, const struct tensor *encoded, uint32_t output, bool stacked) {
  struct shape shape = {.rank = 1, .dims = {0}};
  struct tensor **parts = calloc((size_t)encoded->count + 1, sizeof *parts);
  status s = parts ? OK : fail(RESOURCE_EXHAUSTED, "no memory for %lld ragged tensors", (long long)encoded->count);
  for (int64_t i = 0; i < encoded->count && s == OK; i++) {
    parts[i] = component(encoded, i)->values;
    const struct shape *here = &parts[i]->shape, *first = &parts[0]->shape;
    int from = stacked ? 0 : 1;
    if (here->rank != first->rank || memcmp(here->dims + from, first->dims + from, sizeof *here->dims * (size_t)(here->rank - from)) != 0)
      s = fail(INVALID_ARGUMENT, "All flat_values must have compatible shapes.  Shape at index 0: %s.  Shape at index %lld: %s",
               shape_text(first), (long long)i, shape_text(here));
    if (i == 0 && stacked) {
      shape.rank = first->rank + 1;
      memcpy(shape.dims + 1, first->dims, sizeof *first->dims * (LIMIT_RANK - 1));
    } else if (i == 0) {
      shape = *first;
      shape.dims[0] = 0;
    }
    shape.dims[0] += stacked ? 1 : here->dims[0];
  }
  if (s == OK && shape.rank > LIMIT_RANK)
    s = fail(UNIMPLEMENTED, "a stack of rank %d", shape.rank);
  if (s == OK)
    s = tensor_join((enum dtype)host_attr_int(call, "Tvalues", 0), &shape, parts, encoded->count, &call->outputs[output]);
  free(parts);
  return s;
}

/* Values of another rank than the program was compiled for cannot be taken: others were encoded than it was seen to encode. */
static status check_values_rank(const struct host_call *call, uint32_t output) {
  int64_t wanted = host_attr_int(call, "values_rank", -1);
  int rank = call->outputs[output]->shape.rank;
  return wanted < 0 || rank == wanted
         ? OK
         : fail(UNIMPLEMENTED, "decoded values of rank %d, of rank %lld while compiling", rank, (long long)wanted);
}

status host_ragged_from_variant(struct host_call *call) {
  const struct tensor *encoded;
  TRY(objects_input(call, 0, &encoded));
  int output_rank = (int)host_attr_int(call, "output_ragged_rank", 0), input_rank = (int)host_attr_int(call, "input_ragged_rank", -1);
  int dims = encoded->shape.rank;
  if (input_rank < 0)
    input_rank = output_rank == 0 && dims > 0 ? 0 : output_rank - dims;
  if (input_rank < 0 || !((output_rank == 0 && input_rank == 0) || output_rank == dims + input_rank))
    return fail(INVALID_ARGUMENT,
                "output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); output_ragged_rank: %d, "
                "input_ragged_rank: %d, encoded_variant.dims(): %d",
                output_rank, input_rank, dims);
  for (int64_t i = 0; i < encoded->count; i++)
    TRY(check_component(call, objects_of(encoded)[i], i, input_rank, output_rank));
  if (dims == 0) {
    const struct ragged *r = component(encoded, 0);
    for (int d = 0; d < r->rank; d++)
      call->outputs[d] = tensor_retain(r->splits[d]);
    call->outputs[r->rank] = tensor_retain(r->values);
    return check_values_rank(call, (uint32_t)r->rank);
  }
  enum dtype dtype = (enum dtype)host_attr_int(call, "Tsplits", DTYPE_INT64);
  if (output_rank > 0) {
    TRY(put_outer_splits(call, encoded, dtype));
    for (int level = -1; level < input_rank; level++)
      TRY(put_joined_splits(call, encoded, (uint32_t)(dims + level), level, dtype));
  }
  TRY(put_joined_values(call, encoded, (uint32_t)output_rank, output_rank == 0));
  return check_values_rank(call, (uint32_t)output_rank);
}

/* ---- the gradient of encoding ---- */

static status zero_piece(const struct host_call *call, const struct shape *like, int64_t i, struct tensor **out) {
  const struct tensor *splits = &call->inputs[1];
  struct shape shape = *like;
  if (splits->shape.rank > 0 && i + 1 >= splits->count)
    return fail(INVALID_ARGUMENT, "%lld row splits for more gradients", (long long)splits->count);
  if (shape.rank > 0)
    shape.dims[0] = splits->shape.rank > 0 ? element_int(splits, i + 1) - element_int(splits, i) : shape.dims[0];
  return tensor_zeros((enum dtype)host_attr_int(call, "Tvalues", 0), &shape, out);
}

static status join_pieces(struct host_call *call, const struct tensor *encoded, const struct shape *shape, struct tensor **pieces) {
  enum dtype dtype = (enum dtype)host_attr_int(call, "Tvalues", 0);
  int64_t total = 0;
  for (int64_t i = 0; i < encoded->count; i++) {
    const struct ragged *r = component(encoded, i);
    bool there = r && r->object.kind == &ragged_kind;
    if (there)
      pieces[i] = tensor_retain(r->values);
    else
      TRY(zero_piece(call, shape, i, &pieces[i]));
    if (pieces[i]->dtype != dtype)
      return fail(INVALID_ARGUMENT, "Expected values Tensor dtype: %s, found: %s", dtype_name(dtype), dtype_name(pieces[i]->dtype));
    total += pieces[i]->count;
  }
  if (encoded->count == 1) {
    call->outputs[0] = tensor_retain(pieces[0]);
    return OK;
  }
  if (total != shape_count(shape))
    return fail(INVALID_ARGUMENT, "the gradients have %lld elements, dense values of shape %s were encoded", (long long)total,
                shape_text(shape));
  return tensor_join(dtype, shape, pieces, encoded->count, &call->outputs[0]);
}

status host_ragged_to_variant_gradient(struct host_call *call) {
  const struct tensor *encoded, *dims = &call->inputs[2];
  struct shape shape = {.rank = (int)dims->count};
  TRY(objects_input(call, 0, &encoded));
  if (dims->count > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "values of rank %lld", (long long)dims->count);
  for (int d = 0; d < shape.rank; d++)
    shape.dims[d] = element_int(dims, d);
  if (shape_count(&shape) < 0)
    return fail(INVALID_ARGUMENT, "%s is no shape of a tensor", shape_text(&shape));
  if (call->inputs[1].shape.rank > 0)
    TRY(check_splits(&call->inputs[1], -1));
  struct tensor **pieces = calloc((size_t)encoded->count + 1, sizeof *pieces);
  if (!pieces)
    return fail(RESOURCE_EXHAUSTED, "no memory for %lld gradients", (long long)encoded->count);
  status s = join_pieces(call, encoded, &shape, pieces);
  for (int64_t i = 0; i < encoded->count; i++)
    tensor_release(pieces[i]);
  free(pieces);
  return s;
}
