/* tensor_array.c: the marks of a tensor array's elements. */
#include "runtime/resource/tensor_array.h"

#include <stdlib.h>
#include <string.h>

struct mark {
  bool written, read, cleared;
  struct shape shape; /* of what was written; the element itself may be missing: then it is zeros */
};
struct array_state {
  struct array_options options;
  bool is_gradient, closed, summed; /* summed: something was written twice, so that gradients mean nothing */
  int64_t marked_size;
  int64_t count;
  struct mark marks[];
};

/* ---- making ---- */

/* As many marks as the list has elements. */
static status marks_resize(struct tensor_list *list) {
  struct array_state *a = list->array;
  int64_t old = a ? a->count : 0;
  if (a && old >= list->count)
    return OK;
  int64_t room = list->count + (a ? list->count / 2 : 0);
  struct array_state *grown = realloc(a, sizeof *grown + (size_t)room * sizeof *grown->marks);
  if (!grown)
    return fail(RESOURCE_EXHAUSTED, "no memory for a list of %lld elements", (long long)list->count);
  if (!a)
    memset(grown, 0, sizeof *grown);
  memset(grown->marks + old, 0, (size_t)(room - old) * sizeof *grown->marks);
  grown->count = room;
  list->array = grown;
  return OK;
}

status array_make_output(struct host_call *call, enum dtype handle, enum dtype dtype, int64_t size, const struct array_options *options,
                         struct tensor_list **out) {
  if (size < 0)
    return fail(INVALID_ARGUMENT, "Size should be >= 0.");
  TRY(list_make_output(call, 0, handle, dtype, size, out));
  TRY(marks_resize(*out));
  (*out)->array->options = *options;
  (*out)->array->marked_size = -1;
  (*out)->grows = options->dynamic_size;
  return OK;
}

static void join_shapes(const struct shape *prefix, const struct shape *shape, struct shape *out) {
  *out = *shape;
  if (!prefix)
    return;
  memmove(out->dims + prefix->rank, out->dims, sizeof *out->dims * (size_t)(LIMIT_RANK - prefix->rank));
  memcpy(out->dims, prefix->dims, sizeof *out->dims * (size_t)prefix->rank);
  out->rank += prefix->rank;
}

/* Shapes of elements and what was written pass from the array to its gradients. */
static status copy_marks(struct tensor_list *array, const struct shape *prefix, struct tensor_list *gradient) {
  const struct array_state *from = array->array;
  TRY(list_resize(gradient, array->count));
  TRY(marks_resize(gradient));
  gradient->array->options = (struct array_options){.clear_after_read = true, .identical_shapes = from->options.identical_shapes};
  gradient->array->is_gradient = true;
  gradient->array->marked_size = from->marked_size;
  if (array->shape.rank >= 0 && array->shape.rank + (prefix ? prefix->rank : 0) <= LIMIT_RANK) {
    struct shape own = {.rank = array->shape.rank};
    memcpy(own.dims, array->shape.dims, sizeof own.dims);
    join_shapes(prefix, &own, &own);
    partial_shape_of(&own, &gradient->shape);
  }
  for (int64_t i = 0; i < array->count; i++) {
    if (!from->marks[i].written)
      continue;
    if (from->marks[i].shape.rank + (prefix ? prefix->rank : 0) > LIMIT_RANK)
      return fail(UNIMPLEMENTED, "gradients of rank %d", from->marks[i].shape.rank + prefix->rank);
    gradient->array->marks[i].written = true;
    join_shapes(prefix, &from->marks[i].shape, &gradient->array->marks[i].shape);
  }
  return OK;
}

status array_gradient_output(struct host_call *call, enum dtype handle, struct tensor_list *array, struct string_view source,
                             const struct shape *prefix) {
  array->grows = false; /* its size is settled once gradients are made */
  if (array->array->summed)
    return fail(INVALID_ARGUMENT, "Unable to create a gradients TensorArray: gradient calculation is impossible when multiple writes are "
                                  "performed to the same index.");
  struct tensor_list *gradient = list_find_relative(array, source);
  if (!gradient) {
    TRY(list_make_relative(array, source, &gradient));
    TRY(copy_marks(array, prefix, gradient));
  }
  return list_make_handle(call, 0, handle, gradient);
}

/* ---- elements ---- */

/* A handle of the second generation that no array gave: two strings, a container and a name. */
static status check_text_handle(const struct tensor *handle) {
  const struct string_view *text = handle->data;
  if (handle->count != 2)
    return fail(INVALID_ARGUMENT, "Tensor array handle must be 2-element vector, but had shape: %s", shape_text(&handle->shape));
  return fail(NOT_FOUND, "Container of the tensor array %.*s does not exist.", (int)(text[1].size < 200 ? text[1].size : 200),
              text[1].data);
}

status array_input_any(const struct host_call *call, struct tensor_list **out) {
  if (call->inputs[0].dtype == DTYPE_STRING)
    return check_text_handle(&call->inputs[0]);
  TRY(list_input(call, 0, out));
  return (*out)->array ? OK : fail(INVALID_ARGUMENT, "input 0 is no tensor array");
}

status array_input(const struct host_call *call, enum dtype dtype, struct tensor_list **out) {
  TRY(array_input_any(call, out));
  if ((*out)->array->closed)
    return fail(INVALID_ARGUMENT, "TensorArray has already been closed.");
  if (dtype != DTYPE_INVALID && dtype != (*out)->dtype)
    return fail(INVALID_ARGUMENT, "TensorArray dtype is %s but Op requested dtype %s.", dtype_name((*out)->dtype), dtype_name(dtype));
  return OK;
}

static status check_write(const struct tensor_list *list, int64_t index, const struct tensor *value) {
  if (index < 0 || (!list->grows && index >= list->count))
    return fail(INVALID_ARGUMENT, "Tried to write to index %lld but array is not resizeable and size is: %lld", (long long)index,
                (long long)list->count);
  if (value->dtype != list->dtype)
    return fail(INVALID_ARGUMENT, "Could not write to TensorArray index %lld because the value dtype is %s but TensorArray dtype is %s.",
                (long long)index, dtype_name(value->dtype), dtype_name(list->dtype));
  if (!partial_shape_fits(&list->shape, &value->shape))
    return fail(INVALID_ARGUMENT,
                "Could not write to TensorArray index %lld because the value shape is %s which is incompatible with the "
                "TensorArray's inferred element shape: %s (consider setting infer_shape=False).",
                (long long)index, shape_text(&value->shape), partial_shape_text(&list->shape));
  return OK;
}

static status write_again(struct tensor_list *list, int64_t index, struct tensor *value) {
  struct mark *mark = &list->array->marks[index];
  struct tensor *sum;
  if (!list->array->is_gradient)
    return fail(INVALID_ARGUMENT, "Could not write to TensorArray index %lld because it has already been written to.", (long long)index);
  if (!shape_equal(&mark->shape, &value->shape))
    return fail(INVALID_ARGUMENT,
                "Could not aggregate to TensorArray index %lld because the existing shape is %s but the new input shape is %s.",
                (long long)index, shape_text(&mark->shape), shape_text(&value->shape));
  if (!list->items[index] || list->items[index]->count == 0) {
    tensor_release(list->items[index]);
    list->items[index] = tensor_retain(value);
    return OK;
  }
  TRY(tensor_sum(list->items[index], value, &sum));
  tensor_release(list->items[index]);
  list->items[index] = sum;
  list->array->summed = true;
  return OK;
}

static status write(struct tensor_list *list, int64_t index, struct tensor *value) {
  TRY(check_write(list, index, value));
  if (index >= list->count)
    TRY(list_resize(list, index + 1));
  TRY(marks_resize(list));
  struct shape known;
  if (list->array->options.identical_shapes && !partial_shape_full(&list->shape, &known))
    partial_shape_of(&value->shape, &list->shape);
  struct mark *mark = &list->array->marks[index];
  if (mark->read)
    return fail(INVALID_ARGUMENT, "Could not write to TensorArray index %lld because it has already been read.", (long long)index);
  if (mark->written)
    return write_again(list, index, value);
  list->items[index] = tensor_retain(value);
  mark->written = true;
  mark->shape = value->shape;
  return OK;
}

status array_write(struct tensor_list *list, int64_t index, struct tensor *tensor) {
  status result = write(list, index, tensor);
  tensor_release(tensor);
  return result;
}

/* What nobody wrote is zeros, where the element's shape is known. */
static status become_zeros(struct tensor_list *list, int64_t index) {
  int64_t first = index < list->count ? index : list->count;
  struct shape shape;
  if (list->array->is_gradient && index < list->count && list->array->marks[index].shape.rank > 0) {
    shape = list->array->marks[index].shape;
  } else if (!partial_shape_full(&list->shape, &shape)) {
    return fail(INVALID_ARGUMENT, "Could not read from TensorArray index %lld.  Furthermore, the element shape is not fully defined: %s.",
                (long long)index, partial_shape_text(&list->shape));
  }
  if (index >= list->count)
    TRY(list_resize(list, index + 1));
  TRY(marks_resize(list));
  for (int64_t i = first; i <= index; i++) {
    list->array->marks[i].written = true;
    list->array->marks[i].shape = shape;
  }
  return OK;
}

status array_read(struct tensor_list *list, int64_t index, struct tensor **out) {
  if (index < 0 || (!list->array->is_gradient && index >= list->count))
    return fail(INVALID_ARGUMENT, "Tried to read from index %lld but array size is: %lld", (long long)index, (long long)list->count);
  if (index >= list->count || !list->array->marks[index].written)
    TRY(become_zeros(list, index));
  struct mark *mark = &list->array->marks[index];
  if (mark->cleared)
    return fail(INVALID_ARGUMENT,
                "Could not read index %lld twice because it was cleared after a previous read (perhaps try setting "
                "clear_after_read = false?).",
                (long long)index);
  if (!list->items[index])
    TRY(tensor_zeros(list->dtype, &mark->shape, &list->items[index]));
  mark->read = true;
  *out = list->items[index];
  if (list->array->options.clear_after_read) {
    list->items[index] = NULL;
    mark->cleared = true;
  } else {
    tensor_retain(*out);
  }
  return OK;
}

status array_read_many(struct tensor_list *list, const int32_t *indices, int64_t count, struct tensor ***out) {
  struct tensor **tensors = calloc((size_t)count + 1, sizeof *tensors);
  if (!tensors)
    return fail(RESOURCE_EXHAUSTED, "no memory for %lld elements", (long long)count);
  for (int64_t i = 0; i < count; i++) {
    status result = array_read(list, indices ? indices[i] : i, &tensors[i]);
    if (result != OK) {
      tensors_release(tensors, i);
      return result;
    }
  }
  *out = tensors;
  return OK;
}

int64_t array_pack_size(const struct tensor_list *list) {
  return list->array->is_gradient && list->array->marked_size >= 0 ? list->array->marked_size : list->count;
}

void array_mark_size(struct tensor_list *list, int64_t size) {
  if (!list->array->is_gradient)
    list->array->marked_size = size;
}

void array_close(struct tensor_list *list) {
  (void)list_resize(list, 0); /* only shrinks */
  list->array->closed = true;
}
