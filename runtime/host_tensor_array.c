/* host_tensor_array.c: tensor arrays and stacks: lists that are changed in place. The order of uses is the graph's: the flow
 * value of tensor arrays, control edges of stacks. */
#include "runtime/tensor_list.h"

/* Output i: the flow value, which only orders. */
static status make_flow(struct host_call *call, uint32_t i) {
  TRY(host_make_output(call, i, DTYPE_FLOAT, &(struct shape){0}));
  *(float *)call->outputs[i]->data = 0;
  return OK;
}

static void take_element_shape(const struct host_call *call, struct tensor_list *list) {
  const struct program_attr *a = host_attr(call, "element_shape");
  if (!a || a->kind != PROGRAM_ATTR_SHAPE || a->i < 0 || a->i > LIMIT_RANK)
    return;
  list->rank = (int)a->i;
  for (int d = 0; d < list->rank; d++)
    list->dims[d] = *program_words(call->program, a->list.first + (uint32_t)d);
}

status host_tensor_array(struct host_call *call) {
  struct tensor_list *list;
  enum dtype dtype = (enum dtype)host_attr_int(call, "dtype", DTYPE_FLOAT);
  TRY(list_make_output(call, 0, DTYPE_RESOURCE, dtype, host_scalar_int(&call->inputs[0]), &list));
  list->grows = host_attr_int(call, "dynamic_size", 0);
  take_element_shape(call, list);
  return make_flow(call, 1);
}

status host_tensor_array_grad(struct host_call *call) {
  struct tensor_list *array;
  TRY(list_input(call, 0, &array));
  TRY(list_gradient_output(call, array, host_attr_string(call, "source", "")));
  return make_flow(call, 1);
}

status host_tensor_array_write(struct host_call *call) {
  struct tensor_list *list;
  struct tensor *value;
  TRY(list_input(call, 0, &list));
  TRY(host_keep_input(call, 2, &value));
  TRY(list_set(list, host_scalar_int(&call->inputs[1]), value));
  return make_flow(call, 0);
}

status host_tensor_array_read(struct host_call *call) {
  struct tensor_list *list;
  TRY(list_input(call, 0, &list));
  return list_get(list, host_scalar_int(&call->inputs[1]), &call->outputs[0]);
}

status host_tensor_array_gather(struct host_call *call) {
  struct tensor_list *list;
  TRY(list_input(call, 0, &list));
  return list_stack(list, call->inputs[1].data, call->inputs[1].count, &call->outputs[0]);
}

status host_tensor_array_scatter(struct host_call *call) {
  struct tensor_list *list;
  TRY(list_input(call, 0, &list));
  const int32_t *indices = call->inputs[1].data;
  for (int64_t i = 0; i < call->inputs[1].count; i++) {
    struct tensor *row;
    TRY(tensor_row(&call->inputs[2], i, &row));
    TRY(list_set(list, indices[i], row));
  }
  return make_flow(call, 0);
}

status host_tensor_array_concat(struct host_call *call) {
  struct tensor_list *list;
  TRY(list_input(call, 0, &list));
  return list_concat(list, &call->outputs[0], &call->outputs[1]);
}

status host_tensor_array_split(struct host_call *call) {
  struct tensor_list *list;
  TRY(list_input(call, 0, &list));
  const int64_t *lengths = call->inputs[2].data;
  int64_t at = 0;
  if (list->grows && call->inputs[2].count > list->count)
    TRY(list_resize(list, call->inputs[2].count));
  for (int64_t i = 0; i < call->inputs[2].count; i++) {
    struct tensor *rows;
    TRY(tensor_rows(&call->inputs[1], at, lengths[i], &rows));
    TRY(list_set(list, i, rows));
    at += lengths[i];
  }
  return make_flow(call, 0);
}

status host_tensor_array_size(struct host_call *call) {
  struct tensor_list *list;
  TRY(list_input(call, 0, &list));
  TRY(host_make_output(call, 0, DTYPE_INT32, &(struct shape){0}));
  *(int32_t *)call->outputs[0]->data = (int32_t)list->count;
  return OK;
}

/* ---- stacks ---- */

status host_stack(struct host_call *call) {
  struct tensor_list *list;
  return list_make_output(call, 0, DTYPE_RESOURCE, (enum dtype)host_attr_int(call, "elem_type", DTYPE_FLOAT), 0, &list);
}

status host_stack_push(struct host_call *call) {
  struct tensor_list *list;
  struct tensor *value;
  TRY(list_input(call, 0, &list));
  TRY(host_keep_input(call, 1, &value));
  call->outputs[0] = tensor_retain(value);
  list->grows = true;
  return list_set(list, list->count, value);
}

status host_stack_pop(struct host_call *call) {
  struct tensor_list *list;
  TRY(list_input(call, 0, &list));
  if (list->count == 0)
    return fail(INVALID_ARGUMENT, "Stack is empty when calling Pop()");
  call->outputs[0] = tensor_retain(list->items[list->count - 1]);
  return list_resize(list, list->count - 1);
}
