/* host_tensor_array.c: tensor arrays and stacks: lists that are changed in place. The order of uses is the graph's: the flow
 * value of tensor arrays, control edges. All generations of the ops come here: an older one's handle is a list's as well. */

#include "runtime/resource/tensor_array.h"

/* Output i: the flow value, which only orders. Older generations make none with the array. */
static status make_flow(struct host_call *call, uint32_t i) {
  if (i >= call->output_count)
    return OK;
  TRY(host_make_output(call, i, DTYPE_FLOAT, &(struct shape){0}));
  *(float *)call->outputs[i]->data = 0;
  return OK;
}

/* ---- shapes that attributes say ---- */

static status shape_attr(const struct host_call *call, const char *name, struct partial_shape *out) {
  struct shape shape;
  TRY(host_read_shape(call, host_attr(call, name), &shape));
  partial_shape_of(&shape, out);
  return OK;
}

/* Whether a shape, from dimension `from` on, is as the attribute says. */
static bool shape_fits(const struct partial_shape *want, const struct shape *shape, int from) {
  if (want->rank >= 0 && want->rank != shape->rank - from)
    return false;
  for (int d = 0; d < want->rank; d++)
    if (want->dims[d] >= 0 && want->dims[d] != shape->dims[d + from])
      return false;
  return true;
}

/* The shape of an element where there is none: dimensions in front of it are 0. */
static status empty_shape(const struct partial_shape *want, int front, struct shape *out) {
  out->rank = want->rank + front;
  for (int d = 0; d < front; d++)
    out->dims[d] = 0;
  for (int d = 0; d < want->rank; d++)
    out->dims[d + front] = want->dims[d];
  for (int d = 0; d < out->rank; d++)
    if (out->dims[d] < 0)
      out->rank = -1;
  return want->rank >= 0 && out->rank >= 0
         ? OK
         : fail(UNIMPLEMENTED, "TensorArray has size zero, but the element shape is not fully defined. Currently only static shapes are "
                               "supported when packing zero-size TensorArrays.");
}

static enum dtype dtype_attr(const struct host_call *call, const char *name) { return (enum dtype)host_attr_int(call, name, DTYPE_FLOAT); }

/* ---- making ---- */

status host_tensor_array(struct host_call *call) {
  struct tensor_list *array;
  struct partial_shape element;
  struct array_options options = {
    .dynamic_size = host_attr_int(call, "dynamic_size", 0) != 0,
    .clear_after_read = host_attr_int(call, "clear_after_read", 1) != 0,
    .identical_shapes = host_attr_int(call, "identical_element_shapes", 0) != 0,
  };
  if (call->inputs[0].shape.rank != 0)
    return fail(INVALID_ARGUMENT, "TensorArray size must be scalar, but had shape: %s", shape_text(&call->inputs[0].shape));
  TRY(shape_attr(call, "element_shape", &element));
  TRY(array_make_output(call, DTYPE_RESOURCE, dtype_attr(call, "dtype"), host_scalar_int(&call->inputs[0]), &options, &array));
  TRY(partial_shape_merge(&array->shape, &element));
  return make_flow(call, 1);
}

/* TensorArrayGradWithShape has the dimensions in front of the elements' as a third input. */
status host_tensor_array_grad(struct host_call *call) {
  struct tensor_list *array;
  struct shape prefix = {0};
  TRY(array_input(call, DTYPE_INVALID, &array));
  if (call->input_count > 2) {
    const struct tensor *sizes = &call->inputs[2];
    if (sizes->count > LIMIT_RANK)
      return fail(UNIMPLEMENTED, "gradients of rank %lld", (long long)sizes->count);
    prefix.rank = (int)sizes->count;
    for (int d = 0; d < prefix.rank; d++)
      prefix.dims[d] = ((const int32_t *)sizes->data)[d];
  }
  TRY(array_gradient_output(call, DTYPE_RESOURCE, array, host_attr_string(call, "source", ""), call->input_count > 2 ? &prefix : NULL));
  return make_flow(call, 1);
}

status host_tensor_array_close(struct host_call *call) {
  struct tensor_list *array;
  TRY(array_input_any(call, &array));
  array_close(array);
  return OK;
}

/* ---- one element ---- */

static status check_index(const struct host_call *call) {
  if (call->inputs[1].shape.rank == 0)
    return OK;
  return fail(INVALID_ARGUMENT, "TensorArray index must be scalar, but had shape: %s", shape_text(&call->inputs[1].shape));
}

status host_tensor_array_write(struct host_call *call) {
  struct tensor_list *array;
  struct tensor *value;
  TRY(check_index(call));
  TRY(array_input(call, call->inputs[2].dtype, &array));
  TRY(host_keep_input(call, 2, &value));
  TRY(array_write(array, host_scalar_int(&call->inputs[1]), value));
  return make_flow(call, 0);
}

status host_tensor_array_read(struct host_call *call) {
  struct tensor_list *array;
  TRY(check_index(call));
  TRY(array_input(call, dtype_attr(call, "dtype"), &array));
  return array_read(array, host_scalar_int(&call->inputs[1]), &call->outputs[0]);
}

/* ---- many elements into one tensor ---- */

static status stack(struct host_call *call, struct tensor_list *array, const int32_t *indices, int64_t count) {
  struct partial_shape element;
  struct shape empty = {0};
  struct tensor **parts;
  TRY(shape_attr(call, "element_shape", &element));
  TRY(partial_shape_merge(&array->shape, &element));
  if (count == 0)
    TRY(empty_shape(&element, 0, &empty));
  TRY(array_read_many(array, indices, count, &parts));
  status result = tensors_stack(array->dtype, parts, count, &empty, &call->outputs[0]);
  tensors_release(parts, count);
  return result;
}

status host_tensor_array_gather(struct host_call *call) {
  struct tensor_list *array;
  TRY(array_input(call, dtype_attr(call, "dtype"), &array));
  if (call->inputs[1].shape.rank != 1)
    return fail(INVALID_ARGUMENT, "Expected indices to be a vector, but received shape: %s", shape_text(&call->inputs[1].shape));
  return stack(call, array, call->inputs[1].data, call->inputs[1].count);
}

status host_tensor_array_pack(struct host_call *call) {
  struct tensor_list *array;
  TRY(array_input(call, dtype_attr(call, "dtype"), &array));
  return stack(call, array, NULL, array_pack_size(array));
}

static status concat_parts(struct host_call *call, const struct partial_shape *rest, enum dtype dtype, struct tensor **parts,
                           int64_t count) {
  struct shape empty = {0};
  if (count == 0)
    TRY(empty_shape(rest, 1, &empty));
  for (int64_t i = 0; i < count; i++) {
    const struct shape *shape = &parts[i]->shape;
    if (shape->rank == 0)
      return fail(INVALID_ARGUMENT, "Concat saw a scalar shape at index %lld but requires at least vectors.  Did you mean to call pack?",
                  (long long)i);
    if (i == 0 && !shape_fits(rest, shape, 1))
      return fail(INVALID_ARGUMENT, "TensorArray was passed an element_shape_except0 that does not match index 0, of shape %s",
                  shape_text(shape));
  }
  return tensors_concat(dtype, parts, count, &empty, &call->outputs[0], &call->outputs[1]);
}

status host_tensor_array_concat(struct host_call *call) {
  struct tensor_list *array;
  struct tensor **parts;
  struct partial_shape rest;
  TRY(array_input(call, dtype_attr(call, "dtype"), &array));
  TRY(shape_attr(call, "element_shape_except0", &rest));
  int64_t count = array_pack_size(array);
  TRY(array_read_many(array, NULL, count, &parts));
  status result = concat_parts(call, &rest, array->dtype, parts, count);
  tensors_release(parts, count);
  return result;
}

/* ---- one tensor into many elements ---- */

/* Row i of the value becomes element indices[i], or i. */
static status unstack(struct tensor_list *array, const struct tensor *value, const int32_t *indices) {
  for (int64_t i = 0; i < value->shape.dims[0]; i++) {
    struct tensor *row;
    TRY(tensor_row(value, i, &row));
    TRY(array_write(array, indices ? indices[i] : i, row));
  }
  return OK;
}

static status check_rows(const struct tensor *value) {
  if (value->shape.rank > 0)
    return OK;
  return fail(INVALID_ARGUMENT, "Input value for unpack must be at least a vector but received shape: %s", shape_text(&value->shape));
}

status host_tensor_array_scatter(struct host_call *call) {
  struct tensor_list *array;
  const struct tensor *indices = &call->inputs[1], *value = &call->inputs[2];
  TRY(array_input(call, value->dtype, &array));
  TRY(check_rows(value));
  if (indices->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "Expected indices to be a vector, but received shape: %s", shape_text(&indices->shape));
  if (indices->count != value->shape.dims[0])
    return fail(INVALID_ARGUMENT, "Expected len(indices) == values.shape[0], but saw: %lld vs. %lld", (long long)indices->count,
                (long long)value->shape.dims[0]);
  for (int64_t i = 0; i < indices->count && !array->grows; i++)
    if (((const int32_t *)indices->data)[i] >= array->count)
      return fail(INVALID_ARGUMENT, "Max scatter index must be < array size (%d vs. %lld)", ((const int32_t *)indices->data)[i],
                  (long long)array->count);
  TRY(unstack(array, value, indices->data));
  return make_flow(call, 0);
}

status host_tensor_array_unpack(struct host_call *call) {
  struct tensor_list *array;
  const struct tensor *value = &call->inputs[1];
  TRY(array_input(call, value->dtype, &array));
  TRY(check_rows(value));
  int64_t rows = value->shape.dims[0];
  if (array->grows ? rows < array->count : rows != array->count)
    return fail(INVALID_ARGUMENT, "Input value must have first dimension equal to the array size (%lld vs. %lld)", (long long)rows,
                (long long)array->count);
  array_mark_size(array, rows);
  TRY(unstack(array, value, NULL));
  return make_flow(call, 0);
}

static status check_lengths(const struct tensor_list *array, const struct tensor *value, const struct tensor *lengths) {
  int64_t total = 0;
  if (lengths->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "Expected lengths to be a vector, received shape: %s", shape_text(&lengths->shape));
  if (value->shape.rank < 1)
    return fail(INVALID_ARGUMENT, "Expected value to be at least a vector, but received shape: %s", shape_text(&value->shape));
  for (int64_t i = 0; i < lengths->count; i++)
    total += ((const int64_t *)lengths->data)[i];
  if (total != value->shape.dims[0])
    return fail(INVALID_ARGUMENT,
                "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is %lld and value's shape is: %s",
                (long long)total, shape_text(&value->shape));
  if (array->grows ? lengths->count < array->count : lengths->count != array->count)
    return fail(INVALID_ARGUMENT,
                "TensorArray's size is not equal to the size of lengths (%lld vs. %lld), and the TensorArray is not marked "
                "as dynamically resizeable",
                (long long)array->count, (long long)lengths->count);
  return OK;
}

status host_tensor_array_split(struct host_call *call) {
  struct tensor_list *array;
  const struct tensor *value = &call->inputs[1], *lengths = &call->inputs[2];
  TRY(array_input(call, value->dtype, &array));
  TRY(check_lengths(array, value, lengths));
  array_mark_size(array, lengths->count);
  for (int64_t i = 0, at = 0; i < lengths->count; i++) {
    struct tensor *rows;
    int64_t length = ((const int64_t *)lengths->data)[i];
    TRY(tensor_rows(value, at, length, &rows));
    TRY(array_write(array, i, rows));
    at += length;
  }
  return make_flow(call, 0);
}

status host_tensor_array_size(struct host_call *call) {
  struct tensor_list *array;
  TRY(array_input(call, DTYPE_INVALID, &array));
  return host_give_number(call, 0, DTYPE_INT32, array->count);
}

/* ---- stacks ---- */

/* The first generation has no bound, and so no input. */
status host_stack(struct host_call *call) {
  struct tensor_list *list;
  if (call->input_count && call->inputs[0].shape.rank != 0)
    return fail(INVALID_ARGUMENT, "Stack size must be a scalar, but had shape: %s", shape_text(&call->inputs[0].shape));
  TRY(list_make_output(call, 0, DTYPE_RESOURCE, dtype_attr(call, "elem_type"), 0, &list));
  list->limit = call->input_count ? host_scalar_int(&call->inputs[0]) : -1;
  return OK;
}

static status stack_input_any(const struct host_call *call, struct tensor_list **out) {
  TRY(list_input(call, 0, out));
  return (*out)->array ? fail(INVALID_ARGUMENT, "input 0 is no stack") : OK;
}

static status stack_input(const struct host_call *call, struct tensor_list **out) {
  TRY(stack_input_any(call, out));
  return (*out)->closed ? fail(INVALID_ARGUMENT, "Stack has already been closed.") : OK;
}

status host_stack_push(struct host_call *call) {
  struct tensor_list *list;
  struct tensor *value;
  TRY(stack_input(call, &list));
  if (call->inputs[1].dtype != list->dtype)
    return fail(INVALID_ARGUMENT, "Must have type %s but got %s", dtype_name(list->dtype), dtype_name(call->inputs[1].dtype));
  if (list->limit >= 0 && list->count >= list->limit)
    return fail(INVALID_ARGUMENT, "Stack overflowed its max_size (%lld)", (long long)list->limit);
  TRY(host_keep_input(call, 1, &value));
  call->outputs[0] = tensor_retain(value);
  list->grows = true;
  return list_set(list, list->count, value);
}

status host_stack_close(struct host_call *call) {
  struct tensor_list *list;
  TRY(stack_input_any(call, &list));
  list->closed = true;
  return list_resize(list, 0);
}

status host_stack_pop(struct host_call *call) {
  struct tensor_list *list;
  TRY(stack_input(call, &list));
  if (list->count == 0)
    return fail(INVALID_ARGUMENT, "Stack is empty when calling Pop().");
  call->outputs[0] = tensor_retain(list->items[list->count - 1]);
  return list_resize(list, list->count - 1);
}
