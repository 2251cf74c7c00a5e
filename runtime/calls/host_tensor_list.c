/* host_tensor_list.c: tensor lists of TensorFlow 2: values, so that every change makes a new list over the same elements. */
#include <stdlib.h>
#include <string.h>

#include "runtime/host/object.h"
#include "runtime/text/element_number.h"
#include "runtime/value/tensor_list.h"

/* ---- shapes ---- */

/* A shape as ops give it: a scalar -1, which says nothing, or sizes of which -1 are unknown. */
static status read_shape(const struct tensor *t, struct partial_shape *out) {
  *out = (struct partial_shape){.rank = -1};
  if (t->shape.rank == 0)
    return host_scalar_int(t) == -1
           ? OK
           : fail(INVALID_ARGUMENT, "The only valid scalar shape tensor is the fully unknown shape specified as -1.");
  if (t->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "Shape must be at most rank 1 but is rank %d", t->shape.rank);
  if (t->count > LIMIT_RANK)
    return fail(UNIMPLEMENTED, "elements of rank %lld", (long long)t->count);
  out->rank = (int)t->count;
  for (int d = 0; d < out->rank; d++) {
    out->dims[d] = element_int(t, d);
    if (out->dims[d] < -1)
      return fail(INVALID_ARGUMENT, "Dimension %d of the element shape is %lld", d, (long long)out->dims[d]);
  }
  return OK;
}

/* What the list and an input say together. */
static status merged_shape(const struct host_call *call, const struct tensor_list *list, uint32_t input, struct partial_shape *out) {
  TRY(read_shape(&call->inputs[input], out));
  return partial_shape_merge(out, &list->shape);
}

static enum dtype element_dtype(const struct host_call *call) { return (enum dtype)host_attr_int(call, "element_dtype", DTYPE_FLOAT); }

/* The list behind input 0, of the dtype that the op says. */
static status typed_list(const struct host_call *call, struct tensor_list **out) {
  TRY(list_input(call, 0, out));
  if ((*out)->dtype != element_dtype(call))
    return fail(INVALID_ARGUMENT, "Invalid data types; op elements %s but list elements %s", dtype_name(element_dtype(call)),
                dtype_name((*out)->dtype));
  return OK;
}

static status check_scalar(const struct host_call *call, uint32_t input, const char *what) {
  if (call->inputs[input].shape.rank == 0)
    return OK;
  return fail(INVALID_ARGUMENT, "%s must be a scalar, but has shape %s", what, shape_text(&call->inputs[input].shape));
}

static status check_rows(const struct tensor *tensor) {
  if (tensor->shape.rank > 0)
    return OK;
  return fail(INVALID_ARGUMENT, "Tensor must be at least a vector, but saw shape: %s", shape_text(&tensor->shape));
}

/* ---- making ---- */

static status new_list(struct host_call *call, uint32_t shape_input, int64_t count, struct tensor_list **out) {
  struct partial_shape shape;
  TRY(read_shape(&call->inputs[shape_input], &shape));
  TRY(list_make_output(call, 0, DTYPE_VARIANT, element_dtype(call), count, out));
  (*out)->shape = shape;
  return OK;
}

status host_list_empty(struct host_call *call) {
  struct tensor_list *list;
  TRY(check_scalar(call, 1, "max_num_elements"));
  TRY(new_list(call, 0, 0, &list));
  list->limit = host_scalar_int(&call->inputs[1]);
  return OK;
}

status host_list_reserve(struct host_call *call) {
  struct tensor_list *list;
  TRY(check_scalar(call, 1, "The num_elements to reserve"));
  int64_t count = host_scalar_int(&call->inputs[1]);
  if (count < 0)
    return fail(INVALID_ARGUMENT, "The num_elements to reserve must be a non negative number, but got %lld", (long long)count);
  return new_list(call, 0, count, &list);
}

/* Row i of the tensor becomes element indices[i], or i. */
static status put_rows(struct tensor_list *list, const struct tensor *tensor, const int32_t *indices) {
  list->grows = true;
  for (int64_t i = 0; i < tensor->shape.dims[0]; i++) {
    struct tensor *row;
    TRY(tensor_row(tensor, i, &row));
    TRY(list_set(list, indices ? indices[i] : i, row));
  }
  return OK;
}

/* Whether elements of the list may look like rows of the tensor. */
static status check_row_shape(const struct tensor_list *list, const struct tensor *tensor) {
  struct shape row = {.rank = tensor->shape.rank - 1};
  memcpy(row.dims, tensor->shape.dims + 1, sizeof *row.dims * (size_t)row.rank);
  if (partial_shape_fits(&list->shape, &row))
    return OK;
  return fail(INVALID_ARGUMENT, "Specified a list with shape %s from a tensor with shape %s", partial_shape_text(&list->shape),
              shape_text(&row));
}

status host_list_from_tensor(struct host_call *call) {
  struct tensor_list *list;
  TRY(check_rows(&call->inputs[0]));
  TRY(new_list(call, 1, 0, &list));
  TRY(check_row_shape(list, &call->inputs[0]));
  return put_rows(list, &call->inputs[0], NULL);
}

static status check_indices(const struct tensor *indices, const struct tensor *values, int64_t count) {
  TRY(check_rows(values));
  if (indices->count != values->shape.dims[0])
    return fail(INVALID_ARGUMENT, "Invalid number of rows in input tensor. Expected: %lld Actual: %lld", (long long)indices->count,
                (long long)values->shape.dims[0]);
  for (int64_t i = 0; i < indices->count; i++) {
    int32_t index = ((const int32_t *)indices->data)[i];
    if (index < 0)
      return fail(INVALID_ARGUMENT, "Indices in TensorListScatter must all be non-negative.");
    if (count >= 0 && index >= count)
      return fail(INVALID_ARGUMENT, "TensorListScatter: Trying to scatter at index %d in list with size %lld", index, (long long)count);
  }
  return OK;
}

/* TensorListScatter, and V2 with the number of elements. */
status host_list_scatter(struct host_call *call) {
  struct tensor_list *list;
  int64_t count = -1;
  if (call->input_count == 4) {
    TRY(check_scalar(call, 3, "num_elements"));
    count = host_scalar_int(&call->inputs[3]);
  }
  if (count < -1)
    return fail(INVALID_ARGUMENT, "TensorListScatter expects num_elements >= -1, found: %lld", (long long)count);
  TRY(check_indices(&call->inputs[1], &call->inputs[0], count));
  TRY(new_list(call, 2, count < 0 ? 0 : count, &list));
  TRY(check_row_shape(list, &call->inputs[0]));
  return put_rows(list, &call->inputs[0], call->inputs[1].data);
}

status host_list_scatter_into(struct host_call *call) {
  struct tensor_list *list, *from;
  TRY(typed_list(call, &from));
  TRY(check_indices(&call->inputs[2], &call->inputs[1], -1));
  TRY(list_change_input(call, from, &list));
  return put_rows(list, &call->inputs[1], call->inputs[2].data);
}

status host_list_split(struct host_call *call) {
  struct tensor_list *list;
  const struct tensor *tensor = &call->inputs[0], *lengths = &call->inputs[2];
  struct shape piece = tensor->shape;
  TRY(check_rows(tensor));
  if (lengths->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "Expected lengths to be a vector, received shape: %s", shape_text(&lengths->shape));
  TRY(new_list(call, 1, lengths->count, &list));
  if (list->shape.rank == 0)
    return fail(INVALID_ARGUMENT, "TensorListSplit requires element_shape to be at least of rank 1, but saw: []");
  if (list->shape.rank > 0 && list->shape.dims[0] >= 0)
    piece.dims[0] = list->shape.dims[0];
  if (!partial_shape_fits(&list->shape, &piece))
    return fail(INVALID_ARGUMENT, "tensor shape %s is not compatible with element_shape %s", shape_text(&tensor->shape),
                partial_shape_text(&list->shape));
  int64_t at = 0, rows = tensor->shape.dims[0];
  for (int64_t i = 0; i < lengths->count; i++) {
    int64_t length = ((const int64_t *)lengths->data)[i];
    struct tensor *part;
    if (length < 0)
      return fail(INVALID_ARGUMENT, "Invalid value in lengths: %lld", (long long)length);
    if (length > rows - at)
      return fail(INVALID_ARGUMENT, "Attempting to slice [%lld, %lld] from tensor with length %lld", (long long)at,
                  (long long)(at + length), (long long)rows);
    TRY(tensor_rows(tensor, at, length, &part));
    TRY(list_set(list, i, part));
    at += length;
  }
  return at == rows
         ? OK
         : fail(INVALID_ARGUMENT, "Unused values in tensor. Length of tensor: %lld Values used: %lld", (long long)rows, (long long)at);
}

/* ---- changing ---- */

/* A copy of the list as output 0, which may take the tensor of input `value`: its dtype and shape fit. */
static status copy_for(struct host_call *call, uint32_t value, const char *what, struct tensor_list **out) {
  struct tensor_list *from;
  TRY(typed_list(call, &from));
  if (!partial_shape_fits(&from->shape, &call->inputs[value].shape))
    return fail(INVALID_ARGUMENT, "Tried to %s a tensor with incompatible shape to a list. Op element shape: %s list shape: %s", what,
                shape_text(&call->inputs[value].shape), partial_shape_text(&from->shape));
  return list_change_input(call, from, out);
}

status host_list_push(struct host_call *call) {
  struct tensor_list *list;
  struct tensor *value;
  TRY(copy_for(call, 1, "append", &list));
  if (list->limit >= 0 && list->count >= list->limit)
    return fail(INVALID_ARGUMENT, "Tried to push item into a full list list size: %lld max_num_elements: %lld", (long long)list->count,
                (long long)list->limit);
  TRY(host_keep_input(call, 1, &value));
  list->grows = true;
  return list_set(list, list->count, value);
}

status host_list_set(struct host_call *call) {
  struct tensor_list *list;
  struct tensor *value;
  TRY(check_scalar(call, 1, "index"));
  TRY(copy_for(call, 2, "set", &list));
  int64_t index = host_scalar_int(&call->inputs[1]);
  list->grows = host_attr_int(call, "resize_if_index_out_of_bounds", 0) != 0;
  if (index < 0 || (index >= list->count && !list->grows))
    return fail(INVALID_ARGUMENT, "Trying to modify element %lld in a list with %lld elements.", (long long)index, (long long)list->count);
  TRY(host_keep_input(call, 2, &value));
  return list_set(list, index, value);
}

status host_list_resize(struct host_call *call) {
  struct tensor_list *from, *list;
  TRY(list_input(call, 0, &from));
  TRY(check_scalar(call, 1, "size"));
  int64_t size = host_scalar_int(&call->inputs[1]);
  if (size < 0)
    return fail(INVALID_ARGUMENT, "TensorListSlice expects size to be non-negative. Got: %lld", (long long)size);
  TRY(list_change_input(call, from, &list));
  return list_resize(list, size);
}

/* The elements of one list, then those of the other. */
static status join_lists(const struct host_call *call, const struct tensor_list *first, const struct tensor_list *second,
                         struct tensor_list **out) {
  bool same = first->dtype == element_dtype(call) && first->dtype == second->dtype && first->shape.rank == second->shape.rank;
  for (int d = 0; d < first->shape.rank && same; d++)
    same = first->shape.dims[d] == second->shape.dims[d];
  if (!same)
    return fail(INVALID_ARGUMENT, "input_a and input_b TensorList dtypes or element shapes are not identical.  Saw %s%s vs. %s%s",
                dtype_name(first->dtype), partial_shape_text(&first->shape), dtype_name(second->dtype), partial_shape_text(&second->shape));
  TRY(list_clone(first, out));
  status result = list_resize(*out, first->count + second->count);
  if (result != OK) {
    object_release(&(*out)->object);
    return result;
  }
  for (int64_t i = 0; i < second->count; i++)
    (*out)->items[first->count + i] = second->items[i] ? tensor_retain(second->items[i]) : NULL;
  return OK;
}

/* Tensors of lists: each with its partner. */
status host_list_concat_lists(struct host_call *call) {
  const struct tensor *a, *b;
  TRY(objects_input(call, 0, &a));
  TRY(objects_input(call, 1, &b));
  if (!shape_equal(&a->shape, &b->shape))
    return fail(INVALID_ARGUMENT, "Incompatible input TensorList tensor shapes: %s vs. %s", shape_text(&a->shape), shape_text(&b->shape));
  TRY(objects_create(&a->shape, &call->outputs[0]));
  for (int64_t k = 0; k < a->count; k++) {
    struct tensor_list *first, *second, *list;
    TRY(list_of_element(a, k, &first));
    TRY(list_of_element(b, k, &second));
    TRY(join_lists(call, first, second, &list));
    objects_put(call->outputs[0], k, &list->object);
  }
  return OK;
}

/* Row k of the tensor goes to the end of list k. */
status host_list_push_batch(struct host_call *call) {
  const struct tensor *lists, *values = &call->inputs[1];
  TRY(objects_input(call, 0, &lists));
  if (values->shape.rank < 1)
    return fail(INVALID_ARGUMENT, "Expected tensor to be at least a vector, but saw shape: %s", shape_text(&values->shape));
  if (lists->shape.rank != 1)
    return fail(INVALID_ARGUMENT, "Expected input_handles to be a vector, but saw shape: %s", shape_text(&lists->shape));
  if (lists->count != values->shape.dims[0])
    return fail(INVALID_ARGUMENT, "Expected tensor.shape[0] == input_handles.size, but saw %lld vs. %lld", (long long)values->shape.dims[0],
                (long long)lists->count);
  TRY(objects_create(&lists->shape, &call->outputs[0]));
  for (int64_t k = 0; k < lists->count; k++) {
    struct tensor_list *from, *list;
    struct tensor *row;
    TRY(list_of_element(lists, k, &from));
    TRY(tensor_row(values, k, &row));
    status result = OK;
    if (!partial_shape_fits(&from->shape, &row->shape))
      result = fail(INVALID_ARGUMENT,
                    "Tried to append a tensor with incompatible shape to a list at index %lld. Op element shape: %s list shape: %s",
                    (long long)k, shape_text(&row->shape), partial_shape_text(&from->shape));
    else if (from->dtype != values->dtype)
      result = fail(INVALID_ARGUMENT, "Invalid data type at index %lld; op elements %s but list elements %s", (long long)k,
                    dtype_name(values->dtype), dtype_name(from->dtype));
    if (result == OK)
      result = list_clone(from, &list);
    if (result != OK) {
      tensor_release(row);
      return result;
    }
    objects_put(call->outputs[0], k, &list->object);
    list->grows = true;
    TRY(list_set(list, list->count, row));
  }
  return OK;
}

/* ---- reading ---- */

/* *shape learns what the elements that are there say: those of `indices`, or all when it is NULL. */
static status learn_shape(const struct tensor_list *list, const int32_t *indices, int64_t count, struct partial_shape *shape) {
  for (int64_t i = 0; i < count; i++) {
    const struct tensor *item = list->items[indices ? indices[i] : i];
    struct partial_shape own;
    if (!item)
      continue;
    partial_shape_of(&item->shape, &own);
    TRY(partial_shape_merge(shape, &own));
  }
  return OK;
}

/* One reference of an element, or zeros of the shape. */
static status item_or_zeros(const struct tensor_list *list, int64_t index, const struct shape *shape, struct tensor **out) {
  if (!list->items[index])
    return tensor_zeros(list->dtype, shape, out);
  *out = tensor_retain(list->items[index]);
  return OK;
}

status host_list_get(struct host_call *call) {
  struct tensor_list *list;
  struct partial_shape partial;
  struct shape shape = {0};
  TRY(typed_list(call, &list));
  TRY(check_scalar(call, 1, "index"));
  int64_t index = host_scalar_int(&call->inputs[1]);
  if (index < 0 || index >= list->count)
    return fail(INVALID_ARGUMENT, "Trying to access element %lld in a list with %lld elements.", (long long)index, (long long)list->count);
  if (!list->items[index]) {
    TRY(merged_shape(call, list, 2, &partial));
    if (!partial_shape_full(&partial, &shape))
      TRY(learn_shape(list, NULL, list->count, &partial));
    if (!partial_shape_full(&partial, &shape))
      return fail(INVALID_ARGUMENT, "Trying to read an uninitialized tensor but element_shape is not fully defined: %s",
                  partial_shape_text(&partial));
  }
  return item_or_zeros(list, index, &shape, &call->outputs[0]);
}

status host_list_pop(struct host_call *call) {
  struct tensor_list *from, *list;
  struct partial_shape partial;
  struct shape shape = {0};
  TRY(typed_list(call, &from));
  if (from->count == 0)
    return fail(INVALID_ARGUMENT, "Trying to pop from an empty list.");
  if (!from->items[from->count - 1]) {
    TRY(merged_shape(call, from, 1, &partial));
    if (!partial_shape_full(&partial, &shape))
      return fail(INVALID_ARGUMENT, "Trying to read an uninitialized tensor but element_shape is not fully defined: %s",
                  partial_shape_text(&partial));
  }
  TRY(item_or_zeros(from, from->count - 1, &shape, &call->outputs[1]));
  TRY(list_change_input(call, from, &list));
  return list_resize(list, list->count - 1);
}

status host_list_length(struct host_call *call) {
  struct tensor_list *list;
  TRY(list_input(call, 0, &list));
  return host_give_number(call, 0, DTYPE_INT32, list->count);
}

/* The sizes that the list was made with, -1 where they are open; a scalar -1 when it was made without. */
status host_list_element_shape(struct host_call *call) {
  struct tensor_list *list;
  TRY(list_input(call, 0, &list));
  enum dtype dtype = (enum dtype)host_attr_int(call, "shape_type", DTYPE_INT32);
  int rank = list->shape.rank;
  struct shape shape = {.rank = rank >= 0, .dims = {rank}};
  TRY(host_make_output(call, 0, dtype, &shape));
  for (int64_t d = 0; d < call->outputs[0]->count; d++)
    element_put_int(call->outputs[0], d, rank < 0 ? -1 : list->shape.dims[d]);
  return OK;
}

/* ---- many elements ---- */

/* Elements `indices` (NULL: 0 .. count-1) as one tensor; those that are missing are zeros of the shape. */
static status stack_items(struct host_call *call, const struct tensor_list *list, const int32_t *indices, int64_t count,
                          struct partial_shape *partial) {
  struct shape shape;
  if (count == 0 && !partial_shape_full(partial, &shape))
    return fail(INVALID_ARGUMENT, "Tried to stack elements of an empty list with non-fully-defined element_shape: %s",
                partial_shape_text(partial));
  if (!partial_shape_full(&list->shape, &shape))
    TRY(learn_shape(list, indices, count, partial));
  if (!partial_shape_full(partial, &shape))
    return fail(INVALID_ARGUMENT,
                "Tried to stack list which only contains uninitialized tensors and has a non-fully-defined element_shape: %s",
                partial_shape_text(partial));
  struct tensor **parts = calloc((size_t)count + 1, sizeof *parts);
  status result = parts ? OK : fail(RESOURCE_EXHAUSTED, "no memory for %lld elements", (long long)count);
  for (int64_t i = 0; i < count && result == OK; i++)
    result = item_or_zeros(list, indices ? indices[i] : i, &shape, &parts[i]);
  if (result == OK)
    result = tensors_stack(list->dtype, parts, count, &shape, &call->outputs[0]);
  tensors_release(parts, count);
  return result;
}

status host_list_stack(struct host_call *call) {
  struct tensor_list *list;
  struct partial_shape partial;
  TRY(typed_list(call, &list));
  int64_t wanted = host_attr_int(call, "num_elements", -1);
  if (wanted >= 0 && wanted != list->count)
    return fail(INVALID_ARGUMENT, "Operation expected a list with %lld elements but got a list with %lld elements.", (long long)wanted,
                (long long)list->count);
  TRY(merged_shape(call, list, 1, &partial));
  return stack_items(call, list, NULL, list->count, &partial);
}

status host_list_gather(struct host_call *call) {
  struct tensor_list *list;
  struct partial_shape partial;
  const int32_t *indices = call->inputs[1].data;
  TRY(typed_list(call, &list));
  TRY(merged_shape(call, list, 2, &partial));
  for (int64_t i = 0; i < call->inputs[1].count; i++)
    if (indices[i] < 0 || indices[i] >= list->count)
      return fail(INVALID_ARGUMENT, "Index %d out o range; list only has %lld elements.", indices[i], (long long)list->count);
  return stack_items(call, list, indices, call->inputs[1].count, &partial);
}

/* What is known of the elements for a concat: the first dimension on its own (-1: open), and the rest. */
struct concat_shape {
  int64_t first;
  struct partial_shape rest;
};

static void split_first(const struct partial_shape *whole, struct concat_shape *out) {
  out->first = whole->rank > 0 ? whole->dims[0] : -1;
  out->rest.rank = whole->rank - (whole->rank > 0);
  for (int d = 0; d < out->rest.rank; d++)
    out->rest.dims[d] = whole->dims[d + 1];
}

/* The elements that are there must agree with what is known, and say the rest. */
static status learn_concat(const struct tensor_list *list, struct concat_shape *shape) {
  int64_t common = shape->first;
  bool seen = shape->first >= 0;
  for (int64_t i = 0; i < list->count; i++) {
    struct partial_shape whole;
    struct concat_shape own;
    if (!list->items[i])
      continue;
    if (list->items[i]->shape.rank == 0)
      return fail(INVALID_ARGUMENT, "Concat saw a scalar shape at index %lld but requires at least vectors.", (long long)i);
    partial_shape_of(&list->items[i]->shape, &whole);
    split_first(&whole, &own);
    TRY(partial_shape_merge(&shape->rest, &own.rest));
    if (shape->first >= 0 && shape->first != own.first)
      return fail(INVALID_ARGUMENT,
                  "First entry of element_shape input does not match the first dim of list element at index: %lld Expected: "
                  "%lld Actual: %lld",
                  (long long)i, (long long)shape->first, (long long)own.first);
    common = !seen || common == own.first ? own.first : -1;
    seen = true;
  }
  shape->first = common;
  return OK;
}

/* How long a missing element is: as input 2 says, or like the others. */
static status missing_length(const struct host_call *call, const struct concat_shape *shape, int64_t index, int64_t *out) {
  int64_t said = call->input_count > 2 ? call->inputs[2].count : 0;
  if (index < said) {
    *out = ((const int64_t *)call->inputs[2].data)[index];
    return OK;
  }
  *out = shape->first;
  return shape->first >= 0
         ? OK
         : fail(INVALID_ARGUMENT, "List contains uninitialized tensor at index %lld but leading_dims has only %lld elements.",
                (long long)index, (long long)said);
}

static status concat_items(struct host_call *call, const struct tensor_list *list, const struct concat_shape *known,
                           struct tensor **parts) {
  struct shape rest, whole;
  if (!partial_shape_full(&known->rest, &rest))
    return fail(INVALID_ARGUMENT,
                "Trying to concat list with only uninitialized tensors but element_shape_except_first_dim is not fully "
                "defined: %s",
                partial_shape_text(&known->rest));
  whole.rank = rest.rank + 1;
  whole.dims[0] = 0;
  memcpy(whole.dims + 1, rest.dims, sizeof *rest.dims * (size_t)rest.rank);
  for (int64_t i = 0; i < list->count; i++) {
    if (!list->items[i])
      TRY(missing_length(call, known, i, &whole.dims[0]));
    TRY(item_or_zeros(list, i, &whole, &parts[i]));
  }
  return tensors_concat(list->dtype, parts, list->count, &whole, &call->outputs[0], &call->outputs[1]);
}

/* What the op says about the elements: an attribute of the first generation, an input of the second. */
static status said_shape(const struct host_call *call, const struct tensor_list *list, struct partial_shape *out) {
  struct shape shape;
  if (call->input_count > 1)
    return merged_shape(call, list, 1, out);
  TRY(host_read_shape(call, host_attr(call, "element_shape"), &shape));
  partial_shape_of(&shape, out);
  return OK;
}

status host_list_concat(struct host_call *call) {
  struct tensor_list *list;
  struct partial_shape partial;
  struct concat_shape known;
  struct shape full;
  TRY(typed_list(call, &list));
  TRY(said_shape(call, list, &partial));
  if (partial.rank == 0)
    return fail(INVALID_ARGUMENT, "Concat requires elements to be at least vectors, found scalars instead.");
  split_first(&partial, &known);
  if (call->input_count < 2)
    known.first = -1;
  if (list->count == 0 && !partial_shape_full(&known.rest, &full))
    return fail(INVALID_ARGUMENT,
                "All except the first dimension must be fully defined when concating an empty tensor list. element_shape: %s",
                partial_shape_text(&partial));
  if (!partial_shape_full(&list->shape, &full))
    TRY(learn_concat(list, &known));
  struct tensor **parts = calloc((size_t)list->count + 1, sizeof *parts);
  if (!parts)
    return fail(RESOURCE_EXHAUSTED, "no memory for %lld elements", (long long)list->count);
  status result = concat_items(call, list, &known, parts);
  tensors_release(parts, list->count);
  return result;
}

/* ---- sums ---- */

status host_list_zeros(struct host_call *call) {
  const struct tensor *from;
  TRY(objects_input(call, 0, &from));
  return objects_zeros(from, &call->outputs[0]);
}

status host_list_add(struct host_call *call) {
  const struct tensor *first;
  TRY(objects_input(call, 0, &first));
  struct tensor *sum;
  TRY(host_keep_input(call, 0, &sum));
  for (uint32_t i = 1; i < call->input_count; i++) {
    const struct tensor *other;
    struct tensor *next = NULL;
    status s = objects_input(call, i, &other);
    s = s == OK ? objects_add(sum, other, &next) : s;
    tensor_release(sum);
    if (s != OK) {
      tensor_release(next);
      return s;
    }
    sum = next;
  }
  call->outputs[0] = sum;
  return OK;
}
