/* host_tensor_list.c: tensor lists of TensorFlow 2: values, so that every change makes a new list over the same elements. */
#include <string.h>

#include "runtime/tensor_list.h"

/* An element shape as ops give it: a scalar -1, or sizes of which -1 are unknown. */
static void take_shape(const struct tensor *shape, struct tensor_list *list) {
  if (shape->shape.rank != 1 || shape->count > LIMIT_RANK)
    return;
  int rank = (int)shape->count;
  for (int d = 0; d < rank; d++) {
    int64_t size = shape->dtype == DTYPE_INT64 ? ((const int64_t *)shape->data)[d] : ((const int32_t *)shape->data)[d];
    bool better = list->rank != rank || list->dims[d] < 0;
    list->dims[d] = better ? size : list->dims[d];
  }
  list->rank = rank;
}

static enum dtype element_dtype(const struct host_call *call) { return (enum dtype)host_attr_int(call, "element_dtype", DTYPE_FLOAT); }

status host_list_empty(struct host_call *call) {
  struct tensor_list *list;
  TRY(list_make_output(call, 0, DTYPE_VARIANT, element_dtype(call), 0, &list));
  take_shape(&call->inputs[0], list);
  return OK;
}

status host_list_reserve(struct host_call *call) {
  struct tensor_list *list;
  TRY(list_make_output(call, 0, DTYPE_VARIANT, element_dtype(call), host_scalar_int(&call->inputs[1]), &list));
  take_shape(&call->inputs[0], list);
  return OK;
}

status host_list_push(struct host_call *call) {
  struct tensor_list *from, *list;
  struct tensor *value;
  TRY(list_input(call, 0, &from));
  TRY(list_copy_output(call, 0, from, &list));
  TRY(host_keep_input(call, 1, &value));
  list->grows = true;
  return list_set(list, list->count, value);
}

static status get_element(const struct host_call *call, const struct tensor_list *from, int64_t index, uint32_t shape_input,
                          struct tensor **out) {
  struct tensor_list known = *from; /* a view with the shape that the op gives */
  take_shape(&call->inputs[shape_input], &known);
  return list_get(&known, index, out);
}

status host_list_pop(struct host_call *call) {
  struct tensor_list *from, *list;
  TRY(list_input(call, 0, &from));
  if (from->count == 0)
    return fail(INVALID_ARGUMENT, "Trying to pop from an empty list.");
  TRY(get_element(call, from, from->count - 1, 1, &call->outputs[1]));
  TRY(list_copy_output(call, 0, from, &list));
  return list_resize(list, list->count - 1);
}

status host_list_get(struct host_call *call) {
  struct tensor_list *from;
  TRY(list_input(call, 0, &from));
  int64_t index = host_scalar_int(&call->inputs[1]);
  if (index < 0 || index >= from->count)
    return fail(INVALID_ARGUMENT, "Trying to access element %lld in a list with %lld elements.", (long long)index, (long long)from->count);
  return get_element(call, from, index, 2, &call->outputs[0]);
}

status host_list_set(struct host_call *call) {
  struct tensor_list *from, *list;
  struct tensor *value;
  TRY(list_input(call, 0, &from));
  int64_t index = host_scalar_int(&call->inputs[1]);
  bool grows = host_attr_int(call, "resize_if_index_out_of_bounds", 0);
  if (index < 0 || (index >= from->count && !grows))
    return fail(INVALID_ARGUMENT, "Trying to modify element %lld in a list with %lld elements.", (long long)index, (long long)from->count);
  TRY(list_copy_output(call, 0, from, &list));
  TRY(host_keep_input(call, 2, &value));
  list->grows = grows;
  return list_set(list, index, value);
}

status host_list_length(struct host_call *call) {
  struct tensor_list *list;
  TRY(list_input(call, 0, &list));
  TRY(host_make_output(call, 0, DTYPE_INT32, &(struct shape){0}));
  *(int32_t *)call->outputs[0]->data = (int32_t)list->count;
  return OK;
}

status host_list_resize(struct host_call *call) {
  struct tensor_list *from, *list;
  TRY(list_input(call, 0, &from));
  TRY(list_copy_output(call, 0, from, &list));
  int64_t size = host_scalar_int(&call->inputs[1]);
  return size < 0 ? fail(INVALID_ARGUMENT, "TensorListSlice expects size to be non-negative. Got: %lld", (long long)size)
                  : list_resize(list, size);
}

status host_list_stack(struct host_call *call) {
  struct tensor_list *from;
  TRY(list_input(call, 0, &from));
  struct tensor_list known = *from;
  take_shape(&call->inputs[1], &known);
  int64_t wanted = host_attr_int(call, "num_elements", -1);
  if (wanted >= 0 && wanted != from->count)
    return fail(INVALID_ARGUMENT, "Operation expected a list with %lld elements but got a list with %lld elements.", (long long)wanted,
                (long long)from->count);
  return list_stack(&known, NULL, known.count, &call->outputs[0]);
}

status host_list_gather(struct host_call *call) {
  struct tensor_list *from;
  TRY(list_input(call, 0, &from));
  struct tensor_list known = *from;
  take_shape(&call->inputs[2], &known);
  return list_stack(&known, call->inputs[1].data, call->inputs[1].count, &call->outputs[0]);
}

status host_list_concat(struct host_call *call) {
  struct tensor_list *from;
  TRY(list_input(call, 0, &from));
  return list_concat(from, &call->outputs[0], &call->outputs[1]);
}

static status append_rows(struct tensor_list *list, const struct tensor *tensor) {
  int64_t n = tensor->shape.rank ? tensor->shape.dims[0] : 0;
  TRY(list_resize(list, n));
  for (int64_t i = 0; i < n; i++) {
    struct tensor *row;
    TRY(tensor_row(tensor, i, &row));
    TRY(list_set(list, i, row));
  }
  return OK;
}

status host_list_from_tensor(struct host_call *call) {
  struct tensor_list *list;
  TRY(list_make_output(call, 0, DTYPE_VARIANT, element_dtype(call), 0, &list));
  take_shape(&call->inputs[1], list);
  return append_rows(list, &call->inputs[0]);
}

/* TensorListScatter, V2 (with the number of elements), and into an existing list. */
status host_list_scatter(struct host_call *call) {
  struct tensor_list *list, *from;
  bool existing = call->inputs[0].dtype == DTYPE_VARIANT;
  const struct tensor *values = &call->inputs[existing], *indices = &call->inputs[existing ? 2 : 1];
  if (existing) {
    TRY(list_input(call, 0, &from));
    TRY(list_copy_output(call, 0, from, &list));
  } else {
    int64_t count = call->input_count == 4 ? host_scalar_int(&call->inputs[3]) : -1;
    TRY(list_make_output(call, 0, DTYPE_VARIANT, element_dtype(call), count < 0 ? 0 : count, &list));
    take_shape(&call->inputs[2], list);
  }
  list->grows = true;
  for (int64_t i = 0; i < indices->count; i++) {
    struct tensor *row;
    TRY(tensor_row(values, i, &row));
    TRY(list_set(list, ((const int32_t *)indices->data)[i], row));
  }
  return OK;
}

status host_list_split(struct host_call *call) {
  struct tensor_list *list;
  const int64_t *lengths = call->inputs[2].data;
  int64_t at = 0, n = call->inputs[2].count;
  TRY(list_make_output(call, 0, DTYPE_VARIANT, element_dtype(call), n, &list));
  take_shape(&call->inputs[1], list);
  for (int64_t i = 0; i < n; i++) {
    struct tensor *rows;
    TRY(tensor_rows(&call->inputs[0], at, lengths[i], &rows));
    TRY(list_set(list, i, rows));
    at += lengths[i];
  }
  return at == (call->inputs[0].shape.rank ? call->inputs[0].shape.dims[0] : 0)
             ? OK
             : fail(INVALID_ARGUMENT, "Expected lengths to sum to the first dimension of the tensor, not to %lld", (long long)at);
}

status host_list_element_shape(struct host_call *call) {
  struct tensor_list *list;
  TRY(list_input(call, 0, &list));
  enum dtype dtype = (enum dtype)host_attr_int(call, "shape_type", DTYPE_INT32);
  struct shape shape = {.rank = 1, .dims = {list->rank < 0 ? 0 : list->rank}};
  if (list->rank < 0)
    shape.rank = 0;
  TRY(host_make_output(call, 0, dtype, &shape));
  for (int64_t d = 0; d < call->outputs[0]->count; d++) {
    int64_t size = list->rank < 0 ? -1 : list->dims[d];
    if (dtype == DTYPE_INT64)
      ((int64_t *)call->outputs[0]->data)[d] = size;
    else
      ((int32_t *)call->outputs[0]->data)[d] = (int32_t)size;
  }
  return OK;
}

/* As many elements of the same shapes, all zero: missing elements where the shape is known so. */
status host_list_zeros(struct host_call *call) {
  struct tensor_list *from, *list;
  TRY(list_input(call, 0, &from));
  TRY(list_copy_output(call, 0, from, &list));
  for (int64_t i = 0; i < list->count; i++) {
    struct tensor *zero;
    if (!list->items[i])
      continue;
    TRY(tensor_create(list->dtype, &list->items[i]->shape, &zero));
    if (zero->data)
      memset(zero->data, 0, (size_t)tensor_byte_size(zero));
    TRY(list_set(list, i, zero));
  }
  return OK;
}

/* Element by element; where only one list has an element it is taken as it is. */
status host_list_add(struct host_call *call) {
  struct tensor_list *list, *other;
  TRY(list_input(call, 0, &other));
  TRY(list_copy_output(call, 0, other, &list));
  list->adds = true;
  for (uint32_t i = 1; i < call->input_count; i++) {
    TRY(list_input(call, i, &other));
    if (other->count != list->count)
      return fail(INVALID_ARGUMENT, "Trying to add two lists of tensors with different lengths: %lld and %lld", (long long)list->count,
                  (long long)other->count);
    for (int64_t k = 0; k < other->count; k++)
      if (other->items[k])
        TRY(list_set(list, k, tensor_retain(other->items[k])));
  }
  list->adds = false;
  return OK;
}
